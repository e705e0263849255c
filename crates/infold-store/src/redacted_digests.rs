//! The digests by which copies of what was redacted are recognised.

use std::collections::{BTreeSet, HashMap};

use infold_log::EventId;
use infold_wire::MessageError;
use infold_wire::digest::Digest;
use infold_wire::redact::visit_texts;
use uuid::Uuid;

/// Shorter texts occur by chance, and their digests could be guessed.
const MIN_CONTENT_BYTES: usize = 6;

/// How many digests of texts an event keeps.
pub(crate) const MAX_CONTENTS: usize = 4096;

/// The digests of what was redacted in a contexts directory, and the events that say so.
#[derive(Clone, Debug, Default)]
pub struct RedactedDigests {
    events: HashMap<Digest, Vec<EventKey>>,
}

/// A task, and one of its events.
pub(crate) type EventKey = (Uuid, EventId);

impl FromIterator<(Digest, Uuid, EventId)> for RedactedDigests {
    fn from_iter<I: IntoIterator<Item = (Digest, Uuid, EventId)>>(rows: I) -> RedactedDigests {
        let mut all = RedactedDigests::default();
        for (digest, task, event) in rows {
            all.events.entry(digest).or_default().push((task, event));
        }
        all
    }
}

impl RedactedDigests {
    /// Says whether nothing was redacted.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn of(&self, digest: &Digest) -> &[EventKey] {
        self.events.get(digest).map_or(&[], Vec::as_slice)
    }
}

/// Returns the digest by which a text of a redacted message is recognised; none if it is too short for that, or was redacted before.
pub(crate) fn content_digest(text: &str) -> Option<Digest> {
    let text = text.trim();
    if text.len() < MIN_CONTENT_BYTES || text.starts_with("[redacted e") {
        return None;
    }
    let mut hasher = blake3::Hasher::new_derive_key("infold redacted content");
    hasher.update(text.as_bytes());
    let mut digest = Digest::default();
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Some(digest)
}

/// Adds the digests of the texts of a message that pass.
pub(crate) fn add_contents(
    message: &[u8],
    is_meant: &dyn Fn(&str) -> bool,
    contents: &mut BTreeSet<Digest>,
) -> Result<(), MessageError> {
    visit_texts(message, &mut |text| {
        if contents.len() < MAX_CONTENTS && is_meant(text) {
            contents.extend(content_digest(text));
        }
    })
}
