//! Writes a reply as Ollama does.

use super::{ReplyData, split_string, stop_name, text, text_member};
use infold_wire::{Json, TokenUsage};

/// The names of stop reasons, as [`stop_name`] takes them. There is none for calls: only the message shows them.
const STOPS: [&str; 4] = ["stop", "length", "stop", "content_filter"];

pub(super) fn write_body(data: &ReplyData<'_>) -> String {
    let message = data.message();
    let message = match message.get("role") {
        Some(_) => text(message),
        None => EMPTY_MESSAGE,
    };
    line(data, message, &done_members(data))
}

pub(super) fn write_stream(data: &ReplyData<'_>, size: usize) -> Vec<String> {
    let message = data.message();
    let mut lines = Vec::new();
    let mut add = |message: &str| lines.push(line(data, message, r#""done":false"#) + "\n");
    for piece in split_string(text_member(message, "thinking").unwrap_or("\"\""), size) {
        add(&format!(
            r#"{{"role":"assistant","content":"","thinking":{piece}}}"#
        ));
    }
    for piece in split_string(text_member(message, "content").unwrap_or("\"\""), size) {
        add(&format!(r#"{{"role":"assistant","content":{piece}}}"#));
    }
    // Calls are not split.
    let calls = message
        .get("tool_calls")
        .into_iter()
        .flat_map(Json::elements);
    for call in calls {
        let call = text(call);
        add(&format!(
            r#"{{"role":"assistant","content":"","tool_calls":[{call}]}}"#
        ));
    }
    lines.push(line(data, EMPTY_MESSAGE, &done_members(data)) + "\n");
    lines
}

pub(super) const EMPTY_MESSAGE: &str = r#"{"role":"assistant","content":""}"#;

pub(super) fn line(data: &ReplyData<'_>, message: &str, rest: &str) -> String {
    let model = &data.model;
    format!(r#"{{"model":{model},"created_at":"1970-01-01T00:00:00Z","message":{message},{rest}}}"#)
}

pub(super) fn done_members(data: &ReplyData<'_>) -> String {
    let stop = stop_name(data.stop, STOPS);
    let usage_json = data.usage.map_or_else(String::new, usage_json);
    format!(r#""done":true,"done_reason":{stop}{usage_json}"#)
}

/// Writes usage. The durations are invented, because a reply has none: a million nanoseconds for each token.
fn usage_json(usage: TokenUsage) -> String {
    let (sent, output) = (usage.sent(), usage.output);
    let (reading, writing) = (sent * 1_000_000, output * 1_000_000);
    let total = reading + writing;
    format!(
        r#","total_duration":{total},"load_duration":0,"prompt_eval_count":{sent},"prompt_eval_duration":{reading},"eval_count":{output},"eval_duration":{writing}"#
    )
}
