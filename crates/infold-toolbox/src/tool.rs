//! A tool that a toolbox offers.

use serde_json::Value;

/// A tool that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// The name by which the model calls it. It is `mcp__SERVER__TOOL` for a tool of a server whose own name another
    /// tool has too, or that is reserved.
    pub name: String,
    /// The description that a model reads.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub input_schema: Value,
    /// Whether the tool changes nothing, so that several calls may run at once. For a tool of a server, the server says
    /// so itself (its annotation).
    pub read_only: bool,
    /// The MCP server that offers it; `None` for a tool of the workspace.
    pub server: Option<String>,
}

/// The tools that can be called now, and the servers with problems.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolList {
    /// The tools of the workspace first, then those of each server in the order of the settings.
    pub tools: Vec<Tool>,
    /// Servers that did not start, or some of whose tools are missing from `tools`.
    pub problems: Vec<ServerProblem>,
}

/// The reason that tools of a server are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProblem {
    /// The name of the server.
    pub server: String,
    /// The problem; if the server ended, with the last lines of its standard error.
    pub reason: String,
}
