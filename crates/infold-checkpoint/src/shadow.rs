//! The checkpoints of one workspace.

use std::fs;
use std::path::{Path, PathBuf};

use crate::checkpoints::Checkpoints;
use crate::error::CheckpointError;
use crate::git;
use crate::id::SnapshotRef;
use crate::journal::{Journal, PendingRestore};
use crate::repository::Repository;
use crate::stat::FileStat;
use crate::workspace::Workspace;

/// The checkpoints of one workspace, opened: no other process uses them meanwhile.
#[derive(Debug)]
pub struct Shadow {
    pub(crate) workspace: Workspace,
    pub(crate) repository: Repository,
    pub(crate) journal: Option<Journal>,
    pub(crate) max_file_bytes: u64,
    /// The user's ignore rules for all repositories.
    pub(crate) user_excludes: Option<PathBuf>,
    /// The directory of the contexts, which may be in the workspace.
    pub(crate) contexts: Option<FileStat>,
}

impl Shadow {
    /// Opens the checkpoints of a workspace, and makes them if there are none yet.
    pub(crate) fn open(
        checkpoints: &Checkpoints,
        workspace: Workspace,
        directory: &Path,
    ) -> Result<Shadow, CheckpointError> {
        let settings = &checkpoints.settings;
        let mut repository = Repository::open(settings, directory, workspace.path())?;
        let journal = read_journal(&mut repository)?;
        let (home, config) = (settings.home.as_deref(), settings.config_home.as_deref());
        let configured = git::configured_excludes(&settings.git, home, config);
        Ok(Shadow {
            user_excludes: configured.or_else(|| settings.default_excludes()),
            journal,
            max_file_bytes: settings.max_file_bytes,
            contexts: Workspace::contexts_stat(&checkpoints.contexts),
            repository,
            workspace,
        })
    }

    /// Says what was wrong with the checkpoints when they were opened or used, and what was done about it.
    pub fn warning(&self) -> Option<&str> {
        self.repository.warning()
    }

    /// Returns the path of the workspace, without links.
    pub fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    /// Returns the restoration that was cut off, if there is one.
    pub fn pending(&self) -> Option<&PendingRestore> {
        self.journal.as_ref().map(|journal| &journal.pending)
    }

    /// Returns the snapshots of all tasks, in order.
    pub fn snapshots(&self) -> impl Iterator<Item = SnapshotRef> {
        self.repository.refs.iter().map(|(at, _)| at)
    }

    pub(crate) fn refuse_if_unfinished(&self) -> Result<(), CheckpointError> {
        match self.pending() {
            None => Ok(()),
            Some(pending) => Err(CheckpointError::Unfinished {
                workspace: self.workspace.path().to_owned(),
                to: pending.to,
            }),
        }
    }
}

fn read_journal(repository: &mut Repository) -> Result<Option<Journal>, CheckpointError> {
    let what = match Journal::read(&repository.directory) {
        Ok(journal) => return Ok(journal),
        Err(what) => what,
    };
    let aside = repository.torn_directory()?;
    let journal = Journal::path(&repository.directory);
    let moved = fs::rename(&journal, aside.join("restoring.json"));
    moved.map_err(|error| CheckpointError::io("set aside", &journal, error))?;
    repository.warn(format!(
        "the journal of a restoration of `{}` was damaged ({what}) and is now in `{}`: the workspace may be restored in part",
        repository.workspace.display(),
        aside.display()
    ));
    Ok(None)
}
