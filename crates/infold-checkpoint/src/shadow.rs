//! The checkpoints of one workspace.

use std::fs;
use std::path::{Path, PathBuf};

use crate::checkpoints::Checkpoints;
use crate::error::CheckpointError;
use crate::git;
use crate::id::SnapshotRef;
use crate::journal::{Journal, PendingRestore};
use crate::passing::Passing;
use crate::repository::ShadowRepository;
use crate::staging::StagingDir;
use crate::stat::FileStat;
use crate::walk::STAGING_PREFIX;
use crate::workspace::WorkspaceDir;

/// The checkpoints of one workspace, opened: no other process uses them meanwhile.
#[derive(Debug)]
pub struct Shadow {
    pub(crate) workspace: WorkspaceDir,
    pub(crate) repository: ShadowRepository,
    pub(crate) journal: Option<Journal>,
    /// A snapshot that was taken for a comparison.
    pub(crate) passing: Option<Passing>,
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
        workspace: WorkspaceDir,
        directory: &Path,
    ) -> Result<Shadow, CheckpointError> {
        let settings = &checkpoints.settings;
        let mut repository = ShadowRepository::open(settings, directory, workspace.path())?;
        let journal = read_journal(&mut repository, &workspace)?;
        repository.drop_passing(None)?;
        let (home, config) = (settings.home.as_deref(), settings.config_home.as_deref());
        let configured = git::configured_excludes(&settings.git, home, config);
        Ok(Shadow {
            user_excludes: configured.or_else(|| settings.default_excludes()),
            journal,
            passing: None,
            max_file_bytes: settings.max_file_bytes,
            contexts: WorkspaceDir::contexts_stat(&checkpoints.contexts),
            repository,
            workspace,
        })
    }

    /// Returns the problem that was found when the checkpoints were opened or used, and how it was handled.
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

    /// Lets git read everything. What is damaged is set aside, and [`Shadow::warning`] says so.
    pub fn check(&mut self) -> Result<(), CheckpointError> {
        if self.repository.set_aside_if_damaged()? {
            self.journal = None;
        }
        Ok(())
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

/// Reads the journal of a restoration that was cut off. One that leads nowhere is set aside.
fn read_journal(
    repository: &mut ShadowRepository,
    workspace: &WorkspaceDir,
) -> Result<Option<Journal>, CheckpointError> {
    let what = match Journal::read(&repository.directory) {
        Ok(None) => return Ok(None),
        Ok(Some(journal)) => {
            let pending = &journal.pending;
            let is_there = |at| repository.refs.get(at).is_some();
            if is_there(pending.from) && is_there(pending.to) {
                return Ok(Some(journal));
            }
            if !StagingDir::exists(workspace, &pending.id) {
                // The restoration had not begun, and its snapshots were removed on purpose.
                journal.remove()?;
                return Ok(None);
            }
            "its checkpoints are gone".to_owned()
        }
        Err(what) => what,
    };
    let aside = repository.torn_directory()?;
    let journal = Journal::path(&repository.directory);
    let moved = fs::rename(&journal, aside.join("restoring.json"));
    moved.map_err(|error| CheckpointError::io("set aside", &journal, error))?;
    repository.warn(format!(
        "a restoration of `{}` was cut off and cannot be finished ({what}): the workspace may be restored in part; what was taken out of it is in its directories `{STAGING_PREFIX}…`, the journal in `{}`",
        repository.workspace.display(),
        aside.display()
    ));
    Ok(None)
}
