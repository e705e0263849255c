use std::ops::Range;

use infold_log::Role;
use memchr::memmem;

use crate::message::block_is;
use crate::{Json, Kind, Message};

/// How a marker for the provider's cache is written.
pub(super) const CACHE: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// With more markers in it than this, a request is refused.
pub const MOST_MARKERS: usize = 4;

/// Blocks stand in blocks, but not deeper than this.
const DEEPEST: usize = 10;

/// Marks the end of an Anthropic message for the provider's cache; none if there is no place for it.
///
/// All other bytes stay; a plain text becomes a block that says the same.
pub fn marked(message: &[u8]) -> Option<Vec<u8>> {
    let json = Message::parse(message).ok()?;
    if json.role() == Role::System {
        return None;
    }
    let content = json.content()?;
    let (range, with) = match content.kind() {
        Kind::String => {
            let text = String::from_utf8_lossy(content.bytes());
            let block = format!(r#"[{{"type":"text","text":{text}{CACHE}}}]"#);
            (content.range(), block)
        }
        Kind::Array => {
            let last = content.elements().last()?;
            // Reasoning takes no marker, and one is enough.
            let barred = ["thinking", "redacted_thinking"];
            if last.kind() != Kind::Object
                || barred.iter().any(|kind| block_is(last, kind))
                || last.get("cache_control").is_some()
            {
                return None;
            }
            let end = last.range().end - 1;
            (end..end, CACHE.to_owned())
        }
        _ => return None,
    };
    Some(crate::splice(message, &[(range, with)]))
}

/// How many markers for the provider's cache a list of tools has.
pub fn markers(tools: &str) -> usize {
    found(tools.as_bytes()).len()
}

/// An Anthropic message without the markers it came with; none if it has none.
///
/// All other bytes stay: a marker is no content.
pub fn unmarked(message: &[u8]) -> Option<Vec<u8>> {
    let found = found(message);
    let cuts: Vec<_> = found.into_iter().map(|at| (at, String::new())).collect();
    (!cuts.is_empty()).then(|| crate::splice(message, &cuts))
}

/// Where the markers are, each with its comma.
fn found(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // Most texts show at once that they have none.
    if memmem::find(text, br#""cache_control""#).is_some()
        && let Ok(json) = Json::parse(text)
    {
        find(json, DEEPEST, &mut found);
    }
    found
}

fn find(json: Json<'_>, depth: usize, found: &mut Vec<Range<usize>>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    json.elements().for_each(|one| find(one, depth, found));
    let mut members = json.members().peekable();
    // Where the member before ends, once there is one that stays.
    let (mut end, mut stays) = (0, false);
    while let Some((name, value)) = members.next() {
        if name.is("cache_control") {
            let next = members.peek().map(|(name, _)| name.range().start);
            found.push(match stays {
                true => end..value.range().end,
                false => name.range().start..next.unwrap_or(value.range().end),
            });
        } else {
            stays = true;
            // What a tool takes may have anything in it.
            if !name.is("input") && !name.is("input_schema") {
                find(value, depth, found);
            }
        }
        end = value.range().end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_stands_on_the_last_block_and_leaves_all_else() {
        let mark = |text: &str| {
            marked(text.as_bytes()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        insta::assert_snapshot!(mark(r#"{"role":"user", "content":"caf\u00e9"}"#).unwrap(), @r#"{"role":"user", "content":[{"type":"text","text":"caf\u00e9","cache_control":{"type":"ephemeral"}}]}"#);
        insta::assert_snapshot!(mark(r#"{"role":"user","content":[{"type":"text","text":"a"}, {"type":"text","text":"b" }]}"#).unwrap(), @r#"{"role":"user","content":[{"type":"text","text":"a"}, {"type":"text","text":"b" ,"cache_control":{"type":"ephemeral"}}]}"#);
        for bare in [
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}"#,
            r#"{"role":"user","content":[]}"#,
        ] {
            assert_eq!(mark(bare), None);
        }
    }

    #[test]
    fn markers_are_taken_out_and_nothing_else() {
        let bare = |text: &str| {
            unmarked(text.as_bytes()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        for (marked, expected) in [
            (
                r#"{"a":1, "cache_control" : {"type":"x"} ,"b":2}"#,
                r#"{"a":1 ,"b":2}"#,
            ),
            (r#"{ "cache_control":null, "b":2 }"#, r#"{ "b":2 }"#),
            (r#"{"cache_control":{},"cache_control":{}}"#, "{}"),
            (
                r#"{"cache_control":1,"a":[{"cache_control":1}],"cache_control":1}"#,
                r#"{"a":[{}]}"#,
            ),
        ] {
            assert_eq!(bare(marked).as_deref(), Some(expected), "{marked}");
        }
        for none in [
            r#"{"role":"user","content":"a \"cache_control\" b"}"#,
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"n","input":{"cache_control":{}}}]}"#,
            "{}",
        ] {
            assert_eq!(bare(none), None, "{none}");
        }
        assert_eq!(
            markers(
                r#"[{"name":"a","cache_control":{"type":"ephemeral"},"input_schema":{"cache_control":1}}]"#
            ),
            1
        );
    }
}
