//! Replies of the server, wire by wire, over plain HTTP.

use crate::http::{get, post, send};
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
            if stream {
                "/v1beta/models/m:streamGenerateContent?alt=sse"
            } else {
                "/v1/models/m:generateContent"
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

#[test]
fn requests_are_recorded_as_they_came() {
    let server = Server::start(Script::new());
    let headers = ["content-type: application/json", "X-Odd:  one two "];
    let (path, body) = ask(Wire::Chat, false);
    send(
        &server,
        "POST",
        &format!("{path}?a=1&b"),
        &headers,
        body.as_bytes(),
    );
    let seen = server.last().unwrap();
    assert_eq!((seen.number, seen.method.as_str()), (1, "POST"));
    assert_eq!((seen.path.as_str(), seen.query.as_str()), (path, "a=1&b"));
    assert_eq!(seen.header("x-odd"), Some("one two"));
    assert_eq!(seen.body.as_deref(), Some(body.as_bytes()));
    assert_eq!(seen.wire(), Some(Wire::Chat));
    assert_eq!(
        seen.messages(),
        [r#"{"role":"user","content":"Hello there"}"#]
    );
}

#[test]
fn a_large_request_leaves_its_length_its_hash_and_its_ends() {
    let server = Server::start(Script::new());
    let text = "word ".repeat(2_000_000);
    let start = r#"{"model":"m","messages":[{"role":"user","content":""#;
    let body = format!(r#"{start}{text}"}}],"stream": true}}"#);
    let got = post(&server, "/v1/chat/completions", &body);
    assert!(
        got.whole && got.body.ends_with("data: [DONE]\n\n"),
        "{got:?}"
    );
    let seen = server.last().unwrap();
    assert_eq!(seen.len, body.len() as u64);
    assert_eq!(seen.hash, hash(body.as_bytes()));
    assert_eq!(seen.body, None);
    assert_eq!(seen.head, &body.as_bytes()[..4096]);
    assert_eq!(seen.tail, &body.as_bytes()[body.len() - 4096..]);
}

#[test]
fn lists_counts_and_versions_have_the_shape_of_their_wire() {
    let model = Model {
        names: vec!["big".to_owned(), "small".to_owned()],
        ..Model::window(500)
    };
    let server = Server::start(Script::new().model(model));
    let anthropic = send(&server, "GET", "/v1/models", crate::http::VERSION, b"");
    assert!(
        anthropic.body.contains(r#""type":"model","id":"big""#),
        "{anthropic:?}"
    );
    let google = send(&server, "GET", "/v1/models", &["x-goog-api-key: k"], b"");
    assert!(google.body.contains(r#""name":"models/big""#), "{google:?}");
    for (path, part) in [
        ("/v1/models", r#""object":"list""#),
        ("/models", r#""id":"small""#),
        ("/v1beta/models", r#""name":"models/small""#),
        ("/api/tags", r#""name":"big""#),
        ("/api/version", r#""version":"#),
        ("/", "running"),
    ] {
        let got = get(&server, path);
        assert!(
            got.status == 200 && got.body.contains(part),
            "{path} {got:?}"
        );
    }
    let turn = r#"{"model":"big","messages":[{"role":"user","content":"one two three"}]}"#;
    let counted = post(&server, "/v1/messages/count_tokens", turn).body;
    assert_eq!(counted, r#"{"input_tokens":7}"#);
    let turn = r#"{"contents":[{"parts":[{"text":"one two three"}]}]}"#;
    let counted = post(&server, "/v1/models/big:countTokens", turn).body;
    assert!(counted.starts_with(r#"{"totalTokens":"#), "{counted}");
    let shown = post(&server, "/api/show", r#"{"model":"big"}"#).body;
    assert!(shown.contains(r#""testkit.context_length":500"#), "{shown}");
    assert_eq!(get(&server, "/v1/nothing").status, 404);
}

#[test]
fn a_prompt_is_answered_in_its_own_form() {
    let server = Server::start(Script::steps([Step::say("Yes."), Step::say("No.")]));
    let body = r#"{"model":"m","prompt":"Well?","stream":false}"#;
    let got = post(&server, "/api/generate", body);
    assert_eq!(said(&got.body, "response"), "Yes.");
    let got = post(
        &server,
        "/api/generate",
        r#"{"model":"m","prompt":"Well?"}"#,
    );
    assert_eq!(said(&got.body, "response"), "No.");
    assert!(
        got.body
            .lines()
            .all(|line| Json::parse(line.as_bytes()).is_ok())
    );
}

#[test]
fn gemini_streams_an_array_unless_asked_for_events() {
    let server = Server::start(Script::steps([Step::say(
        "A longer sentence than one piece.",
    )]));
    let body = r#"{"contents":[{"parts":[{"text":"Hi"}]}]}"#;
    let got = post(&server, "/v1beta/models/m:streamGenerateContent", body);
    let json = Json::parse(got.body.as_bytes()).unwrap();
    assert!(json.elements().count() > 2, "{got:?}");
    assert_eq!(said(&got.body, "text"), "A longer sentence than one piece.");
}

#[test]
fn calls_and_reasoning_come_in_the_form_of_the_wire() {
    let answer = Answer {
        thinking: Some("Which?".to_owned()),
        calls: vec![("ls".to_owned(), r#"{"path":"."}"#.to_owned())],
        ..Answer::default()
    };
    for wire in Wire::ALL {
        let server = Server::start(Script::steps([Step::answer(answer.clone())]));
        let (path, body) = ask(wire, false);
        let got = post(&server, path, &body).body;
        let (thought, call, end) = match wire {
            Wire::Chat => (
                "reasoning_content",
                r#""arguments":"{\"path\":\".\"}""#,
                r#""finish_reason":"tool_calls""#,
            ),
            Wire::Responses => (
                "text",
                r#""arguments":"{\"path\":\".\"}""#,
                r#""status":"completed""#,
            ),
            Wire::Anthropic => (
                "thinking",
                r#""input":{"path":"."}"#,
                r#""stop_reason":"tool_use""#,
            ),
            Wire::Gemini => ("text", r#""args":{"path":"."}"#, r#""finishReason":"STOP""#),
            Wire::Ollama => (
                "thinking",
                r#""arguments":{"path":"."}"#,
                r#""done_reason":"stop""#,
            ),
        };
        assert!(said(&got, thought).contains("Which?"), "{wire} {got}");
        assert!(got.contains(call) && got.contains(end), "{wire} {got}");
    }
}

#[test]
fn a_chat_stream_thinks_before_it_speaks() {
    let answer = Answer {
        thinking: Some("Which?".to_owned()),
        text: Some("This.".to_owned()),
        ..Answer::default()
    };
    let server = Server::start(Script::steps([Step::answer(answer)]));
    let (path, body) = ask(Wire::Chat, true);
    let got = post(&server, path, &body).body;
    let thought = got.rfind("reasoning_content");
    let spoken = got.find("\"content\":\"T");
    assert!(thought.is_some() && thought < spoken, "{got}");
}

#[test]
fn usage_on_a_chat_stream_comes_only_if_asked_for() {
    let server = Server::start(Script::new());
    let (path, body) = ask(Wire::Chat, true);
    assert!(post(&server, path, &body).body.contains("\"usage\":{"));
    let body = body.replace("\"include_usage\":true", "\"include_usage\":false");
    assert!(!post(&server, path, &body).body.contains("usage"));
}

/// Returns the number of cached tokens that a chat reply reports.
fn cached(body: &str) -> u64 {
    let json = Json::parse(body.as_bytes()).expect("the reply is JSON");
    let details = json
        .get("usage")
        .and_then(|it| it.get("prompt_tokens_details"));
    let cached = details.and_then(|it| it.get("cached_tokens"));
    cached.and_then(Json::number).expect("the count is there") as u64
}

#[test]
fn what_was_sent_before_is_cached_up_to_where_it_changes() {
    let server = Server::start(Script::new());
    let turn = |system: &str, rest: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"first question here"}}{rest}]}}"#
        )
    };
    let more = r#",{"role":"assistant","content":"yes"},{"role":"user","content":"and then"}"#;
    let ask = |body: &str| cached(&post(&server, "/v1/chat/completions", body).body);
    assert_eq!(ask(&turn("Be brief.", "")), 0);
    let both = ask(&turn("Be brief.", more));
    assert!(both > 8, "{both}");
    // Spacing is not what a model reads.
    assert!(ask(&turn("Be brief.", more).replace("\":\"", "\": \"")) > both);
    assert_eq!(ask(&turn("Be long.", more)), 0);
}

#[test]
fn anthropic_keeps_what_ends_at_a_marker() {
    let server = Server::start(Script::new());
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let user = |text: &str, mark: &str| {
        format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"{mark}}}]}}"#)
    };
    let ask = |messages: &str| {
        let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{messages}]}}"#);
        let got = post(&server, "/v1/messages", &body);
        let json = Json::parse(got.body.as_bytes()).unwrap();
        let usage = json.get("usage").unwrap();
        let count = |name: &str| usage.get(name).and_then(Json::number).unwrap() as u64;
        (
            count("cache_creation_input_tokens"),
            count("cache_read_input_tokens"),
        )
    };
    let (written, read) = ask(&user("one two three", mark));
    assert!(written > 3 && read == 0);
    let reply = r#"{"role":"assistant","content":"so"}"#;
    // The marker has moved on, as it does from turn to turn.
    let second = format!(
        "{},{reply},{}",
        user("one two three", ""),
        user("four", mark)
    );
    let (more, read) = ask(&second);
    assert!(more > 0 && read == written, "{more} {read}");
    assert_eq!(ask(&user("one two three", "")), (0, 0));
}
