//! Reads messages as they come in: one a line, or the elements of a JSON array.

use std::io::BufRead;

use infold_wire::transcript::{InputChunk, RecordError, RecordReader, RecordToken};
use infold_wire::{Message, MessageError};

use crate::MAX_MESSAGE;

/// Messages as they come in: one a line, or the elements of a JSON array.
///
/// Reads a piece at a time and holds one message at a time.
pub struct Incoming<R> {
    records: RecordReader<R>,
}

/// Why the input is not messages, and where.
#[derive(Debug, thiserror::Error)]
pub enum IncomingError {
    /// A record is not a message.
    #[error("line {line}, message {count}: {reason}")]
    NotAMessage {
        /// The line it starts on, counted from one.
        line: u64,
        /// Which message it is, counted from one.
        count: u64,
        /// Why.
        reason: MessageError,
    },
    /// A record is too large to be a message.
    #[error(
        "line {line}, message {count}: longer than {} MiB, the most a message may have",
        MAX_MESSAGE >> 20
    )]
    TooLarge {
        /// The line it starts on, counted from one.
        line: u64,
        /// Which message it is, counted from one.
        count: u64,
    },
    /// The array is not one.
    #[error("line {line}: {what}")]
    Array {
        /// Where, counted from one.
        line: u64,
        /// The problem.
        what: &'static str,
    },
    /// The input could not be read.
    #[error("the input could not be read")]
    Read(#[from] std::io::Error),
}

impl<R: BufRead> Incoming<R> {
    /// Reads messages from `input`.
    pub fn new(input: R) -> Incoming<R> {
        Incoming {
            records: RecordReader::lines_or_array(input, MAX_MESSAGE),
        }
    }

    /// Returns the next message, checked to be one; none at the end.
    pub fn next_message(&mut self) -> Result<Option<Vec<u8>>, IncomingError> {
        loop {
            let chunk = self.records.next_chunk();
            let count = self.records.count();
            let chunk = chunk.map_err(|error| match error {
                RecordError::TooLarge { line } => IncomingError::TooLarge { line, count },
                RecordError::Malformed { line, what } => IncomingError::Array { line, what },
                RecordError::Read(error) => IncomingError::Read(error),
            })?;
            let Some(InputChunk {
                mut raw,
                token,
                line,
            }) = chunk
            else {
                return Ok(None);
            };
            let RecordToken::Record(range) = token else {
                continue;
            };
            raw.truncate(range.end);
            raw.drain(..range.start);
            return match Message::parse(&raw) {
                Ok(_) => Ok(Some(raw)),
                Err(reason) => Err(IncomingError::NotAMessage {
                    line,
                    count,
                    reason,
                }),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        // A tiny buffer splits the input nearly everywhere.
        let input = std::io::BufReader::with_capacity(3, text.as_bytes());
        let mut incoming = Incoming::new(input);
        let mut out = Vec::new();
        while let Some(text) = incoming.next_message().map_err(|error| error.to_string())? {
            out.push(String::from_utf8(text).unwrap());
        }
        Ok(out)
    }

    const A: &str = r#"{"role":"user","content":"]},\""}"#;

    #[test]
    fn lines_and_arrays_give_the_same_messages() {
        assert_eq!(read(&format!("{A}\n\n {A}")).unwrap(), [A, A]);
        assert_eq!(
            read(&format!("\u{feff} [\n{A} ,\n{A}\n]\n")).unwrap(),
            [A, A]
        );
        assert_eq!(read("").unwrap(), [""; 0]);
        assert_eq!(read("[]").unwrap(), [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let why = |text: &str| read(text).unwrap_err();
        assert_eq!(
            why(&format!("{A}\n\n{{\"role\":\"user\"}}")),
            "line 3, message 2: no \"content\" and no tool call"
        );
        assert!(why(&format!("{A}\n{{\"role\":")).starts_with("line 2, message 2: not JSON: EOF"));
        assert_eq!(
            why(&format!("[{A}\n{A}]")),
            "line 2: a comma is missing between two messages"
        );
        assert_eq!(
            why(&format!("[{A},]")),
            "line 1: a message is missing after a comma"
        );
        assert_eq!(why(&format!("[{A}")), "line 1: the array is not closed");
        assert_eq!(
            why(&format!("[{A}] x")),
            "line 1: something follows the closing bracket"
        );
    }
}
