//! The folds of `infold serve`: when, by which summarizer, and the messages about them.

mod common;

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use common::Home;
use infold_testkit::{Model, Script, Seen, Server, Step};
use serde_json::{Value, json};

const WRITTEN: &str = "## Goal\nThe parser is being made fast.";

/// A server that replies with a word, and writes summaries on request.
fn server(mut asked: impl FnMut(&Seen) + Send + 'static) -> Server {
    let script = Script::decide(move |seen| {
        asked(seen);
        if is_summary(seen) {
            Step::say(WRITTEN)
        } else {
            Step::say("fine")
        }
    });
    Server::start(script.model(Model {
        strict: false,
        ..Model::default()
    }))
}

fn is_summary(seen: &Seen) -> bool {
    seen.text().contains("You write the summary")
}

/// A proxy as a person starts it, and a conversation through it.
struct Proxy {
    child: Child,
    host: String,
    /// The rest of its standard error.
    lines: Lines<BufReader<ChildStderr>>,
    said: Vec<Value>,
}

impl Proxy {
    fn start(home: &Home, more: &str) -> Proxy {
        let mut child = home
            .command(&format!("serve --port 0 {more}"))
            .env("HOME", home.path())
            .env("ALL_PROXY", "http://127.0.0.1:9")
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let stderr = child.stderr.take().expect("it was piped");
        let mut lines = BufReader::new(stderr).lines();
        let first = lines.next().expect("a line").expect("text");
        let host = first.strip_prefix("listening on http://");
        Proxy {
            host: host.expect("where it listens").to_owned(),
            child,
            lines,
            said: Vec::new(),
        }
    }

    /// Sends a message of about 330 tokens, and adds the answer.
    fn turn(&mut self, model: &str) {
        let words = "alpha river stone seven green apple house table ".repeat(40);
        let number = self.said.len();
        self.said
            .push(json!({"role": "user", "content": format!("request {number} {words}")}));
        let body = json!({"model": model, "messages": self.said}).to_string();
        let (host, length) = (&self.host, body.len());
        let mut stream = TcpStream::connect(host).expect("it listens");
        write!(stream, "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").expect("taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        self.said
            .push(json!({"role": "assistant", "content": "fine"}));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_says_when_it_folded() {
    let (home, server) = (Home::new(), server(|_| {}));
    let mut proxy = Proxy::start(
        &home,
        &format!(
            "--window 8k --summarizer extractive --upstream {}",
            server.url()
        ),
    );
    for _ in 0..30 {
        proxy.turn("m");
    }
    let told = proxy
        .lines
        .find(|line| {
            let line = line.as_deref().unwrap_or_default();
            line.starts_with("task ") && line.contains(" → ")
        })
        .expect("it is said")
        .expect("text");
    let words: Vec<&str> = told.split(' ').collect();
    let tokens = |word: &str| word.replace(',', "").parse::<u64>().expect("a number");
    assert_eq!((words[1].len(), words[6]), (8, "tokens"), "{told}");
    assert!(tokens(words[3]) > tokens(words[5]), "{told}");
}

#[test]
fn without_folds_of_its_own_a_proxy_asks_no_paid_model_for_one() {
    let (home, server) = (Home::new(), server(|_| {}));
    let url = server.url();
    let configured = |auto: bool| {
        home.config(format!(
            "llm: {{here: {{provider: lmstudio, model: big, base_url: '{url}'}}}}\n\
             models: {{big: {{window: 8000, prices: {{input: 1, output: 2}}}}}}\n\
             summarizer: model\nprofiles: {{big: {{auto: {auto}}}}}\n"
        ));
    };
    let summaries = || {
        server
            .requests()
            .iter()
            .filter(|seen| is_summary(seen))
            .count()
    };
    let messages = || {
        let last = server.last_call().expect("it was asked");
        let body: Value = serde_json::from_str(&last.text()).expect("JSON");
        body["messages"].as_array().map_or(0, Vec::len)
    };
    configured(false);
    let mut proxy = Proxy::start(&home, "");
    // Behind the threshold and within the window nothing is folded.
    for _ in 0..14 {
        proxy.turn("big");
    }
    assert_eq!(messages(), 27, "all is sent");
    for _ in 0..26 {
        proxy.turn("big");
    }
    assert!(messages() < 79, "what does not fit is folded");
    assert_eq!(summaries(), 0);
    drop(proxy);
    // The same conversation is folded by the model if no summarizer is configured.
    configured(true);
    let mut proxy = Proxy::start(&home, "");
    for _ in 0..40 {
        proxy.turn("big");
        if summaries() > 0 {
            return;
        }
    }
    panic!("the model was not asked");
}

#[test]
fn a_proxy_has_summaries_written_by_a_model_of_another_provider() {
    let (told, asked) = mpsc::channel();
    let other = server(move |seen| {
        let _ = told.send((seen.path.clone(), is_summary(seen)));
    });
    let server = server(|_| {});
    let (home, here, there) = (Home::new(), server.url(), other.url());
    home.config(format!(
        "llm: {{provider: here, here: {{provider: lmstudio, model: big, context_length: 8000, base_url: '{here}'}}, \
         there: {{provider: anthropic, api_key: key, base_url: '{there}'}}}}\n\
         profiles: {{default: {{condense_model: 'there/claude-haiku-4-5'}}}}\n"
    ));
    let mut proxy = Proxy::start(&home, "");
    for _ in 0..40 {
        proxy.turn("big");
    }
    let (path, is_summary_call) = asked
        .recv_timeout(Duration::from_secs(60))
        .expect("it is asked");
    assert!(path.ends_with("/messages") && is_summary_call, "{path}");
    let mut here = server.requests().into_iter();
    assert!(
        !here.any(|seen| is_summary(&seen)),
        "who is talked to is not asked"
    );
}

#[test]
fn every_conversation_has_its_own_time() {
    let home = Home::new();
    let talk = |name: &str| {
        let words = "alpha river stone seven green apple house table ".repeat(30);
        let turns = (0..60).flat_map(|at| {
            let user = json!({"role": "user", "content": format!("{name} {at} {words}")});
            [
                user,
                json!({"role": "assistant", "content": format!("reply {at}")}),
            ]
        });
        json!({"messages": turns.collect::<Vec<_>>()}).to_string()
    };
    let names = ["one", "two", "three"];
    let lines: Vec<String> = names.iter().map(|name| talk(name)).collect();
    home.file("all.jsonl", lines.join("\n"));
    let ran = home.run("fold all.jsonl --window 8k", b"");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.code, 0, "{said}");
    let times = said.lines().filter(|line| line.starts_with("time "));
    assert_eq!(times.count(), names.len(), "{said}");
}
