//! Replies as a provider would send them, in the shape that the official clients parse.
//!
//! Pure, so there is no clock: ids come from what is said, and all was made at time zero.

mod chat;
mod responses;
mod anthropic;
mod gemini;
mod ollama;
pub mod relay;

use std::hash::{DefaultHasher, Hasher};

use super::{Reply, Reported, Stop};
use crate::said::put;
use crate::{Json, Kind, Wire, quote};

/// Returns the body of a reply that is not streamed.
///
/// On Responses all messages are output items; elsewhere the first is the reply.
pub fn whole(wire: Wire, reply: &Reply) -> Vec<u8> {
    let made = Made::of(reply);
    let body = match wire {
        Wire::Chat => chat::whole(&made),
        Wire::Responses => responses::whole(&made),
        Wire::Anthropic => anthropic::whole(&made),
        Wire::Gemini => gemini::whole(&made),
        Wire::Ollama => ollama::whole(&made),
    };
    body.into_bytes()
}

/// Returns the events of a streamed reply, each ready to be sent.
///
/// Texts and arguments come in pieces of about `size` characters. On chat, usage is sent
/// if the reply has it: a server leaves it out when it was not asked for.
pub fn stream(wire: Wire, reply: &Reply, size: usize) -> Vec<Vec<u8>> {
    let made = Made::of(reply);
    let events = match wire {
        Wire::Chat => chat::stream(&made, size),
        Wire::Responses => responses::stream(&made, size),
        Wire::Anthropic => anthropic::stream(&made, size),
        Wire::Gemini => gemini::stream(&made, size),
        Wire::Ollama => ollama::stream(&made, size),
    };
    events.into_iter().map(String::into_bytes).collect()
}

/// A reply, and what every wire says about it.
struct Made<'a> {
    messages: Vec<Json<'a>>,
    stop: &'a Stop,
    usage: Option<Reported>,
    /// As a JSON string.
    model: String,
    /// What the ids are made of.
    id: String,
}

impl<'a> Made<'a> {
    fn of(reply: &'a Reply) -> Made<'a> {
        let mut hash = DefaultHasher::new();
        reply.messages.iter().for_each(|bytes| hash.write(bytes));
        let parsed = reply.messages.iter().map(|bytes| Json::parse(bytes).ok());
        Made {
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

    /// The one message of wires that have one.
    fn message(&self) -> Json<'a> {
        let empty = || Json::checked(b"{}");
        self.messages.first().copied().unwrap_or_else(empty)
    }
}

/// What stands for a stop, or the provider's own word for it, as a JSON string.
fn stop_word(stop: &Stop, [end, length, calls, declined]: [&str; 4]) -> String {
    quote(match stop {
        Stop::End => end,
        Stop::Length => length,
        Stop::Calls => calls,
        Stop::Declined => declined,
        Stop::Other(word) => word,
    })
}

/// An event of a stream of server-sent events.
fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// The same with its name.
fn named(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// An object with these members changed or, where it has none of that name, added.
fn with(object: Json<'_>, changes: &[(&str, &str)]) -> String {
    let mut out = String::from("{");
    let mut member = |name: &str, value: &str| {
        let comma = if out.len() > 1 { "," } else { "" };
        put(&mut out, &[comma, name, ":", value]);
    };
    let changed = |name: Json<'_>| changes.iter().find(|(key, _)| name.is(key));
    for (name, value) in object.members() {
        let value = changed(name).map_or_else(|| text(value), |(_, new)| new);
        member(text(name), value);
    }
    for (key, value) in changes {
        if object.get(key).is_none() {
            member(&quote(key), value);
        }
    }
    out.push('}');
    out
}

/// An object with these members only where it has none of that name.
fn or_else(object: Json<'_>, defaults: &[(&str, &str)]) -> String {
    let lacks = |(key, _): &&(&str, &str)| object.get(key).is_none();
    let missing: Vec<_> = defaults.iter().filter(lacks).copied().collect();
    with(object, &missing)
}

/// The text of a value: JSON is UTF-8.
fn text(json: Json<'_>) -> &str {
    std::str::from_utf8(json.bytes()).unwrap_or("null")
}

/// A member that is a string with something in it.
fn said<'a>(object: Json<'a>, name: &str) -> Option<&'a str> {
    let value = object.get(name)?;
    let said = value.kind() == Kind::String && value.bytes() != b"\"\"";
    said.then(|| text(value))
}

/// A JSON string as several, each of about `size` characters and none cut inside a character.
fn pieces(string: &str, size: usize) -> Vec<String> {
    let mut rest = string.get(1..string.len() - 1).unwrap_or_default();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece_end(rest, size.max(1)));
        pieces.push(format!("\"{piece}\""));
        rest = after;
    }
    pieces
}

/// Where the piece that starts the inside of a string ends.
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

/// How long an escape is; the two halves of a pair belong together.
fn escape_len(rest: &str) -> usize {
    let half = |rest: &str, from: u8, to: u8| {
        let unit = rest.strip_prefix("\\u").and_then(|hex| hex.get(..2));
        let high = unit.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        high.is_some_and(|high| (from..=to).contains(&high))
    };
    match rest.as_bytes().get(1) {
        Some(b'u') if half(rest, 0xd8, 0xdb) && half(&rest[6..], 0xdc, 0xdf) => 12,
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
            let pieces = pieces(string, size);
            let joined: String = pieces.iter().map(|it| &it[1..it.len() - 1]).collect();
            assert_eq!(format!("\"{joined}\""), string);
            for piece in &pieces {
                assert!(Json::parse(piece.as_bytes()).is_ok(), "{piece}");
            }
        }
        assert_eq!(pieces(string, 1)[2], r#""\ud83d\ude80""#);
        assert!(pieces("\"\"", 3).is_empty());
    }

    #[test]
    fn members_are_changed_in_place_and_added_at_the_end() {
        let object = Json::parse(br#"{"a": 1, "b":[2]}"#).unwrap();
        assert_eq!(
            with(object, &[("a", "9"), ("c", "3")]),
            r#"{"a":9,"b":[2],"c":3}"#
        );
        assert_eq!(
            or_else(object, &[("a", "9"), ("c", "3")]),
            r#"{"a":1,"b":[2],"c":3}"#
        );
    }
}
