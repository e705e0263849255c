//! Gemini CLI's chats: one object, or a log of records that may be updated and rewound.

use std::collections::HashMap;

use infold_log::Role;

use super::said::gemini::{part, response};
use super::said::{Block, Fields, Round, Said, arguments, id, list, message, put};
use super::tree::key;
use super::write::{Sheet, joined};
use super::{Found, time};
use crate::{Json, Kind, quote};

/// Reads messages, of which later records may have replaced or removed some.
#[derive(Default)]
pub struct GeminiCli {
    round: Round,
    /// Ids of the messages so far, in order, and the record of each that counts.
    order: Vec<(u64, u64)>,
    last: HashMap<u64, u64>,
    planned: bool,
    number: u64,
}

impl GeminiCli {
    pub fn plan(&mut self, text: &[u8]) {
        self.number += 1;
        let Ok(json) = Fields::parse(text) else {
            return;
        };
        if let Some(to) = json.get("$rewindTo") {
            let to = key(to);
            // Everything from that message on is gone; a message that is not there takes all.
            let at = self.order.iter().position(|(id, _)| *id == to).unwrap_or(0);
            for (id, _) in self.order.drain(at..) {
                self.last.remove(&id);
            }
        } else if let (Some(id), Some(_)) = (json.get("id"), json.get("type")) {
            let id = key(id);
            if self.last.insert(id, self.number).is_none() {
                self.order.push((id, self.number));
            }
        }
    }

    pub fn planned(&mut self) {
        self.order = Vec::new();
        self.planned = true;
        self.number = 0;
    }

    pub fn record(&mut self, text: &[u8], found: &mut Found<'_>) -> Result<(), String> {
        self.number += 1;
        let json = Fields::parse(text)?;
        let kind = json.get("type").and_then(Json::text).unwrap_or_default();
        let own = json.get("id").map(key);
        if kind.is_empty() || own.is_none() && self.planned {
            let what = ["$set", "$rewindTo", "sessionId"]
                .into_iter()
                .find(|name| json.get(name).is_some());
            match what {
                Some("sessionId") => found.seen.skip("header"),
                Some(what) => found.seen.skip(what),
                None => return Err("no \"type\"".to_owned()),
            }
            return Ok(());
        }
        if self.planned && own.and_then(|own| self.last.get(&own)) != Some(&self.number) {
            found.seen.skip("replaced or rewound");
            return Ok(());
        }
        let when = json.get("timestamp").and_then(Json::text);
        let when = when.and_then(|when| time::parse(&when));
        match &*kind {
            "user" => {
                let blocks = self.parts(json.get("content"));
                found.message(message(Role::User, &blocks), when);
            }
            "gemini" => self.gemini(&json, when, found),
            other => found.seen.skip(other),
        }
        Ok(())
    }

    fn parts<'a>(&mut self, content: Option<Json<'a>>) -> Vec<Block<'a>> {
        let mut blocks: Vec<Block<'a>> = match content {
            None => Vec::new(),
            Some(content) if content.bytes() == b"\"\"" => Vec::new(),
            Some(content) if content.kind() == Kind::Array => {
                content.elements().map(part).collect()
            }
            Some(content) => vec![part(content)],
        };
        blocks.iter_mut().for_each(|block| self.round.settle(block));
        blocks
    }

    /// What the model said, and what its calls gave back.
    fn gemini(&mut self, json: &Fields<'_>, when: Option<u64>, found: &mut Found<'_>) {
        let mut blocks = Vec::new();
        for thought in json.get("thoughts").into_iter().flat_map(Json::elements) {
            let text = |name| thought.get(name).and_then(Json::text).unwrap_or_default();
            let text = match &*text("subject") {
                "" => Fields::of(thought).or_empty("description"),
                subject => quote(&format!("{subject}\n{}", text("description"))).into(),
            };
            blocks.push(Block::Thinking(text, None));
        }
        self.round.clear();
        blocks.extend(self.parts(json.get("content")));
        let mut results = Vec::new();
        for call in json.get("toolCalls").into_iter().flat_map(Json::elements) {
            let call = Fields::of(call);
            let id = call.or_empty("id");
            blocks.push(Block::Call(
                id.clone(),
                call.or_empty("name"),
                arguments(call.get("args")),
            ));
            if let Some(result) = call.get("result").filter(|result| !result.is_null()) {
                let failed = call
                    .string("status")
                    .is_some_and(|status| status == "\"error\"");
                results.push(Block::Result {
                    id,
                    name: call.or_empty("name"),
                    content: content(result),
                    failed,
                });
            }
        }
        found.message(message(Role::Assistant, &blocks), when);
        if !results.is_empty() {
            found.message(message(Role::User, &results), when);
        }
    }
}

/// What a call gave back.
fn content(json: Json<'_>) -> Vec<Block<'_>> {
    if json.kind() != Kind::Array {
        return response(Some(json)).0;
    }
    let mut blocks = Vec::new();
    for json in json.elements() {
        match json.get("functionResponse") {
            Some(answer) => blocks.extend(response(answer.get("response")).0),
            None => blocks.push(part(json)),
        }
    }
    blocks
}

/// A message of the model that waits for the results of its calls.
#[derive(Debug, Default)]
pub struct Waiting {
    start: String,
    calls: Vec<(String, String, String)>,
    results: Vec<(String, String)>,
}

/// Writes a message; what calls gave back goes into the message that made them.
pub fn write(said: &Said<'_>, waiting: &mut Option<Waiting>, to: &mut Sheet) {
    if said.role == Role::System {
        return to.lose("system messages");
    }
    let mut rest = Vec::new();
    let mut calls = Vec::new();
    let mut thoughts = Vec::new();
    for block in &said.blocks {
        match block {
            Block::Result {
                id: call,
                content,
                failed,
                ..
            } => {
                let text = joined(content, to);
                let known = waiting.as_mut().filter(|waiting| waiting.waits_for(call));
                match known {
                    Some(waiting) => waiting.answer(call, &text, *failed),
                    None => to.lose("results without their call"),
                }
            }
            Block::Call(call, name, input) => {
                calls.push((call.to_string(), name.to_string(), input.to_string()));
            }
            Block::Thinking(text, _) => thoughts.push(text),
            other => rest.extend(super::gemini::written(other, &mut Default::default(), to)),
        }
    }
    let answers = said
        .blocks
        .iter()
        .any(|block| matches!(block, Block::Result { .. }));
    if rest.is_empty() && calls.is_empty() && thoughts.is_empty() && answers {
        return;
    }
    flush(waiting, to);
    to.made += 1;
    let kind = if said.role == Role::Assistant {
        "gemini"
    } else {
        "user"
    };
    let (own, when) = (id(to.made), time::iso(to.time));
    let mut start = format!(r#"{{"id":"{own}","timestamp":"{when}","type":"{kind}","content":"#);
    list(&rest, &mut start, |part, out| out.push_str(part));
    if !thoughts.is_empty() {
        start.push_str(",\"thoughts\":");
        list(&thoughts, &mut start, |text, out| {
            put(out, &["{\"subject\":\"\",\"description\":", text, "}"]);
        });
    }
    let results = Vec::new();
    *waiting = Some(Waiting {
        start,
        calls,
        results,
    });
    if kind == "user" {
        flush(waiting, to);
    }
}

impl Waiting {
    fn waits_for(&self, call: &str) -> bool {
        let answered = self.results.iter().any(|(id, _)| id == call);
        self.calls.iter().any(|(id, ..)| id == call) && !answered
    }

    fn answer(&mut self, call: &str, text: &str, failed: bool) {
        let key = if failed { "error" } else { "output" };
        let status = if failed { "error" } else { "success" };
        let name = self
            .calls
            .iter()
            .find(|(id, ..)| id == call)
            .map_or("\"\"", |(_, name, _)| name);
        let result = format!(
            r#","result":[{{"functionResponse":{{"id":{call},"name":{name},"response":{{"{key}":{text}}}}}}}],"status":"{status}""#
        );
        self.results.push((call.to_owned(), result));
    }
}

/// Writes the message that waits.
pub fn flush(waiting: &mut Option<Waiting>, to: &mut Sheet) {
    let Some(Waiting {
        mut start,
        calls,
        results,
    }) = waiting.take()
    else {
        return;
    };
    if !calls.is_empty() {
        start.push_str(",\"toolCalls\":");
        list(&calls, &mut start, |(id, name, input), out| {
            put(
                out,
                &["{\"id\":", id, ",\"name\":", name, ",\"args\":", input],
            );
            let result = results.iter().find(|(of, _)| of == id);
            put(
                out,
                &[
                    result.map_or(",\"status\":\"cancelled\"", |(_, text)| text),
                    "}",
                ],
            );
        });
    }
    start.push('}');
    to.records.push(start);
}

/// What stands in front of the messages.
pub fn header(to: &Sheet) -> String {
    let (session, when) = (to.session_id(), time::iso(to.time));
    format!(
        r#"{{"sessionId":{session},"projectHash":"","startTime":"{when}","lastUpdated":"{when}","messages":["#
    )
}

/// The header of a log.
pub fn header_line(to: &mut Sheet) {
    let (session, when) = (to.session_id(), time::iso(to.time));
    to.records.push(format!(
        r#"{{"sessionId":{session},"projectHash":"","startTime":"{when}","lastUpdated":"{when}","kind":"main"}}"#
    ));
}
