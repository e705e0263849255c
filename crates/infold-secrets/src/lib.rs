//! Finds secrets that match well-known rules, in text.
//!
//! Pure, and a crate of its own because of its dependencies: the regular expressions are linear in
//! the text, whatever the text is. Nothing is compiled before the first text is looked at, and a
//! rule not before one of its keywords occurs.
//!
//! ```
//! let text = format!("the key is {}{}, keep it", "AKIA", "QYLPMN5HHHFPZAM2");
//! let found = infold_secrets::find(text.as_bytes());
//! assert_eq!(found[0].rule, "aws-access-token");
//! assert_eq!(found[0].range, 11..31);
//! ```

mod rule;
mod entropy;
mod marker;

use std::ops::Range;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};

pub use marker::marker;
use rule::{Rule, RuleSet};

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The id of the rule that it matches.
    pub rule: &'static str,
    /// Where it is, in bytes.
    pub range: Range<usize>,
}

/// Returns the secrets in a text, in order. They do not overlap: of rules that match the same
/// bytes the one that begins first is named, and the range covers both.
///
/// What a marker already replaces is not found again.
pub fn find(text: &[u8]) -> Vec<Finding> {
    let scanner = scanner();
    let mut found: Vec<Finding> = Vec::new();
    for (rule, windows) in scanner.candidates(text) {
        for window in windows {
            rule.find(text, window, &scanner.allowed, &mut |range| {
                found.push(Finding {
                    rule: rule.id,
                    range: whole_characters(text, range),
                });
            });
        }
    }
    // The longer one first: it is usually the more specific one.
    found.sort_by_key(|one| (one.range.start, usize::MAX - one.range.end));
    found.dedup_by(|next, kept| {
        let overlaps = next.range.start < kept.range.end;
        if overlaps {
            kept.range.end = kept.range.end.max(next.range.end);
        }
        overlaps
    });
    found
}

/// Returns a text with its secrets replaced by markers; nothing if it has none.
pub fn redacted(text: &str) -> Option<String> {
    let mut changed: Option<String> = None;
    for _ in 0..MAX_PASSES {
        let current = changed.as_deref().unwrap_or(text);
        let found = find(current.as_bytes());
        if found.is_empty() {
            break;
        }
        let mut next = String::with_capacity(current.len());
        let mut end = 0;
        for Finding { rule, range } in found {
            next.push_str(&current[end..range.start]);
            next.push_str(&marker(rule));
            end = range.end;
        }
        next.push_str(&current[end..]);
        changed = Some(next);
    }
    changed
}

/// A replaced secret may let its neighbour match; so often a text is looked at again.
pub const MAX_PASSES: usize = 4;

/// Returns how many rules there are.
pub fn rule_count() -> usize {
    scanner().rules.len()
}

struct Scanner {
    rules: Vec<Rule>,
    allowed: rule::Allowed,
    keywords: AhoCorasick,
    /// Which rules want the keyword of this number.
    wanted_by: Vec<Vec<usize>>,
}

fn scanner() -> &'static Scanner {
    static SCANNER: OnceLock<Scanner> = OnceLock::new();
    SCANNER.get_or_init(|| {
        let RuleSet { rules, allowed } = RuleSet::built_in();
        let mut words: Vec<&str> = Vec::new();
        let mut wanted_by: Vec<Vec<usize>> = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            for word in &rule.keywords {
                match words.iter().position(|known| known == word) {
                    Some(at) => wanted_by[at].push(index),
                    None => {
                        words.push(word);
                        wanted_by.push(vec![index]);
                    }
                }
            }
        }
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(&words);
        Scanner {
            rules,
            allowed,
            keywords: keywords.expect("a few hundred short words fit into an automaton"),
            wanted_by,
        }
    })
}

impl Scanner {
    /// The rules of which a keyword occurs, and where to look for what they describe: near the keyword.
    fn candidates(&self, text: &[u8]) -> Vec<(&Rule, Vec<Range<usize>>)> {
        let mut found: Vec<(&Rule, Vec<Range<usize>>)> = Vec::new();
        let mut places = vec![usize::MAX; self.rules.len()];
        for hit in self.keywords.find_overlapping_iter(text) {
            for index in &self.wanted_by[hit.pattern().as_usize()] {
                let rule = &self.rules[*index];
                if places[*index] == usize::MAX {
                    places[*index] = found.len();
                    found.push((rule, Vec::new()));
                }
                let windows = &mut found[places[*index]].1;
                let reach = rule.reach().unwrap_or(text.len());
                let start = hit.start().saturating_sub(reach);
                let end = hit.end().saturating_add(reach).min(text.len());
                match windows.last_mut().filter(|last| last.end >= start) {
                    Some(last) => *last = last.start.min(start)..last.end.max(end),
                    None => windows.push(start..end),
                }
            }
        }
        found
    }
}

/// Widens a range so that it cuts no character in two: rules match bytes.
fn whole_characters(text: &[u8], range: Range<usize>) -> Range<usize> {
    let is_inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    // A character has at most four bytes; what is longer is no UTF-8.
    let start = (range.start.saturating_sub(3)..=range.start).rev();
    let start = start.clone().find(|at| !is_inside(*at));
    let end = (range.end..range.end + 4).find(|at| !is_inside(*at));
    start.unwrap_or(range.start)..end.unwrap_or(range.end).min(text.len())
}

#[cfg(test)]
mod tests;
