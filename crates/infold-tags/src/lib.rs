//! The tag form: what agents that keep folds as tags inside their messages do to a conversation.
//!
//! Agents such as Roo Code hold a conversation as one array and hide a message
//! by tagging it with the id of a fold (`condenseParent`, `truncationParent`).
//! The stand-in, a summary or a marker, sits in the same array and carries the
//! id itself. A tag whose stand-in is gone hides nothing. How such a message is
//! read and tagged is in [`infold_wire::tags`].
//!
//! These functions do what the agents' own code does, down to the timestamps of
//! the stand-ins, and including what it does badly; `tests/vectors` holds the
//! recordings. They read no clock and draw no ids: both are arguments.
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

mod present;
mod truncate;
mod keep;
mod since;
mod ui;
mod rewind;
mod split;
mod count;
mod request;
mod condense;
mod manage;
pub use condense::{
    CondenseError, Condensed, Conversation, Refusal, Refused, Stamps, Tools, condense,
};
pub use count::{count, padded, unpadded};
pub use infold_wire::tags::{
    Fold, FromTags, Millis, Role, TagFold, TagId, Tagged, TaggedError, Ts, from_tags, to_tags,
};
pub use keep::{Kept, keep_with_tool_blocks};
pub use manage::{
    Done, Limits, ManageError, Managed, Threshold, manage, manage_despite_failure, will_manage,
};
pub use present::{effective, untag_orphans};
pub use request::{Chunk, Images, Model, Prompt, Reply, Request};
pub use rewind::{Orphans, RewindError, Rewound, Target, Task, rewind_to_index, rewind_to_ts};
pub use since::since_last_summary;
pub use split::{SplitError, split_point};
pub use truncate::{Truncated, truncate};
pub use ui::UiEntry;
