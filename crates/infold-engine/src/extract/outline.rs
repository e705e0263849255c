//! Describes a tool result in a few words.

use std::collections::HashMap;

use infold_wire::shorten;
use infold_wire::tool_action;

use super::names::is_plausible;
use crate::references;

/// A shorter result is not described.
const MIN_DESCRIBED_BYTES: usize = 1_200;
/// At most this much of a result is read for names.
const MAX_READ_BYTES: usize = 64 << 10;
const MAX_NAMES: usize = 10;
const MAX_LINE_CHARS: usize = 70;

/// Returns the size of a result, its first and last line, whether it failed, and its most frequent names.
pub fn outline(text: &str) -> String {
    if text.len() < MIN_DESCRIBED_BYTES {
        return String::new();
    }
    let has_text = |line: &&str| line.chars().any(char::is_alphanumeric);
    let mut out = format!("\n{} lines", text.lines().count());
    if tool_action::read_outcome(text, None, true).failed == Some(true) {
        out.push_str(", failed");
    }
    if let Some(first) = text.lines().find(has_text) {
        out.push_str(&format!(", first: {}", shorten(first, MAX_LINE_CHARS)));
    }
    if let Some(last) = text.lines().rev().find(has_text) {
        out.push_str(&format!("\nlast: {}", shorten(last, MAX_LINE_CHARS)));
    }
    let names = frequent_names(&text[..text.floor_char_boundary(MAX_READ_BYTES)]);
    if !names.is_empty() {
        out.push_str("\nnames: ");
        out.push_str(&names.join(", "));
    }
    out
}

/// Returns the most frequent names of a text; among equals the first.
fn frequent_names(text: &str) -> Vec<&str> {
    let mut counts: HashMap<&str, (u32, usize)> = HashMap::new();
    references::for_each(text, |name| {
        if is_plausible(name) {
            let next = counts.len();
            counts.entry(name).or_insert((0, next)).0 += 1;
        }
    });
    let mut ranked: Vec<(&str, (u32, usize))> = counts.into_iter().collect();
    ranked.sort_unstable_by_key(|(_, (count, first))| (std::cmp::Reverse(*count), *first));
    ranked.truncate(MAX_NAMES);
    ranked.into_iter().map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_names_what_a_result_holds() {
        let text = format!(
            "fn berth_price() {{\n{}}}\nexit code: 0\n",
            "    price_table.get(berth_id); // 101\n".repeat(60)
        );
        let outline = outline(&text);
        assert!(
            outline.contains("62 lines") || outline.contains("63 lines"),
            "{outline}"
        );
        for part in ["berth_price", "price_table.get", "last: exit code: 0"] {
            assert!(outline.contains(part), "{part}: {outline}");
        }
        assert!(outline.len() < 400);
        assert_eq!(super::outline("short"), "");
    }
}
