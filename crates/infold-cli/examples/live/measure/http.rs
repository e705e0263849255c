//! HTTP/1.1 over a connection that stays open: requests and replies, each read whole.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

/// One end of a connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

/// A request or a reply.
#[derive(Debug, Default)]
pub struct Received {
    /// The first line.
    pub start: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, put together if it came in chunks.
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| &**value)
    }

    /// The status of a reply; zero if it has none.
    pub fn status(&self) -> u16 {
        let mut words = self.start.split(' ');
        words
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or_default()
    }
}

impl Connection {
    /// Opens a connection.
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        Connection::new(TcpStream::connect(address)?)
    }

    /// Takes a connection that is open.
    pub fn new(stream: TcpStream) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream: BufReader::with_capacity(1 << 16, stream),
        })
    }

    /// Writes several byte strings, one after the other.
    pub fn write(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        parts.iter().try_for_each(|part| stream.write_all(part))
    }

    /// Reads the next message; none if the other side has hung up between two.
    pub fn read(&mut self) -> io::Result<Option<Received>> {
        let start = self.line()?;
        if start.is_empty() {
            return Ok(None);
        }
        let mut received = Received {
            start,
            ..Received::default()
        };
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            let name = name.to_ascii_lowercase();
            received.headers.push((name, value.trim().to_owned()));
        }
        received.body = match received.header("content-length") {
            Some(length) => self.bytes(length.parse().map_err(io::Error::other)?)?,
            None if received.header("transfer-encoding").is_some() => self.chunks()?,
            None => Vec::new(),
        };
        Ok(Some(received))
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = usize::from_str_radix(&line, 16).map_err(io::Error::other)?;
            body.append(&mut self.bytes(size)?);
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The next line without its end; empty at the end of the connection, too.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}
