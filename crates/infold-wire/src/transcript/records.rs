use std::io::{BufRead, Read, Seek, SeekFrom};
use std::ops::Range;

use memchr::memchr;

use super::TranscriptError;
use super::walk::{Walk, breaks};

/// The most bytes that one record of a transcript may have.
pub const MAX_RECORD: usize = 256 << 20;

/// How a transcript is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One record a line.
    Lines,
    /// One JSON array of records.
    Array,
    /// One or more JSON objects, in an array or one after the other, each with its records in this member.
    Objects(&'static str),
    /// Text, not JSON.
    Text,
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Layout::Lines => f.write_str("lines"),
            Layout::Array => f.write_str("array"),
            Layout::Objects(list) => write!(f, "objects with {list}"),
            Layout::Text => f.write_str("text"),
        }
    }
}

impl std::str::FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Layout, String> {
        match text {
            "lines" => Ok(Layout::Lines),
            "array" => Ok(Layout::Array),
            "text" => Ok(Layout::Text),
            other => match list_of(other.strip_prefix("objects with ").unwrap_or_default()) {
                "" => Err(format!("`{text}` is no layout")),
                list => Ok(Layout::Objects(list)),
            },
        }
    }
}

/// A stretch of the input. All of them, in order, are the input.
#[derive(Debug)]
pub struct Cut {
    /// Its bytes.
    pub raw: Vec<u8>,
    /// What it ends with.
    pub what: What,
    /// The line on which that starts, counted from one.
    pub line: u64,
}

/// What a stretch of the input ends with.
#[derive(Debug, PartialEq, Eq)]
pub enum What {
    /// Nothing of interest.
    Between,
    /// The opening bracket of an object with records.
    Begin,
    /// Its closing bracket.
    End,
    /// Nothing, but the list of records ends here; whether there was one in it.
    ListEnd(bool),
    /// A record, at this place in the bytes.
    Record(Range<usize>),
    /// A member beside the records.
    Member(String, Range<usize>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    /// Between objects.
    Outside,
    /// In an object; whether a comma must come first.
    Object(bool),
    /// In the list of records; whether a comma must come first.
    List(bool),
    /// Before the bracket that closes it.
    Closing,
    /// In a member that is not kept.
    Skipping,
    Over,
}

/// Cuts an input into records, a piece at a time; holds one at a time.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    layout: Layout,
    /// Members to hand over; others are passed by.
    wanted: &'static [&'static str],
    state: State,
    walk: Walk,
    line: u64,
    /// Its objects are the elements of an array.
    is_wrapped: bool,
    /// Records so far.
    count: u64,
}

/// How much of what is passed by is handed over at once.
const PIECE: usize = 64 << 10;

impl<R: BufRead + Seek> Records<R> {
    /// Reads `input` from its start.
    pub fn new(input: R, layout: Layout, wanted: &'static [&'static str]) -> Records<R> {
        Records {
            input,
            layout,
            wanted,
            state: State::Start,
            walk: Walk::default(),
            line: 1,
            is_wrapped: false,
            count: 0,
        }
    }

    /// Starts again.
    pub fn rewind(&mut self) -> Result<(), TranscriptError> {
        self.input.seek(SeekFrom::Start(0))?;
        self.state = State::Start;
        self.line = 1;
        self.is_wrapped = false;
        self.count = 0;
        Ok(())
    }

    /// Which record was handed over last, counted from one.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How it is laid out.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns the next stretch; none at the end.
    pub fn next_cut(&mut self) -> Result<Option<Cut>, TranscriptError> {
        let mut raw = Vec::new();
        if self.state == State::Start {
            self.start(&mut raw)?;
        }
        let (what, line) = match self.state {
            State::Over => return Ok(None),
            State::Skipping => (self.skip(&mut raw)?, self.line),
            _ => match self.layout {
                Layout::Lines | Layout::Text => self.line(&mut raw)?,
                Layout::Array | Layout::Objects(_) => self.nested(&mut raw)?,
            },
        };
        let over = self.state == State::Over && raw.is_empty();
        Ok((!over).then_some(Cut { raw, what, line }))
    }

    fn start(&mut self, raw: &mut Vec<u8>) -> Result<(), TranscriptError> {
        // A byte order mark is not part of the text.
        if self.input.fill_buf()?.first() == Some(&0xef) {
            (&mut self.input).take(3).read_to_end(raw)?;
            if *raw != b"\xef\xbb\xbf" {
                raw.clear();
                self.input.seek(SeekFrom::Start(0))?;
            }
        }
        self.state = State::Outside;
        Ok(())
    }

    fn line(&mut self, raw: &mut Vec<u8>) -> Result<(What, u64), TranscriptError> {
        if self.layout == Layout::Lines && self.peek(raw)?.is_none() {
            self.state = State::Over;
            return Ok((What::Between, self.line));
        }
        let (start, line) = (raw.len(), self.line);
        loop {
            let buffer = self.input.fill_buf()?;
            let end = memchr(b'\n', buffer).map(|end| end + 1);
            let taken = end.unwrap_or(buffer.len());
            let done = taken == 0 || end.is_some();
            raw.extend_from_slice(&buffer[..taken]);
            self.input.consume(taken);
            self.check(raw.len(), line)?;
            if done {
                break;
            }
        }
        self.line += u64::from(raw.len() > start && raw.ends_with(b"\n"));
        if raw.len() == start {
            self.state = State::Over;
            return Ok((What::Between, line));
        }
        self.count += 1;
        let end = start + raw[start..].trim_ascii_end().len();
        Ok((What::Record(start..end.max(start)), line))
    }

    fn nested(&mut self, raw: &mut Vec<u8>) -> Result<(What, u64), TranscriptError> {
        loop {
            let next = self.peek(raw)?;
            let line = self.line;
            let wrong = |what| Err(TranscriptError::Shape { line, what });
            match (self.state, next) {
                (State::Outside, None) => {
                    self.state = State::Over;
                    return Ok((What::Between, line));
                }
                (State::Outside, Some(b'[')) if self.layout == Layout::Array => {
                    self.take(raw);
                    self.state = State::List(false);
                }
                (State::Outside, Some(b'{')) if self.layout != Layout::Array => {
                    self.take(raw);
                    self.state = State::Object(false);
                    return Ok((What::Begin, line));
                }
                (State::Outside, Some(b'[')) if !self.is_wrapped => {
                    self.take(raw);
                    self.is_wrapped = true;
                }
                (State::Outside, Some(b',' | b']')) if self.is_wrapped => self.take(raw),
                (State::Outside, Some(_)) => {
                    return wrong("something else stands where the records should begin");
                }
                (_, None) if self.layout == Layout::Array => {
                    return wrong("the array is not closed");
                }
                (_, None) => return wrong("the object is not closed"),
                (State::List(filled), Some(b']')) => {
                    self.state = State::Closing;
                    return Ok((What::ListEnd(filled), line));
                }
                (State::Closing, Some(_)) => {
                    self.take(raw);
                    if self.layout != Layout::Array {
                        self.state = State::Object(true);
                        continue;
                    }
                    if self.peek(raw)?.is_some() {
                        let line = self.line;
                        let what = "something follows the closing bracket";
                        return Err(TranscriptError::Shape { line, what });
                    }
                    self.state = State::Over;
                    return Ok((What::End, line));
                }
                (State::Object(_), Some(b'}')) => {
                    self.take(raw);
                    self.state = State::Outside;
                    return Ok((What::End, line));
                }
                (State::List(true) | State::Object(true), Some(b',')) => {
                    self.take(raw);
                    let next = self.peek(raw)?;
                    if matches!(next, Some(b']' | b'}' | b',') | None) {
                        let line = self.line;
                        let what = "a message is missing after a comma";
                        return Err(TranscriptError::Shape { line, what });
                    }
                    self.state = match self.state {
                        State::List(_) => State::List(false),
                        _ => State::Object(false),
                    };
                }
                (State::List(true), Some(_)) => {
                    return wrong("a comma is missing between two messages");
                }
                (State::Object(true), Some(_)) => return wrong("a comma is missing"),
                (State::List(false), Some(_)) => {
                    self.count += 1;
                    let range = self.value(raw)?;
                    self.state = State::List(true);
                    return Ok((What::Record(range), line));
                }
                (State::Object(false), Some(b'"')) => {
                    if let Some(what) = self.member(raw)? {
                        return Ok((what, line));
                    }
                }
                (State::Object(false), Some(_)) => return wrong("a member has no name"),
                (State::Start | State::Skipping | State::Over, Some(_)) => {
                    unreachable!("these states are dealt with elsewhere")
                }
            }
        }
    }

    /// Reads a name, and what it names unless that is the list of records.
    fn member(&mut self, raw: &mut Vec<u8>) -> Result<Option<What>, TranscriptError> {
        let range = self.value(raw)?;
        let name = crate::Json::parse(&raw[range]).ok();
        let name = name.and_then(|name| Some(name.text()?.into_owned()));
        let next = self.peek(raw)?;
        let line = self.line;
        if name.is_none() || next != Some(b':') {
            let what = "a member has no name";
            return Err(TranscriptError::Shape { line, what });
        }
        let name = name.unwrap_or_default();
        self.take(raw);
        let next = self.peek(raw)?;
        if self.layout == Layout::Objects(list_of(&name)) && next == Some(b'[') {
            self.take(raw);
            self.state = State::List(false);
            return Ok(None);
        }
        if self.wanted.contains(&name.as_str()) {
            let range = self.value(raw)?;
            self.state = State::Object(true);
            return Ok(Some(What::Member(name, range)));
        }
        self.walk = Walk::default();
        self.state = State::Skipping;
        Ok(Some(What::Between))
    }

    /// Passes a part of a member by.
    fn skip(&mut self, raw: &mut Vec<u8>) -> Result<What, TranscriptError> {
        while raw.len() < PIECE {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                let (line, what) = (self.line, "the object is not closed");
                return Err(TranscriptError::Shape { line, what });
            }
            let end = self.walk.feed(buffer);
            let taken = end.unwrap_or(buffer.len());
            self.line += breaks(&buffer[..taken]);
            raw.extend_from_slice(&buffer[..taken]);
            self.input.consume(taken);
            if end.is_some() {
                self.state = State::Object(true);
                break;
            }
        }
        Ok(What::Between)
    }

    /// Reads a value, and says where it is.
    fn value(&mut self, raw: &mut Vec<u8>) -> Result<Range<usize>, TranscriptError> {
        let (start, line) = (raw.len(), self.line);
        let mut walk = Walk::default();
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                if walk.is_bare() {
                    break;
                }
                let what = match self.layout {
                    Layout::Array => "the array is not closed",
                    _ => "the object is not closed",
                };
                return Err(TranscriptError::Shape { line, what });
            }
            let end = walk.feed(buffer);
            let taken = end.unwrap_or(buffer.len());
            self.line += breaks(&buffer[..taken]);
            raw.extend_from_slice(&buffer[..taken]);
            self.input.consume(taken);
            self.check(raw.len() - start, line)?;
            if end.is_some() {
                break;
            }
        }
        Ok(start..raw.len())
    }

    /// The next byte that is not white space; what comes before it is taken.
    fn peek(&mut self, raw: &mut Vec<u8>) -> Result<Option<u8>, TranscriptError> {
        loop {
            let buffer = self.input.fill_buf()?;
            let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            let taken = buffer.iter().take_while(|byte| space(byte)).count();
            let next = buffer.get(taken).copied();
            let over = buffer.is_empty();
            self.line += breaks(&buffer[..taken]);
            raw.extend_from_slice(&buffer[..taken]);
            self.input.consume(taken);
            if next.is_some() || over {
                return Ok(next);
            }
            let line = self.line;
            self.check(raw.len(), line)?;
        }
    }

    /// Takes the byte that was peeked at.
    fn take(&mut self, raw: &mut Vec<u8>) {
        // It is in the buffer, or `peek` would not have seen it.
        if let Ok([byte, ..]) = self.input.fill_buf() {
            raw.push(*byte);
            self.input.consume(1);
        }
    }

    fn check(&self, size: usize, line: u64) -> Result<(), TranscriptError> {
        match size > MAX_RECORD {
            true => Err(TranscriptError::TooLarge { line }),
            false => Ok(()),
        }
    }
}

/// The members that hold the records of a document; `traj` is tau-bench's.
pub(super) const LISTS: [&str; 4] = ["messages", "contents", "history", "traj"];

/// A member's name, if it is one that holds records in some format.
fn list_of(name: &str) -> &'static str {
    LISTS.into_iter().find(|known| *known == name).unwrap_or("")
}
