//! Why a step was refused.

use crate::{EventId, Seq};

/// Why a step was refused. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum Refused<E> {
    /// No such message.
    #[error("message {seq} does not exist; the last one is {last}")]
    NoMessage {
        /// The message asked for.
        seq: u64,
        /// The last one there is.
        last: u64,
    },
    /// No such event.
    #[error("event e{event} does not exist; the last one is e{last}")]
    NoEvent {
        /// The event asked for.
        event: u64,
        /// The last one there is.
        last: u64,
    },
    /// The layered state does not allow the change.
    #[error("{why}")]
    State {
        /// The reason.
        why: String,
    },
    /// There is no entry at or before that time.
    #[error("nothing was recorded at or before that time")]
    TooEarly,
    /// The point asked for is where the log already is.
    #[error("the conversation is already there")]
    Already,
    /// The message is on another branch.
    #[error("message {seq} is hidden by a rewind")]
    Elsewhere {
        /// The message.
        seq: Seq,
    },
    /// The message is covered by a fold already.
    #[error("message {seq} is inside fold {fold}")]
    Under {
        /// The message.
        seq: Seq,
        /// The outermost fold over it.
        fold: EventId,
    },
    /// The span has nothing to hide.
    #[error("nothing to fold: {why}")]
    Nothing {
        /// The reason.
        why: &'static str,
    },
    /// The span reaches into a round whose results are still to come.
    #[error("the round that starts at message {round} still waits for {waiting} tool result(s)")]
    Waiting {
        /// The first message of the round.
        round: Seq,
        /// How many calls wait.
        waiting: u32,
    },
    /// The fold is not in force.
    #[error("fold {fold} is not active")]
    Inactive {
        /// The fold.
        fold: EventId,
    },
    /// The fold lies in another one.
    #[error("fold {fold} lies inside fold {outer}")]
    Inner {
        /// The fold.
        fold: EventId,
        /// The outermost one around it.
        outer: EventId,
    },
    /// The event is not a fold.
    #[error("event {event} is not a fold")]
    NotAFold {
        /// The event.
        event: EventId,
    },
    /// A part that is hidden already, or must not be.
    #[error("part {part} of message {seq} cannot be masked: {why}")]
    Part {
        /// The message.
        seq: Seq,
        /// The part.
        part: u32,
        /// The reason.
        why: &'static str,
    },
    /// No step is left to undo.
    #[error("nothing to undo")]
    NothingToUndo,
    /// No undo is left to redo.
    #[error("nothing to redo")]
    NothingToRedo,
    /// The round is pinned already.
    #[error("message {seq} is pinned already")]
    Pinned {
        /// The message.
        seq: Seq,
    },
    /// The note is empty: no provider accepts an empty message.
    #[error("a note has to say something")]
    Blank,
    /// There is no such pin.
    #[error("{what} is not pinned")]
    NotPinned {
        /// The message or note that was to be unpinned.
        what: String,
    },
    /// The hook that approves folds refused it.
    #[error("nothing was folded: {why}")]
    Vetoed {
        /// The reason that it gave.
        why: String,
    },
    /// The files of the workspace cannot be put in place.
    #[error("{why}")]
    Files {
        /// The reason.
        why: String,
    },
    /// The log could not be read.
    #[error(transparent)]
    Past(#[from] E),
}
