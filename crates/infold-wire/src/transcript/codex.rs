//! Codex's rollout log: items of the Responses API, several of which are one model output.

use infold_log::Role;

use super::said::{Block, Fields, Said, message, plain, raw, responses, texts};
use super::write::Sheet;
use super::{Entry, Found, time};
use crate::{Json, Kind, quote};

/// Reads items; what the model said in one go is one message.
#[derive(Default)]
pub struct Codex {
    /// What it said so far, as blocks, and when.
    held: Option<(String, Option<u64>)>,
    begun: bool,
    count: usize,
}

impl Codex {
    pub fn holds(&self) -> bool {
        self.held.is_some()
    }

    pub fn record(&mut self, text: &[u8], found: &mut Found<'_>) -> Result<(), String> {
        let whole = Json::checked(text.trim_ascii());
        let json = Fields::parse(text)?;
        let when = json.get("timestamp").and_then(Json::text);
        let when = when.and_then(|when| time::parse(&when));
        let payload = json
            .get("payload")
            .filter(|payload| payload.kind() == Kind::Object);
        let kind = json.get("type").and_then(Json::text).unwrap_or_default();
        match (payload, &*kind) {
            (Some(payload), "session_meta") => self.meta(&Fields::of(payload), found),
            (Some(payload), "response_item") => self.item(payload, when, found)?,
            (Some(payload), "compacted") => {
                self.end(found);
                let summary = payload
                    .get("message")
                    .and_then(Json::text)
                    .unwrap_or_default();
                let (summary, kept) = (summary.into_owned(), self.count);
                found.entries.push(Entry::Compaction { summary, kept });
            }
            (Some(_), "") => return Err("no \"type\"".to_owned()),
            (Some(_), other) => found.seen.skip(other),
            // Older rollouts have the items themselves, behind a line of metadata.
            (None, "") if json.get("id").is_some() => self.meta(&json, found),
            (None, "") if json.get("record_type").is_some() => found.seen.skip("state"),
            (None, "") => return Err("no \"type\"".to_owned()),
            (None, _) => self.item(whole, when, found)?,
        }
        Ok(())
    }

    fn meta(&mut self, json: &Fields<'_>, found: &mut Found<'_>) {
        let text = json
            .get("instructions")
            .filter(|text| text.kind() == Kind::String);
        let base = json.get("base_instructions");
        let base = base.map(|base| base.get("text").unwrap_or(base));
        let text = text
            .or(base)
            .filter(|text| text.kind() == Kind::String && !text.is_blank());
        match text {
            Some(text) if !self.begun => {
                self.say(Role::System, &[Block::Text(raw(text))], None, found)
            }
            _ => found.seen.skip("session_meta"),
        }
    }

    fn item(
        &mut self,
        whole: Json<'_>,
        when: Option<u64>,
        found: &mut Found<'_>,
    ) -> Result<(), String> {
        let json = Fields::of(whole);
        let kind = json
            .get("type")
            .and_then(Json::text)
            .ok_or("an item without \"type\"")?;
        match &*kind {
            "message" => {
                let role = json.get("role").and_then(Json::text).unwrap_or_default();
                let blocks = json.get("content").map(texts).unwrap_or_default();
                match &*role {
                    "assistant" => blocks.iter().for_each(|block| self.hold(block, when)),
                    "user" => self.say(Role::User, &blocks, when, found),
                    "system" | "developer" => self.say(Role::System, &blocks, when, found),
                    other => return Err(format!("unknown role `{other}`")),
                }
            }
            other => match responses::item(whole, &json).as_deref() {
                Some([block @ Block::Call(..)]) => self.hold(block, when),
                Some(result @ [Block::Result { .. }]) => self.say(Role::User, result, when, found),
                Some([block]) if is_kept(other) => self.hold(block, when),
                _ => found.seen.skip(other),
            },
        }
        Ok(())
    }

    fn hold(&mut self, block: &Block<'_>, when: Option<u64>) {
        self.begun = true;
        let (blocks, _) = self.held.get_or_insert_with(|| (String::new(), when));
        if !blocks.is_empty() {
            blocks.push(',');
        }
        block.anthropic(blocks);
    }

    fn say(&mut self, role: Role, blocks: &[Block<'_>], when: Option<u64>, found: &mut Found<'_>) {
        self.begun = true;
        self.end(found);
        self.count += 1;
        found.message(message(role, blocks), when);
    }

    /// Hands over what the model said.
    pub fn end(&mut self, found: &mut Found<'_>) {
        if let Some((blocks, time)) = self.held.take() {
            let text = format!(r#"{{"role":"assistant","content":[{blocks}]}}"#).into_bytes();
            self.count += 1;
            found.earlier.push(Entry::Message { text, time });
        }
    }
}

/// Writes the record that comes first, with the system prompt in it.
pub fn header(system: &[String], to: &mut Sheet) {
    let texts: Vec<String> = system
        .iter()
        .filter_map(|block| Some(plain(Json::parse(block.as_bytes()).ok()?)))
        .collect();
    let system = match texts.is_empty() {
        true => String::new(),
        false => format!(r#","instructions":{}"#, quote(&texts.join("\n\n"))),
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
pub fn write(said: &Said<'_>, to: &mut Sheet) {
    let (role, kind) = match said.role {
        Role::Assistant => ("assistant", "output"),
        Role::System => ("developer", "input"),
        Role::User | Role::Tool => ("user", "input"),
    };
    let mut rest: Vec<&Block<'_>> = Vec::new();
    for block in &said.blocks {
        let item = match block {
            Block::Call(id, name, input) => responses::call(id, name, input),
            Block::Result {
                id,
                content,
                failed,
                ..
            } => responses::call_output(id, content, *failed),
            Block::Thinking(text, _) => format!(
                r#"{{"type":"reasoning","summary":[{{"type":"summary_text","text":{text}}}]}}"#
            ),
            Block::Other(raw) if is_item(raw) => raw.to_string(),
            Block::Other(_) => {
                to.lose("blocks of other formats");
                continue;
            }
            other => {
                rest.push(other);
                continue;
            }
        };
        said_so_far(&mut rest, role, kind, to);
        record(&item, to);
    }
    if !rest.is_empty() || said.blocks.is_empty() {
        let empty = said.blocks.is_empty().then_some(Block::Text("\"\"".into()));
        rest.extend(&empty);
        said_so_far(&mut rest, role, kind, to);
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

/// Items that nothing else says are kept as they are.
fn is_kept(kind: &str) -> bool {
    matches!(kind, "reasoning" | "web_search_call")
}

fn said_so_far(rest: &mut Vec<&Block<'_>>, role: &str, kind: &str, to: &mut Sheet) {
    if rest.is_empty() {
        return;
    }
    record(&responses::message(role, kind, rest), to);
    rest.clear();
}

/// Writes an item.
pub fn record(item: &str, to: &mut Sheet) {
    let when = time::iso(to.time);
    to.records.push(format!(
        r#"{{"timestamp":"{when}","type":"response_item","payload":{item}}}"#
    ));
}
