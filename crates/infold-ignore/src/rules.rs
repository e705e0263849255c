//! Parses the rules of one ignore file, and applies them to paths.

use crate::pattern::{GlobPattern, Stars};

/// The rules of one file, such as a `.gitignore`.
#[derive(Debug, Default)]
pub struct IgnoreRules(Vec<IgnoreRule>);

#[derive(Debug)]
struct IgnoreRule {
    matcher: Matcher,
    /// Whether the rule has a `!`, and so includes the paths that it matches again.
    is_negated: bool,
    only_directories: bool,
}

#[derive(Debug)]
enum Matcher {
    /// The exact name of an entry, at any depth.
    Name(Vec<u8>),
    /// The end of a name: `*.log` is the end `.log`.
    NameEnd(Vec<u8>),
    /// A pattern for a whole name.
    NamePattern(GlobPattern),
    /// A path that begins with literal bytes, and a pattern for the rest of it.
    Path(Vec<u8>, Option<GlobPattern>),
}

/// The most rules that are read from one file.
const MAX_RULES: usize = 20_000;

impl IgnoreRules {
    /// Reads the rules of a file; its lines need not be UTF-8.
    pub fn parse(text: &[u8]) -> IgnoreRules {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let rules = text
            .split(|byte| *byte == b'\n')
            .filter_map(IgnoreRule::parse);
        IgnoreRules(rules.take(MAX_RULES).collect())
    }

    /// Says whether the file has no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Says whether a path, relative to the directory of the file, is ignored; none if no rule matches it.
    ///
    /// The last rule that matches decides. Entries of an ignored directory are ignored with it, whatever the rules say
    /// about them: the caller has to check the directories above.
    pub fn verdict(&self, path: &[u8], is_directory: bool) -> Option<bool> {
        let name = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => &path[slash + 1..],
            None => path,
        };
        let mut rules = self.0.iter().rev();
        let rule = rules.find(|rule| {
            (is_directory || !rule.only_directories) && rule.matcher.is_match(path, name)
        })?;
        Some(!rule.is_negated)
    }
}

impl IgnoreRule {
    fn parse(line: &[u8]) -> Option<IgnoreRule> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.starts_with(b"#") {
            return None;
        }
        let mut pattern = without_trailing_spaces(line);
        let is_negated = pattern.starts_with(b"!");
        if is_negated {
            pattern = &pattern[1..];
        }
        let only_directories = pattern.ends_with(b"/");
        if only_directories {
            pattern = &pattern[..pattern.len() - 1];
        }
        if pattern.is_empty() {
            return None;
        }
        Some(IgnoreRule {
            matcher: Matcher::compile(pattern)?,
            is_negated,
            only_directories,
        })
    }
}

impl Matcher {
    fn compile(pattern: &[u8]) -> Option<Matcher> {
        let literal_bytes = literal_bytes(pattern);
        if !pattern.contains(&b'/') {
            if literal_bytes == pattern.len() {
                return Some(Matcher::Name(pattern.to_owned()));
            }
            if let Some(end) = pattern.strip_prefix(b"*")
                && is_literal(end)
            {
                return Some(Matcher::NameEnd(end.to_owned()));
            }
            return Some(Matcher::NamePattern(GlobPattern::compile(
                pattern,
                Stars::Any,
            )?));
        }
        // A slash at the beginning or in the middle ties a pattern to the directory of the file. As in git, only the
        // part from the first wildcard on is compiled as a pattern: `a**` becomes `a` and a whole component `**`, which
        // matches across slashes.
        let (literal, rest) = pattern.split_at(literal_bytes);
        let literal = literal.strip_prefix(b"/").unwrap_or(literal).to_owned();
        let rest = match rest {
            [] => None,
            rest => Some(GlobPattern::compile(rest, Stars::Path)?),
        };
        Some(Matcher::Path(literal, rest))
    }

    fn is_match(&self, path: &[u8], name: &[u8]) -> bool {
        match self {
            Matcher::Name(literal) => name == literal,
            Matcher::NameEnd(end) => name.ends_with(end),
            Matcher::NamePattern(pattern) => pattern.is_match(name),
            Matcher::Path(literal, None) => path == literal,
            Matcher::Path(literal, Some(pattern)) => path
                .strip_prefix(literal.as_slice())
                .is_some_and(|rest| pattern.is_match(rest)),
        }
    }
}

/// Returns how many bytes of a pattern stand before its first wildcard.
fn literal_bytes(pattern: &[u8]) -> usize {
    let wildcard = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    pattern.iter().position(wildcard).unwrap_or(pattern.len())
}

fn is_literal(pattern: &[u8]) -> bool {
    literal_bytes(pattern) == pattern.len()
}

/// Removes the spaces at the end of a line, except those that a backslash escapes.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let mut end = 0;
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        match byte {
            b' ' => at += 1,
            b'\\' => {
                // A backslash at the end of the line escapes nothing, but the spaces before it are not at the end.
                at = (at + 2).min(line.len());
                end = at;
            }
            _ => {
                at += 1;
                end = at;
            }
        }
    }
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected results are those of `git check-ignore` (2.47) for each path.
    #[test]
    fn rules_are_those_of_git() {
        let rules = IgnoreRules::parse(
            b"# comment\n*.log\n!keep.log\n/build\ntarget/\ndocs/*.txt\n**/cache/x\nlogs/**\na/**/z\n\\#odd\nspace\\ \ntrail   \nf[ab]o\ng[!x]h\nt??t\nw\xc3\xa9\n",
        );
        let cases = [
            ("x.log", false, Some(true)),
            ("deep/er/x.log", false, Some(true)),
            ("keep.log", false, Some(false)),
            ("deep/keep.log", false, Some(false)),
            ("build", false, Some(true)),
            ("deep/build", true, None),
            ("target", true, Some(true)),
            ("target", false, None),
            ("deep/target", true, Some(true)),
            ("docs/a.txt", false, Some(true)),
            ("docs/deep/a.txt", false, None),
            ("other/docs/a.txt", false, None),
            ("cache/x", false, Some(true)),
            ("p/q/cache/x", false, Some(true)),
            ("logs/x", false, Some(true)),
            ("logs/y/x", false, Some(true)),
            ("a/z", false, Some(true)),
            ("a/b/c/z", false, Some(true)),
            ("#odd", false, Some(true)),
            ("space ", false, Some(true)),
            ("trail", false, Some(true)),
            ("fao", false, Some(true)),
            ("fco", false, None),
            ("gyh", false, Some(true)),
            ("gxh", false, None),
            ("test", false, Some(true)),
            ("t/st", false, None),
            ("wé", false, Some(true)),
            ("comment", false, None),
        ];
        for (path, is_directory, expected) in cases {
            assert_eq!(
                rules.verdict(path.as_bytes(), is_directory),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn invalid_patterns_are_left_out() {
        let rules = IgnoreRules::parse(b"[\n[a\n\\\n/\n!\n");
        assert!(rules.is_empty(), "{rules:?}");
    }
}
