//! Evaluates and prints JSON values as JavaScript does.
//!
//! Agents written in JavaScript parse a message and print it again before they
//! measure it. The printed text differs from the bytes: numbers pass through
//! a double, duplicate keys collapse, keys that look like array indices move to
//! the front. These functions print the same text.
//!
//! ```
//! use infold_wire::{Json, js};
//!
//! let value = Json::parse(br#"{ "b": 1e21, "1": "\u0061\ud83d", "b": 0.0000001 }"#)?;
//! assert_eq!(js::stringify(value), r#"{"1":"a\ud83d","b":1e-7}"#);
//! assert_eq!(js::weight(value), 24);
//! # Ok::<(), infold_wire::JsonError>(())
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use memchr::memchr;

use crate::{Json, JsonKind};

/// Says whether JavaScript takes the value for true.
///
/// Zero, the empty string, `false` and `null` are not; an empty list is.
pub fn is_truthy(value: Json<'_>) -> bool {
    match value.kind() {
        JsonKind::Object | JsonKind::Array => true,
        JsonKind::String => value.bytes() != br#""""#,
        JsonKind::Number => value.number().is_some_and(|number| number != 0.0),
        JsonKind::Bool => value.is_true(),
        JsonKind::Null => false,
    }
}

/// Returns `text.trim()`: a byte order mark is white space, U+0085 is not.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c == '\u{feff}' || c.is_whitespace() && c != '\u{85}')
}

/// Returns how many UTF-16 units [`stringify()`] would print: `JSON.stringify(value).length`.
pub fn weight(value: Json<'_>) -> usize {
    stringify(value).encode_utf16().count()
}

/// Returns the compact JSON that `JSON.stringify(JSON.parse(value))` would print.
///
/// Lone surrogates come out as six-character escapes, so the text is valid UTF-8.
pub fn stringify(value: Json<'_>) -> String {
    let mut out = String::with_capacity(value.bytes().len());
    // A list of steps instead of recursion: the sender chooses the depth of a
    // value, and it must not overflow the stack.
    let mut todo = vec![PrintStep::Value(value)];
    while let Some(step) = todo.pop() {
        match step {
            PrintStep::Text(text) => out.push_str(text),
            PrintStep::Key(key) => out.push_str(&key),
            PrintStep::Value(value) => print(value, &mut out, &mut todo),
        }
    }
    out
}

/// Returns the number as `String(number)` prints it: `1e+21`, `1e-7`, `123`.
pub fn number(number: f64) -> String {
    // Minus zero, too, prints as 0.
    if number == 0.0 {
        return "0".to_owned();
    }
    if !number.is_finite() {
        let text = if number.is_nan() { "NaN" } else { "Infinity" };
        return format!("{}{text}", sign(number));
    }
    let (digits, point) = shortest(number.abs());
    let count = digits.len();
    let text = match point {
        1..=21 => match digits.split_at_checked(point as usize) {
            None | Some((_, "")) => format!("{digits:0<width$}", width = point as usize),
            Some((whole, rest)) => format!("{whole}.{rest}"),
        },
        -5..=0 => format!("0.{digits:0>width$}", width = count + point.unsigned_abs()),
        _ => {
            let (first, rest) = digits.split_at(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{:+}", point - 1)
        }
    };
    format!("{}{text}", sign(number))
}

/// Returns the number as `JSON.stringify` prints it: infinite values and NaN become `null`.
pub fn json_number(value: f64) -> String {
    if value.is_finite() {
        number(value)
    } else {
        "null".to_owned()
    }
}

/// Returns a string value as `JSON.stringify` prints it, quotes included.
///
/// Two string values are the same to JavaScript exactly if this text is the same.
pub(crate) fn quoted(string: Json<'_>) -> Cow<'_, str> {
    let text = std::str::from_utf8(string.bytes()).expect("parse checked that the text is UTF-8");
    if memchr(b'\\', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    out.push('"');
    for unit in char::decode_utf16(string.utf16().unwrap_or_default()) {
        match unit {
            Ok(char) => push_escaped(char, &mut out),
            Err(lone) => push_unit(lone.unpaired_surrogate(), &mut out),
        }
    }
    out.push('"');
    Cow::Owned(out)
}

enum PrintStep<'a> {
    Text(&'static str),
    Key(Cow<'a, str>),
    Value(Json<'a>),
}

/// Prints a scalar; a container becomes steps to do.
fn print<'a>(value: Json<'a>, out: &mut String, todo: &mut Vec<PrintStep<'a>>) {
    let start = todo.len();
    match value.kind() {
        JsonKind::Object => {
            todo.push(PrintStep::Text("{"));
            for (key, value) in properties(value) {
                todo.extend([
                    PrintStep::Key(key),
                    PrintStep::Text(":"),
                    PrintStep::Value(value),
                ]);
                todo.push(PrintStep::Text(","));
            }
            close(todo, start, "}");
        }
        JsonKind::Array => {
            todo.push(PrintStep::Text("["));
            for element in value.elements() {
                todo.extend([PrintStep::Value(element), PrintStep::Text(",")]);
            }
            close(todo, start, "]");
        }
        JsonKind::String => out.push_str(&quoted(value)),
        JsonKind::Number => out.push_str(&json_number(value.number().unwrap_or(f64::NAN))),
        JsonKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        JsonKind::Null => out.push_str("null"),
    }
}

/// Completes a container from the steps since `start`, and puts its first step on top.
fn close(todo: &mut Vec<PrintStep<'_>>, start: usize, bracket: &'static str) {
    if todo.len() > start + 1 {
        // Drop the comma after the last element.
        todo.pop();
    }
    todo.push(PrintStep::Text(bracket));
    todo[start..].reverse();
}

/// Returns an object's properties as JavaScript lists them: array indices first and in
/// ascending order, then the others as they came; of duplicates the place of
/// the first and the value of the last.
fn properties(object: Json<'_>) -> Vec<(Cow<'_, str>, Json<'_>)> {
    let mut places: HashMap<Cow<'_, str>, usize> = HashMap::new();
    let mut listed: Vec<(Cow<'_, str>, Json<'_>)> = Vec::new();
    for (key, value) in object.members() {
        let key = quoted(key);
        match places.get(&key) {
            Some(&place) => listed[place].1 = value,
            None => {
                places.insert(key.clone(), listed.len());
                listed.push((key, value));
            }
        }
    }
    listed.sort_by_key(|(key, _)| array_index(key).map_or((1, 0), |index| (0, index)));
    listed
}

/// Returns the array index that a quoted key is, if JavaScript would print it so.
fn array_index(key: &str) -> Option<u32> {
    let digits = &key[1..key.len() - 1];
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    let index = plain.then(|| digits.parse().ok()).flatten()?;
    // The largest u32 is a length, never an index.
    (index != u32::MAX).then_some(index)
}

fn push_escaped(char: char, out: &mut String) {
    match char {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0'..='\u{1f}' => push_unit(char as u16, out),
        _ => out.push(char),
    }
}

fn push_unit(unit: u16, out: &mut String) {
    write!(out, "\\u{unit:04x}").expect("a String takes everything");
}

fn sign(number: f64) -> &'static str {
    if number < 0.0 { "-" } else { "" }
}

/// Returns the shortest digits that parse as this double, and the position of the decimal point.
fn shortest(number: f64) -> (String, isize) {
    let text = format!("{number:e}");
    // Of two equally short and equally close texts JavaScript takes the
    // even one, and so does rounding to that many digits. At a power of two the
    // rounded text may parse as the neighbouring double: then the first text is the only one.
    let digits = text.bytes().take_while(|byte| *byte != b'e').count();
    let rounded = format!("{number:.*e}", digits.saturating_sub(2));
    let same = rounded.parse() == Ok(number);
    let text = if same { rounded } else { text };
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: isize = exponent.parse().unwrap_or_default();
    (digits.replace('.', ""), exponent + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(text: &str) -> String {
        stringify(Json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn numbers_print_as_in_javascript() {
        let expected = [
            ("0", "0"),
            ("-0", "0"),
            ("1.50", "1.5"),
            ("100", "100"),
            ("-3", "-3"),
            ("123456789012345680000", "123456789012345680000"),
            ("999999999999999999999", "1e+21"),
            ("1e21", "1e+21"),
            ("1.25e+25", "1.25e+25"),
            ("0.000001", "0.000001"),
            ("0.0000012", "0.0000012"),
            ("0.0000001", "1e-7"),
            ("-1.5e-9", "-1.5e-9"),
            ("9007199254740993", "9007199254740992"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("0.1", "0.1"),
            ("12345.678", "12345.678"),
            ("78917167936789.625", "78917167936789.62"),
            ("5.0e-324", "5e-324"),
            ("9.5367431640625e-7", "9.5367431640625e-7"),
            ("1e999", "null"),
        ];
        for (text, printed) in expected {
            assert_eq!(print(text), printed, "{text}");
        }
        assert_eq!(number(f64::NEG_INFINITY), "-Infinity");
        assert_eq!(number(f64::NAN), "NaN");
    }

    #[test]
    fn strings_are_escaped_no_more_than_needed() {
        assert_eq!(
            print(r#""\u0041\/\u0001\b\f\n\r\t\"\\\u007f\u2028é""#),
            "\"A/\\u0001\\b\\f\\n\\r\\t\\\"\\\\\u{7f}\u{2028}é\""
        );
        assert_eq!(print(r#""\ud83d\ude80 \uDE80""#), r#""🚀 \ude80""#);
    }

    #[test]
    fn keys_are_listed_as_in_javascript() {
        let text =
            r#"{"b":1,"10":2,"a":3,"9":4,"b":5,"01":6,"\u0061":7,"4294967295":8,"4294967294":9}"#;
        assert_eq!(
            print(text),
            r#"{"9":4,"10":2,"4294967294":9,"b":5,"a":7,"01":6,"4294967295":8}"#
        );
    }

    #[test]
    fn containers_nest_and_may_be_empty() {
        assert_eq!(
            print(r#" [ { } , [ ] , { "a" : [ 1 , null ] } , true , false ] "#),
            r#"[{},[],{"a":[1,null]},true,false]"#
        );
    }

    #[test]
    fn depth_is_not_limited_by_the_stack() {
        let depth = 5_000;
        let text = "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(print(&text), text);
    }

    #[test]
    fn weights_count_utf16_units() {
        let weigh = |text: &str| weight(Json::parse(text.as_bytes()).unwrap());
        assert_eq!(weigh(r#""é🚀""#), 5);
        assert_eq!(weigh(r#""\ud83d""#), 8);
    }

    #[test]
    fn white_space_is_what_javascript_takes_for_it() {
        assert_eq!(trim("\u{feff}\u{a0}\u{3000}\u{b}a b\u{2029}\r\n"), "a b");
        assert_eq!(trim("\u{85}a\u{200b}"), "\u{85}a\u{200b}");
    }

    #[test]
    fn empty_and_zero_are_false_and_empty_containers_true() {
        for text in ["0", "-0.0", "1e-999", "\"\"", "false", "null"] {
            assert!(!is_truthy(Json::parse(text.as_bytes()).unwrap()), "{text}");
        }
        for text in ["1", "\"0\"", "\"\\u0000\"", "true", "{}", "[]", "1e999"] {
            assert!(is_truthy(Json::parse(text.as_bytes()).unwrap()), "{text}");
        }
    }
}
