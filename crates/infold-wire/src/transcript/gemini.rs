//! Reads and writes Gemini's contents: parts with the roles `user` and `model`.

use std::collections::VecDeque;

use infold_log::Role;

use super::said::gemini::{part, put_part, put_result};
use super::said::{Block, Fields, Round, Said, list, message, put, raw};
use super::writer::RecordOutput;
use super::{FormatReader, ReaderOutput};
use crate::{Json, Kind};

/// Reads contents. Calls without an id get one, and their results the same.
#[derive(Default)]
pub struct GeminiReader {
    round: Round,
}

/// No more names of calls are remembered; results of older calls have none.
const MAX_CALL_NAMES: usize = 1024;

impl FormatReader for GeminiReader {
    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        let json = Fields::parse(text)?;
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
        blocks.iter_mut().for_each(|block| self.round.settle(block));
        output.message(message(role, &blocks), None);
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
            Kind::String => vec![Block::Text(raw(json))],
            _ => read_parts(json.get("parts").unwrap_or(json)),
        };
        output.message(message(Role::System, &blocks), None);
        Ok(())
    }
}

/// Reads a part, or a list of them.
fn read_parts(parts: Json<'_>) -> Vec<Block<'_>> {
    match parts.kind() {
        Kind::Object => vec![part(parts)],
        _ => parts.elements().map(part).collect(),
    }
}

/// Writes a message as contents.
pub fn write(said: &Said<'_>, names: &mut CallNames, to: &mut RecordOutput) {
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
    list(&parts, &mut record, |part, out| out.push_str(part));
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
    pub fn add_calls(&mut self, said: &Said<'_>) {
        for block in &said.blocks {
            if let Block::Call(id, name, _) = block {
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
    block: &Block<'_>,
    names: &mut CallNames,
    to: &mut RecordOutput,
) -> Option<String> {
    let mut out = String::new();
    if let Block::Call(id, name, _) = block {
        names.call(id, name);
    }
    match block {
        Block::Thinking(text, signature) => {
            put(&mut out, &["{\"text\":", text, ",\"thought\":true"]);
            if let Some(signature) = signature {
                put(&mut out, &[",\"thoughtSignature\":", signature]);
            }
            out.push('}');
        }
        Block::Result {
            id,
            content,
            failed,
            ..
        } => {
            let text = super::writer::join_texts(content, to);
            put_result(id, names.of(id), &text, *failed, &mut out);
        }
        Block::Other(raw) => {
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
