//! A minimal HTTP client that returns the complete response.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body is complete.
    pub whole: bool,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Posts JSON, and reads to the end.
pub fn post(port: u16, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Answer> {
    let mut stream = send(port, path, headers, body)?;
    let mut bytes = Vec::new();
    // After a broken connection the bytes before it remain.
    let ended = stream.read_to_end(&mut bytes);
    let answer = parse(&bytes);
    match (answer, ended) {
        (Some(answer), _) => Ok(answer),
        (None, Err(error)) => Err(error),
        (None, Ok(_)) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
    }
}

/// Posts JSON, and leaves it at that.
pub fn send(port: u16, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.set_nodelay(true)?;
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    stream.write_all(&[head.as_bytes(), body].concat())?;
    Ok(stream)
}

/// Gets something.
pub fn get(port: u16, path: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n"
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    parse(&bytes).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    });
    let mut answer = Answer {
        status,
        headers: headers.collect(),
        body: bytes[end + 4..].to_vec(),
        whole: true,
    };
    let said = answer.header("content-length").map(str::to_owned);
    if let Some(said) = said.and_then(|said| said.parse::<usize>().ok()) {
        answer.whole = answer.body.len() == said;
    } else if answer.header("transfer-encoding") == Some("chunked") {
        (answer.body, answer.whole) = joined(&bytes[end + 4..]);
    }
    Some(answer)
}

/// The chunks of a body, and whether the last one was there.
fn joined(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") else {
            return (body, false);
        };
        let size = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else {
            return (body, false);
        };
        bytes = &bytes[end + 2..];
        if size == 0 {
            return (body, true);
        }
        if bytes.len() < size + 2 {
            body.extend_from_slice(&bytes[..size.min(bytes.len())]);
            return (body, false);
        }
        body.extend_from_slice(&bytes[..size]);
        bytes = &bytes[size + 2..];
    }
}
