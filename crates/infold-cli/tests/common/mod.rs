//! A separate directory for each test, and the command run in it like by a person.

#![allow(dead_code, reason = "each test file uses its share")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The working directory of a test: `contexts` is in it, and the files it pushes.
///
/// Tasks are called `T1`, `T2` … in the order in which they were first seen, in
/// commands and in what they print; `t1` is the start of an id.
pub struct Home {
    dir: TempDir,
    tasks: RefCell<Vec<String>>,
    columns: usize,
    configured: Cell<bool>,
}

/// The output and the exit code of one command.
pub struct Ran {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub code: i32,
}

impl Home {
    pub fn new() -> Home {
        Home {
            dir: tempfile::tempdir().expect("a temporary directory"),
            tasks: RefCell::default(),
            columns: 100,
            configured: Cell::default(),
        }
    }

    /// A home with another width of the terminal.
    pub fn wide(columns: usize) -> Home {
        Home {
            columns,
            ..Home::new()
        }
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("it is there")
    }

    pub fn contexts(&self) -> PathBuf {
        self.path().join("contexts")
    }

    /// Puts a file beside the contexts.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Home {
        fs::write(self.path().join(name), bytes).expect("a file");
        self
    }

    /// Puts a configuration there, and names it to every command from now on.
    pub fn config(&self, text: impl AsRef<[u8]>) -> &Home {
        self.configured.set(true);
        self.file("config.yaml", text)
    }

    /// The id of `T1` and so on.
    pub fn task(&self, name: &str) -> String {
        let number: usize = name[1..].parse().expect("T and a number");
        self.tasks.borrow()[number - 1].clone()
    }

    /// The directory of a running task.
    pub fn running(&self, name: &str) -> PathBuf {
        self.contexts().join("running").join(self.task(name))
    }

    /// Runs commands, one on each line, and returns their output, as a terminal would show it.
    ///
    /// Lines on stderr start with `! `; an exit code other than 0 is in brackets.
    pub fn tell(&self, story: &str) -> String {
        let lines = story.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| self.shown(line, b"")).collect()
    }

    /// Like [`Home::tell`], for one command with standard input.
    pub fn fed(&self, line: &str, input: impl AsRef<[u8]>) -> String {
        self.shown(line, input.as_ref())
    }

    fn shown(&self, line: &str, input: &[u8]) -> String {
        let ran = self.run(line, input);
        format!("$ infold {line}\n{}", self.transcript(&ran))
    }

    /// Runs one command.
    pub fn run(&self, line: &str, input: &[u8]) -> Ran {
        let mut child = self
            .command(line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // A command that refuses its input does not read it to the end.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
        let ran = Ran::from(child.wait_with_output().expect("the command ends"));
        self.meet(&String::from_utf8_lossy(&ran.stdout));
        ran
    }

    /// Returns one command, to be started by the test itself.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_infold"));
        command
            .args(words(line).iter().map(|word| self.named(word)))
            .current_dir(self.path())
            .env_clear()
            .env("NO_COLOR", "1")
            .env("COLUMNS", self.columns.to_string())
            .env("TMPDIR", std::env::temp_dir());
        if self.configured.get() {
            command.env("INFOLD_CONFIG", "config.yaml");
        }
        command
    }

    /// Returns the output of a command, with all that differs from run to run replaced.
    pub fn transcript(&self, ran: &Ran) -> String {
        let mut text = String::from_utf8_lossy(&ran.stdout).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        for line in String::from_utf8_lossy(&ran.stderr).lines() {
            text.push_str(format!("! {line}").trim_end());
            text.push('\n');
        }
        if ran.code != 0 {
            text.push_str(&format!("[{}]\n", ran.code));
        }
        self.placeholders(&text)
    }

    /// The objects that a command printed with `--json`, one a line.
    pub fn objects(&self, line: &str) -> Vec<serde_json::Value> {
        let ran = self.run(&format!("{line} --json"), b"");
        let text = String::from_utf8(ran.stdout).expect("JSON is UTF-8");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("each line is JSON"))
            .collect()
    }

    /// Returns the bytes of everything in the contexts directory, except the files that a reader may change.
    pub fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        collect(&self.contexts(), &mut all);
        all
    }

    fn named(&self, word: &str) -> String {
        let tasks = self.tasks.borrow();
        let number = word.strip_prefix(['T', 't']);
        let number = number.and_then(|number| number.parse::<usize>().ok());
        match number.and_then(|number| tasks.get(number.checked_sub(1)?)) {
            Some(task) if word.starts_with('T') => task.clone(),
            Some(task) => task[..8].to_owned(),
            None => word.to_owned(),
        }
    }

    /// Remembers the ids in a text.
    pub fn meet(&self, text: &str) {
        let mut tasks = self.tasks.borrow_mut();
        for (at, _) in text.char_indices() {
            if let Some(id) = shaped(&text[at..], UUID)
                && !tasks.iter().any(|task| task == id)
            {
                tasks.push(id.to_owned());
            }
        }
    }

    fn placeholders(&self, text: &str) -> String {
        let mut text = text.replace(self.path().to_str().expect("a path in UTF-8"), "DIR");
        let tasks = self.tasks.borrow();
        for (at, id) in tasks.iter().enumerate() {
            text = text.replace(id, &format!("T{}", at + 1));
        }
        for (at, id) in tasks.iter().enumerate() {
            // As wide as the id that it replaces, so that columns stay aligned.
            text = text.replace(&id[..8], &format!("t{:·<7}", at + 1));
        }
        for (shape, name) in [
            ("dddd-dd-ddTdd:dd:dd.dddZ", "YYYY-MM-DDThh:mm:ss.mmmZ"),
            ("dddd-dd-dd dd:dd:dd", "YYYY-MM-DD hh:mm:ss"),
            ("dddd-dd-dd dd:dd", "YYYY-MM-DD hh:mm"),
        ] {
            text = replaced(&text, shape, name);
        }
        let host = hostname();
        text = text.replace(&format!(" on {host}"), " on HOST");
        text = text.replace(&format!("\"hostname\":\"{host}\""), "\"hostname\":\"HOST\"");
        for before in ["process ", "\"process_id\":", "\"bytes\":"] {
            text = number_after(&text, before);
        }
        sizes(&text)
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            stdout: output.stdout,
            stderr: output.stderr,
            code: output.status.code().unwrap_or(-1),
        }
    }
}

/// A chat message of OpenAI's shape.
pub fn said(role: &str, text: &str) -> String {
    format!("{}\n", serde_json::json!({"role": role, "content": text}))
}

/// Messages of a user and a model in turn, the first one the user's.
pub fn talk(texts: &[&str]) -> String {
    let roles = ["user", "assistant"].iter().cycle();
    roles
        .zip(texts)
        .map(|(role, text)| said(role, text))
        .collect()
}

const UUID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

/// The start of `text`, if it has this shape: `d` is a digit, `x` a hexadecimal one.
fn shaped<'a>(text: &'a str, shape: &str) -> Option<&'a str> {
    let start = text.get(..shape.len())?;
    let fits = start
        .bytes()
        .zip(shape.bytes())
        .all(|(c, shape)| match shape {
            b'd' => c.is_ascii_digit(),
            b'x' => c.is_ascii_hexdigit(),
            other => c == other,
        });
    fits.then_some(start)
}

fn replaced(text: &str, shape: &str, name: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        match shaped(rest, shape) {
            Some(found) => {
                out.push_str(name);
                rest = &rest[found.len()..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

fn number_after(text: &str, before: &str) -> String {
    let mut parts = text.split(before);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = if rest.len() < part.len() { "N" } else { "" };
        out.push_str(&format!("{before}{number}{rest}"));
    }
    out
}

/// Sizes on disk depend on the length of the host's name.
fn sizes(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("on disk    ") {
        Some(rest) => match rest.split_once(" in ") {
            Some((_, dir)) => format!("on disk    SIZE in {dir}\n"),
            None => "on disk    SIZE\n".to_owned(),
        },
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn hostname() -> String {
    let name = Command::new("uname").arg("-n").output().expect("uname");
    String::from_utf8_lossy(&name.stdout).trim().to_owned()
}

/// Splits a line at spaces, except between single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, part) in line.split('\'').enumerate() {
        match at % 2 {
            1 => words.push(part.to_owned()),
            _ => words.extend(part.split_whitespace().map(str::to_owned)),
        }
    }
    words
}

fn collect(dir: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    let Ok(entries) = fs::read_dir(dir) else {
        if let Ok(bytes) = fs::read(dir) {
            all.insert(dir.to_owned(), bytes);
        }
        return;
    };
    all.insert(dir.to_owned(), Vec::new());
    for entry in entries.map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "lock" && !name.ends_with("-wal") && !name.ends_with("-shm") {
            collect(&entry.path(), all);
        }
    }
}
