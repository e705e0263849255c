//! The shadow repository of one workspace.

use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::checkpoints::CheckpointSettings;
use crate::error::{CheckpointError, WorkspaceProblem};
use crate::git::{self, Git};
use crate::id::{ObjectId, SnapshotRef};
use crate::import::remove_crash_reports;
use crate::last_snapshot::{LastSnapshot, replace_file};
use crate::listing::SnapshotListing;
use crate::lock::RepositoryLock;
use crate::objects::Objects;
use crate::refs::{self, Refs};

/// The shadow repository of one workspace, locked. The workspace itself need not exist any more.
#[derive(Debug)]
pub(crate) struct ShadowRepository {
    /// The path of the workspace.
    pub workspace: PathBuf,
    /// The directory of the repository and its sidecar files.
    pub directory: PathBuf,
    pub git: Git,
    pub refs: Refs,
    /// New snapshots get higher numbers than this: the numbers up to it were used before.
    pub number_floor: u64,
    program: PathBuf,
    warning: Option<String>,
    // Dropped last.
    _lock: RepositoryLock,
}

/// The name of the repository in the directory of a workspace.
pub(crate) const REPOSITORY: &str = "repo.git";

/// The prefix of repositories that were set aside.
pub(crate) const TORN_PREFIX: &str = "torn-checkpoints-";

/// The file with the path of the workspace.
const WORKSPACE_FILE: &str = "workspace";
const FLOOR_FILE: &str = "floor";
const DAMAGED_FILE: &str = "damaged";

/// The contents of files that git writes when it creates a repository.
const HEAD: &str = "ref: refs/heads/main\n";
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n";

impl ShadowRepository {
    /// Opens the repository of a workspace, and makes it if there is none yet.
    pub fn open(
        settings: &CheckpointSettings,
        directory: &Path,
        workspace: &Path,
    ) -> Result<ShadowRepository, CheckpointError> {
        make_private_directory(directory)?;
        let lock = RepositoryLock::take(directory, workspace, settings.lock_wait)?;
        claim(directory, workspace)?;
        let handle = lock.handle(directory)?;
        let mut repository = ShadowRepository {
            git: Git::new(&settings.git, &directory.join(REPOSITORY), handle),
            refs: Refs::default(),
            number_floor: read_floor(directory),
            program: settings.git.clone(),
            warning: None,
            workspace: workspace.to_owned(),
            directory: directory.to_owned(),
            _lock: lock,
        };
        repository.load()?;
        Ok(repository)
    }

    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    pub fn commit_of(&self, at: SnapshotRef) -> Result<ObjectId, CheckpointError> {
        let commit = self.refs.get(at);
        commit.ok_or_else(|| CheckpointError::NoSnapshot {
            at,
            workspace: self.workspace.clone(),
        })
    }

    pub fn tree_of(&self, commit: ObjectId) -> Result<ObjectId, CheckpointError> {
        let name = format!("{commit}^{{tree}}");
        let tree = self
            .git
            .read("find a checkpoint", ["rev-parse", "--verify", &name])?;
        ObjectId::parse(tree.trim_ascii_end()).ok_or_else(|| CheckpointError::Git {
            doing: "find a checkpoint",
            said: "it named no tree".to_owned(),
        })
    }

    pub fn listing(&self, at: SnapshotRef) -> Result<SnapshotListing, CheckpointError> {
        let commit = self.commit_of(at)?;
        SnapshotListing::read(&self.git, &mut Objects::new(&self.git), commit)
    }

    /// Opens the repository, and creates missing parts.
    fn load(&mut self) -> Result<(), CheckpointError> {
        let repository = self.directory.join(REPOSITORY);
        if repository.exists() {
            self.mend()?;
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
        Ok(())
    }

    /// Repairs damage that costs one snapshot at most: files that git writes once, and refs without an object.
    fn mend(&mut self) -> Result<(), CheckpointError> {
        let repository = self.git.directory().to_owned();
        for (name, text) in [("HEAD", HEAD), ("config", CONFIG)] {
            let path = repository.join(name);
            let is_well = match name {
                "HEAD" => path.exists(),
                _ => fs::read_to_string(&path).is_ok_and(|text| text.contains("bare = true")),
            };
            if !is_well {
                replace_file(&path, text.as_bytes())?;
                self.warn(format!(
                    "`{name}` of the checkpoints was damaged and written anew"
                ));
            }
        }
        for (at, path) in refs::broken(&repository)? {
            let aside = self.torn_directory()?;
            let name = format!("{}-{}", at.task, at.number);
            fs::rename(&path, aside.join(name))
                .map_err(|error| CheckpointError::io("set aside", &path, error))?;
            self.number_floor = self.number_floor.max(at.number);
            replace_file(
                &self.directory.join(FLOOR_FILE),
                self.number_floor.to_string().as_bytes(),
            )?;
            self.warn(format!(
                "checkpoint {} of task {} was damaged and set aside in `{}`",
                at.number,
                at.task,
                aside.display()
            ));
        }
        Ok(())
    }

    /// Returns the damage that a quick check finds.
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
        // Accept only a configuration that git itself wrote, because another one could name programs.
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
    pub fn mark_damaged(&self, what: &str) {
        let _ = replace_file(&self.directory.join(DAMAGED_FILE), what.as_bytes());
    }

    /// Sets the repository aside and makes a new one, if git finds it damaged. Returns whether it did.
    pub fn set_aside_if_damaged(&mut self) -> Result<bool, CheckpointError> {
        let Some(what) = self.check()? else {
            return Ok(false);
        };
        self.set_aside(&what)?;
        self.make_repository()?;
        self.refs = Refs::default();
        Ok(true)
    }

    /// Says more of an error of git if the repository is damaged, which is then remembered.
    pub fn diagnose(&self, error: CheckpointError) -> CheckpointError {
        let what = match &error {
            CheckpointError::Damaged { what, .. } => what.clone(),
            CheckpointError::Git { .. } => match self.check() {
                Ok(Some(what)) => what,
                _ => return error,
            },
            _ => return error,
        };
        self.mark_damaged(&what);
        let dir = self.directory.clone();
        CheckpointError::Damaged { dir, what }
    }

    /// Lets git check every object. Returns the damage that it found.
    fn check(&self) -> Result<Option<String>, CheckpointError> {
        let checked = self.git.read(
            "check the checkpoints",
            ["fsck", "--full", "--no-dangling", "--no-progress"],
        );
        match checked {
            Ok(_) => Ok(None),
            Err(CheckpointError::Git { said, .. }) => Ok(Some(said)),
            Err(error) => Err(error),
        }
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
            self.workspace.display(),
            aside.display()
        ));
        Ok(())
    }

    pub fn torn_directory(&self) -> Result<PathBuf, CheckpointError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_millis();
        let path = self.directory.join(format!("{TORN_PREFIX}{now}"));
        make_private_directory(&path)?;
        Ok(path)
    }

    pub fn warn(&mut self, text: String) {
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
        LastSnapshot::remove(&self.directory)?;
        fs::rename(&new, &repository).map_err(io)
    }

    /// Removes the leftovers of killed processes. No process still writes, because each of git's has the lock,
    /// too.
    pub fn remove_leftovers(&self) {
        remove_crash_reports(&self.git);
        let repository = self.git.directory();
        for directory in ["", "refs", "objects/pack"] {
            remove_temporary(&repository.join(directory), directory == "refs");
        }
    }
}

/// Removes git's temporary files and locks.
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

/// Records the workspace that a directory of checkpoints belongs to, or checks it.
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
