use std::collections::HashSet;
use std::ops::Range;

use memchr::memchr;

use super::open::Open;
use super::{Envelope, EnvelopeError, list_name};
use crate::{Json, Wire};

/// Reads a body as it comes, split anywhere; keeps no more than names and positions.
#[derive(Debug)]
pub struct Splitter {
    wire: Wire,
    /// Bytes before those that are being read.
    before: u64,
    expect: Expect,
    token: Token,
    /// The last byte was a backslash, and the next one belongs to it.
    escaped: bool,
    open: Open,
    /// The text that is being read, if it is one to know; its quotes included.
    held: Option<Vec<u8>>,
    /// The member of the request that is being read.
    member: Member,
    /// The message that is being read.
    message: Element,
    /// Every message so far is one of the leading ones.
    leads: bool,
    list: Option<List>,
    members: Vec<(String, Range<u64>)>,
    broken: Option<EnvelopeError>,
}

/// What may come next, white space aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Value,
    /// A value, or the end of an empty list.
    First,
    Name,
    /// A name, or the end of an empty object.
    FirstName,
    Colon,
    /// A comma, or the end of what is open.
    After,
    Nothing,
}

/// What is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    None,
    Text,
    /// A number, or a word.
    Word,
}

#[derive(Debug, Default)]
struct Member {
    name: String,
    start: u64,
    /// It is the list of messages, and it is a list.
    is_list: bool,
    /// Its value is a text.
    is_text: bool,
}

#[derive(Debug, Default)]
struct Element {
    start: u64,
    /// The member that is being read says who speaks.
    at_role: bool,
    /// A system or a developer speaks.
    is_system: bool,
}

#[derive(Debug, Default)]
struct List {
    range: Range<u64>,
    messages: Vec<Range<u64>>,
    leading: usize,
    is_list: bool,
    is_text: bool,
}

/// Where the members of a message are, counted in brackets.
const IN_MESSAGE: usize = 3;

/// A name or a role that is longer, escapes and all, is none that is looked for.
const LONGEST: usize = 64;

impl Splitter {
    /// Starts at the first byte of a body.
    pub fn new(wire: Wire) -> Splitter {
        Splitter {
            wire,
            before: 0,
            expect: Expect::Value,
            token: Token::None,
            escaped: false,
            open: Open::default(),
            held: None,
            member: Member::default(),
            message: Element::default(),
            leads: wire != Wire::Gemini,
            list: None,
            members: Vec::new(),
            broken: None,
        }
    }

    /// Reads on. After an error nothing more is read, and the error stays.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), EnvelopeError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let read = self.read(bytes);
        self.broken = read.clone().err();
        self.before += bytes.len() as u64;
        read
    }

    /// The body ends here.
    pub fn finish(self) -> Result<Envelope, EnvelopeError> {
        let name = list_name(self.wire);
        if let Some(error) = self.broken {
            return Err(error);
        }
        if self.expect != Expect::Nothing {
            return Err(EnvelopeError::NotJson {
                at: self.before,
                what: "the end",
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
            members: last_of_each(self.members),
        })
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), EnvelopeError> {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.token {
                Token::None => {
                    self.step(bytes[at], self.before + at as u64)?;
                    at + 1
                }
                Token::Text => self.text(bytes, at)?,
                Token::Word => self.word(bytes, at),
            };
        }
        Ok(())
    }

    /// Takes a byte that is between texts and words, or begins one.
    fn step(&mut self, byte: u8, at: u64) -> Result<(), EnvelopeError> {
        use Expect::{After, Colon, First, FirstName, Name, Value};
        match (self.expect, byte) {
            (_, b' ' | b'\t' | b'\n' | b'\r') => {}
            (Value | First, b'{' | b'[') => {
                self.begins(byte, at)?;
                let object = byte == b'{';
                let room = self.open.push(object);
                room.ok_or(EnvelopeError::TooDeep { at })?;
                self.expect = if object { FirstName } else { First };
            }
            (Value | First, b'"') => {
                self.begins(byte, at)?;
                self.token = Token::Text;
                self.hold(self.in_leading() && self.message.at_role);
            }
            (Value | First, b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                self.begins(byte, at)?;
                self.token = Token::Word;
            }
            (Name | FirstName, b'"') => {
                self.token = Token::Text;
                self.hold(self.open.depth() == 1 || self.in_leading());
            }
            (Colon, b':') => self.expect = Value,
            (After, b',') => self.expect = if self.open.in_object() { Name } else { Value },
            (After | FirstName, b'}') if self.open.in_object() => self.closes(at),
            (After | First, b']') if !self.open.in_object() => self.closes(at),
            _ => return Err(self.unexpected(at)),
        }
        Ok(())
    }

    /// A value begins, within the brackets that are open.
    fn begins(&mut self, byte: u8, at: u64) -> Result<(), EnvelopeError> {
        match self.open.depth() {
            0 if byte != b'{' => return Err(EnvelopeError::NotAnObject),
            1 => {
                self.member.start = at;
                self.member.is_text = byte == b'"';
                let is_named = self.member.name == list_name(self.wire);
                self.member.is_list = is_named && byte == b'[';
                if is_named {
                    self.list = Some(List::default());
                    self.leads = self.wire != Wire::Gemini;
                }
            }
            2 if self.member.is_list => {
                self.message = Element {
                    start: at,
                    ..Element::default()
                };
            }
            IN_MESSAGE if self.message.at_role => self.message.is_system = false,
            _ => {}
        }
        Ok(())
    }

    /// The brackets that were opened last close.
    fn closes(&mut self, at: u64) {
        self.open.pop();
        self.ends(at + 1);
    }

    /// A value has ended, within the brackets that are open.
    fn ends(&mut self, end: u64) {
        self.expect = Expect::After;
        match self.open.depth() {
            0 => self.expect = Expect::Nothing,
            1 => self.member_ends(end),
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

    fn member_ends(&mut self, end: u64) {
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

    /// Says whether this is the inside of a message that may be a leading one.
    fn in_leading(&self) -> bool {
        self.leads && self.member.is_list && self.open.depth() == IN_MESSAGE
    }

    /// A text begins; whether to hold what it says.
    fn hold(&mut self, whether: bool) {
        self.held = whether.then(|| vec![b'"']);
    }

    /// Reads on in a text, and returns how far.
    fn text(&mut self, bytes: &[u8], at: usize) -> Result<usize, EnvelopeError> {
        let found = self.text_end(bytes, at);
        let end = found.unwrap_or(bytes.len());
        if let Some(held) = &mut self.held
            && (self.open.depth() == 1 || held.len() < LONGEST)
        {
            held.extend_from_slice(&bytes[at..end]);
        }
        if found.is_some() {
            self.token = Token::None;
            self.text_ends(self.before + end as u64)?;
        }
        Ok(end)
    }

    /// Where a text ends, behind its quote; none if that is not here.
    fn text_end(&mut self, bytes: &[u8], mut at: usize) -> Option<usize> {
        at += usize::from(std::mem::take(&mut self.escaped));
        let start = at;
        // Quotes are rarer than escapes: one is the end unless it is escaped itself, by a
        // row of backslashes of which every second one is.
        let escapes = |end: usize| {
            let slashes = bytes[start..end].iter().rev();
            slashes.take_while(|byte| **byte == b'\\').count() % 2 == 1
        };
        while let Some(found) = memchr(b'"', &bytes[at..]) {
            let quote = at + found;
            if !escapes(quote) {
                return Some(quote + 1);
            }
            at = quote + 1;
        }
        self.escaped = escapes(bytes.len());
        None
    }

    /// A text has ended: a name or a value.
    fn text_ends(&mut self, end: u64) -> Result<(), EnvelopeError> {
        let held = self.held.take();
        if !matches!(self.expect, Expect::Name | Expect::FirstName) {
            if let Some(held) = held {
                let role = Json::parse(&held).ok();
                self.message.is_system =
                    role.is_some_and(|role| role.is("system") || role.is("developer"));
            }
            self.ends(end);
            return Ok(());
        }
        self.expect = Expect::Colon;
        let Some(held) = held else {
            return Ok(());
        };
        let name = Json::parse(&held).ok();
        if self.open.depth() == 1 {
            let name = name.and_then(Json::text);
            let name = name.ok_or_else(|| EnvelopeError::NotJson {
                at: end - held.len() as u64,
                what: "a name that is no text",
            })?;
            self.member.name = name.into_owned();
        } else {
            self.message.at_role = name.is_some_and(|name| name.is("role"));
        }
        Ok(())
    }

    /// Reads on in a number or a word, and returns how far.
    fn word(&mut self, bytes: &[u8], at: usize) -> usize {
        let belongs =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = bytes[at..].iter().take_while(|byte| belongs(byte)).count();
        let end = at + length;
        if end < bytes.len() {
            self.token = Token::None;
            self.ends(self.before + end as u64);
        }
        end
    }

    fn unexpected(&self, at: u64) -> EnvelopeError {
        let what = match self.expect {
            Expect::Value | Expect::First => "no value",
            Expect::Name | Expect::FirstName => "no name",
            Expect::Colon => "no colon",
            Expect::After => "neither a comma nor the end of what is open",
            Expect::Nothing => "more after the end",
        };
        EnvelopeError::NotJson { at, what }
    }
}

/// Leaves out members that another of the same name follows.
fn last_of_each(members: Vec<(String, Range<u64>)>) -> Vec<(String, Range<u64>)> {
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
