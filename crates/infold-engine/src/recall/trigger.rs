//! Reads the references in a request.

use infold_log::{Item, Past as _, Role, Seq, Span, round_members};
use infold_store::{Log, LogError};
use infold_wire::tool_action::MessageText;
use infold_wire::{Message, TypedTextFilter};

use super::name::{Name, NameList};

/// The messages at the end of a request, and the names in them.
pub(super) struct Request {
    /// The first of them.
    pub first: Seq,
    /// In order, each once.
    pub names: Vec<Name>,
}

/// The bytes of a message's call arguments that are read: paths and names come first, texts to write after them.
const MAX_ARGUMENT_BYTES: usize = 4_000;
/// The bytes of the user's typed text that are read.
const MAX_TYPED_BYTES: usize = 16_000;
/// The number of messages since the model's last one that are read.
const MAX_MESSAGES: usize = 32;

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

/// Returns the names in the messages since the model's last one, and the calls they answer; `None` if nothing can be
/// recalled.
pub(super) fn read(log: &Log) -> Result<Option<Request>, LogError> {
    let Some(last) = carrier(log)? else {
        return Ok(None);
    };
    let mut members = round_members(
        log.record(last)?.round,
        log.state().shown().path().into_iter(),
        log,
    )?;
    members.extend(unanswered(log)?);
    members.sort_unstable();
    members.dedup();
    let mut names = NameList::default();
    // The newest messages matter most if there are more names than can be looked up.
    for seq in members.iter().rev() {
        let bytes = log.message(*seq)?;
        let Ok(message) = Message::read(&bytes) else {
            continue;
        };
        let text = MessageText::of(&message);
        match message.role() {
            Role::User => {
                let typed = start(&text.text, MAX_TYPED_BYTES);
                if let Some(typed) = TypedTextFilter::default().text(typed) {
                    names.add_typed(&typed);
                }
            }
            Role::Assistant => names.add_arguments(start(&text.arguments, MAX_ARGUMENT_BYTES)),
            Role::Tool | Role::System => {}
        }
    }
    Ok(Some(Request {
        first: members.first().copied().unwrap_or(last),
        names: names.list,
    }))
}

/// Returns the messages since the model's last one.
fn unanswered(log: &Log) -> Result<Vec<Seq>, LogError> {
    let mut out = Vec::new();
    for run in log.state().shown().path().into_iter().rev() {
        let mut at = Some(run.to());
        while let Some(seq) = at.filter(|seq| *seq >= run.from()) {
            if out.len() == MAX_MESSAGES || log.record(seq)?.role == Role::Assistant {
                return Ok(out);
            }
            out.push(seq);
            at = seq.get().checked_sub(1).and_then(Seq::new);
        }
    }
    Ok(out)
}

fn start(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
