//! Finds the newest session of an agent on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::ValueEnum;

use crate::error::{CliError, CliResult};

/// An agent whose sessions can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AgentName {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
}

/// The depth to which directories are searched for sessions.
const MAX_DIRECTORY_DEPTH: usize = 5;

impl AgentName {
    /// Returns the session that was written to last.
    pub fn newest_session(self) -> CliResult<PathBuf> {
        let root = self.root();
        let mut newest = None;
        if let Some(root) = &root {
            self.search(root, MAX_DIRECTORY_DEPTH, &mut newest);
        }
        newest.map(|(_, path)| path).ok_or_else(|| {
            let place = root.map_or("a home directory".to_owned(), |root| {
                root.display().to_string()
            });
            CliError::no(format!("no session found in {place}")).hint("name the file instead")
        })
    }

    /// Returns the directory of the agent's sessions: the one of its variable, or one in the home directory.
    fn root(self) -> Option<PathBuf> {
        let (variable, usual, inside) = match self {
            AgentName::Claude => ("CLAUDE_CONFIG_DIR", ".claude", "projects"),
            AgentName::Codex => ("CODEX_HOME", ".codex", "sessions"),
            AgentName::Gemini => ("GEMINI_CLI_HOME", ".gemini", "tmp"),
        };
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let own = set(variable).map(PathBuf::from);
        let own = match self {
            // The variable replaces the home directory.
            AgentName::Gemini => own.map(|home| home.join(usual)),
            AgentName::Claude | AgentName::Codex => own,
        };
        let home = || Some(PathBuf::from(set("HOME")?).join(usual));
        Some(own.or_else(home)?.join(inside))
    }

    fn search(self, dir: &Path, depth: usize, newest: &mut Option<(SystemTime, PathBuf)>) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            // Links are not followed: their targets are found in their own directories.
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && depth > 1 {
                self.search(&path, depth - 1, newest);
            } else if kind.is_file() && self.is_session(&path) {
                let written = entry.metadata().and_then(|meta| meta.modified());
                let found = (written.unwrap_or(SystemTime::UNIX_EPOCH), path);
                if newest.as_ref().is_none_or(|newest| found > *newest) {
                    *newest = Some(found);
                }
            }
        }
    }

    fn is_session(self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.unwrap_or_default();
        let lines = name.ends_with(".jsonl");
        match self {
            // Logs of sub-agents are not sessions.
            AgentName::Claude => lines && !name.starts_with("agent-"),
            AgentName::Codex => lines && name.starts_with("rollout-"),
            AgentName::Gemini => name.starts_with("session-") && (lines || name.ends_with(".json")),
        }
    }
}
