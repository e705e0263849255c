//! Adds, counts and removes the markers of Anthropic's prompt cache.

use std::ops::Range;

use infold_log::Role;
use memchr::memmem;

use crate::message::block_is;
use crate::{Json, JsonKind, Message};

/// A cache marker, as a member behind others.
pub(super) const CACHE_MARKER: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// A request with more markers is refused.
pub const MAX_CACHE_MARKERS: usize = 4;

/// Blocks are not nested deeper.
const MAX_DEPTH: usize = 10;

/// Marks the end of an Anthropic message for the provider's cache; `None` if it takes no marker.
///
/// All other bytes stay; a plain text becomes a block.
pub fn add_cache_marker(message: &[u8]) -> Option<Vec<u8>> {
    let json = Message::parse(message).ok()?;
    if json.role() == Role::System {
        return None;
    }
    let content = json.content()?;
    let (range, replacement) = match content.kind() {
        JsonKind::String => {
            let text = String::from_utf8_lossy(content.bytes());
            let block = format!(r#"[{{"type":"text","text":{text}{CACHE_MARKER}}}]"#);
            (content.range(), block)
        }
        JsonKind::Array => {
            let last = content.elements().last()?;
            // Reasoning takes no marker, and one is enough.
            let reasoning = ["thinking", "redacted_thinking"];
            if last.kind() != JsonKind::Object
                || reasoning.iter().any(|kind| block_is(last, kind))
                || last.get("cache_control").is_some()
            {
                return None;
            }
            let end = last.range().end - 1;
            (end..end, CACHE_MARKER.to_owned())
        }
        _ => return None,
    };
    Some(crate::splice(message, &[(range, replacement)]))
}

/// Counts the cache markers in a list of tools.
pub fn count_cache_markers(tools: &str) -> usize {
    find_markers(tools.as_bytes()).len()
}

/// Returns an Anthropic message without its cache markers; none if it has none.
///
/// All other bytes stay.
pub fn remove_cache_markers(message: &[u8]) -> Option<Vec<u8>> {
    let markers = find_markers(message);
    let cuts: Vec<_> = markers.into_iter().map(|at| (at, String::new())).collect();
    (!cuts.is_empty()).then(|| crate::splice(message, &cuts))
}

/// Returns the ranges of the markers, each with its comma.
fn find_markers(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // A search is faster than parsing, and most texts have none.
    if memmem::find(text, br#""cache_control""#).is_some()
        && let Ok(json) = Json::parse(text)
    {
        collect_markers(json, MAX_DEPTH, &mut found);
    }
    found
}

fn collect_markers(json: Json<'_>, depth: usize, found: &mut Vec<Range<usize>>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    json.elements()
        .for_each(|element| collect_markers(element, depth, found));
    let mut members = json.members().peekable();
    // The end of the member before, and whether any member before stays.
    let (mut end, mut stays) = (0, false);
    while let Some((name, value)) = members.next() {
        if name.is("cache_control") {
            let next = members.peek().map(|(name, _)| name.range().start);
            found.push(if stays {
                end..value.range().end
            } else {
                name.range().start..next.unwrap_or(value.range().end)
            });
        } else {
            stays = true;
            // Arguments and schemas of tools may have any members.
            if !name.is("input") && !name.is("input_schema") {
                collect_markers(value, depth, found);
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
            add_cache_marker(text.as_bytes())
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
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
            remove_cache_markers(text.as_bytes())
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
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
            count_cache_markers(
                r#"[{"name":"a","cache_control":{"type":"ephemeral"},"input_schema":{"cache_control":1}}]"#
            ),
            1
        );
    }
}
