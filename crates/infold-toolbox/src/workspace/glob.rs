//! Patterns of paths.

use regex::bytes::{Regex, RegexBuilder};

/// Compiles a pattern of paths: `*`, `?` and `[…]` within a component, `**` across them.
///
/// Returns none if the pattern is invalid or too large.
pub fn glob(pattern: &str, at_any_depth: bool) -> Option<Regex> {
    let mut expression = String::from(if at_any_depth { "^(?:.*/)?" } else { "^" });
    translate(pattern, &mut expression)?;
    expression.push('$');
    RegexBuilder::new(&expression)
        .dot_matches_new_line(true)
        // File names may be other than UTF-8.
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

/// Translates a class, of which `rest` is the text after `[`, and returns the text after its `]`.
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
