//! Folds a conversation to fit a window.
