//! A client that is as plain as HTTP allows, and tells a cut from an end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use infold_testkit::Server;

/// A response.
#[derive(Debug)]
pub struct Got {
    /// Zero if there was not even a status.
    pub status: u16,
    pub headers: String,
    pub body: String,
    /// The body ended as it said it would.
    pub whole: bool,
}

/// Sends a request and reads until the connection ends.
pub fn send(server: &Server, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Got {
    let mut stream = TcpStream::connect(server.address()).expect("the server listens");
    let timeout = Some(Duration::from_secs(60));
    stream.set_read_timeout(timeout).expect("a timeout is set");
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
    for header in headers {
        head += &format!("{header}\r\n");
    }
    head += &format!("content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).expect("the head is sent");
    stream.write_all(body).expect("the body is sent");
    let mut bytes = Vec::new();
    // A reset is an error, and still leaves what came before it.
    let ended = stream.read_to_end(&mut bytes).is_ok();
    parse(&bytes, ended)
}

pub fn post(server: &Server, path: &str, body: &str) -> Got {
    send(server, "POST", path, VERSION, body.as_bytes())
}

pub fn get(server: &Server, path: &str) -> Got {
    send(server, "GET", path, &[], b"")
}

pub const VERSION: &[&str] = &[
    "content-type: application/json",
    "anthropic-version: 2023-06-01",
];

fn parse(bytes: &[u8], ended: bool) -> Got {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        let (headers, body) = (String::new(), String::new());
        return Got {
            status: 0,
            headers,
            body,
            whole: false,
        };
    };
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    let headers = head.to_lowercase();
    let length = headers.split("content-length: ").nth(1);
    let length = length.and_then(|it| it.lines().next()?.parse::<usize>().ok());
    let (body, whole) = match length {
        Some(length) => (body.to_owned(), body.len() == length),
        None if headers.contains("transfer-encoding: chunked") => dechunk(body),
        None => (body.to_owned(), ended),
    };
    Got {
        status: status.unwrap_or(0),
        headers,
        body,
        whole,
    }
}

fn dechunk(mut rest: &str) -> (String, bool) {
    let mut out = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else {
            return (out, false);
        };
        if size == 0 {
            return (out, true);
        }
        let Some(chunk) = after.get(..size) else {
            return (out + after, false);
        };
        out += chunk;
        rest = after.get(size + 2..).unwrap_or_default();
    }
    (out, false)
}
