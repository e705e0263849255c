//! Where agents on this machine keep their sessions, and which of them is the newest.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::ValueEnum;

use crate::failure::{Failure, Kind};

/// An agent whose sessions are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Agent {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Gemini CLI
    Gemini,
}

/// How many directories deep sessions lie at most.
const MAX_DEPTH: usize = 5;

impl Agent {
    /// Finds the session that was written to last.
    pub fn newest_session(self) -> Result<PathBuf, Failure> {
        let root = self.root();
        let mut newest = None;
        if let Some(root) = &root {
            self.look(root, MAX_DEPTH, &mut newest);
        }
        newest.map(|(_, path)| path).ok_or_else(|| {
            let place = root.map_or("a home directory".to_owned(), |root| {
                root.display().to_string()
            });
            Failure::new(Kind::No, format!("there is no session in {place}"))
                .hint("name the file instead")
        })
    }

    /// The directory of its sessions, where its own variable says or below the home directory.
    fn root(self) -> Option<PathBuf> {
        let (variable, usual, inside) = match self {
            Agent::Claude => ("CLAUDE_CONFIG_DIR", ".claude", "projects"),
            Agent::Codex => ("CODEX_HOME", ".codex", "sessions"),
            Agent::Gemini => ("GEMINI_CLI_HOME", ".gemini", "tmp"),
        };
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let own = set(variable).map(PathBuf::from);
        let own = match self {
            // The variable names what stands for the home directory.
            Agent::Gemini => own.map(|home| home.join(usual)),
            Agent::Claude | Agent::Codex => own,
        };
        let home = || Some(PathBuf::from(set("HOME")?).join(usual));
        Some(own.or_else(home)?.join(inside))
    }

    fn look(self, dir: &Path, depth: usize, newest: &mut Option<(SystemTime, PathBuf)>) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            // Links are not followed: what they lead to is found where it is.
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && depth > 1 {
                self.look(&path, depth - 1, newest);
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
            // Logs of its sub-agents are no sessions of their own.
            Agent::Claude => lines && !name.starts_with("agent-"),
            Agent::Codex => lines && name.starts_with("rollout-"),
            Agent::Gemini => name.starts_with("session-") && (lines || name.ends_with(".json")),
        }
    }
}
