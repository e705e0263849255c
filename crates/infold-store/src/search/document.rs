//! A message as the index takes it.

use std::collections::HashMap;

use infold_log::{Past as _, Role, Seq};
use infold_wire::terms::DocumentTerms;
use infold_wire::tool_action::{MessageAction, ToolAction, message_actions};
use infold_wire::{ContentBlock, Message, searchable_text};

use super::speaker;
use crate::{Log, LogError};

/// The indexed terms and facts of a message.
#[derive(Debug, Default)]
pub struct Document {
    pub terms: DocumentTerms,
    /// Role, tools and files, as terms.
    pub facts: String,
    pub time: u64,
    /// Bytes of its text.
    pub bytes: u64,
}

/// More of a message is not indexed.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// More names of files of one message are not.
const MAX_FILES: usize = 64;
/// The most calls that are remembered while a task is read.
const MAX_CALLS: usize = 1000;

/// Reads messages of one task, and remembers which calls their results answer.
#[derive(Debug, Default)]
pub struct DocumentReader {
    /// The facts of calls, by their ids.
    calls: HashMap<String, String>,
}

impl DocumentReader {
    pub fn read(&mut self, log: &Log, seq: Seq, bytes: &[u8]) -> Result<Document, LogError> {
        let message = log.parsed(seq, bytes)?;
        let blocks = ContentBlock::all(&message);
        let mut text = searchable_text(&blocks);
        if text.len() > MAX_TEXT_BYTES {
            let end = (0..=MAX_TEXT_BYTES).rev();
            let end = end.into_iter().find(|at| text.is_char_boundary(*at));
            text.truncate(end.unwrap_or(0));
        }
        let record = log.record(seq)?;
        let mut facts = role_term(speaker(&message)).to_owned();
        self.remember_calls(&message);
        for block in &blocks {
            if let ContentBlock::Result { id: Some(id), .. } = block
                && !self.calls.contains_key(id)
                && record.round < seq
            {
                let call = log.message(record.round)?;
                self.remember_calls(&log.parsed(record.round, &call)?);
            }
            let id = match block {
                ContentBlock::Call { id, .. } | ContentBlock::Result { id, .. } => id.as_ref(),
                _ => None,
            };
            if let Some(of_call) = id.and_then(|id| self.calls.get(id)) {
                facts.push(' ');
                facts.push_str(of_call);
            }
        }
        // The results of calls without ids cannot be assigned to them.
        for call in message_calls(&message).filter(|(id, _)| id.is_none()) {
            facts.push(' ');
            facts.push_str(&call.1);
        }
        Ok(Document {
            terms: DocumentTerms::of(&text),
            facts,
            time: record.time,
            bytes: text.len() as u64,
        })
    }

    fn remember_calls(&mut self, message: &Message<'_>) {
        if self.calls.len() > MAX_CALLS {
            self.calls.clear();
        }
        for (id, facts) in message_calls(message) {
            self.calls.extend(id.map(|id| (id, facts)));
        }
    }
}

/// The ids of a message's calls, and their tools and files as terms.
fn message_calls(message: &Message<'_>) -> impl Iterator<Item = (Option<String>, String)> {
    let has_calls = message.role() == Role::Assistant;
    let actions = has_calls.then(|| message_actions(message));
    let actions = actions.into_iter().flatten();
    actions.filter_map(|action| match action {
        MessageAction::Call(call) => {
            let mut facts = tool_term(&call.name);
            for path in call.actions.iter().flat_map(paths).take(MAX_FILES) {
                for term in file_terms(path) {
                    facts.push(' ');
                    facts.push_str(&term);
                }
            }
            Some((call.id, facts))
        }
        _ => None,
    })
}

fn paths(action: &ToolAction) -> Vec<&str> {
    match action {
        ToolAction::Read(path)
        | ToolAction::Write(path)
        | ToolAction::Create(path)
        | ToolAction::Edit(path)
        | ToolAction::Delete(path) => vec![path],
        ToolAction::Move { from, to } => vec![from, to],
        ToolAction::Search { path, .. } => path.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The term of a role.
pub fn role_term(role: Role) -> &'static str {
    match role {
        Role::System => "r=system",
        Role::User => "r=user",
        Role::Assistant => "r=assistant",
        Role::Tool => "r=tool",
    }
}

/// The term of a tool.
pub fn tool_term(name: &str) -> String {
    format!("t={}", fact(name))
}

/// The term of a path that is asked for.
pub fn file_term(path: &str) -> String {
    format!("f={}", fact(path.trim_start_matches("./")))
}

/// The terms of a path: itself, and every end of it.
fn file_terms(path: &str) -> Vec<String> {
    let mut terms = vec![file_term(path)];
    let mut rest = path;
    while let Some((_, end)) = rest.split_once('/') {
        terms.push(file_term(end));
        rest = end;
    }
    terms.retain(|term| term != "f=");
    terms.dedup();
    terms
}

/// Returns a text as a term, with characters at which the index would split it replaced.
fn fact(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || !c.is_ascii() || "_./-:@+#".contains(c);
    let text = text.chars().take(300);
    let text = text.map(|c| if allowed(c) { c } else { '_' });
    text.flat_map(char::to_lowercase).collect()
}
