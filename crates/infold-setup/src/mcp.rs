//! The server of `infold mcp` in the configuration of an agent.

use serde_json::{Value, json};

use crate::edit::Syntax;
use crate::tree::PathStep;

/// How an agent reaches the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEntry {
    /// It starts a command: the program and its arguments.
    Command(String, Vec<String>),
    /// It sends requests to an address.
    Address(String),
}

/// The forms in which agents keep their servers.
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
    /// The syntax of the file.
    pub fn syntax(self) -> Syntax {
        match self {
            McpForm::Claude | McpForm::Gemini | McpForm::Opencode => Syntax::Json,
            McpForm::Codex => Syntax::Toml,
            McpForm::Goose | McpForm::Continue => Syntax::Yaml,
        }
    }

    /// Where the server stands in the file.
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

    /// The server, as the agent wants it.
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
