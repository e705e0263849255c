//! Reads and writes Gemini's contents: parts with the roles `user` and `model`.

use std::collections::VecDeque;

use infold_log::Role;

use super::neutral::gemini::{put_part, put_result, read_part};
use super::neutral::{
    CallRound, NeutralBlock, NeutralMessage, ObjectMembers, anthropic_message, push_all, push_list,
    raw_json,
};
use super::writer::RecordOutput;
use super::{FormatReader, ReaderOutput};
use crate::{Json, JsonKind};

/// Reads contents. Calls without an id get one, and their results the same.
#[derive(Default)]
pub struct GeminiReader {
    round: CallRound,
}

/// The number of call names that are kept; results of older calls have none.
const MAX_CALL_NAMES: usize = 1024;

impl FormatReader for GeminiReader {
    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        let json = ObjectMembers::parse(text)?;
        let parts = json.get("parts").ok_or("no \"parts\"")?;
        let role = match json.get("role").and_then(Json::text).as_deref() {
            Some("model" | "assistant") => Role::Assistant,
            Some("system") => Role::System,
            Some("user" | "function" | "tool") | None => Role::User,
            Some(other) => {
                return Err(format!(
                    "unknown role `{other}` (known: user, model, function)"
                ));
            }
        };
        if role == Role::Assistant {
            self.round.clear();
        }
        let mut blocks = read_parts(parts);
        blocks
            .iter_mut()
            .for_each(|block| self.round.assign_id(block));
        output.message(anthropic_message(role, &blocks), None);
        Ok(())
    }

    fn system(
        &mut self,
        name: &str,
        value: &[u8],
        output: &mut ReaderOutput<'_>,
    ) -> Result<(), String> {
        if name == "system" {
            return Ok(());
        }
        let json = Json::parse(value).map_err(|error| error.to_string())?;
        if json.is_null() {
            return Ok(());
        }
        let blocks = match json.kind() {
            JsonKind::String => vec![NeutralBlock::Text(raw_json(json))],
            _ => read_parts(json.get("parts").unwrap_or(json)),
        };
        output.message(anthropic_message(Role::System, &blocks), None);
        Ok(())
    }
}

/// Reads a part, or a list of them.
fn read_parts(parts: Json<'_>) -> Vec<NeutralBlock<'_>> {
    match parts.kind() {
        JsonKind::Object => vec![read_part(parts)],
        _ => parts.elements().map(read_part).collect(),
    }
}

/// Writes a message as contents.
pub fn write(said: &NeutralMessage<'_>, names: &mut CallNames, to: &mut RecordOutput) {
    let role = match said.role {
        Role::Assistant => "model",
        Role::System => "system",
        Role::User | Role::Tool => "user",
    };
    let mut record = format!(r#"{{"role":"{role}","parts":"#);
    let parts: Vec<String> = said
        .blocks
        .iter()
        .filter_map(|block| write_part(block, names, to))
        .collect();
    push_list(&parts, &mut record, |part, out| out.push_str(part));
    record.push('}');
    to.records.push(record);
}

/// The names of calls by their ids, which results must have.
#[derive(Debug, Default)]
pub struct CallNames(VecDeque<(String, String)>);

impl CallNames {
    /// Adds a call.
    pub fn call(&mut self, id: &str, name: &str) {
        if self.0.len() == MAX_CALL_NAMES {
            self.0.pop_front();
        }
        self.0.push_back((id.to_owned(), name.to_owned()));
    }

    /// Adds the calls of a message.
    pub fn add_calls(&mut self, said: &NeutralMessage<'_>) {
        for block in &said.blocks {
            if let NeutralBlock::Call(id, name, _) = block {
                self.call(id, name);
            }
        }
    }

    /// Returns the name of a call, as a JSON string.
    pub fn of(&self, id: &str) -> &str {
        let output = self.0.iter().rev().find(|(known, _)| known == id);
        output.map_or("\"\"", |(_, name)| name)
    }
}

/// Writes a block as a part.
pub fn write_part(
    block: &NeutralBlock<'_>,
    names: &mut CallNames,
    to: &mut RecordOutput,
) -> Option<String> {
    let mut out = String::new();
    if let NeutralBlock::Call(id, name, _) = block {
        names.call(id, name);
    }
    match block {
        NeutralBlock::Thinking(text, signature) => {
            push_all(&mut out, &["{\"text\":", text, ",\"thought\":true"]);
            if let Some(signature) = signature {
                push_all(&mut out, &[",\"thoughtSignature\":", signature]);
            }
            out.push('}');
        }
        NeutralBlock::Result {
            id,
            content,
            failed,
            ..
        } => {
            let text = super::writer::join_texts(content, to);
            put_result(id, names.of(id), &text, *failed, &mut out);
        }
        NeutralBlock::Other(raw) => {
            let is_typed = Json::parse(raw.as_bytes()).is_ok_and(|json| json.get("type").is_some());
            if is_typed {
                to.lose("blocks of other formats");
                return None;
            }
            out.push_str(raw);
        }
        other => drop(put_part(other, &mut out)),
    }
    Some(out)
}
