//! A keep-alive connection that reads whole HTTP/1.1 messages, for both sides of a load test.
//!
//! It does not know that some replies never have a body (to HEAD, 204, 304), because a load test sends none of these.

use std::io;
use std::ops::Range;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A keep-alive connection that reads one whole HTTP/1.1 message at a time. The buffers are used again for each
/// message.
pub struct LoadConnection {
    socket: TcpStream,
    /// The received bytes, which begin with the message that was returned last. It is removed at the next read, because
    /// the returned value borrows it.
    buffer: Vec<u8>,
    /// The length of that message in `buffer`.
    message_len: usize,
    /// The body of that message without the framing of its chunks, if it came in chunks.
    joined: Vec<u8>,
}

/// A request or a reply.
pub struct HttpMessage<'a> {
    /// The request line or the status line.
    pub start: &'a str,
    /// Whether no other message follows on this connection.
    pub close: bool,
    /// When the first byte behind the head came, or the end of the head if there is no body.
    pub first: Instant,
    body: &'a [u8],
}

impl<'a> HttpMessage<'a> {
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// The free space in the buffer before each read.
const READ_BYTES: usize = 128 << 10;

impl LoadConnection {
    pub fn new(socket: TcpStream) -> io::Result<LoadConnection> {
        socket.set_nodelay(true)?;
        Ok(LoadConnection {
            socket,
            buffer: Vec::with_capacity(READ_BYTES),
            message_len: 0,
            joined: Vec::new(),
        })
    }

    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await
    }

    /// Reads the next message; `None` if the peer closed the connection and no part of a message came before.
    pub async fn read(&mut self) -> io::Result<Option<HttpMessage<'_>>> {
        self.buffer.drain(..self.message_len);
        self.message_len = 0;
        let head = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if !self.read_more().await? {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        };
        let frame = BodyFraming::read(&self.buffer[..head])?;
        if self.buffer.len() == head && frame.body != Body::Bytes(0) {
            self.require_more().await?;
        }
        let first = Instant::now();
        let body = self.read_body(head, frame.body).await?;
        let start = self.buffer[..head].split(|byte| *byte == b'\r').next();
        Ok(Some(HttpMessage {
            start: text(start.unwrap_or_default())?,
            close: frame.close,
            first,
            body: match body {
                Some(range) => &self.buffer[range],
                None => &self.joined,
            },
        }))
    }

    /// Reads the body behind the head. Returns its place in `buffer`; `None` if it came in chunks, and is in `joined`.
    async fn read_body(&mut self, head: usize, body: Body) -> io::Result<Option<Range<usize>>> {
        match body {
            Body::Bytes(count) => {
                self.message_len = head + count;
                self.fill_to(self.message_len).await?;
                Ok(Some(head..self.message_len))
            }
            Body::Rest => {
                while self.read_more().await? {}
                self.message_len = self.buffer.len();
                Ok(Some(head..self.message_len))
            }
            Body::Chunks => {
                self.joined.clear();
                let mut at = head;
                loop {
                    let line = self.line_end(at).await?;
                    let size = text(&self.buffer[at..line])?;
                    let size = size.split(';').next().unwrap_or_default().trim();
                    let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
                    at = line + 2;
                    if size == 0 {
                        break;
                    }
                    self.fill_to(at + size + 2).await?;
                    self.joined.extend_from_slice(&self.buffer[at..at + size]);
                    at += size + 2;
                }
                // Trailers may follow the last chunk; they end with an empty line.
                loop {
                    let line = self.line_end(at).await?;
                    let empty = line == at;
                    at = line + 2;
                    if empty {
                        break;
                    }
                }
                self.message_len = at;
                Ok(None)
            }
        }
    }

    /// Reads until the line that begins at `at` is complete, and returns where it ends, before its line break.
    async fn line_end(&mut self, at: usize) -> io::Result<usize> {
        loop {
            if let Some(length) = find(&self.buffer[at..], b"\r\n") {
                return Ok(at + length);
            }
            self.require_more().await?;
        }
    }

    /// Reads until the buffer has at least `length` bytes.
    async fn fill_to(&mut self, length: usize) -> io::Result<()> {
        while self.buffer.len() < length {
            self.require_more().await?;
        }
        Ok(())
    }

    /// Reads more bytes; the end of the connection is an error.
    async fn require_more(&mut self) -> io::Result<()> {
        if self.read_more().await? {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// Reads more bytes; returns false at the end of the connection.
    async fn read_more(&mut self) -> io::Result<bool> {
        self.buffer.reserve(READ_BYTES);
        Ok(self.socket.read_buf(&mut self.buffer).await? > 0)
    }
}

/// How the body behind a head is framed, and whether the connection ends with it.
struct BodyFraming {
    body: Body,
    close: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Bytes(usize),
    Chunks,
    /// The body is all bytes until the connection ends.
    Rest,
}

impl BodyFraming {
    fn read(head: &[u8]) -> io::Result<BodyFraming> {
        let head = text(head)?;
        let mut frame = BodyFraming {
            // Without a length, the body of a reply ends with the connection, and a request has no body (RFC 9112,
            // 6.3).
            body: if head.starts_with("HTTP/") {
                Body::Rest
            } else {
                Body::Bytes(0)
            },
            close: false,
        };
        for line in head.split("\r\n").skip(1) {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                frame.body = Body::Bytes(value.parse().map_err(io::Error::other)?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                frame.body = Body::Chunks;
            } else if name.eq_ignore_ascii_case("connection") {
                frame.close = value.eq_ignore_ascii_case("close");
            }
        }
        frame.close |= frame.body == Body::Rest;
        Ok(frame)
    }
}

fn text(bytes: &[u8]) -> io::Result<&str> {
    std::str::from_utf8(bytes).map_err(io::Error::other)
}

/// Returns where `needle` first occurs in `bytes`.
pub fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|it| it == needle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Two messages arrive whole, wherever the network cuts them.
    #[test]
    fn a_message_may_come_in_any_two_parts() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0b\r\n\r\ndefghi\r\nj\r\n0\r\nt: v\r\n\r\nHTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nConnection: close\r\n\r\nno";
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            for cut in 1..bytes.len() {
                let socket = TcpStream::connect(address).await.expect("a listener");
                let mut line = LoadConnection::new(socket).expect("a socket");
                let (mut other, _) = listener.accept().await.expect("a caller");
                let send = async move {
                    other.write_all(&bytes[..cut]).await.expect("a reader");
                    tokio::task::yield_now().await;
                    other.write_all(&bytes[cut..]).await.expect("a reader");
                };
                let read = async {
                    let one = line.read().await.expect("whole").expect("an answer");
                    assert_eq!((one.start, one.close), ("HTTP/1.1 200 OK", false));
                    assert_eq!(one.body(), b"abc\r\ndefghi\r\nj", "cut at {cut}");
                    let two = line.read().await.expect("whole").expect("an answer");
                    assert_eq!((two.start, two.close), ("HTTP/1.1 404 Not Found", true));
                    assert_eq!(two.body(), b"no", "cut at {cut}");
                    assert!(line.read().await.expect("an end").is_none());
                };
                tokio::join!(send, read);
            }
        });
    }

    #[test]
    fn a_message_that_ends_early_is_an_error() {
        for bytes in [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab"[..],
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
            b"HTTP/1.1 200 OK\r\n",
        ] {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                let address = listener.local_addr().expect("an address");
                let socket = TcpStream::connect(address).await.expect("a listener");
                let (mut other, _) = listener.accept().await.expect("a caller");
                other.write_all(bytes).await.expect("a reader");
                drop(other);
                let mut line = LoadConnection::new(socket).expect("a socket");
                assert!(line.read().await.is_err());
            });
        }
    }
}
