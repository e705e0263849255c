//! The service's files as the agent finds and leaves them.

use std::collections::{BTreeMap, BTreeSet};

const ROOT: &str = "/code/quayside";

macro_rules! seeds {
    ($($path:literal)*) => {
        &[$(($path, include_str!(concat!("../quayside/", $path)))),*]
    };
}

const SEEDS: &[(&str, &str)] = seeds! {
    "README.md"
    "deploy/quayside@.service"
    "migrations/0001_init.sql"
    "migrations/0002_holds.sql"
    "quayside/app.py"
    "quayside/berths.py"
    "quayside/board.css"
    "quayside/bookings.py"
    "quayside/config.py"
    "quayside/db.py"
    "quayside/legacy_export.py"
    "quayside/mail.py"
    "quayside/models.py"
    "quayside/pricing.py"
    "quayside/routes.py"
    "quayside/tides.py"
    "tests/harbour.py"
    "tests/test_berths.py"
    "tests/test_bookings.py"
    "tests/test_pricing.py"
    "tests/test_routes.py"
};

/// The files, and their contents at the last commit.
pub struct Disk {
    files: BTreeMap<String, String>,
    committed: BTreeMap<String, String>,
    commits: Vec<String>,
}

/// Returns a path of the service as the agent's tools name it.
pub fn absolute(path: &str) -> String {
    if path.is_empty() {
        return ROOT.to_owned();
    }
    format!("{ROOT}/{path}")
}

impl Disk {
    /// The service before the session.
    pub fn seeded() -> Disk {
        let files: BTreeMap<_, _> = SEEDS
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        let committed = files.clone();
        let commits = Vec::new();
        Disk {
            files,
            committed,
            commits,
        }
    }

    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    pub fn text(&self, path: &str) -> &str {
        let text = self.files.get(path);
        text.unwrap_or_else(|| panic!("the script reads `{path}`, which is not there"))
    }

    /// Writes a file and returns its previous contents.
    pub fn write(&mut self, path: &str, text: &str) -> Option<String> {
        self.files.insert(path.to_owned(), text.to_owned())
    }

    pub fn remove(&mut self, path: &str) {
        let gone = self.files.remove(path);
        assert!(
            gone.is_some(),
            "the script removes `{path}`, which is not there"
        );
    }

    /// Replaces a text that must occur once.
    pub fn edit(&mut self, path: &str, old: &str, new: &str) {
        let text = self.text(path);
        let times = text.matches(old).count();
        assert!(times == 1, "in `{path}` this occurs {times} times:\n{old}");
        let text = text.replacen(old, new, 1);
        self.write(path, &text);
    }

    /// Replaces every occurrence.
    pub fn rename(&mut self, path: &str, old: &str, new: &str) {
        let text = self.text(path).replace(old, new);
        self.write(path, &text);
    }

    /// A file, or some lines of it, with line numbers.
    pub fn numbered(&self, path: &str, lines: Option<(usize, usize)>) -> String {
        let (from, count) = lines.unwrap_or((1, usize::MAX));
        let lines = self.text(path).lines().enumerate();
        let lines = lines.skip(from - 1).take(count);
        let lines: Vec<String> = lines
            .map(|(n, line)| format!("{:>6}\t{line}", n + 1))
            .collect();
        lines.join("\n")
    }

    /// The lines with one of the texts between the bars of `pattern`.
    pub fn grep(&self, pattern: &str, under: &str) -> String {
        let mut found = Vec::new();
        for (path, text) in self
            .files
            .iter()
            .filter(|(path, _)| path.starts_with(under))
        {
            for (n, line) in text.lines().enumerate() {
                if pattern.split('|').any(|one| line.contains(one)) {
                    found.push(format!("{}:{}:{line}", absolute(path), n + 1));
                }
            }
        }
        if found.is_empty() {
            return "No matches found".to_owned();
        }
        found.join("\n")
    }

    /// Returns the differences from the last commit: a letter and a path each.
    pub fn changes(&self) -> Vec<(char, &str)> {
        let paths: BTreeSet<&String> = self.files.keys().chain(self.committed.keys()).collect();
        let change = |path: &'_ String| match (self.committed.get(path), self.files.get(path)) {
            (None, Some(_)) => Some('A'),
            (Some(_), None) => Some('D'),
            (old, new) => (old != new).then_some('M'),
        };
        let changes = paths
            .into_iter()
            .filter_map(|path| Some((change(path)?, path.as_str())));
        changes.collect()
    }

    /// Reverts the changes of a file since the last commit.
    pub fn restore(&mut self, path: &str) {
        let text = self.committed.get(path).cloned();
        let text = text.unwrap_or_else(|| panic!("`{path}` was never committed"));
        self.write(path, &text);
    }

    /// The commits of this session, the newest first.
    pub fn log(&self) -> Vec<String> {
        self.commits.iter().rev().cloned().collect()
    }

    pub fn commit(&mut self, name: String) {
        self.commits.push(name);
        self.committed = self.files.clone();
    }
}
