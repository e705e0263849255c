//! Replays sessions under strategies, and measures what they cost and what they keep.
//!
//! Before each message of the model, which stands for a request, [`manage`](crate::manage())
//! runs on the conversation up to there. What is measured is defined in `docs/EVAL.md`:
//! tokens sent, how much of each request repeats the one before byte for byte, folds, cost, and
//! **future-reference recall**: of the references that user and assistant make to what was folded
//! away, the share that a stand-in still holds.

mod session;
mod material;
mod sight;
mod sent;
mod replay;
mod designs;
mod compare;
mod plot;

pub use compare::{Compared, Lost, compare, compare_agent};
pub use designs::Design;
pub use material::Material;
pub use plot::{Line, Plot};
pub use replay::{Point, Replay, ReplayError, Request, Unfit, replay};
pub use session::{Compaction, Session};

/// The model whose prices are taken when none is named.
pub const DEFAULT_MODEL: &str = "claude-sonnet-5-5";
