//! Takes what a message says out of it, all or the matches of a search, and leaves a message of the same form behind:
//! role, ids and names of calls stay, so whatever pairs with it still does.
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

mod replace;
mod whole;

use std::ops::Range;

pub use replace::{
    redact_data, redact_fragment, redact_json, redact_matches, redact_record, redact_text, texts,
};
pub use whole::redact_message;

/// Finds what is to be replaced in a text: ranges of its bytes, in order and apart.
pub type Find<'a> = dyn FnMut(&str) -> Vec<Range<usize>> + 'a;

/// What came of replacing the matches of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    /// The new bytes; none if nothing was found.
    pub bytes: Option<Vec<u8>>,
    /// How many matches were replaced.
    pub matches: usize,
    /// How many were left, because they stand in what messages are paired by or placed: ids, roles, types, names and positions.
    pub left: usize,
}

#[cfg(test)]
mod tests;
