//! Finds references in a text: tokens with inner structure.

use std::ops::Range;

use super::words::is_east_asian;

/// A longer token is data, such as base64, not a name.
const MAX_REFERENCE_BYTES: usize = 200;
/// Only stretches of at most this many parts of a token are looked up.
const MAX_PARTS: usize = 12;

/// Characters without a space between them: the byte range of all and of each part between connectors.
pub struct RawToken {
    pub range: Range<usize>,
    pub parts: Vec<Range<usize>>,
    is_url: bool,
}

/// Calls `found` with each token of `text`, references and others.
pub fn each_token(text: &str, mut found: impl FnMut(RawToken)) {
    let mut at = 0;
    while at < text.len() {
        let Some(skip) = text[at..].find(is_part) else {
            break;
        };
        let token = RawToken::read(text, at + skip);
        at = token.range.end;
        found(token);
    }
}

/// Calls `found` with the byte range of each reference in `text`, in order.
pub fn each_reference(text: &str, mut found: impl FnMut(Range<usize>)) {
    each_token(text, |token| {
        if token.is_reference(text) {
            found(token.range);
        }
    });
}

/// Returns the form in which references are compared: in small letters, numbers without thousands separators.
pub fn normal(text: &str) -> String {
    let lower = text.to_lowercase();
    if lower.contains(',') && lower.bytes().all(|b| b.is_ascii_digit() || b == b',') {
        lower.replace(',', "")
    } else {
        lower
    }
}

impl RawToken {
    fn read(text: &str, from: usize) -> RawToken {
        let mut token = RawToken {
            range: from..from,
            parts: Vec::new(),
            is_url: false,
        };
        let mut at = from;
        loop {
            let part = &text[at..];
            let end = at + part.find(|c| !is_part(c)).unwrap_or(part.len());
            token.parts.push(at..end);
            token.range.end = end;
            let Some(connector) = connector(text, end, token.is_url) else {
                break;
            };
            token.is_url |= &text[end..end + connector] == "://";
            at = end + connector;
        }
        token
    }

    /// Says whether it has the shape of a name or a value, not of a word.
    pub fn is_reference(&self, text: &str) -> bool {
        let token = &text[self.range.clone()];
        if token.len() > MAX_REFERENCE_BYTES {
            return false;
        }
        let digits = token.bytes().filter(u8::is_ascii_digit).count();
        if !token.chars().any(char::is_alphabetic) {
            return digits >= 3;
        }
        if token.chars().count() < 4 {
            return false;
        }
        let has = |connector: &str| token.contains(connector);
        let parts = || self.parts.iter().map(|part| &text[part.clone()]);
        self.is_url
            || parts().any(is_compound)
            || has("@")
            || has("::")
            || has("\\")
            || (has("-") && digits > 0)
            || (has("/") && self.is_path(text, digits))
            || (has(".") && parts().any(|part| part.chars().count() > 1))
    }

    /// Says whether the token is a path: `src/a.rs`, `/etc/hosts` and `a/b/c` are, `and/or` is not.
    fn is_path(&self, text: &str, digits: usize) -> bool {
        let token = &text[self.range.clone()];
        let slashes = token.matches('/').count();
        let is_rooted = text[..self.range.start].ends_with('/');
        slashes > 1 || digits > 0 || is_rooted || token.contains(['.', '_'])
    }

    /// Calls `found` with each stretch of whole parts: a longer name contains its parts.
    pub fn each_stretch<'a>(&self, text: &'a str, mut found: impl FnMut(&'a str)) {
        for (at, first) in self.parts.iter().enumerate() {
            for last in self.parts.iter().skip(at).take(MAX_PARTS) {
                if last.end - first.start > MAX_REFERENCE_BYTES {
                    break;
                }
                found(&text[first.start..last.end]);
            }
        }
    }
}

/// Says whether a character belongs to a part: letters, digits and underscores, but no scripts without spaces.
fn is_part(c: char) -> bool {
    c == '_' || (c.is_alphanumeric() && !is_east_asian(c))
}

/// Returns the length of the connector between the part that ends at `at` and the next one.
fn connector(text: &str, at: usize, is_url: bool) -> Option<usize> {
    let rest = &text[at..];
    let known = ["://", "::", "/../", "/./", "/.", "/~", "/", ".", "-", "@"];
    let further = ["?", "&", "=", "#", "%", "+", "~", "/#", "/?", ":", ","];
    let further = if is_url { &further[..] } else { &[] };
    let found = known.iter().chain(further).find(|connector| {
        let after = rest.strip_prefix(**connector);
        after.is_some_and(|after| after.starts_with(is_part))
    });
    found
        .map(|connector| connector.len())
        .or_else(|| (is_thousands(text, at) || is_backslash(rest)).then_some(1))
}

/// Says whether a backslash between the parts of a path follows, not one that escapes a character.
fn is_backslash(rest: &str) -> bool {
    let after = rest.strip_prefix('\\').and_then(|rest| rest.chars().next());
    after.is_some_and(|c| is_part(c) && !"ntrbfvxu0".contains(c))
}

/// Says whether there is a comma between the digits of one number at `at`.
fn is_thousands(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    bytes.get(at) == Some(&b',')
        && at > 0
        && is_digit(at - 1)
        && (1..=3).all(|after| is_digit(at + after))
        && !is_digit(at + 4)
}

/// Says whether a part is a name by itself: with an underscore, in camel case, of letters and digits, or a hexadecimal id.
fn is_compound(part: &str) -> bool {
    let letters = part.chars().filter(|c| c.is_alphabetic()).count();
    let digits = part.chars().filter(char::is_ascii_digit).count();
    let length = part.chars().count();
    let is_hex = length >= 7 && digits > 0 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let has_underscore = length >= 4 && letters > 0 && part.contains('_');
    let mut humps = part.chars().zip(part.chars().skip(1));
    let is_camel = length >= 4 && humps.any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    let is_mixed = length >= 4 && digits > 0 && part.starts_with(char::is_alphabetic);
    is_hex || has_underscore || is_camel || is_mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<&str> {
        let mut out = Vec::new();
        each_reference(text, |range| out.push(&text[range]));
        out
    }

    #[test]
    fn names_paths_addresses_and_numbers_are_references() {
        let text = "Set max_retries in src/net/retry.rs (see https://a.example/x?y=1) to 250, \
            as parseHeader and std::fmt say; commit 9f3c2ab, model gpt-5, 1,250 rows, mail ann@b.example.";
        assert_eq!(
            all(text),
            [
                "max_retries",
                "src/net/retry.rs",
                "https://a.example/x?y=1",
                "250",
                "parseHeader",
                "std::fmt",
                "9f3c2ab",
                "gpt-5",
                "1,250",
                "ann@b.example"
            ]
        );
        assert_eq!(normal("1,250"), "1250");
    }

    #[test]
    fn plain_language_has_none() {
        for text in [
            "A well-known and/or simple sentence, e.g. this one, i.e. 42 words.",
            "Die Prüfung läuft über 12 Stunden, d. h. bis Mitternacht.",
            "Мы решили так: срок до пятницы.",
            "数据库必须在周五之前迁移。日本語の文章です。한국어 문장입니다.",
        ] {
            assert_eq!(all(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn names_stand_next_to_scripts_without_spaces() {
        assert_eq!(
            all("请修改config_main的值为8080。"),
            ["config_main", "8080"]
        );
    }

    #[test]
    fn escaped_characters_join_nothing() {
        assert_eq!(
            all(r"package main\n\nfunc a\tb in D:\Letters\Old"),
            [r"Letters\Old"]
        );
    }

    #[test]
    fn data_is_no_name() {
        let blob = "aB3".repeat(100);
        assert_eq!(all(&blob), [""; 0]);
    }

    #[test]
    fn parts_of_a_longer_name_stand_where_it_stands() {
        let mut found = Vec::new();
        let text = "a/b.rs";
        each_token(text, |token| {
            token.each_stretch(text, |part| found.push(part))
        });
        assert_eq!(found, ["a", "a/b", "a/b.rs", "b", "b.rs", "rs"]);
    }
}
