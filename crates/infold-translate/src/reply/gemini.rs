//! Writes a reply as Gemini does.

use super::{ReplyData, event, split_string, stop_name, text, text_member, with_members};
use infold_wire::{Json, TokenUsage};

/// The names of stop reasons, as [`stop_name`] takes them. There is none for calls: only the parts show them.
pub(super) const STOPS: [&str; 4] = ["STOP", "MAX_TOKENS", "STOP", "SAFETY"];

pub(super) fn write_body(data: &ReplyData<'_>) -> String {
    let parts = data.message().get("parts").map_or("[]", text);
    let stop = stop_name(data.stop, STOPS);
    response(data, parts, Some(&stop), data.usage)
}

pub(super) fn write_stream(data: &ReplyData<'_>, size: usize) -> Vec<String> {
    let parts = data.message().get("parts");
    let parts = parts.into_iter().flat_map(Json::elements);
    let mut parts: Vec<_> = parts.flat_map(|part| split_part(part, size)).collect();
    let last = parts.pop();
    // All chunks but the last report the tokens of the prompt alone.
    let prompt_usage = data.usage.map(|usage| TokenUsage {
        output: 0,
        reasoning: 0,
        ..usage
    });
    let early = parts
        .iter()
        .map(|part| response(data, &format!("[{part}]"), None, prompt_usage));
    let mut events: Vec<_> = early.map(|data| event(&data)).collect();
    let last = last.map_or("[]".to_owned(), |part| format!("[{part}]"));
    let stop = stop_name(data.stop, STOPS);
    events.push(event(&response(data, &last, Some(&stop), data.usage)));
    events
}

/// Splits the text of a part. Calls and data are not split. Other members, such as a signature, are in the last piece.
fn split_part(part: Json<'_>, size: usize) -> Vec<String> {
    let Some(said) = text_member(part, "text") else {
        return vec![text(part).to_owned()];
    };
    let mut pieces = split_string(said, size);
    let last = pieces.pop().unwrap_or_default();
    let thought = part.get("thought").is_some_and(Json::is_true);
    let thought = if thought { r#","thought":true"# } else { "" };
    let early = pieces
        .iter()
        .map(|piece| format!(r#"{{"text":{piece}{thought}}}"#));
    let mut parts: Vec<_> = early.collect();
    parts.push(with_members(part, &[("text", &last)]));
    parts
}

pub(super) fn response(
    data: &ReplyData<'_>,
    parts: &str,
    stop: Option<&str>,
    usage: Option<TokenUsage>,
) -> String {
    let ReplyData { id, model, .. } = data;
    let stop = stop.map_or_else(String::new, |stop| format!(r#","finishReason":{stop}"#));
    let usage = usage.map_or_else(String::new, |usage| {
        format!(",\"usageMetadata\":{}", usage_json(usage))
    });
    format!(
        r#"{{"candidates":[{{"content":{{"parts":{parts},"role":"model"}}{stop},"index":0}}]{usage},"modelVersion":{model},"responseId":"{id}"}}"#
    )
}

fn usage_json(usage: TokenUsage) -> String {
    let mut out = format!(r#"{{"promptTokenCount":{}"#, usage.sent());
    let mut add = |name: &str, count: u64| {
        if count > 0 {
            out.push_str(&format!(",\"{name}\":{count}"));
        }
    };
    add("cachedContentTokenCount", usage.cache_read);
    add(
        "candidatesTokenCount",
        usage.output.saturating_sub(usage.reasoning),
    );
    add("thoughtsTokenCount", usage.reasoning);
    add("totalTokenCount", usage.total());
    out + "}"
}
