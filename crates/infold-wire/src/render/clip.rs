//! Shortens the text of a tool result.

use crate::plain_text::append_result_text;
use crate::tokens::{Encoding, count};
use crate::{Json, Message, Part};

/// Returns the head and the tail of a tool result's text, about `keep` tokens in all, with `between`
/// where the rest was left out.
pub fn clip_result(message: &Message<'_>, part: &Part, keep: u64, between: &str) -> String {
    let text = part_text(message, part);
    let whole = count(Encoding::O200k, &text);
    let share = keep as f64 / whole.max(1) as f64;
    let mut bytes = (text.len() as f64 * share.min(1.0)) as usize;
    // The ends may have more tokens per byte than the rest; a few tries come close enough.
    for _ in 0..8 {
        let clipped = join_ends(&text, bytes, between);
        if count(Encoding::O200k, &clipped) <= keep || bytes == 0 {
            return clipped;
        }
        bytes = bytes * 3 / 4;
    }
    join_ends(&text, 0, between)
}

/// Returns the text of a tool result.
pub fn part_text(message: &Message<'_>, part: &Part) -> String {
    let mut text = String::new();
    let base = message.json().range().start;
    let bytes = &message.bytes()[part.range.start - base..part.range.end - base];
    if let Ok(content) = Json::parse(bytes) {
        append_result_text(content, &mut text);
    }
    text
}

/// Keeps `bytes` bytes of a text: two thirds from its start, and the rest from its end.
fn join_ends(text: &str, bytes: usize, between: &str) -> String {
    let head = text.floor_char_boundary(bytes * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - (bytes - bytes * 2 / 3).min(text.len() - head));
    format!("{}\n{between}\n{}", &text[..head], &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_stay_within_what_is_kept() {
        let lines: Vec<String> = (0..2_000)
            .map(|line| format!("line {line} é 日本"))
            .collect();
        let content = crate::quote(&lines.join("\n"));
        let texts = [
            format!(r#"{{"role":"tool","tool_call_id":"a","content":{content}}}"#),
            format!(
                r#" {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":[{{"type":"text","text":{content}}}]}}]}}"#
            ),
            format!(
                r#"{{"role":"user","parts":[{{"functionResponse":{{"name":"f","response":{{"output":{content}}}}}}}]}}"#
            ),
            format!(r#"{{"type":"function_call_output","call_id":"a","output":{content}}}"#),
        ];
        for text in texts {
            let message = Message::parse(text.as_bytes()).unwrap();
            let part = message.parts().remove(0);
            for keep in [40, 400, 4_000] {
                let clipped = clip_result(&message, &part, keep, "[…]");
                assert!(count(Encoding::O200k, &clipped) <= keep, "{text:.40}");
                assert!(clipped.contains("[…]"));
                assert!(clipped.contains("line 0 "), "{clipped:.60}");
                assert!(keep < 400 || clipped.contains("line 1999"), "{keep}");
            }
        }
    }

    #[test]
    fn a_result_that_is_no_text_is_clipped_all_the_same() {
        let text = r#"{"role":"tool","tool_call_id":"a","content":"\ud83d broken"}"#;
        let message = Message::parse(text.as_bytes()).unwrap();
        let part = message.parts().remove(0);
        assert!(clip_result(&message, &part, 10, "[…]").contains("[…]"));
    }
}
