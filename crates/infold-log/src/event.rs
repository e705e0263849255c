//! Events: changes of the view, and recorded facts.

use crate::{EventId, Point, Seq, Span};

/// A change of the view, or a recorded fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Rounds are hidden, or one part of a message is.
    Fold(Fold),
    /// An active, outermost fold is opened.
    Unfold(EventId),
    /// The state becomes what it was at a point.
    Rewind(Point),
    /// The newest step not yet undone is taken back.
    Undo,
    /// The newest undo is taken back.
    Redo,
    /// A round is exempted from folding, or a note is added to every view.
    Pin(Pin),
    /// A pin is taken away.
    Unpin(Pinned),
    /// An excerpt of a hidden message is shown at the end of the last message, so that the view only grows.
    Recall(Recall),
    /// The layered state of the task changes; the text of the change is in the log.
    State {
        /// Whether a person made the change: then `undo` takes it back.
        is_step: bool,
    },
    /// An event that does not change the view: the origin of the log, usage, tool records, status.
    Fact,
}

/// A fold without the text of its stand-in, which is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// The messages or the part that it hides.
    pub hides: Hides,
    /// Tokens of its stand-in.
    pub tokens: u64,
}

/// What a fold hides: rounds, or one part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hides {
    /// The visible rounds and stand-ins of a span, each whole.
    Rounds(Cause, Span),
    /// One part of one message.
    Part {
        /// The message.
        seq: Seq,
        /// The index of the part in the message, counted from zero.
        part: u32,
        /// Tokens of that part.
        tokens: u64,
    },
}

/// Why rounds were hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Condensed: a summary is shown instead.
    Summary,
    /// Truncated: a marker is shown instead.
    Window,
}

/// A text that views add to a message: an excerpt of a hidden message, the look-ups that were made for a reply, or a
/// text of the layered state. The text itself is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recall {
    /// The message at whose end it is shown; for look-ups, the last message of the reply.
    pub at: Seq,
    /// The hidden message that an excerpt quotes. None for look-ups, which are shown as long as their reply is. For a
    /// text of the layered state, which quotes no message, it equals `at`.
    pub source: Option<Seq>,
    /// Tokens that it adds.
    pub tokens: u64,
}

impl Recall {
    /// Returns the hidden message that it quotes, if it quotes one.
    pub fn quoted(&self) -> Option<Seq> {
        self.source.filter(|source| *source != self.at)
    }

    /// Says whether it is a text of the layered state.
    pub fn is_context(&self) -> bool {
        self.source == Some(self.at)
    }
}

/// The target of a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// The round of this message.
    Message(Seq),
    /// A text kept in the event itself.
    Note {
        /// Tokens of the text.
        tokens: u64,
    },
}

/// A pin that is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinned {
    /// The pin of this message.
    Message(Seq),
    /// The note added by this event.
    Note(EventId),
}

impl Event {
    /// Says whether `undo` can take it back.
    pub fn is_step(&self) -> bool {
        match self {
            Event::Fold(_)
            | Event::Unfold(_)
            | Event::Rewind(_)
            | Event::Pin(_)
            | Event::Unpin(_) => true,
            Event::State { is_step } => *is_step,
            Event::Undo | Event::Redo | Event::Recall(_) | Event::Fact => false,
        }
    }
}

/// The facts of an event that later steps need without reading it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The last seq before it.
    pub after: u64,
    /// When it happened, in milliseconds since 1970.
    pub time: u64,
    /// The newest step not yet undone, after this event.
    pub step: Option<EventId>,
    /// The newest undo not yet redone, after this event.
    pub undone: Option<EventId>,
    /// Whether it is a rewind. Undoing a rewind also hides the messages since.
    pub rewinds: bool,
}
