//! What the server answers, wire by wire, over plain HTTP.

mod http;

use std::time::{Duration, Instant};

use http::{get, post, send};
use infold_testkit::{Answer, Model, Script, Server, Step, hash};
use infold_wire::{Json, Wire};

/// A path and a body that asks for a reply on a wire, streamed or not.
fn ask(wire: Wire, stream: bool) -> (&'static str, String) {
    let turn = r#""messages":[{"role":"user","content":"Hello there"}]"#;
    match wire {
        Wire::Chat => (
            "/v1/chat/completions",
            format!(
                r#"{{"model":"m",{turn},"stream":{stream},"stream_options":{{"include_usage":true}}}}"#
            ),
        ),
        Wire::Responses => (
            "/v1/responses",
            format!(r#"{{"model":"m","input":"Hello there","stream":{stream}}}"#),
        ),
        Wire::Anthropic => (
            "/v1/messages",
            format!(r#"{{"model":"m","max_tokens":50,{turn},"stream":{stream}}}"#),
        ),
        Wire::Gemini => (
            match stream {
                true => "/v1beta/models/m:streamGenerateContent?alt=sse",
                false => "/v1/models/m:generateContent",
            },
            r#"{"contents":[{"role":"user","parts":[{"text":"Hello there"}]}]}"#.to_owned(),
        ),
        Wire::Ollama => (
            "/api/chat",
            format!(r#"{{"model":"m",{turn},"tools":[],"stream":{stream}}}"#),
        ),
    }
}

/// The texts that a body, streamed or not, has under these names, one after the other.
fn said(body: &str, name: &str) -> String {
    let needle = format!("\"{name}\":\"");
    let texts = body.split(&needle).skip(1);
    let text = |rest: &str| {
        let end = rest.find('"').unwrap_or(0);
        rest[..end].to_owned()
    };
    texts.map(text).collect()
}

#[test]
fn every_wire_answers_streamed_and_whole_without_a_script() {
    let server = Server::start(Script::new());
    for wire in Wire::ALL {
        for stream in [false, true] {
            let (path, body) = ask(wire, stream);
            let got = post(&server, path, &body);
            assert_eq!((got.status, got.whole), (200, true), "{wire} {got:?}");
            let name = match (wire, stream) {
                (Wire::Chat | Wire::Ollama, _) => "content",
                (Wire::Responses, true) => "delta",
                _ => "text",
            };
            let said = said(&got.body, name);
            assert!(
                said.starts_with("You said: Hello there (1 messages, "),
                "{wire} {said}"
            );
            let kind = match (wire, stream) {
                (_, false) => "content-type: application/json",
                (Wire::Ollama, true) => "content-type: application/x-ndjson",
                _ => "content-type: text/event-stream",
            };
            assert!(got.headers.contains(kind), "{wire} {got:?}");
            if !stream {
                Json::parse(got.body.as_bytes()).unwrap();
            }
        }
    }
    assert_eq!(server.count(), 10);
}

#[test]
fn steps_come_in_order_then_the_model_speaks() {
    let server = Server::start(Script::steps([Step::say("one"), Step::error(500, "{}")]));
    let (path, body) = ask(Wire::Chat, false);
    assert_eq!(said(&post(&server, path, &body).body, "content"), "one");
    assert_eq!(post(&server, path, &body).status, 500);
    server.then(Step::say("three"));
    assert_eq!(said(&post(&server, path, &body).body, "content"), "three");
    assert!(post(&server, path, &body).body.contains("You said"));
}
