//! `infold mcp --print-config`: prints the entry of the MCP server for the configuration of an agent.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use infold_provider::percent_encode;
use infold_setup::{McpForm, ServerEntry, empty};

use crate::error::{CliError, CliResult};
use crate::output::{Output, note};

/// The address of the MCP server of `infold serve` with the default settings.
pub const DEFAULT_ADDRESS: &str = "http://127.0.0.1:7333/infold/mcp";

/// An agent that can use MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum McpAgent {
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

/// Returns the entry of a server that the agent starts as a process: this program, with arguments.
pub fn command_entry(arguments: Vec<String>) -> ServerEntry {
    ServerEntry::Command(program(), arguments)
}

/// Returns the entry of a server at an address; a scope becomes a parameter of its query.
pub fn address_entry(address: &str, scope: Option<(&str, String)>) -> ServerEntry {
    ServerEntry::Address(match scope {
        Some((name, value)) => format!("{address}?{name}={}", percent_encode(&value)),
        None => address.to_owned(),
    })
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

/// Prints the entry for an agent, and on standard error the file that it belongs in.
pub fn print(agent: McpAgent, entry: &ServerEntry, out: &mut Output) -> CliResult {
    let (form, place) = match agent {
        McpAgent::Claude => (McpForm::Claude, claude_place(entry)),
        McpAgent::Codex => (
            McpForm::Codex,
            "add this to ~/.codex/config.toml".to_owned(),
        ),
        McpAgent::Gemini => (
            McpForm::Gemini,
            "merge this into ~/.gemini/settings.json, or .gemini/settings.json of the project"
                .to_owned(),
        ),
        McpAgent::Goose => (
            McpForm::Goose,
            "add this to ~/.config/goose/config.yaml, below its `extensions:` if it has one"
                .to_owned(),
        ),
        McpAgent::Opencode => (
            McpForm::Opencode,
            "merge this into opencode.json of the project, or ~/.config/opencode/opencode.json"
                .to_owned(),
        ),
    };
    let syntax = form.syntax();
    let written = infold_setup::set(syntax, empty(syntax), &form.path(), &form.value(entry));
    let (text, _) = written
        .map_err(CliError::usage)?
        .ok_or_else(|| CliError::usage("there is nothing to print"))?;
    out.raw(text.as_bytes())?;
    out.finish()?;
    note(out.is_json(), place);
    Ok(())
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
