//! Reads and writes pi's sessions: one entry a line, results as messages of their own.

use infold_log::Role;

use super::neutral::{
    NeutralBlock, NeutralMessage, ObjectMembers, anthropic_message, arguments_object,
    numbered_uuid, push_list, raw_json, read_block, read_content,
};
use super::record_tree::{RecordTree, id_hash};
use super::writer::RecordOutput;
use super::{FormatReader, ReaderOutput, TranscriptEntry, TranscriptLayout, time};
use crate::{Json, JsonKind, quote};

/// Reads entries; newer sessions are a tree of them.
#[derive(Default)]
pub struct PiReader {
    tree: RecordTree,
    /// The ids of the entries so far, each with the number of messages before it.
    before: Vec<(u64, u32)>,
    messages: u32,
}

impl FormatReader for PiReader {
    fn plans(&self, _: TranscriptLayout) -> bool {
        true
    }

    fn plan(&mut self, text: &[u8]) {
        // Most sessions are not trees; the search is faster than parsing.
        if memchr::memmem::find(text, b"\"parentId\"").is_none() {
            return;
        }
        let Ok(json) = ObjectMembers::parse(text) else {
            return;
        };
        // Entries of a tree name a parent, which may be null.
        if let (Some(id), Some(parent)) = (json.get("id"), json.get("parentId")) {
            let parent = (!parent.is_null()).then(|| id_hash(parent));
            self.tree.add(id_hash(id), parent, true);
        }
    }

    fn finish_plan(&mut self) {
        self.tree.choose_branch();
    }

    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        let json = ObjectMembers::parse(text)?;
        let kind = json.get("type").and_then(Json::text).ok_or("no \"type\"")?;
        let own = json.get("id").map(id_hash).unwrap_or_default();
        self.before.push((own, self.messages));
        if json.get("parentId").is_some() && !self.tree.is_on_branch(own) {
            output.skipped.add("other branch");
            return Ok(());
        }
        match &*kind {
            "message" => {
                let inner = ObjectMembers::of(json.get("message").ok_or("no \"message\"")?);
                let text = read_message(&inner)?;
                let when = inner.get("timestamp").and_then(Json::number);
                let when = when.filter(|when| *when > 0.0).map(|when| when as u64);
                let when = when.or_else(|| time::parse(&json.get("timestamp")?.text()?));
                output.message(text, when);
                self.messages += 1;
            }
            "compaction" => {
                let summary = json.get("summary").and_then(Json::text).unwrap_or_default();
                let kept = self.first_kept(&json).unwrap_or(self.messages);
                output.entries.push(TranscriptEntry::Compaction {
                    summary: summary.into_owned(),
                    kept: kept as usize,
                });
            }
            other => output.skipped.add(other),
        }
        Ok(())
    }
}

impl PiReader {
    /// Returns the index of the first message that a compaction keeps.
    fn first_kept(&self, json: &ObjectMembers<'_>) -> Option<u32> {
        if let Some(id) = json.get("firstKeptEntryId").map(id_hash) {
            let output = self.before.iter().rev().find(|(own, _)| *own == id);
            return output.map(|(_, before)| *before);
        }
        let index = json.get("firstKeptEntryIndex").and_then(Json::number)?;
        self.before.get(index as usize).map(|(_, before)| *before)
    }
}

/// Converts one of pi's messages into an Anthropic message.
fn read_message(json: &ObjectMembers<'_>) -> Result<Vec<u8>, String> {
    let role = json.get("role").and_then(Json::text).ok_or("no \"role\"")?;
    let content = json.get("content");
    let blocks = || match content {
        Some(content) if content.kind() == JsonKind::String => read_content(content),
        Some(content) => content.elements().map(part).collect(),
        None => Vec::new(),
    };
    Ok(match &*role {
        "user" | "custom" => anthropic_message(Role::User, &blocks()),
        "assistant" => anthropic_message(Role::Assistant, &blocks()),
        "toolResult" => {
            let failed = json.get("isError").is_some_and(Json::is_true);
            let result = NeutralBlock::Result {
                id: json.or_empty("toolCallId"),
                name: json.or_empty("toolName"),
                content: blocks(),
                failed,
            };
            anthropic_message(Role::User, &[result])
        }
        "bashExecution" => {
            let member = |name| json.get(name).and_then(Json::text).unwrap_or_default();
            let text = format!("$ {}\n{}", member("command"), member("output"));
            anthropic_message(Role::User, &[NeutralBlock::Text(quote(&text).into())])
        }
        "branchSummary" | "compactionSummary" => {
            anthropic_message(Role::User, &[NeutralBlock::Text(json.or_empty("summary"))])
        }
        other => return Err(format!("unknown role `{other}`")),
    })
}

fn part(whole: Json<'_>) -> NeutralBlock<'_> {
    let json = ObjectMembers::of(whole);
    let kind = json.get("type").map(Json::name).unwrap_or_default();
    match &*kind {
        b"thinking" => {
            NeutralBlock::Thinking(json.or_empty("thinking"), json.string("thinkingSignature"))
        }
        b"toolCall" => {
            let (id, name) = (json.or_empty("id"), json.or_empty("name"));
            NeutralBlock::Call(id, name, arguments_object(json.get("arguments")))
        }
        b"text" | b"image" => read_block(whole),
        _ => NeutralBlock::Other(raw_json(whole)),
    }
}

/// Writes the entry that comes first.
pub fn header(to: &mut RecordOutput) {
    let when = time::iso(to.time);
    let (id, cwd) = (to.session_id(), to.cwd());
    to.records.push(format!(
        r#"{{"type":"session","id":{id},"timestamp":"{when}","cwd":{cwd}}}"#
    ));
}

/// Writes a message; results become messages of their own.
pub fn write(said: &NeutralMessage<'_>, to: &mut RecordOutput) {
    if said.role == Role::System {
        return to.lose("system messages");
    }
    let mut rest = Vec::new();
    for block in &said.blocks {
        let NeutralBlock::Result {
            id,
            name,
            content,
            failed,
        } = block
        else {
            rest.push(block);
            continue;
        };
        let mut inner =
            format!(r#""role":"toolResult","toolCallId":{id},"toolName":{name},"content":"#);
        push_list(content, &mut inner, put_part);
        inner += &format!(",\"isError\":{failed}");
        write_entry(&inner, to);
    }
    if !rest.is_empty() || said.blocks.is_empty() {
        let mut inner = format!(r#""role":"{}","content":"#, said.role.wire_name());
        push_list(&rest, &mut inner, |block, out| put_part(block, out));
        write_entry(&inner, to);
    }
}

/// Returns the id of the last entry in some bytes, if they are a tree.
pub fn last_id(bytes: &[u8]) -> Option<String> {
    const ID: &[u8] = b"\"id\":\"";
    let parent = memchr::memmem::rfind(bytes, b"\"parentId\":")?;
    let at = memchr::memmem::rfind(&bytes[..parent], ID)? + ID.len();
    let id = bytes[at..].split(|byte| *byte == b'"').next()?;
    Some(quote(std::str::from_utf8(id).ok()?))
}

fn write_entry(inner: &str, to: &mut RecordOutput) {
    let (when, iso) = (to.time, time::iso(to.time));
    to.ids_made += 1;
    let own = quote(&numbered_uuid(to.ids_made));
    // Only a session that is a tree is continued as one.
    let tree = match to.parent.take() {
        Some(parent) => {
            let tree = format!(r#""id":{own},"parentId":{parent},"#);
            to.parent = Some(own);
            tree
        }
        None => String::new(),
    };
    to.records.push(format!(
        r#"{{"type":"message",{tree}"timestamp":"{iso}","message":{{{inner},"timestamp":{when}}}}}"#
    ));
}

fn put_part(block: &NeutralBlock<'_>, out: &mut String) {
    *out += &match block {
        NeutralBlock::Call(id, name, input) => {
            format!(r#"{{"type":"toolCall","id":{id},"name":{name},"arguments":{input}}}"#)
        }
        NeutralBlock::Thinking(text, Some(signature)) => {
            format!(r#"{{"type":"thinking","thinking":{text},"thinkingSignature":{signature}}}"#)
        }
        NeutralBlock::Image(kind, data) => {
            format!(r#"{{"type":"image","data":{data},"mimeType":{kind}}}"#)
        }
        other => return other.write_anthropic(out),
    };
}
