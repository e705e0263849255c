use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use infold::{Config, Connector};
use infold_provider::{Client, RetryPolicy};
use infold_serve::{Api, Conversations, LiveEvents, Metrics, ServerLimits};
use infold_store::{Contexts, Durability};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// A server with a separate contexts directory.
pub struct Server {
    pub address: SocketAddr,
    pub contexts: Contexts,
    pub metrics: Arc<Metrics>,
    pub news: LiveEvents,
    _runtime: Runtime,
    _dir: tempfile::TempDir,
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The error, as `status kind: message`.
    pub fn error(&self) -> String {
        let error = &self.json()["error"];
        assert!(error["hint"].is_string(), "{error}");
        let text = |name: &str| error[name].as_str().expect(name).to_owned();
        format!("{} {}: {}", self.status, text("kind"), text("message"))
    }
}

impl Server {
    pub fn start() -> Server {
        let dir = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(dir.path().join("contexts"), Durability::Never);
        let runtime = Runtime::new().expect("a runtime");
        let (_, stop) = watch::channel(false);
        let client = Client::new(RetryPolicy::default()).expect("a client");
        let board = Connector::new(client, runtime.handle().clone(), stop);
        let conversations =
            Conversations::new(contexts.clone(), Arc::new(Config::default()), board);
        let conversations = conversations.expect("a conversations");
        let (metrics, news) = (conversations.metrics(), conversations.events());
        let api = Api::new(conversations, ServerLimits::default());
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let api = api.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let api = api.clone();
                        async move { Ok::<_, Infallible>(api.answer(request).await) }
                    });
                    let stream = TokioIo::new(stream);
                    let _ = http1::Builder::new()
                        .serve_connection(stream, service)
                        .await;
                });
            }
        });
        Server {
            address,
            contexts,
            metrics,
            news,
            _runtime: runtime,
            _dir: dir,
        }
    }

    /// Sends a request; HTTP/1.0, so that the body is all that comes up to the end.
    pub fn open(&self, method: &str, path: &str, more: &str, body: &[u8]) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).expect("the server is there");
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a time limit");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nhost: x\r\n{more}content-length: {length}\r\n\r\n"
        )
        .expect("a head is sent");
        stream.write_all(body).expect("a body is sent");
        BufReader::new(stream)
    }

    pub fn ask(&self, method: &str, path: &str, more: &str, body: &[u8]) -> Answer {
        answer(self.open(method, path, more, body))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", b"")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, "", body.to_string().as_bytes())
    }

    /// A list, all of which is well.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        match answer.json() {
            Value::Array(list) => list,
            other => panic!("{path}: {other}"),
        }
    }

    /// Creates a task with `turns` turns.
    pub fn task(&self, turns: usize) -> String {
        let made = self.post(
            "/infold/api/tasks",
            &json!({"model": "gpt-5", "context_length": 8000}),
        );
        assert_eq!(made.status, 201, "{}", made.text());
        let task = format!(
            "/infold/api/tasks/{}",
            made.json()["uuid"].as_str().expect("an id")
        );
        let turn = |turn: usize| {
            let text = format!("part {turn}: {}", "and so on ".repeat(10));
            [
                json!({"role": "user", "content": text}),
                json!({"role": "assistant", "content": text}),
            ]
        };
        let all: Vec<Value> = (0..turns).flat_map(turn).collect();
        let pushed = self.post(&format!("{task}/messages"), &all.into());
        assert_eq!(pushed.status, 200, "{}", pushed.text());
        task
    }
}

pub fn answer(mut stream: BufReader<TcpStream>) -> Answer {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).expect("a head") > 0, "{head}");
    }
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let mut body = Vec::new();
    stream.read_to_end(&mut body).expect("a body");
    Answer {
        status: status.expect("a status"),
        head: head.to_lowercase(),
        body,
    }
}
