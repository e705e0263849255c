//! Redactions of which a client may have sent copies.

use std::collections::{BTreeSet, HashMap};

use infold_log::{EventId, Seq};
use infold_wire::MessageError;
use infold_wire::digest::{self, Digest};
use infold_wire::redact::{redact_matches, redact_message};

use super::sent::MessageKey;
use crate::event::{Extent, RedactLine, RedactedForms};
use crate::redacted_lines::LineIndex;
use crate::redacted_values::RedactedValues;
use crate::stored::Original;
use crate::{Log, LogError, redact};

/// How far a message is looked for that has content, before or behind another.
pub const MAX_NEIGHBOUR_DISTANCE: u64 = 4;

/// A redaction of which the client may have sent copies.
pub struct CandidateEvent {
    pub log: Log,
    pub line: RedactLine,
    /// Its task shares messages with the one that is written to.
    pub is_related: bool,
    /// Some of its messages may be copied: those that the log has already are known as such.
    pub copies: Vec<(Seq, Original)>,
    pub is_found: bool,
    /// The messages by the digests of their contents. Earlier versions did not record which message it was.
    pub contents: HashMap<Digest, Vec<Option<Seq>>>,
    pub lines: LineIndex<Seq>,
}

impl CandidateEvent {
    pub fn new(log: Log, line: RedactLine, is_related: bool) -> CandidateEvent {
        CandidateEvent {
            copies: line.messages.clone(),
            is_found: false,
            contents: HashMap::new(),
            lines: LineIndex::default(),
            log,
            line,
            is_related,
        }
    }

    /// Says whether a copy of one of its messages is expected in the task that is written to.
    pub fn is_expected(&self) -> bool {
        self.is_related || self.is_found
    }

    /// Leaves out the messages that are known to be there already.
    pub fn keep_copies(&mut self, is_known: impl Fn(Seq, Original, &[Digest]) -> bool) {
        let contents = |seq: Seq| self.forms(seq).map_or(&[][..], |forms| &forms.contents);
        let copies = self.copies.iter().copied();
        let copies = copies.filter(|(seq, digest)| !is_known(*seq, *digest, contents(*seq)));
        self.copies = copies.collect();
        self.index_forms();
    }

    fn index_forms(&mut self) {
        let seqs: BTreeSet<Seq> = self.copies.iter().map(|(seq, _)| *seq).collect();
        let forms = self.line.forms.iter();
        for forms in forms.filter(|forms| seqs.contains(&forms.seq)) {
            for digest in &forms.contents {
                let same = self.contents.entry(*digest).or_default();
                same.push(Some(forms.seq));
            }
            for line in &forms.lines {
                self.lines.add(line.clone(), forms.seq);
            }
        }
        for digest in &self.line.contents {
            self.contents.entry(*digest).or_default().push(None);
        }
    }

    /// Returns the digests and lines by which copies of a message are recognised.
    pub fn forms(&self, seq: Seq) -> Option<&RedactedForms> {
        self.line.forms.iter().find(|forms| forms.seq == seq)
    }

    /// Returns the key of the nearest of these messages that has content. Damage in another task does not keep
    /// this one from being recorded.
    pub fn key_of(&self, seqs: impl IntoIterator<Item = u64>) -> MessageKey {
        let mut key = first_key(&self.log, seqs).unwrap_or_default();
        if let Some(forms) = key.seq.and_then(|seq| self.forms(seq)) {
            let contents = forms.contents.iter().map(|digest| (*digest, 0));
            key.parts.extend(contents);
        }
        key
    }

    /// Returns the form in which a copy of a redacted message is recorded.
    pub fn redacted(
        &self,
        body: &[u8],
        (event, seq): (EventId, Seq),
        marker: &str,
    ) -> Result<Vec<u8>, MessageError> {
        if self.line.extent == Extent::Matches {
            let values: RedactedValues = self.line.values.iter().cloned().collect();
            let without = |marker: &str| {
                let redacted = redact_matches(body, marker, &mut |text| values.find(text));
                redacted.map(|redacted| redacted.bytes)
            };
            // Short texts have no digests, so the remaining message must equal the redacted one.
            let then = self.log.message(seq).ok();
            let then = then.and_then(|then| digest::message_digest(&then).ok());
            let again = without(&redact::marker(event.get()))?;
            let again = again
                .map(|again| digest::message_digest(&again))
                .transpose()?;
            if again.is_some()
                && again == then
                && let Some(redacted) = without(marker)?
            {
                return Ok(redacted);
            }
        }
        redact_message(body, marker)
    }
}

/// Returns the key of the first of these messages that has content.
pub fn first_key(log: &Log, seqs: impl IntoIterator<Item = u64>) -> Result<MessageKey, LogError> {
    for seq in seqs.into_iter().filter_map(Seq::new) {
        let message = log.message(seq)?;
        let message = log.without_secrets(&message);
        let digest = match log.redacted(seq)? {
            Some(digest) => digest,
            None => digest::message_digest(&message).unwrap_or_default(),
        };
        if digest.is_some() {
            let mut key = MessageKey::of(&message, digest);
            key.seq = Some(seq);
            return Ok(key);
        }
    }
    Ok(MessageKey::default())
}
