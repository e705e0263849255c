//! Folds a conversation to fit a window.

pub mod refs;
pub mod extract;
pub mod quotes;
pub use extract::Extract;
