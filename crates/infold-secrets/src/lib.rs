//! Finds secrets that match well-known rules, in text.
//!
//! Pure, and a crate of its own because of its dependencies. The time to search is linear in
//! the text. A rule's expression is compiled when one of its keywords occurs for the first time.
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
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

pub use marker::{contains_marker, marker};
use rule::{RuleSet, SecretRule};

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The id of the rule that it matches.
    pub rule: &'static str,
    /// Its range in the text.
    pub range: Range<usize>,
}

/// Returns the secrets in a text, in order. They do not overlap: of rules that match the same
/// bytes the one that begins first is named, and the range covers both. Markers are not found.
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
    // The longer one comes first: it is usually the more specific one.
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

/// Returns how many rules there are.
pub fn rule_count() -> usize {
    scanner().rules.len()
}

struct Scanner {
    rules: Vec<SecretRule>,
    allowed: rule::Exceptions,
    keywords: AhoCorasick,
    /// The rules of each keyword.
    rules_of_keyword: Vec<Vec<usize>>,
}

fn scanner() -> &'static Scanner {
    static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
        let RuleSet { rules, allowed } = RuleSet::built_in();
        // The order of keywords and rules decides which of two rules for the same bytes is named.
        let mut words: Vec<&str> = Vec::new();
        let mut rules_of_keyword: Vec<Vec<usize>> = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            for word in &rule.keywords {
                let known = words.iter().position(|known| known == word);
                let at = known.unwrap_or_else(|| {
                    words.push(word);
                    rules_of_keyword.push(Vec::new());
                    words.len() - 1
                });
                rules_of_keyword[at].push(index);
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
            rules_of_keyword,
        }
    });
    &SCANNER
}

impl Scanner {
    /// Returns the rules of which a keyword occurs, each with the windows around its keywords.
    fn candidates(&self, text: &[u8]) -> Vec<(&SecretRule, Vec<Range<usize>>)> {
        let mut found: Vec<(&SecretRule, Vec<Range<usize>>)> = Vec::new();
        let mut found_at = vec![usize::MAX; self.rules.len()];
        for hit in self.keywords.find_overlapping_iter(text) {
            for index in &self.rules_of_keyword[hit.pattern().as_usize()] {
                let rule = &self.rules[*index];
                if found_at[*index] == usize::MAX {
                    found_at[*index] = found.len();
                    found.push((rule, Vec::new()));
                }
                let windows = &mut found[found_at[*index]].1;
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

/// Widens a range to whole characters: rules match bytes.
fn whole_characters(text: &[u8], range: Range<usize>) -> Range<usize> {
    let is_inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    // A character has at most four bytes; longer sequences are not UTF-8.
    let start = (range.start.saturating_sub(3)..=range.start).rev();
    let start = start.clone().find(|at| !is_inside(*at));
    let end = (range.end..range.end + 4).find(|at| !is_inside(*at));
    start.unwrap_or(range.start)..end.unwrap_or(range.end).min(text.len())
}

#[cfg(test)]
mod tests;
