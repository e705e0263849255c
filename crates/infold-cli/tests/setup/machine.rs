//! A machine with a home directory and agents that are scripts.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// An agent that sends one prompt to the address in Claude Code's settings.
pub const CLAUDE: &str = r#"#!/bin/bash
url=$(sed -n 's/.*"ANTHROPIC_BASE_URL": "http:\/\/\([^"]*\)".*/\1/p' "$HOME/.claude/settings.json")
body='{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"'"$2"'"}]}'
exec 3<>"/dev/tcp/${url%%:*}/${url##*:}" || exit 7
printf 'POST /v1/messages HTTP/1.1\r\nhost: %s\r\nx-api-key: %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%s' \
  "$url" "$ANTHROPIC_API_KEY" "${#body}" "$body" >&3
cat <&3
"#;

pub struct Machine {
    dir: TempDir,
    pub env: BTreeMap<String, String>,
}

impl Machine {
    pub fn new() -> Machine {
        let dir = tempfile::tempdir().expect("a directory");
        let mut machine = Machine {
            dir,
            env: BTreeMap::new(),
        };
        for name in ["home", "bin", "work"] {
            fs::create_dir(machine.path(name)).expect("a directory");
        }
        let path = format!("{}:/usr/bin:/bin", machine.path("bin").display());
        machine.env.insert("PATH".into(), path);
        let home = machine.path("home").display().to_string();
        machine.env.insert("HOME".into(), home);
        // The tests must not reach the systemd of the user who runs them.
        machine.program("bin/systemctl", "#!/bin/sh\nexit 1\n");
        machine
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("there").join(name)
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, text).expect("a file");
        path
    }

    pub fn program(&self, name: &str, text: &str) {
        let path = self.file(name, text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("ours");
    }

    /// Runs `infold setup`; returns the exit code and what was printed.
    pub fn setup(&self, words: &str) -> (i32, String) {
        let ran = self.command(words).output().expect("it runs");
        let text = [ran.stdout, ran.stderr].concat();
        let text = String::from_utf8(text).expect("UTF-8");
        (ran.status.code().unwrap_or(-1), text)
    }

    /// Returns the command `infold setup` with its words.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infold"));
        command.arg("setup").args(words.split_whitespace());
        command
            .env_clear()
            .envs(&self.env)
            .env("NO_COLOR", "1")
            .env("TMPDIR", std::env::temp_dir())
            .current_dir(self.path("work"));
        command
    }

    /// Runs `infold setup`, which must succeed; returns what was printed.
    pub fn done(&self, words: &str) -> String {
        let (code, said) = self.setup(words);
        assert_eq!(code, 0, "{words}: {said}");
        said
    }

    /// Returns the record of the setup.
    pub fn record(&self) -> Value {
        let text = fs::read_to_string(self.path("home/.local/state/infold/setup.json"));
        serde_json::from_str(&text.expect("a record")).expect("JSON")
    }

    pub fn home(&self) -> BTreeMap<PathBuf, String> {
        fn walk(dir: &Path, out: &mut BTreeMap<PathBuf, String>) {
            for entry in fs::read_dir(dir).expect("a directory").flatten() {
                let path = entry.path();
                let text = fs::read_to_string(&path).unwrap_or_default();
                if path.is_dir() {
                    walk(&path, out);
                }
                out.insert(path, text);
            }
        }
        let mut out = BTreeMap::new();
        walk(&self.path("home"), &mut out);
        out
    }
}

/// A port at which nothing listens.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The processes that serve at a port.
pub fn servers(port: u16) -> Vec<i32> {
    let listed = Command::new("ps")
        .args(["-A", "-o", "pid=,args="])
        .output()
        .expect("ps");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let wanted = format!("serve --port {port}");
    let lines = listed.lines().filter(|line| {
        // With the option that a server has before it goes on.
        line.ends_with(&wanted) || line.ends_with(&format!("{wanted} --detached"))
    });
    lines
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect()
}

/// Waits until something holds.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // A test that failed must leave no server behind.
        if self.path("home/.local/state/infold/setup.json").exists() {
            self.setup("--undo");
        }
    }
}
