use infold_log::Seq;

use crate::time;

/// The bookkeeping behind a message in `messages.jsonl`.
///
/// A line is the message's own bytes with `,"seq":…,"timestamp":…,"tokens":…` put
/// before the last brace: cutting there restores it, whatever members it has.
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
}

const SEQ: &[u8] = b",\"seq\":";
const TIMESTAMP: &[u8] = b",\"timestamp\":\"";
const TOKENS: &[u8] = b"\",\"tokens\":";

/// Appends the line of a message, line break included. Line breaks between tokens are left out.
pub fn write(message: &[u8], seq: Seq, stamp: &str, tokens: u64, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    match memchr::memchr2(b'\n', b'\r', message) {
        // A break inside a text would be escaped, so every bare one stands between tokens.
        Some(_) => out.extend(message.iter().copied().filter(|byte| !is_break(*byte))),
        None => out.extend_from_slice(message),
    }
    out.pop();
    let cut = out.len() - start;
    out.extend_from_slice(SEQ);
    decimal(seq.get(), out);
    out.extend_from_slice(TIMESTAMP);
    out.extend_from_slice(stamp.as_bytes());
    out.extend_from_slice(TOKENS);
    decimal(tokens, out);
    out.extend_from_slice(b"}");
    out.push(b'\n');
    cut
}

/// Appends a number's digits; the general formatter is what an append would wait for most.
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
    (rest == b"}" && line.first() == Some(&b'{')).then_some(())?;
    Some(Stored {
        cut,
        seq: Seq::new(seq)?,
        time: time::parse_iso(std::str::from_utf8(stamp).ok()?)?,
        tokens,
    })
}

fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
    let number = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((number, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_restores_a_message_that_has_our_own_fields() {
        let message = br#"{"role":"user","content":"x","seq":5,"timestamp":"t","tokens":3}"#;
        let mut line = Vec::new();
        let seq = Seq::new(7).unwrap();
        let cut = write(message, seq, &time::iso(1_767_225_600_000), 2, &mut line);
        assert_eq!(
            String::from_utf8_lossy(&line),
            "{\"role\":\"user\",\"content\":\"x\",\"seq\":5,\"timestamp\":\"t\",\"tokens\":3,\
             \"seq\":7,\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"tokens\":2}\n"
        );
        let stored = split(&line[..line.len() - 1]).unwrap();
        assert_eq!(stored.cut, cut);
        assert_eq!(
            (stored.seq, stored.time, stored.tokens),
            (seq, 1_767_225_600_000, 2)
        );
        assert_eq!([&line[..cut], b"}"].concat(), message);
    }

    #[test]
    fn line_breaks_between_tokens_are_left_out() {
        let mut line = Vec::new();
        write(
            b"{\r\n \"role\": \"user\",\n\"content\":\"a\\nb\"\n}",
            Seq::FIRST,
            &time::iso(0),
            1,
            &mut line,
        );
        assert!(line.starts_with(b"{ \"role\": \"user\",\"content\":\"a\\nb\",\"seq\":1,"));
    }

    #[test]
    fn a_line_cut_anywhere_is_not_one_of_ours() {
        let mut line = Vec::new();
        write(
            br#"{"role":"user","content":"x"}"#,
            Seq::FIRST,
            &time::iso(0),
            12,
            &mut line,
        );
        for end in 0..line.len() - 1 {
            assert_eq!(split(&line[..end]), None, "cut at {end}");
        }
    }
}
