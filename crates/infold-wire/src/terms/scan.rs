//! Splits a text into terms.

use std::ops::Range;

use super::letter::{is_letter, is_mark, is_symbol, is_unspaced, push_folded};

/// A term with its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term<'a> {
    /// The kind of the term.
    pub kind: TermKind,
    /// The term: lower case, without accents, of bounded length.
    pub text: &'a str,
    /// The bytes of the term in the text.
    pub range: Range<usize>,
}

/// The kind of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// A word, or a part of an identifier or path.
    Word,
    /// Two characters of a script without spaces, the last one of a run, or an emoji.
    Characters,
    /// A whole identifier, path, number or date, beside its parts.
    Whole,
}

/// Longer terms are cut, in messages and queries alike.
const MAX_TERM_BYTES: usize = 64;

/// Calls `visit` with the terms of a text, in order: the parts of an identifier or a path, then the whole.
pub fn each_term(text: &str, visit: &mut dyn FnMut(Term<'_>)) {
    let mut scanner = TermScanner {
        text,
        at: 0,
        term: String::new(),
        visit,
    };
    while let Some(c) = scanner.peek() {
        if is_unspaced(c) {
            scanner.unspaced();
        } else if is_letter(c) && !is_mark(c) {
            if c.is_ascii_digit() {
                scanner.thousands();
            }
            scanner.chunk();
        } else {
            let start = scanner.at;
            scanner.at += c.len_utf8();
            if is_symbol(c) {
                let range = start..scanner.at;
                scanner.emit(TermKind::Characters, range);
            }
        }
    }
}

struct TermScanner<'a, 'v> {
    text: &'a str,
    at: usize,
    /// The term that is being written.
    term: String,
    visit: &'v mut dyn FnMut(Term<'_>),
}

impl TermScanner<'_, '_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    /// Reads a run of characters that no spaces separate: each pair is a term, and so is the last one alone, so that a
    /// single character is the beginning of a term at every place.
    fn unspaced(&mut self) {
        let run = self.text[self.at..].char_indices();
        let run = run.take_while(|(_, c)| is_unspaced(*c));
        let starts: Vec<usize> = run.map(|(at, _)| self.at + at).collect();
        let Some(last) = starts.last().copied() else {
            return;
        };
        let end = last + self.text[last..].chars().next().map_or(0, char::len_utf8);
        for (index, start) in starts.iter().enumerate() {
            let to = starts.get(index + 2).copied().unwrap_or(end);
            self.emit(TermKind::Characters, *start..to);
        }
        self.at = end;
    }

    /// A number with separators, `155,000`, is also a term without them. Its parts are read like any others.
    fn thousands(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let digits = |bytes: &[u8]| {
            bytes
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count()
        };
        let mut len = digits(rest);
        let is_inside = self.text[..self.at].ends_with(',');
        if is_inside || len > 3 {
            return;
        }
        let first = len;
        while rest.get(len) == Some(&b',') && digits(&rest[len + 1..]) == 3 {
            len += 4;
        }
        if len > first {
            self.emit(TermKind::Whole, self.at..self.at + len);
        }
    }

    /// Reads letters and the characters that join them: `getUserName`, `src/main.rs`, `2026-11-18`, `user@example.com`.
    fn chunk(&mut self) {
        let start = self.at;
        let mut segments: Vec<Range<usize>> = Vec::new();
        let mut from = start;
        loop {
            let rest = &self.text[self.at..];
            let len = rest.find(|c: char| !is_letter(c)).unwrap_or(rest.len());
            self.at += len;
            let mut next = self.text[self.at..].chars();
            let (joint, after) = (next.next(), next.next());
            let is_joined = after.is_some_and(|c| is_letter(c) && !is_mark(c));
            match joint {
                Some('.' | '/' | '-' | ':' | '@' | '\\') if is_joined => {
                    segments.push(from..self.at);
                    self.at += 1;
                    from = self.at;
                }
                _ => break,
            }
        }
        let end = self.at;
        segments.push(from..end);
        for segment in &segments {
            self.segment(segment.clone());
        }
        if segments.len() > 1 {
            self.emit(TermKind::Whole, start..end);
            let name = self.text[start..end].rfind(['/', '\\']);
            let name = name.map_or(start, |at| start + at + 1);
            // The name of a file is a whole too, if it has a dot or a hyphen.
            if name > start && segments.last().is_some_and(|last| last.start > name) {
                self.emit(TermKind::Whole, name..end);
            }
        }
        self.after_chunk(start..end);
    }

    /// Reads the characters behind a word that belong to it: `'s` and `n't` are no words, `c++` and `c#` are.
    fn after_chunk(&mut self, chunk: Range<usize>) {
        let rest = &self.text[self.at..];
        let suffix = if rest.starts_with("++") {
            2
        } else {
            usize::from(rest.starts_with('#'))
        };
        if suffix > 0 && chunk.len() <= 2 {
            self.at += suffix;
            self.emit(TermKind::Whole, chunk.start..self.at);
            return;
        }
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '\'' | '’')) else {
            return;
        };
        let rest = &rest[quote.len_utf8()..];
        let len = rest.find(|c: char| !is_letter(c)).unwrap_or(rest.len());
        if matches!(
            &rest[..len],
            "s" | "t" | "re" | "ve" | "ll" | "d" | "m" | "S"
        ) {
            self.at += quote.len_utf8() + len;
        }
    }

    /// Reads letters: split at underscores and where the case changes.
    fn segment(&mut self, segment: Range<usize>) {
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut from = segment.start;
        let (mut before, mut chars) = (None, self.text[segment.clone()].char_indices().peekable());
        while let Some((at, c)) = chars.next() {
            let at = segment.start + at;
            let after = chars.peek().map(|(_, c)| *c);
            let rest = &self.text[at..segment.end];
            if c == '_' {
                if at > from {
                    parts.push(from..at);
                }
                from = at + 1;
            } else if at > from && is_boundary(before, c, after) && !is_plural_end(before, rest) {
                parts.push(from..at);
                from = at;
            }
            before = Some(c);
        }
        if segment.end > from {
            parts.push(from..segment.end);
        }
        let is_split = parts.len() > 1;
        for part in parts {
            self.emit(TermKind::Word, part);
        }
        if is_split {
            self.emit(TermKind::Whole, segment);
        }
    }

    fn emit(&mut self, kind: TermKind, range: Range<usize>) {
        self.term.clear();
        for c in self.text[range.clone()].chars() {
            if self.term.len() >= MAX_TERM_BYTES {
                break;
            }
            match c {
                ',' => {}
                '\\' => self.term.push('/'),
                _ => push_folded(c, &mut self.term),
            }
        }
        if !self.term.is_empty() {
            (self.visit)(Term {
                kind,
                text: &self.term,
                range,
            });
        }
    }
}

/// Says whether the last capital of an acronym and its plural follow: `APIs`, `getURLs`.
fn is_plural_end(before: Option<char>, rest: &str) -> bool {
    let mut rest = rest.chars().skip(1);
    before.is_some_and(char::is_uppercase)
        && rest.next() == Some('s')
        && !rest.next().is_some_and(char::is_lowercase)
}

/// Says whether a new part of an identifier begins at `c`: `userName`, `HTTPServer`.
fn is_boundary(before: Option<char>, c: char, after: Option<char>) -> bool {
    let Some(before) = before.filter(|_| c.is_uppercase()) else {
        return false;
    };
    !before.is_uppercase() || after.is_some_and(char::is_lowercase)
}
