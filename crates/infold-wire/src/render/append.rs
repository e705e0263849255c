//! Adds a text of ours to the end of a client's message.

use infold_log::Role;

use super::{BlockStyle, block_is};
use crate::edits::splice;
use crate::{Form, Json, JsonKind, Message, PartKind, quote};

/// The beginning of every recalled excerpt. If a message with results and an excerpt is converted to a wire whose
/// results are separate messages, the excerpt is recognised by it.
pub const RECALLED_HEAD: &str = "[Recalled from message ";

/// The beginning of a part of the layered state, by which it is recognised in the same way.
pub const CONTEXT_HEAD: &str = "<context>\n";
/// The end of a part of the layered state.
pub const CONTEXT_TAIL: &str = "</context>\n";

/// Returns a message of the user's, or one with tool results, with a text at its end; every other byte stays.
///
/// | the message holds | the text becomes |
/// | --- | --- |
/// | a string (chat, Anthropic, Ollama, Responses; tool results of chat, Ollama and Responses) | the end of that string |
/// | a list of blocks, parts or items, of tool results too (Anthropic, Gemini) | one more text block behind them |
///
/// `None` if that would not be valid: behind the model's own words, and in results of another form.
pub fn append_text(message: &Message<'_>, text: &str) -> Option<Vec<u8>> {
    if !matches!(message.role(), Role::User | Role::Tool) {
        return None;
    }
    let value = match message.output() {
        Some(output) => {
            let mut parts = message.parts().into_iter();
            parts
                .all(|part| part.kind == PartKind::Result && has_free_output(message))
                .then_some(output)?
        }
        None => message.parts_or_content()?,
    };
    append_to_value(message, value, text)
}

/// Returns a system message with a text at its end, in the form of [`append_text`]; `None` for any other message.
pub fn append_system_text(message: &Message<'_>, text: &str) -> Option<Vec<u8>> {
    if message.role() != Role::System {
        return None;
    }
    append_to_value(message, message.parts_or_content()?, text)
}

fn append_to_value(message: &Message<'_>, value: Json<'_>, text: &str) -> Option<Vec<u8>> {
    let start = message.json().range().start;
    let end = value.range().end - 1 - start;
    let added = match value.kind() {
        JsonKind::String => {
            let quoted = quote(&format!("\n\n{text}"));
            quoted[1..quoted.len() - 1].to_owned()
        }
        JsonKind::Array => {
            // A message of Responses need not have a type: its blocks identify it.
            let is_input = |block: Json<'_>| INPUT_BLOCKS.iter().any(|kind| block_is(block, kind));
            let style = match message.form() {
                Form::Turn if value.elements().any(is_input) => BlockStyle::Item,
                form => BlockStyle::of(form),
            };
            let comma = if value.elements().next().is_some() {
                ","
            } else {
                ""
            };
            format!("{comma}{}", style.text_block(Role::User, &quote(text)))
        }
        _ => return None,
    };
    Some(splice(message.bytes(), &[(end..end, added)]))
}

/// The blocks of a user's message on the wire of Responses.
const INPUT_BLOCKS: [&str; 3] = ["input_text", "input_image", "input_file"];

/// Says whether an item's output is free text: that of a local shell is JSON, and others have their own form.
fn has_free_output(message: &Message<'_>) -> bool {
    let is = |kind: &str| message.kind().is_some_and(|found| found.is(kind));
    is("function_call_output") || is("custom_tool_call_output")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appended(text: &str) -> Option<String> {
        let message = Message::parse(text.as_bytes()).expect("a message");
        let bytes = append_text(&message, "more \"of\" it")?;
        let longer = Message::parse(&bytes).expect("still a message");
        assert_eq!(longer.facts().answers, message.facts().answers);
        assert_eq!(longer.facts().role, message.facts().role);
        assert_eq!(longer.wires(), message.wires());
        Some(String::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn a_text_is_added_in_the_form_of_each_wire() {
        let lines = [
            r#" {"role":"user","content":"a \ud83d" ,"x":1}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a"} ]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}"#,
            r#"{"role":"tool","tool_call_id":"c","content":"r"}"#,
            r#"{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"r"}]}"#,
            r#"{"role":"tool","tool_name":"ls","content":"r"}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}"#,
            r#"{"role":"user","content":[{"type":"input_text","text":"a"}]}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"r"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"r"}]}"#,
            r#"{"role":"user","parts":[{"text":"a"}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"r"}}}]}"#,
        ];
        let shown = lines.map(|line| appended(line).unwrap_or_default());
        insta::assert_snapshot!(shown.join("\n"), @r#"
        {"role":"user","content":"a \ud83d\n\nmore \"of\" it" ,"x":1}
        {"role":"user","content":[{"type":"text","text":"a"} ,{"type":"text","text":"more \"of\" it"}]}
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"},{"type":"text","text":"more \"of\" it"}]}
        {"role":"tool","tool_call_id":"c","content":"r\n\nmore \"of\" it"}
        {"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"r"},{"type":"text","text":"more \"of\" it"}]}
        {"role":"tool","tool_name":"ls","content":"r\n\nmore \"of\" it"}
        {"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"more \"of\" it"}]}
        {"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"more \"of\" it"}]}
        {"type":"function_call_output","call_id":"c","output":"r\n\nmore \"of\" it"}
        {"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"r"},{"type":"input_text","text":"more \"of\" it"}]}
        {"role":"user","parts":[{"text":"a"},{"text":"more \"of\" it"}]}
        {"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"r"}}},{"text":"more \"of\" it"}]}
        "#);
    }

    #[test]
    fn a_text_is_added_to_a_system_message_and_to_no_other() {
        let lines = [
            r#"{"role":"system","content":"be \u00e9"}"#,
            r#"{"role":"developer","content":[{"type":"text","text":"be"}]}"#,
            r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"be"}]}"#,
            r#"{"role":"user","content":"be"}"#,
        ];
        let shown = lines.map(|line| {
            let message = Message::parse(line.as_bytes()).expect("a message");
            let bytes = append_system_text(&message, "more").unwrap_or_default();
            String::from_utf8(bytes).expect("text")
        });
        insta::assert_snapshot!(shown.join("\n"), @r#"
        {"role":"system","content":"be \u00e9\n\nmore"}
        {"role":"developer","content":[{"type":"text","text":"be"},{"type":"text","text":"more"}]}
        {"type":"message","role":"developer","content":[{"type":"input_text","text":"be"},{"type":"input_text","text":"more"}]}
        "#);
    }

    #[test]
    fn nothing_is_added_where_it_would_not_be_valid() {
        let lines = [
            r#"{"role":"assistant","content":"prefill"}"#,
            r#"{"role":"system","content":"be"}"#,
            r#"{"role":"model","parts":[{"text":"a"}]}"#,
            r#"{"type":"shell_call_output","call_id":"a","output":[{"stdout":"x"}]}"#,
            r#"{"type":"local_shell_call_output","id":"a","output":"{\"output\":\"x\"}"}"#,
            r#"{"type":"function_call","call_id":"a","name":"ls","arguments":"{}"}"#,
        ];
        for line in lines {
            assert_eq!(appended(line), None, "{line}");
        }
    }
}
