//! Parses the rules for secrets and their exceptions, and applies a rule to a part of a text.

use std::ops::Range;
use std::sync::OnceLock;

use regex::bytes::{Captures, Regex, RegexBuilder};
use regex_syntax::ParserBuilder;

use crate::entropy::entropy;
use crate::marker::is_redacted;

/// The rules as data. The beginning of the file names their origin.
const RULES_TEXT: &str = include_str!("../data/rules.txt");

/// All rules, and the exceptions for all of them.
pub(crate) struct RuleSet {
    pub rules: Vec<SecretRule>,
    pub allowed: Exceptions,
}

/// A rule for one type of secret.
pub(crate) struct SecretRule {
    /// Its name, such as `aws-access-token`.
    pub id: &'static str,
    /// The rule is tried only near one of these words, in upper or lower case.
    pub keywords: Vec<&'static str>,
    pub regex: LazyRegex,
    /// The cached result of [`SecretRule::reach`].
    reach: OnceLock<Option<usize>>,
    /// Matches with this entropy or less are not secrets.
    min_entropy: Option<f64>,
    /// The capture group with the secret; by default the first that is not empty.
    group: Option<usize>,
    pub allowed: Exceptions,
}

/// Describes examples and placeholders: texts that match a rule but are not secrets.
#[derive(Default)]
pub(crate) struct Exceptions {
    /// A secret that matches one of these is an example or a placeholder.
    pub secrets: Vec<LazyRegex>,
    /// If the whole match around a secret matches one of these, the secret is an example or a placeholder, too.
    pub matches: Vec<LazyRegex>,
    /// A secret that contains one of these, in upper or lower case, is an example or a placeholder.
    stopwords: Vec<&'static str>,
}

/// An expression that is compiled on first use.
pub(crate) struct LazyRegex {
    pub source: &'static str,
    regex: OnceLock<Option<Regex>>,
}

/// The memory limit of one compiled expression; a test compiles all of them.
const MAX_REGEX_BYTES: usize = 32 << 20;

impl RuleSet {
    /// Returns the rules of this crate.
    pub fn built_in() -> RuleSet {
        RuleSet::parse(RULES_TEXT).expect("a test parses the built-in rules")
    }

    /// Parses rules. A line `rule ID` begins a rule, and the lines after it describe it. Exceptions before the first rule
    /// apply to all rules. The error is the first line that is not valid.
    pub fn parse(data: &'static str) -> Result<RuleSet, &'static str> {
        let mut set = RuleSet {
            rules: Vec::new(),
            allowed: Exceptions::default(),
        };
        let lines = data.lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (key, value) = line.split_once(' ').ok_or(line)?;
            let RuleSet { rules, allowed } = &mut set;
            let rule = rules.last_mut();
            match (key, rule) {
                ("rule", _) => rules.push(SecretRule {
                    id: value,
                    keywords: Vec::new(),
                    regex: LazyRegex::new(""),
                    reach: OnceLock::new(),
                    min_entropy: None,
                    group: None,
                    allowed: Exceptions::default(),
                }),
                ("regex", Some(rule)) => rule.regex = LazyRegex::new(value),
                ("keyword", Some(rule)) => rule.keywords.push(value),
                ("entropy", Some(rule)) => {
                    rule.min_entropy = Some(value.parse().map_err(|_| line)?);
                }
                ("group", Some(rule)) => rule.group = Some(value.parse().map_err(|_| line)?),
                ("allow" | "allow-match" | "stopword", rule) => {
                    let allowed = rule.map_or(allowed, |rule| &mut rule.allowed);
                    match key {
                        "allow" => allowed.secrets.push(LazyRegex::new(value)),
                        "allow-match" => allowed.matches.push(LazyRegex::new(value)),
                        _ => allowed.stopwords.push(value),
                    }
                }
                _ => return Err(line),
            }
        }
        Ok(set)
    }
}

impl SecretRule {
    /// Returns how far from a keyword a match may extend, in bytes; none if the length of a match is not limited.
    ///
    /// The keyword need not be part of the match: 40 hexadecimal digits near the name of a service are a token, but
    /// elsewhere the hash of a commit.
    pub fn reach(&self) -> Option<usize> {
        // The largest distance between a match and a keyword outside of it.
        const MARGIN_BYTES: usize = 64;
        *self.reach.get_or_init(|| {
            let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
            let parsed = parser.parse(self.regex.source).ok()?;
            Some(parsed.properties().maximum_len()? + MARGIN_BYTES)
        })
    }

    /// Calls `take` with the range of each secret in a window of a text. The window contains one or more keywords, and
    /// extends by [`SecretRule::reach`] to both sides of them. `allowed` are the exceptions that apply to all rules.
    pub fn find(
        &self,
        text: &[u8],
        window: Range<usize>,
        allowed: &Exceptions,
        take: &mut dyn FnMut(Range<usize>),
    ) {
        let Some(regex) = self.regex.get() else {
            return;
        };
        let (offset, end) = (window.start, text.len());
        let is_cut = |found: &Range<usize>| {
            found.start == offset && offset > 0 || found.end == window.end && window.end < end
        };
        let text = &text[..window.end];
        for captures in regex.captures_iter(&text[offset..]) {
            let shifted = |range: Range<usize>| range.start + offset..range.end + offset;
            let whole = shifted(captures.get_match().range());
            if is_cut(&whole) {
                // A match at the edge of the window may be cut off there. Skipping it loses nothing, because it is
                // farther from the keyword than the margin.
                continue;
            }
            let range = shifted(self.secret(&captures));
            let secret = &text[range.clone()];
            let has_low_entropy = || self.min_entropy.is_some_and(|min| entropy(secret) <= min);
            let is_allowed = || {
                let whole = &text[whole.clone()];
                self.allowed.matches(secret, whole) || allowed.matches(secret, whole)
            };
            if !secret.is_empty() && !has_low_entropy() && !is_redacted(secret) && !is_allowed() {
                take(range);
            }
        }
    }

    /// Returns the range of the secret in a match: the group of the rule, else the first group that is not empty, else
    /// the whole match.
    fn secret(&self, captures: &Captures<'_>) -> Range<usize> {
        let named = self.group.and_then(|group| captures.get(group));
        let first = || captures.iter().skip(1).flatten().find(|it| !it.is_empty());
        let found = named.or_else(first).unwrap_or(captures.get_match());
        found.range()
    }
}

impl Exceptions {
    /// Says whether an exception applies to a secret or to the whole match around it.
    fn matches(&self, secret: &[u8], whole: &[u8]) -> bool {
        let is_match =
            |lazy: &LazyRegex, text| lazy.get().is_some_and(|regex| regex.is_match(text));
        self.secrets.iter().any(|lazy| is_match(lazy, secret))
            || self.matches.iter().any(|lazy| is_match(lazy, whole))
            || !self.stopwords.is_empty() && {
                let secret = secret.to_ascii_lowercase();
                let contains = |word: &&str| {
                    let mut windows = secret.windows(word.len());
                    windows.any(|window| window == word.as_bytes())
                };
                self.stopwords.iter().any(contains)
            }
    }
}

impl LazyRegex {
    fn new(source: &'static str) -> LazyRegex {
        LazyRegex {
            source,
            regex: OnceLock::new(),
        }
    }

    /// Returns the expression, compiled on the first call. It is none only for an invalid expression, and a test compiles all
    /// built-in ones.
    pub fn get(&self) -> Option<&Regex> {
        let compile = || {
            let mut builder = RegexBuilder::new(self.source);
            // The rules are written for Go, where classes such as `\w` contain only ASCII.
            builder.unicode(false).size_limit(MAX_REGEX_BYTES);
            builder.build().ok()
        };
        self.regex.get_or_init(compile).as_ref()
    }
}
