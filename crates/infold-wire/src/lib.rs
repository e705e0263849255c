//! What messages look like.

mod json;
pub use json::{Json, JsonError, Kind, quote};
