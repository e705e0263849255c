//! Reads and writes Claude Code's session log: Anthropic messages in a tree of records.

use std::collections::HashSet;

use infold_log::Role;

use super::neutral::{ObjectMembers, numbered_uuid};
use super::record_tree::{RecordTree, id_hash};
use super::writer::RecordOutput;
use super::{FormatReader, ReaderOutput, TranscriptEntry, TranscriptLayout, chat, neutral, time};
use crate::message::block_is;
use crate::{Json, JsonKind, Message, quote};

/// Reads the records on the branch of the newest.
#[derive(Default)]
pub struct ClaudeCodeReader {
    tree: RecordTree,
    /// The ids of messages of which a part was read.
    messages: HashSet<u64>,
    /// A message of which more may come: its id, blocks and time.
    pending: Option<(u64, Vec<u8>, Option<u64>)>,
    count: usize,
}

impl FormatReader for ClaudeCodeReader {
    fn plans(&self, _: TranscriptLayout) -> bool {
        true
    }

    fn plan(&mut self, text: &[u8]) {
        let Ok(json) = ObjectMembers::parse(text) else {
            return;
        };
        let member = |name| {
            json.get(name)
                .filter(|id| id.kind() == JsonKind::String)
                .map(id_hash)
        };
        if let Some(id) = member("uuid") {
            let logical = || self.tree.known_or_newest(member("logicalParentUuid")?);
            let parent = member("parentUuid").or_else(logical);
            let kind = json.get("type").map(Json::name).unwrap_or_default();
            let is_message = matches!(&*kind, b"user" | b"assistant") && !is(&json, "isSidechain");
            self.tree.add(id, parent, is_message);
        }
    }

    fn finish_plan(&mut self) {
        self.tree.choose_branch();
    }

    fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    fn record(&mut self, text: &[u8], output: &mut ReaderOutput<'_>) -> Result<(), String> {
        let json = ObjectMembers::parse(text)?;
        let kind = json.get("type").and_then(Json::text).ok_or("no \"type\"")?;
        if !matches!(&*kind, "user" | "assistant") {
            output.skipped.add(kind);
            return Ok(());
        }
        if is(&json, "isSidechain") {
            output.skipped.add("sidechain");
            return Ok(());
        }
        let inner = json.get("message").ok_or("no \"message\"")?;
        if !self.is_on_branch(&json, inner) {
            output.skipped.add("other branch");
            return Ok(());
        }
        if is(&json, "isVisibleInTranscriptOnly") && !is(&json, "isCompactSummary")
            || is(&json, "isApiErrorMessage")
        {
            output.skipped.add("not sent");
            return Ok(());
        }
        let when = json.get("timestamp").and_then(Json::text);
        self.read_message(
            inner,
            is(&json, "isCompactSummary"),
            when.and_then(|when| time::parse(&when)),
            output,
        )
    }

    fn finish(&mut self, output: &mut ReaderOutput<'_>) {
        if let Some((_, blocks, when)) = self.pending.take() {
            let text = [
                br#"{"role":"assistant","content":["#.as_slice(),
                &blocks,
                b"]}",
            ]
            .concat();
            self.count += 1;
            output
                .earlier
                .push(TranscriptEntry::Message { text, time: when });
        }
    }
}

impl ClaudeCodeReader {
    /// Returns whether a record is on the branch. Results of parallel calls, and parts of one message, branch off too.
    fn is_on_branch(&mut self, json: &ObjectMembers<'_>, inner: Json<'_>) -> bool {
        let Some(own) = json.get("uuid").map(id_hash) else {
            return true;
        };
        if self.tree.is_on_branch(own) {
            return true;
        }
        let is_part = inner
            .get("id")
            .is_some_and(|id| self.messages.contains(&id_hash(id)));
        let mut blocks = inner.get("content").into_iter().flat_map(Json::elements);
        let parent = json.get("parentUuid").map(id_hash);
        let is_result = parent.is_some_and(|parent| self.tree.is_on_branch(parent))
            && blocks.any(|block| block_is(block, "tool_result"));
        if is_part || is_result {
            self.tree.add_to_branch(own);
        }
        is_part || is_result
    }

    fn read_message(
        &mut self,
        inner: Json<'_>,
        summary: bool,
        when: Option<u64>,
        output: &mut ReaderOutput<'_>,
    ) -> Result<(), String> {
        let message = Message::parse(inner.bytes()).map_err(|error| error.to_string())?;
        if message.role() == Role::Assistant {
            return self.read_part(&message, when, output);
        }
        self.finish(output);
        if summary {
            let content = message.content();
            let text = content.map(neutral::join_texts).unwrap_or_default();
            let kept = self.count;
            output.entries.push(TranscriptEntry::Compaction {
                summary: text,
                kept,
            });
            return Ok(());
        }
        self.count += 1;
        output.message(neutral::bare_message(&message), when);
        Ok(())
    }

    /// Reads an assistant's message, which may be a part of one.
    fn read_part(
        &mut self,
        message: &Message<'_>,
        when: Option<u64>,
        output: &mut ReaderOutput<'_>,
    ) -> Result<(), String> {
        let own = message
            .json()
            .get("id")
            .filter(|id| id.kind() == JsonKind::String)
            .map(id_hash);
        let list = message
            .content()
            .filter(|content| content.kind() == JsonKind::Array);
        let (Some(own), Some(list)) = (own, list) else {
            self.finish(output);
            self.count += 1;
            output.message(neutral::bare_message(message), when);
            return Ok(());
        };
        self.messages.insert(own);
        let inside = list.bytes()[1..list.bytes().len() - 1].trim_ascii();
        match &mut self.pending {
            Some((id, blocks, _)) if *id == own => {
                if !blocks.is_empty() && !inside.is_empty() {
                    blocks.push(b',');
                }
                blocks.extend_from_slice(inside);
            }
            _ => {
                self.finish(output);
                self.pending = Some((own, inside.to_vec(), when));
            }
        }
        Ok(())
    }
}

fn is(json: &ObjectMembers<'_>, flag: &str) -> bool {
    json.get(flag).is_some_and(Json::is_true)
}

/// Returns the id of the last record in some bytes, whose front may be cut off.
pub fn last_id(bytes: &[u8]) -> Option<String> {
    const UUID: &[u8] = b"\"uuid\":\"";
    let at = memchr::memmem::rfind(bytes, UUID)? + UUID.len();
    let id = bytes[at..].split(|byte| *byte == b'"').next()?;
    Some(quote(std::str::from_utf8(id).ok()?))
}

/// Writes a message as a record.
pub fn write(message: &Message<'_>, said: &neutral::NeutralMessage<'_>, to: &mut RecordOutput) {
    if message.role() == Role::System {
        return to.lose("system messages");
    }
    let text = if chat::is_foreign(message, true) {
        String::from_utf8_lossy(&neutral::anthropic_message(said.role, &said.blocks)).into_owned()
    } else {
        chat::one_line(message)
    };
    let kind = if message.role() == Role::Assistant {
        "assistant"
    } else {
        "user"
    };
    let number = to.ids_made + 1;
    to.ids_made = number;
    let parent = to.parent.replace(quote(&numbered_uuid(number)));
    let parent = parent.unwrap_or_else(|| "null".to_owned());
    let (own, session, when) = (numbered_uuid(number), to.session_id(), time::iso(to.time));
    let text = match kind {
        // Records of one message share its id; each of ours is a message.
        "assistant" => format!(r#"{{"id":"msg_{number}","type":"message",{}"#, &text[1..]),
        _ => text,
    };
    let mut context = String::new();
    for (name, value) in [
        ("cwd", &to.session.cwd),
        ("version", &to.session.version),
        ("gitBranch", &to.session.branch),
    ] {
        if let Some(value) = value {
            context += &format!(r#","{name}":{}"#, quote(value));
        }
    }
    to.records.push(format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external"{context},"sessionId":{session},"type":"{kind}","message":{text},"uuid":"{own}","timestamp":"{when}"}}"#
    ));
}
