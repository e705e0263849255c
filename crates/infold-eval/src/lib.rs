//! Replays sessions under strategies, and measures what they cost and what they keep.
//!
//! Each message of the model stands for a request: before it, [`manage`](infold::manage()) runs on the
//! conversation so far. `docs/EVAL.md` defines the measures: tokens sent, how much of each request repeats
//! the one before byte for byte, folds, cost, and which references, words and pairs of words that are used
//! again later a stand-in still holds.
//!
//! ```
//! use infold::{Aim, Strategy};
//! use infold_eval::{ParsedSession, Measure, RecordedSession, replay};
//! use infold_log::{Budget, Limits};
//!
//! let mut session = RecordedSession::default();
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
//! let parsed = ParsedSession::of(&session)?;
//! let aim = Aim::new(budget, Strategy::default());
//! let replay = replay(&session, &parsed, &aim, None, &mut || {})?;
//! assert_eq!(replay.requests.len(), 200);
//! assert!(replay.requests.iter().any(|request| request.folds > 0));
//! assert!(replay.requests.iter().all(|request| request.tokens < 8_000));
//! assert!(replay.scores[Measure::Words].wanted >= replay.scores[Measure::Words].kept);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[macro_use]
mod named;
mod session;
mod measure;
mod parsed_session;
mod content;
mod visibility;
mod previous_request;
mod replay;
mod designs;
mod compare;
mod bootstrap;
mod trials;
pub mod probes;
mod planted;
mod plot;
pub use bootstrap::Estimate;
pub use compare::{DesignTotals, LostReference, compare, compare_agent};
pub use content::Needs;
pub use designs::{DESIGNS, Design};
pub use infold_wire::MessageError;
pub use measure::{Counts, MEASURES, Measure, Scores, TermVocabulary};
pub use parsed_session::ParsedSession;
pub use planted::{FACT_PLACES, FactPlace, PLANTED_FACTS, PlantedFact, PlantedResult, plant_facts};
pub use plot::{Plot, PlotStrip};
pub use replay::{FoldPoint, Replay, ReplayError, ReplayedRequest, UnfitRequest, replay};
pub use session::{Compaction, RecordedSession};
pub use trials::{SizeLimit, StandInTrial, Trials};

/// The model whose prices are taken when none is named.
pub const DEFAULT_MODEL: &str = "claude-sonnet-5-5";
