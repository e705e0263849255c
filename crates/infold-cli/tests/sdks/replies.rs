//! The replies of the scripted server, wire by wire.

use std::collections::HashMap;

use infold_testkit::{Seen, Step};
use infold_wire::{Json, Reply, StopReason, TokenUsage, Wire};
use serde_json::{Value, json};

/// A reply that both a client and Infold are given, by the name of the model they ask.
pub struct Scripted {
    pub name: &'static str,
    streamed: Step,
    whole: Step,
}

const USAGE: TokenUsage = TokenUsage {
    input: 100,
    cache_read: 20,
    cache_write: 0,
    output: 30,
    reasoning: 10,
};

const PLAIN: &str = "Ja. \"Grüße\" aus 東京 👩‍👩‍👧 🚀\n\tπ ≈ 3.14 \\ </done> \u{2028}";
const THOUGHT: &str = "First the file, dann 🤔.\nThen \"who\".";

/// The arguments of two calls at once.
fn arguments() -> [Value; 2] {
    [
        json!({"path": "src/ä 🚀.rs", "lines": [1, 2, 3], "deep": {"a": [{"b": null}, true, -1.5e3, "x\ny\"z"]}}),
        json!({}),
    ]
}

/// All replies of a wire.
pub fn replies(wire: Wire) -> Vec<Scripted> {
    let long: String = (0..3000).map(|at| format!("{at}·wört🚀 ")).collect();
    let mut all = vec![
        reply("plain", said(wire, PLAIN), StopReason::End, 3),
        reply("letter-by-letter", said(wire, PLAIN), StopReason::End, 1),
        reply("long", said(wire, &long), StopReason::End, 17),
        reply(
            "cut-by-length",
            said(wire, "It goes on and"),
            StopReason::Length,
            5,
        ),
        reply("calls", calls(wire, None, None), StopReason::Calls, 4),
        reply(
            "says-and-calls",
            calls(wire, Some("I look. 👀"), None),
            StopReason::Calls,
            7,
        ),
        reply(
            "thinks",
            calls(wire, Some("I look."), Some(THOUGHT)),
            StopReason::Calls,
            6,
        ),
    ];
    all.extend(own(wire));
    all.extend(crate::streams::recorded(wire));
    all
}

/// Returns the replies that only this wire has.
fn own(wire: Wire) -> Vec<Scripted> {
    match wire {
        Wire::Chat => {
            let refused = json!({"role": "assistant", "content": null, "refusal": "Das nicht. 🙅"});
            vec![
                reply("refused", vec![refused], StopReason::End, 4),
                reply("filtered", said(wire, "So far"), StopReason::Declined, 4),
            ]
        }
        Wire::Responses => {
            let refusal = json!({"type": "refusal", "refusal": "Das nicht. 🙅"});
            let refused = json!({"id": "msg_r", "type": "message", "status": "completed", "role": "assistant", "content": [refusal]});
            let citation = json!({"type": "url_citation", "start_index": 0, "end_index": 2, "title": "T", "url": "http://localhost/ü"});
            let cited = json!({"type": "output_text", "text": "So 🚀", "annotations": [citation]});
            let cited = json!({"id": "msg_c", "type": "message", "status": "completed", "role": "assistant", "content": [cited]});
            let sealed = json!({"id": "rs_s", "type": "reasoning", "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}], "encrypted_content": "c2VhbGVk"});
            vec![
                reply("refused", vec![refused], StopReason::End, 4),
                reply("filtered", said(wire, "So far"), StopReason::Declined, 4),
                reply("cited", vec![sealed, cited], StopReason::End, 2),
            ]
        }
        Wire::Anthropic => {
            let cited = json!({"type": "char_location", "cited_text": "ü", "document_index": 0, "document_title": "T", "start_char_index": 0, "end_char_index": 1, "file_id": null});
            let blocks = json!([
                {"type": "redacted_thinking", "data": "c2VhbGVk"},
                {"type": "thinking", "thinking": THOUGHT, "signature": "Zmlyc3Q="},
                {"type": "text", "text": "One. ", "citations": [cited]},
                {"type": "thinking", "thinking": "", "signature": "c2Vjb25k"},
                {"type": "text", "text": "Two."},
            ]);
            let message = json!({"role": "assistant", "content": blocks});
            vec![
                reply("many-blocks", vec![message], StopReason::End, 3),
                reply("refused", said(wire, "I will not"), StopReason::Declined, 4),
            ]
        }
        Wire::Gemini => {
            let parts = json!([
                {"text": THOUGHT, "thought": true},
                {"text": "Signed. ", "thoughtSignature": "c2lnbmVk"},
                {"text": "Not signed."},
                {"functionCall": {"id": "f1", "name": "read", "args": {"path": "a"}}, "thoughtSignature": "Y2FsbGVk"},
                {"executableCode": {"language": "PYTHON", "code": "print('ü')"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "ü"}},
                {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}},
            ]);
            let message = json!({"role": "model", "parts": parts});
            vec![
                reply("many-parts", vec![message], StopReason::Calls, 3),
                reply("filtered", said(wire, "So far"), StopReason::Declined, 4),
            ]
        }
        Wire::Ollama => Vec::new(),
    }
}

fn reply(name: &'static str, messages: Vec<Value>, stop: StopReason, pieces: usize) -> Scripted {
    // Some clients read this character as the end of a line, so services escape it.
    let escaped = |it: &Value| it.to_string().replace('\u{2028}', "\\u2028").into_bytes();
    let step = Step::exact(Reply {
        messages: messages.iter().map(escaped).collect(),
        stop,
        usage: Some(USAGE),
        model: Some(name.to_owned()),
        id: None,
    });
    let step = step.in_pieces(pieces);
    Scripted::raw(name, step.clone(), step)
}

impl Scripted {
    pub fn raw(name: &'static str, streamed: Step, whole: Step) -> Scripted {
        Scripted {
            name,
            streamed,
            whole,
        }
    }
}

/// Answers by the name of the model.
pub fn decide(wires: &[Wire]) -> impl FnMut(&Seen) -> Step + Send + 'static {
    let mut known = HashMap::new();
    for wire in wires {
        let talk = crate::talk::replies(*wire).into_iter();
        let talk = talk.map(|(name, messages, stop)| reply(name, messages, stop, 5));
        known.extend(
            replies(*wire)
                .into_iter()
                .chain(talk)
                .map(|it| ((*wire, it.name), it)),
        );
    }
    move |seen| {
        let wire = seen.wire().expect("a request for a reply");
        let json = seen.json().expect("a request in JSON");
        let in_path = seen
            .path
            .rsplit('/')
            .next()
            .and_then(|last| last.split_once(':'));
        let model = match in_path {
            Some((model, _)) => model.to_owned(),
            None => json
                .get("model")
                .and_then(Json::text)
                .expect("a model")
                .into_owned(),
        };
        let streams = match in_path {
            Some((_, action)) => action == "streamGenerateContent",
            None => json.get("stream").is_some_and(Json::is_true),
        };
        let found = known.get(&(wire, model.as_str()));
        let found = found.unwrap_or_else(|| panic!("no reply is scripted for {wire} {model}"));
        if streams {
            found.streamed.clone()
        } else {
            found.whole.clone()
        }
    }
}

fn said(wire: Wire, text: &str) -> Vec<Value> {
    vec![match wire {
        Wire::Chat | Wire::Ollama => json!({"role": "assistant", "content": text}),
        Wire::Responses => item(text),
        Wire::Anthropic => {
            json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
        }
        Wire::Gemini => json!({"role": "model", "parts": [{"text": text}]}),
    }]
}

fn item(text: &str) -> Value {
    let part = json!({"type": "output_text", "text": text, "annotations": []});
    json!({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]})
}

/// Returns two calls, after thoughts and text.
pub fn calls(wire: Wire, text: Option<&str>, thought: Option<&str>) -> Vec<Value> {
    let [read, who] = arguments();
    match wire {
        Wire::Chat => {
            let call = |id: &str, name: &str, given: &Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": given.to_string()}});
            let mut message = json!({"role": "assistant", "content": text, "tool_calls": [call("call_a", "read", &read), call("call_b", "who", &who)]});
            if let Some(thought) = thought {
                message["reasoning_content"] = json!(thought);
            }
            vec![message]
        }
        Wire::Responses => {
            let call = |id: &str, name: &str, given: &Value| json!({"id": format!("fc_{id}"), "type": "function_call", "status": "completed", "call_id": id, "name": name, "arguments": given.to_string()});
            let thoughts = thought.into_iter().map(|it| json!({"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": it}], "encrypted_content": "c2VhbGVk"}));
            let calls = [call("call_a", "read", &read), call("call_b", "who", &who)];
            thoughts.chain(text.map(item)).chain(calls).collect()
        }
        Wire::Anthropic => {
            let call = |id: &str, name: &str, given: &Value| json!({"type": "tool_use", "id": id, "name": name, "input": given});
            let thoughts = thought
                .into_iter()
                .map(|it| json!({"type": "thinking", "thinking": it, "signature": "c2lnbmVk"}));
            let text = text
                .into_iter()
                .map(|it| json!({"type": "text", "text": it}));
            let calls = [call("toolu_a", "read", &read), call("toolu_b", "who", &who)];
            let blocks: Vec<_> = thoughts.chain(text).chain(calls).collect();
            vec![json!({"role": "assistant", "content": blocks})]
        }
        Wire::Gemini => {
            let call =
                |name: &str, given: &Value| json!({"functionCall": {"name": name, "args": given}});
            let thoughts = thought
                .into_iter()
                .map(|it| json!({"text": it, "thought": true}));
            let text = text.into_iter().map(|it| json!({"text": it}));
            let mut calls = [call("read", &read), call("who", &who)];
            calls[0]["thoughtSignature"] = json!("c2lnbmVk");
            let parts: Vec<_> = thoughts.chain(text).chain(calls).collect();
            vec![json!({"role": "model", "parts": parts})]
        }
        Wire::Ollama => {
            let call =
                |name: &str, given: &Value| json!({"function": {"name": name, "arguments": given}});
            let mut message = json!({"role": "assistant", "content": text.unwrap_or_default(), "tool_calls": [call("read", &read), call("who", &who)]});
            if let Some(thought) = thought {
                message["thinking"] = json!(thought);
            }
            vec![message]
        }
    }
}
