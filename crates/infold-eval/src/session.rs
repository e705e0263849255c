//! Reads one conversation of a transcript, with the compactions of its own agent.

use std::io::{BufRead, Seek};

use infold_wire::transcript::{Transcript, TranscriptEntry, TranscriptError};

/// One conversation of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedSession {
    /// Its messages.
    pub messages: Vec<Vec<u8>>,
    /// The compactions by its own agent.
    pub compactions: Vec<Compaction>,
}

/// A summary that an agent put in place of older messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The number of messages at that time.
    pub at: usize,
    /// The first message that was kept, counted from zero.
    pub kept: usize,
    /// The summary.
    pub summary: String,
}

impl RecordedSession {
    /// Reads the next conversation that has messages; none at the end.
    pub fn next<R: BufRead + Seek>(
        transcript: &mut Transcript<R>,
    ) -> Result<Option<RecordedSession>, TranscriptError> {
        let mut session = RecordedSession::default();
        for entry in transcript {
            match entry? {
                TranscriptEntry::Message { text, .. } => session.messages.push(text),
                TranscriptEntry::Compaction { summary, kept } => {
                    session.compactions.push(Compaction {
                        at: session.messages.len(),
                        kept: kept.min(session.messages.len()),
                        summary,
                    })
                }
                TranscriptEntry::Next if !session.messages.is_empty() => return Ok(Some(session)),
                // A fold read from tags has no time, so it cannot be replayed.
                TranscriptEntry::Next | TranscriptEntry::Fold { .. } => {}
            }
        }
        Ok((!session.messages.is_empty()).then_some(session))
    }
}
