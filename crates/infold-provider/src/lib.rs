//! Calls each model API.
//!
//! This crate alone knows HTTP clients.
