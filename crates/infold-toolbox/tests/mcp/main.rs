//! MCP servers: what works, and what happens when they do not.

#![allow(clippy::unwrap_used)]

mod faults;
mod lifetime;
mod names;

use std::time::{Duration, Instant};

use infold_provider::Secret;
use infold_toolbox::{
    CallResult, CallStatus, McpServer, McpTransport, ToolLimits, Toolbox, ToolboxSettings,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Servers, and a file with the process of each start.
struct Fixture {
    directory: TempDir,
    toolbox: Toolbox,
}

/// Returns a server with faults.
fn scripted(name: &str, faults: &[&str]) -> McpServer {
    let program = env!("CARGO_BIN_EXE_scripted-mcp-server").to_owned();
    let faults = faults.iter().map(|fault| (*fault).to_owned());
    McpServer {
        name: name.to_owned(),
        transport: McpTransport::Command {
            command: std::iter::once(program).chain(faults).collect(),
            environment: vec![(
                "OWN_TOKEN".to_owned(),
                Secret::new("for the server".to_owned()),
            )],
        },
        timeout: Duration::from_secs(60),
    }
}

impl Fixture {
    fn new(faults: &[&str]) -> Fixture {
        Fixture::with(vec![scripted("scripted", faults)], ToolLimits::default())
    }

    fn with(mut servers: Vec<McpServer>, limits: ToolLimits) -> Fixture {
        let directory = TempDir::new().unwrap();
        for server in &mut servers {
            let path = directory.path().join(format!("{}.starts", server.name));
            let path = path.to_str().unwrap().to_owned();
            if let McpTransport::Command { environment, .. } = &mut server.transport {
                environment.push(("COUNT_FILE".to_owned(), Secret::new(path)));
            }
        }
        let toolbox = Toolbox::new(ToolboxSettings {
            servers,
            limits,
            environment: vec![
                ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
                ("OPENAI_API_KEY".into(), "sk-canary".into()),
                ("LANG".into(), "C".into()),
            ],
            ..ToolboxSettings::default()
        });
        Fixture {
            directory,
            toolbox: toolbox.unwrap(),
        }
    }

    /// Returns the processes that were started for a server.
    fn starts(&self, server: &str) -> Vec<String> {
        let path = self.directory.path().join(format!("{server}.starts"));
        let starts = std::fs::read_to_string(path).unwrap_or_default();
        starts.lines().map(str::to_owned).collect()
    }

    async fn call(&self, name: &str, text: &str) -> CallResult {
        let arguments: Value = json!({"text": text});
        self.toolbox.call(name, &arguments.to_string()).await
    }

    /// Calls a tool that must work.
    async fn works(&self, name: &str, text: &str) -> String {
        let result = self.call(name, text).await;
        assert_eq!(result.status, CallStatus::Success, "{}", result.text);
        result.text
    }

    /// Calls a tool that must fail.
    async fn fails(&self, name: &str, text: &str) -> String {
        let result = self.call(name, text).await;
        assert_eq!(result.status, CallStatus::Error, "{}", result.text);
        assert!(result.error.is_some_and(|error| !error.contains('\n')));
        result.text
    }

    /// Returns why tools are missing.
    async fn problem(&self) -> String {
        let list = self.toolbox.tools().await;
        let problems: Vec<_> = list
            .problems
            .iter()
            .map(|problem| &*problem.reason)
            .collect();
        problems.join("\n")
    }
}

/// Says whether a process runs; one that has ended and is not waited for yet does not.
fn is_running(pid: &str) -> bool {
    let state = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", pid])
        .output()
        .unwrap();
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// Waits until a process has ended.
fn assert_ends(pid: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while is_running(pid) {
        assert!(Instant::now() < until, "process {pid} runs on");
        std::thread::sleep(Duration::from_millis(10));
    }
}
