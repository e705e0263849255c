//! A recorded message written as a reply of Anthropic's API: in one piece, or as a stream.

use infold_wire::{Json, JsonKind, Message, quote};

use super::record::block_bytes;

/// The tokens of a request and its reply.
pub struct Usage {
    /// The whole request.
    pub tokens: u64,
    /// The part of it that a prompt cache has.
    pub cached: u64,
    /// The reply.
    pub output: u64,
}

impl Usage {
    fn json(&self, output: u64) -> String {
        format!(
            r#"{{"input_tokens":0,"cache_creation_input_tokens":{},"cache_read_input_tokens":{},"output_tokens":{output}}}"#,
            self.tokens - self.cached,
            self.cached,
        )
    }
}

/// The reply in one piece.
pub fn whole(recorded: &[u8], usage: &Usage) -> String {
    let blocks = blocks(recorded);
    let (content, stop) = (blocks.join(","), stop_reason(&blocks));
    message(&content, &format!("\"{stop}\""), &usage.json(usage.output))
}

/// The reply as events.
pub fn stream(recorded: &[u8], usage: &Usage) -> String {
    let mut out = String::new();
    let mut event = |name: &str, members: String| {
        let data = format!(r#"{{"type":"{name}"{members}}}"#);
        out.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    };
    let start = message("", "null", &usage.json(1));
    event("message_start", format!(r#","message":{start}"#));
    let blocks = blocks(recorded);
    for (index, block) in blocks.iter().enumerate() {
        let (start, deltas) = parts(block);
        let place = format!(r#","index":{index}"#);
        let start = format!(r#"{place},"content_block":{start}"#);
        event("content_block_start", start);
        for delta in deltas {
            event("content_block_delta", format!(r#"{place},"delta":{delta}"#));
        }
        event("content_block_stop", place);
    }
    let (stop, output) = (stop_reason(&blocks), usage.output);
    event(
        "message_delta",
        format!(
            r#","delta":{{"stop_reason":"{stop}","stop_sequence":null}},"usage":{{"output_tokens":{output}}}"#
        ),
    );
    event("message_stop", String::new());
    out
}

fn message(content: &str, stop: &str, usage: &str) -> String {
    format!(
        r#"{{"id":"msg_live","type":"message","role":"assistant","model":"recorded","content":[{content}],"stop_reason":{stop},"stop_sequence":null,"usage":{usage}}}"#
    )
}

/// The blocks of a message; a plain text becomes one.
fn blocks(recorded: &[u8]) -> Vec<String> {
    let Ok(message) = Message::parse(recorded) else {
        return Vec::new();
    };
    let blocks = block_bytes(&message).into_iter();
    let blocks = blocks.map(|block| String::from_utf8_lossy(block).into_owned());
    blocks
        .map(|block| {
            if block.starts_with('"') {
                format!(r#"{{"type":"text","text":{block}}}"#)
            } else {
                block
            }
        })
        .collect()
}

fn stop_reason(blocks: &[String]) -> &'static str {
    let is_call = |block: &String| type_of(block) == "tool_use";
    if blocks.iter().any(is_call) {
        "tool_use"
    } else {
        "end_turn"
    }
}

fn type_of(block: &str) -> String {
    let json = Json::parse(block.as_bytes()).ok();
    let kind = json.and_then(|json| json.get("type"));
    let kind = kind.and_then(|kind| kind.text().map(|kind| kind.into_owned()));
    kind.unwrap_or_default()
}

/// Returns the beginning of a streamed block, and its deltas. Blocks without deltas are complete at the beginning.
fn parts(block: &str) -> (String, Vec<String>) {
    let json = Json::parse(block.as_bytes()).ok();
    let member = |name: &str| {
        let value = json.and_then(|json| json.get(name))?;
        Some(String::from_utf8_lossy(value.bytes()).into_owned())
    };
    let (Some(json), kind) = (json, type_of(block)) else {
        return (block.to_owned(), Vec::new());
    };
    match (&*kind, member("text"), member("thinking"), member("input")) {
        ("text", Some(text), ..) => (
            r#"{"type":"text","text":""}"#.to_owned(),
            vec![format!(r#"{{"type":"text_delta","text":{text}}}"#)],
        ),
        ("thinking", _, Some(thinking), _) => {
            let signature = member("signature").unwrap_or_else(|| "\"\"".to_owned());
            let deltas = vec![
                format!(r#"{{"type":"thinking_delta","thinking":{thinking}}}"#),
                format!(r#"{{"type":"signature_delta","signature":{signature}}}"#),
            ];
            let start = r#"{"type":"thinking","thinking":"","signature":""}"#;
            (start.to_owned(), deltas)
        }
        ("tool_use", _, _, Some(input)) if json.kind() == JsonKind::Object => {
            let (id, name) = (member("id"), member("name"));
            let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
            let input = quote(&input);
            (
                format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{{}}}}"#),
                vec![format!(
                    r#"{{"type":"input_json_delta","partial_json":{input}}}"#
                )],
            )
        }
        _ => (block.to_owned(), Vec::new()),
    }
}
