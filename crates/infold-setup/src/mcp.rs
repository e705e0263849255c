//! The entry of the MCP server `infold mcp` in an agent's configuration: each agent has its own form of it.

use serde_json::{Value, json};

use crate::edit::Syntax;
use crate::tree::PathStep;

/// How an agent reaches the MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEntry {
    /// The agent starts the server as a process: the program and its arguments.
    Command(String, Vec<String>),
    /// The agent sends requests to this address.
    Address(String),
}

/// The form in which an agent's configuration lists MCP servers, named after an agent that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpForm {
    /// Claude Code, Cursor.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// goose.
    Goose,
    /// opencode.
    Opencode,
    /// Continue.
    Continue,
}

impl McpForm {
    /// Returns the syntax of the file that lists the servers.
    pub fn syntax(self) -> Syntax {
        match self {
            McpForm::Claude | McpForm::Gemini | McpForm::Opencode => Syntax::Json,
            McpForm::Codex => Syntax::Toml,
            McpForm::Goose | McpForm::Continue => Syntax::Yaml,
        }
    }

    /// Returns where the entry stands in the file: under the key `infold`; in Continue's list, it is the element with
    /// that name.
    pub fn path(self) -> Vec<PathStep> {
        match self {
            McpForm::Claude | McpForm::Gemini => PathStep::keys(&["mcpServers", "infold"]),
            McpForm::Codex => PathStep::keys(&["mcp_servers", "infold"]),
            McpForm::Goose => PathStep::keys(&["extensions", "infold"]),
            McpForm::Opencode => PathStep::keys(&["mcp", "infold"]),
            McpForm::Continue => vec![
                PathStep::Key("mcpServers".to_owned()),
                PathStep::Entry("name".to_owned(), "infold".to_owned()),
            ],
        }
    }

    /// Returns the entry in the form that the agent reads.
    pub fn value(self, entry: &ServerEntry) -> Value {
        match (self, entry) {
            (McpForm::Claude, ServerEntry::Address(url)) => json!({"type": "http", "url": url}),
            (McpForm::Gemini, ServerEntry::Address(url)) => json!({"httpUrl": url}),
            (McpForm::Codex, ServerEntry::Address(url)) => json!({"url": url}),
            (
                McpForm::Claude | McpForm::Gemini | McpForm::Codex,
                ServerEntry::Command(program, words),
            ) => {
                json!({"command": program, "args": words})
            }
            (McpForm::Goose, entry) => {
                let mut server = match entry {
                    ServerEntry::Command(program, words) => {
                        json!({"type": "stdio", "cmd": program, "args": words})
                    }
                    ServerEntry::Address(url) => json!({"type": "streamable_http", "uri": url}),
                };
                server["enabled"] = true.into();
                server["name"] = "infold".into();
                server["description"] =
                    "Searches and reads the whole conversation, hidden messages too".into();
                server["timeout"] = 60.into();
                server
            }
            (McpForm::Opencode, ServerEntry::Command(program, words)) => {
                let command: Vec<&String> = std::iter::once(program).chain(words).collect();
                json!({"type": "local", "command": command, "enabled": true})
            }
            (McpForm::Opencode, ServerEntry::Address(url)) => {
                json!({"type": "remote", "url": url, "enabled": true})
            }
            (McpForm::Continue, ServerEntry::Command(program, words)) => {
                json!({"name": "infold", "command": program, "args": words})
            }
            (McpForm::Continue, ServerEntry::Address(url)) => {
                json!({"name": "infold", "type": "streamable-http", "url": url})
            }
        }
    }
}
