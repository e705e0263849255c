//! Counts the tokens of any JSON value.

use super::{Counter, image};
use crate::Json;
use crate::scan::{skip_space, string_end};

/// Counts a value as compact JSON.
///
/// Unnecessary escapes are resolved, because a model is sent the characters. Inline data is left out; its tokens, by
/// the rule for images, are returned.
pub fn count_json(value: Json<'_>, counter: &mut Counter) -> u64 {
    let text = value.bytes();
    let (mut at, mut data, mut key) = (0, 0, Json::checked(b"null"));
    while let Some(&byte) = text.get(at) {
        if byte != b'"' {
            let end = plain_end(text, at);
            counter.push(std::str::from_utf8(&text[at..end]).unwrap_or_default());
            at = skip_space(text, end);
            continue;
        }
        let end = string_end(text, at);
        let string = Json::checked(&text[at..end]);
        at = skip_space(text, end);
        if text.get(at) == Some(&b':') {
            key = string;
        } else if is_data(key, string) {
            data += image(Some(string));
            continue;
        }
        counter.push("\"");
        string.for_each_chunk(|chunk| counter.push(escaped(chunk)));
        counter.push("\"");
    }
    data
}

/// Returns where brackets, commas, numbers and names end.
fn plain_end(text: &[u8], start: usize) -> usize {
    let stop = |byte: &u8| matches!(byte, b'"' | b' ' | b'\t' | b'\n' | b'\r');
    let length = text[start..].iter().position(stop);
    length.map_or(text.len(), |length| start + length)
}

/// Returns whether a member is inline data.
fn is_data(key: Json<'_>, value: Json<'_>) -> bool {
    let named = matches!(&*key.name(), b"data" | b"file_data" | b"b64_json");
    // Shorter data is cheap to count as text, which is never less.
    value.bytes().len() > 64 && (named && !is_prose(value) || value.is_data_url())
}

/// Returns whether a text has characters that base64 does not have.
fn is_prose(value: Json<'_>) -> bool {
    let bytes = &value.bytes()[1..value.bytes().len() - 1];
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_\\".contains(byte);
    !bytes.iter().all(base64)
}

/// Returns a chunk as JSON has it. Characters that need an escape come alone.
fn escaped(chunk: &str) -> &str {
    match chunk {
        "\"" => "\\\"",
        "\\" => "\\\\",
        "\n" => "\\n",
        "\r" => "\\r",
        "\t" => "\\t",
        _ => chunk,
    }
}
