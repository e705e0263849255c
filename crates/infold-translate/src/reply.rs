//! Writes replies as a provider would, in the form that the official clients parse.
//!
//! The result depends on the reply alone: ids are hashes of the contents, and all times are zero.

mod chat;
mod responses;
mod anthropic;
mod gemini;
mod ollama;
mod relay;

pub use relay::ReplyRelay;

use std::hash::{DefaultHasher, Hasher};

use infold_wire::reply::with_members as change_members;
use infold_wire::{Json, JsonKind, Reply, StopReason, TokenUsage, Wire, quote};

/// Returns the body of a reply that is not streamed.
///
/// On Responses all messages are output items; elsewhere the first is the reply.
pub fn write_reply(wire: Wire, reply: &Reply) -> Vec<u8> {
    let data = ReplyData::of(reply);
    let body = match wire {
        Wire::Chat => chat::write_body(&data),
        Wire::Responses => responses::write_body(&data),
        Wire::Anthropic => anthropic::write_body(&data),
        Wire::Gemini => gemini::write_body(&data),
        Wire::Ollama => ollama::write_body(&data),
    };
    body.into_bytes()
}

/// Returns the events of a streamed reply, each ready to be sent.
///
/// Texts and arguments are split into about `size` characters each. On chat, usage is sent
/// if the reply has it: a server omits it unless it was asked for.
pub fn stream_reply(wire: Wire, reply: &Reply, size: usize) -> Vec<Vec<u8>> {
    let data = ReplyData::of(reply);
    let events = match wire {
        Wire::Chat => chat::write_stream(&data, size),
        Wire::Responses => responses::write_stream(&data, size),
        Wire::Anthropic => anthropic::write_stream(&data, size),
        Wire::Gemini => gemini::write_stream(&data, size),
        Wire::Ollama => ollama::write_stream(&data, size),
    };
    events.into_iter().map(String::into_bytes).collect()
}

/// The data of a reply that every wire writes.
struct ReplyData<'a> {
    messages: Vec<Json<'a>>,
    stop: &'a StopReason,
    usage: Option<TokenUsage>,
    /// The model's name as a JSON string.
    model: String,
    /// The unique part of the ids.
    id: String,
}

impl<'a> ReplyData<'a> {
    fn of(reply: &'a Reply) -> ReplyData<'a> {
        let mut hash = DefaultHasher::new();
        reply.messages.iter().for_each(|bytes| hash.write(bytes));
        let parsed = reply.messages.iter().map(|bytes| Json::parse(bytes).ok());
        ReplyData {
            messages: parsed.flatten().collect(),
            stop: &reply.stop,
            usage: reply.usage,
            model: quote(reply.model.as_deref().unwrap_or("model")),
            id: match &reply.id {
                Some(id) => id.strip_prefix("resp_").unwrap_or(id).to_owned(),
                None => format!("{:016x}", hash.finish()),
            },
        }
    }

    /// Returns the message, on wires that have one.
    fn message(&self) -> Json<'a> {
        let empty = || Json::checked(b"{}");
        self.messages.first().copied().unwrap_or_else(empty)
    }
}

/// Returns the name of a stop reason on a wire, as a JSON string. The wire has names for the first four reasons; any
/// other reason keeps its provider's word.
fn stop_name(stop: &StopReason, [end, length, calls, declined]: [&str; 4]) -> String {
    quote(match stop {
        StopReason::End => end,
        StopReason::Length => length,
        StopReason::Calls => calls,
        StopReason::Declined => declined,
        StopReason::Other(word) => word,
    })
}

/// Writes the details of a prompt's usage, as OpenAI's wires have them.
fn prompt_details(usage: TokenUsage) -> String {
    // Most providers do not report the tokens that they write into a cache.
    let written = match usage.cache_write {
        0 => String::new(),
        written => format!(r#","cache_write_tokens":{written}"#),
    };
    format!(r#"{{"cached_tokens":{}{written}}}"#, usage.cache_read)
}

/// Writes a server-sent event.
fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// Writes a server-sent event with its name.
fn named_event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Returns an object with these members replaced, or added if it does not have them.
fn with_members(object: Json<'_>, changes: &[(&str, &str)]) -> String {
    let changes: Vec<_> = changes
        .iter()
        .map(|(name, value)| (*name, Some((*value).to_owned())))
        .collect();
    change_members(object, &changes)
}

/// Returns an object with those of these members added that it does not have.
fn with_defaults(object: Json<'_>, defaults: &[(&str, &str)]) -> String {
    let lacks = |(key, _): &&(&str, &str)| object.get(key).is_none();
    let missing: Vec<_> = defaults.iter().filter(lacks).copied().collect();
    with_members(object, &missing)
}

/// Returns the bytes of a value as text: JSON is UTF-8.
fn text(json: Json<'_>) -> &str {
    std::str::from_utf8(json.bytes()).unwrap_or("null")
}

/// Returns a member as JSON, quotes included, if it is a string that is not empty.
fn text_member<'a>(object: Json<'a>, name: &str) -> Option<&'a str> {
    let value = object.get(name)?;
    let is_text = value.kind() == JsonKind::String && value.bytes() != b"\"\"";
    is_text.then(|| text(value))
}

/// Splits a JSON string into JSON strings of about `size` characters, and never inside a character or an escape.
fn split_string(string: &str, size: usize) -> Vec<String> {
    let mut rest = string.get(1..string.len() - 1).unwrap_or_default();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece_end(rest, size.max(1)));
        pieces.push(format!("\"{piece}\""));
        rest = after;
    }
    pieces
}

/// Returns the end of the first piece of `rest`, a JSON string without its quotes.
fn piece_end(rest: &str, size: usize) -> usize {
    let mut at = 0;
    for _ in 0..size {
        at += match rest[at..].chars().next() {
            None => break,
            Some('\\') => escape_len(&rest[at..]),
            Some(char) => char.len_utf8(),
        };
    }
    at
}

/// Returns the length of an escape; the two halves of a surrogate pair count as one.
fn escape_len(rest: &str) -> usize {
    let is_half = |rest: &str, from: u8, to: u8| {
        let unit = rest.strip_prefix("\\u").and_then(|hex| hex.get(..2));
        let high = unit.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        high.is_some_and(|high| (from..=to).contains(&high))
    };
    match rest.as_bytes().get(1) {
        Some(b'u') if is_half(rest, 0xd8, 0xdb) && is_half(&rest[6..], 0xdc, 0xdf) => 12,
        Some(b'u') => 6,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_to_the_string_and_never_cut_a_character() {
        let string = r#""a\n\ud83d\ude80é\ud83d\"\\z🚀""#;
        for size in 1..12 {
            let pieces = split_string(string, size);
            let joined: String = pieces.iter().map(|it| &it[1..it.len() - 1]).collect();
            assert_eq!(format!("\"{joined}\""), string);
            for piece in &pieces {
                assert!(Json::parse(piece.as_bytes()).is_ok(), "{piece}");
            }
        }
        assert_eq!(split_string(string, 1)[2], r#""\ud83d\ude80""#);
        assert!(split_string("\"\"", 3).is_empty());
    }

    #[test]
    fn members_are_changed_in_place_and_added_at_the_end() {
        let object = Json::parse(br#"{"a": 1, "b":[2]}"#).unwrap();
        assert_eq!(
            with_members(object, &[("a", "9"), ("c", "3")]),
            r#"{"a":9,"b":[2],"c":3}"#
        );
        assert_eq!(
            with_defaults(object, &[("a", "9"), ("c", "3")]),
            r#"{"a":1,"b":[2],"c":3}"#
        );
    }
}
