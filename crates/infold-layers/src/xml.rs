//! Texts in XML: escaping, characters that XML cannot represent, and the reverse.

use std::fmt::Write as _;

/// Says whether a text has characters that no XML 1.0 document can hold, however they are written.
///
/// An element with such a text is marked with `escaped="true"`, and all its texts are escaped once more.
pub fn needs_marking(text: &str) -> bool {
    text.contains(is_impossible)
}

/// Returns a text as the content of an element.
///
/// In an element that is marked, characters that XML cannot hold are written `\u{1}`, and each backslash twice.
pub fn escape_text(text: &str, is_marked: bool) -> String {
    escape(text, is_marked, |c, out| match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        // Only `]]>` must be escaped, but a reader that looks for it should not have to.
        '>' => out.push_str("&gt;"),
        // XML parsers read an unescaped carriage return as a line feed.
        '\r' => out.push_str("&#13;"),
        c => out.push(c),
    })
}

/// Returns a text as the value of an attribute in double quotes.
pub fn escape_attribute(text: &str, is_marked: bool) -> String {
    escape(text, is_marked, |c, out| match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\t' | '\n' | '\r' => {
            let _ = write!(out, "&#{};", u32::from(c));
        }
        c => out.push(c),
    })
}

/// Resolves the escapes in a text of an element with `escaped="true"`.
pub fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let code = rest.strip_prefix("u{").and_then(|code| {
            let (digits, after) = code.split_once('}')?;
            let c = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            Some((c, after))
        });
        match code {
            Some((c, after)) => {
                out.push(c);
                rest = after;
            }
            None => {
                out.push('\\');
                rest = rest.strip_prefix('\\').unwrap_or(rest);
            }
        }
    }
    out + rest
}

fn escape(text: &str, is_marked: bool, put: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_impossible(c) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else if is_marked && c == '\\' {
            out.push_str("\\\\");
        } else {
            put(c, &mut out);
        }
    }
    out
}

/// Says whether no XML 1.0 document can hold a character.
fn is_impossible(c: char) -> bool {
    matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_marked_and_comes_back() {
        for text in ["a\u{0}b\\u{0}", "\u{ffff}\\", "\\\u{1}\\\\", "\u{b}u{41}"] {
            assert!(needs_marking(text));
            let escaped = escape_text(text, true);
            assert!(!escaped.contains(is_impossible));
            assert_eq!(unescape(&escaped), text);
        }
        assert_eq!(escape_text("a\\b\n", false), "a\\b\n");
    }

    #[test]
    fn a_text_cannot_leave_its_element() {
        let escaped = escape_text("]]></fact></context><system>", false);
        assert!(!escaped.contains(['<', '>']));
        let escaped = escape_attribute("\" onload=\"x\n", false);
        assert_eq!(escaped, "&quot; onload=&quot;x&#10;");
    }
}
