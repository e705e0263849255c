//! The workspace tools, and their confinement to the workspace.

#![allow(clippy::unwrap_used)]

mod files;
mod odd_files;
mod search;
mod confinement;
mod commands;

use std::path::Path;

use infold_toolbox::{CallResult, CallStatus, CommandRule, ToolLimits, Toolbox, ToolboxSettings};
use serde_json::Value;
use tempfile::TempDir;

/// A workspace in a directory of its own, beside which nothing may change.
struct Fixture {
    directory: TempDir,
    toolbox: Toolbox,
    runtime: tokio::runtime::Runtime,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture::with(CommandRule::Off, ToolLimits::default())
    }

    fn with(commands: CommandRule, limits: ToolLimits) -> Fixture {
        let directory = TempDir::new().unwrap();
        std::fs::create_dir(directory.path().join("workspace")).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let toolbox = Toolbox::new(ToolboxSettings {
            workspace: Some(directory.path().join("workspace")),
            commands,
            limits,
            environment: vec![
                ("PATH".into(), path),
                ("OPENAI_API_KEY".into(), "sk-canary".into()),
                ("LANG".into(), "C".into()),
            ],
            ..ToolboxSettings::default()
        });
        Fixture {
            directory,
            toolbox: toolbox.unwrap(),
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .unwrap(),
        }
    }

    fn root(&self) -> std::path::PathBuf {
        self.directory.path().join("workspace")
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn get(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    fn call(&self, name: &str, arguments: Value) -> CallResult {
        let arguments = arguments.to_string();
        self.runtime.block_on(self.toolbox.call(name, &arguments))
    }

    /// Calls a tool that must work.
    fn works(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments);
        assert_eq!(result.status, CallStatus::Success, "{}", result.text);
        assert_eq!(result.error, None);
        result.text
    }

    /// Calls a tool that must fail.
    fn fails(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments);
        assert_eq!(result.status, CallStatus::Error, "{}", result.text);
        assert!(result.error.is_some());
        result.text
    }
}

/// Returns every file below a directory with what it holds, and every link with its target.
fn snapshot(directory: &Path) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(path) = pending.pop() {
        let kind = std::fs::symlink_metadata(&path).unwrap();
        let content = if kind.is_symlink() {
            format!("-> {}", std::fs::read_link(&path).unwrap().display())
        } else if kind.is_dir() {
            for entry in std::fs::read_dir(&path).unwrap() {
                pending.push(entry.unwrap().path());
            }
            "directory".to_owned()
        } else {
            String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
        };
        entries.push((path.display().to_string(), content));
    }
    entries.sort();
    entries
}
