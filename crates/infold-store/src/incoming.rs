//! Reads messages as they come in: one a line, or the elements of a JSON array.

use std::io::BufRead;

use infold_wire::{Message, MessageError};

use crate::MAX_MESSAGE;

/// Messages as they come in: one a line, or the elements of a JSON array.
///
/// Reads a piece at a time and holds one message at a time.
pub struct Incoming<R> {
    input: R,
    form: Option<InputForm>,
    line: u64,
    count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InputForm {
    Lines,
    Array,
    /// The array has been closed.
    Over,
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
            input,
            form: None,
            line: 1,
            count: 0,
        }
    }

    /// Returns the next message, checked to be one; none at the end.
    pub fn next_message(&mut self) -> Result<Option<Vec<u8>>, IncomingError> {
        let form = match self.form {
            Some(form) => form,
            None => self.detect()?,
        };
        let (line, text) = match form {
            InputForm::Lines => self.next_line()?,
            InputForm::Array => self.next_element()?,
            InputForm::Over => return Ok(None),
        };
        let Some(text) = text else { return Ok(None) };
        let count = self.count;
        match Message::parse(&text) {
            Ok(_) => Ok(Some(text)),
            Err(reason) => Err(IncomingError::NotAMessage {
                line,
                count,
                reason,
            }),
        }
    }
    fn detect(&mut self) -> Result<InputForm, IncomingError> {
        // A byte order mark is not part of the text.
        if self.input.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
            self.input.consume(3);
        }
        let form = match self.peek()? {
            Some(b'[') => {
                self.input.consume(1);
                InputForm::Array
            }
            _ => InputForm::Lines,
        };
        self.form = Some(form);
        Ok(form)
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Result<Option<u8>, IncomingError> {
        loop {
            let buffer = self.input.fill_buf()?;
            let Some(&byte) = buffer.first() else {
                return Ok(None);
            };
            match byte {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                other => return Ok(Some(other)),
            }
            self.input.consume(1);
        }
    }

    fn next_line(&mut self) -> Result<(u64, Option<Vec<u8>>), IncomingError> {
        if self.peek()?.is_none() {
            return Ok((self.line, None));
        }
        let line = self.line;
        self.count += 1;
        let mut text = Vec::new();
        loop {
            let buffer = self.input.fill_buf()?;
            let end = memchr::memchr(b'\n', buffer);
            let taken = end.unwrap_or(buffer.len());
            text.extend_from_slice(&buffer[..taken]);
            let done = buffer.is_empty() || end.is_some();
            self.input.consume(taken + usize::from(end.is_some()));
            self.check_size(line, text.len())?;
            if done {
                self.line += u64::from(end.is_some());
                return Ok((line, Some(text)));
            }
        }
    }

    fn next_element(&mut self) -> Result<(u64, Option<Vec<u8>>), IncomingError> {
        let wrong = |line, what| Err(IncomingError::Array { line, what });
        match self.peek()? {
            Some(b']') => {
                self.input.consume(1);
                self.form = Some(InputForm::Over);
                return match self.peek()? {
                    Some(_) => wrong(self.line, "something follows the closing bracket"),
                    None => Ok((self.line, None)),
                };
            }
            Some(b',') if self.count > 0 => self.input.consume(1),
            Some(_) if self.count == 0 => {}
            Some(_) => return wrong(self.line, "a comma is missing between two messages"),
            None => return wrong(self.line, "the array is not closed"),
        }
        if matches!(self.peek()?, None | Some(b']' | b',')) {
            return wrong(self.line, "a message is missing after a comma");
        }
        self.count += 1;
        let (line, text) = (self.line, self.element()?);
        Ok((line, Some(text)))
    }

    /// Reads to the bracket that ends an element, or up to the comma after one without brackets.
    fn element(&mut self) -> Result<Vec<u8>, IncomingError> {
        let start = self.line;
        let mut text = Vec::new();
        let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                let what = "the array is not closed";
                return Err(IncomingError::Array { line: start, what });
            }
            let mut taken = 0;
            let mut done = false;
            for &byte in buffer {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if quoted => escaped = true,
                    b'"' => quoted = !quoted,
                    _ if quoted => {}
                    b',' | b']' | b'}' if depth == 0 => {
                        done = true;
                        break;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        done = depth == 0;
                    }
                    _ => {}
                }
                self.line += u64::from(byte == b'\n');
                taken += 1;
                if done {
                    break;
                }
            }
            text.extend_from_slice(&buffer[..taken]);
            self.input.consume(taken);
            self.check_size(start, text.len())?;
            if done {
                return Ok(text);
            }
        }
    }

    fn check_size(&self, line: u64, size: usize) -> Result<(), IncomingError> {
        if size > MAX_MESSAGE {
            let count = self.count;
            return Err(IncomingError::TooLarge { line, count });
        }
        Ok(())
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
