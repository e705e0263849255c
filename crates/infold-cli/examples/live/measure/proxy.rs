//! The real `infold serve` as a process, with a contexts directory of its own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use infold_wire::quote;
use serde_json::Value;
use tempfile::TempDir;

use super::{Failure, Gain, Setting};

/// The proxy. It ends, and its directory goes, when this is dropped.
pub struct Proxy {
    address: SocketAddr,
    child: Child,
    root: TempDir,
    infold: PathBuf,
}

/// The folds that the proxy made in its tasks, by their events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Folds {
    /// Passes that folded something.
    pub passes: u64,
    /// Summaries that were written.
    pub summaries: u64,
    /// Ranges that were hidden behind a marker.
    pub windows: u64,
    /// Parts of messages that became stubs.
    pub masks: u64,
    /// Tasks that there are: one, unless it took a conversation for another one.
    pub tasks: u64,
}

impl Proxy {
    /// Starts it in front of an upstream.
    pub fn start(setting: &Setting<'_>, upstream: SocketAddr) -> Result<Proxy, Failure> {
        let (infold, window) = (setting.infold, setting.window);
        let root = tempfile::tempdir()?;
        // The upstream counts as Infold does. A proxy that had to learn that would do so by the
        // clock, and two runs would fold at different places.
        let model = quote(setting.model);
        let config = root.path().join("config.yaml");
        fs::write(
            &config,
            format!("models:\n  {model}:\n    tokenizer: o200k\n"),
        )?;
        let traces = fs::File::create(root.path().join("traces"))?;
        let mut child = Command::new(infold)
            .args(["--json", "serve", "--port", "0", "--trace", "json"])
            .args(["--upstream", &format!("http://{upstream}")])
            .env_clear()
            .env("INFOLD_CONTEXTS", root.path().join("contexts"))
            .env("INFOLD_CONFIG", config)
            .env("INFOLD_SUMMARIZER", "extractive")
            .env("INFOLD_WINDOW", window.to_string())
            .env("HOME", root.path())
            .env("TMPDIR", root.path())
            .current_dir(root.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(traces)
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", infold.display()))?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or("no pipe to the proxy")?;
        BufReader::new(stdout).read_line(&mut line)?;
        // From here on the process ends when this value is dropped.
        let mut proxy = Proxy {
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            child,
            root,
            infold: infold.to_owned(),
        };
        let ready: Value = serde_json::from_str(&line)
            .map_err(|_| format!("the proxy does not listen: {}", proxy.traces()))?;
        let port = ready["port"].as_u64().and_then(|port| port.try_into().ok());
        proxy
            .address
            .set_port(port.ok_or("the proxy names no port")?);
        Ok(proxy)
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the traces that it wrote.
    pub fn traces(&self) -> String {
        fs::read_to_string(self.root.path().join("traces")).unwrap_or_default()
    }

    /// Returns the figures of `infold gain` for its tasks.
    pub fn gain(&self) -> Result<Gain, Failure> {
        let root = self.root.path();
        let told = Command::new(&self.infold)
            .args(["--json", "gain"])
            .env_clear()
            .env("INFOLD_CONTEXTS", root.join("contexts"))
            .env("INFOLD_CONFIG", root.join("config.yaml"))
            .env("HOME", root)
            .output()?;
        let text = String::from_utf8(told.stdout)?;
        let total: Value = serde_json::from_str(text.lines().next().unwrap_or_default())
            .map_err(|_| format!("no gain: {}", String::from_utf8_lossy(&told.stderr)))?;
        let tokens = |side: &str, what: &str| total[side][what].as_u64().unwrap_or_default();
        Ok(Gain {
            sent: tokens("sent", "tokens"),
            cached: tokens("sent", "cached"),
            cost: total["sent"]["cost"].as_f64().unwrap_or_default(),
            unfolded: tokens("unfolded", "tokens"),
        })
    }

    /// The events of all its tasks, one a line, and how many tasks there are.
    pub fn events(&self) -> Result<(String, u64), Failure> {
        let (mut events, mut tasks) = (String::new(), 0);
        for task in fs::read_dir(self.root.path().join("contexts/running"))? {
            tasks += 1;
            // A task without events has no such file.
            let file = task?.path().join("events.jsonl");
            events += &fs::read_to_string(file).unwrap_or_default();
        }
        Ok((events, tasks))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It has no data to save, because its directory is removed too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Folds {
    /// Counts the folds in events.
    pub fn of(events: &str, tasks: u64) -> Result<Folds, Failure> {
        let mut folds = Folds {
            tasks,
            ..Folds::default()
        };
        let mut last_pass = None;
        for line in events.lines() {
            let event: Value = serde_json::from_str(line)?;
            if event["type"] != "fold" {
                continue;
            }
            // All events of a pass are adjacent.
            let pass = event["pass"].as_u64().or(event["id"].as_u64());
            folds.passes += u64::from(pass != last_pass);
            last_pass = pass;
            match event["kind"].as_str() {
                Some("summary") => folds.summaries += 1,
                Some("window") => folds.windows += 1,
                _ => folds.masks += 1,
            }
        }
        Ok(folds)
    }

    /// Adds the counts of another session.
    pub fn add(&mut self, other: Folds) {
        self.passes += other.passes;
        self.summaries += other.summaries;
        self.windows += other.windows;
        self.masks += other.masks;
        self.tasks += other.tasks;
    }
}
