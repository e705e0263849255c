//! Conversation logs, and the view of a log that a model is sent.
//!
//! A log is one sequence of messages and events. The state after each entry is a
//! pure function of the entries up to it, and the view is a pure function of the
//! state. This crate works on small facts about messages (role, round, tokens),
//! never on their contents.
//!
//! ```
//! use infold_log::{Call, Cause, Facts, Memory, Role, Seq, Shows, Span, View, steer};
//!
//! let mut log = Memory::default();
//! let say = |role| Facts {
//!     role,
//!     calls: vec![],
//!     answers: vec![],
//!     links: vec![],
//!     reasoning: false,
//!     empty: false,
//!     item: false,
//!     tokens: 10,
//!     bytes: 40,
//! };
//! for role in [Role::User, Role::Assistant, Role::User, Role::Assistant] {
//!     log.message(&say(role), 0);
//! }
//! // Ask for 1..2; the first request stays, so the fold covers 2.
//! let asked: Span = "1..2".parse()?;
//! let cover = steer::cover(log.state(), asked, &log)?;
//! assert_eq!(cover.span.to_string(), "2");
//! let fold = log.event(&steer::folded(Cause::Summary, &cover, 3), None, 0);
//! let view = View::of(log.state().shown(), &log)?;
//! assert_eq!(view.pieces()[1].shows, Shows::StandIn(fold));
//! assert_eq!(view.tokens(), 10 + 3 + 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod seq;
mod message;
mod round;
mod event;
mod shown;
mod state;
mod past;
mod floor;
mod unit;
mod view;
mod valid;
mod budget;
pub mod steer;
pub mod plan;
pub use budget::{Budget, Due, Limits, NoRoom, Size};
pub use event::{Cause, Event, Fold, Hides, Mark, Pin, Pinned, Recall};
pub use floor::Floor;
pub use message::{Call, Facts, Link, LinkKind, Record, Role, Sums};
pub use past::{Memory, Past};
pub use round::{RoundPlacement, Rounds};
pub use seq::{EventId, Point, Seq, Span, SpanError};
pub use shown::{Folded, Item, Mask, Place, Shown, StateChanges};
pub use state::{State, before};
pub use unit::{goes_with_previous, pinned_rounds, reach, tied_to, torn};
pub use valid::{Fault, Line, Source, Verdict, ViewChecker, check};
pub use view::{INTERRUPTED_TOKENS, Piece, Shows, View, round_members, view_at};
