//! The streaming parser of envelopes.

use std::collections::HashSet;
use std::ops::Range;

use super::{Envelope, EnvelopeError, list_name};
use crate::brackets::BracketStack;
use crate::scan::{ends_in_escape, find_closing_quote};
use crate::{Json, Wire};

/// The most brackets that may be open at once.
pub(super) const MAX_DEPTH: usize = 512;

/// Parses a body that comes in chunks, split anywhere; keeps only names and offsets.
#[derive(Clone, Debug)]
pub struct EnvelopeParser {
    wire: Wire,
    /// The offset of the current chunk.
    offset: u64,
    expect: Expect,
    token: OpenToken,
    /// Whether a backslash at the end of the last chunk escapes the next byte.
    escaped: bool,
    open: BracketStack<{ MAX_DEPTH / 64 }>,
    /// The current string literal, if it is a name or a role that matters.
    literal: Option<Vec<u8>>,
    /// The current member of the request.
    member: MemberState,
    /// The current message.
    message: MessageState,
    /// Whether all messages so far are leading system messages.
    leads: bool,
    list: Option<MessageList>,
    members: Vec<(String, Range<u64>)>,
    error: Option<EnvelopeError>,
}

/// The tokens that may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    /// A value, or the end of an empty list.
    First,
    Name,
    /// A name, or the end of an empty object.
    FirstName,
    Colon,
    /// A comma, or the end of the open value.
    After,
    Nothing,
}

/// The token that the last chunk ended in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenToken {
    None,
    Text,
    /// A number, or a word.
    Word,
}

#[derive(Clone, Debug, Default)]
struct MemberState {
    name: String,
    start: u64,
    /// Whether the member is the list of messages.
    is_list: bool,
    /// Whether the member's value is a string.
    is_text: bool,
}

#[derive(Clone, Debug, Default)]
struct MessageState {
    start: u64,
    /// Whether the current member is the role.
    at_role: bool,
    /// Whether the role is system or developer.
    is_system: bool,
}

#[derive(Clone, Debug, Default)]
struct MessageList {
    /// The range; empty while the list continues.
    range: Range<u64>,
    messages: Vec<Range<u64>>,
    leading: usize,
    is_list: bool,
    is_text: bool,
}

/// The number of open brackets between the members of a message.
const MESSAGE_DEPTH: usize = 3;

/// Names of message members and roles that are longer, with their escapes, do not matter.
const MAX_LITERAL_BYTES: usize = 64;

impl EnvelopeParser {
    /// Starts at the first byte of a body.
    pub fn new(wire: Wire) -> EnvelopeParser {
        EnvelopeParser {
            wire,
            offset: 0,
            expect: Expect::Value,
            token: OpenToken::None,
            escaped: false,
            open: BracketStack::new(),
            literal: None,
            member: MemberState::default(),
            message: MessageState::default(),
            leads: wire != Wire::Gemini,
            list: None,
            members: Vec::new(),
            error: None,
        }
    }

    /// Parses the next chunk. After an error it returns the same error for every chunk.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), EnvelopeError> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        let parsed = self.parse(bytes);
        self.error = parsed.clone().err();
        self.offset += bytes.len() as u64;
        parsed
    }

    /// Returns the offset of the next byte to parse.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns how many messages of the list have been parsed.
    pub fn message_count(&self) -> usize {
        self.list.as_ref().map_or(0, |list| list.messages.len())
    }

    /// Returns where the last of the first `count` messages ends.
    pub fn message_end(&self, count: usize) -> Option<u64> {
        let list = self.list.as_ref()?;
        Some(list.messages.get(count.checked_sub(1)?)?.end)
    }

    /// Returns the parser in its state right behind the first `count` messages of the list. It can parse the following
    /// bytes of this body, or of another one with the same prefix.
    ///
    /// `None` if there are fewer messages, or an error was found. A message that is a number or a word has no end of
    /// its own: the following bytes in another body must not continue it.
    pub fn after_message(&self, count: usize) -> Option<EnvelopeParser> {
        let list = self.list.as_ref().filter(|_| self.error.is_none())?;
        let messages = list.messages.get(..count)?.to_vec();
        let mut parser = EnvelopeParser::new(self.wire);
        parser.offset = messages.last()?.end;
        parser.expect = Expect::After;
        parser.open.push(true)?;
        parser.open.push(false)?;
        let start = list.range.start;
        parser.member = MemberState {
            name: list_name(self.wire).to_owned(),
            start,
            is_list: true,
            is_text: false,
        };
        parser.leads = list.leading >= count;
        let before = self.members.iter();
        let before = before.filter(|(_, range)| range.end <= start);
        parser.members = before.cloned().collect();
        parser.list = Some(MessageList {
            range: start..start,
            leading: list.leading.min(count),
            messages,
            ..MessageList::default()
        });
        Some(parser)
    }

    /// Ends the body.
    pub fn finish(self) -> Result<Envelope, EnvelopeError> {
        let name = list_name(self.wire);
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.expect != Expect::Nothing {
            return Err(EnvelopeError::NotJson {
                at: self.offset,
                what: "unexpected end",
            });
        }
        let list = self.list.ok_or(EnvelopeError::NoList { name })?;
        let is_text = list.is_text && self.wire == Wire::Responses;
        if !list.is_list && !is_text {
            return Err(EnvelopeError::NotAList { name });
        }
        Ok(Envelope {
            wire: self.wire,
            list: list.range,
            messages: list.messages,
            leading: list.leading,
            is_text,
            members: without_duplicates(self.members),
        })
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<(), EnvelopeError> {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.token {
                OpenToken::None => {
                    self.parse_byte(bytes[at], self.offset + at as u64)?;
                    at + 1
                }
                OpenToken::Text => self.parse_string(bytes, at)?,
                OpenToken::Word => self.parse_word(bytes, at),
            };
        }
        Ok(())
    }

    /// Parses a byte outside of strings and words, or the first of one.
    fn parse_byte(&mut self, byte: u8, at: u64) -> Result<(), EnvelopeError> {
        use Expect::{After, Colon, First, FirstName, Name, Value};
        match (self.expect, byte) {
            (_, b' ' | b'\t' | b'\n' | b'\r') => {}
            (Value | First, b'{' | b'[') => {
                self.begin_value(byte, at)?;
                let object = byte == b'{';
                let room = self.open.push(object);
                room.ok_or(EnvelopeError::TooDeep { at })?;
                self.expect = if object { FirstName } else { First };
            }
            (Value | First, b'"') => {
                self.begin_value(byte, at)?;
                self.token = OpenToken::Text;
                self.keep_literal(self.in_leading() && self.message.at_role);
            }
            (Value | First, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.begin_value(byte, at)?;
                self.token = OpenToken::Word;
            }
            (Name | FirstName, b'"') => {
                self.token = OpenToken::Text;
                self.keep_literal(self.open.depth() == 1 || self.in_leading());
            }
            (Colon, b':') => self.expect = Value,
            (After, b',') => self.expect = if self.open.in_object() { Name } else { Value },
            (After | FirstName, b'}') if self.open.in_object() => self.close(at),
            (After | First, b']') if !self.open.in_object() => self.close(at),
            _ => return Err(self.unexpected(at)),
        }
        Ok(())
    }

    fn begin_value(&mut self, byte: u8, at: u64) -> Result<(), EnvelopeError> {
        match self.open.depth() {
            0 if byte != b'{' => return Err(EnvelopeError::NotAnObject),
            1 => {
                self.member.start = at;
                self.member.is_text = byte == b'"';
                let is_named = self.member.name == list_name(self.wire);
                self.member.is_list = is_named && byte == b'[';
                if is_named {
                    self.list = Some(MessageList {
                        range: at..at,
                        ..MessageList::default()
                    });
                    self.leads = self.wire != Wire::Gemini;
                }
            }
            2 if self.member.is_list => {
                self.message = MessageState {
                    start: at,
                    ..MessageState::default()
                };
            }
            MESSAGE_DEPTH if self.message.at_role => self.message.is_system = false,
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, at: u64) {
        self.open.pop();
        self.end_value(at + 1);
    }

    fn end_value(&mut self, end: u64) {
        self.expect = Expect::After;
        match self.open.depth() {
            0 => self.expect = Expect::Nothing,
            1 => self.end_member(end),
            2 if self.member.is_list => {
                self.leads &= self.message.is_system;
                if let Some(list) = &mut self.list {
                    list.messages.push(self.message.start..end);
                    list.leading += usize::from(self.leads);
                }
            }
            _ => {}
        }
    }

    fn end_member(&mut self, end: u64) {
        let range = self.member.start..end;
        if self.member.name != list_name(self.wire) {
            let name = std::mem::take(&mut self.member.name);
            self.members.push((name, range));
        } else if let Some(list) = &mut self.list {
            list.range = range;
            list.is_list = self.member.is_list;
            list.is_text = self.member.is_text;
        }
    }

    /// Returns whether the parser is at a member of a message that may be a leading one.
    fn in_leading(&self) -> bool {
        self.leads && self.member.is_list && self.open.depth() == MESSAGE_DEPTH
    }

    /// Begins a string literal, and keeps it if `is_needed`.
    fn keep_literal(&mut self, is_needed: bool) {
        self.literal = is_needed.then(|| vec![b'"']);
    }

    /// Parses the next bytes of a string, and returns where they end.
    fn parse_string(&mut self, bytes: &[u8], at: usize) -> Result<usize, EnvelopeError> {
        let start = at + usize::from(std::mem::take(&mut self.escaped));
        let closed = find_closing_quote(bytes, start, start);
        let end = closed.unwrap_or(bytes.len());
        if let Some(literal) = &mut self.literal
            && (self.open.depth() == 1 || literal.len() < MAX_LITERAL_BYTES)
        {
            literal.extend_from_slice(&bytes[at..end]);
        }
        if closed.is_some() {
            self.token = OpenToken::None;
            self.end_string(self.offset + end as u64)?;
        } else {
            self.escaped = ends_in_escape(&bytes[start..]);
        }
        Ok(end)
    }

    fn end_string(&mut self, end: u64) -> Result<(), EnvelopeError> {
        let literal = self.literal.take();
        if !matches!(self.expect, Expect::Name | Expect::FirstName) {
            if let Some(literal) = literal {
                let role = Json::parse(&literal).ok();
                self.message.is_system =
                    role.is_some_and(|role| role.is("system") || role.is("developer"));
            }
            self.end_value(end);
            return Ok(());
        }
        self.expect = Expect::Colon;
        let Some(literal) = literal else {
            return Ok(());
        };
        let name = Json::parse(&literal).ok();
        if self.open.depth() == 1 {
            let name = name.and_then(Json::text);
            let name = name.ok_or_else(|| EnvelopeError::NotJson {
                at: end - literal.len() as u64,
                what: "invalid member name",
            })?;
            self.member.name = name.into_owned();
        } else {
            self.message.at_role = name.is_some_and(|name| name.is("role"));
        }
        Ok(())
    }

    /// Parses the next bytes of a number or a word, and returns where they end.
    fn parse_word(&mut self, bytes: &[u8], at: usize) -> usize {
        let belongs =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = bytes[at..].iter().take_while(|byte| belongs(byte)).count();
        let end = at + length;
        if end < bytes.len() {
            self.token = OpenToken::None;
            self.end_value(self.offset + end as u64);
        }
        end
    }

    fn unexpected(&self, at: u64) -> EnvelopeError {
        let what = match self.expect {
            Expect::Value | Expect::First => "expected a value",
            Expect::Name | Expect::FirstName => "expected a member name",
            Expect::Colon => "expected a colon",
            Expect::After => "expected a comma or a closing bracket",
            Expect::Nothing => "unexpected bytes after the end",
        };
        EnvelopeError::NotJson { at, what }
    }
}

fn without_duplicates(members: Vec<(String, Range<u64>)>) -> Vec<(String, Range<u64>)> {
    let mut seen = HashSet::with_capacity(members.len());
    let last: Vec<bool> = members
        .iter()
        .rev()
        .map(|(name, _)| seen.insert(&**name))
        .collect();
    drop(seen);
    let members = members.into_iter().zip(last.into_iter().rev());
    members
        .filter_map(|(member, last)| last.then_some(member))
        .collect()
}
