//! Reads and writes Codex's rollout log: items of the Responses API, several of which are one message.

use infold_log::Role;

use super::neutral::{
    NeutralBlock, NeutralMessage, ObjectMembers, anthropic_message, join_texts, raw_json,
    read_content, responses,
};
use super::writer::RecordOutput;
use super::{FormatReader, ReaderOutput, TranscriptEntry, time};
use crate::{Json, JsonKind, quote};

/// Reads items; consecutive ones of the model become one message.
#[derive(Default)]
pub struct CodexReader {
    /// The blocks of the model's message so far, and its time.
    pending: Option<(String, Option<u64>)>,
    has_messages: bool,
    count: usize,
}

impl FormatReader for CodexReader {
    fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        let whole = Json::checked(text.trim_ascii());
        let json = ObjectMembers::parse(text)?;
        let when = json.get("timestamp").and_then(Json::text);
        let when = when.and_then(|when| time::parse(&when));
        let payload = json
            .get("payload")
            .filter(|payload| payload.kind() == JsonKind::Object);
        let kind = json.get("type").and_then(Json::text).unwrap_or_default();
        match (payload, &*kind) {
            (Some(payload), "session_meta") => self.read_meta(&ObjectMembers::of(payload), output),
            (Some(payload), "response_item") => self.read_item(payload, when, output)?,
            (Some(payload), "compacted") => {
                self.finish(output);
                let summary = payload
                    .get("message")
                    .and_then(Json::text)
                    .unwrap_or_default();
                let (summary, kept) = (summary.into_owned(), self.count);
                output
                    .entries
                    .push(TranscriptEntry::Compaction { summary, kept });
            }
            (Some(_), "") => return Err("no \"type\"".to_owned()),
            (Some(_), other) => output.skipped.add(other),
            // Older rollouts have the items themselves, behind a line of metadata.
            (None, "") if json.get("id").is_some() => self.read_meta(&json, output),
            (None, "") if json.get("record_type").is_some() => output.skipped.add("state"),
            (None, "") => return Err("no \"type\"".to_owned()),
            (None, _) => self.read_item(whole, when, output)?,
        }
        Ok(())
    }

    fn finish(&mut self, output: &mut ReaderOutput<'_>) {
        if let Some((blocks, time)) = self.pending.take() {
            let text = format!(r#"{{"role":"assistant","content":[{blocks}]}}"#).into_bytes();
            self.count += 1;
            output.earlier.push(TranscriptEntry::Message { text, time });
        }
    }
}

impl CodexReader {
    fn read_meta(&mut self, json: &ObjectMembers<'_>, output: &mut ReaderOutput<'_>) {
        let text = json
            .get("instructions")
            .filter(|text| text.kind() == JsonKind::String);
        let base = json.get("base_instructions");
        let base = base.map(|base| base.get("text").unwrap_or(base));
        let text = text
            .or(base)
            .filter(|text| text.kind() == JsonKind::String && !text.is_blank());
        match text {
            Some(text) if !self.has_messages => self.add_message(
                Role::System,
                &[NeutralBlock::Text(raw_json(text))],
                None,
                output,
            ),
            _ => output.skipped.add("session_meta"),
        }
    }

    fn read_item(
        &mut self,
        whole: Json<'_>,
        when: Option<u64>,
        output: &mut ReaderOutput<'_>,
    ) -> Result<(), String> {
        let json = ObjectMembers::of(whole);
        let kind = json
            .get("type")
            .and_then(Json::text)
            .ok_or("an item without \"type\"")?;
        match &*kind {
            "message" => {
                let role = json.get("role").and_then(Json::text).unwrap_or_default();
                let blocks = json.get("content").map(read_content).unwrap_or_default();
                match &*role {
                    "assistant" => blocks.iter().for_each(|block| self.add_block(block, when)),
                    "user" => self.add_message(Role::User, &blocks, when, output),
                    "system" | "developer" => self.add_message(Role::System, &blocks, when, output),
                    other => return Err(format!("unknown role `{other}`")),
                }
            }
            other => match responses::read_item(whole, &json).as_deref() {
                Some([block @ NeutralBlock::Call(..)]) => self.add_block(block, when),
                Some(result @ [NeutralBlock::Result { .. }]) => {
                    self.add_message(Role::User, result, when, output)
                }
                Some([block]) if is_kept(other) => self.add_block(block, when),
                _ => output.skipped.add(other),
            },
        }
        Ok(())
    }

    fn add_block(&mut self, block: &NeutralBlock<'_>, when: Option<u64>) {
        self.has_messages = true;
        let (blocks, _) = self.pending.get_or_insert_with(|| (String::new(), when));
        if !blocks.is_empty() {
            blocks.push(',');
        }
        block.write_anthropic(blocks);
    }

    fn add_message(
        &mut self,
        role: Role,
        blocks: &[NeutralBlock<'_>],
        when: Option<u64>,
        output: &mut ReaderOutput<'_>,
    ) {
        self.has_messages = true;
        self.finish(output);
        self.count += 1;
        output.message(anthropic_message(role, blocks), when);
    }
}

/// Writes the record that comes first, with the system prompt in it.
pub fn header(system: &[String], to: &mut RecordOutput) {
    let texts: Vec<String> = system
        .iter()
        .filter_map(|block| Some(join_texts(Json::parse(block.as_bytes()).ok()?)))
        .collect();
    let system = if texts.is_empty() {
        String::new()
    } else {
        format!(r#","instructions":{}"#, quote(&texts.join("\n\n")))
    };
    let (session, cwd, when) = (to.session_id(), to.cwd(), time::iso(to.time));
    let version = quote(to.session.version.as_deref().unwrap_or("0.0.0"));
    let branch = to.session.branch.as_deref().map(quote);
    let git = branch.map_or(String::new(), |branch| {
        format!(r#","git":{{"branch":{branch}}}"#)
    });
    to.records.push(format!(
        r#"{{"timestamp":"{when}","type":"session_meta","payload":{{"id":{session},"timestamp":"{when}","cwd":{cwd},"originator":"infold","cli_version":{version}{git}{system}}}}}"#
    ));
}

/// Writes a message as items.
pub fn write(said: &NeutralMessage<'_>, to: &mut RecordOutput) {
    let (role, kind) = match said.role {
        Role::Assistant => ("assistant", "output"),
        Role::System => ("developer", "input"),
        Role::User | Role::Tool => ("user", "input"),
    };
    let mut rest: Vec<&NeutralBlock<'_>> = Vec::new();
    for block in &said.blocks {
        let item = match block {
            NeutralBlock::Call(id, name, input) => responses::write_call(id, name, input),
            NeutralBlock::Result {
                id,
                content,
                failed,
                ..
            } => responses::write_call_output(id, content, *failed),
            NeutralBlock::Thinking(text, _) => format!(
                r#"{{"type":"reasoning","summary":[{{"type":"summary_text","text":{text}}}]}}"#
            ),
            NeutralBlock::Other(raw) if is_item(raw) => raw.to_string(),
            NeutralBlock::Other(_) => {
                to.lose("blocks of other formats");
                continue;
            }
            other => {
                rest.push(other);
                continue;
            }
        };
        flush_message(&mut rest, role, kind, to);
        write_item(&item, to);
    }
    if !rest.is_empty() || said.blocks.is_empty() {
        let empty = said
            .blocks
            .is_empty()
            .then_some(NeutralBlock::Text("\"\"".into()));
        rest.extend(&empty);
        flush_message(&mut rest, role, kind, to);
    }
}

fn is_item(raw: &str) -> bool {
    let json = Json::parse(raw.as_bytes()).ok();
    json.is_some_and(|json| {
        json.get("type")
            .and_then(Json::text)
            .is_some_and(|kind| is_kept(&kind))
    })
}

/// Returns whether an item has no other form, and is stored unchanged.
fn is_kept(kind: &str) -> bool {
    matches!(kind, "reasoning" | "web_search_call")
}

fn flush_message(rest: &mut Vec<&NeutralBlock<'_>>, role: &str, kind: &str, to: &mut RecordOutput) {
    if rest.is_empty() {
        return;
    }
    write_item(&responses::write_message(role, kind, rest), to);
    rest.clear();
}

/// Writes an item.
pub fn write_item(item: &str, to: &mut RecordOutput) {
    let when = time::iso(to.time);
    to.records.push(format!(
        r#"{{"timestamp":"{when}","type":"response_item","payload":{item}}}"#
    ));
}
