//! Cuts the bytes of a reply into events, wherever they are split on their way.
//!
//! A reply comes as server-sent events, as JSON objects one after the other (lines, or the
//! elements of an array), or as one JSON object. Its first byte tells which.

use memchr::memchr2;

use super::ReplyError;
use crate::transcript::walk::Walk;

/// The most bytes of one event.
pub const MOST_EVENT: usize = 64 << 20;

/// One event of a stream: a server-sent one, or a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its name; empty if it has none.
    pub name: &'a [u8],
    /// What it says.
    pub data: &'a [u8],
}

/// What is called with each event.
pub type Take<'a> = dyn FnMut(Event<'_>) -> Result<(), ReplyError> + 'a;

/// Cuts bytes into events. Holds no more than one event.
#[derive(Debug, Default)]
pub struct Events {
    layout: Layout,
    /// How many bytes came before those of this push.
    before: u64,
}

#[derive(Debug, Default)]
enum Layout {
    /// Nothing came but white space.
    #[default]
    Unknown,
    Lines(Lines),
    Objects(Objects),
}

impl Events {
    /// Takes the next bytes and calls `take` with each event that ends in them.
    pub fn push(&mut self, bytes: &[u8], take: &mut Take<'_>) -> Result<(), ReplyError> {
        let mut start = 0;
        if let Layout::Unknown = self.layout {
            // A byte order mark means nothing, and its bytes begin nothing else.
            let skip = |byte: &u8| byte.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(byte);
            start = bytes
                .iter()
                .position(|byte| !skip(byte))
                .unwrap_or(bytes.len());
            self.layout = match bytes.get(start) {
                None => Layout::Unknown,
                Some(b'{' | b'[') => Layout::Objects(Objects::default()),
                Some(_) => Layout::Lines(Lines::default()),
            };
        }
        match &mut self.layout {
            Layout::Unknown => {}
            Layout::Lines(lines) => lines.push(&bytes[start..], take)?,
            Layout::Objects(objects) => {
                objects.push(&bytes[start..], self.before + start as u64, take)?;
            }
        }
        self.before += bytes.len() as u64;
        Ok(())
    }

    /// Returns the event that began and did not end. It may be whole, or cut anywhere.
    pub fn rest(&mut self) -> Option<Event<'_>> {
        match &mut self.layout {
            Layout::Lines(lines) => lines.rest(),
            Layout::Unknown | Layout::Objects(_) => None,
        }
    }

    /// Says whether an event began and did not end.
    pub fn is_open(&self) -> bool {
        match &self.layout {
            Layout::Unknown => false,
            Layout::Lines(lines) => lines.is_open(),
            Layout::Objects(objects) => objects.inside,
        }
    }

    /// Says whether the bytes are JSON alone, without lines of server-sent events.
    pub fn is_json(&self) -> bool {
        matches!(self.layout, Layout::Objects(_))
    }

    /// Returns the first line that no stream of events would have.
    pub fn odd(&self) -> Option<&[u8]> {
        match &self.layout {
            Layout::Lines(lines) => lines.odd.as_deref(),
            Layout::Unknown | Layout::Objects(_) => None,
        }
    }

    /// How many bytes there are of an event that has not ended.
    pub fn waiting(&self) -> u64 {
        match &self.layout {
            Layout::Lines(lines) => lines.waiting() as u64,
            Layout::Unknown | Layout::Objects(_) => 0,
        }
    }

    /// Says whether the first line was one that no stream of events would have.
    pub fn is_foreign(&self) -> bool {
        matches!(&self.layout, Layout::Lines(lines) if lines.odd.is_some() && !lines.known)
    }
}

/// The lines of server-sent events.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    /// There was a line of data, if only an empty one.
    given: bool,
    /// The last line ended with CR; a LF now would belong to it.
    returned: bool,
    odd: Option<Vec<u8>>,
    /// A line of a stream came before any that is odd.
    known: bool,
}

/// The fields an event has.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

impl Lines {
    fn push(&mut self, mut bytes: &[u8], take: &mut Take<'_>) -> Result<(), ReplyError> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.returned) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr2(b'\r', b'\n', bytes);
            let more = &bytes[..end.unwrap_or(bytes.len())];
            room(self.data.len() + self.line.len(), more)?;
            self.line.extend_from_slice(more);
            let Some(end) = end else {
                return Ok(());
            };
            self.returned = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if self.line.is_empty() {
                self.dispatch(take)?;
            } else {
                self.read();
                self.line.clear();
            }
        }
        Ok(())
    }

    /// Reads a line that is whole.
    fn read(&mut self) {
        let colon = memchr::memchr(b':', &self.line);
        let (field, value) = self.line.split_at(colon.unwrap_or(self.line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.given, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = value.to_vec(),
            // A comment.
            b"" => {}
            field if FIELDS.contains(&field) => {}
            _ => drop(self.odd.get_or_insert_with(|| self.line.clone())),
        }
        self.known |= self.odd.is_none();
    }

    fn dispatch(&mut self, take: &mut Take<'_>) -> Result<(), ReplyError> {
        let given = std::mem::take(&mut self.given);
        let taken = match given {
            true => take(Event {
                name: &self.name,
                data: &self.data,
            }),
            false => Ok(()),
        };
        self.name.clear();
        self.data.clear();
        taken
    }

    fn waiting(&self) -> usize {
        let line = if self.is_comment() {
            0
        } else {
            self.line.len()
        };
        self.data.len() + line
    }

    /// Says whether the line that has not ended is a comment, or nothing yet.
    fn is_comment(&self) -> bool {
        self.line.first().is_none_or(|byte| *byte == b':')
    }

    fn is_open(&self) -> bool {
        !self.is_comment() || self.given || !self.name.is_empty()
    }

    fn rest(&mut self) -> Option<Event<'_>> {
        // What is cut within the name of a field is not odd.
        if !FIELDS.iter().any(|field| field.starts_with(&self.line)) {
            self.read();
        }
        self.line.clear();
        std::mem::take(&mut self.given).then_some(Event {
            name: &self.name,
            data: &self.data,
        })
    }
}

/// JSON objects one after the other, or the elements of an array.
#[derive(Debug, Default)]
struct Objects {
    walk: Walk,
    /// What there is of the object that is not yet whole.
    held: Vec<u8>,
    inside: bool,
}

impl Objects {
    /// Takes bytes of which the first is number `at`.
    fn push(&mut self, bytes: &[u8], at: u64, take: &mut Take<'_>) -> Result<(), ReplyError> {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if !self.inside {
                match first {
                    b'{' => (self.walk, self.inside) = (Walk::default(), true),
                    b'[' | b']' | b',' | b' ' | b'\t' | b'\r' | b'\n' => {
                        rest = &rest[1..];
                        continue;
                    }
                    other => {
                        let at = at + (bytes.len() - rest.len()) as u64;
                        let reason = format!(
                            "a JSON object was expected at byte {at}, not `{}`",
                            other.escape_ascii()
                        );
                        return Err(ReplyError::Malformed { reason });
                    }
                }
            }
            let end = self.walk.feed(rest);
            let (more, behind) = rest.split_at(end.unwrap_or(rest.len()));
            rest = behind;
            room(self.held.len(), more)?;
            if end.is_none() {
                self.held.extend_from_slice(more);
                break;
            }
            self.inside = false;
            let mut held = std::mem::take(&mut self.held);
            let data = match held.is_empty() {
                true => more,
                false => {
                    held.extend_from_slice(more);
                    &held
                }
            };
            take(Event { name: b"", data })?;
        }
        Ok(())
    }
}

/// Checks that an event does not grow beyond what it may have.
fn room(held: usize, more: &[u8]) -> Result<(), ReplyError> {
    match held + more.len() > MOST_EVENT {
        true => Err(ReplyError::TooLarge {
            most: MOST_EVENT as u64,
        }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a stream that comes in pieces of this size.
    fn cut(bytes: &[u8], size: usize) -> Vec<String> {
        let (mut events, mut found) = (Events::default(), Vec::new());
        let told = |event: Event<'_>| {
            let text = String::from_utf8_lossy;
            format!("{}|{}", text(event.name), text(event.data))
        };
        for piece in bytes.chunks(size) {
            let mut take = |event: Event<'_>| {
                found.push(told(event));
                Ok(())
            };
            events.push(piece, &mut take).expect("events");
        }
        found.extend(events.rest().map(|event| format!("{} (rest)", told(event))));
        found
    }

    #[test]
    fn events_are_the_same_however_lines_end_and_bytes_are_split() {
        let lines = "\u{feff}: hello\nevent: a\ndata: é🚀\ndata\ndata:  two\nid: 7\n\nretry: 1\ndata:x\n\n\nevent: none\n\ndata: last";
        let expected = ["a|é🚀\n\n two", "|x", "|last (rest)"];
        for end in ["\n", "\r\n", "\r"] {
            let bytes = lines.replace('\n', end);
            for size in 1..bytes.len() {
                assert_eq!(cut(bytes.as_bytes(), size), expected, "{end:?} by {size}");
            }
        }
    }

    #[test]
    fn objects_are_found_in_lines_in_an_array_and_alone() {
        let expected = [r#"|{"a":"}\""}"#, r#"|{"b":[{}]}"#];
        for text in [
            "{\"a\":\"}\\\"\"}\n{\"b\":[{}]}\n",
            " [{\"a\":\"}\\\"\"}\n,\r\n{\"b\":[{}]}]\n",
            "{\"a\":\"}\\\"\"}{\"b\":[{}]}{\"cut",
        ] {
            for size in 1..text.len() {
                assert_eq!(cut(text.as_bytes(), size), expected, "{text} by {size}");
            }
        }
    }

    #[test]
    fn an_event_that_never_ends_is_not_held() {
        for start in ["data: ", "{\""] {
            let mut events = Events::default();
            let mut pushed = events.push(start.as_bytes(), &mut |_| Ok(()));
            let piece = vec![b'x'; 1 << 20];
            for _ in 0..64 {
                assert_eq!(pushed, Ok(()));
                pushed = events.push(&piece, &mut |_| Ok(()));
            }
            assert!(
                matches!(pushed, Err(ReplyError::TooLarge { .. })),
                "{pushed:?}"
            );
        }
    }
}
