//! Folds a conversation to fit a window.

mod strategy;
mod child;
mod hooks;
mod outcome;
pub mod summarizer;
pub mod manage;
pub use hooks::Hooks;
pub use manage::{Aim, ManageError, TooSmall, manage, rehearse, will_manage};
pub use outcome::{Did, GeminiStatus, Left, Outcome, Step};
pub use strategy::{Keeps, STRATEGIES, StandIn, Strategy, UnknownStrategy};
pub use summarizer::Summarizer;
