//! Which files `.gitignore` leaves out.

use regex::bytes::{Regex, RegexBuilder};

/// The rules of one `.gitignore` file.
#[derive(Debug, Default)]
pub struct IgnoreRules(Vec<IgnoreRule>);

#[derive(Debug)]
struct IgnoreRule {
    /// Matches paths relative to the directory of the file.
    matcher: Regex,
    /// A rule with `!` takes back an earlier one.
    is_negated: bool,
    only_directories: bool,
}

/// More rules than this in one file are not read.
const MAX_RULES: usize = 2000;

impl IgnoreRules {
    pub fn parse(text: &[u8]) -> IgnoreRules {
        let text = String::from_utf8_lossy(text);
        let rules = text.lines().filter_map(IgnoreRule::parse);
        IgnoreRules(rules.take(MAX_RULES).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Says whether a path, relative to the directory of the file, is left out; none if no rule is about it.
    pub fn verdict(&self, path: &[u8], is_directory: bool) -> Option<bool> {
        let mut rules = self.0.iter().rev();
        let rule = rules
            .find(|rule| (is_directory || !rule.only_directories) && rule.matcher.is_match(path))?;
        Some(!rule.is_negated)
    }
}

impl IgnoreRule {
    fn parse(line: &str) -> Option<IgnoreRule> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let mut pattern = without_trailing_spaces(line);
        if pattern.is_empty() || pattern.starts_with('#') {
            return None;
        }
        let is_negated = pattern.starts_with('!');
        if is_negated {
            pattern = &pattern[1..];
        }
        let only_directories = pattern.ends_with('/');
        if only_directories {
            pattern = &pattern[..pattern.len() - 1];
        }
        if pattern.is_empty() {
            return None;
        }
        // A slash at the beginning or in the middle ties a pattern to the directory of the file.
        let is_anchored = pattern.contains('/');
        let pattern = pattern.strip_prefix('/').unwrap_or(pattern);
        let matcher = glob(pattern, !is_anchored)?;
        Some(IgnoreRule {
            matcher,
            is_negated,
            only_directories,
        })
    }
}

/// Removes spaces at the end that no backslash keeps.
fn without_trailing_spaces(line: &str) -> &str {
    let trimmed = line.trim_end_matches(' ');
    let backslashes = trimmed
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'\\')
        .count();
    if backslashes % 2 == 1 && trimmed.len() < line.len() {
        &line[..=trimmed.len()]
    } else {
        trimmed
    }
}

/// Compiles a pattern of paths: `*`, `?` and `[…]` within a component, `**` across them.
///
/// Returns none if the pattern is invalid or too large.
pub fn glob(pattern: &str, at_any_depth: bool) -> Option<Regex> {
    let mut expression = String::from(if at_any_depth { "^(?:.*/)?" } else { "^" });
    translate(pattern, &mut expression)?;
    expression.push('$');
    RegexBuilder::new(&expression)
        .dot_matches_new_line(true)
        // Names need not be UTF-8.
        .unicode(false)
        .size_limit(1 << 20)
        .build()
        .ok()
}

fn translate(pattern: &str, expression: &mut String) -> Option<()> {
    let mut rest = pattern;
    let mut is_component_start = true;
    while let Some(next) = rest.chars().next() {
        let after = &rest[next.len_utf8()..];
        if is_component_start && rest.starts_with("**/") {
            expression.push_str("(?:.*/)?");
            rest = &rest[3..];
            continue;
        }
        if is_component_start && rest == "**" {
            expression.push_str(".+");
            return Some(());
        }
        is_component_start = next == '/';
        rest = match next {
            '*' => {
                expression.push_str("[^/]*");
                after.trim_start_matches('*')
            }
            '?' => {
                expression.push_str("[^/]");
                after
            }
            '[' => translate_class(after, expression)?,
            '\\' => {
                let literal = after.chars().next()?;
                push_literal(literal, expression);
                &after[literal.len_utf8()..]
            }
            literal => {
                push_literal(literal, expression);
                after
            }
        };
    }
    Some(())
}

/// Translates what follows `[`, and returns what follows its `]`.
fn translate_class<'a>(rest: &'a str, expression: &mut String) -> Option<&'a str> {
    let is_negated = rest.starts_with(['!', '^']);
    let members = if is_negated { &rest[1..] } else { rest };
    // A bracket in the first place is a member.
    let end = members
        .char_indices()
        .skip(1)
        .find(|(_, next)| *next == ']')?
        .0;
    expression.push_str(if is_negated { "[^/" } else { "[" });
    for member in members[..end].chars() {
        match member {
            '-' => expression.push('-'),
            member if member.is_ascii_alphanumeric() => expression.push(member),
            member if member.is_ascii() => {
                expression.push('\\');
                expression.push(member);
            }
            // Members of several bytes do not fit a class of bytes.
            _ => return None,
        }
    }
    expression.push(']');
    Some(&members[end + 1..])
}

fn push_literal(literal: char, expression: &mut String) {
    let mut bytes = [0; 4];
    for byte in literal.encode_utf8(&mut bytes).bytes() {
        expression.push_str(&format!("\\x{byte:02x}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `git check-ignore` (2.47) says of each path under the rules.
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
