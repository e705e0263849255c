//! Splits the bytes of a reply into events, wherever the network split the bytes.
//!
//! A reply arrives as server-sent events, as JSON objects one after the other (lines, or the elements of an array), or
//! as one JSON object. Its first byte determines which.

use memchr::memchr2;

use super::ReplyError;
use crate::value_end::ValueEnd;

/// The maximum size of one event.
pub const MAX_EVENT_BYTES: usize = 64 << 20;

/// One event of a stream: a server-sent one, or a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEvent<'a> {
    /// The event's name; empty if it has none.
    pub name: &'a [u8],
    /// The event's data.
    pub data: &'a [u8],
}

/// Called with each event.
pub type OnEvent<'a> = dyn FnMut(StreamEvent<'_>) -> Result<(), ReplyError> + 'a;

/// Splits bytes into events, and buffers at most one of them.
#[derive(Debug, Default)]
pub struct EventSplitter {
    layout: StreamLayout,
    /// The number of bytes in all earlier calls of `push`.
    bytes_before: u64,
}

#[derive(Debug, Default)]
enum StreamLayout {
    /// Only white space so far.
    #[default]
    Unknown,
    Lines(SseParser),
    Objects(ObjectSplitter),
}

impl EventSplitter {
    /// Takes the next bytes and calls `take` with each event that ends in them.
    pub fn push(&mut self, bytes: &[u8], take: &mut OnEvent<'_>) -> Result<(), ReplyError> {
        let mut start = 0;
        if let StreamLayout::Unknown = self.layout {
            // A byte order mark is ignored, and no reply begins with its bytes otherwise.
            let skip = |byte: &u8| byte.is_ascii_whitespace() || b"\xef\xbb\xbf".contains(byte);
            start = bytes
                .iter()
                .position(|byte| !skip(byte))
                .unwrap_or(bytes.len());
            self.layout = match bytes.get(start) {
                None => StreamLayout::Unknown,
                Some(b'{' | b'[') => StreamLayout::Objects(ObjectSplitter::default()),
                Some(_) => StreamLayout::Lines(SseParser::default()),
            };
        }
        match &mut self.layout {
            StreamLayout::Unknown => {}
            StreamLayout::Lines(lines) => lines.push(&bytes[start..], take)?,
            StreamLayout::Objects(objects) => {
                objects.push(&bytes[start..], self.bytes_before + start as u64, take)?;
            }
        }
        self.bytes_before += bytes.len() as u64;
        Ok(())
    }

    /// Takes the server-sent event at the end that no empty line ended. It may be complete, or cut off anywhere.
    pub fn rest(&mut self) -> Option<StreamEvent<'_>> {
        match &mut self.layout {
            StreamLayout::Lines(lines) => lines.rest(),
            StreamLayout::Unknown | StreamLayout::Objects(_) => None,
        }
    }

    /// Returns whether an event has begun and not ended.
    pub fn is_open(&self) -> bool {
        match &self.layout {
            StreamLayout::Unknown => false,
            StreamLayout::Lines(lines) => lines.is_open(),
            StreamLayout::Objects(objects) => objects.is_inside,
        }
    }

    /// Returns whether the bytes are JSON alone, without lines of server-sent events.
    pub fn is_json(&self) -> bool {
        matches!(self.layout, StreamLayout::Objects(_))
    }

    /// Returns the first line that is not a line of server-sent events.
    pub fn unknown_line(&self) -> Option<&[u8]> {
        match &self.layout {
            StreamLayout::Lines(lines) => lines.unknown.as_deref(),
            StreamLayout::Unknown | StreamLayout::Objects(_) => None,
        }
    }

    /// Returns the bytes so far of a server-sent event that has not ended; zero for JSON objects.
    pub fn pending_bytes(&self) -> u64 {
        match &self.layout {
            StreamLayout::Lines(lines) => lines.pending_bytes() as u64,
            StreamLayout::Unknown | StreamLayout::Objects(_) => 0,
        }
    }

    /// Returns whether already the first line was not one of server-sent events.
    pub fn is_foreign(&self) -> bool {
        matches!(&self.layout, StreamLayout::Lines(lines) if lines.unknown.is_some() && !lines.has_known)
    }
}

/// Parses server-sent events.
#[derive(Debug, Default)]
struct SseParser {
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    /// Whether there was a line of data, even an empty one.
    has_data: bool,
    /// Whether the last line ended with CR, which a LF may follow.
    ends_with_cr: bool,
    /// The first line with an unknown field.
    unknown: Option<Vec<u8>>,
    /// Whether a line with a known field came before any other.
    has_known: bool,
}

/// The fields of server-sent events.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

impl SseParser {
    fn push(&mut self, mut bytes: &[u8], take: &mut OnEvent<'_>) -> Result<(), ReplyError> {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.ends_with_cr) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = memchr2(b'\r', b'\n', bytes);
            let more = &bytes[..end.unwrap_or(bytes.len())];
            check_size(self.data.len() + self.line.len(), more)?;
            self.line.extend_from_slice(more);
            let Some(end) = end else {
                return Ok(());
            };
            self.ends_with_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if self.line.is_empty() {
                self.dispatch(take)?;
            } else {
                self.read_line();
                self.line.clear();
            }
        }
        Ok(())
    }

    /// Reads a complete line.
    fn read_line(&mut self) {
        let colon = memchr::memchr(b':', &self.line);
        let (field, value) = self.line.split_at(colon.unwrap_or(self.line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = value.to_vec(),
            // A comment.
            b"" => {}
            field if FIELDS.contains(&field) => {}
            _ => drop(self.unknown.get_or_insert_with(|| self.line.clone())),
        }
        self.has_known |= self.unknown.is_none();
    }

    /// Ends the event at an empty line.
    fn dispatch(&mut self, take: &mut OnEvent<'_>) -> Result<(), ReplyError> {
        let has_data = std::mem::take(&mut self.has_data);
        let taken = if has_data {
            take(StreamEvent {
                name: &self.name,
                data: &self.data,
            })
        } else {
            Ok(())
        };
        self.name.clear();
        self.data.clear();
        taken
    }

    fn pending_bytes(&self) -> usize {
        let line = if self.is_comment() {
            0
        } else {
            self.line.len()
        };
        self.data.len() + line
    }

    /// Returns whether the line that has not ended is a comment, or nothing yet.
    fn is_comment(&self) -> bool {
        self.line.first().is_none_or(|byte| *byte == b':')
    }

    fn is_open(&self) -> bool {
        !self.is_comment() || self.has_data || !self.name.is_empty()
    }

    fn rest(&mut self) -> Option<StreamEvent<'_>> {
        // A line that is cut off within the name of a field is not unknown.
        if !FIELDS.iter().any(|field| field.starts_with(&self.line)) {
            self.read_line();
        }
        self.line.clear();
        std::mem::take(&mut self.has_data).then_some(StreamEvent {
            name: &self.name,
            data: &self.data,
        })
    }
}

/// Splits JSON objects that follow each other, or are the elements of an array.
#[derive(Debug, Default)]
struct ObjectSplitter {
    value_end: ValueEnd,
    /// The bytes so far of an object that has not ended.
    pending: Vec<u8>,
    is_inside: bool,
}

impl ObjectSplitter {
    /// Reads bytes that start at byte `at` of the reply.
    fn push(&mut self, bytes: &[u8], at: u64, take: &mut OnEvent<'_>) -> Result<(), ReplyError> {
        let mut rest = bytes;
        while let Some(first) = rest.first() {
            if !self.is_inside {
                match first {
                    b'{' => (self.value_end, self.is_inside) = (ValueEnd::default(), true),
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
            let end = self.value_end.feed(rest);
            let (more, behind) = rest.split_at(end.unwrap_or(rest.len()));
            rest = behind;
            check_size(self.pending.len(), more)?;
            if end.is_none() {
                self.pending.extend_from_slice(more);
                break;
            }
            self.is_inside = false;
            let mut pending = std::mem::take(&mut self.pending);
            let data = if pending.is_empty() {
                more
            } else {
                pending.extend_from_slice(more);
                &pending
            };
            take(StreamEvent { name: b"", data })?;
        }
        Ok(())
    }
}

/// Checks that an event does not grow too large.
fn check_size(held: usize, more: &[u8]) -> Result<(), ReplyError> {
    if held + more.len() > MAX_EVENT_BYTES {
        let most = MAX_EVENT_BYTES as u64;
        return Err(ReplyError::TooLarge { most });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the events of a stream that arrives in pieces of this size.
    fn events_in_pieces(bytes: &[u8], size: usize) -> Vec<String> {
        let (mut events, mut found) = (EventSplitter::default(), Vec::new());
        let describe = |event: StreamEvent<'_>| {
            let text = String::from_utf8_lossy;
            format!("{}|{}", text(event.name), text(event.data))
        };
        for piece in bytes.chunks(size) {
            let mut take = |event: StreamEvent<'_>| {
                found.push(describe(event));
                Ok(())
            };
            events.push(piece, &mut take).expect("events");
        }
        let rest = events.rest();
        found.extend(rest.map(|event| format!("{} (rest)", describe(event))));
        found
    }

    #[test]
    fn events_are_the_same_however_lines_end_and_bytes_are_split() {
        let lines = "\u{feff}: hello\nevent: a\ndata: é🚀\ndata\ndata:  two\nid: 7\n\nretry: 1\ndata:x\n\n\nevent: none\n\ndata: last";
        let expected = ["a|é🚀\n\n two", "|x", "|last (rest)"];
        for end in ["\n", "\r\n", "\r"] {
            let bytes = lines.replace('\n', end);
            for size in 1..bytes.len() {
                let found = events_in_pieces(bytes.as_bytes(), size);
                assert_eq!(found, expected, "{end:?} by {size}");
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
                let found = events_in_pieces(text.as_bytes(), size);
                assert_eq!(found, expected, "{text} by {size}");
            }
        }
    }

    #[test]
    fn an_event_that_never_ends_is_an_error_and_not_buffered() {
        for start in ["data: ", "{\""] {
            let mut events = EventSplitter::default();
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
