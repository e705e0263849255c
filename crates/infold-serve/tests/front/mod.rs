//! A proxy in this process, and clients that know nothing but sockets.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use infold::{Config, Connector};
use infold_provider::{Client, RetryPolicy};
use infold_serve::{Conversations, Options, Server, ServerLimits, Upstreams};
use infold_store::{Contexts, Durability};
use infold_wire::Wire;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tokio::sync::{oneshot, watch};

/// A proxy on loopback. It stops when it is dropped.
pub struct Proxy {
    pub address: SocketAddr,
    pub conversations: Conversations,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    contexts: Arc<tempfile::TempDir>,
}

/// The settings of a proxy.
pub struct Setup {
    pub config: String,
    pub upstreams: Vec<String>,
    pub names: Vec<String>,
    pub token: Option<String>,
    pub limits: ServerLimits,
    /// The configured window. With one, the proxy does not ask providers for theirs: they see only the requests of
    /// clients.
    pub window: Option<&'static str>,
}

impl Setup {
    /// Everything goes to one place.
    pub fn to(upstream: &str) -> Setup {
        Setup {
            config: String::new(),
            upstreams: vec![upstream.to_owned()],
            names: Vec::new(),
            token: None,
            limits: ServerLimits::default(),
            window: Some("10000000"),
        }
    }

    pub fn start(self) -> Proxy {
        let directory = tempfile::tempdir().expect("a directory");
        self.start_in(Arc::new(directory))
    }

    /// Starts it with a directory that other proxies may use, too.
    pub fn start_in(self, directory: Arc<tempfile::TempDir>) -> Proxy {
        let contexts = Contexts::new(directory.path(), Durability::Never);
        let env = |name: &str| match name {
            "KEY" => Some("sk-our-own-key".to_owned()),
            "INFOLD_WINDOW" => self.window.map(str::to_owned),
            // A model that writes summaries ahead would be called at any moment, beside the client's requests.
            "INFOLD_SUMMARIZER" => Some("extractive".to_owned()),
            _ => None,
        };
        let (config, _) = Config::parse("config.yaml", &self.config, &env).expect("a config");
        let upstreams = Upstreams::new(&config, &self.upstreams, None).expect("upstreams");
        let options = Options {
            address: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
            token: self.token.map(infold_provider::Secret::new),
            names: self.names,
            upstreams,
            limits: self.limits,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let (keep, never) = watch::channel(false);
        let client = {
            let _inside = runtime.enter();
            Client::new(RetryPolicy::default()).expect("a client")
        };
        let board = Connector::new(client, runtime.handle().clone(), never);
        let mut opened = None;
        let conversations = |address: &str| {
            let conversations =
                Conversations::new(contexts.keeping()?.at(address), Arc::new(config), board)?;
            Ok(opened.insert(conversations).clone())
        };
        let server = runtime.block_on(Server::bind(options, conversations));
        let server = server.expect("a port, and a directory");
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            runtime.block_on(server.run(async {
                let _ = stopped.await;
            }));
            drop(keep);
        });
        Proxy {
            address,
            conversations: opened.expect("a server has one"),
            stop: Some(stop),
            thread: Some(thread),
            contexts: directory,
        }
    }
}

impl Proxy {
    pub fn to(upstream: &str) -> Proxy {
        Setup::to(upstream).start()
    }

    /// Tells the proxy to stop; replies in progress continue.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Stops it, and waits until everything is written.
    pub fn finish(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Returns its directory, for another proxy to continue with.
    pub fn directory(&self) -> Arc<tempfile::TempDir> {
        self.contexts.clone()
    }

    /// Returns the contents of all its files.
    pub fn kept(&self) -> String {
        let mut all = String::new();
        let mut folders = vec![self.contexts.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path)
                } else {
                    let bytes = std::fs::read(path).unwrap_or_default();
                    all.push_str(&String::from_utf8_lossy(&bytes));
                }
            }
        }
        all
    }

    /// Posts a body with these lines of headers, each ended.
    pub fn post(&self, path: &str, headers: &str, body: &[u8]) -> Answer {
        post(self.address, path, headers, body)
    }

    /// Sends bytes unchanged.
    pub fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The request may be refused before it was read completely.
        let _ = stream.write_all(request);
        Answer::read(stream)
    }

    /// Sends lines of a request without a body; the last line is added.
    pub fn ask(&self, lines: &str) -> Answer {
        let port = self.address.port();
        let lines = lines
            .replace("PORT", &port.to_string())
            .replace('\n', "\r\n");
        self.raw(format!("{lines}\r\nconnection: close\r\n\r\n").as_bytes())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.finish();
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).expect("a time limit");
    stream
}

pub fn head(address: SocketAddr, path: &str, headers: &str, len: usize) -> String {
    let length = format!("content-type: application/json\r\ncontent-length: {len}\r\n");
    format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n{length}{headers}connection: close\r\n\r\n")
}

pub fn post(address: SocketAddr, path: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = connect(address);
    let head = head(address, path, headers, body.len());
    stream.write_all(head.as_bytes()).expect("it is taken");
    // The request may be refused before it was read completely.
    let _ = stream.write_all(body);
    Answer::read(stream)
}

/// The answer of a server.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// The body has its end marker, and did not only break off.
    pub whole: bool,
}

impl Answer {
    fn read(mut stream: TcpStream) -> Answer {
        let mut bytes = Vec::new();
        // After a broken connection the bytes before it remain.
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes)
    }

    pub fn parse(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, rest) = match end {
            Some(end) => (&bytes[..end], &bytes[end + 4..]),
            None => (bytes, &bytes[bytes.len()..]),
        };
        let head = String::from_utf8_lossy(head).into_owned();
        let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
        let length = value(&head, "content-length").and_then(|text| text.parse().ok());
        let (body, whole) = match value(&head, "transfer-encoding") {
            Some(_) => unchunk(rest),
            None => (rest.to_vec(), length == Some(rest.len())),
        };
        Answer {
            status: status.unwrap_or(0),
            head,
            body,
            whole,
        }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        value(&self.head, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn value<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let pairs = head.lines().filter_map(|line| line.split_once(':'));
    let mut found = pairs.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.trim())
}

/// The bytes of chunks, and whether the last of them came.
fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
            return (body, false);
        };
        let size = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        let Ok(size) = usize::from_str_radix(size, 16) else {
            return (body, false);
        };
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        if rest.len() < size + 2 {
            return (body, false);
        }
        rest = &rest[size + 2..];
    }
}

/// Returns the path and headers for a model call on a wire.
pub fn place(wire: Wire, stream: bool) -> (&'static str, &'static str) {
    match (wire, stream) {
        (Wire::Chat, _) => ("/v1/chat/completions", ""),
        (Wire::Responses, _) => ("/v1/responses", ""),
        (Wire::Anthropic, _) => (
            "/v1/messages?beta=true",
            "anthropic-version: 2023-06-01\r\n",
        ),
        (Wire::Gemini, true) => (
            "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
            "",
        ),
        (Wire::Gemini, false) => ("/v1beta/models/gemini-2.5-pro:generateContent", ""),
        (Wire::Ollama, _) => ("/api/chat", ""),
    }
}

/// A request, spelled as no serialiser would.
pub fn request(wire: Wire, stream: bool, said: &str) -> Vec<u8> {
    let text = format!("\"\\u00e9\\ud83d {said}\"");
    let message = format!("{{ \"role\" :\"user\",\"content\":{text} ,\"x\":1.0}}");
    match wire {
        Wire::Chat => format!("{{\"model\":\"m\", \"stream\":{stream},\"temperature\":1.0,\n\"messages\":[{message}]}}"),
        Wire::Ollama => format!("{{\"model\":\"m\", \"stream\":{stream},\"tools\":[ ],\n\"messages\":[{message}]}}"),
        Wire::Anthropic => {
            let message = message.replace(" ,\"x\":1.0", "");
            format!("{{\"max_tokens\":99, \"model\":\"m\",\"stream\":{stream},\n\"messages\":[{message}]}}")
        }
        Wire::Responses => format!("{{\"model\":\"m\", \"stream\":{stream},\n\"input\":[{{\"role\":\"user\",\"content\":{text} }}]}}"),
        Wire::Gemini => format!("{{ \"contents\":[{{\"parts\":[{{\"text\":{text}}}] ,\"role\":\"user\"}}]\n}}"),
    }
    .into_bytes()
}

/// A text in every content coding that is read.
pub fn packed(text: &[u8]) -> [(&'static str, Vec<u8>); 5] {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text).expect("memory");
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::fast());
    deflate.write_all(text).expect("memory");
    // Raw deflate, as some servers send it.
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
    raw.write_all(text).expect("memory");
    // Two frames with one to be skipped between them.
    let (one, other) = text.split_at(text.len() / 2);
    let mut zstd = compress_to_vec(one, CompressionLevel::Fastest);
    zstd.extend(b"\x50\x2a\x4d\x18\x03\0\0\0abc");
    zstd.extend(compress_to_vec(other, CompressionLevel::Fastest));
    [
        ("gzip", gzip.finish().expect("memory")),
        ("deflate", deflate.finish().expect("memory")),
        ("deflate", raw.finish().expect("memory")),
        ("zstd", zstd),
        ("br", brotli(text)),
    ]
}

/// Brotli without any compression: a window of 16 bits, a block of literal bytes, and the end.
fn brotli(text: &[u8]) -> Vec<u8> {
    assert!((1..=1 << 16).contains(&text.len()));
    // After the window (1 bit) come: not last (1), 4 nibbles of length (2), length - 1 (16), uncompressed (1).
    let bits = (text.len() as u32 - 1) << 4 | 1 << 20;
    let mut out = bits.to_le_bytes()[..3].to_vec();
    out.extend(text);
    out.push(3);
    out
}
