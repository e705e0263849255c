//! The layered state in the log: a chain of changes, now and then with all that was before them.

use infold_layers::{
    Author, Change, ChangeError, Field, LayerState, Transitions, decode_changes, encode_changes,
};
use infold_log::{EventId, Shown};
use infold_store::{Log, LogError, StateAuthor, StateLine, What, Writer};
use infold_wire::Json;

/// The number of changes after which a base is written.
const MIN_CHANGES_BETWEEN_BASES: usize = 64;

/// The reason that the state could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The change cannot be made.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The log could not be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A state, and how much of the log had to be read for it.
struct ReadState {
    state: LayerState,
    changes: usize,
    bytes: usize,
}

/// Returns the layered state that is in force where `shown` is shown.
pub fn read_state(log: &Log, shown: &Shown) -> Result<LayerState, LogError> {
    Ok(read(log, shown)?.state)
}

/// Makes changes, all or none; one person's call is one step for `undo`.
pub fn change_state(
    writer: &mut Writer,
    author: Author,
    changes: &[Change],
    transitions: &Transitions,
) -> Result<EventId, StateError> {
    let log = writer.log();
    let read = read(log, log.state().shown())?;
    let mut state = read.state.clone();
    for change in changes {
        state.apply_within(change, author, transitions)?;
    }
    let whole = encode_changes(&read.state.to_changes());
    // This keeps the bytes read for a state in proportion to it, and also the bytes written.
    let is_due = read.changes >= MIN_CHANGES_BETWEEN_BASES && read.bytes > whole.len();
    let author = match author {
        Author::Person => StateAuthor::Person,
        Author::Model => StateAuthor::Model,
    };
    let base = is_due.then_some(whole);
    Ok(writer.change_state(author, encode_changes(changes), base)?)
}

/// Returns the state in force; none if it was never changed.
pub fn state_in_force(log: &Log) -> Result<Option<LayerState>, LogError> {
    let shown = log.state().shown();
    match shown.state_changes().last {
        Some(_) => read_state(log, shown).map(Some),
        None => Ok(None),
    }
}

/// Restores a state after a client went back to a message with another one. It is no step for `undo`.
pub fn keep_state(writer: &mut Writer, state: &LayerState) -> Result<(), LogError> {
    let log = writer.log();
    let now = read_state(log, log.state().shown())?;
    let loses_all = state.grants_nothing() && !now.grants_nothing();
    let differs = |field: &Field| {
        now.items(*field) != state.items(*field) || *field == Field::Permissions && loses_all
    };
    let changes = Field::all().filter(differs);
    let changes: Vec<Change> = changes
        .map(|field| Change::Set(field, state.items(field).to_vec()))
        .collect();
    if changes.is_empty() {
        return Ok(());
    }
    let changes = encode_changes(&changes);
    writer
        .change_state(StateAuthor::Proxy, changes, None)
        .map(drop)
}

fn read(log: &Log, shown: &Shown) -> Result<ReadState, LogError> {
    let in_force = shown.state_changes();
    let first_undone = in_force.undone.first();
    let mut chain: Vec<StateLine> = Vec::new();
    let mut base = None;
    let mut bytes = 0;
    let mut next = in_force.last;
    while let Some(id) = next
        && let What::State(mut line) = log.event(id)?.what
    {
        next = line.previous;
        bytes += line.changes.len();
        // A base includes changes that were undone later, so it counts only if none before it was undone.
        if first_undone.is_none_or(|undone| id <= *undone) {
            base = line.base.take();
        }
        if !in_force.undone.contains(&id) {
            chain.push(line);
        }
        if base.is_some() {
            break;
        }
    }
    let mut state = LayerState::default();
    let changes = chain.len();
    let texts = base
        .iter()
        .chain(chain.iter().rev().map(|line| &line.changes));
    for text in texts {
        let decoded = Json::parse(text.as_bytes()).ok().and_then(decode_changes);
        for change in decoded.unwrap_or_default() {
            // A change that was valid when it was made may no longer fit once an earlier change is undone: skip it.
            let _ = state.replay(&change);
        }
    }
    Ok(ReadState {
        state,
        changes,
        bytes,
    })
}
