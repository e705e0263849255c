//! The lines of a summary and their sentences, so that one can be dropped without changing the bytes of the others.

use std::ops::Range;

use crate::sentence::{KeepWhole, ranges};

/// One line of a summary, as ranges of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryLine {
    /// The whole line, with the line break.
    pub range: Range<usize>,
    /// The start of the words, behind indentation and the marks of a list, heading or quotation.
    pub body: usize,
    pub mark: LineMark,
    /// The sentences, each with the space behind it; together they are the line from `body` on.
    pub sentences: Vec<Range<usize>>,
    /// Whether the line is in a fenced block.
    pub fenced: bool,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineMark {
    Plain,
    Item,
    Heading,
}

/// Splits a text into lines and those into sentences.
pub fn split_lines(text: &str) -> Vec<SummaryLine> {
    let mut out = Vec::new();
    let (mut at, mut fenced) = (0, false);
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let is_fence = line.trim_start().starts_with("```");
        let (marks, mark) = read_marks(line);
        let body = range.start + marks;
        // A fully quoted request is kept or dropped as a whole.
        let is_quotation = super::quotation::cited_seq(&line[marks..]).is_some();
        let sentences = if fenced || is_fence || is_quotation {
            vec![Range {
                start: body,
                end: range.end,
            }]
        } else {
            let parts = ranges(&line[marks..], KeepWhole::Quotations).into_iter();
            parts
                .map(|part| body + part.start..body + part.end)
                .collect()
        };
        out.push(SummaryLine {
            range,
            body,
            mark,
            sentences,
            fenced: fenced || is_fence,
        });
        fenced ^= is_fence;
    }
    out
}

/// Returns the length of the indentation and marks that a line starts with, and its kind.
fn read_marks(line: &str) -> (usize, LineMark) {
    let mut rest = line.trim_start_matches([' ', '\t', '>']);
    let mut mark = LineMark::Plain;
    let heading = rest.trim_start_matches('#');
    if heading.len() < rest.len() && heading.starts_with(' ') {
        (rest, mark) = (heading.trim_start(), LineMark::Heading);
    }
    let bullet = rest.strip_prefix(['-', '*', '•', '+', '–', '・', '·']);
    if let Some(item) = bullet.filter(|item| item.starts_with([' ', '\t'])) {
        (rest, mark) = (item.trim_start(), LineMark::Item);
    }
    let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if digits.len() < rest.len() && rest.len() - digits.len() < 4 {
        let item = digits.strip_prefix(['.', ')', '、']);
        if let Some(item) = item.filter(|item| item.starts_with([' ', '\t'])) {
            rest = item.trim_start();
            if mark != LineMark::Heading {
                mark = LineMark::Item;
            }
        }
    }
    for check in ["[ ] ", "[x] ", "[-] ", "[X] "] {
        rest = rest.strip_prefix(check).unwrap_or(rest);
    }
    (line.len() - rest.len(), mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_their_marks_and_lose_no_byte() {
        let text = "## Goal\r\n- [ ] One. Two.\n  3. **Three**: x\n```\ncode. More.\n```\n\nlast";
        let lines = split_lines(text);
        let marks: Vec<LineMark> = lines.iter().map(|line| line.mark).collect();
        assert_eq!(
            marks[..3],
            [LineMark::Heading, LineMark::Item, LineMark::Item]
        );
        assert_eq!(&text[lines[1].body..lines[1].range.end], "One. Two.\n");
        assert!(lines[4].fenced && lines[4].sentences.len() == 1 && !lines[7].fenced);
        let mut at = 0;
        for line in &lines {
            assert_eq!(line.range.start, at);
            let first = line
                .sentences
                .first()
                .map_or(line.body, |range| range.start);
            assert_eq!(first, line.body);
            assert!(
                line.sentences
                    .windows(2)
                    .all(|two| two[0].end == two[1].start)
            );
            assert_eq!(
                line.sentences
                    .last()
                    .map_or(line.range.end, |range| range.end),
                line.range.end
            );
            at = line.range.end;
        }
        assert_eq!(at, text.len());
    }
}
