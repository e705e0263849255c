//! Finds the sections of a text that are recognised by the words they start and end with.

use std::ops::Range;

use memchr::memmem;

use super::markers::{MarkedSection, SECTIONS};

/// Finds sections at the front of the rest of a text.
#[derive(Debug, Default)]
pub struct FrontSections {
    /// The sections whose end is missing in the rest, by bit, so that it is not searched for again.
    without_end: u64,
}

impl FrontSections {
    /// Returns where the section ends that `rest` starts with.
    pub fn find_end(&mut self, rest: &str) -> Option<usize> {
        for (index, section) in SECTIONS.iter().enumerate() {
            let bit = 1 << index;
            let starts = section.at_front && rest.starts_with(section.start);
            if !starts || self.without_end & bit != 0 {
                continue;
            }
            match section.find_end(rest, 0) {
                Some(end) => return Some(end),
                None => self.without_end |= bit,
            }
        }
        None
    }
}

/// Returns the sections that start on any line of a text, in order.
pub fn line_sections(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for section in SECTIONS.iter().filter(|section| !section.at_front) {
        let mut from = 0;
        for at in memmem::find_iter(text.as_bytes(), section.start) {
            let starts_line = at == 0 || text.as_bytes()[at - 1] == b'\n';
            if at < from || !starts_line {
                continue;
            }
            // If this section has no end, those behind it have none either.
            let Some(end) = section.find_end(text, at) else {
                break;
            };
            found.push(at..end);
            from = end;
        }
    }
    found.sort_unstable_by_key(|section| section.start);
    found
}

impl MarkedSection {
    fn find_end(&self, text: &str, at: usize) -> Option<usize> {
        let from = at + self.start.len();
        let Some(end) = self.end else {
            return Some(text.len());
        };
        // The end may be the last words of the start.
        if self.start.ends_with(end) {
            return Some(from);
        }
        let found = memmem::find(&text.as_bytes()[from..], end.as_bytes());
        let found = found.map(|found| from + found + end.len());
        found.or(self.may_be_open.then_some(text.len()))
    }
}
