//! Redacts messages, wholly or the matches of a search.
//!
//! The form of a message, its role, and the ids and names of calls stay, so that it still pairs with others.
//!
//! ```
//! use infold_wire::redact::{redact_matches, redact_message};
//!
//! let message = br#"{"role":"user","content":"the key is \u0068unter2, keep it"}"#;
//! let mut find = |text: &str| text.match_indices("hunter2").map(|(at, hit)| at..at + hit.len()).collect();
//! let redacted = redact_matches(message, "[redacted]", &mut find)?;
//! assert_eq!(redacted.bytes.unwrap(), br#"{"role":"user","content":"the key is [redacted], keep it"}"#);
//! assert_eq!(redact_message(message, "[redacted]")?, br#"{"role":"user","content":"[redacted]"}"#);
//! # Ok::<(), infold_wire::MessageError>(())
//! ```

mod escapes;
mod matches;
mod media;
mod message;
mod parts;
mod signatures;
mod structure;

use std::ops::Range;

pub(crate) use escapes::{EscapedReplacement, Unescaped, replace_at_levels};
pub use matches::{
    redact_data, redact_fragment, redact_json, redact_matches, redact_record, redact_text,
    visit_texts,
};
pub use message::redact_message;
pub use parts::{MessagePart, message_parts};

/// Finds the ranges of bytes to replace in a text, in order and without overlap.
pub type FindMatches<'a> = dyn FnMut(&str) -> Vec<Range<usize>> + 'a;

/// The result of replacing the matches of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactedMatches {
    /// The new bytes; none if nothing was found.
    pub bytes: Option<Vec<u8>>,
    /// The number of replaced matches.
    pub matches: usize,
    /// The number of matches that were left because they pair or place messages: ids, roles, types, names and
    /// positions.
    pub left: usize,
}

#[cfg(test)]
mod tests;
