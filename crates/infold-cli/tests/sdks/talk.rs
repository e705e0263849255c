//! A conversation with a picture, reasoning, two calls at once and their results, in the form
//! of each wire. `shared.py` holds the same conversation for the clients.

use infold_wire::{StopReason, Wire};
use serde_json::{Value, json};

use crate::replies::calls;

const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SYSTEM: &str = "You are careful. 🦉";
const ASKED: &str = "What is in this picture, and who made it?";
const RESULTS: [&str; 2] = ["fn main() {}\n// ünïcode 🚀", "ada"];
/// The question after the results.
pub const MORE: &str = "Und jetzt? \"Quoted\" \\ and\nin two lines.";

/// The tools, as chat has them.
pub fn tools() -> Value {
    let path = json!({"type": "string"});
    let lines = json!({"type": "array", "items": {"type": "integer"}});
    let read = json!({"type": "object", "properties": {"path": path, "lines": lines}, "required": ["path"]});
    let who = json!({"type": "object", "properties": {"path": path}});
    json!([
        {"type": "function", "function": {"name": "read", "description": "Reads a file", "parameters": read}},
        {"type": "function", "function": {"name": "who", "description": "Says who made it", "parameters": who}},
    ])
}

/// Returns the model's replies, turn by turn.
pub fn replies(wire: Wire) -> [(&'static str, Vec<Value>, StopReason); 3] {
    let called = calls(wire, Some("I look. 👀"), Some("Hm, \"who\"?"));
    [
        ("talk-1", called, StopReason::Calls),
        (
            "talk-2",
            said(wire, "msg_2", "Ada made it. 🎨"),
            StopReason::End,
        ),
        (
            "talk-3",
            said(wire, "msg_3", "Nothing more."),
            StopReason::End,
        ),
    ]
}

/// Returns the messages before the first reply.
pub fn opening(wire: Wire) -> Vec<Value> {
    let system = json!({"role": "system", "content": SYSTEM});
    let address = format!("data:image/png;base64,{PICTURE}");
    let asked = match wire {
        Wire::Chat => json!({"role": "user", "content": [
            {"type": "text", "text": ASKED}, {"type": "image_url", "image_url": {"url": address}},
        ]}),
        Wire::Responses => json!({"role": "user", "content": [
            {"type": "input_text", "text": ASKED}, {"type": "input_image", "image_url": address, "detail": "auto"},
        ]}),
        Wire::Anthropic => json!({"role": "user", "content": [
            {"type": "text", "text": ASKED},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
        ]}),
        Wire::Gemini => json!({"role": "user", "parts": [
            {"text": ASKED}, {"inlineData": {"mimeType": "image/png", "data": PICTURE}},
        ]}),
        Wire::Ollama => json!({"role": "user", "content": ASKED, "images": [PICTURE]}),
    };
    vec![system, asked]
}

/// Returns the messages with the results of the tools.
pub fn results(wire: Wire) -> Vec<Value> {
    let [read, who] = RESULTS;
    match wire {
        Wire::Chat => vec![
            json!({"role": "tool", "tool_call_id": "call_a", "content": read}),
            json!({"role": "tool", "tool_call_id": "call_b", "content": who}),
        ],
        Wire::Responses => vec![
            json!({"type": "function_call_output", "call_id": "call_a", "output": read}),
            json!({"type": "function_call_output", "call_id": "call_b", "output": who}),
        ],
        Wire::Anthropic => vec![json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_a", "content": read},
            {"type": "tool_result", "tool_use_id": "toolu_b", "content": who},
        ]})],
        Wire::Gemini => vec![json!({"role": "user", "parts": [
            {"functionResponse": {"name": "read", "response": {"result": read}}},
            {"functionResponse": {"name": "who", "response": {"result": who}}},
        ]})],
        Wire::Ollama => vec![
            json!({"role": "tool", "content": read, "tool_name": "read"}),
            json!({"role": "tool", "content": who, "tool_name": "who"}),
        ],
    }
}

/// Returns the conversation up to the last question.
pub fn whole(wire: Wire) -> Vec<Value> {
    let [(_, called, _), (_, answered, _), _] = replies(wire);
    [opening(wire), called, results(wire), answered].concat()
}

/// A round that other wires have only some of the words for.
pub fn odd(wire: Wire) -> Vec<Value> {
    match wire {
        Wire::Chat => vec![
            json!({"role": "user", "content": [
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "text", "text": "Hear and see."},
            ]}),
            json!({"role": "assistant", "content": null, "refusal": "Das nicht."}),
        ],
        Wire::Responses => vec![
            json!({"role": "developer", "content": "Be brief."}),
            json!({"role": "user", "content": "Again."}),
            json!({"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "c2VhbGVk"}),
            json!({"type": "function_call", "call_id": "call_9", "name": "shot", "arguments": "no JSON"}),
            json!({"type": "function_call_output", "call_id": "call_9", "output": [
                {"type": "input_text", "text": "so"},
                {"type": "input_image", "image_url": format!("data:image/png;base64,{PICTURE}"), "detail": "auto"},
            ]}),
        ],
        Wire::Anthropic => vec![
            json!({"role": "user", "content": [
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Read me"}},
                {"type": "text", "text": "Again."},
            ]}),
            json!({"role": "assistant", "content": [
                {"type": "redacted_thinking", "data": "c2VhbGVk"},
                {"type": "tool_use", "id": "toolu_8", "name": "shot", "input": {}},
                {"type": "tool_use", "id": "toolu_9", "name": "rm", "input": {}},
            ]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_8", "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
                ]},
                {"type": "tool_result", "tool_use_id": "toolu_9", "content": "denied", "is_error": true},
                {"type": "text", "text": "Not that."},
            ]}),
        ],
        Wire::Gemini => vec![
            json!({"role": "user", "parts": [{"text": "Again."}, {"fileData": {"fileUri": "https://localhost/a.png", "mimeType": "image/png"}}]}),
            json!({"role": "model", "parts": [{"functionCall": {"name": "rm", "args": {}}}, {"functionCall": {"name": "rm", "args": {}}}]}),
            json!({"role": "user", "parts": [
                {"functionResponse": {"name": "rm", "response": {"error": "denied"}}},
                {"functionResponse": {"name": "rm", "response": {"files": 2}}},
            ]}),
        ],
        Wire::Ollama => vec![
            json!({"role": "user", "content": "", "images": [PICTURE]}),
            json!({"role": "assistant", "content": "", "thinking": "Hm", "tool_calls": [{"function": {"name": "shot", "arguments": {}}}]}),
            json!({"role": "tool", "content": "", "tool_name": "shot"}),
        ],
    }
}

fn said(wire: Wire, id: &str, text: &str) -> Vec<Value> {
    vec![match wire {
        Wire::Chat | Wire::Ollama => json!({"role": "assistant", "content": text}),
        Wire::Responses => {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part]})
        }
        Wire::Anthropic => {
            json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
        }
        Wire::Gemini => json!({"role": "model", "parts": [{"text": text}]}),
    }]
}

/// Returns a request without members that do not depend on the conversation, in a normal form.
pub fn alike(wire: Wire, mut body: Value) -> Value {
    let asides = [
        "stream",
        "stream_options",
        "store",
        "include",
        "max_tokens",
        "options",
        "generationConfig",
    ];
    let members = body.as_object_mut().expect("an object");
    members.retain(|name, value| !asides.contains(&name.as_str()) && *value != json!([]));
    let block = match wire {
        Wire::Responses => "input_text",
        _ => "text",
    };
    let blocks = |text: &Value| json!([{"type": block, "text": text}]);
    if let Some(system) = members.get_mut("system").filter(|it| it.is_string()) {
        *system = blocks(system);
    }
    if let Some(system) = members.get_mut("systemInstruction") {
        // A system instruction has no role.
        system.as_object_mut().expect("an object").remove("role");
    }
    if matches!(wire, Wire::Anthropic | Wire::Responses) {
        let name = if wire == Wire::Anthropic {
            "messages"
        } else {
            "input"
        };
        for message in body[name].as_array_mut().expect("messages") {
            if wire == Wire::Responses && message["role"].is_string() {
                message["type"] = json!("message");
            }
            if message["content"].is_string() {
                message["content"] = blocks(&message["content"]);
            }
        }
    }
    unmarked(&mut body);
    match wire {
        Wire::Gemini => spelled(body),
        _ => body,
    }
}

/// Gemini takes names in either case and bytes in either alphabet; this is one of each.
fn spelled(value: Value) -> Value {
    // The names in arguments, results and schemas of tools are not Gemini's.
    let foreign = ["args", "response", "parametersJsonSchema"];
    let bytes = ["data", "thoughtSignature"];
    let member = |(name, value): (String, Value)| {
        let name = camel(&name);
        let value = match &value {
            _ if foreign.contains(&name.as_str()) => value,
            Value::String(text) if bytes.contains(&name.as_str()) => {
                text.replace('-', "+").replace('_', "/").into()
            }
            _ => spelled(value),
        };
        (name, value)
    };
    match value {
        Value::Object(members) => Value::Object(members.into_iter().map(member).collect()),
        Value::Array(list) => list.into_iter().map(spelled).collect(),
        other => other,
    }
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (initial, rest) = word.split_at(word.len().min(1));
        name + &initial.to_uppercase() + rest
    })
}

/// Takes the markers for a provider's cache away.
fn unmarked(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(unmarked);
        }
        Value::Array(list) => list.iter_mut().for_each(unmarked),
        _ => {}
    }
}
