use super::{Made, named, pieces, said, stop_word, text, with};
use crate::{Json, Kind, Reported, Stop, quote};

const STOPS: [&str; 4] = ["end_turn", "max_tokens", "tool_use", "refusal"];

pub(super) fn whole(made: &Made<'_>) -> String {
    let content = made.message().get("content");
    let content = match content {
        Some(list) if list.kind() == Kind::Array => text(list).to_owned(),
        Some(said) if said.kind() == Kind::String => {
            format!(r#"[{{"type":"text","text":{}}}]"#, text(said))
        }
        _ => "[]".to_owned(),
    };
    message(
        made,
        &content,
        &stop(made.stop),
        made.usage.unwrap_or_default(),
    )
}

pub(super) fn stream(made: &Made<'_>, size: usize) -> Vec<String> {
    let usage = made.usage.unwrap_or_default();
    // The reply has begun: one token is there.
    let begun = Reported {
        output: usage.output.min(1),
        reasoning: 0,
        ..usage
    };
    let open = message(
        made,
        "[]",
        r#""stop_reason":null,"stop_sequence":null"#,
        begun,
    );
    let mut events = vec![
        event("message_start", &format!(r#""message":{open}"#)),
        event("ping", ""),
    ];
    let whole = whole(made);
    let content = Json::parse(whole.as_bytes())
        .ok()
        .and_then(|it| it.get("content"));
    for (index, block) in content.into_iter().flat_map(Json::elements).enumerate() {
        let (start, deltas) = taken_apart(block, size);
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
        stop(made.stop),
        counts(usage)
    );
    events.push(event("message_delta", &end));
    events.push(event("message_stop", ""));
    events
}

/// A block as it starts, and what is then added to it.
fn taken_apart(block: Json<'_>, size: usize) -> (String, Vec<String>) {
    let kind = block.get("type").and_then(Json::text).unwrap_or_default();
    let deltas = |name: &str, kind: &str, key: &str| -> Vec<String> {
        let said = said(block, name).unwrap_or("\"\"");
        let piece = |it| format!(r#"{{"type":"{kind}","{key}":{it}}}"#);
        pieces(said, size).into_iter().map(piece).collect()
    };
    match &*kind {
        "text" => {
            let mut added = deltas("text", "text_delta", "text");
            let cited = block.get("citations").filter(|it| it.kind() == Kind::Array);
            let Some(cited) = cited else {
                return (with(block, &[("text", "\"\"")]), added);
            };
            let citation = |it| format!(r#"{{"type":"citations_delta","citation":{}}}"#, text(it));
            added.extend(cited.elements().map(citation));
            (with(block, &[("text", "\"\""), ("citations", "[]")]), added)
        }
        "thinking" => {
            let mut added = deltas("thinking", "thinking_delta", "thinking");
            // A signature comes whole.
            added.extend(said(block, "signature").map(|signature| {
                format!(r#"{{"type":"signature_delta","signature":{signature}}}"#)
            }));
            let empty = [("thinking", "\"\""), ("signature", "\"\"")];
            (with(block, &empty), added)
        }
        "tool_use" | "server_tool_use" | "mcp_tool_use" => {
            let input = block.get("input").map_or("{}", text);
            let first = "\"\"".to_owned();
            let parts = match input.trim() {
                "{}" => Vec::new(),
                _ => pieces(&quote(input), size),
            };
            let piece = |it| format!(r#"{{"type":"input_json_delta","partial_json":{it}}}"#);
            let added = std::iter::once(first).chain(parts).map(piece).collect();
            (with(block, &[("input", "{}")]), added)
        }
        _ => (text(block).to_owned(), Vec::new()),
    }
}

pub(super) fn event(kind: &str, rest: &str) -> String {
    let comma = if rest.is_empty() { "" } else { "," };
    named(kind, &format!(r#"{{"type":"{kind}"{comma}{rest}}}"#))
}

pub(super) fn message(made: &Made<'_>, content: &str, stop: &str, usage: Reported) -> String {
    let Made { id, model, .. } = made;
    let usage = counts(usage);
    format!(
        r#"{{"id":"msg_{id}","type":"message","role":"assistant","model":{model},"content":{content},{stop},"usage":{usage}}}"#
    )
}

pub(super) fn stop(stop: &Stop) -> String {
    let word = stop_word(stop, STOPS);
    format!(r#""stop_reason":{word},"stop_sequence":null"#)
}

pub(super) fn counts(usage: Reported) -> String {
    let thinking = match usage.reasoning {
        0 => String::new(),
        count => format!(r#","output_tokens_details":{{"thinking_tokens":{count}}}"#),
    };
    format!(
        r#"{{"input_tokens":{},"cache_creation_input_tokens":{},"cache_read_input_tokens":{},"output_tokens":{}{thinking}}}"#,
        usage.input, usage.cache_write, usage.cache_read, usage.output
    )
}
