//! Gemini's contents: parts in the names of `user` and `model`.

use std::collections::VecDeque;

use infold_log::Role;

use super::Found;
use super::said::gemini::{part, put_part, put_result};
use super::said::{Block, Fields, Round, Said, list, message, put, raw};
use super::write::Sheet;
use crate::{Json, Kind};

/// Reads contents. Calls without an id get one, and their results the same.
#[derive(Default)]
pub struct Gemini {
    round: Round,
}

/// So many names are kept; results that come later carry none.
const PATIENCE: usize = 1024;

impl Gemini {
    pub fn record(&mut self, text: &[u8], found: &mut Found<'_>) -> Result<(), String> {
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
        let mut blocks = all(parts);
        blocks.iter_mut().for_each(|block| self.round.settle(block));
        found.message(message(role, &blocks), None);
        Ok(())
    }

    pub fn system(&mut self, value: &[u8], found: &mut Found<'_>) -> Result<(), String> {
        let json = Json::parse(value).map_err(|error| error.to_string())?;
        if json.is_null() {
            return Ok(());
        }
        let blocks = match json.kind() {
            Kind::String => vec![Block::Text(raw(json))],
            _ => all(json.get("parts").unwrap_or(json)),
        };
        found.message(message(Role::System, &blocks), None);
        Ok(())
    }
}

/// A part, or a list of them.
fn all(parts: Json<'_>) -> Vec<Block<'_>> {
    match parts.kind() {
        Kind::Object => vec![part(parts)],
        _ => parts.elements().map(part).collect(),
    }
}

/// Writes a message as contents.
pub fn write(said: &Said<'_>, names: &mut Names, to: &mut Sheet) {
    let role = match said.role {
        Role::Assistant => "model",
        Role::System => "system",
        Role::User | Role::Tool => "user",
    };
    let mut record = format!(r#"{{"role":"{role}","parts":"#);
    let parts: Vec<String> = said
        .blocks
        .iter()
        .filter_map(|block| written(block, names, to))
        .collect();
    list(&parts, &mut record, |part, out| out.push_str(part));
    record.push('}');
    to.records.push(record);
}

/// The names of calls by their ids: results must carry them.
#[derive(Debug, Default)]
pub struct Names(VecDeque<(String, String)>);

impl Names {
    pub fn call(&mut self, id: &str, name: &str) {
        if self.0.len() == PATIENCE {
            self.0.pop_front();
        }
        self.0.push_back((id.to_owned(), name.to_owned()));
    }

    /// Learns the names of the calls that somebody makes.
    pub fn learn(&mut self, said: &Said<'_>) {
        for block in &said.blocks {
            if let Block::Call(id, name, _) = block {
                self.call(id, name);
            }
        }
    }

    pub fn of(&self, id: &str) -> &str {
        let found = self.0.iter().rev().find(|(known, _)| known == id);
        found.map_or("\"\"", |(_, name)| name)
    }
}

/// A block as a part.
pub fn written(block: &Block<'_>, names: &mut Names, to: &mut Sheet) -> Option<String> {
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
            let text = super::write::joined(content, to);
            put_result(id, names.of(id), &text, *failed, &mut out);
        }
        Block::Other(raw) => {
            let typed = Json::parse(raw.as_bytes()).is_ok_and(|json| json.get("type").is_some());
            if typed {
                to.lose("blocks of other formats");
                return None;
            }
            out.push_str(raw);
        }
        other => drop(put_part(other, &mut out)),
    }
    Some(out)
}
