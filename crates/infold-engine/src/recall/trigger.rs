//! Reads what a request refers to.

use std::collections::HashSet;

use infold_log::{Item, Past as _, Role, Seq, Span, round_members};
use infold_store::{Log, LogError};
use infold_wire::tool_action::MessageText;
use infold_wire::{Message, TypedTextFilter};

use crate::references;

/// The messages that a request ends with, and their references.
pub(super) struct Request {
    /// The first of them.
    pub first: Seq,
    /// The last of them, which carries what is recalled.
    pub last: Seq,
    /// In order, each once.
    pub references: Vec<String>,
}

/// How much of the arguments of a message's calls is read: paths and names come first, texts to write after them.
const MAX_ARGUMENT_BYTES: usize = 1_000;
/// How much of what the user typed is read.
const MAX_TYPED_BYTES: usize = 16_000;
/// More references than these are a list, not a question.
const MAX_REFERENCES: usize = 32;
/// Shorter numbers stand everywhere.
const MIN_NUMBER_DIGITS: usize = 5;

/// Returns the message that may carry excerpts: the last one, if something is folded, the model did not speak last, and it
/// carries none already.
pub(super) fn carrier(log: &Log) -> Result<Option<Seq>, LogError> {
    let shown = log.state().shown();
    let is_folded = shown.all_masks().next().is_some()
        || shown
            .items()
            .iter()
            .any(|item| matches!(item, Item::Fold(_)));
    let Some(last) = shown.open_end().filter(|_| is_folded) else {
        return Ok(None);
    };
    let is_answered = !matches!(log.record(last)?.role, Role::User | Role::Tool);
    let is_done = shown.recalls(Span::one(last)).next().is_some();
    Ok(Some(last).filter(|_| !is_answered && !is_done))
}

/// Returns what the last round refers to; none if nothing can be recalled for it.
pub(super) fn read(log: &Log) -> Result<Option<Request>, LogError> {
    let Some(last) = carrier(log)? else {
        return Ok(None);
    };
    let path = log.state().shown().path();
    let members = round_members(log.record(last)?.round, path.into_iter(), log)?;
    let mut found = ReferenceList::default();
    for seq in &members {
        let bytes = log.message(*seq)?;
        let Ok(message) = Message::read(&bytes) else {
            continue;
        };
        let text = MessageText::of(&message);
        match message.role() {
            Role::User => {
                let typed = start(&text.text, MAX_TYPED_BYTES);
                if let Some(typed) = TypedTextFilter::default().text(typed) {
                    found.add(&typed);
                }
            }
            Role::Assistant => found.add(start(&text.arguments, MAX_ARGUMENT_BYTES)),
            Role::Tool | Role::System => {}
        }
    }
    Ok(Some(Request {
        first: members.first().copied().unwrap_or(last),
        last,
        references: found.list,
    }))
}

#[derive(Default)]
struct ReferenceList {
    list: Vec<String>,
    known: HashSet<String>,
}

impl ReferenceList {
    fn add(&mut self, text: &str) {
        references::for_each(text, |reference| {
            let is_small_number = reference.len() < MIN_NUMBER_DIGITS
                && reference.bytes().all(|byte| byte.is_ascii_digit());
            if !is_small_number
                && self.list.len() < MAX_REFERENCES
                && self.known.insert(reference.to_owned())
            {
                self.list.push(reference.to_owned());
            }
        });
    }
}

fn start(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
