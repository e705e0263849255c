//! Random edits of a workspace, as people and agents make them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::tree::{Node, path};
use crate::world::{Random, World, git_program};

const NAMES: &[&[u8]] = &[
    b"a",
    b"b",
    b"A",
    b"B",
    b"a.log",
    b"keep.log",
    b"build",
    b"x.tmp",
    b"new\nline",
    b"q\"uote",
    b"back\\slash",
    b"-dash",
    b"sp ace ",
    b"n\xff\xfe",
    b"\xc3\xbc",
    b".GIT",
    b".gitmodules",
    b"#a",
    b"!a",
    b"dir",
    b"a\x01b",
];

const PATTERNS: &[&str] = &[
    "*.log",
    "!keep.log",
    "build/",
    "/a",
    "dir/*",
    "**/b",
    "*",
    "!/b",
    "x.tmp",
    "A",
    "/dir/**",
    "[a-b]",
    "\\#a",
    "\\!a",
    "*/a",
    "a/",
    "?",
];

const MODES: &[u32] = &[0o644, 0o755, 0o600, 0o444, 0o640, 0o700, 0o555];

/// Files are left out from this size on.
pub const LIMIT: u64 = 200;

/// How the edits of a sequence are made.
pub struct Edits<'a> {
    pub world: &'a World,
    pub random: Random,
    /// Whether there are ignore rules and repositories.
    pub with_rules: bool,
}

impl Edits<'_> {
    /// Makes an edit; one that turns out to be impossible is none.
    pub fn edit(&mut self) {
        let kinds = if self.with_rules { 22 } else { 15 };
        match self.random.below(kinds) {
            0..=4 => self.write(),
            5 => self.remove(),
            6 => {
                let at = self.new_path();
                let _ = fs::create_dir_all(at);
            }
            7 => self.link(),
            8 => self.chmod(),
            9 => self.rename(),
            10 => self.replace_by_directory(),
            11 => {
                let at = self.new_path();
                let _ = Command::new("mkfifo").arg("--").arg(at).output();
            }
            12 => self.change_in_secret(),
            13 => self.remove(),
            14 => {
                // Over the limit.
                let at = self.new_path();
                let contents = vec![b'x'; LIMIT as usize + self.random.below(9)];
                write_file(&at, &contents);
            }
            15 | 16 => self.write_ignore_file(),
            17 => {
                let at = self.directory().join(".gitignore");
                let _ = fs::remove_file(at);
            }
            18 => {
                let rules = self.rules();
                fs::write(self.world.home.join(".config/git/ignore"), rules).unwrap();
            }
            19 => {
                let exclude = self.world.workspace.join(".git/info/exclude");
                let rules = self.rules();
                let _ = fs::write(exclude, rules);
            }
            20 => self.init_repository(),
            _ => self.track(),
        }
    }

    /// Returns a directory of the workspace, of no repository's own.
    fn directory(&mut self) -> PathBuf {
        let tree = self.world.tree();
        let mut directories = vec![PathBuf::new()];
        directories.extend(
            tree.iter()
                .filter(|(path, node)| node.is_directory() && !is_in_repository(path))
                .map(|(path, _)| path.clone()),
        );
        let at = self.random.one_of(&directories);
        self.world.workspace.join(at)
    }

    fn existing(&mut self) -> Option<PathBuf> {
        let tree = self.world.tree();
        let paths: Vec<_> = tree.keys().filter(|path| !is_in_repository(path)).collect();
        if paths.is_empty() {
            return None;
        }
        Some(self.world.workspace.join(self.random.one_of(&paths)))
    }

    fn new_path(&mut self) -> PathBuf {
        let directory = self.directory();
        // Not too deep.
        let name = path(NAMES[self.random.below(NAMES.len())]);
        if directory.components().count() > self.world.workspace.components().count() + 3 {
            return self.world.workspace.join(name);
        }
        directory.join(name)
    }

    fn write(&mut self) {
        let at = match self.random.below(3) {
            0 => self
                .existing()
                .unwrap_or_else(|| self.world.workspace.join("a")),
            _ => self.new_path(),
        };
        let contents = vec![b'a' + self.random.below(26) as u8; self.random.below(150)];
        write_file(&at, &contents);
    }

    fn remove(&mut self) {
        let Some(at) = self.existing() else {
            return;
        };
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => {
                let _ = fs::remove_dir_all(at);
            }
            _ => {
                let _ = fs::remove_file(at);
            }
        }
    }

    fn link(&mut self) {
        let at = self.new_path();
        let outside = self.world.root.path().join("outside");
        fs::write(&outside, "outside").unwrap();
        let target = match self.random.below(5) {
            0 => PathBuf::from("a"),
            1 => PathBuf::from("dir"),
            2 => outside,
            3 => PathBuf::from("../nowhere\n"),
            _ => self.world.root.path().join("home"),
        };
        let _ = symlink(target, at);
    }

    fn chmod(&mut self) {
        let Some(at) = self.existing() else {
            return;
        };
        let mode = *self.random.one_of(MODES);
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => {
                let mode = if mode & 0o100 == 0 { 0o750 } else { mode };
                let _ = fs::set_permissions(&at, fs::Permissions::from_mode(mode));
            }
            Ok(meta) if meta.is_file() => {
                let _ = fs::set_permissions(&at, fs::Permissions::from_mode(mode));
            }
            _ => {}
        }
    }

    fn rename(&mut self) {
        let Some(from) = self.existing() else {
            return;
        };
        let to = match self.random.below(2) {
            // Only the case of its name.
            0 => {
                let name = from.file_name().unwrap().to_string_lossy().into_owned();
                let flipped: String = name
                    .chars()
                    .map(|letter| {
                        if letter.is_ascii_lowercase() {
                            letter.to_ascii_uppercase()
                        } else {
                            letter.to_ascii_lowercase()
                        }
                    })
                    .collect();
                if flipped == ".git" {
                    return;
                }
                from.with_file_name(flipped)
            }
            _ => self.new_path(),
        };
        let _ = fs::rename(from, to);
    }

    /// A file becomes a directory with something in it, or the other way round.
    fn replace_by_directory(&mut self) {
        let Some(at) = self.existing() else {
            return;
        };
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => {
                let _ = fs::remove_dir_all(&at);
                let _ = fs::write(&at, "a directory once");
            }
            _ => {
                let _ = fs::remove_file(&at);
                let name = path(NAMES[self.random.below(NAMES.len())]);
                let _ = fs::create_dir(&at);
                let _ = fs::write(at.join(name), "in a directory");
            }
        }
    }

    /// Same size, same time of change.
    fn change_in_secret(&mut self) {
        let Some(at) = self.existing() else {
            return;
        };
        let tree = self.world.tree();
        let below = at.strip_prefix(&self.world.workspace).unwrap();
        let Some(Node::File { contents, .. }) = tree.get(below) else {
            return;
        };
        let modified = fs::metadata(&at).unwrap().modified().unwrap();
        let changed: Vec<_> = contents.iter().map(|byte| byte ^ 1).collect();
        if fs::write(&at, changed).is_ok() {
            let file = fs::File::options().write(true).open(&at).unwrap();
            file.set_modified(modified.min(SystemTime::now() - Duration::from_secs(9)))
                .unwrap();
        }
    }

    fn rules(&mut self) -> String {
        let count = self.random.below(4);
        let mut text = String::new();
        for _ in 0..count {
            text.push_str(PATTERNS[self.random.below(PATTERNS.len())]);
            text.push('\n');
        }
        text
    }

    fn write_ignore_file(&mut self) {
        let at = self.directory().join(".gitignore");
        let rules = self.rules();
        write_file(&at, rules.as_bytes());
    }

    fn init_repository(&mut self) {
        let at = match self.random.below(2) {
            0 => self.world.workspace.clone(),
            _ => self.directory(),
        };
        self.git(&at, &["init", "-q", "."]);
    }

    /// Adds files to the index of the workspace's repository, ignored ones too.
    fn track(&mut self) {
        let workspace = self.world.workspace.clone();
        if !workspace.join(".git").exists() {
            return;
        }
        let Some(at) = self.existing() else {
            return;
        };
        let at = at.to_string_lossy().into_owned();
        self.git(&workspace, &["--literal-pathspecs", "add", "-f", "--", &at]);
    }

    fn git(&self, at: &Path, arguments: &[&str]) {
        let _ = Command::new(git_program())
            .args(arguments)
            .env("HOME", &self.world.home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(at)
            .output();
    }
}

/// Writes a file, unless something else is there: a FIFO would wait for a reader.
fn write_file(at: &Path, contents: &[u8]) {
    if fs::symlink_metadata(at).is_ok_and(|meta| !meta.is_file()) {
        return;
    }
    let _ = fs::write(at, contents);
}

fn is_in_repository(path: &Path) -> bool {
    path.components().any(|name| name.as_os_str() == ".git")
}
