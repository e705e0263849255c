//! Replays sessions under strategies, and measures what they cost and what they keep.
//!
//! Before each message of the model, which stands for a request, [`manage`](crate::manage())
//! runs on the conversation up to there. What is measured is defined in `docs/EVAL.md`:
//! tokens sent, how much of each request repeats the one before byte for byte, folds, cost, and
//! what of the references, words and pairs of words that are used again later a stand-in still holds.

mod session;
mod score;
mod material;
mod sight;
mod sent;
mod replay;
mod designs;
mod compare;
mod interval;
mod trial;
pub mod probes;
mod plot;

pub use compare::{Compared, Lost, compare, compare_agent};
pub use designs::{DESIGNS, Design};
pub use infold_wire::MessageError;
pub use interval::Estimate;
pub use material::Material;
pub use plot::{Line, Plot};
pub use replay::{Point, Replay, ReplayError, Request, Unfit, replay};
pub use score::{Counts, MEASURES, Measure, Scores, Vocabulary};
pub use session::{Compaction, Session};
pub use trial::{Size, Trial, Trials};

/// The model whose prices are taken when none is named.
pub const DEFAULT_MODEL: &str = "claude-sonnet-5-5";
