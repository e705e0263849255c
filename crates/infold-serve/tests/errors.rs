//! Errors of providers: which of them cause folds, and what the client gets for the others.

mod front;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use front::{Answer, Proxy, Setup};
use infold_log::Item;
use infold_testkit::{Model, Script, Seen, Server, Step};
use serde_json::{Value, json};

/// One error of a provider, with its meaning.
#[derive(Clone)]
struct Row {
    name: String,
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    expect: String,
}

impl Row {
    fn read(line: &str) -> Row {
        let json: Value = serde_json::from_str(line).expect("a row is JSON");
        let text = |name: &str| json[name].as_str().expect("a text").to_owned();
        let headers = json["headers"].as_object().expect("headers").iter();
        let value = |(name, value): (&String, &Value)| {
            (name.clone(), value.as_str().expect("a text").to_owned())
        };
        Row {
            name: text("name"),
            status: json["status"].as_u64().expect("a number") as u16,
            headers: headers.map(value).collect(),
            body: text("body"),
            expect: text("expect"),
        }
    }

    fn kind(&self) -> &'static str {
        match self.body.trim_start().chars().next() {
            Some('{' | '[' | '"') => "application/json",
            Some('<') => "text/html",
            _ => "text/plain",
        }
    }

    fn step(&self) -> Step {
        let step = Step::error(self.status, self.body.clone()).header("content-type", self.kind());
        let headers = self.headers.iter();
        headers.fold(step, |step, (name, value)| step.header(name, value))
    }

    /// Says whether the error itself states that the request is too long.
    fn is_overflow(&self) -> bool {
        self.expect.starts_with("too_l")
    }
}

/// The errors of all providers that come with a status of their own.
fn rows() -> Vec<Row> {
    let lines = include_str!("../../infold-wire/tests/troubles.jsonl").lines();
    lines
        .map(Row::read)
        .filter(|row| row.status >= 400)
        .collect()
}

/// A proxy that takes a model's window from the table.
fn proxy(server: &Server) -> Proxy {
    Setup {
        window: None,
        ..Setup::to(&server.url())
    }
    .start()
}

/// A provider that answers the first request for a model with its error.
struct Erring {
    server: Server,
    /// The bodies that came, by model.
    asked: Arc<Mutex<HashMap<String, Vec<Vec<u8>>>>>,
}

impl Erring {
    fn start(rows: &[Row]) -> Erring {
        let errors: Vec<Step> = rows.iter().map(Row::step).collect();
        let mut errors: HashMap<String, Step> = (0..).map(model).zip(errors).collect();
        let asked: Arc<Mutex<HashMap<String, Vec<Vec<u8>>>>> = Arc::default();
        let noted = Arc::clone(&asked);
        let script = Script::new().otherwise(move |seen| {
            let json = seen.json().expect("it is JSON");
            let model = json.get("model").and_then(|model| model.text());
            let model = model.expect("a model").into_owned();
            let error = errors.remove(&model);
            let body = seen.body.clone().expect("a body");
            noted
                .lock()
                .expect("a lock")
                .entry(model)
                .or_default()
                .push(body);
            error.unwrap_or_else(|| Step::say("fine"))
        });
        let server = Server::start(script.model(Model {
            strict: false,
            ..Model::default()
        }));
        Erring { server, asked }
    }

    fn asked(&self, model: &str) -> Vec<Vec<u8>> {
        self.asked.lock().expect("a lock")[model].clone()
    }
}

fn model(at: usize) -> String {
    format!("model-{at}")
}

fn said(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

/// A conversation of a few thousand tokens: a few percent of the window.
fn talk(about: &str) -> Vec<Value> {
    let words = "some more words to fill it with ".repeat(12);
    let mut talk = Vec::new();
    for turn in 0..20 {
        talk.push(said("user", &format!("{about}, {turn}: {words}")));
        talk.push(said("assistant", &format!("{turn}: {words}")));
    }
    talk.push(said("user", "and now?"));
    talk
}

fn body(model: &str, messages: &[Value]) -> Vec<u8> {
    json!({"model": model, "messages": messages})
        .to_string()
        .into_bytes()
}

fn ask(proxy: &Proxy, body: &[u8]) -> Answer {
    proxy.post("/v1/chat/completions", "", body)
}

fn learned(proxy: &Proxy, model: &str) -> usize {
    let learned = infold::usage::learned_windows(proxy.conversations.contexts(), model);
    learned.expect("it can be read").len()
}

#[test]
fn only_what_says_that_it_is_too_long_is_folded_for() {
    let rows = rows();
    assert!(rows.len() >= 150, "{}", rows.len());
    let provider = Erring::start(&rows);
    let proxy = proxy(&provider.server);
    let (mut folded, mut passed) = (0, 0);
    for (at, row) in rows.iter().enumerate() {
        let (name, model) = (&row.name, model(at));
        let mut messages = talk(name);
        let sent = body(&model, &messages);
        let answer = ask(&proxy, &sent);
        if row.is_overflow() {
            folded += 1;
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());
            assert_ne!(answer.header("x-infold-folds"), Some("0"), "{name}");
            let asked = provider.asked(&model);
            assert!(
                asked.len() >= 2 && asked[1].len() < asked[0].len(),
                "{name}"
            );
            continue;
        }
        passed += 1;
        assert_eq!(answer.status, row.status, "{name}: {}", answer.text());
        assert_eq!(answer.body, row.body.as_bytes(), "{name}");
        assert_eq!(answer.header("content-type"), Some(row.kind()), "{name}");
        for (header, value) in &row.headers {
            assert_eq!(answer.header(header), Some(&**value), "{name}");
        }
        assert_eq!(provider.asked(&model).len(), 1, "{name}");
        // Neither the next request of the conversation nor the next conversation is affected.
        messages.push(said("user", "are you there?"));
        for next in [messages, talk(&format!("another than {name}"))] {
            let sent = body(&model, &next);
            let answer = ask(&proxy, &sent);
            assert_eq!(answer.status, 200, "{name}: {}", answer.text());
            assert_eq!(answer.header("x-infold-folds"), Some("0"), "{name}");
            assert_eq!(provider.asked(&model).pop(), Some(sent), "{name}");
        }
        assert_eq!(learned(&proxy, &model), 0, "{name}");
    }
    assert!(
        folded >= 30 && passed >= 120,
        "{folded} folded, {passed} passed on"
    );
}

#[test]
fn a_limit_of_a_rate_is_no_window() {
    let rows: Vec<Row> = rows()
        .into_iter()
        .filter(|row| row.status == 429 || row.status >= 500 || row.name.contains("over the rate"))
        .collect();
    let provider = Erring::start(&rows);
    let proxy = proxy(&provider.server);
    for (at, row) in rows.iter().enumerate() {
        ask(&proxy, &body(&model(at), &talk(&row.name)));
        assert_eq!(learned(&proxy, &model(at)), 0, "{}", row.name);
    }
}

/// Starts a provider that refuses every request with stand-ins.
fn refusing(refuse: impl Fn(&Seen) -> Step + Send + 'static) -> Server {
    let script = Script::new().otherwise(move |seen| {
        if holds_stand_in(seen) {
            refuse(seen)
        } else {
            Step::say("fine")
        }
    });
    Server::start(script.model(Model {
        strict: false,
        ..Model::default()
    }))
}

fn holds_stand_in(seen: &Seen) -> bool {
    let text = seen.text();
    text.contains("folded away") || text.contains("hidden to fit the window")
}

const KEY: &str = "sk-of-the-client-0123456789";

/// A provider's error about a stand-in that it rejects; it repeats the key.
const ODD: &str = r#"{"error":{"message":"messages.1.content: this is odd, sk-of-the-client-0123456789","type":"invalid_request_error"}}"#;

/// A client that continues a conversation by about a hundred tokens each turn.
struct Client<'p> {
    proxy: &'p Proxy,
    said: Vec<Value>,
}

impl Client<'_> {
    fn ask(&mut self) -> (Vec<u8>, Answer) {
        let words = "some more words to fill it with ".repeat(12);
        let turn = self.said.len();
        self.said.push(said("user", &format!("{turn}: {words}")));
        let sent = body("m", &self.said);
        let key = format!("authorization: Bearer {KEY}\r\n");
        let answer = self.proxy.post("/v1/chat/completions", &key, &sent);
        if answer.status == 200 {
            self.said.push(said("assistant", "fine"));
        }
        (sent, answer)
    }

    /// Continues until the provider gets a request with a stand-in.
    fn ask_until_folded(&mut self, server: &Server) -> (Vec<u8>, Answer) {
        for _ in 0..200 {
            let asked = self.ask();
            if calls(server).iter().any(holds_stand_in) {
                return asked;
            }
        }
        panic!("nothing was folded");
    }
}

/// The requests for replies that came.
fn calls(server: &Server) -> Vec<Seen> {
    let all = server.requests().into_iter();
    all.filter(|seen| seen.path.ends_with("/chat/completions"))
        .collect()
}

fn with_window(server: &Server, window: &'static str) -> Proxy {
    Setup {
        window: Some(window),
        ..Setup::to(&server.url())
    }
    .start()
}

fn fallbacks(proxy: &Proxy) -> Option<u64> {
    let metrics = proxy
        .ask("GET /metrics HTTP/1.1\nhost: localhost:PORT")
        .text();
    let name = "infold_fold_fallbacks_total ";
    let mut found = metrics.lines().filter_map(|line| line.strip_prefix(name));
    found.next()?.parse().ok()
}

fn folds(proxy: &Proxy, task: &str) -> usize {
    let task = task.parse().expect("a task");
    let log = proxy
        .conversations
        .contexts()
        .read(task)
        .expect("it can be read");
    let items = log.state().shown().items().iter();
    let masks = log.state().shown().all_masks().count();
    masks + items.filter(|item| matches!(item, Item::Fold(_))).count()
}

#[test]
fn a_folded_request_that_is_refused_is_sent_as_the_client_wrote_it() {
    for status in [400, 422] {
        let server = refusing(move |_| Step::error(status, ODD));
        let proxy = with_window(&server, "8000");
        let mut client = Client {
            proxy: &proxy,
            said: Vec::new(),
        };
        let (sent, answer) = client.ask_until_folded(&server);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-infold-folds"), Some("0"));
        let seen = calls(&server);
        let [.., folded, unfolded] = &seen[..] else {
            panic!("two requests");
        };
        assert!(holds_stand_in(folded));
        assert_eq!(unfolded.body.as_deref(), Some(&sent[..]));
        assert_eq!(fallbacks(&proxy), Some(1));
        let kept = proxy.kept();
        assert!(kept.contains("a folded request was refused: "));
        assert!(kept.contains("messages.1.content: this is odd, (key)"));
        assert!(!kept.contains(KEY));
        // The reply is recorded, the fold is open, and the next request is not refused.
        let task = answer.header("x-infold-task").expect("a task").to_owned();
        assert_eq!(folds(&proxy, &task), 0);
        let before = calls(&server).len();
        let (sent, answer) = client.ask();
        assert_eq!(answer.header("x-infold-task"), Some(&*task));
        let seen = calls(&server);
        assert_eq!(seen.len(), before + 1);
        assert_eq!(seen[before].body.as_deref(), Some(&sent[..]));
        // A request that would not fit the window is not sent without folds: the client gets the provider's error.
        let refused = (0..100).map(|_| client.ask().1).find(|it| it.status != 200);
        let refused = refused.expect("some time it does not fit");
        assert_eq!((refused.status, refused.text()), (status, ODD.to_owned()));
        assert!(calls(&server).last().is_some_and(holds_stand_in));
        assert_eq!(fallbacks(&proxy), Some(1));
    }
}

#[test]
fn a_fold_stays_if_the_clients_own_bytes_are_refused_too() {
    let other = r#"{"error":{"message":"temperature: no","type":"invalid_request_error"}}"#;
    let refused = Arc::new(AtomicBool::new(false));
    let refuses = Arc::clone(&refused);
    let script = Script::new().otherwise(move |seen| match holds_stand_in(seen) {
        true => {
            refuses.store(true, Relaxed);
            Step::error(400, ODD)
        }
        false if refuses.swap(false, Relaxed) => Step::error(400, other),
        false => Step::say("fine"),
    });
    let server = Server::start(script.model(Model {
        strict: false,
        ..Model::default()
    }));
    let proxy = with_window(&server, "8000");
    let mut client = Client {
        proxy: &proxy,
        said: Vec::new(),
    };
    let task = client.ask().1;
    let task = task.header("x-infold-task").expect("a task").to_owned();
    let (_, answer) = client.ask_until_folded(&server);
    assert_eq!((answer.status, answer.text()), (400, other.to_owned()));
    assert!(folds(&proxy, &task) > 0);
    assert_eq!(fallbacks(&proxy), Some(1));
}

#[test]
fn a_key_or_a_quota_is_not_the_folds_fault() {
    let quota = r#"{"error":{"message":"Billing hard limit has been reached.","code":"billing_hard_limit_reached"}}"#;
    let server = refusing(move |_| Step::error(400, quota));
    let proxy = with_window(&server, "8000");
    let mut client = Client {
        proxy: &proxy,
        said: Vec::new(),
    };
    let (_, answer) = client.ask_until_folded(&server);
    assert_eq!((answer.status, answer.text()), (400, quota.to_owned()));
    assert!(calls(&server).last().is_some_and(holds_stand_in));
    assert_eq!(fallbacks(&proxy), Some(0));
}

#[test]
fn what_is_refused_without_a_word_is_folded_only_near_the_window() {
    let refusals = [
        Step::error(400, ""),
        Step::error(413, "<html><h1>413 Request Entity Too Large</h1></html>"),
    ];
    for (step, status) in refusals.into_iter().zip([400, 413]) {
        for (window, near) in [("5000", true), ("200000", false)] {
            let script = Script::steps([step.clone()]).otherwise(|_| Step::say("fine"));
            let server = Server::start(script.model(Model {
                strict: false,
                ..Model::default()
            }));
            let proxy = with_window(&server, window);
            let mut messages = talk("this");
            messages.drain(..20);
            let answer = ask(&proxy, &body("m", &messages));
            let folds = answer.header("x-infold-folds");
            let expected = if near { 200 } else { status };
            assert_eq!(answer.status, expected, "{window}: {}", answer.text());
            assert_eq!(folds.is_some_and(|folds| folds != "0"), near, "{window}");
        }
    }
}

#[test]
fn a_true_overflow_is_put_in_words_that_the_client_knows_without_made_up_sizes() {
    let long = body("m", &[said("user", &"many words ".repeat(100))]);
    let anthropic = |text: &str| {
        let message = said("user", text);
        let request = json!({"model": "m", "max_tokens": 9, "messages": [message]});
        request.to_string().into_bytes()
    };
    let answer = |path: &str, body: &[u8], error: &'static str| {
        let server = Server::start(Script::new().otherwise(move |_| Step::error(400, error)));
        let version = "anthropic-version: 2023-06-01\r\n";
        Proxy::to(&server.url()).post(path, version, body)
    };
    let chat = "/v1/chat/completions";
    let messages = "/v1/messages";
    // An error that the client's wire defines is passed on unchanged.
    for (path, body, error) in [
        (
            chat,
            &long,
            r#"{"error":{"message":"This model's maximum context length is 8 tokens. However, you requested 9 tokens.","code":"context_length_exceeded"}}"#,
        ),
        (
            messages,
            &anthropic("hi"),
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
        ),
        (
            messages,
            &anthropic("hi"),
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 2082 + 199000 > 200000, decrease input length or `max_tokens` and try again"}}"#,
        ),
        (
            messages,
            &anthropic("hi"),
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 199000 + 2082 > 200000, decrease input length or `max_tokens` and try again"}}"#,
        ),
    ] {
        let answer = answer(path, body, error);
        assert_eq!((answer.status, answer.text()), (400, error.to_owned()));
    }
    // Any other error is written in the terms of the client's wire, with the provider's numbers or none.
    let told = answer(
        messages,
        &anthropic("hi"),
        r#"{"message":"Input is too long for requested model."}"#,
    );
    assert_eq!(
        told.text(),
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}"#
    );
    let told = answer(
        messages,
        &anthropic("hi"),
        r#"{"error":{"code":400,"message":"request (3031 tokens) exceeds the available context size (1024 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":3031,"n_ctx":1024}}"#,
    );
    assert_eq!(
        told.text(),
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 3031 tokens > 1024 maximum"}}"#
    );
}

#[test]
fn an_empty_stream_far_below_the_window_is_passed_on() {
    let empty = || Step::empty().header("content-type", "text/event-stream");
    let script = Script::steps([empty(), empty()]).otherwise(|_| Step::say("fine"));
    let server = Server::start(script.model(Model {
        strict: false,
        ..Model::default()
    }));
    let proxy = with_window(&server, "200000");
    let messages = talk("this");
    let request = json!({"model": "m", "stream": true, "messages": messages}).to_string();
    let answer = ask(&proxy, request.as_bytes());
    assert_eq!((answer.status, answer.text()), (200, String::new()));
    assert_eq!(calls(&server).len(), 2);
    let answer = ask(&proxy, request.as_bytes());
    assert_eq!(answer.header("x-infold-folds"), Some("0"));
    let last = calls(&server).pop().expect("a request");
    assert_eq!(last.body.as_deref(), Some(request.as_bytes()));
}

#[test]
fn a_long_context_is_a_window_of_a_million() {
    let server = Server::start(Script::new().otherwise(|_| Step::say("fine")).model(Model {
        strict: false,
        ..Model::default()
    }));
    let proxy = proxy(&server);
    // About 240,000 tokens.
    let words = "some more words to fill it with ".repeat(250);
    let talk = |about: &str| -> Vec<Value> {
        let turn = |turn: usize| match turn % 2 {
            0 => said("user", &format!("{about} {turn}: {words}")),
            _ => said("assistant", &format!("{turn}: {words}")),
        };
        (0..101).map(turn).collect()
    };
    for (about, model, headers, beta, folded) in [
        ("plain", "claude-sonnet-4-5", "", json!(null), true),
        (
            "another beta",
            "claude-sonnet-4-5",
            "anthropic-beta: interleaved-thinking-2025-05-14\r\n",
            json!(null),
            true,
        ),
        (
            "a header",
            "claude-sonnet-4-5",
            "anthropic-beta: oauth-2025-04-20, context-1m-2025-08-07\r\n",
            json!(null),
            false,
        ),
        (
            "a second header",
            "claude-sonnet-4-5",
            "anthropic-beta: oauth-2025-04-20\r\nanthropic-beta: context-1m-2025-08-07\r\n",
            json!(null),
            false,
        ),
        ("a name", "claude-sonnet-4-5[1m]", "", json!(null), false),
        (
            "a member",
            "claude-sonnet-4-5",
            "",
            json!(["context-1m-2025-08-07"]),
            false,
        ),
        ("plain again", "claude-sonnet-4-5", "", json!(null), true),
    ] {
        let mut request = json!({"model": model, "max_tokens": 1000, "messages": talk(about)});
        if beta.is_array() {
            request["anthropic_beta"] = beta;
        }
        let request = request.to_string();
        let answer = proxy.post("/v1/messages", headers, request.as_bytes());
        assert_eq!(answer.status, 200, "{about}: {}", answer.text());
        let folds = answer.header("x-infold-folds");
        assert_eq!(folds != Some("0"), folded, "{about}: {}", answer.head);
    }
}
