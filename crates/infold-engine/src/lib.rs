//! Folds a conversation to fit a window: `manage`, summarizers, profiles and configuration.
//!
//! ```
//! use infold::summarizer::Extractive;
//! use infold::{Aim, Did, Hooks, Scratch, Strategy, manage};
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
//! assert_eq!(outcome.did, Did::Condensed);
//! assert!(outcome.fits && outcome.after.tokens < outcome.before.tokens);
//! // One pass is one step: undo shows everything again.
//! task.writer()?.undo()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// What is known of models: windows, tokenizers, prices, defaults.
pub mod models;
/// All that decides how a conversation with one model is folded.
pub mod profile;
/// What `config.yaml` and the environment say.
pub mod config;
pub mod refs;
pub mod extract;
pub mod quotes;
mod strategy;
mod child;
mod hooks;
mod outcome;
pub mod summarizer;
pub mod manage;
pub mod step;
pub mod redact;
/// How numbers are said to people.
pub mod words;
pub mod show;
mod picture;
mod scratch;
/// What providers report, and what is learned from it.
pub mod usage;
mod connection;
/// Whom to ask: providers and models as configured.
pub mod connect;
/// How to fold for a model, put together.
pub mod setup;
pub mod request;
pub mod turn;
pub use config::Config;
pub use connection::{Connection, Switchboard, Unanswered};
pub use extract::Extract;
pub use hooks::Hooks;
pub use manage::{Aim, Draft, ManageError, TooSmall, draft, manage, rehearse, will_manage};
pub use models::Model;
pub use outcome::{Did, GeminiStatus, Left, Outcome, Step};
pub use picture::{Fate, Picture};
pub use profile::{Keep, Preset, Profile, Threshold};
pub use scratch::{Scratch, ScratchError};
pub use setup::{Setup, SetupError, setup};
pub use strategy::{Keeps, STRATEGIES, StandIn, Strategy, UnknownStrategy};
pub use summarizer::Summarizer;
pub use turn::{News, Talk, TurnError, Turned};
