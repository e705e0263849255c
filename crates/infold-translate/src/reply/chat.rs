//! Writes a reply as a chat completion.

use super::{
    ReplyData, event, prompt_details, split_string, stop_name, text, text_member, with_members,
};
use infold_wire::neutral::push_all;
use infold_wire::{Json, JsonKind, TokenUsage};

/// The names of stop reasons, as [`stop_name`] takes them.
pub(super) const STOPS: [&str; 4] = ["stop", "length", "tool_calls", "content_filter"];

pub(super) fn write_body(data: &ReplyData<'_>) -> String {
    let ReplyData { id, model, .. } = data;
    let message = data.message();
    let message = match message.get("role") {
        Some(_) => text(message).to_owned(),
        None => with_members(message, &[("role", "\"assistant\""), ("content", "null")]),
    };
    let stop = stop_name(data.stop, STOPS);
    let usage = data
        .usage
        .map(|usage| format!(",\"usage\":{}", usage_json(usage)));
    format!(
        r#"{{"id":"chatcmpl-{id}","object":"chat.completion","created":0,"model":{model},"choices":[{{"index":0,"message":{message},"logprobs":null,"finish_reason":{stop}}}]{}}}"#,
        usage.unwrap_or_default()
    )
}

pub(super) fn write_stream(data: &ReplyData<'_>, size: usize) -> Vec<String> {
    let message = data.message();
    let mut events = Vec::new();
    let mut delta = |delta: &str| events.push(chunk(data, delta, "null"));
    let texts = message.get("content").filter(|content| !content.is_null());
    let opening = texts.map_or("null", |_| "\"\"");
    delta(&format!(r#"{{"role":"assistant","content":{opening}}}"#));
    // Reasoning comes first, wherever it is in the message.
    let is_reasoning = |name: &Json<'_>| {
        matches!(
            text(*name),
            REASONING_CONTENT | REASONING | REASONING_DETAILS
        )
    };
    let first = message.members().filter(|(name, _)| is_reasoning(name));
    let rest = message.members().filter(|(name, _)| !is_reasoning(name));
    for (name, value) in first.chain(rest) {
        let name = text(name);
        match value.kind() {
            _ if matches!(name, "\"role\"" | "\"tool_calls\"") || value.is_null() => {}
            JsonKind::String
                if matches!(
                    name,
                    REASONING_CONTENT | REASONING | "\"content\"" | "\"refusal\""
                ) =>
            {
                for piece in split_string(text(value), size) {
                    delta(&format!("{{{name}:{piece}}}"));
                }
            }
            // Other members are not split.
            _ => delta(&format!("{{{name}:{}}}", text(value))),
        }
    }
    let calls = message
        .get("tool_calls")
        .into_iter()
        .flat_map(Json::elements);
    for (index, call) in calls.enumerate() {
        for piece in call_deltas(index, call, size) {
            delta(&format!(r#"{{"tool_calls":[{piece}]}}"#));
        }
    }
    events.push(chunk(data, "{}", &stop_name(data.stop, STOPS)));
    if let Some(usage) = data.usage {
        let choices = format!(r#","choices":[],"usage":{}"#, usage_json(usage));
        events.push(event(&format!("{{{}{choices}}}", head(data))));
    }
    events.push(event("[DONE]"));
    events
}

/// The members that hold reasoning: DeepSeek's, and OpenRouter's two.
const REASONING_CONTENT: &str = "\"reasoning_content\"";
const REASONING: &str = "\"reasoning\"";
const REASONING_DETAILS: &str = "\"reasoning_details\"";

/// Returns the deltas of a call: first the call with empty arguments, then the arguments in pieces.
pub(super) fn call_deltas(index: usize, call: Json<'_>, size: usize) -> Vec<String> {
    let inner = call.get("function");
    let given = inner.and_then(|inner| text_member(inner, "arguments"));
    let Some((inner, given)) = inner.zip(given) else {
        return vec![with_members(call, &[("index", &index.to_string())])];
    };
    let inner = with_members(inner, &[("arguments", "\"\"")]);
    let mut start = format!(r#"{{"index":{index}"#);
    for (name, value) in call.members() {
        let value = if name.is("function") {
            &inner
        } else {
            text(value)
        };
        push_all(&mut start, &[",", text(name), ":", value]);
    }
    start.push('}');
    let piece = |it| format!(r#"{{"index":{index},"function":{{"arguments":{it}}}}}"#);
    let rest = split_string(given, size).into_iter().map(piece);
    std::iter::once(start).chain(rest).collect()
}

/// Returns the members that every chunk begins with.
pub(super) fn head(data: &ReplyData<'_>) -> String {
    let ReplyData { id, model, .. } = data;
    format!(r#""id":"chatcmpl-{id}","object":"chat.completion.chunk","created":0,"model":{model}"#)
}

pub(super) fn choice(delta: &str, stop: &str) -> String {
    format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{stop}}}"#)
}

pub(super) fn chunk(data: &ReplyData<'_>, delta: &str, stop: &str) -> String {
    let usage = data.usage.map_or("", |_| ",\"usage\":null");
    let choice = choice(delta, stop);
    event(&format!(
        r#"{{{},"choices":[{choice}]{usage}}}"#,
        head(data)
    ))
}

pub(super) fn usage_json(usage: TokenUsage) -> String {
    let prompt = prompt_details(usage);
    format!(
        r#"{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{prompt},"completion_tokens_details":{{"reasoning_tokens":{}}}}}"#,
        usage.sent(),
        usage.output,
        usage.total(),
        usage.reasoning
    )
}
