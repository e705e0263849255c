//! Reads one conversation of a transcript, with the compactions of its own agent.

use std::io::{BufRead, Seek};

use infold_wire::transcript::{Entry, Transcript, TranscriptError};

/// One conversation of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// Its messages.
    pub messages: Vec<Vec<u8>>,
    /// Where its own agent condensed it.
    pub compactions: Vec<Compaction>,
}

/// A summary that an agent put in place of what it left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// How many messages there were.
    pub at: usize,
    /// The first message that was kept, counted from zero.
    pub kept: usize,
    /// What it wrote.
    pub summary: String,
}

impl Session {
    /// Reads the next conversation that has messages; none at the end.
    pub fn next<R: BufRead + Seek>(
        transcript: &mut Transcript<R>,
    ) -> Result<Option<Session>, TranscriptError> {
        let mut session = Session::default();
        for entry in transcript {
            match entry? {
                Entry::Message { text, .. } => session.messages.push(text),
                Entry::Compaction { summary, kept } => session.compactions.push(Compaction {
                    at: session.messages.len(),
                    kept: kept.min(session.messages.len()),
                    summary,
                }),
                Entry::Next if !session.messages.is_empty() => return Ok(Some(session)),
                // When a fold that tags stand for was made is not known: it cannot be replayed.
                Entry::Next | Entry::Fold { .. } => {}
            }
        }
        Ok((!session.messages.is_empty()).then_some(session))
    }
}
