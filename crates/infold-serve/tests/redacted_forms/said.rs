//! Conversations on every wire, and redactions of them.

use infold::redact::RedactionRequest;
use infold_store::TaskError;
use infold_wire::Wire;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::office::{self, Office};

pub const SECRET: &str = "hunter2zzyzx";

pub fn whole(spans: &str) -> RedactionRequest {
    let spans = spans.split_whitespace();
    RedactionRequest {
        spans: spans.map(|span| span.parse().expect("a span")).collect(),
        pattern: None,
    }
}

pub fn pattern(pattern: &str) -> RedactionRequest {
    RedactionRequest {
        spans: Vec::new(),
        pattern: Some(pattern.parse().expect("a pattern")),
    }
}

/// Returns the contents of all files of a store.
pub fn all_files(dir: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            text += &all_files(&path);
        } else {
            text += &String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default());
        }
    }
    text
}

pub fn is_kept(office: &Office) -> bool {
    all_files(office.conversations.contexts().root()).contains("hunter2")
}

pub fn redact(office: &Office, task: Uuid, what: &RedactionRequest) {
    let contexts = office.conversations.contexts();
    loop {
        match what.carry_out(contexts, task) {
            Err(TaskError::Open { task, .. }) => office.conversations.release(task),
            done => {
                assert!(!done.expect("it is redacted").is_empty());
                assert!(!is_kept(office));
                return;
            }
        }
    }
}

/// A part of a conversation, independent of the wire.
#[derive(Clone)]
pub enum Said {
    User(String),
    Model(String),
    Call(Value),
    /// The result of a call: its text, and the object that Gemini has.
    Output(String, Value),
}

pub fn output(text: &str) -> Said {
    Said::Output(text.to_owned(), json!({"output": text}))
}

pub fn message(wire: Wire, id: &str, said: &Said) -> Value {
    match (wire, said) {
        (Wire::Gemini, Said::User(text)) => json!({"role": "user", "parts": [{"text": text}]}),
        (Wire::Gemini, Said::Model(text)) => json!({"role": "model", "parts": [{"text": text}]}),
        (Wire::Gemini, Said::Call(args)) => {
            json!({"role": "model", "parts": [{"functionCall": {"name": "run", "args": args}}]})
        }
        (Wire::Gemini, Said::Output(_, object)) => {
            json!({"role": "user", "parts": [{"functionResponse": {"name": "run", "response": object}}]})
        }
        (_, Said::User(text)) => json!({"role": "user", "content": text}),
        (_, Said::Model(text)) => json!({"role": "assistant", "content": text}),
        (Wire::Chat, Said::Call(args)) => {
            json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "run", "arguments": args.to_string()}}]})
        }
        (Wire::Chat, Said::Output(text, _)) => {
            json!({"role": "tool", "tool_call_id": id, "content": text})
        }
        (Wire::Ollama, Said::Call(args)) => {
            json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "run", "arguments": args}}]})
        }
        (Wire::Ollama, Said::Output(text, _)) => {
            json!({"role": "tool", "tool_name": "run", "content": text})
        }
        (Wire::Anthropic, Said::Call(args)) => {
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "run", "input": args}]})
        }
        (Wire::Anthropic, Said::Output(text, _)) => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})
        }
        (Wire::Responses, Said::Call(args)) => {
            json!({"type": "function_call", "call_id": id, "name": "run", "arguments": args.to_string()})
        }
        (Wire::Responses, Said::Output(text, _)) => {
            json!({"type": "function_call_output", "call_id": id, "output": text})
        }
    }
}

pub fn messages(wire: Wire, id: &str, said: &[Said]) -> Vec<Value> {
    said.iter().map(|said| message(wire, id, said)).collect()
}

pub fn body(wire: Wire, said: &[Value]) -> Value {
    match wire {
        Wire::Chat | Wire::Ollama => json!({"model": "m", "stream": false, "messages": said}),
        Wire::Anthropic => json!({"model": "m", "max_tokens": 50, "messages": said}),
        Wire::Responses => json!({"model": "m", "input": said}),
        Wire::Gemini => json!({"contents": said}),
    }
}

/// Sends a request, of which the provider must get the client's bytes, and records a reply; returns the task.
pub fn send(office: &Office, wire: Wire, body: &Value, reply: Value) -> Uuid {
    let call = office.call(wire, body, None);
    let accepted = office.conversations.accept(&call).expect("it is taken");
    let sent = office::bytes(&call.body, &accepted.outgoing);
    assert_eq!(sent, body.to_string().into_bytes(), "{wire}");
    let mut exchange = accepted.exchange;
    let mut recorded = office::reply("");
    recorded.messages = vec![reply.to_string().into_bytes()];
    exchange.record(recorded).expect("it is recorded");
    exchange.task()
}

/// Has a conversation on a wire, like an agent: each message of the model answers the messages before it.
pub fn converse(office: &Office, wire: Wire, id: &str, said: &[Said]) -> Uuid {
    let all = messages(wire, id, said);
    let mut task = None;
    for (at, said) in said.iter().enumerate() {
        if matches!(said, Said::Model(_) | Said::Call(_)) {
            task = Some(send(office, wire, &body(wire, &all[..at]), all[at].clone()));
        }
    }
    task.expect("the model answered")
}
