//! Replaces matches in texts and JSON values, and counts them.

use infold_wire::redact::{RedactedMatches, redact_data, redact_json, redact_text};

use super::Find;
use crate::event::Extent;

/// Replaces what is found in texts of every kind, and counts those that lost something.
pub(super) struct TextRedactor<'a> {
    pub find: Find<'a>,
    pub marker: String,
    pub changed: u64,
    /// How many matches were left. Words of whole messages are no matches.
    pub left: usize,
    counts_left: bool,
}

impl<'a> TextRedactor<'a> {
    pub fn new(find: Find<'a>, marker: String, extent: Extent) -> TextRedactor<'a> {
        TextRedactor {
            find,
            marker,
            changed: 0,
            left: 0,
            counts_left: extent == Extent::Matches,
        }
    }

    pub fn take_left(&mut self, left: usize) {
        if self.counts_left {
            self.left += left;
        }
    }

    /// Counts the matches in a text that stays.
    pub fn leave(&mut self, text: &str) {
        if self.counts_left {
            self.left += (self.find)(text).len();
        }
    }

    /// A text without what goes; none if it has nothing of it.
    pub fn replaced(&mut self, text: &str) -> Option<String> {
        let new = redact_text(text, &self.marker, &mut |text| (self.find)(text));
        self.changed += u64::from(new.is_some());
        new
    }

    /// A JSON value that is made up like messages are.
    pub fn json(&mut self, json: &str) -> Option<String> {
        let new = redact_json(json.as_bytes(), &self.marker, &mut |text| (self.find)(text));
        self.take(new.ok()?)
    }

    /// A JSON value of which any text may be anything.
    pub fn values(&mut self, json: &str) -> Option<String> {
        let new = redact_data(json.as_bytes(), &self.marker, &mut |text| (self.find)(text));
        self.take(new.ok()?)
    }

    fn take(&mut self, new: RedactedMatches) -> Option<String> {
        self.take_left(new.left);
        let new = String::from_utf8(new.bytes?).ok()?;
        self.changed += 1;
        Some(new)
    }
}
