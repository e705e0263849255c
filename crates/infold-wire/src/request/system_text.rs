//! Adds a text to the system prompt of a request, if that is a member.

use crate::edits::splice;
use crate::{Json, JsonKind, Wire, quote};

/// Returns the members that may hold the system prompt, the usual spelling first; empty if it is among the messages.
pub fn system_members(wire: Wire) -> &'static [&'static str] {
    match wire {
        Wire::Anthropic => &["system"],
        Wire::Responses => &["instructions"],
        Wire::Gemini => &["systemInstruction", "system_instruction"],
        Wire::Chat | Wire::Ollama => &[],
    }
}

/// Returns the value of such a member with a text at its end; every other byte of it stays. `None` if it has a form to
/// which no text can be added.
///
/// | the value | the text becomes |
/// | --- | --- |
/// | a string | the end of it |
/// | blocks (Anthropic) | one more block, without a mark for the cache: those of the client stay where they are |
/// | a content (Gemini) | one more part |
/// | missing, null or empty | the system prompt |
pub fn append_to_system(wire: Wire, value: Option<&[u8]>, text: &str) -> Option<Vec<u8>> {
    let quoted = quote(text);
    let block = match wire {
        Wire::Anthropic => format!(r#"{{"type":"text","text":{quoted}}}"#),
        _ => format!(r#"{{"text":{quoted}}}"#),
    };
    let whole = match wire {
        Wire::Gemini => format!(r#"{{"parts":[{block}]}}"#),
        _ => quoted,
    };
    let Some(value) = value else {
        return Some(whole.into_bytes());
    };
    let json = Json::parse(value).ok()?;
    let (list, added) = match (wire, json.kind()) {
        (_, JsonKind::Null) => return Some(whole.into_bytes()),
        (Wire::Anthropic | Wire::Responses, JsonKind::String) => {
            if json.text().is_some_and(|text| text.is_empty()) {
                return Some(whole.into_bytes());
            }
            let more = quote(&format!("\n\n{text}"));
            (json, more[1..more.len() - 1].to_owned())
        }
        (Wire::Anthropic, JsonKind::Array) => (json, block),
        (Wire::Gemini, JsonKind::Object) => {
            let parts = json.get("parts")?;
            (parts.kind() == JsonKind::Array).then_some((parts, block))?
        }
        _ => return None,
    };
    let comma = if list.kind() == JsonKind::Array && list.elements().next().is_some() {
        ","
    } else {
        ""
    };
    let end = list.range().end - 1;
    Some(splice(value, &[(end..end, format!("{comma}{added}"))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(wire: Wire, value: Option<&str>) -> String {
        let bytes = append_to_system(wire, value.map(str::as_bytes), "more \"of\" it");
        String::from_utf8(bytes.unwrap_or_default()).expect("text")
    }

    #[test]
    fn a_text_follows_the_system_prompt_of_each_wire() {
        let values = [
            (Wire::Anthropic, r#""be \u00e9""#),
            (Wire::Anthropic, r#""""#),
            (Wire::Anthropic, "null"),
            (Wire::Anthropic, "[]"),
            (
                Wire::Anthropic,
                r#"[{"type":"text","text":"be","cache_control":{"type":"ephemeral"}} ]"#,
            ),
            (Wire::Responses, r#""be""#),
            (
                Wire::Gemini,
                r#"{"role":"system","parts":[{"text":"be"}] }"#,
            ),
            (Wire::Gemini, r#"{"parts":[]}"#),
        ];
        let mut shown: Vec<String> = values
            .iter()
            .map(|(wire, value)| appended(*wire, Some(value)))
            .collect();
        shown.extend(
            [Wire::Anthropic, Wire::Responses, Wire::Gemini].map(|wire| appended(wire, None)),
        );
        insta::assert_snapshot!(shown.join("\n"), @r#"
        "be \u00e9\n\nmore \"of\" it"
        "more \"of\" it"
        "more \"of\" it"
        [{"type":"text","text":"more \"of\" it"}]
        [{"type":"text","text":"be","cache_control":{"type":"ephemeral"}} ,{"type":"text","text":"more \"of\" it"}]
        "be\n\nmore \"of\" it"
        {"role":"system","parts":[{"text":"be"},{"text":"more \"of\" it"}] }
        {"parts":[{"text":"more \"of\" it"}]}
        "more \"of\" it"
        "more \"of\" it"
        {"parts":[{"text":"more \"of\" it"}]}
        "#);
    }

    #[test]
    fn a_value_of_another_form_is_left_alone() {
        let values = [
            (Wire::Anthropic, "1"),
            (Wire::Responses, "[]"),
            (Wire::Gemini, r#""be""#),
            (Wire::Gemini, r#"{"parts":{"text":"be"}}"#),
            (Wire::Gemini, "{"),
        ];
        for (wire, value) in values {
            assert_eq!(appended(wire, Some(value)), "", "{wire} {value}");
        }
    }
}
