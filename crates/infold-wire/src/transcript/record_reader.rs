//! Splits a transcript into its records.

use std::io::{BufRead, Read, Seek, SeekFrom};
use std::ops::Range;

use memchr::memchr;

use crate::value_end::{ValueEnd, count_lines};

/// The maximum size of one record of a transcript.
pub const MAX_RECORD_BYTES: usize = 256 << 20;

/// Why an input could not be split into records.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A record is too large.
    #[error("line {line}: a record of more than {} MiB", MAX_RECORD_BYTES >> 20)]
    TooLarge {
        /// The line on which it starts, counted from one.
        line: u64,
    },
    /// The JSON around the records is broken.
    #[error("line {line}: {what}")]
    Malformed {
        /// The line, counted from one.
        line: u64,
        /// The defect.
        what: &'static str,
    },
    /// The input could not be read.
    #[error("the input could not be read")]
    Read(#[from] std::io::Error),
}

/// The layout of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TranscriptLayout {
    /// One record on each line.
    Lines,
    /// One JSON array of records.
    Array,
    /// One or more JSON objects, in an array or one after the other, each with its records in this member.
    Objects(&'static str),
    /// Text, not JSON.
    Text,
}

impl std::fmt::Display for TranscriptLayout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TranscriptLayout::Lines => f.write_str("lines"),
            TranscriptLayout::Array => f.write_str("array"),
            TranscriptLayout::Objects(list) => write!(f, "objects with {list}"),
            TranscriptLayout::Text => f.write_str("text"),
        }
    }
}

impl std::str::FromStr for TranscriptLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<TranscriptLayout, String> {
        match text {
            "lines" => Ok(TranscriptLayout::Lines),
            "array" => Ok(TranscriptLayout::Array),
            "text" => Ok(TranscriptLayout::Text),
            other => match list_name(other.strip_prefix("objects with ").unwrap_or_default()) {
                "" => Err(format!("`{text}` is no layout")),
                list => Ok(TranscriptLayout::Objects(list)),
            },
        }
    }
}

/// A chunk of the input. All chunks, in order, are the input.
#[derive(Debug)]
pub struct InputChunk {
    /// The record's bytes.
    pub raw: Vec<u8>,
    /// The token that it ends with.
    pub token: RecordToken,
    /// The line on which that starts, counted from one.
    pub line: u64,
}

/// The token that a chunk of the input ends with.
#[derive(Debug, PartialEq, Eq)]
pub enum RecordToken {
    /// No token.
    None,
    /// The opening bracket of an object with records.
    ObjectStart,
    /// The closing bracket of an object.
    ObjectEnd,
    /// No further token, but the list of records ends here; whether it had a record.
    ListEnd(bool),
    /// A record, at this place in the bytes.
    Record(Range<usize>),
    /// A member beside the records.
    Member(String, Range<usize>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordState {
    Start,
    /// Between objects.
    Outside,
    /// In an object; whether a comma must come first.
    Object(bool),
    /// In the list of records; whether a comma must come first.
    List(bool),
    /// Before the bracket that closes it.
    Closing,
    /// In a member that is skipped.
    Skipping,
    Over,
}

/// Splits an input into records, of which it holds one at a time.
#[derive(Debug)]
pub struct RecordReader<R> {
    input: R,
    /// None before the first byte has shown whether the input is an array or lines.
    layout: Option<TranscriptLayout>,
    max_record_bytes: usize,
    /// Members to return; others are skipped.
    wanted: &'static [&'static str],
    state: RecordState,
    skipped_value: ValueEnd,
    line: u64,
    /// Whether the objects are the elements of an array.
    is_wrapped: bool,
    /// The number of records so far.
    count: u64,
}

const NO_RECORDS: &str = "there are no records here";

/// The size of a chunk of a skipped member.
const SKIPPED_CHUNK_BYTES: usize = 64 << 10;

impl<R: BufRead> RecordReader<R> {
    /// Reads `input`, whose layout is known.
    pub fn new(
        input: R,
        layout: TranscriptLayout,
        wanted: &'static [&'static str],
    ) -> RecordReader<R> {
        RecordReader {
            layout: Some(layout),
            wanted,
            ..RecordReader::lines_or_array(input, MAX_RECORD_BYTES)
        }
    }

    /// Reads `input`, one record on each line or the elements of one JSON array.
    pub fn lines_or_array(input: R, max_record_bytes: usize) -> RecordReader<R> {
        RecordReader {
            input,
            layout: None,
            max_record_bytes,
            wanted: &[],
            state: RecordState::Start,
            skipped_value: ValueEnd::default(),
            line: 1,
            is_wrapped: false,
            count: 0,
        }
    }

    /// Returns the number of the last record, counted from one.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the layout.
    pub fn layout(&self) -> TranscriptLayout {
        self.layout.unwrap_or(TranscriptLayout::Lines)
    }

    /// Returns the next chunk; none at the end.
    pub fn next_chunk(&mut self) -> Result<Option<InputChunk>, RecordError> {
        let mut raw = Vec::new();
        let text_start = match self.state {
            RecordState::Start => self.start(&mut raw)?,
            _ => None,
        };
        let (token, line) = match self.state {
            RecordState::Over => return Ok(None),
            RecordState::Skipping => (self.skip(&mut raw)?, self.line),
            _ => match self.layout() {
                TranscriptLayout::Lines | TranscriptLayout::Text => {
                    self.read_line(&mut raw, text_start)?
                }
                TranscriptLayout::Array | TranscriptLayout::Objects(_) => {
                    self.read_nested(&mut raw)?
                }
            },
        };
        let over = self.state == RecordState::Over && raw.is_empty();
        Ok((!over).then_some(InputChunk { raw, token, line }))
    }

    /// Skips a byte order mark and finds out the layout. Returns where the first record starts if its first bytes are
    /// in `raw` already, because they resembled a mark.
    fn start(&mut self, raw: &mut Vec<u8>) -> Result<Option<usize>, RecordError> {
        self.state = RecordState::Outside;
        let mut has_text = false;
        if self.input.fill_buf()?.first() == Some(&0xef) {
            (&mut self.input).take(3).read_to_end(raw)?;
            has_text = raw != b"\xef\xbb\xbf";
        }
        if self.layout.is_none() {
            let is_array = !has_text && self.peek(raw)? == Some(b'[');
            self.layout = Some(if is_array {
                TranscriptLayout::Array
            } else {
                TranscriptLayout::Lines
            });
        }
        let is_nested = matches!(
            self.layout(),
            TranscriptLayout::Array | TranscriptLayout::Objects(_)
        );
        if has_text && is_nested {
            return Err(self.malformed(NO_RECORDS));
        }
        Ok(has_text.then_some(0))
    }

    fn read_line(
        &mut self,
        raw: &mut Vec<u8>,
        text_start: Option<usize>,
    ) -> Result<(RecordToken, u64), RecordError> {
        let has_ended = match text_start {
            Some(_) => false,
            None if self.layout() == TranscriptLayout::Lines => self.peek(raw)?.is_none(),
            None => self.input.fill_buf()?.is_empty(),
        };
        if has_ended {
            self.state = RecordState::Over;
            return Ok((RecordToken::None, self.line));
        }
        self.count += 1;
        let (start, line) = (text_start.unwrap_or(raw.len()), self.line);
        loop {
            let buffer = self.input.fill_buf()?;
            let end = memchr(b'\n', buffer).map(|end| end + 1);
            let taken = end.unwrap_or(buffer.len());
            let done = taken == 0 || end.is_some();
            raw.extend_from_slice(&buffer[..taken]);
            self.input.consume(taken);
            self.check_size(raw.len(), line)?;
            if done {
                break;
            }
        }
        self.line += u64::from(raw.ends_with(b"\n"));
        let end = start + raw[start..].trim_ascii_end().len();
        Ok((RecordToken::Record(start..end.max(start)), line))
    }

    fn read_nested(&mut self, raw: &mut Vec<u8>) -> Result<(RecordToken, u64), RecordError> {
        loop {
            let next = self.peek(raw)?;
            let line = self.line;
            let malformed = |what| Err(RecordError::Malformed { line, what });
            match (self.state, next) {
                (RecordState::Outside, None) => {
                    self.state = RecordState::Over;
                    return Ok((RecordToken::None, line));
                }
                (RecordState::Outside, Some(b'[')) if self.layout() == TranscriptLayout::Array => {
                    self.take(raw);
                    self.state = RecordState::List(false);
                }
                (RecordState::Outside, Some(b'{')) if self.layout() != TranscriptLayout::Array => {
                    self.take(raw);
                    self.state = RecordState::Object(false);
                    return Ok((RecordToken::ObjectStart, line));
                }
                (RecordState::Outside, Some(b'[')) if !self.is_wrapped => {
                    self.take(raw);
                    self.is_wrapped = true;
                }
                (RecordState::Outside, Some(b',' | b']')) if self.is_wrapped => self.take(raw),
                (RecordState::Outside, Some(_)) => {
                    return malformed(NO_RECORDS);
                }
                (_, None) if self.layout() == TranscriptLayout::Array => {
                    return malformed("the array is not closed");
                }
                (_, None) => return malformed("the object is not closed"),
                (RecordState::List(filled), Some(b']')) => {
                    self.state = RecordState::Closing;
                    return Ok((RecordToken::ListEnd(filled), line));
                }
                (RecordState::Closing, Some(_)) => {
                    self.take(raw);
                    if self.layout() != TranscriptLayout::Array {
                        self.state = RecordState::Object(true);
                        continue;
                    }
                    if self.peek(raw)?.is_some() {
                        return Err(self.malformed("something follows the closing bracket"));
                    }
                    self.state = RecordState::Over;
                    return Ok((RecordToken::ObjectEnd, line));
                }
                (RecordState::Object(_), Some(b'}')) => {
                    self.take(raw);
                    self.state = RecordState::Outside;
                    return Ok((RecordToken::ObjectEnd, line));
                }
                (RecordState::List(true) | RecordState::Object(true), Some(b',')) => {
                    self.take(raw);
                    let next = self.peek(raw)?;
                    if matches!(next, Some(b']' | b'}' | b',') | None) {
                        return Err(self.malformed("a message is missing after a comma"));
                    }
                    self.state = match self.state {
                        RecordState::List(_) => RecordState::List(false),
                        _ => RecordState::Object(false),
                    };
                }
                (RecordState::List(true), Some(_)) => {
                    return malformed("a comma is missing between two messages");
                }
                (RecordState::Object(true), Some(_)) => return malformed("a comma is missing"),
                (RecordState::List(false), Some(_)) => {
                    self.count += 1;
                    let range = self.read_value(raw)?;
                    self.state = RecordState::List(true);
                    return Ok((RecordToken::Record(range), line));
                }
                (RecordState::Object(false), Some(b'"')) => {
                    if let Some(token) = self.read_member(raw)? {
                        return Ok((token, line));
                    }
                }
                (RecordState::Object(false), Some(_)) => return malformed("a member has no name"),
                (RecordState::Start | RecordState::Skipping | RecordState::Over, Some(_)) => {
                    unreachable!("`next_chunk` handles these states")
                }
            }
        }
    }

    /// Reads a name and its value, unless that is the list of records.
    fn read_member(&mut self, raw: &mut Vec<u8>) -> Result<Option<RecordToken>, RecordError> {
        let range = self.read_value(raw)?;
        let name = crate::Json::parse(&raw[range]).ok();
        let name = name.and_then(|name| Some(name.text()?.into_owned()));
        let next = self.peek(raw)?;
        let Some(name) = name.filter(|_| next == Some(b':')) else {
            return Err(self.malformed("a member has no name"));
        };
        self.take(raw);
        let next = self.peek(raw)?;
        if self.layout() == TranscriptLayout::Objects(list_name(&name)) && next == Some(b'[') {
            self.take(raw);
            self.state = RecordState::List(false);
            return Ok(None);
        }
        if self.wanted.contains(&name.as_str()) {
            let range = self.read_value(raw)?;
            self.state = RecordState::Object(true);
            return Ok(Some(RecordToken::Member(name, range)));
        }
        self.skipped_value = ValueEnd::default();
        self.state = RecordState::Skipping;
        Ok(Some(RecordToken::None))
    }

    /// Skips a part of a member.
    fn skip(&mut self, raw: &mut Vec<u8>) -> Result<RecordToken, RecordError> {
        while raw.len() < SKIPPED_CHUNK_BYTES {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Err(self.malformed("the object is not closed"));
            }
            let end = self.skipped_value.feed(buffer);
            let taken = end.unwrap_or(buffer.len());
            self.consume(taken, raw)?;
            if end.is_some() {
                self.state = RecordState::Object(true);
                break;
            }
        }
        Ok(RecordToken::None)
    }

    /// Reads a value, and returns its range.
    fn read_value(&mut self, raw: &mut Vec<u8>) -> Result<Range<usize>, RecordError> {
        let (start, line) = (raw.len(), self.line);
        let mut value_end = ValueEnd::default();
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                if value_end.is_bare() {
                    break;
                }
                let what = match self.layout() {
                    TranscriptLayout::Array => "the array is not closed",
                    _ => "the object is not closed",
                };
                return Err(RecordError::Malformed { line, what });
            }
            let end = value_end.feed(buffer);
            let taken = end.unwrap_or(buffer.len());
            self.consume(taken, raw)?;
            self.check_size(raw.len() - start, line)?;
            if end.is_some() {
                break;
            }
        }
        Ok(start..raw.len())
    }

    /// Returns the next byte that is not white space, and moves the white space before it to `raw`.
    fn peek(&mut self, raw: &mut Vec<u8>) -> Result<Option<u8>, RecordError> {
        loop {
            let buffer = self.input.fill_buf()?;
            let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            let taken = buffer.iter().take_while(|byte| space(byte)).count();
            let next = buffer.get(taken).copied();
            let over = buffer.is_empty();
            self.consume(taken, raw)?;
            if next.is_some() || over {
                return Ok(next);
            }
            self.check_size(raw.len(), self.line)?;
        }
    }

    /// Moves bytes of the buffer to `raw`.
    fn consume(&mut self, length: usize, raw: &mut Vec<u8>) -> Result<(), RecordError> {
        let taken = &self.input.fill_buf()?[..length];
        self.line += count_lines(taken);
        raw.extend_from_slice(taken);
        self.input.consume(length);
        Ok(())
    }

    /// Moves the byte that was peeked at to `raw`.
    fn take(&mut self, raw: &mut Vec<u8>) {
        // `peek` left the byte in the buffer.
        if let Ok([byte, ..]) = self.input.fill_buf() {
            raw.push(*byte);
            self.input.consume(1);
        }
    }

    fn check_size(&self, size: usize, line: u64) -> Result<(), RecordError> {
        if size > self.max_record_bytes {
            return Err(RecordError::TooLarge { line });
        }
        Ok(())
    }

    fn malformed(&self, what: &'static str) -> RecordError {
        let line = self.line;
        RecordError::Malformed { line, what }
    }
}

impl<R: BufRead + Seek> RecordReader<R> {
    /// Starts again.
    pub fn rewind(&mut self) -> Result<(), RecordError> {
        self.input.seek(SeekFrom::Start(0))?;
        self.state = RecordState::Start;
        self.line = 1;
        self.is_wrapped = false;
        self.count = 0;
        Ok(())
    }
}

/// The members that hold the records of a document; `traj` is tau-bench's.
pub(super) const LISTS: [&str; 4] = ["messages", "contents", "history", "traj"];

/// Returns the name of a member that holds records in some format; empty for others.
fn list_name(name: &str) -> &'static str {
    LISTS.into_iter().find(|known| *known == name).unwrap_or("")
}
