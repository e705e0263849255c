//! Cuts long JSON strings down to their front and end before decoding them.

use std::borrow::Cow;

use memchr::{memchr, memrchr};

use crate::scan::decode_escape;
use crate::{Json, JsonKind};

/// The most bytes that a cut is moved to keep a word whole.
const MAX_WORD_BYTES: usize = 256;

/// Returns a string's text; of a long one its front and its end, with a line `…` between.
///
/// Only the returned part is decoded, so the cost of a huge text is that of a short one.
pub fn excerpt(json: Json<'_>, front: usize, back: usize) -> Option<Cow<'_, str>> {
    if json.kind() != JsonKind::String {
        return None;
    }
    let bytes = json.bytes();
    let inner = &bytes[1..bytes.len() - 1];
    if inner.len() <= front + back {
        return Some(decode(inner));
    }
    let head = word_end(inner, front);
    // A space is never part of an escape or of a longer character.
    let tail = inner.len() - back;
    let space = memchr(b' ', &inner[tail..][..back.min(MAX_WORD_BYTES)]);
    let tail = space.map_or_else(|| boundary(inner, tail), |space| tail + space + 1);
    let mut out = decode(&inner[..head]).into_owned();
    out.push_str("\n…\n");
    out.push_str(&decode(&inner[tail..]));
    Some(Cow::Owned(out))
}

/// Returns the bytes of any value; of a long one its front and its end.
pub fn raw_excerpt(json: Json<'_>, front: usize, back: usize) -> Cow<'_, str> {
    let bytes = json.bytes();
    if bytes.len() <= front + back {
        return String::from_utf8_lossy(bytes);
    }
    let head = &bytes[..word_end(bytes, front)];
    let tail = &bytes[boundary(bytes, bytes.len() - back)..];
    let [head, tail] = [head, tail].map(String::from_utf8_lossy);
    Cow::Owned(format!("{head}\n…\n{tail}"))
}

/// Returns the end of the last whole word before `at`, so that no part of a name is taken for a name.
fn word_end(bytes: &[u8], at: usize) -> usize {
    let from = at.saturating_sub(MAX_WORD_BYTES);
    let space = memrchr(b' ', &bytes[from..at]);
    space.map_or_else(|| boundary(bytes, at), |space| from + space)
}

/// Returns the start of the character at `at`.
fn boundary(bytes: &[u8], mut at: usize) -> usize {
    while at > 0 && at < bytes.len() && bytes[at] & 0xc0 == 0x80 {
        at -= 1;
    }
    at
}

/// Decodes part of a JSON string without its quotes. An escape cut in two at its end is left out.
fn decode(piece: &[u8]) -> Cow<'_, str> {
    if memchr(b'\\', piece).is_none() {
        return String::from_utf8_lossy(piece);
    }
    let mut out = Vec::with_capacity(piece.len());
    let mut rest = piece;
    while let Some(at) = memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let Some((length, decoded)) = decode_escape(&rest[at..]) else {
            rest = &[];
            break;
        };
        let decoded = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(decoded.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[at + length..];
    }
    out.extend_from_slice(rest);
    Cow::Owned(match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, front: usize, back: usize) -> String {
        excerpt(Json::parse(text.as_bytes()).unwrap(), front, back)
            .unwrap()
            .into_owned()
    }

    #[test]
    fn short_texts_are_decoded_whole() {
        let text = r#""a\n\t\"b\" \u00e9 \ud83d\ude80 \ud83d x 中\/\\""#;
        assert_eq!(of(text, 100, 100), "a\n\t\"b\" é 🚀 \u{fffd} x 中/\\");
        let json = Json::parse(text.as_bytes()).unwrap();
        assert_eq!(json.text().unwrap(), of(text, 100, 100));
    }

    #[test]
    fn long_texts_show_their_front_and_their_end_wherever_they_are_cut() {
        let text = r#""ab\u00e9cd中文\ud83d\ude80\\\\ and the end""#;
        for front in 0..20 {
            for back in 0..16 {
                let cut = of(text, front, back);
                assert!(cut.contains('…'), "{cut}");
            }
        }
        assert_eq!(of(text, 2, 8), "ab\n…\nthe end");
        assert_eq!(of(text, 2, 0), "ab\n…\n");
    }

    #[test]
    fn a_long_text_is_cut_between_words() {
        let words = "SessionState ".repeat(40);
        for front in 20..60 {
            let text = of(&format!("\"{words}\""), front, 30);
            let names: Vec<&str> = text.split_whitespace().collect();
            assert!(
                names
                    .iter()
                    .all(|name| ["SessionState", "…"].contains(name)),
                "{text}"
            );
        }
    }
}
