//! Raw JSON-RPC clients: lines to a process, and requests to a server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::Home;

/// A client of the protocol.
pub trait Client {
    /// Sends a request and returns the response.
    fn exchange(&mut self, request: &Value) -> Value;

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.exchange(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
    }

    /// The result of a request that must have one.
    fn result(&mut self, method: &str, params: Value) -> Value {
        let response = self.request(method, params);
        assert!(response["result"].is_object(), "{method}: {response}");
        response["result"].clone()
    }

    /// Calls a tool; `Err` is a text that says why not.
    fn call(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        let result = self.result("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = result["content"][0]["text"].as_str().expect("a text");
        match result["isError"].as_bool() {
            Some(true) => Err(text.to_owned()),
            _ => Ok(text.to_owned()),
        }
    }

    fn initialize(&mut self) -> Value {
        self.result(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}),
        )
    }
}

/// `infold mcp`, with its pipes.
pub struct Piped {
    pub child: Child,
    pub to: Option<ChildStdin>,
    pub from: BufReader<ChildStdout>,
}

impl Piped {
    /// Starts the server without sending a message.
    pub fn silent(home: &Home, flags: &str) -> Piped {
        let mut child = home
            .command(&format!("mcp {flags}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        Piped {
            to: child.stdin.take(),
            from: BufReader::new(child.stdout.take().expect("a pipe")),
            child,
        }
    }

    pub fn start(home: &Home, flags: &str) -> Piped {
        let mut piped = Piped::silent(home, flags);
        piped.initialize();
        piped.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        piped
    }

    pub fn send(&mut self, line: &[u8]) {
        let to = self.to.as_mut().expect("it is open");
        to.write_all(line).expect("it reads");
        to.write_all(b"\n").expect("it reads");
    }

    pub fn line(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"))
    }

    /// Goes away; returns the exit code, the rest of standard output, and standard error.
    pub fn end(mut self) -> (Option<i32>, String, String) {
        drop(self.to.take());
        let (mut out, mut err) = (String::new(), String::new());
        self.from.read_to_string(&mut out).expect("text");
        let mut stderr = self.child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut err).expect("text");
        let status = self.child.wait().expect("it ends");
        (status.code(), out, err)
    }
}

impl Client for Piped {
    fn exchange(&mut self, request: &Value) -> Value {
        self.send(request.to_string().as_bytes());
        self.line()
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `infold serve`.
pub struct Served {
    child: Child,
    pub port: u16,
    /// The address with its query.
    pub path: String,
}

impl Served {
    pub fn start(home: &Home, flags: &str) -> Served {
        Served::with_token(home, flags, "")
    }

    pub fn with_token(home: &Home, flags: &str, token: &str) -> Served {
        let mut child = home
            .command(&format!(
                "--json serve --port 0 --upstream http://127.0.0.1:9 {flags}"
            ))
            .env("TEST_TOKEN", token)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("an object");
        Served {
            child,
            port: ready["port"].as_u64().expect("a port") as u16,
            path: "/infold/mcp".to_owned(),
        }
    }

    /// Sends a request with these headers; returns status and body.
    pub fn ask(&self, method: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it is there");
        let limit = Some(Duration::from_secs(60));
        stream.set_read_timeout(limit).expect("a time limit");
        let host = if headers.contains("host:") {
            String::new()
        } else {
            format!("host: 127.0.0.1:{}\r\n", self.port)
        };
        let head = format!(
            "{method} {} HTTP/1.1\r\n{host}connection: close\r\n{headers}content-length: {}\r\n\r\n",
            self.path,
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("a head is sent");
        // A server that refuses it does not read it to the end.
        let _ = stream.write_all(body.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        (status.expect("a status"), body.to_owned())
    }
}

pub const JSON: &str =
    "content-type: application/json\r\naccept: application/json, text/event-stream\r\n";

impl Client for Served {
    fn exchange(&mut self, request: &Value) -> Value {
        let (status, body) = self.ask("POST", JSON, &request.to_string());
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: `{body}`"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
