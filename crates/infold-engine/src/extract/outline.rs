//! Says in a few words what a tool result holds.

use std::collections::HashMap;

use infold_wire::acts;
use infold_wire::shorten;

use super::names::is_plausible;
use crate::refs;

/// A shorter result is told by its size alone.
const MIN_DESCRIBED_BYTES: usize = 1_200;
/// Of a longer one so much is looked at.
const MAX_READ_BYTES: usize = 64 << 10;
const MAX_NAMES: usize = 10;
const MAX_LINE_CHARS: usize = 70;

/// Returns the size, the first and the last line, how it ended, and the names that stand most often in a result.
pub fn outline(text: &str) -> String {
    if text.len() < MIN_DESCRIBED_BYTES {
        return String::new();
    }
    let says = |line: &&str| line.chars().any(char::is_alphanumeric);
    let mut out = format!("\n{} lines", text.lines().count());
    if acts::ending(text, None, true).failed == Some(true) {
        out.push_str(", failed");
    }
    if let Some(first) = text.lines().find(says) {
        out.push_str(&format!(", first: {}", shorten(first, MAX_LINE_CHARS)));
    }
    if let Some(last) = text.lines().rev().find(says) {
        out.push_str(&format!("\nlast: {}", shorten(last, MAX_LINE_CHARS)));
    }
    let names = frequent(&text[..text.floor_char_boundary(MAX_READ_BYTES)]);
    if !names.is_empty() {
        out.push_str("\nnames: ");
        out.push_str(&names.join(", "));
    }
    out
}

/// The names that stand most often in a text, those that stand first of equals.
fn frequent(text: &str) -> Vec<&str> {
    let mut counts: HashMap<&str, (u32, usize)> = HashMap::new();
    refs::each(text, |name| {
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
