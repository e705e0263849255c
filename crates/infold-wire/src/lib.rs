//! What messages look like.

mod json;
pub mod js;
pub mod tags;
pub use json::{Json, JsonError, Kind, quote};
