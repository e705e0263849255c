//! Reads and writes OpenAI chat and Anthropic messages, which need no conversion.

use infold_log::Role;

use super::neutral::chat::{put_call, put_part};
use super::neutral::{
    NeutralBlock, NeutralMessage, anthropic_message, push_all, push_list, read_content,
};
use super::writer::RecordOutput;
use super::{FormatReader, ReaderOutput};
use crate::message::block_is;
use crate::{Form, Json, JsonKind, Message};

/// Reads messages unchanged.
#[derive(Default)]
pub struct ChatReader;

impl FormatReader for ChatReader {
    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        let parsed = Message::parse(text).map_err(|error| error.to_string())?;
        output.message(parsed.bytes().to_vec(), None);
        Ok(())
    }

    fn system(
        &mut self,
        name: &str,
        value: &[u8],
        output: &mut ReaderOutput<'_>,
    ) -> Result<(), String> {
        if name != "system" {
            return Ok(());
        }
        let json = Json::parse(value).map_err(|error| error.to_string())?;
        match json.kind() {
            JsonKind::Null => {}
            JsonKind::String => {
                let content = String::from_utf8_lossy(json.bytes());
                let text = format!(r#"{{"role":"system","content":{content}}}"#);
                output.message(text.into_bytes(), None);
            }
            _ => output.message(anthropic_message(Role::System, &read_content(json)), None),
        }
        Ok(())
    }
}

/// Returns whether a message has features that only the other of the two dialects has.
pub fn is_foreign(message: &Message<'_>, anthropic: bool) -> bool {
    if message.form() != Form::Turn {
        return true;
    }
    let json = message.json();
    let has_block = |kinds: &str| {
        let mut blocks = message.blocks();
        blocks.any(|block| kinds.split(' ').any(|kind| block_is(block, kind)))
    };
    let names = |list: &str| list.split(' ').any(|name| json.get(name).is_some());
    if anthropic {
        message.role() == Role::Tool
            || json.get("role").is_some_and(|role| role.is("developer"))
            || names("tool_calls function_call reasoning_content refusal")
            || json.get("content").is_none_or(Json::is_null)
            || has_block("image_url input_image input_text output_text")
    } else {
        has_block("tool_use tool_result thinking redacted_thinking image document")
    }
}

/// Writes an OpenAI chat message; results become messages of their own.
pub fn write_chat(message: &Message<'_>, said: &NeutralMessage<'_>, to: &mut RecordOutput) {
    if !is_foreign(message, false) {
        return to.records.push(one_line(message));
    }
    let (mut calls, mut rest, mut thoughts) = (Vec::new(), Vec::new(), Vec::new());
    for block in &said.blocks {
        match block {
            NeutralBlock::Call(..) => calls.push(block),
            NeutralBlock::Thinking(text, _) => thoughts.push(text),
            NeutralBlock::Result {
                id,
                content,
                failed,
                ..
            } => {
                if *failed {
                    to.lose("error flags of results");
                }
                let mut record = format!(r#"{{"role":"tool","tool_call_id":{id},"content":"#);
                put_content(content, &mut record);
                record.push('}');
                to.records.push(record);
            }
            other => rest.push(other.clone()),
        }
    }
    if rest.is_empty() && calls.is_empty() && thoughts.is_empty() && !said.blocks.is_empty() {
        return;
    }
    let mut record = format!(r#"{{"role":"{}","content":"#, said.role.wire_name());
    if rest.is_empty() && !calls.is_empty() {
        record.push_str("null");
    } else {
        put_content(&rest, &mut record);
    }
    if let [first, more @ ..] = &thoughts[..] {
        // The member is one text, without signatures.
        let text = more
            .iter()
            .fold(first.to_string(), |text, more| join_strings(&text, more));
        push_all(&mut record, &[",\"reasoning_content\":", &text]);
    }
    if !calls.is_empty() {
        record.push_str(",\"tool_calls\":");
        push_list(&calls, &mut record, |call, out| {
            if let NeutralBlock::Call(id, name, input) = call {
                put_call(id, name, input, out);
            }
        });
    }
    record.push('}');
    to.records.push(record);
}

/// Joins two JSON strings with a line break.
fn join_strings(first: &str, second: &str) -> String {
    format!("{}\\n{}", &first[..first.len() - 1], &second[1..])
}

/// Writes one text as a string, other content as a list.
fn put_content(blocks: &[NeutralBlock<'_>], out: &mut String) {
    match blocks {
        [] => out.push_str("\"\""),
        [NeutralBlock::Text(text)] => out.push_str(text),
        blocks => push_list(blocks, out, put_part),
    }
}

/// Writes an Anthropic message.
pub fn write_anthropic(message: &Message<'_>, said: &NeutralMessage<'_>, to: &mut RecordOutput) {
    if !is_foreign(message, true) {
        return to.records.push(one_line(message));
    }
    let text = super::neutral::anthropic_message(said.role, &said.blocks);
    to.records.push(String::from_utf8_lossy(&text).into_owned());
}

/// Returns a message without the line breaks between its tokens.
pub fn one_line(message: &Message<'_>) -> String {
    let mut text = String::from_utf8_lossy(message.bytes()).into_owned();
    // A break inside a string is escaped, so every unescaped one is between tokens.
    text.retain(|char| !matches!(char, '\n' | '\r'));
    text
}
