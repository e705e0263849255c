//! A message line: the message's bytes and the bookkeeping behind them.

use std::borrow::Cow;

use infold_log::{Role, Seq};
use infold_wire::digest::Digest;

use crate::time;

/// The metadata behind a message in `messages.jsonl`.
///
/// A line is the message's own bytes with `,"seq":…,"timestamp":…,"tokens":…` inserted before the last brace:
/// cutting there restores it, whatever members it has. They are followed by `,"role":…` if the message has
/// none, and `,"redacted":…` if it was redacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Bytes of the message before the cut; its last brace is not among them.
    pub cut: usize,
    /// The message's number.
    pub seq: Seq,
    /// When it was recorded, in milliseconds since 1970.
    pub time: u64,
    /// Its size in tokens.
    pub tokens: u64,
    /// The digest of the original, if the message was redacted.
    pub redacted: Option<Original>,
}

/// The digest of a redacted message's original; none if it has no content that clients send again.
pub type Original = Option<Digest>;

impl Stored {
    /// The message in the line that this was split from, as it came.
    pub fn body(&self, line: &[u8]) -> Vec<u8> {
        [&line[..self.cut], b"}"].concat()
    }
}

const SEQ: &[u8] = b",\"seq\":";
const TIMESTAMP: &[u8] = b",\"timestamp\":\"";
const TOKENS: &[u8] = b"\",\"tokens\":";
const ROLE: &[u8] = b",\"role\":\"";
const REDACTED: &[u8] = b",\"redacted\":\"";

/// The bookkeeping that follows a message in its line.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a> {
    /// The message's number.
    pub seq: Seq,
    /// When it was recorded.
    pub stamp: &'a str,
    /// Its size in tokens.
    pub tokens: u64,
    /// Its role, if the message itself does not contain it.
    pub role: Option<Role>,
    /// The digest of its original, if it was redacted.
    pub redacted: Option<Original>,
}

/// Appends the line of a message, line break included. Line breaks between tokens are left out.
pub fn write(message: &[u8], marks: Marks<'_>, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&unbroken(message));
    out.pop();
    let cut = out.len() - start;
    out.extend_from_slice(SEQ);
    decimal(marks.seq.get(), out);
    out.extend_from_slice(TIMESTAMP);
    out.extend_from_slice(marks.stamp.as_bytes());
    out.extend_from_slice(TOKENS);
    decimal(marks.tokens, out);
    if let Some(role) = marks.role {
        out.extend_from_slice(ROLE);
        out.extend_from_slice(role.wire_name().as_bytes());
        out.push(b'"');
    }
    if let Some(original) = marks.redacted {
        out.extend_from_slice(REDACTED);
        out.extend_from_slice(hex(original).as_bytes());
        out.push(b'"');
    }
    out.extend_from_slice(b"}");
    out.push(b'\n');
    cut
}

/// A digest in hexadecimal; nothing for a message that said nothing.
pub fn hex(original: Original) -> String {
    let bytes = original.iter().flatten();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Parses the output of [`hex`].
pub fn unhex(text: &str) -> Option<Original> {
    if text.is_empty() {
        return Some(None);
    }
    let mut digest = Digest::default();
    let is_digest = text.len() == 2 * digest.len() && text.is_ascii();
    for (at, byte) in digest.iter_mut().enumerate().filter(|_| is_digest) {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    is_digest.then_some(Some(digest))
}

/// Appends the digits of a number; the general formatter would be the slowest part of an append.
fn decimal(mut number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    loop {
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[start..].reverse();
}

/// JSON without line breaks between tokens.
pub fn unbroken(json: &[u8]) -> Cow<'_, [u8]> {
    match memchr::memchr2(b'\n', b'\r', json) {
        // A line break inside a text would be escaped, so every bare one is between tokens.
        Some(_) => json
            .iter()
            .copied()
            .filter(|byte| !is_break(*byte))
            .collect(),
        None => Cow::Borrowed(json),
    }
}

/// How many bytes a message has without line breaks between tokens.
pub fn size(message: &[u8]) -> usize {
    match memchr::memchr2(b'\n', b'\r', message) {
        Some(_) => message.iter().filter(|byte| !is_break(**byte)).count(),
        None => message.len(),
    }
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// Takes a line (without its line break) apart; none if it is not one of ours.
pub fn split(line: &[u8]) -> Option<Stored> {
    // The bookkeeping comes last and holds no such member itself, so the last one is ours.
    let cut = memchr::memmem::rfind(line, SEQ)?;
    let (seq, rest) = digits(&line[cut + SEQ.len()..])?;
    let rest = rest.strip_prefix(TIMESTAMP)?;
    let (stamp, rest) = rest.split_at_checked(memchr::memchr(b'"', rest)?)?;
    let (tokens, rest) = digits(rest.strip_prefix(TOKENS)?)?;
    let rest = rest.strip_suffix(b"}")?;
    let (rest, redacted) = match memchr::memmem::rfind(rest, REDACTED) {
        Some(at) => {
            let hex = rest[at + REDACTED.len()..].strip_suffix(b"\"")?;
            let hex = std::str::from_utf8(hex).ok()?;
            (&rest[..at], Some(unhex(hex)?))
        }
        None => (rest, None),
    };
    (rest.is_empty() || is_role(rest)).then_some(())?;
    (line.first() == Some(&b'{')).then_some(())?;
    Some(Stored {
        cut,
        seq: Seq::new(seq)?,
        time: time::parse_iso(std::str::from_utf8(stamp).ok()?)?,
        tokens,
        redacted,
    })
}

fn is_role(text: &[u8]) -> bool {
    let name = text.strip_prefix(ROLE);
    let name = name.and_then(|name| name.strip_suffix(b"\""));
    name.is_some_and(|name| name.iter().all(u8::is_ascii_lowercase))
}

fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
    let number = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((number, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &[u8], seq: u64, tokens: u64, role: Option<Role>) -> (Vec<u8>, usize) {
        let marks = Marks {
            seq: Seq::new(seq).expect("a seq"),
            stamp: &time::iso(1_767_225_600_000),
            tokens,
            role,
            redacted: None,
        };
        let mut line = Vec::new();
        let cut = write(message, marks, &mut line);
        (line, cut)
    }

    #[test]
    fn cutting_restores_a_message_that_has_our_own_fields() {
        let message = br#"{"role":"user","content":"x","seq":5,"timestamp":"t","tokens":3}"#;
        let (line, cut) = line(message, 7, 2, None);
        assert_eq!(
            String::from_utf8_lossy(&line),
            "{\"role\":\"user\",\"content\":\"x\",\"seq\":5,\"timestamp\":\"t\",\"tokens\":3,\
             \"seq\":7,\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"tokens\":2}\n"
        );
        let line = &line[..line.len() - 1];
        let stored = split(line).unwrap();
        assert_eq!(stored.cut, cut);
        assert_eq!(
            (stored.seq.get(), stored.time, stored.tokens),
            (7, 1_767_225_600_000, 2)
        );
        assert_eq!(stored.body(line), message);
    }

    #[test]
    fn a_message_without_a_role_is_stored_with_one_and_restored_without() {
        let message = br#"{"type":"function_call_output","call_id":"a","output":"x"}"#;
        let (line, _) = line(message, 7, 2, Some(Role::Tool));
        let text = String::from_utf8_lossy(&line);
        assert!(
            text.ends_with("\"tokens\":2,\"role\":\"tool\"}\n"),
            "{text}"
        );
        let line = &line[..line.len() - 1];
        assert_eq!(split(line).unwrap().body(line), message);
    }

    #[test]
    fn line_breaks_between_tokens_are_left_out() {
        let message = b"{\r\n \"role\": \"user\",\n\"content\":\"a\\nb\"\n}";
        let (line, _) = line(message, 1, 1, None);
        assert!(line.starts_with(b"{ \"role\": \"user\",\"content\":\"a\\nb\",\"seq\":1,"));
    }

    #[test]
    fn a_redacted_message_says_what_it_came_to() {
        for (original, role) in [(Some([7; 16]), Some(Role::Tool)), (None, None)] {
            let marks = Marks {
                seq: Seq::FIRST,
                stamp: &time::iso(1_767_225_600_000),
                tokens: 3,
                role,
                redacted: Some(original),
            };
            let mut line = Vec::new();
            write(br#"{"output":"x"}"#, marks, &mut line);
            let line = &line[..line.len() - 1];
            let stored = split(line).unwrap();
            assert_eq!(stored.redacted, Some(original));
            assert_eq!(stored.body(line), br#"{"output":"x"}"#);
        }
        assert_eq!(unhex("07"), None);
    }

    #[test]
    fn a_line_cut_anywhere_is_not_one_of_ours() {
        for role in [None, Some(Role::User)] {
            let (line, _) = line(br#"{"role":"user","content":"x"}"#, 1, 12, role);
            for end in 0..line.len() - 1 {
                assert_eq!(split(&line[..end]), None, "cut at {end}");
            }
        }
    }
}
