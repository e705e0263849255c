use super::{Made, event, pieces, said, stop_word, text, with};
use crate::said::put;
use crate::{Json, Kind, Reported};

pub(super) const STOPS: [&str; 4] = ["stop", "length", "tool_calls", "content_filter"];

pub(super) fn whole(made: &Made<'_>) -> String {
    let Made { id, model, .. } = made;
    let message = made.message();
    let message = match message.get("role") {
        Some(_) => text(message).to_owned(),
        None => with(message, &[("role", "\"assistant\""), ("content", "null")]),
    };
    let stop = stop_word(made.stop, STOPS);
    let usage = made
        .usage
        .map(|usage| format!(",\"usage\":{}", counts(usage)));
    format!(
        r#"{{"id":"chatcmpl-{id}","object":"chat.completion","created":0,"model":{model},"choices":[{{"index":0,"message":{message},"logprobs":null,"finish_reason":{stop}}}]{}}}"#,
        usage.unwrap_or_default()
    )
}

pub(super) fn stream(made: &Made<'_>, size: usize) -> Vec<String> {
    let message = made.message();
    let mut events = Vec::new();
    let mut delta = |delta: &str| events.push(chunk(made, delta, "null"));
    let texts = message.get("content").filter(|content| !content.is_null());
    let opening = texts.map_or("null", |_| "\"\"");
    delta(&format!(r#"{{"role":"assistant","content":{opening}}}"#));
    // Who thinks does so first, wherever the message has it.
    let thought = |name: &Json<'_>| matches!(text(*name), REASONED | REASONING | DETAILS);
    let first = message.members().filter(|(name, _)| thought(name));
    let rest = message.members().filter(|(name, _)| !thought(name));
    for (name, value) in first.chain(rest) {
        let name = text(name);
        match value.kind() {
            _ if matches!(name, "\"role\"" | "\"tool_calls\"") || value.is_null() => {}
            Kind::String
                if matches!(name, REASONED | REASONING | "\"content\"" | "\"refusal\"") =>
            {
                for piece in pieces(text(value), size) {
                    delta(&format!("{{{name}:{piece}}}"));
                }
            }
            // Nothing says how others come in pieces.
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
    events.push(chunk(made, "{}", &stop_word(made.stop, STOPS)));
    if let Some(usage) = made.usage {
        let choices = format!(r#","choices":[],"usage":{}"#, counts(usage));
        events.push(event(&format!("{{{}{choices}}}", head(made))));
    }
    events.push(event("[DONE]"));
    events
}

/// Where reasoning is, by DeepSeek's name and by OpenRouter's.
const REASONED: &str = "\"reasoning_content\"";
const REASONING: &str = "\"reasoning\"";
const DETAILS: &str = "\"reasoning_details\"";

/// A call without its arguments, then these piece by piece.
pub(super) fn call_deltas(index: usize, call: Json<'_>, size: usize) -> Vec<String> {
    let inner = call.get("function");
    let given = inner.and_then(|inner| said(inner, "arguments"));
    let Some((inner, given)) = inner.zip(given) else {
        return vec![with(call, &[("index", &index.to_string())])];
    };
    let inner = with(inner, &[("arguments", "\"\"")]);
    let mut start = format!(r#"{{"index":{index}"#);
    for (name, value) in call.members() {
        let value = if name.is("function") {
            &inner
        } else {
            text(value)
        };
        put(&mut start, &[",", text(name), ":", value]);
    }
    start.push('}');
    let piece = |it| format!(r#"{{"index":{index},"function":{{"arguments":{it}}}}}"#);
    let rest = pieces(given, size).into_iter().map(piece);
    std::iter::once(start).chain(rest).collect()
}

pub(super) fn head(made: &Made<'_>) -> String {
    let Made { id, model, .. } = made;
    format!(r#""id":"chatcmpl-{id}","object":"chat.completion.chunk","created":0,"model":{model}"#)
}

pub(super) fn chunk(made: &Made<'_>, delta: &str, stop: &str) -> String {
    let usage = made.usage.map_or("", |_| ",\"usage\":null");
    let choice = format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{stop}}}"#);
    event(&format!(
        r#"{{{},"choices":[{choice}]{usage}}}"#,
        head(made)
    ))
}

pub(super) fn counts(usage: Reported) -> String {
    // Most do not tell what they keep.
    let written = match usage.cache_write {
        0 => String::new(),
        written => format!(r#","cache_write_tokens":{written}"#),
    };
    format!(
        r#"{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}{written}}},"completion_tokens_details":{{"reasoning_tokens":{}}}}}"#,
        usage.sent(),
        usage.output,
        usage.total(),
        usage.cache_read,
        usage.reasoning
    )
}
