//! Lines of redacted texts, known by their digests: they are recognised in texts that a client joined, split or broke otherwise.

use std::collections::HashMap;
use std::ops::Range;

use infold_wire::Json;
use infold_wire::digest::Digest;

use crate::redacted_values::{checksum, each_window, member_number};
use crate::stored;

/// Shorter lines occur by chance. White space does not count.
const MIN_LINE_BYTES: usize = 12;

/// A line of a redacted text, without the line. White space does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedLine {
    /// How long it was.
    pub(crate) bytes: usize,
    /// A checksum of its first bytes: only texts that begin with the same one are digested. It has so few bits
    /// that it reveals little.
    pub(crate) start: u16,
    pub(crate) digest: Digest,
}

impl RedactedLine {
    /// Returns the digest of a line; none if it is too short for that, or was redacted before.
    pub(crate) fn of(line: &str) -> Option<RedactedLine> {
        let unspaced = UnspacedText::new(line);
        let text = unspaced.text.as_bytes();
        let first = text.get(..MIN_LINE_BYTES)?;
        if unspaced.text.starts_with("[redactede") {
            return None;
        }
        Some(RedactedLine {
            bytes: text.len(),
            start: fold_sum(checksum(first)),
            digest: digest(text),
        })
    }

    pub(crate) fn encode(&self) -> String {
        let RedactedLine { bytes, start, .. } = self;
        let digest = stored::hex(Some(self.digest));
        format!(r#"{{"bytes":{bytes},"start":{start},"digest":"{digest}"}}"#)
    }

    pub(crate) fn decode(json: Json<'_>) -> Option<RedactedLine> {
        Some(RedactedLine {
            bytes: member_number(json, "bytes").filter(|bytes| *bytes >= MIN_LINE_BYTES)?,
            start: member_number(json, "start")?,
            digest: stored::unhex(&json.get("digest")?.text()?)??,
        })
    }
}

fn fold_sum(sum: u32) -> u16 {
    (sum ^ (sum >> 16)) as u16
}

fn digest(unspaced: &[u8]) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("infold redacted line");
    hasher.update(unspaced);
    let mut digest = Digest::default();
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}

/// Returns the lines of a text that hold some of these ranges.
pub(crate) fn lines_with<'t>(
    text: &'t str,
    ranges: &[Range<usize>],
) -> impl Iterator<Item = &'t str> {
    let mut end = 0;
    text.split_inclusive('\n').filter(move |line| {
        let start = end;
        end += line.len();
        ranges
            .iter()
            .any(|range| range.start < end && range.end > start)
    })
}

/// Lines of redacted texts, each with its owner.
#[derive(Clone, Debug)]
pub(crate) struct LineIndex<T> {
    by_start: HashMap<u16, Vec<(RedactedLine, T)>>,
}

impl<T> Default for LineIndex<T> {
    fn default() -> LineIndex<T> {
        LineIndex {
            by_start: HashMap::new(),
        }
    }
}

impl<T> LineIndex<T> {
    pub fn add(&mut self, line: RedactedLine, of: T) {
        let same = self.by_start.entry(line.start).or_default();
        same.push((line, of));
    }

    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Calls `take` with each place in a text where one of the lines stands, whatever white space the text has.
    pub fn find(&self, text: &str, take: &mut dyn FnMut(Range<usize>, &T)) {
        if self.is_empty() {
            return;
        }
        let unspaced = UnspacedText::new(text);
        let bytes = unspaced.text.as_bytes();
        each_window(bytes, MIN_LINE_BYTES, |start, sum| {
            for (line, of) in self.by_start.get(&fold_sum(sum)).into_iter().flatten() {
                let range = start..start + line.bytes;
                let found = bytes.get(range.clone());
                if found.is_some_and(|found| digest(found) == line.digest) {
                    take(unspaced.original(&range), of);
                }
            }
        });
    }
}

/// A text without white space, and where it stood.
pub(crate) struct UnspacedText {
    pub text: String,
    /// Where each piece begins, in this text and in the original.
    pieces: Vec<(usize, usize)>,
}

impl UnspacedText {
    pub fn new(original: &str) -> UnspacedText {
        let mut text = String::with_capacity(original.len());
        let mut pieces = Vec::new();
        let mut is_in_piece = false;
        for (at, char) in original.char_indices() {
            if char.is_whitespace() {
                is_in_piece = false;
                continue;
            }
            if !is_in_piece {
                pieces.push((text.len(), at));
            }
            is_in_piece = true;
            text.push(char);
        }
        UnspacedText { text, pieces }
    }

    /// Returns where a range that is not empty stood in the original.
    fn original(&self, range: &Range<usize>) -> Range<usize> {
        let offset = |at: usize| {
            let next = self.pieces.partition_point(|(start, _)| *start <= at);
            let (start, original) = next.checked_sub(1).map_or((0, 0), |at| self.pieces[at]);
            original + (at - start)
        };
        offset(range.start)..offset(range.end - 1) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: &[&str], text: &str) -> Vec<String> {
        let mut index = LineIndex::default();
        for line in lines {
            index.add(RedactedLine::of(line).expect("a line"), ());
        }
        let mut found = Vec::new();
        index.find(text, &mut |range, ()| found.push(text[range].to_owned()));
        found
    }

    #[test]
    fn lines_are_found_whatever_white_space_a_text_has() {
        let lines = ["my key is größer", "another line of it"];
        assert_eq!(
            found(&lines, "so:my key\r\nis  größer.end"),
            ["my key\r\nis  größer"]
        );
        assert_eq!(found(&lines, "anotherlineofit").len(), 1);
        assert!(found(&lines, "my key is größe").is_empty() && found(&lines, "").is_empty());
    }

    #[test]
    fn short_lines_and_redacted_ones_are_not_kept() {
        assert_eq!(RedactedLine::of("short   line"), None);
        assert_eq!(RedactedLine::of("[redacted e12] and more"), None);
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = RedactedLine::of("the key is hunter2").expect("a line");
        let written = line.encode();
        assert!(!written.contains("hunter2"));
        let json = Json::parse(written.as_bytes()).expect("JSON");
        assert_eq!(RedactedLine::decode(json), Some(line));
    }

    #[test]
    fn the_lines_of_a_match_are_those_that_it_touches() {
        let text = "one\ntwo\nthree";
        let lines: Vec<&str> = lines_with(text, &[1..2, 8..9]).collect();
        assert_eq!(lines, ["one\n", "three"]);
        let lines: Vec<&str> = lines_with(text, std::slice::from_ref(&(2..5))).collect();
        assert_eq!(lines, ["one\n", "two\n"]);
    }
}
