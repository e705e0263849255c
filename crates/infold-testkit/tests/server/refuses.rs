//! Requests that the server refuses, with the errors of each provider.

use crate::http::{get, post, send};
use infold_testkit::{Model, Script, Server, Step, errors, read_steps};
use infold_wire::{Json, Wire};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const GEMINI: &str = "/v1beta/models/m:generateContent";
const OLLAMA: &str = "/api/chat";

/// Each line: a path, what is in the body beside the model, and what is said to it.
const INVALID: &[(&str, &str, &str)] = &[
    (CHAT, r#""messages":[]"#, "'messages': empty array"),
    (CHAT, r#""x":1"#, "Missing required parameter: 'messages'"),
    (
        CHAT,
        r#""messages":[{"role":"bot","content":"a"}]"#,
        "Invalid value: 'bot'",
    ),
    (
        CHAT,
        r#""messages":[{"role":"assistant","content":null}]"#,
        "expected a string, got null",
    ),
    (
        CHAT,
        r#""messages":[{"role":"user","content":"a"}],"tools":[]"#,
        "'tools': empty array",
    ),
    (
        CHAT,
        r#""messages":[{"role":"user","content":"a"}],"tool_choice":"auto""#,
        "only allowed when 'tools'",
    ),
    (
        CHAT,
        r#""messages":[{"role":"tool","tool_call_id":"c","content":"a"}]"#,
        "must be a response to a preceeding",
    ),
    (
        CHAT,
        r#""messages":[{"role":"assistant","tool_calls":[{"id":"c"}]},{"role":"user","content":"a"}]"#,
        "did not have response messages: c",
    ),
    (
        CHAT,
        r#""messages":[{"role":"assistant","tool_calls":[{"id":"c"}]}]"#,
        "did not have response messages: c",
    ),
    (RESPONSES, r#""x":1"#, "Missing required parameter: 'input'"),
    (
        RESPONSES,
        r#""input":[{"role":"bot","content":"a"}]"#,
        "Invalid value: 'bot'",
    ),
    (
        RESPONSES,
        r#""input":[{"type":"function_call_output","call_id":"c","output":"a"}]"#,
        "No tool call found for function call output with call_id c.",
    ),
    (
        RESPONSES,
        r#""input":[{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}]"#,
        "No tool output found for function call c.",
    ),
    (
        MESSAGES,
        r#""messages":[{"role":"user","content":"a"}]"#,
        "max_tokens: Field required",
    ),
    (
        MESSAGES,
        r#""max_tokens":9,"messages":[]"#,
        "at least one message is required",
    ),
    (
        MESSAGES,
        r#""max_tokens":9,"messages":[{"role":"assistant","content":"a"}]"#,
        "first message must use the \\\"user\\\" role",
    ),
    (
        MESSAGES,
        r#""max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#,
        "roles must alternate",
    ),
    (
        MESSAGES,
        r#""max_tokens":9,"messages":[{"role":"user","content":""}]"#,
        "must have non-empty content",
    ),
    (
        MESSAGES,
        r#""max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":""}]}]"#,
        "text content blocks must be non-empty",
    ),
    (
        MESSAGES,
        r#""max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]"#,
        "unexpected `tool_use_id` found in `tool_result` blocks: t.",
    ),
    (
        MESSAGES,
        r#""max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},{"role":"user","content":"b"}]"#,
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t.",
    ),
    (
        MESSAGES,
        r#""max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b "}]"#,
        "cannot end with trailing whitespace",
    ),
    (GEMINI, r#""contents":[]"#, "contents is not specified"),
    (
        GEMINI,
        r#""contents":[{"role":"assistant","parts":[{"text":"a"}]}]"#,
        "Please use a valid role: user, model.",
    ),
    (
        GEMINI,
        r#""contents":[{"role":"user","parts":[]}]"#,
        "contents.parts must not be empty",
    ),
    (
        GEMINI,
        r#""contents":[{"role":"user","parts":[{"functionResponse":{"name":"n","response":{}}}]}]"#,
        "function response turn comes immediately after a function call turn",
    ),
    (
        GEMINI,
        r#""contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"n"}}]},{"role":"user","parts":[{"text":"b"}]}]"#,
        "number of function response parts is equal",
    ),
    (
        OLLAMA,
        r#""messages":[{"role":"bot","content":"a"}]"#,
        "invalid role: bot",
    ),
    (
        OLLAMA,
        r#""messages":[{"role":"assistant","tool_calls":[{"function":{"name":"n","arguments":"{}"}}]}]"#,
        "cannot unmarshal string",
    ),
];

#[test]
fn an_invalid_request_is_refused_and_uses_up_no_step() {
    let server = Server::start(Script::steps([Step::say("still here")]));
    for (path, members, words) in INVALID {
        let got = post(&server, path, &format!(r#"{{"model":"m",{members}}}"#));
        assert_eq!(got.status, 400, "{members} {got:?}");
        assert!(got.body.contains(words), "{members} {got:?}");
        Json::parse(got.body.as_bytes()).unwrap();
    }
    for path in [CHAT, RESPONSES, MESSAGES, GEMINI, OLLAMA] {
        assert_eq!(post(&server, path, "{").status, 400);
    }
    assert_eq!(server.left(), 1);
}

#[test]
fn a_lenient_server_takes_what_comes() {
    let model = Model {
        strict: false,
        ..Model::default()
    };
    let server = Server::start(Script::new().model(model));
    for (path, members, _) in INVALID {
        let got = post(&server, path, &format!(r#"{{"model":"m",{members}}}"#));
        assert_eq!(got.status, 200, "{members} {got:?}");
    }
}

/// A request of a few hundred tokens on each wire.
fn long(wire: Wire) -> (&'static str, String) {
    let text = "many words ".repeat(200);
    let turns = format!(
        r#""messages":[{{"role":"user","content":"{text}"}},{{"role":"assistant","content":"so"}},{{"role":"user","content":"{text}"}}]"#
    );
    match wire {
        Wire::Chat => (CHAT, format!(r#"{{"model":"m","max_tokens":20,{turns}}}"#)),
        Wire::Responses => (RESPONSES, format!(r#"{{"model":"m","input":"{text}"}}"#)),
        Wire::Anthropic => (
            MESSAGES,
            format!(r#"{{"model":"m","max_tokens":20,{turns}}}"#),
        ),
        Wire::Gemini => (
            GEMINI,
            format!(r#"{{"contents":[{{"role":"user","parts":[{{"text":"{text}"}}]}}]}}"#),
        ),
        Wire::Ollama => (OLLAMA, format!(r#"{{"model":"m","stream":false,{turns}}}"#)),
    }
}

#[test]
fn what_is_longer_than_the_window_is_told_in_each_dialect() {
    let server = Server::start(Script::new().model(Model::window(100)));
    for (wire, words) in [
        (
            Wire::Chat,
            "This model's maximum context length is 100 tokens. However, you requested 835 tokens (815 in the messages, 20 in the completion)",
        ),
        (Wire::Responses, r#""code":"context_length_exceeded""#),
        (
            Wire::Anthropic,
            "prompt is too long: 815 tokens > 100 maximum",
        ),
        (
            Wire::Gemini,
            "exceeds the maximum number of tokens allowed (100)",
        ),
    ] {
        let (path, body) = long(wire);
        let got = post(&server, path, &body);
        assert!(
            got.status == 400 && got.body.contains(words),
            "{wire} {got:?}"
        );
    }
    let (path, body) = long(Wire::Responses);
    let got = post(&server, path, &body.replacen('{', r#"{"stream":true,"#, 1));
    assert_eq!(got.status, 200);
    assert!(got.body.contains("event: response.failed\n"), "{got:?}");
    // Ollama forgets the beginning and says nothing.
    let (path, body) = long(Wire::Ollama);
    let got = post(&server, path, &body);
    assert!(
        got.status == 200 && got.body.contains(r#""prompt_eval_count":100,"#),
        "{got:?}"
    );
}

#[test]
fn room_for_the_reply_counts_where_the_provider_counts_it() {
    let server = Server::start(Script::new().model(Model::window(820)));
    for (wire, words) in [
        (Wire::Chat, "you requested 835 tokens"),
        (
            Wire::Anthropic,
            "input length and `max_tokens` exceed context limit: 815 + 20 > 820",
        ),
    ] {
        let (path, body) = long(wire);
        let got = post(&server, path, &body);
        assert!(
            got.status == 400 && got.body.contains(words),
            "{wire} {got:?}"
        );
    }
    assert_eq!(post(&server, GEMINI, &long(Wire::Gemini).1).status, 200);
}

#[test]
fn a_wrong_key_and_a_wrong_model_are_refused_in_each_dialect() {
    let model = Model {
        key: Some("sk-right-key".to_owned()),
        names: vec!["known".to_owned()],
        ..Model::default()
    };
    let server = Server::start(Script::new().model(model));
    for wire in Wire::ALL {
        let (path, body) = long(wire);
        let header = match wire {
            Wire::Anthropic => "x-api-key: ",
            Wire::Gemini => "x-goog-api-key: ",
            _ => "authorization: Bearer ",
        };
        let with = |key: &str, body: &str, path: &str| {
            let key = format!("{header}{key}");
            let headers = [&key, "anthropic-version: 2023-06-01"];
            send(&server, "POST", path, &headers, body.as_bytes())
        };
        let wrong = with("sk-wrong-key", &body, path);
        assert!([400, 401].contains(&wrong.status), "{wire} {wrong:?}");
        assert!(!wrong.body.contains("wrong-key"), "{wire} {wrong:?}");
        let reason = wrong.body.contains(r#""reason":"API_KEY_INVALID""#);
        assert_eq!(reason, wire == Wire::Gemini, "{wrong:?}");
        assert!([401, 403].contains(&post(&server, path, &body).status));
        let lost = with("sk-right-key", &body, path);
        assert_eq!(lost.status, 404, "{wire} {lost:?}");
        let body = body.replacen(r#""model":"m""#, r#""model":"known""#, 1);
        let path = path.replace("/m:", "/known:");
        assert_eq!(with("sk-right-key", &body, &path).status, 200, "{wire}");
    }
    assert_eq!(get(&server, "/v1/models").status, 401);
}

#[test]
fn errors_are_sent_as_they_are_named() {
    let server = Server::start(Script::new());
    let mut names: Vec<_> = errors().iter().map(|error| error.name).collect();
    for error in errors() {
        server.then(Step::named(error.name));
        let got = post(&server, CHAT, &long(Wire::Chat).1);
        assert_eq!(
            (got.status, got.body.as_str()),
            (error.status, error.body),
            "{}",
            error.name
        );
        for (name, value) in error.headers {
            assert!(
                got.headers.contains(&format!("{name}: {value}")),
                "{}",
                error.name
            );
        }
        let kind = error.headers.first().map(|(_, value)| *value);
        if kind == Some("application/json") {
            assert!(Json::parse(error.body.as_bytes()).is_ok(), "{}", error.name);
        }
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), errors().len());
}

#[test]
fn a_script_is_read_line_by_line_and_says_what_is_wrong_where() {
    let text = "# a script\n{\"say\":\"Hi\",\"pause_ms\":1}\n\n{\"error\":\"gemini/key\"}\n{\"call\":\"ls\",\"arguments\":{\"a\":1}}\n{\"hang_up\":true}";
    let server = Server::start(Script::steps(read_steps(text).unwrap()));
    let ask = || post(&server, CHAT, &long(Wire::Chat).1);
    assert!(ask().body.contains(r#""content":"Hi""#));
    assert_eq!(ask().status, 400);
    assert!(ask().body.contains(r#""arguments":"{\"a\":1}""#));
    assert_eq!(ask().status, 0);
    for (text, words) in [
        ("\n{\"say\"", "line 2: not JSON"),
        ("{\"sing\":1}", "line 1: no step has `sing`"),
        ("{\"error\":\"x\"}", "no error is named `x`"),
        ("{\"after_ms\":1}", "a step says"),
        (
            "{\"say\":\"a\",\"after_ms\":\"b\"}",
            "`after_ms` is not a number",
        ),
    ] {
        let error = read_steps(text).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
