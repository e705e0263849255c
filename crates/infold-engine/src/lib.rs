//! Folds a conversation to fit a window: `manage`, summarizers, profiles and configuration.
//!
//! ```
//! use infold::summarizer::Extractive;
//! use infold::{Aim, Hooks, PassAction, Scratch, Strategy, manage};
//! use infold_log::{Budget, Limits};
//!
//! let mut task = Scratch::new()?;
//! for turn in 0..200 {
//!     for (role, text) in [("user", "what of part"), ("assistant", "it is well, part")] {
//!         let text = format!("{text} {turn}: {}", "and so on ".repeat(10));
//!         task.push(format!(r#"{{"role":"{role}","content":"{text}"}}"#).into_bytes())?;
//!     }
//! }
//! let budget = Budget::new(Limits {
//!     window: 8_000,
//!     threshold: Some(75.0),
//!     ..Limits::default()
//! })?;
//! let aim = Aim::new(budget, Strategy::default());
//! let outcome = manage(task.writer()?, &aim, &mut Extractive, &Hooks::default())?;
//! assert_eq!(outcome.action, PassAction::Condensed);
//! assert!(outcome.fits && outcome.after.tokens < outcome.before.tokens);
//! // One pass is one step: undo shows everything again.
//! task.writer()?.undo()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod models;
pub mod profile;
pub mod config;
mod word_list;
mod sentence;
pub mod references;
pub mod extract;
pub mod claims;
mod strategy;
mod subprocess;
mod hooks;
mod outcome;
pub mod summarizer;
pub mod manage;
pub mod step;
pub mod checkpoint;
pub mod recall;
pub mod layers;
pub mod redact;
pub mod numbers;
mod error_chain;
pub mod show;
pub mod search;
mod fold_map;
mod scratch;
pub mod usage;
pub mod gain;
mod connection;
pub mod connect;
pub mod setup;
pub mod request;
pub mod tool_record;
pub mod turn;
pub mod queue;
pub use config::Config;
pub use connection::{CallFailure, Connection, Connector};
pub use error_chain::error_chain;
pub use extract::Extract;
pub use fold_map::{FoldMap, Treatment};
pub use hooks::Hooks;
pub use manage::{Aim, Draft, FloorTooLarge, ManageError, draft, manage, rehearse, will_manage};
pub use models::Model;
pub use outcome::{GeminiStatus, ManageOutcome, PassAction, PassStep, SkipReason};
pub use profile::{KeepRecent, Profile, Threshold};
pub use scratch::{Scratch, ScratchError};
pub use setup::{Setup, SetupError, setup};
pub use strategy::{KeepPolicy, STRATEGIES, StandIn, Strategy, UnknownStrategy};
pub use summarizer::Summarizer;
pub use turn::{TurnContext, TurnError, TurnEvent, TurnReply};
