//! A model server on loopback that replies with the next message of a recorded session.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use infold_wire::envelope::Envelope;
use infold_wire::tokens::{Encoding, count, message};
use infold_wire::{Message, Wire, quote};

use super::http::{Connection, Received};
use super::record::hash;
use super::reply::{self, Usage};

/// The server. It stops when it is dropped.
pub struct Upstream {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stopped: Arc<AtomicBool>,
}

/// A request as it arrived.
pub struct Request {
    /// The messages of the request, without cache markers.
    pub messages: Vec<Vec<u8>>,
    /// Hash and tokens of each message.
    weights: Vec<(u64, u64)>,
    /// Tokens of all but the messages.
    pub frame_tokens: u64,
    /// The number of first messages that are the same as in the request before.
    pub same_messages: usize,
    /// The request begins with all messages of the request before.
    pub extends: bool,
    /// The request had more tokens than the window, and was refused.
    pub refused: bool,
    is_stream: bool,
}

#[derive(Default)]
struct State {
    window: u64,
    /// The next reply.
    reply: Vec<u8>,
    received: Vec<Request>,
    /// Hashes of the last request's messages.
    last: Vec<u64>,
    /// Tokens of messages that were seen before.
    counted: HashMap<u64, u64>,
}

/// The mark at the end of the part that a provider should cache. The client moves it with each request.
pub const CACHE_MARKER: &str = r#","cache_control":{"type":"ephemeral"}"#;

impl Request {
    /// Returns all tokens of the request.
    pub fn tokens(&self) -> u64 {
        self.frame_tokens + self.message_tokens(self.weights.len())
    }

    /// Returns the tokens in a prompt cache: those of the prefix shared with the last request.
    pub fn cached_tokens(&self) -> u64 {
        match self.same_messages {
            0 => 0,
            same => self.frame_tokens + self.message_tokens(same),
        }
    }

    fn message_tokens(&self, messages: usize) -> u64 {
        self.weights[..messages]
            .iter()
            .map(|(_, tokens)| tokens)
            .sum()
    }
}

impl Upstream {
    /// Starts a server that refuses requests with more tokens than its window.
    pub fn start(window: u64) -> io::Result<Upstream> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let upstream = Upstream {
            address: listener.local_addr()?,
            state: Arc::new(Mutex::new(State {
                window,
                ..State::default()
            })),
            stopped: Arc::default(),
        };
        let (state, stopped) = (Arc::clone(&upstream.state), Arc::clone(&upstream.stopped));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let state = Arc::clone(&state);
                if let Ok(stream) = stream {
                    // The other side hangs up when it ends.
                    thread::spawn(move || serve(stream, &state));
                }
            }
        });
        Ok(upstream)
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the next reply, for any client.
    pub fn will_say(&self, reply: &[u8]) {
        lock(&self.state).reply = reply.to_vec();
    }

    /// Takes the requests since the last call.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut lock(&self.state).received)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let mut connection = Connection::new(stream)?;
    while let Some(received) = connection.read()? {
        let (status, kind, body) = lock(state).answer(received);
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        connection.write(&[head.as_bytes(), body.as_bytes()])?;
    }
    Ok(())
}

impl State {
    fn answer(&mut self, received: Received) -> (&'static str, &'static str, String) {
        let is_call = received.start.starts_with("POST /v1/messages ")
            || received.start.starts_with("POST /v1/messages?");
        let request = if is_call {
            self.read(received.body)
        } else {
            None
        };
        let Some(request) = request else {
            return error("404 Not Found", "not_found_error", "there is nothing here");
        };
        let tokens = request.tokens();
        if request.refused {
            let text = format!(
                "prompt is too long: {tokens} tokens > {} maximum",
                self.window
            );
            self.received.push(request);
            return error("400 Bad Request", "invalid_request_error", &text);
        }
        let usage = Usage {
            tokens,
            cached: request.cached_tokens(),
            output: Message::parse(&self.reply).map_or(0, |reply| message(&reply)),
        };
        self.last = request.weights.iter().map(|(hash, _)| *hash).collect();
        let is_stream = request.is_stream;
        self.received.push(request);
        if is_stream {
            (
                "200 OK",
                "text/event-stream",
                reply::stream(&self.reply, &usage),
            )
        } else {
            (
                "200 OK",
                "application/json",
                reply::whole(&self.reply, &usage),
            )
        }
    }

    fn read(&mut self, body: Vec<u8>) -> Option<Request> {
        let envelope = Envelope::of(Wire::Anthropic, &body).ok()?;
        let text = |range: Range<u64>| {
            String::from_utf8_lossy(&body[range.start as usize..range.end as usize])
        };
        let bare = |range: &Range<u64>| text(range.clone()).replace(CACHE_MARKER, "");
        let messages = envelope
            .messages
            .iter()
            .map(|range| bare(range).into_bytes());
        let messages: Vec<Vec<u8>> = messages.collect();
        let weights: Vec<(u64, u64)> = messages.iter().map(|bytes| self.weigh(bytes)).collect();
        let frame_tokens = ["system", "tools"]
            .iter()
            .filter_map(|name| envelope.member(name))
            .map(|range| count(Encoding::O200k, &text(range)))
            .sum();
        let same = weights.iter().zip(&self.last);
        let same_messages = same.take_while(|((new, _), old)| new == *old).count();
        let mut request = Request {
            extends: same_messages == self.last.len(),
            refused: false,
            is_stream: envelope
                .member("stream")
                .is_some_and(|range| text(range) == "true"),
            messages,
            weights,
            frame_tokens,
            same_messages,
        };
        request.refused = request.tokens() > self.window;
        Some(request)
    }

    /// Hash and tokens of a message.
    fn weigh(&mut self, bytes: &[u8]) -> (u64, u64) {
        let hash = hash(bytes);
        let tokens = self.counted.entry(hash).or_insert_with(|| {
            let parsed = Message::parse(bytes);
            parsed.map_or(0, |parsed| message(&parsed))
        });
        (hash, *tokens)
    }
}

fn error(status: &'static str, kind: &str, text: &str) -> (&'static str, &'static str, String) {
    let text = quote(text);
    let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{text}}}}}"#);
    (status, "application/json", body)
}
