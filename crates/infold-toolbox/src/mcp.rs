//! Tools of MCP servers.

mod adapter;
mod line_limit;
mod process;
mod restart;
mod server;
pub(crate) use adapter::ServerTool;
pub(crate) use server::{ServerHandle, SharedSettings, ToolListing};
