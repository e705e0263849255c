//! What to add to the configuration of an agent, in the form of each.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use infold_provider::percent_encode;
use serde_json::{Value, json};

use crate::error::CliResult;
use crate::output::{Output, note};

/// The address of a server with the default settings.
pub const DEFAULT_ADDRESS: &str = "http://127.0.0.1:7333/infold/mcp";

/// An agent that takes servers of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Agent {
    /// Claude Code: .mcp.json
    Claude,
    /// Codex: ~/.codex/config.toml
    Codex,
    /// Gemini CLI: ~/.gemini/settings.json
    Gemini,
    /// goose: ~/.config/goose/config.yaml
    Goose,
    /// opencode: opencode.json
    Opencode,
}

/// How an agent reaches the server.
pub enum ServerEntry {
    /// It starts a command: the program and its arguments.
    Command(String, Vec<String>),
    /// It sends requests to an address.
    Address(String),
}

impl ServerEntry {
    /// Starts this program with arguments.
    pub fn command(arguments: Vec<String>) -> ServerEntry {
        ServerEntry::Command(program(), arguments)
    }

    /// Sends requests to an address, perhaps with a scope.
    pub fn address(address: &str, scope: Option<(&str, String)>) -> ServerEntry {
        ServerEntry::Address(match scope {
            Some((name, value)) => format!("{address}?{name}={}", percent_encode(&value)),
            None => address.to_owned(),
        })
    }
}

/// Returns `infold` if that starts this program, else its path.
fn program() -> String {
    let name = "infold";
    let Ok(own) = std::env::current_exe() else {
        return name.to_owned();
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name));
    let found = found.into_iter().find(|file| file.is_file());
    let real = |path: &Path| -> Option<PathBuf> { std::fs::canonicalize(path).ok() };
    match found {
        Some(found) if real(&found) == real(&own) => name.to_owned(),
        _ => own.display().to_string(),
    }
}

/// Prints the entry for an agent; where it belongs is said on standard error.
pub fn print(agent: Agent, entry: &ServerEntry, out: &mut Output) -> CliResult {
    let (text, place) = match agent {
        Agent::Claude => (pretty(&claude(entry)), claude_place(entry)),
        Agent::Codex => (codex(entry), "add this to ~/.codex/config.toml".to_owned()),
        Agent::Gemini => (
            pretty(&gemini(entry)),
            "merge this into ~/.gemini/settings.json, or .gemini/settings.json of the project"
                .to_owned(),
        ),
        Agent::Goose => (
            goose(entry),
            "add this to ~/.config/goose/config.yaml, below its `extensions:` if it has one"
                .to_owned(),
        ),
        Agent::Opencode => (
            pretty(&opencode(entry)),
            "merge this into opencode.json of the project, or ~/.config/opencode/opencode.json"
                .to_owned(),
        ),
    };
    out.raw(text.as_bytes())?;
    out.finish()?;
    note(out.is_json(), place);
    Ok(())
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn claude(entry: &ServerEntry) -> Value {
    let server = match entry {
        ServerEntry::Command(program, words) => json!({"command": program, "args": words}),
        ServerEntry::Address(address) => json!({"type": "http", "url": address}),
    };
    json!({"mcpServers": {"infold": server}})
}

fn claude_place(entry: &ServerEntry) -> String {
    let add = match entry {
        ServerEntry::Command(program, words) => {
            let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
            format!("infold -- {} {}", shell_word(program), words.join(" "))
        }
        ServerEntry::Address(address) => format!("--transport http infold {}", shell_word(address)),
    };
    format!("merge this into .mcp.json of the project, or run: claude mcp add {add}")
}

/// Quotes a word for a shell, if that is needed.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// JSON texts and lists of them are TOML too.
fn codex(entry: &ServerEntry) -> String {
    match entry {
        ServerEntry::Command(program, words) => format!(
            "[mcp_servers.infold]\ncommand = {}\nargs = {}\n",
            json!(program),
            json!(words)
        ),
        ServerEntry::Address(address) => {
            format!("[mcp_servers.infold]\nurl = {}\n", json!(address))
        }
    }
}

fn gemini(entry: &ServerEntry) -> Value {
    let server = match entry {
        ServerEntry::Command(program, words) => json!({"command": program, "args": words}),
        ServerEntry::Address(address) => json!({"httpUrl": address}),
    };
    json!({"mcpServers": {"infold": server}})
}

/// JSON texts and lists of them are YAML too.
fn goose(entry: &ServerEntry) -> String {
    let server = match entry {
        ServerEntry::Command(program, words) => format!(
            "    type: stdio\n    cmd: {}\n    args: {}\n",
            json!(program),
            json!(words)
        ),
        ServerEntry::Address(address) => {
            format!("    type: streamable_http\n    uri: {}\n", json!(address))
        }
    };
    format!(
        "extensions:\n  infold:\n    enabled: true\n    name: infold\n    \
         description: Searches and reads the whole conversation, hidden messages too\n{server}    timeout: 60\n"
    )
}

fn opencode(entry: &ServerEntry) -> Value {
    let server = match entry {
        ServerEntry::Command(program, words) => {
            let command: Vec<&String> = std::iter::once(program).chain(words).collect();
            json!({"type": "local", "command": command, "enabled": true})
        }
        ServerEntry::Address(address) => {
            json!({"type": "remote", "url": address, "enabled": true})
        }
    };
    json!({"$schema": "https://opencode.ai/config.json", "mcp": {"infold": server}})
}
