//! Writes a reply as Anthropic does.

use super::{ReplyData, named_event, split_string, stop_name, text, text_member, with_members};
use infold_wire::{Json, JsonKind, StopReason, TokenUsage, quote};

/// The names of stop reasons, as [`stop_name`] takes them.
const STOPS: [&str; 4] = ["end_turn", "max_tokens", "tool_use", "refusal"];

pub(super) fn write_body(data: &ReplyData<'_>) -> String {
    let content = data.message().get("content");
    let content = match content {
        Some(list) if list.kind() == JsonKind::Array => text(list).to_owned(),
        Some(said) if said.kind() == JsonKind::String => {
            format!(r#"[{{"type":"text","text":{}}}]"#, text(said))
        }
        _ => "[]".to_owned(),
    };
    message(
        data,
        &content,
        &stop(data.stop),
        data.usage.unwrap_or_default(),
    )
}

pub(super) fn write_stream(data: &ReplyData<'_>, size: usize) -> Vec<String> {
    let usage = data.usage.unwrap_or_default();
    // At its start, a stream reports one token of output.
    let begun = TokenUsage {
        output: usage.output.min(1),
        reasoning: 0,
        ..usage
    };
    let open = message(
        data,
        "[]",
        r#""stop_reason":null,"stop_sequence":null"#,
        begun,
    );
    let mut events = vec![
        event("message_start", &format!(r#""message":{open}"#)),
        event("ping", ""),
    ];
    let whole = write_body(data);
    let content = Json::parse(whole.as_bytes())
        .ok()
        .and_then(|it| it.get("content"));
    for (index, block) in content.into_iter().flat_map(Json::elements).enumerate() {
        let (start, deltas) = split_block(block, size);
        let start = format!(r#""index":{index},"content_block":{start}"#);
        events.push(event("content_block_start", &start));
        for delta in deltas {
            let delta = format!(r#""index":{index},"delta":{delta}"#);
            events.push(event("content_block_delta", &delta));
        }
        events.push(event("content_block_stop", &format!(r#""index":{index}"#)));
    }
    let end = format!(
        r#""delta":{{{}}},"usage":{}"#,
        stop(data.stop),
        usage_json(usage)
    );
    events.push(event("message_delta", &end));
    events.push(event("message_stop", ""));
    events
}

/// Returns a block as it starts, and the deltas that follow.
fn split_block(block: Json<'_>, size: usize) -> (String, Vec<String>) {
    let kind = block.get("type").and_then(Json::text).unwrap_or_default();
    let deltas = |name: &str, kind: &str, key: &str| -> Vec<String> {
        let said = text_member(block, name).unwrap_or("\"\"");
        let piece = |it| format!(r#"{{"type":"{kind}","{key}":{it}}}"#);
        split_string(said, size).into_iter().map(piece).collect()
    };
    match &*kind {
        "text" => {
            let mut added = deltas("text", "text_delta", "text");
            let cited = block
                .get("citations")
                .filter(|it| it.kind() == JsonKind::Array);
            let Some(cited) = cited else {
                return (with_members(block, &[("text", "\"\"")]), added);
            };
            let citation = |it| format!(r#"{{"type":"citations_delta","citation":{}}}"#, text(it));
            added.extend(cited.elements().map(citation));
            (
                with_members(block, &[("text", "\"\""), ("citations", "[]")]),
                added,
            )
        }
        "thinking" => {
            let mut added = deltas("thinking", "thinking_delta", "thinking");
            // A signature is not split.
            added.extend(text_member(block, "signature").map(|signature| {
                format!(r#"{{"type":"signature_delta","signature":{signature}}}"#)
            }));
            let empty = [("thinking", "\"\""), ("signature", "\"\"")];
            (with_members(block, &empty), added)
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let input = block.get("input").map_or("{}", text);
            let first = "\"\"".to_owned();
            let parts = match input.trim() {
                "{}" => Vec::new(),
                _ => split_string(&quote(input), size),
            };
            let piece = |it| format!(r#"{{"type":"input_json_delta","partial_json":{it}}}"#);
            let added = std::iter::once(first).chain(parts).map(piece).collect();
            (with_members(block, &[("input", "{}")]), added)
        }
        _ => (text(block).to_owned(), Vec::new()),
    }
}

pub(super) fn event(kind: &str, rest: &str) -> String {
    let comma = if rest.is_empty() { "" } else { "," };
    named_event(kind, &format!(r#"{{"type":"{kind}"{comma}{rest}}}"#))
}

pub(super) fn message(
    data: &ReplyData<'_>,
    content: &str,
    stop: &str,
    usage: TokenUsage,
) -> String {
    let ReplyData { id, model, .. } = data;
    let usage = usage_json(usage);
    format!(
        r#"{{"id":"msg_{id}","type":"message","role":"assistant","model":{model},"content":{content},{stop},"usage":{usage}}}"#
    )
}

pub(super) fn stop(stop: &StopReason) -> String {
    let word = stop_name(stop, STOPS);
    format!(r#""stop_reason":{word},"stop_sequence":null"#)
}

pub(super) fn usage_json(usage: TokenUsage) -> String {
    let thinking = match usage.reasoning {
        0 => String::new(),
        count => format!(r#","output_tokens_details":{{"thinking_tokens":{count}}}"#),
    };
    format!(
        r#"{{"input_tokens":{},"cache_creation_input_tokens":{},"cache_read_input_tokens":{},"output_tokens":{}{thinking}}}"#,
        usage.input, usage.cache_write, usage.cache_read, usage.output
    )
}
