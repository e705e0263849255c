//! Folds a conversation to fit a window.

/// What is known of models: windows, tokenizers, prices, defaults.
pub mod models;
/// All that decides how a conversation with one model is folded.
pub mod profile;
/// What `config.yaml` and the environment say.
pub mod config;

pub use config::Config;
pub use models::Model;
pub use profile::{Keep, Preset, Profile, Threshold};
