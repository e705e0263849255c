//! Redacts texts of every kind.

use std::path::PathBuf;

use infold_wire::redact::{RedactedMatches, redact_data, redact_json, redact_text};

use super::Find;
use crate::event::Extent;
use crate::frame::redact_member;
use crate::redacted_name::{is_redacted_name, redacted_name};

/// Redacts texts of every kind, and counts those that changed.
pub struct TextRedactor<'a> {
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

    /// Redacts the path of a workspace, whose checkpoints go with it.
    pub fn path(&mut self, path: &mut PathBuf) {
        if let Some(redacted) = self.replaced(&path.to_string_lossy()) {
            *path = redacted.into();
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

    /// Returns the redacted form of a text; none if it has no match.
    pub fn replaced(&mut self, text: &str) -> Option<String> {
        let new = redact_text(text, &self.marker, &mut |text| (self.find)(text));
        self.changed += u64::from(new.is_some());
        new
    }

    /// Returns the digest of a name with a match: a client may give the name again, and it is recognised by the
    /// digest.
    pub fn name(&mut self, name: &str) -> Option<String> {
        if is_redacted_name(name) {
            return None;
        }
        self.replaced(name).map(|_| redacted_name(name))
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

    /// A member of a frame.
    pub fn member(&mut self, name: &str, json: &str) -> Option<String> {
        let mut find = |text: &str| (self.find)(text);
        let new = redact_member(name, json.as_bytes(), &self.marker, &mut find);
        self.take(new.ok()?)
    }

    fn take(&mut self, new: RedactedMatches) -> Option<String> {
        self.take_left(new.left);
        let new = String::from_utf8(new.bytes?).ok()?;
        self.changed += 1;
        Some(new)
    }
}

/// Returns the marker that replaces a redacted text.
pub fn marker(event: u64) -> String {
    format!("[redacted e{event}]")
}
