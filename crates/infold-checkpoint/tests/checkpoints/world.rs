//! A workspace with a directory of contexts beside it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use infold_checkpoint::{CheckpointSettings, Checkpoints, Shadow, ShadowInfo, SnapshotRef};
use tempfile::TempDir;
use uuid::Uuid;

use crate::tree::{Tree, path, read_tree};

/// A workspace with a directory of contexts and a home directory beside it.
pub struct World {
    pub root: TempDir,
    pub workspace: PathBuf,
    pub home: PathBuf,
    pub contexts: PathBuf,
    pub checkpoints: Checkpoints,
}

pub const TASK: Uuid = Uuid::from_u128(0x20);
pub const OTHER_TASK: Uuid = Uuid::from_u128(0x21);

impl World {
    pub fn new() -> World {
        World::with_limit(1 << 20)
    }

    /// Makes one in which larger files are left out.
    pub fn with_limit(max_file_bytes: u64) -> World {
        let root = tempfile::tempdir().unwrap();
        World::at(root, max_file_bytes)
    }

    pub fn at(root: TempDir, max_file_bytes: u64) -> World {
        let base = root.path().canonicalize().unwrap();
        let (workspace, home) = (base.join("work"), base.join("home"));
        let contexts = base.join("contexts");
        fs::create_dir_all(&workspace).unwrap();
        fs::create_dir_all(home.join(".config/git")).unwrap();
        let settings = CheckpointSettings {
            home: Some(home.clone()),
            max_file_bytes,
            lock_wait: Duration::from_secs(60),
            git: git_program(),
            ..CheckpointSettings::default()
        };
        World {
            checkpoints: Checkpoints::new(&contexts, settings),
            root,
            workspace,
            home,
            contexts,
        }
    }

    pub fn open(&self) -> Shadow {
        self.checkpoints.open(&self.workspace).unwrap()
    }

    pub fn write(&self, name: &str, contents: &str) {
        let path = self.workspace.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    pub fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.workspace.join(name)).ok()
    }

    pub fn tree(&self) -> Tree {
        read_tree(&self.workspace)
    }

    pub fn info(&self) -> ShadowInfo {
        let mut all = self.checkpoints.all().unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    pub fn repository(&self) -> PathBuf {
        self.info().directory.join("repo.git")
    }

    /// Runs git in the workspace, as its user does.
    pub fn user_git(&self, arguments: &[&str]) -> Vec<u8> {
        run_git(&self.workspace, &self.home, arguments)
    }

    /// Asks git which files a snapshot holds.
    pub fn held(&self, at: SnapshotRef) -> BTreeSet<PathBuf> {
        let name = format!("refs/infold/{}/{}", at.task, at.number);
        // Named, the repository may be that of another user.
        let repository = format!("--git-dir={}", self.repository().display());
        let arguments = [&repository, "ls-tree", "-r", "-z", "--name-only", &name];
        let text = run_git(self.root.path(), &self.home, &arguments);
        let names = text.split(|byte| *byte == 0);
        names
            .filter_map(|name| Some(path(name.strip_prefix(b"files/")?)))
            .collect()
    }
}

pub fn run_git(directory: &Path, home: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(git_program())
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(["-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

/// Returns the git that is tested: `INFOLD_TEST_GIT` names another than that of the path.
pub fn git_program() -> PathBuf {
    std::env::var_os("INFOLD_TEST_GIT").map_or("git".into(), PathBuf::from)
}

/// Returns how often something is repeated: a number from the environment, or few times.
pub fn repetitions(variable: &str, few: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(few)
}

/// Numbers that look random and are the same each time.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
