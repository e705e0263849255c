//! The rules, and what they let pass.

use std::ops::Range;
use std::sync::OnceLock;

use regex::bytes::{Captures, Regex, RegexBuilder};
use regex_syntax::ParserBuilder;

use crate::entropy::entropy;
use crate::marker::is_redacted;

/// Rules as data; its head says where they come from.
const DATA: &str = include_str!("../data/rules.txt");

/// All rules, and what none of them reports.
pub(crate) struct RuleSet {
    pub rules: Vec<Rule>,
    pub allowed: Allowed,
}

/// What a kind of secret looks like.
pub(crate) struct Rule {
    pub id: &'static str,
    /// One of these occurs, in any case, in each text that matches.
    pub keywords: Vec<&'static str>,
    regex: Lazy,
    reach: OnceLock<Option<usize>>,
    /// A secret is less regular than this.
    min_entropy: Option<f64>,
    /// The group of the expression that is the secret; the first that matched if none is named.
    group: Option<usize>,
    allowed: Allowed,
}

/// What is no secret though it looks like one: examples, placeholders.
#[derive(Default)]
pub(crate) struct Allowed {
    secrets: Vec<Lazy>,
    matches: Vec<Lazy>,
    /// A secret with one of these in it, in any case, is none.
    stopwords: Vec<&'static str>,
}

/// An expression that is compiled when it is first needed.
struct Lazy {
    source: &'static str,
    regex: OnceLock<Option<Regex>>,
}

/// The most memory that one compiled expression may take; a test compiles all of them.
const MAX_REGEX_BYTES: usize = 32 << 20;

impl RuleSet {
    pub fn built_in() -> RuleSet {
        RuleSet::parse(DATA).expect("a test reads the built-in rules")
    }

    /// Reads rules; the error is the line that says nothing known.
    pub fn parse(data: &'static str) -> Result<RuleSet, &'static str> {
        let mut set = RuleSet {
            rules: Vec::new(),
            allowed: Allowed::default(),
        };
        let lines = data.lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (key, value) = line.split_once(' ').ok_or(line)?;
            let RuleSet { rules, allowed } = &mut set;
            let rule = rules.last_mut();
            match (key, rule) {
                ("rule", _) => rules.push(Rule {
                    id: value,
                    keywords: Vec::new(),
                    regex: Lazy::new(""),
                    reach: OnceLock::new(),
                    min_entropy: None,
                    group: None,
                    allowed: Allowed::default(),
                }),
                ("regex", Some(rule)) => rule.regex = Lazy::new(value),
                ("keyword", Some(rule)) => rule.keywords.push(value),
                ("entropy", Some(rule)) => {
                    rule.min_entropy = Some(value.parse().map_err(|_| line)?);
                }
                ("group", Some(rule)) => rule.group = Some(value.parse().map_err(|_| line)?),
                ("allow" | "allow-match" | "stopword", rule) => {
                    let allowed = rule.map_or(allowed, |rule| &mut rule.allowed);
                    match key {
                        "allow" => allowed.secrets.push(Lazy::new(value)),
                        "allow-match" => allowed.matches.push(Lazy::new(value)),
                        _ => allowed.stopwords.push(value),
                    }
                }
                _ => return Err(line),
            }
        }
        Ok(set)
    }

    /// The rules' ids, first keywords and expressions.
    #[cfg(test)]
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        let rules = self.rules.iter();
        rules.map(|rule| (rule.id, rule.keywords[0], rule.regex.source))
    }

    /// All expressions there are.
    #[cfg(test)]
    pub fn compile_all(&self) -> Result<usize, &'static str> {
        let allowed = self.rules.iter().map(|rule| &rule.allowed);
        let allowed = allowed.chain([&self.allowed]);
        let allowed = allowed.flat_map(|it| it.secrets.iter().chain(&it.matches));
        let all = self.rules.iter().map(|rule| &rule.regex).chain(allowed);
        let mut count = 0;
        for lazy in all {
            lazy.get().ok_or(lazy.source)?;
            count += 1;
        }
        Ok(count)
    }
}

impl Rule {
    /// How far from a keyword a secret may be; nothing if the expression has no longest match.
    ///
    /// Some expressions do not contain the keyword: 40 digits are a token near the name of a
    /// service, and a commit elsewhere.
    pub fn reach(&self) -> Option<usize> {
        const MARGIN: usize = 64;
        *self.reach.get_or_init(|| {
            let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
            let parsed = parser.parse(self.regex.source).ok()?;
            Some(parsed.properties().maximum_len()? + MARGIN)
        })
    }

    /// Calls `take` with the place of each secret in a window of a text.
    pub fn find(
        &self,
        text: &[u8],
        window: Range<usize>,
        allowed: &Allowed,
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
                // It may look different with what is beyond the edge, and is too far from the keyword.
                continue;
            }
            let range = shifted(self.secret(&captures));
            let secret = &text[range.clone()];
            let is_regular = self.min_entropy.is_some_and(|min| entropy(secret) <= min);
            if secret.is_empty()
                || is_regular
                || is_redacted(secret)
                || self.allowed.lets_pass(secret, &text[whole.clone()])
                || allowed.lets_pass(secret, &text[whole])
            {
                continue;
            }
            take(range);
        }
    }

    fn secret(&self, captures: &Captures<'_>) -> Range<usize> {
        let named = self.group.and_then(|group| captures.get(group));
        let first = || captures.iter().skip(1).flatten().find(|it| !it.is_empty());
        let found = named.or_else(first).unwrap_or(captures.get_match());
        found.range()
    }
}

impl Allowed {
    fn lets_pass(&self, secret: &[u8], whole: &[u8]) -> bool {
        let is_match = |lazy: &Lazy, text| lazy.get().is_some_and(|regex| regex.is_match(text));
        self.secrets.iter().any(|lazy| is_match(lazy, secret))
            || self.matches.iter().any(|lazy| is_match(lazy, whole))
            || !self.stopwords.is_empty() && {
                let secret = secret.to_ascii_lowercase();
                let holds = |word: &&str| {
                    let mut windows = secret.windows(word.len());
                    windows.any(|window| window == word.as_bytes())
                };
                self.stopwords.iter().any(holds)
            }
    }
}

impl Lazy {
    fn new(source: &'static str) -> Lazy {
        Lazy {
            source,
            regex: OnceLock::new(),
        }
    }

    /// The compiled expression. The rules are part of the program, and a test compiles each.
    fn get(&self) -> Option<&Regex> {
        let compile = || {
            let mut builder = RegexBuilder::new(self.source);
            // As in Go: classes are those of ASCII.
            builder.unicode(false).size_limit(MAX_REGEX_BYTES);
            builder.build().ok()
        };
        self.regex.get_or_init(compile).as_ref()
    }
}
