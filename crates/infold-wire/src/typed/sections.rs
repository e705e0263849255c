//! Parts of a text that are known by the words they start and end with.

use memchr::memmem;

use super::table::{At, NEVER, SECTIONS, Section, Torn};

/// A part that the agent put in.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub at: usize,
    pub end: usize,
}

/// Finds parts at the front of what is left of a text.
#[derive(Debug, Default)]
pub struct Fronts {
    /// The sections whose end is nowhere in what was left, by bit: it is not looked for again.
    endless: u64,
}

impl Fronts {
    /// Returns where the part ends that `rest` starts with. Takes what is left of one text only.
    pub fn end(&mut self, rest: &str) -> Option<usize> {
        for (index, (_, section)) in SECTIONS.iter().enumerate() {
            let bit = 1 << index;
            let starts = section.at == At::Front && rest.starts_with(section.start);
            if !starts || self.endless & bit != 0 {
                continue;
            }
            match end(section, rest, 0) {
                Some(end) => return Some(end),
                None => self.endless |= bit,
            }
        }
        None
    }
}

/// Returns the parts that start somewhere in a text, in order.
pub fn parts(text: &str) -> Vec<Part> {
    let mut found = Vec::new();
    let sections = SECTIONS.iter().map(|(_, section)| section);
    for section in sections.filter(|section| section.at == At::Line) {
        let mut from = 0;
        for at in memmem::find_iter(text.as_bytes(), section.start) {
            let starts_line = at == 0 || text.as_bytes()[at - 1] == b'\n';
            if at < from || !starts_line {
                continue;
            }
            // A part without an end has none further back either.
            let Some(end) = end(section, text, at) else {
                break;
            };
            found.push(Part { at, end });
            from = end;
        }
    }
    found.sort_unstable_by_key(|part| part.at);
    found
}

fn end(section: &Section, text: &str, at: usize) -> Option<usize> {
    // The words it ends with may be the last of those it starts with.
    let from = at + section.start.len();
    if section.start.ends_with(section.end) {
        return Some(from);
    }
    if section.end == NEVER {
        return Some(text.len());
    }
    match memmem::find(&text.as_bytes()[from..], section.end.as_bytes()) {
        Some(found) => Some(from + found + section.end.len()),
        None if section.torn == Torn::ToEnd => Some(text.len()),
        None => None,
    }
}
