//! Redacts the transcript that a task was imported from (`imported.jsonl`).
//!
//! Its pieces are cut at the messages, so few of them are JSON by themselves. They are joined to whole records
//! first, with a string in the place of each message: only then is it known where a name, a text or a number
//! begins and ends.

use std::borrow::Cow;
use std::collections::HashMap;

use infold_wire::Json;
use infold_wire::redact::{RedactedMatches, redact_data, redact_fragment, redact_record};
use infold_wire::transcript::TranscriptLayout;
use memchr::memmem;

use super::Find;
use crate::imported::{ImportedPiece, decode_line, encode_bytes};

/// The most bytes of a line of text in a document that is rewritten.
const MAX_PIECE_BYTES: usize = 1 << 20;

/// Lines of `imported.jsonl` that hold whole records together.
pub struct Batch {
    layout: TranscriptLayout,
    lines: Vec<Vec<u8>>,
}

/// A rewritten batch.
#[derive(Default)]
pub struct RewrittenBatch {
    /// Its lines.
    pub lines: Vec<Vec<u8>>,
    /// Whether they differ from the old ones.
    pub is_changed: bool,
    /// How many matches were left in ids, types, names and positions.
    pub left: usize,
}

impl Batch {
    pub fn new(layout: TranscriptLayout) -> Batch {
        Batch {
            layout,
            lines: Vec::new(),
        }
    }

    /// Adds a line; returns whether the records in it are whole now.
    ///
    /// A document is whole at the end of the file.
    pub fn add(&mut self, line: &[u8]) -> bool {
        self.lines.push(line.to_vec());
        match decode_line(line) {
            Some(ImportedPiece::Bytes(bytes)) => {
                matches!(
                    self.layout,
                    TranscriptLayout::Lines | TranscriptLayout::Text
                ) && bytes.ends_with(b"\n")
            }
            Some(ImportedPiece::End(_)) => true,
            _ => false,
        }
    }

    /// Rewrites the lines, and drops them.
    pub fn rewrite(&mut self, marker: &str, find: Find<'_>) -> RewrittenBatch {
        let lines = std::mem::take(&mut self.lines);
        let joined = Joined::new(&lines);
        let mut redactor = Redactor {
            placeholder: &joined.placeholder,
            marker,
            find,
            left: 0,
        };
        let new = match self.layout {
            TranscriptLayout::Lines => by_lines(&joined.text, |line| redactor.json(line)),
            TranscriptLayout::Text => by_lines(&joined.text, |line| redactor.markdown(line)),
            TranscriptLayout::Array | TranscriptLayout::Objects(_) => redactor.json(&joined.text),
        };
        let left = redactor.left;
        let new = new.map(|new| joined.split(&new, self.layout));
        RewrittenBatch {
            is_changed: new.is_some(),
            lines: new.unwrap_or(lines),
            left,
        }
    }
}

/// The bytes of a transcript that lines hold, with a placeholder for each line that holds something else.
struct Joined<'a> {
    text: Vec<u8>,
    /// A string that stands nowhere else in the text.
    placeholder: Vec<u8>,
    /// For each placeholder, the text before it that is not in the transcript, and the line.
    others: Vec<(&'static [u8], &'a [u8])>,
    /// The line that ends the file.
    end: Option<&'a [u8]>,
}

impl<'a> Joined<'a> {
    fn new(lines: &'a [Vec<u8>]) -> Joined<'a> {
        let lines: Vec<_> = lines
            .iter()
            .map(|line| (line.as_slice(), decode_line(line)))
            .collect();
        let mut placeholder = b"\"\\u0000message\\u0000\"".to_vec();
        while lines.iter().any(|(_, kept)| match kept {
            Some(ImportedPiece::Bytes(bytes)) => memmem::find(bytes, &placeholder).is_some(),
            _ => false,
        }) {
            placeholder.splice(1..1, *b"-");
        }
        let mut joined = Joined {
            text: Vec::new(),
            placeholder,
            others: Vec::new(),
            end: None,
        };
        for (line, kept) in lines {
            // The end of a list is one more element of it.
            let before: &[u8] = match kept {
                Some(ImportedPiece::Bytes(bytes)) => {
                    joined.text.extend(bytes);
                    continue;
                }
                Some(ImportedPiece::End(_)) => {
                    joined.end = Some(line);
                    continue;
                }
                Some(ImportedPiece::ListEnd(true)) => b",",
                Some(ImportedPiece::ListEnd(false) | ImportedPiece::Message(_)) | None => b"",
            };
            joined.text.extend_from_slice(before);
            joined.text.extend_from_slice(&joined.placeholder);
            joined.others.push((before, line));
        }
        joined
    }

    /// The lines that hold another text with the same placeholders.
    fn split(&self, text: &[u8], layout: TranscriptLayout) -> Vec<Vec<u8>> {
        let size = match layout {
            TranscriptLayout::Lines | TranscriptLayout::Text => usize::MAX,
            TranscriptLayout::Array | TranscriptLayout::Objects(_) => MAX_PIECE_BYTES,
        };
        let mut lines = Vec::new();
        let mut at = 0;
        for (before, line) in &self.others {
            let end = memmem::find(&text[at..], &self.placeholder);
            let end = end.map_or(text.len(), |found| at + found);
            let piece = &text[at..end];
            put_bytes(
                piece.strip_suffix(*before).unwrap_or(piece),
                size,
                &mut lines,
            );
            lines.push(line.to_vec());
            at = (end + self.placeholder.len()).min(text.len());
        }
        put_bytes(&text[at..], size, &mut lines);
        lines.extend(self.end.map(<[u8]>::to_vec));
        lines
    }
}

/// Adds lines that hold bytes, each of them about as many as `size`.
fn put_bytes(mut bytes: &[u8], size: usize, lines: &mut Vec<Vec<u8>>) {
    let is_inside_char = |byte: &u8| byte & 0xC0 == 0x80;
    while !bytes.is_empty() {
        let mut end = size.min(bytes.len());
        while bytes.get(end).is_some_and(is_inside_char) {
            end += 1;
        }
        lines.push(encode_bytes(&bytes[..end]).into_bytes());
        bytes = &bytes[end..];
    }
}

/// Redacts a text line by line; none if nothing changes.
fn by_lines(text: &[u8], mut redact: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let mut is_changed = false;
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let body = line.strip_suffix(b"\n").unwrap_or(line);
        let new = redact(body);
        is_changed |= new.is_some();
        out.extend_from_slice(new.as_deref().unwrap_or(body));
        out.extend_from_slice(&line[body.len()..]);
    }
    is_changed.then_some(out)
}

struct Redactor<'a> {
    placeholder: &'a [u8],
    marker: &'a str,
    find: Find<'a>,
    left: usize,
}

impl Redactor<'_> {
    /// A record or a document; none if nothing changes.
    fn json(&mut self, text: &[u8]) -> Option<Vec<u8>> {
        let text = match std::str::from_utf8(text) {
            Ok(_) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(String::from_utf8_lossy(text).into_owned().into_bytes()),
        };
        if let Ok(json) = Json::parse(&text) {
            let new = self.record(json.bytes())?;
            let range = json.range();
            return Some([&text[..range.start], &new, &text[range.end..]].concat());
        }
        // A torn line, or a document that several tasks share.
        self.tokens(&text, &closed_brackets(&text))
    }

    /// A whole value.
    fn record(&mut self, json: &[u8]) -> Option<Vec<u8>> {
        let find = &mut |text: &str| (self.find)(text);
        let new = redact_record(json, self.placeholder, self.marker, find).unwrap_or_default();
        let placeholders = |text: &[u8]| memmem::find_iter(text, self.placeholder).count();
        match &new.bytes {
            // A message may be part of a redacted value, such as reasoning.
            Some(bytes) if placeholders(bytes) != placeholders(json) => {
                self.tokens(json, &HashMap::new())
            }
            _ => self.take(new),
        }
    }

    fn take(&mut self, new: RedactedMatches) -> Option<Vec<u8>> {
        self.left += new.left;
        new.bytes
    }

    /// Rewrites a text that is not JSON as a whole: the values in it whose ends are in `closed`, and each other
    /// string, number and word.
    fn tokens(&mut self, text: &[u8], closed: &HashMap<usize, usize>) -> Option<Vec<u8>> {
        let mut is_changed = false;
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let value = closed.get(&at).map(|end| at..*end);
            let value = value.filter(|value| Json::parse(&text[value.clone()]).is_ok());
            let (end, new) = match (value, text[at]) {
                (Some(value), _) => (value.end, self.record(&text[value])),
                (None, b'"') => {
                    let end = string_end(text, at);
                    (end, self.string(&text[at..end]))
                }
                (None, byte) if is_of_scalar(byte) => {
                    let rest = text[at..].iter();
                    let end = at + rest.take_while(|byte| is_of_scalar(**byte)).count();
                    (end, self.scalar(&text[at..end]))
                }
                _ => (at + 1, None),
            };
            is_changed |= new.is_some();
            out.extend_from_slice(new.as_deref().unwrap_or(&text[at..end]));
            at = end;
        }
        is_changed.then_some(out)
    }

    /// A string, of which the end may be missing.
    fn string(&mut self, literal: &[u8]) -> Option<Vec<u8>> {
        if literal == self.placeholder {
            return None;
        }
        let find = &mut |text: &str| (self.find)(text);
        if let Ok(new) = redact_data(literal, self.marker, find) {
            return new.bytes;
        }
        let inside = String::from_utf8_lossy(&literal[1..]);
        let new = redact_fragment(&inside, self.marker, find)?;
        Some([b"\"", new.as_bytes()].concat())
    }

    fn scalar(&mut self, word: &[u8]) -> Option<Vec<u8>> {
        let find = &mut |text: &str| (self.find)(text);
        match redact_data(word, self.marker, find) {
            Ok(new) => new.bytes,
            // Half a number or half a word.
            Err(_) => {
                let word = String::from_utf8_lossy(word);
                Some(redact_fragment(&word, self.marker, find)?.into_bytes())
            }
        }
    }

    /// A line of aider's history. What it is read by stays.
    fn markdown(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        const HEADER: &str = "# aider chat started at ";
        let text = String::from_utf8_lossy(line);
        let heads = [HEADER, "####", ">"];
        let head = heads.into_iter().find(|head| text.starts_with(head));
        let head = head.unwrap_or_default();
        let is_time = |byte: u8| byte.is_ascii_digit() || b"-:. ".contains(&byte);
        let rest = &text[head.len()..];
        let head = if head == HEADER && rest.trim_end().bytes().all(is_time) {
            &text
        } else {
            head
        };
        let rest = &text[head.len()..];
        self.left += (self.find)(head).len();
        let new = redact_fragment(rest, self.marker, &mut |text| (self.find)(text))?;
        Some(format!("{head}{new}").into_bytes())
    }
}

/// Returns the positions of opening brackets that are closed again, each with the end of its value.
fn closed_brackets(text: &[u8]) -> HashMap<usize, usize> {
    let mut closed = HashMap::new();
    let mut open = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => {
                at = string_end(text, at);
                continue;
            }
            b'{' | b'[' => open.push(at),
            b'}' | b']' => {
                if let Some(start) = open.pop() {
                    closed.insert(start, at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    closed
}

/// Where the string ends that starts at `start`; the end of the text if it is cut off.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns whether a byte may stand in a number or in a word outside of strings.
fn is_of_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-._$".contains(&byte) || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use infold_wire::quote;
    use proptest::prelude::*;

    fn hits(word: &'static str) -> impl Fn(&str) -> Vec<std::ops::Range<usize>> {
        move |text| {
            let found = text.match_indices(word);
            found.map(|(at, hit)| at..at + hit.len()).collect()
        }
    }

    /// The transcript after a redaction, with `<n>` where message n stands, and how many matches were left.
    fn redacted(layout: TranscriptLayout, pieces: &[&str], word: &'static str) -> (String, usize) {
        let mut batch = Batch::new(layout);
        let find = hits(word);
        let (mut out, mut left) = (String::new(), 0);
        let mut take = |batch: &mut Batch| {
            let rewritten = batch.rewrite("R", &find);
            left += rewritten.left;
            for line in rewritten.lines {
                match decode_line(&line).expect("a line") {
                    ImportedPiece::Bytes(bytes) => out += &String::from_utf8_lossy(&bytes),
                    ImportedPiece::Message(seq) => out += &format!("<{seq}>"),
                    ImportedPiece::ListEnd(_) => out += "<end>",
                    ImportedPiece::End(_) => {}
                }
            }
        };
        for piece in pieces {
            let line = if piece.starts_with("{\"seq\"") || piece.starts_with("{\"list\"") {
                (*piece).to_owned()
            } else {
                format!("{{\"text\":{}}}", quote(piece))
            };
            if batch.add(line.as_bytes()) {
                take(&mut batch);
            }
        }
        batch.add(b"{\"messages\":1,\"events\":0}");
        take(&mut batch);
        (out, left)
    }

    #[test]
    fn a_record_around_a_message_stays_json() {
        let pieces = [
            r#"{"type":"user","uuid":"48231","message":"#,
            r#"{"seq":1}"#,
            ",\"toolUseResult\":{\"port\":48231,\"ok\":true}}\n",
        ];
        let (out, left) = redacted(TranscriptLayout::Lines, &pieces, "48231");
        assert_eq!(
            out,
            "{\"type\":\"user\",\"uuid\":\"48231\",\"message\":<1>,\"toolUseResult\":{\"port\":\"R\",\"ok\":true}}\n"
        );
        assert_eq!(left, 1);
    }

    #[test]
    fn a_document_is_looked_at_as_a_whole() {
        let pieces = [
            r#"{"system":"be x","messages":["#,
            r#"{"seq":1}"#,
            ",",
            r#"{"seq":2}"#,
            r#"{"list":"filled"}"#,
            r#"],"note":{"x":[1,"x","#,
            r#""a\"x"]}}"#,
        ];
        let (out, _) = redacted(TranscriptLayout::Objects("messages"), &pieces, "x");
        assert_eq!(
            out,
            r#"{"system":"be R","messages":[<1>,<2><end>],"note":{"R":[1,"R","a\"R"]}}"#
        );
    }

    #[test]
    fn a_piece_of_a_document_and_a_torn_line_keep_their_structure() {
        let (out, _) = redacted(
            TranscriptLayout::Array,
            &["[", r#"{"seq":1}"#, r#",{"type":"x","a":"x"}"#],
            "x",
        );
        assert_eq!(out, r#"[<1>,{"type":"x","a":"R"}"#);
        let (out, _) = redacted(
            TranscriptLayout::Lines,
            &["{\"a\":\"x\"}\n", r#"{"a":1x,"b":"x\"x\u00"#],
            "x",
        );
        assert_eq!(out, "{\"a\":\"R\"}\n{\"a\":1R,\"b\":\"R\\\"R\\u00");
    }

    #[test]
    fn a_message_in_what_would_go_whole_stays() {
        let pieces = [
            r#"{"type":"thinking","text":"x","message":"#,
            r#"{"seq":1}"#,
            "}\n",
        ];
        let (out, _) = redacted(TranscriptLayout::Lines, &pieces, "x");
        assert!(out.contains("<1>") && !out.contains("\"x\""), "{out}");
    }

    #[test]
    fn markdown_keeps_its_headings() {
        let pieces = [
            "# aider chat started at 2026-01-01 10:00:00\n\n#### do 2026\n",
            "> 2026\ndone in 2026\n",
        ];
        let (out, left) = redacted(TranscriptLayout::Text, &pieces, "2026");
        assert_eq!(
            out,
            "# aider chat started at 2026-01-01 10:00:00\n\n#### do R\n> R\ndone in R\n"
        );
        assert_eq!(left, 1);
    }

    proptest! {
        /// However a transcript is cut, the remains of its lines are JSON if the lines were.
        #[test]
        fn json_stays_json(cut in 0usize..90, word in prop::sample::select(vec!["a", "\"", "\\", "1", ",", ":", "{", "n", "true", "u00"])) {
            let text = r#"{"a":"1a\"n\\u00e9","b":[1,-2.5e1,true,null,{"n":"\u00e9"}],"type":"a","c":"{\"a\":1}"}"#;
            let cut = cut.min(text.len());
            let (out, _) = redacted(TranscriptLayout::Lines, &[&text[..cut], &format!("{}\n", &text[cut..])], word);
            prop_assert!(Json::parse(out.trim().as_bytes()).is_ok(), "{}", out);
        }
    }
}
