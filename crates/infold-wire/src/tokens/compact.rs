use super::{Counter, image};
use crate::Json;
use crate::scan::{space, string_end};

/// Counts a value as the compact JSON that says the same, bit by bit.
///
/// Escapes that need not be are resolved, because a model is sent the characters. Inline data
/// is left out; its tokens, by the rule for images, are returned.
pub fn compact(value: Json<'_>, counter: &mut Counter) -> u64 {
    let text = value.bytes();
    let (mut at, mut data, mut key) = (0, 0, Json::checked(b"null"));
    while let Some(&byte) = text.get(at) {
        if byte != b'"' {
            let end = plain_end(text, at);
            counter.push(std::str::from_utf8(&text[at..end]).unwrap_or_default());
            at = space(text, end);
            continue;
        }
        let end = string_end(text, at);
        let string = Json::checked(&text[at..end]);
        at = space(text, end);
        if text.get(at) == Some(&b':') {
            key = string;
        } else if is_data(key, string) {
            data += image(Some(string));
            continue;
        }
        counter.push("\"");
        string.chunks(|chunk| counter.push(escaped(chunk)));
        counter.push("\"");
    }
    data
}

/// Where brackets, commas, numbers and names end.
fn plain_end(text: &[u8], start: usize) -> usize {
    let stop = |byte: &u8| matches!(byte, b'"' | b' ' | b'\t' | b'\n' | b'\r');
    let length = text[start..].iter().position(stop);
    length.map_or(text.len(), |length| start + length)
}

/// Says whether a member is inline data and not something to read.
fn is_data(key: Json<'_>, value: Json<'_>) -> bool {
    let named = matches!(&*key.name(), b"data" | b"file_data" | b"b64_json");
    // What is shorter is cheap to count as text, which is never less.
    value.bytes().len() > 64 && (named && !is_prose(value) || value.is_data_url())
}

/// Says whether a text has something in it that base64 has not.
fn is_prose(value: Json<'_>) -> bool {
    let bytes = &value.bytes()[1..value.bytes().len() - 1];
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_\\".contains(byte);
    !bytes.iter().all(base64)
}

/// A chunk as JSON has it. What needs an escape comes alone.
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
