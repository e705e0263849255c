//! Claude Code's session log: Anthropic messages in a tree of records.

use std::collections::HashSet;

use infold_log::Role;

use super::said::{Fields, id};
use super::tree::{Tree, key};
use super::write::Sheet;
use super::{Entry, Found, chat, said, time};
use crate::message::block_is;
use crate::{Json, Kind, Message, quote};

/// Reads records that lie on the way to the newest.
#[derive(Default)]
pub struct ClaudeCode {
    tree: Tree,
    /// Ids of messages of which a part was read.
    messages: HashSet<u64>,
    /// A message of which more may come: its id, its blocks, when it was said.
    held: Option<(u64, Vec<u8>, Option<u64>)>,
    count: usize,
}

impl ClaudeCode {
    pub fn plan(&mut self, text: &[u8]) {
        let Ok(json) = Fields::parse(text) else {
            return;
        };
        let member = |name| {
            json.get(name)
                .filter(|id| id.kind() == Kind::String)
                .map(key)
        };
        if let Some(id) = member("uuid") {
            let logical = || self.tree.known_or_newest(member("logicalParentUuid")?);
            let parent = member("parentUuid").or_else(logical);
            let kind = json.get("type").map(Json::name).unwrap_or_default();
            let speaks = matches!(&*kind, b"user" | b"assistant") && !is(&json, "isSidechain");
            self.tree.add(id, parent, speaks);
        }
    }

    pub fn planned(&mut self) {
        self.tree.settle();
    }

    pub fn holds(&self) -> bool {
        self.held.is_some()
    }

    pub fn record(&mut self, text: &[u8], found: &mut Found<'_>) -> Result<(), String> {
        let json = Fields::parse(text)?;
        let kind = json.get("type").and_then(Json::text).ok_or("no \"type\"")?;
        if !matches!(&*kind, "user" | "assistant") {
            found.seen.skip(kind);
            return Ok(());
        }
        if is(&json, "isSidechain") {
            found.seen.skip("sidechain");
            return Ok(());
        }
        let inner = json.get("message").ok_or("no \"message\"")?;
        if !self.lies_on_way(&json, inner) {
            found.seen.skip("other branch");
            return Ok(());
        }
        if is(&json, "isVisibleInTranscriptOnly") && !is(&json, "isCompactSummary")
            || is(&json, "isApiErrorMessage")
        {
            found.seen.skip("not sent");
            return Ok(());
        }
        let when = json.get("timestamp").and_then(Json::text);
        self.read(
            inner,
            is(&json, "isCompactSummary"),
            when.and_then(|when| time::parse(&when)),
            found,
        )
    }

    /// Results of calls made side by side branch off, and so do parts of one message.
    fn lies_on_way(&mut self, json: &Fields<'_>, inner: Json<'_>) -> bool {
        let Some(own) = json.get("uuid").map(key) else {
            return true;
        };
        if self.tree.keeps(own) {
            return true;
        }
        let part = inner
            .get("id")
            .is_some_and(|id| self.messages.contains(&key(id)));
        let mut blocks = inner.get("content").into_iter().flat_map(Json::elements);
        let parent = json.get("parentUuid").map(key);
        let result = parent.is_some_and(|parent| self.tree.keeps(parent))
            && blocks.any(|block| block_is(block, "tool_result"));
        if part || result {
            self.tree.keep(own);
        }
        part || result
    }

    fn read(
        &mut self,
        inner: Json<'_>,
        summary: bool,
        when: Option<u64>,
        found: &mut Found<'_>,
    ) -> Result<(), String> {
        let message = Message::parse(inner.bytes()).map_err(|error| error.to_string())?;
        if message.role() == Role::Assistant {
            return self.part(&message, when, found);
        }
        self.end(found);
        if summary {
            let content = message.content();
            let text = content.map(said::plain).unwrap_or_default();
            let kept = self.count;
            found.entries.push(Entry::Compaction {
                summary: text,
                kept,
            });
            return Ok(());
        }
        self.count += 1;
        found.message(said::bare(&message), when);
        Ok(())
    }

    /// Reads an assistant's message, which may be a part of one.
    fn part(
        &mut self,
        message: &Message<'_>,
        when: Option<u64>,
        found: &mut Found<'_>,
    ) -> Result<(), String> {
        let own = message
            .json()
            .get("id")
            .filter(|id| id.kind() == Kind::String)
            .map(key);
        let list = message
            .content()
            .filter(|content| content.kind() == Kind::Array);
        let (Some(own), Some(list)) = (own, list) else {
            self.end(found);
            self.count += 1;
            found.message(said::bare(message), when);
            return Ok(());
        };
        self.messages.insert(own);
        let inside = list.bytes()[1..list.bytes().len() - 1].trim_ascii();
        match &mut self.held {
            Some((id, blocks, _)) if *id == own => {
                if !blocks.is_empty() && !inside.is_empty() {
                    blocks.push(b',');
                }
                blocks.extend_from_slice(inside);
            }
            _ => {
                self.end(found);
                self.held = Some((own, inside.to_vec(), when));
            }
        }
        Ok(())
    }

    /// Hands over a message of which no more comes.
    pub fn end(&mut self, found: &mut Found<'_>) {
        if let Some((_, blocks, when)) = self.held.take() {
            let text = [
                br#"{"role":"assistant","content":["#.as_slice(),
                &blocks,
                b"]}",
            ]
            .concat();
            self.count += 1;
            found.earlier.push(Entry::Message { text, time: when });
        }
    }
}

fn is(json: &Fields<'_>, flag: &str) -> bool {
    json.get(flag).is_some_and(Json::is_true)
}

/// The id of the last record in some bytes, which may be cut off in front.
pub fn last(bytes: &[u8]) -> Option<String> {
    const UUID: &[u8] = b"\"uuid\":\"";
    let at = memchr::memmem::rfind(bytes, UUID)? + UUID.len();
    let id = bytes[at..].split(|byte| *byte == b'"').next()?;
    Some(quote(std::str::from_utf8(id).ok()?))
}

/// Writes a message as a record.
pub fn write(message: &Message<'_>, said: &said::Said<'_>, to: &mut Sheet) {
    if message.role() == Role::System {
        return to.lose("system messages");
    }
    let text = match chat::is_foreign(message, true) {
        true => String::from_utf8_lossy(&said::message(said.role, &said.blocks)).into_owned(),
        false => chat::one_line(message),
    };
    let kind = if message.role() == Role::Assistant {
        "assistant"
    } else {
        "user"
    };
    let number = to.made + 1;
    to.made = number;
    let parent = to.parent.replace(quote(&id(number)));
    let parent = parent.unwrap_or_else(|| "null".to_owned());
    let (own, session, when) = (id(number), to.session_id(), time::iso(to.time));
    let text = match kind {
        // Records of one message share its id; each of ours is a message.
        "assistant" => format!(r#"{{"id":"msg_{number}","type":"message",{}"#, &text[1..]),
        _ => text,
    };
    let mut place = String::new();
    for (name, value) in [
        ("cwd", &to.session.cwd),
        ("version", &to.session.version),
        ("gitBranch", &to.session.branch),
    ] {
        if let Some(value) = value {
            place += &format!(r#","{name}":{}"#, quote(value));
        }
    }
    to.records.push(format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"userType":"external"{place},"sessionId":{session},"type":"{kind}","message":{text},"uuid":"{own}","timestamp":"{when}"}}"#
    ));
}
