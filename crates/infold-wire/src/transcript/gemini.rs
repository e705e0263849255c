//! Gemini's contents: parts in the names of `user` and `model`.

use std::collections::VecDeque;

use infold_log::Role;

use super::Found;
use super::said::{Block, Fields, Raw, Said, arguments, list, message, put, raw};
use super::write::Sheet;
use crate::{Json, Kind, quote};

/// Reads contents. Calls without an id get one, and their results the same.
#[derive(Default)]
pub struct Gemini {
    calls: Calls,
}

/// The ids of calls that wait for their results, which may be paired by name and order.
#[derive(Default)]
pub struct Calls {
    made: u64,
    waiting: VecDeque<(String, String)>,
}

/// So many calls are waited for; results that come later answer nothing.
const PATIENCE: usize = 1024;

impl Calls {
    fn call(&mut self, name: &str, given: Option<Raw<'_>>) -> String {
        self.made += 1;
        let id = given.map_or_else(|| format!("\"call_{}\"", self.made), |id| id.into_owned());
        if self.waiting.len() == PATIENCE {
            self.waiting.pop_front();
        }
        self.waiting.push_back((name.to_owned(), id.clone()));
        id
    }

    fn answer(&mut self, name: &str, given: Option<Raw<'_>>) -> String {
        let at = self.waiting.iter().position(|(called, id)| match &given {
            Some(given) => id == given,
            None => called == name,
        });
        let waited = at.and_then(|at| self.waiting.remove(at)).map(|(_, id)| id);
        let given = given.map(|id| id.into_owned());
        given.or(waited).unwrap_or_else(|| name.to_owned())
    }
}

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
        let blocks: Vec<Block<'_>> = match parts.kind() {
            Kind::Object => vec![part(parts, &mut self.calls)],
            _ => parts
                .elements()
                .map(|json| part(json, &mut self.calls))
                .collect(),
        };
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
            _ => {
                let parts = json.get("parts").unwrap_or(json);
                match parts.kind() {
                    Kind::Object => vec![part(parts, &mut self.calls)],
                    _ => parts
                        .elements()
                        .map(|json| part(json, &mut self.calls))
                        .collect(),
                }
            }
        };
        found.message(message(Role::System, &blocks), None);
        Ok(())
    }
}

/// One part as a block.
pub fn part<'a>(whole: Json<'a>, calls: &mut Calls) -> Block<'a> {
    if whole.kind() == Kind::String {
        return Block::Text(raw(whole));
    }
    let json = Fields::of(whole);
    let either = |one: &str, other: &str| json.get(one).or_else(|| json.get(other));
    if let Some(text) = json.string("text") {
        return match json.get("thought").is_some_and(Json::is_true) {
            true => Block::Thinking(text, json.string("thoughtSignature")),
            false => Block::Text(text),
        };
    }
    if let Some(call) = either("functionCall", "function_call") {
        let call = Fields::of(call);
        let name = call.or_empty("name");
        let id = calls.call(&name, call.string("id"));
        return Block::Call(id.into(), name, arguments(call.get("args")));
    }
    if let Some(answer) = either("functionResponse", "function_response") {
        let answer = Fields::of(answer);
        let name = answer.or_empty("name");
        let id = calls.answer(&name, answer.string("id"));
        let (content, failed) = response(answer.get("response"));
        return Block::Result(id.into(), content, failed);
    }
    if let Some(data) = either("inlineData", "inline_data") {
        let data = Fields::of(data);
        let kind = data.string("mimeType").or_else(|| data.string("mime_type"));
        if let (Some(kind), Some(data)) = (kind, data.string("data"))
            && kind.starts_with("\"image/")
        {
            return Block::Image(kind, data);
        }
    }
    if let Some(url) =
        either("fileData", "file_data").and_then(|file| Fields::of(file).string("fileUri"))
    {
        return Block::Link(url);
    }
    Block::Other(raw(whole))
}

/// What a function gave back: one text if it is that, else its JSON as a text.
pub fn response(json: Option<Json<'_>>) -> (Vec<Block<'_>>, bool) {
    let Some(json) = json else {
        return (Vec::new(), false);
    };
    let mut members = json.members();
    if let (Some((name, value)), None) = (members.next(), members.next())
        && value.kind() == Kind::String
        && ["output", "result", "error"]
            .iter()
            .any(|known| name.is(known))
    {
        return (vec![Block::Text(raw(value))], name.is("error"));
    }
    let text = match json.kind() {
        Kind::String => raw(json),
        _ => quote(&raw(json)).into(),
    };
    (vec![Block::Text(text)], false)
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

    pub fn of(&self, id: &str) -> &str {
        let found = self.0.iter().rev().find(|(known, _)| known == id);
        found.map_or("\"\"", |(_, name)| name)
    }
}

/// A block as a part.
pub fn written(block: &Block<'_>, names: &mut Names, to: &mut Sheet) -> Option<String> {
    let mut out = String::new();
    match block {
        Block::Text(text) => put(&mut out, &["{\"text\":", text, "}"]),
        Block::Thinking(text, signature) => {
            put(&mut out, &["{\"text\":", text, ",\"thought\":true"]);
            if let Some(signature) = signature {
                put(&mut out, &[",\"thoughtSignature\":", signature]);
            }
            out.push('}');
        }
        Block::Call(id, name, args) => {
            names.call(id, name);
            let kind = "{\"functionCall\":{\"id\":";
            put(
                &mut out,
                &[kind, id, ",\"name\":", name, ",\"args\":", args, "}}"],
            );
        }
        Block::Result(id, content, failed) => {
            let key = if *failed { "error" } else { "output" };
            let text = super::write::joined(content, to);
            let kind = "{\"functionResponse\":{\"id\":";
            put(
                &mut out,
                &[
                    kind,
                    id,
                    ",\"name\":",
                    names.of(id),
                    ",\"response\":{\"",
                    key,
                    "\":",
                    &text,
                    "}}}",
                ],
            );
        }
        Block::Image(kind, data) => {
            put(
                &mut out,
                &[
                    "{\"inlineData\":{\"mimeType\":",
                    kind,
                    ",\"data\":",
                    data,
                    "}}",
                ],
            );
        }
        Block::Link(url) => put(&mut out, &["{\"fileData\":{\"fileUri\":", url, "}}"]),
        Block::Other(raw) => {
            let typed = Json::parse(raw.as_bytes()).is_ok_and(|json| json.get("type").is_some());
            if typed {
                to.lose("blocks of other formats");
                return None;
            }
            out.push_str(raw);
        }
    }
    Some(out)
}
