//! Replays sessions under strategies, and measures what they cost and what they keep.
//!
//! Each message of the model stands for a request: before it, [`manage`](infold::manage()) runs on the
//! conversation so far. `docs/EVAL.md` defines the measures: tokens sent, how much of each request repeats
//! the one before byte for byte, folds, cost, and which references, words and pairs of words that are used
//! again later a stand-in still holds.
//!
//! ```
//! use infold::{Aim, Strategy};
//! use infold_eval::{Material, Measure, Session, replay};
//! use infold_log::{Budget, Limits};
//!
//! let mut session = Session::default();
//! for turn in 0..200 {
//!     for role in ["user", "assistant"] {
//!         let text = format!("part_{turn}: {}", "and so on ".repeat(20));
//!         let message = format!(r#"{{"role":"{role}","content":"{text}"}}"#);
//!         session.messages.push(message.into_bytes());
//!     }
//! }
//! let budget = Budget::new(Limits {
//!     window: 8_000,
//!     threshold: Some(75.0),
//!     ..Limits::default()
//! })?;
//! let material = Material::of(&session)?;
//! let aim = Aim::new(budget, Strategy::default());
//! let replay = replay(&session, &material, &aim, None, &mut || {})?;
//! assert_eq!(replay.requests.len(), 200);
//! assert!(replay.requests.iter().any(|request| request.folds > 0));
//! assert!(replay.requests.iter().all(|request| request.tokens < 8_000));
//! assert!(replay.scores[Measure::Words].wanted >= replay.scores[Measure::Words].kept);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
