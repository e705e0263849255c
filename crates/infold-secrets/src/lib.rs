//! Finds secrets in text, such as API keys, by the rules of gitleaks.
//!
//! A search has two stages. One automaton finds the keywords of all rules in a single pass. Only around a keyword is the
//! regular expression of its rule tried, so most texts need no regular expression at all, and the time is linear in the text.
//! An expression is compiled when one of its keywords occurs for the first time, because compiling all of them is slow.
//!
//! The search is a pure function of the text. It has a crate of its own because of its heavy dependencies.
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
    /// The id of the rule that found it.
    pub rule: &'static str,
    /// Its range in the text.
    pub range: Range<usize>,
}

/// Returns the secrets in a text, in order and without overlaps. Findings that overlap become one, which covers the bytes of
/// both and names the rule of the one that begins first.
///
/// A [`marker()`] is not a secret, so redacting a text twice changes nothing.
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
    // Of findings that begin at the same byte, the longest comes first and names the rule: it is usually more specific.
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

/// The rules, and the automaton for their keywords.
struct Scanner {
    rules: Vec<SecretRule>,
    /// The exceptions for all rules.
    allowed: rule::Exceptions,
    keywords: AhoCorasick,
    /// For each keyword of the automaton, the indices of its rules.
    rules_of_keyword: Vec<Vec<usize>>,
}

/// Returns the scanner, which is built on first use.
fn scanner() -> &'static Scanner {
    static SCANNER: LazyLock<Scanner> = LazyLock::new(|| {
        let RuleSet { rules, allowed } = RuleSet::built_in();
        // The order is that of the rules, so that results are deterministic: for two rules that find the same bytes, it
        // decides which is named.
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
    /// Returns the rules with a keyword in the text, each with the ranges around its keywords in which a secret may be.
    /// Ranges that overlap are joined.
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

/// Widens a range to whole characters: rules match bytes, and cutting a character would leave invalid UTF-8.
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
