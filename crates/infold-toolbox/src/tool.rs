//! A tool that a toolbox offers.

use serde_json::Value;

/// A tool that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name by which it is called. `mcp__SERVER__TOOL` if others have the same.
    pub name: String,
    /// The description that a model reads.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub input_schema: Value,
    /// Whether it changes nothing, so that several calls may run at once. For a server's tool, this is the
    /// server's annotation.
    pub read_only: bool,
    /// The MCP server that has it; none for a tool of the workspace.
    pub server: Option<String>,
}

/// The tools that can be called now, and the servers with problems.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolList {
    /// The tools of the workspace first, then those of each server in the order of the settings.
    pub tools: Vec<Tool>,
    /// Servers that did not start, or whose tools are not all there.
    pub problems: Vec<ServerProblem>,
}

/// Why tools of a server are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProblem {
    /// The server.
    pub server: String,
    /// The problem, with the end of the server's standard error.
    pub reason: String,
}
