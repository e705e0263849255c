//! A server that follows a list of acts, byte by byte.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The server's behaviour for one request.
#[derive(Clone)]
#[allow(dead_code, reason = "not every test needs every act")]
pub enum Act {
    /// Reads it and sends these bytes, one after another, with pauses between them.
    Say(Vec<String>, Duration),
    /// Like [`Act::Say`], and leaves the connection open.
    Hang(Vec<String>, Duration),
    /// Reads the head alone, sends these bytes and closes when the rest has come.
    Early(String),
    /// Reads the head alone, sends these bytes and closes at once.
    Rude(String),
    /// Reads the head alone, and then nothing.
    Deaf,
}

/// The request as the server received it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub head: String,
    pub bytes: u64,
    pub hash: u64,
    /// The client went away before the answer was complete.
    pub left: bool,
}

pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Begins to serve; the last act is repeated.
    pub async fn new(acts: Vec<Act>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = seen.clone();
        tokio::spawn(async move {
            for at in 0.. {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let act = acts[at.min(acts.len() - 1)].clone();
                let all: Arc<Mutex<Vec<Seen>>> = all.clone();
                all.lock().expect("no panic").push(Seen::default());
                tokio::spawn(async move {
                    let note = |seen: &Seen| all.lock().expect("no panic")[at] = seen.clone();
                    serve(stream, act, &note).await;
                });
            }
        });
        Server { url, seen }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }
}

async fn serve(mut stream: TcpStream, act: Act, note: &(impl Fn(&Seen) + Sync)) {
    let mut seen = Seen::default();
    let mut buffer = vec![0; 64 << 10];
    let mut head = Vec::new();
    let split = loop {
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        head.extend_from_slice(&buffer[..read]);
        if let Some(at) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
    };
    seen.head = String::from_utf8_lossy(&head[..split]).to_lowercase();
    let mut hasher = DefaultHasher::new();
    hasher.write(&head[split..]);
    seen.bytes = (head.len() - split) as u64;
    let length = seen.head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
    note(&seen);
    let (texts, pause) = match &act {
        Act::Deaf => return tokio::time::sleep(Duration::from_secs(600)).await,
        Act::Rude(text) => return drop(stream.write_all(text.as_bytes()).await),
        Act::Early(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            (Vec::new(), Duration::ZERO)
        }
        Act::Say(texts, pause) | Act::Hang(texts, pause) => (texts.clone(), *pause),
    };
    while seen.bytes < length.unwrap_or(0) {
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        if read == 0 {
            break;
        }
        hasher.write(&buffer[..read]);
        seen.bytes += read as u64;
    }
    seen.hash = hasher.finish();
    note(&seen);
    for text in texts {
        let _ = stream.write_all(text.as_bytes()).await;
        tokio::time::sleep(pause).await;
    }
    if let Act::Hang(..) = act {
        seen.left = stream.read(&mut buffer).await.unwrap_or(0) == 0;
        note(&seen);
    }
}

/// Returns the hash of a file, computed like that of the bytes that the server read.
#[allow(dead_code, reason = "not every test sends a file")]
pub fn hash_of(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(&std::fs::read(path).expect("the file"));
    hasher.finish()
}
