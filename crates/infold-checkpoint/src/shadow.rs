//! The checkpoints of one workspace.

use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::base::{Base, replace_file};
use crate::checkpoints::Checkpoints;
use crate::error::{CheckpointError, WorkspaceProblem};
use crate::git::{self, Git};
use crate::import::remove_crash_reports;
use crate::journal::{Journal, PendingRestore};
use crate::lock::Lock;
use crate::refs::{self, Refs};
use crate::stat::FileStat;
use crate::workspace::Workspace;

/// The checkpoints of one workspace, opened: no other process uses them meanwhile.
#[derive(Debug)]
pub struct Shadow {
    pub(crate) workspace: Workspace,
    pub(crate) directory: PathBuf,
    pub(crate) git: Git,
    pub(crate) refs: Refs,
    pub(crate) journal: Option<Journal>,
    pub(crate) max_file_bytes: u64,
    /// The user's ignore rules for all repositories.
    pub(crate) user_excludes: Option<PathBuf>,
    /// The directory of the contexts, which may be in the workspace.
    pub(crate) contexts: Option<FileStat>,
    /// Numbers of snapshots are higher: those up to here were given before.
    pub(crate) number_floor: u64,
    program: PathBuf,
    warning: Option<String>,
    // Dropped last.
    _lock: Lock,
}

/// The name of the repository in the directory of a workspace.
pub(crate) const REPOSITORY: &str = "repo.git";

/// In which file the path of the workspace stands.
pub(crate) const WORKSPACE_FILE: &str = "workspace";

/// What is called so was set aside.
pub(crate) const TORN_PREFIX: &str = "torn-checkpoints-";

const FLOOR_FILE: &str = "floor";
const DAMAGED_FILE: &str = "damaged";

impl Shadow {
    /// Opens the checkpoints of a workspace, and makes them if there are none yet.
    pub(crate) fn open(
        checkpoints: &Checkpoints,
        workspace: Workspace,
        directory: PathBuf,
    ) -> Result<Shadow, CheckpointError> {
        let settings = &checkpoints.settings;
        make_private_directory(&directory)?;
        let lock = Lock::take(&directory, workspace.path(), settings.lock_wait)?;
        claim(&directory, workspace.path())?;
        let program = settings.git.clone();
        let contexts = Workspace::contexts_stat(&checkpoints.contexts);
        let excludes = || {
            let (home, config) = (settings.home.as_deref(), settings.config_home.as_deref());
            let configured = git::configured_excludes(&program, home, config);
            configured.or_else(|| settings.default_excludes())
        };
        let mut shadow = Shadow {
            user_excludes: excludes(),
            git: Git::new(
                &program,
                &directory.join(REPOSITORY),
                lock.handle(&directory)?,
            ),
            refs: Refs::default(),
            journal: None,
            max_file_bytes: settings.max_file_bytes,
            contexts,
            number_floor: read_floor(&directory),
            program,
            warning: None,
            workspace,
            directory,
            _lock: lock,
        };
        shadow.load()?;
        Ok(shadow)
    }

    /// Says what was wrong with the checkpoints when they were opened or used, and what was done about it.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
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
    pub fn snapshots(&self) -> impl Iterator<Item = crate::SnapshotRef> {
        self.refs.iter().map(|(at, _)| at)
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

    pub(crate) fn commit_of(
        &self,
        at: crate::SnapshotRef,
    ) -> Result<crate::id::ObjectId, CheckpointError> {
        self.refs
            .get(at)
            .ok_or_else(|| CheckpointError::NoSnapshot {
                at,
                workspace: self.workspace.path().to_owned(),
            })
    }

    /// Reads what is there, and makes what is missing.
    fn load(&mut self) -> Result<(), CheckpointError> {
        let repository = self.directory.join(REPOSITORY);
        if repository.exists() {
            let damage = self.cheap_damage();
            if let Some(what) = damage {
                self.set_aside(&what)?;
            }
        }
        if !repository.exists() {
            self.make_repository()?;
        }
        self.remove_leftovers();
        self.refs = Refs::read(&repository)?;
        self.journal = match Journal::read(&self.directory) {
            Ok(journal) => journal,
            Err(what) => {
                let aside = self.torn_directory()?;
                let _ = fs::rename(Journal::path(&self.directory), aside.join("restoring.json"));
                self.warn(format!(
                    "the journal of a restoration is damaged ({what}) and was set aside in `{}`: the workspace may be restored in part",
                    aside.display()
                ));
                None
            }
        };
        Ok(())
    }

    /// Returns what shows at once that the repository is damaged.
    fn cheap_damage(&self) -> Option<String> {
        let repository = self.git.directory();
        if let Ok(what) = fs::read_to_string(self.directory.join(DAMAGED_FILE)) {
            return Some(what);
        }
        for name in ["HEAD", "config", "objects", "refs"] {
            if !repository.join(name).exists() {
                return Some(format!("`{name}` is missing"));
            }
        }
        // Only what git itself wrote there: a configuration could name programs.
        let config = fs::read_to_string(repository.join("config")).unwrap_or_default();
        if !config.contains("bare = true") {
            return Some("its configuration is not what git wrote".to_owned());
        }
        match Refs::read(repository) {
            Err(CheckpointError::Damaged { what, .. }) => Some(what),
            Err(error) => Some(error.to_string()),
            Ok(_) => None,
        }
    }

    /// Remembers that the repository is damaged: it is set aside when it is opened again.
    pub(crate) fn mark_damaged(&self, what: &str) {
        let _ = replace_file(&self.directory.join(DAMAGED_FILE), what.as_bytes());
    }

    /// Sets the repository aside and makes a new one, if git finds it damaged. Returns whether it did.
    pub(crate) fn set_aside_if_damaged(&mut self) -> Result<bool, CheckpointError> {
        let checked = self.git.read(
            "check the checkpoints",
            ["fsck", "--full", "--no-dangling", "--no-progress"],
        );
        let what = match checked {
            Ok(_) => return Ok(false),
            Err(CheckpointError::Git { said, .. }) => said,
            Err(error) => return Err(error),
        };
        self.set_aside(&what)?;
        self.make_repository()?;
        self.refs = Refs::default();
        Ok(true)
    }

    fn set_aside(&mut self, what: &str) -> Result<(), CheckpointError> {
        let repository = self.directory.join(REPOSITORY);
        let floor = self
            .number_floor
            .max(refs::highest_number(&repository))
            .max(self.refs.iter().map(|(at, _)| at.number).max().unwrap_or(0));
        // Before anything is moved: numbers must not be given twice.
        replace_file(
            &self.directory.join(FLOOR_FILE),
            floor.to_string().as_bytes(),
        )?;
        self.number_floor = floor;
        let aside = self.torn_directory()?;
        for name in [REPOSITORY, "files.idx", "restoring.json"] {
            let from = self.directory.join(name);
            match fs::rename(&from, aside.join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(CheckpointError::io("set aside", from, error));
                }
                _ => {}
            }
        }
        let _ = fs::remove_file(self.directory.join(DAMAGED_FILE));
        self.warn(format!(
            "the checkpoints of `{}` were damaged ({what}) and set aside in `{}`; new ones begin now",
            self.workspace.path().display(),
            aside.display()
        ));
        Ok(())
    }

    fn torn_directory(&self) -> Result<PathBuf, CheckpointError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_millis();
        let path = self.directory.join(format!("{TORN_PREFIX}{now}"));
        make_private_directory(&path)?;
        Ok(path)
    }

    pub(crate) fn warn(&mut self, text: String) {
        match &mut self.warning {
            Some(warning) => {
                warning.push_str("; ");
                warning.push_str(&text);
            }
            None => self.warning = Some(text),
        }
    }

    fn make_repository(&self) -> Result<(), CheckpointError> {
        git::check_version(&self.program)?;
        let repository = self.directory.join(REPOSITORY);
        let new = self.directory.join("repo.new");
        let io = |error| CheckpointError::io("made", &repository, error);
        if new.exists() {
            fs::remove_dir_all(&new).map_err(io)?;
        }
        make_private_directory(&new)?;
        git::initialize(&self.program, &new)?;
        Base::remove(&self.directory)?;
        fs::rename(&new, &repository).map_err(io)
    }

    /// Removes what processes left that were killed. None is left that still writes: each of git's has the lock, too.
    fn remove_leftovers(&self) {
        remove_crash_reports(&self.git);
        let repository = self.git.directory();
        for directory in ["", "refs", "objects/pack"] {
            remove_temporary(&repository.join(directory), directory == "refs");
        }
    }
}

/// Removes what git calls its temporary files and locks.
fn remove_temporary(directory: &Path, is_recursive: bool) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && is_recursive {
            remove_temporary(&entry.path(), true);
        } else if !is_directory
            && (name.ends_with(".lock")
                || name.starts_with("tmp_")
                || name.starts_with(".tmp-")
                || name.ends_with(".keep"))
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn make_private_directory(path: &Path) -> Result<(), CheckpointError> {
    let mut builder = fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| CheckpointError::io("made", path, error))
}

/// Writes whose checkpoints these are, or checks it.
fn claim(directory: &Path, workspace: &Path) -> Result<(), CheckpointError> {
    let path = directory.join(WORKSPACE_FILE);
    match fs::read(&path) {
        Ok(known) if known == workspace.as_os_str().as_bytes() => Ok(()),
        // A crash may have left it empty.
        Ok(known) if !known.is_empty() => Err(CheckpointError::Workspace {
            path: workspace.to_owned(),
            problem: WorkspaceProblem::DigestInUse,
        }),
        _ => replace_file(&path, workspace.as_os_str().as_bytes()),
    }
}

/// Returns whose checkpoints are in a directory.
pub(crate) fn claimed_by(directory: &Path) -> Option<PathBuf> {
    let path = fs::read(directory.join(WORKSPACE_FILE)).ok()?;
    let is_claimed = !path.is_empty();
    is_claimed.then(|| std::ffi::OsString::from_vec(path).into())
}

fn read_floor(directory: &Path) -> u64 {
    let text = fs::read_to_string(directory.join(FLOOR_FILE)).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}
