//! Folds a conversation to fit a window.

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
mod picture;
mod scratch;
pub mod eval;
/// What providers report, and what is learned from it.
pub mod usage;
pub use config::Config;
pub use extract::Extract;
pub use hooks::Hooks;
pub use manage::{Aim, Draft, ManageError, TooSmall, draft, manage, rehearse, will_manage};
pub use models::Model;
pub use outcome::{Did, GeminiStatus, Left, Outcome, Step};
pub use picture::{Fate, Picture};
pub use profile::{Keep, Preset, Profile, Threshold};
pub use scratch::{Scratch, ScratchError};
pub use strategy::{Keeps, STRATEGIES, StandIn, Strategy, UnknownStrategy};
pub use summarizer::Summarizer;
