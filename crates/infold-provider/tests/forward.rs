//! Connections that a provider closes while they are used again.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body::Body as _;
use infold_provider::{
    BodyPart, Endpoint, ForwardError, ForwardRequest, ForwardResponse, Forwarder,
};

/// The provider's behaviour for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Answers it, and keeps the connection.
    Answer,
    /// Closes the connection after the head, with the body unread.
    CloseAfterHead,
    /// Closes the connection after the whole request.
    CloseAfterBody,
    /// Closes the connection after half of an answer.
    CloseAfterHalfAnswer,
    /// Never gets to see it: closes the connection a moment after the answer before it.
    CloseBefore,
}

/// A request that the provider received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Received {
    /// The connection it came on.
    connection: usize,
    /// The number of bytes of the body that were read.
    body: usize,
    act: Act,
}

struct Provider {
    endpoint: Endpoint,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Provider {
    /// Does one act after the other on the first connection, and the same on every later one unless
    /// `later` says otherwise.
    fn start(acts: &'static [Act], later: &'static [Act]) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&received);
        thread::spawn(move || {
            for (connection, stream) in listener.incoming().flatten().enumerate() {
                let all = Arc::clone(&all);
                let acts = if connection == 0 { acts } else { later };
                thread::spawn(move || serve(stream, connection, acts, &all));
            }
        });
        let endpoint = Endpoint::new("local", "openai", Some(&url), None).expect("an address");
        Provider { endpoint, received }
    }

    fn received(&self) -> Vec<Received> {
        self.received.lock().expect("no panic").clone()
    }
}

fn serve(mut stream: TcpStream, connection: usize, acts: &[Act], all: &Mutex<Vec<Received>>) {
    for act in acts {
        if *act == Act::CloseBefore {
            return;
        }
        let Some(length) = read_head(&mut stream) else {
            return;
        };
        let mut body = 0;
        let mut buffer = vec![0; 64 << 10];
        while *act != Act::CloseAfterHead && body < length {
            match stream.read(&mut buffer) {
                Ok(read) if read > 0 => body += read,
                _ => break,
            }
        }
        let act = *act;
        all.lock().expect("no panic").push(Received {
            connection,
            body,
            act,
        });
        let answer = match act {
            Act::Answer => "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone",
            Act::CloseAfterHalfAnswer => "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndo",
            _ => return,
        };
        let _ = stream.write_all(answer.as_bytes());
    }
}

/// Reads a head byte by byte, and nothing of the body; gives how long that is.
fn read_head(stream: &mut TcpStream) -> Option<usize> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let length = head.split("content-length: ").nth(1)?.lines().next()?;
    length.parse().ok()
}

/// Bodies in memory and in a file, small and larger than the buffers of sockets.
fn bodies() -> Vec<Vec<BodyPart>> {
    let file = |bytes: usize| {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![b'x'; bytes]).expect("written");
        let range = 0..bytes as u64;
        BodyPart::File {
            file: Arc::new(file),
            range,
        }
    };
    let memory = |bytes: usize| BodyPart::Bytes(Bytes::from(vec![b'y'; bytes]));
    vec![
        vec![memory(100)],
        vec![memory(24 << 20)],
        vec![memory(100), file(24 << 20), memory(100)],
    ]
}

async fn send(
    forward: &Forwarder,
    to: &Provider,
    parts: &[BodyPart],
) -> Result<ForwardResponse, ForwardError> {
    let passing = ForwardRequest {
        method: Method::POST,
        path: "/v1/chat/completions".to_owned(),
        query: None,
        headers: HeaderMap::new(),
        parts: parts.to_vec(),
    };
    forward.send(&to.endpoint, passing).await
}

async fn text(mut answer: ForwardResponse) -> Result<String, ForwardError> {
    let mut text = Vec::new();
    let mut next = async || {
        let body = &mut answer.body;
        std::future::poll_fn(|context| std::pin::Pin::new(&mut *body).poll_frame(context)).await
    };
    while let Some(frame) = next().await {
        text.extend_from_slice(&frame?.into_data().unwrap_or_default());
    }
    Ok(String::from_utf8(text).expect("text"))
}

/// Sends a first request on a new connection, and a second one on the same connection.
async fn send_twice(
    acts: &'static [Act],
    later: &'static [Act],
    parts: &[BodyPart],
) -> (Provider, Result<ForwardResponse, ForwardError>) {
    let begin = Instant::now();
    loop {
        let provider = Provider::start(acts, later);
        let forward = Forwarder::new(None);
        let first = send(
            &forward,
            &provider,
            &[BodyPart::Bytes(Bytes::from_static(b"one"))],
        )
        .await;
        assert_eq!(
            text(first.expect("an answer")).await.expect("all of it"),
            "done"
        );
        let second = send(&forward, &provider, parts).await;
        let received = provider.received();
        let is_reused = received.get(1).is_some_and(|second| second.connection == 0);
        // The connection returns to the pool a moment after the answer.
        if is_reused || acts[1] == Act::CloseBefore {
            return (provider, second);
        }
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "never used again"
        );
    }
}

fn total(parts: &[BodyPart]) -> usize {
    parts.iter().map(|part| part.len() as usize).sum()
}

#[tokio::test]
async fn a_request_on_a_used_connection_that_closes_is_sent_again_on_a_fresh_one() {
    for act in [
        &[Act::Answer, Act::CloseAfterHead],
        &[Act::Answer, Act::CloseAfterBody],
        &[Act::Answer, Act::CloseBefore],
    ] {
        for parts in bodies() {
            let (provider, second) = send_twice(act, &[Act::Answer], &parts).await;
            let about = format!("{act:?}, {} bytes", total(&parts));
            let second = second.unwrap_or_else(|error| panic!("{about}: {error}"));
            assert_eq!(second.status, StatusCode::OK, "{about}");
            assert_eq!(text(second).await.expect("all of it"), "done", "{about}");
            let received = provider.received();
            let answered = received.iter().filter(|one| one.act == Act::Answer);
            assert_eq!(answered.count(), 2, "{about}: {received:?}");
            let last = received.last().expect("a request");
            assert_eq!((last.connection, last.body), (1, total(&parts)), "{about}");
        }
    }
}

#[tokio::test]
async fn it_is_sent_again_once() {
    let close = &[Act::CloseAfterBody];
    for parts in bodies() {
        let acts = &[Act::Answer, Act::CloseAfterBody];
        let (provider, second) = send_twice(acts, close, &parts).await;
        second.expect_err("nothing was answered");
        assert_eq!(provider.received().len(), 3, "{:?}", provider.received());
    }
}

#[tokio::test]
async fn an_answer_that_had_begun_is_not_asked_for_again() {
    for parts in bodies() {
        let acts = &[Act::Answer, Act::CloseAfterHalfAnswer];
        let (provider, second) = send_twice(acts, &[Act::Answer], &parts).await;
        text(second.expect("a head")).await.expect_err("half of it");
        assert_eq!(provider.received().len(), 2, "{:?}", provider.received());
    }
}

#[tokio::test]
async fn a_request_on_a_fresh_connection_is_not_sent_again() {
    for act in [&[Act::CloseAfterHead], &[Act::CloseAfterBody]] {
        for parts in bodies() {
            let provider = Provider::start(act, &[Act::Answer]);
            let forward = Forwarder::new(None);
            let sent = send(&forward, &provider, &parts).await;
            sent.expect_err("nothing was answered");
            assert_eq!(provider.received().len(), 1, "{:?}", provider.received());
        }
    }
}
