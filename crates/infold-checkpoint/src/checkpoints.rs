//! Where checkpoints are kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::CheckpointError;
use crate::git;
use crate::repository::REPOSITORY;
use crate::shadow::Shadow;
use crate::workspace::{WorkspaceDir, key};

/// The checkpoints of all workspaces.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    pub(crate) contexts: PathBuf,
    /// The directory with those of each workspace.
    pub(crate) directory: PathBuf,
    pub(crate) settings: CheckpointSettings,
}

/// How checkpoints are made.
#[derive(Clone, Debug)]
pub struct CheckpointSettings {
    /// The `git` command.
    pub git: PathBuf,
    /// The user's home directory, which cannot be a workspace, and in which git's configuration names a file of rules
    /// that hold everywhere.
    pub home: Option<PathBuf>,
    /// The value of `XDG_CONFIG_HOME`, if it is set.
    pub config_home: Option<PathBuf>,
    /// Larger files are left out of snapshots.
    pub max_file_bytes: u64,
    /// How long another process is waited for.
    pub lock_wait: Duration,
}

impl Default for CheckpointSettings {
    fn default() -> CheckpointSettings {
        CheckpointSettings {
            git: "git".into(),
            home: None,
            config_home: None,
            max_file_bytes: 64 << 20,
            lock_wait: Duration::from_secs(5),
        }
    }
}

impl CheckpointSettings {
    /// Returns the file of rules that holds everywhere if git's configuration names none.
    pub(crate) fn default_excludes(&self) -> Option<PathBuf> {
        let config = match (&self.config_home, &self.home) {
            (Some(config), _) => config.clone(),
            (None, Some(home)) => home.join(".config"),
            (None, None) => return None,
        };
        Some(config.join("git/ignore"))
    }
}

impl Checkpoints {
    /// Returns those of a directory of contexts. Nothing is made until a workspace is opened.
    pub fn new(contexts: &Path, settings: CheckpointSettings) -> Checkpoints {
        // Git is started elsewhere.
        let contexts = std::path::absolute(contexts).unwrap_or_else(|_| contexts.to_owned());
        Checkpoints {
            directory: contexts.join("checkpoints"),
            contexts,
            settings,
        }
    }

    /// Fails if git is missing or too old.
    pub fn check_git(&self) -> Result<(), CheckpointError> {
        git::check_version(&self.settings.git)
    }

    /// Opens the checkpoints of a workspace, and makes them if there are none yet.
    pub fn open(&self, workspace: &Path) -> Result<Shadow, CheckpointError> {
        let workspace = self.workspace(workspace)?;
        let directory = self.directory.join(key(workspace.path()));
        Shadow::open(self, workspace, &directory)
    }

    /// Opens the checkpoints of a workspace, if there are any.
    pub fn open_existing(&self, workspace: &Path) -> Result<Option<Shadow>, CheckpointError> {
        let workspace = self.workspace(workspace)?;
        let directory = self.directory.join(key(workspace.path()));
        if !directory.join(REPOSITORY).exists() {
            return Ok(None);
        }
        Shadow::open(self, workspace, &directory).map(Some)
    }

    fn workspace(&self, given: &Path) -> Result<WorkspaceDir, CheckpointError> {
        WorkspaceDir::open(given, self.settings.home.as_deref(), &self.contexts)
    }
}
