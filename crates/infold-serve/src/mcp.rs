//! The history as tools and resources of the Model Context Protocol, for finding and reading folded messages.
//!
//! Only `adapter` knows the protocol's types; the other modules take texts and return texts.

mod scope;
mod caller;
mod failure;
mod arguments;
mod history;
mod echo;
mod search;
mod recall;
mod view;
mod state;
mod tools;
mod resources;
mod message_check;
mod checked_lines;
mod adapter;

pub(crate) use adapter::HttpEndpoint;
pub use adapter::{StdioError, serve_stdio};
pub use failure::ToolFailure;
pub use history::{History, StepTaker};
pub use scope::McpScope;
