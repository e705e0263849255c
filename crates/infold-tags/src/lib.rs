//! The tag form: folds conversations of agents that store folds as tags inside their messages.
//!
//! Agents such as Roo Code hold a conversation as one array and hide a message
//! by tagging it with the id of a fold (`condenseParent`, `truncationParent`).
//! The stand-in, a summary or a marker, is in the same array and has the id as
//! its own. A tag whose stand-in was removed hides nothing. [`infold_wire::tags`]
//! reads and tags single messages.
//!
//! These functions give the same results as the agents' own code, down to the
//! timestamps of the stand-ins and including its mistakes: the tests compare them
//! with recordings of that code (`tests/vectors`). They therefore read no clock
//! and draw no ids: both are arguments.
//!
//! ```
//! use infold_tags::{Millis, TagId, Tagged, effective, truncate};
//!
//! let history = Tagged::parse_list(br#"[
//!     {"role": "user", "content": "name the project", "ts": 1},
//!     {"role": "assistant", "content": "silt", "ts": 2},
//!     {"role": "user", "content": "no", "ts": 3},
//!     {"role": "assistant", "content": "infold", "ts": 4}
//! ]"#)?;
//! let cut = truncate(&history, 0.7, &TagId::new("t1"), Millis(9.0));
//!
//! assert_eq!(cut.reported, 2.0);
//! assert_eq!(
//!     cut.messages[1].bytes(),
//!     br#"{"role": "assistant", "content": "silt", "ts": 2,"truncationParent":"t1"}"#.as_slice()
//! );
//! let shown = effective(&cut.messages);
//! assert_eq!(shown.len(), 3);
//! assert!(shown[2].bytes().starts_with(br#"{"role": "assistant", "content": "infold""#));
//! # Ok::<(), infold_tags::TaggedError>(())
//! ```

mod effective;
mod truncate;
mod kept_tail;
mod since_summary;
mod ui_entry;
mod rewind;
mod split_point;
mod count;
mod summary_request;
mod condense;
mod manage;
pub use condense::{
    CondenseError, CondenseRefusal, Condensed, RefusalReason, Stamps, TaggedConversation,
    ToolCallStyle, condense,
};
pub use count::{add_margin, count_tokens, count_without_margin};
pub use effective::{effective, untag_orphans};
pub use infold_wire::tags::{
    Millis, TagFold, TagId, TagKind, Tagged, TaggedError, TaggedRole, Ts, UntaggedHistory,
    from_tags, to_tags,
};
pub use kept_tail::{KeptTail, keep_with_tool_blocks};
pub use manage::{
    CondenseThreshold, ManageAction, ManageReport, TagManageError, WindowLimits, manage,
    manage_despite_failure, will_manage,
};
pub use rewind::{
    OrphanTags, RewindError, RewindTarget, RewoundTask, TaskLists, rewind_to_index, rewind_to_ts,
};
pub use since_summary::since_last_summary;
pub use split_point::{SplitError, split_point};
pub use summary_request::{
    ImageHandling, ReplyChunk, SummaryModel, SummaryPrompt, SummaryReply, SummaryRequest,
};
pub use truncate::{Truncated, truncate};
pub use ui_entry::UiEntry;
