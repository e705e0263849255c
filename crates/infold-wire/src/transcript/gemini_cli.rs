//! Reads and writes Gemini CLI's chats: one object, or a log of records that may be updated and rewound.

use std::collections::HashMap;

use infold_log::Role;

use super::neutral::gemini::{read_part, read_response};
use super::neutral::{
    CallRound, NeutralBlock, NeutralMessage, ObjectMembers, anthropic_message, arguments_object,
    numbered_uuid, push_all, push_list,
};
use super::record_tree::id_hash;
use super::writer::{RecordOutput, join_texts};
use super::{FormatReader, ReaderOutput, TranscriptLayout, time};
use crate::{Json, JsonKind, quote};

/// Reads messages, some of which later records replace or remove.
#[derive(Default)]
pub struct GeminiCliReader {
    round: CallRound,
    /// The ids of the messages so far, in order, each with the number of its record.
    order: Vec<(u64, u64)>,
    last: HashMap<u64, u64>,
    is_planned: bool,
    number: u64,
}

impl FormatReader for GeminiCliReader {
    fn plans(&self, layout: TranscriptLayout) -> bool {
        layout == TranscriptLayout::Lines
    }

    fn plan(&mut self, text: &[u8]) {
        self.number += 1;
        let Ok(json) = ObjectMembers::parse(text) else {
            return;
        };
        if let Some(to) = json.get("$rewindTo") {
            let to = id_hash(to);
            // A rewind removes that message and all later ones; an unknown message removes all.
            let at = self.order.iter().position(|(id, _)| *id == to).unwrap_or(0);
            for (id, _) in self.order.drain(at..) {
                self.last.remove(&id);
            }
        } else if let (Some(id), Some(_)) = (json.get("id"), json.get("type")) {
            let id = id_hash(id);
            if self.last.insert(id, self.number).is_none() {
                self.order.push((id, self.number));
            }
        }
    }

    fn finish_plan(&mut self) {
        self.order = Vec::new();
        self.is_planned = true;
        self.number = 0;
    }

    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        self.number += 1;
        let json = ObjectMembers::parse(text)?;
        let kind = json.get("type").and_then(Json::text).unwrap_or_default();
        let own = json.get("id").map(id_hash);
        if kind.is_empty() || own.is_none() && self.is_planned {
            let what = ["$set", "$rewindTo", "sessionId"]
                .into_iter()
                .find(|name| json.get(name).is_some());
            match what {
                Some("sessionId") => output.skipped.add("header"),
                Some(what) => output.skipped.add(what),
                None => return Err("no \"type\"".to_owned()),
            }
            return Ok(());
        }
        if self.is_planned && own.and_then(|own| self.last.get(&own)) != Some(&self.number) {
            output.skipped.add("replaced or rewound");
            return Ok(());
        }
        let when = json.get("timestamp").and_then(Json::text);
        let when = when.and_then(|when| time::parse(&when));
        match &*kind {
            "user" => {
                let blocks = self.read_parts(json.get("content"));
                output.message(anthropic_message(Role::User, &blocks), when);
            }
            "gemini" => self.read_model_message(&json, when, output),
            other => output.skipped.add(other),
        }
        Ok(())
    }
}

impl GeminiCliReader {
    fn read_parts<'a>(&mut self, content: Option<Json<'a>>) -> Vec<NeutralBlock<'a>> {
        let mut blocks: Vec<NeutralBlock<'a>> = match content {
            None => Vec::new(),
            Some(content) if content.bytes() == b"\"\"" => Vec::new(),
            Some(content) if content.kind() == JsonKind::Array => {
                content.elements().map(read_part).collect()
            }
            Some(content) => vec![read_part(content)],
        };
        blocks
            .iter_mut()
            .for_each(|block| self.round.assign_id(block));
        blocks
    }

    /// Reads a message of the model, and the results of its calls.
    fn read_model_message(
        &mut self,
        json: &ObjectMembers<'_>,
        when: Option<u64>,
        output: &mut ReaderOutput<'_>,
    ) {
        let mut blocks = Vec::new();
        for thought in json.get("thoughts").into_iter().flat_map(Json::elements) {
            let text = |name| thought.get(name).and_then(Json::text).unwrap_or_default();
            let text = match &*text("subject") {
                "" => ObjectMembers::of(thought).or_empty("description"),
                subject => quote(&format!("{subject}\n{}", text("description"))).into(),
            };
            blocks.push(NeutralBlock::Thinking(text, None));
        }
        self.round.clear();
        blocks.extend(self.read_parts(json.get("content")));
        let mut results = Vec::new();
        for call in json.get("toolCalls").into_iter().flat_map(Json::elements) {
            let call = ObjectMembers::of(call);
            let id = call.or_empty("id");
            blocks.push(NeutralBlock::Call(
                id.clone(),
                call.or_empty("name"),
                arguments_object(call.get("args")),
            ));
            if let Some(result) = call.get("result").filter(|result| !result.is_null()) {
                let failed = call
                    .string("status")
                    .is_some_and(|status| status == "\"error\"");
                results.push(NeutralBlock::Result {
                    id,
                    name: call.or_empty("name"),
                    content: read_result(result),
                    failed,
                });
            }
        }
        output.message(anthropic_message(Role::Assistant, &blocks), when);
        if !results.is_empty() {
            output.message(anthropic_message(Role::User, &results), when);
        }
    }
}

/// Reads the result of a call.
fn read_result(json: Json<'_>) -> Vec<NeutralBlock<'_>> {
    if json.kind() != JsonKind::Array {
        return read_response(Some(json)).0;
    }
    let mut blocks = Vec::new();
    for json in json.elements() {
        match json.get("functionResponse") {
            Some(answer) => blocks.extend(read_response(answer.get("response")).0),
            None => blocks.push(read_part(json)),
        }
    }
    blocks
}

/// A message of the model that waits for the results of its calls.
#[derive(Debug, Default)]
pub struct PendingMessage {
    start: String,
    calls: Vec<(String, String, String)>,
    results: Vec<(String, String)>,
}

/// Writes a message; results go into the message with their calls.
pub fn write(
    said: &NeutralMessage<'_>,
    pending: &mut Option<PendingMessage>,
    to: &mut RecordOutput,
) {
    if said.role == Role::System {
        return to.lose("system messages");
    }
    let mut rest = Vec::new();
    let mut calls = Vec::new();
    let mut thoughts = Vec::new();
    for block in &said.blocks {
        match block {
            NeutralBlock::Result {
                id: call,
                content,
                failed,
                ..
            } => {
                let text = join_texts(content, to);
                let known = pending.as_mut().filter(|pending| pending.waits_for(call));
                match known {
                    Some(pending) => pending.answer(call, &text, *failed),
                    None => to.lose("results without their call"),
                }
            }
            NeutralBlock::Call(call, name, input) => {
                calls.push((call.to_string(), name.to_string(), input.to_string()));
            }
            NeutralBlock::Thinking(text, _) => thoughts.push(text),
            other => rest.extend(super::gemini::write_part(
                other,
                &mut Default::default(),
                to,
            )),
        }
    }
    let answers = said
        .blocks
        .iter()
        .any(|block| matches!(block, NeutralBlock::Result { .. }));
    if rest.is_empty() && calls.is_empty() && thoughts.is_empty() && answers {
        return;
    }
    flush(pending, to);
    to.ids_made += 1;
    let kind = if said.role == Role::Assistant {
        "gemini"
    } else {
        "user"
    };
    let (own, when) = (numbered_uuid(to.ids_made), time::iso(to.time));
    let mut start = format!(r#"{{"id":"{own}","timestamp":"{when}","type":"{kind}","content":"#);
    push_list(&rest, &mut start, |part, out| out.push_str(part));
    if !thoughts.is_empty() {
        start.push_str(",\"thoughts\":");
        push_list(&thoughts, &mut start, |text, out| {
            push_all(out, &["{\"subject\":\"\",\"description\":", text, "}"]);
        });
    }
    let results = Vec::new();
    *pending = Some(PendingMessage {
        start,
        calls,
        results,
    });
    if kind == "user" {
        flush(pending, to);
    }
}

impl PendingMessage {
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

/// Writes the pending message.
pub fn flush(pending: &mut Option<PendingMessage>, to: &mut RecordOutput) {
    let Some(PendingMessage {
        mut start,
        calls,
        results,
    }) = pending.take()
    else {
        return;
    };
    if !calls.is_empty() {
        start.push_str(",\"toolCalls\":");
        push_list(&calls, &mut start, |(id, name, input), out| {
            let result = results.iter().find(|(of, _)| of == id);
            let result = result.map_or(",\"status\":\"cancelled\"", |(_, text)| text);
            *out += &format!(r#"{{"id":{id},"name":{name},"args":{input}{result}}}"#);
        });
    }
    start.push('}');
    to.records.push(start);
}

/// Returns the bytes before the messages.
pub fn header(to: &RecordOutput) -> String {
    let (session, when) = (to.session_id(), time::iso(to.time));
    format!(
        r#"{{"sessionId":{session},"projectHash":"","startTime":"{when}","lastUpdated":"{when}","messages":["#
    )
}

/// Writes the header of a log.
pub fn header_line(to: &mut RecordOutput) {
    let (session, when) = (to.session_id(), time::iso(to.time));
    to.records.push(format!(
        r#"{{"sessionId":{session},"projectHash":"","startTime":"{when}","lastUpdated":"{when}","kind":"main"}}"#
    ));
}
