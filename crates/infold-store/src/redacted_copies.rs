//! Recognises copies of redacted messages among those that a client sends: they are recorded as redacted, whatever the client changed
//! before them.

mod candidate;
mod search;
mod sent;

use std::collections::BTreeSet;

use infold_log::{Seq, Span};
use infold_wire::digest::Digest;
use uuid::Uuid;

use crate::event::{Extent, RedactLine, RedactedForms};
use crate::redacted_digests::RedactedDigests;
use crate::redacted_lines::RedactedLine;
use crate::redacted_values::RedactedValue;
use crate::stored::Original;
use crate::{AppendError, Contexts, Log, LogError, TaskError, What, Writer};
use search::CopySearch;
use sent::SentMessages;

/// Messages on their way to a log, of which some are copies of redacted ones.
#[derive(Debug)]
pub struct RedactedCopies {
    /// The messages as they are recorded.
    messages: Vec<Vec<u8>>,
    /// The digest of the original of each that is redacted, or a piece behind one that is.
    originals: Vec<Option<Original>>,
    /// The places of those that are redacted.
    copies: Vec<usize>,
    extent: Extent,
    values: Vec<RedactedValue>,
    /// For each message, the forms by which its originals are recognised.
    forms: Vec<CopyForms>,
    contents: Vec<Digest>,
}

/// Digests and lines by which the originals of a copy are recognised.
#[derive(Debug, Default)]
struct CopyForms {
    contents: BTreeSet<Digest>,
    lines: Vec<RedactedLine>,
}

impl RedactedCopies {
    /// Returns the event that says so, if the first message is this one.
    fn event_from(&self, first: Seq) -> RedactLine {
        let copies = self.copies.iter().filter_map(|at| {
            let seq = Seq::new(first.get() + *at as u64)?;
            Some((seq, self.originals[*at]?))
        });
        let forms = self.copies.iter().filter_map(|at| {
            let CopyForms { contents, lines } = &self.forms[*at];
            Some(RedactedForms {
                seq: Seq::new(first.get() + *at as u64)?,
                contents: contents.iter().copied().collect(),
                lines: lines.clone(),
            })
        });
        RedactLine {
            extent: self.extent,
            messages: copies.collect(),
            texts: 0,
            names: Vec::new(),
            values: self.values.clone(),
            forms: forms.collect(),
            contents: self.contents.clone(),
        }
    }
}

impl Contexts {
    /// Finds copies of redacted messages among those that are to be appended to a log; none if there are none.
    ///
    /// A message counts as a copy if it is the same as a redacted one, or holds texts, arguments, results or
    /// lines of one, whatever its ids and its API. To keep new messages that repeat a text by chance, the text
    /// must be distinctive, or a neighbouring message must match as well; see `CopySearch::is_copy`.
    pub fn redacted_copies(
        &self,
        log: &Log,
        digests: &RedactedDigests,
        messages: &[impl AsRef<[u8]>],
    ) -> Result<Option<RedactedCopies>, TaskError> {
        let messages: Vec<Vec<u8>> = messages
            .iter()
            .map(|message| log.without_secrets(message.as_ref()).into_owned())
            .collect();
        let sent = SentMessages::read(messages);
        let sent = sent.map_err(|error| LogError::damaged(log.dir(), 0, error.to_string()))?;
        CopySearch::new(self, log, &sent).run(digests)
    }

    /// Returns the task in which a conversation began, as far as the tasks before it can be read.
    fn first_ancestor(&self, task: Uuid) -> Uuid {
        let mut line = vec![task];
        let mut last = task;
        while let Ok(log) = self.read(last)
            && let Some(parent) = log.parent().and_then(|(task, _)| task.parse().ok())
            && !line.contains(&parent)
            && self.place(parent).is_some()
        {
            line.push(parent);
            last = parent;
        }
        last
    }
}

impl Writer {
    /// Appends messages of which some are copies of redacted ones, and the event that says so.
    pub fn append_copies(&mut self, copies: RedactedCopies) -> Result<Option<Span>, AppendError> {
        let span = self.append_as_is(&copies.messages, &[], &copies.originals)?;
        if let Some(span) = span {
            self.step(What::Redact(copies.event_from(span.from())))?;
            // The texts of this event are redacted in the next frame.
            self.sync_frames()?;
            self.frames = None;
        }
        Ok(span)
    }
}
