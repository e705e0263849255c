//! The directory in which a redaction is prepared (`redacting/` in the contexts directory), and its completion.
//!
//! It holds the new files of each task. `plan.json` is the decision: without it the rest is discarded; once it is there,
//! every command completes the redaction first. The directory is locked while it is used.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use infold_checkpoint::BlobId;
use infold_wire::{Json, quote};
use uuid::Uuid;

use super::copies;
use crate::current::Current;
use crate::database::Identity;
use crate::derived::Derived;
use crate::dirs::{PLACES, TaskDirs};
use crate::file::Access;
use crate::search::SearchIndex;
use crate::{Contexts, Log, LogError, Registry, TaskError, chain_index, file};

const NAME: &str = "redacting";
const PLAN: &str = "plan.json";

/// The directory, locked.
#[derive(Debug)]
pub struct Staging {
    dir: PathBuf,
    /// It is locked as long as this file is open.
    _lock: File,
}

/// The changes of a redaction other than new files. It contains none of the redacted text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RedactionPlan {
    /// The tasks, those first that others continue.
    pub tasks: Vec<Uuid>,
    /// New values of columns in the registry.
    pub rows: Vec<(Uuid, String, String)>,
    /// The redacted names of models whose learned data is deleted.
    pub models: Vec<String>,
    /// Redacted names of conversations, each with its task: they take the place of those that they are the digests of.
    pub names: Vec<(Uuid, String)>,
    /// Files and directories to remove, in tasks and beside them.
    pub removed: Vec<PathBuf>,
    /// Blobs to remove from checkpoints.
    pub blobs: Vec<BlobId>,
}

impl RedactionPlan {
    fn encode(&self, root: &Path) -> String {
        let tasks = self.tasks.iter().map(|task| format!("\"{task}\""));
        let rows = self.rows.iter().map(|(task, column, text)| {
            let (column, text) = (quote(column), quote(text));
            format!(r#"{{"task":"{task}","column":{column},"text":{text}}}"#)
        });
        let names = self.names.iter().map(|(task, name)| {
            let name = quote(name);
            format!(r#"{{"task":"{task}","name":{name}}}"#)
        });
        let models = self.models.iter().map(|model| quote(model));
        let blobs = self.blobs.iter().map(|blob| quote(&blob.to_string()));
        let removed = self.removed.iter();
        let removed = removed.filter_map(|path| path.strip_prefix(root).ok());
        let removed = removed.map(|path| quote(&path.to_string_lossy()));
        format!(
            "{{\"tasks\":[{}],\"rows\":[{}],\"models\":[{}],\"names\":[{}],\"removed\":[{}],\"blobs\":[{}]}}\n",
            listed(tasks),
            listed(rows),
            listed(models),
            listed(names),
            listed(removed),
            listed(blobs)
        )
    }

    fn decode(bytes: &[u8], root: &Path) -> Option<RedactionPlan> {
        let json = Json::parse(bytes).ok()?;
        let list = |key: &str| Some(json.get(key)?.elements());
        let text = |json: Json<'_>, key: &str| Some(json.get(key)?.text()?.into_owned());
        let rows = list("rows")?.map(|row| {
            let task = text(row, "task")?.parse().ok()?;
            Some((task, text(row, "column")?, text(row, "text")?))
        });
        let names = list("names")?
            .map(|name| Some((text(name, "task")?.parse().ok()?, text(name, "name")?)));
        // An earlier version may have decided it.
        let models = json.get("models").into_iter().flat_map(Json::elements);
        let models = models.map(|model| Some(model.text()?.into_owned()));
        let blobs = json.get("blobs").into_iter().flat_map(Json::elements);
        let blobs = blobs.map(|blob| blob.text()?.parse().ok());
        let removed = list("removed")?.map(|name| Some(root.join(name.text()?.as_ref())));
        Some(RedactionPlan {
            tasks: list("tasks")?
                .map(|task| task.text()?.parse().ok())
                .collect::<Option<_>>()?,
            rows: rows.collect::<Option<_>>()?,
            models: models.collect::<Option<_>>()?,
            names: names.collect::<Option<_>>()?,
            removed: removed.collect::<Option<_>>()?,
            blobs: blobs.collect::<Option<_>>()?,
        })
    }
}

impl Staging {
    /// Makes an empty one. A redaction that was decided is completed first.
    pub fn begin(contexts: &Contexts) -> Result<Staging, TaskError> {
        contexts.settle_redaction()?;
        let dir = contexts.root().join(NAME);
        loop {
            file::make_dir(&dir)?;
            if let Some(staging) = Staging::lock(dir.clone())? {
                staging.empty()?;
                return Ok(staging);
            }
        }
    }

    /// Locks one that is there; none if it is gone when that is done.
    fn lock(dir: PathBuf) -> Result<Option<Staging>, LogError> {
        let opened = match File::open(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| LogError::io(&dir, "opened", error))?,
        };
        opened
            .lock()
            .map_err(|error| LogError::io(&dir, "locked", error))?;
        let is_there = Identity::of(&dir) == Identity::of_open(&opened);
        Ok(is_there.then_some(Staging { dir, _lock: opened }))
    }

    /// A redaction that was decided and is not complete; locked, so that one at a time completes it.
    pub fn decided(contexts: &Contexts) -> Result<Option<(Staging, RedactionPlan)>, TaskError> {
        let dir = contexts.root().join(NAME);
        let path = dir.join(PLAN);
        match fs::symlink_metadata(&path) {
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            // A redaction that cannot be read might be decided, so continuing would be wrong.
            Err(error) => return Err(LogError::io(&path, "read", error).into()),
        }
        let Some(staging) = Staging::lock(dir)? else {
            return Ok(None);
        };
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| LogError::io(&path, "read", error))?,
        };
        let plan = RedactionPlan::decode(&bytes, contexts.root());
        let plan = plan.ok_or_else(|| LogError::damaged(&path, 0, "it is no plan of a redaction"));
        Ok(Some((staging, plan?)))
    }

    /// Removes one that was not decided and is not in use; returns whether there was one.
    pub fn discard_left(contexts: &Contexts) -> Result<bool, TaskError> {
        let dir = contexts.root().join(NAME);
        let Ok(opened) = File::open(&dir) else {
            return Ok(false);
        };
        let is_free = opened.try_lock().is_ok() && !dir.join(PLAN).exists();
        if is_free {
            fs::remove_dir_all(&dir).map_err(|error| LogError::io(&dir, "removed", error))?;
        }
        Ok(is_free)
    }

    /// Where the new files of a task are put.
    pub fn of_task(&self, task: Uuid) -> Result<PathBuf, LogError> {
        let dir = self.dir.join(task.to_string());
        file::make_dir(&dir)?;
        Ok(dir)
    }

    /// Removes it: nothing was decided.
    pub fn discard(self) {
        let _ = fs::remove_dir_all(&self.dir);
    }

    /// Decides: from now on the redaction is done, whatever happens.
    pub fn commit(&self, plan: &RedactionPlan) -> Result<(), LogError> {
        for task in &plan.tasks {
            let dir = self.dir.join(task.to_string());
            if dir.is_dir() {
                file::sync_dir(&dir)?;
            }
        }
        let (path, next) = (self.dir.join(PLAN), self.dir.join("plan.tmp"));
        let root = self.dir.parent().unwrap_or(&self.dir);
        file::write_new(&next, plan.encode(root).as_bytes(), true)?;
        file::sync_dir(&self.dir)?;
        self.dir.parent().map_or(Ok(()), file::sync_dir)?;
        fs::rename(&next, &path).map_err(|error| LogError::io(&path, "written", error))?;
        if let Err(error) = file::sync_dir(&self.dir) {
            // The decision is undone. If that fails too, the next command may complete it.
            let is_undone = fs::remove_file(&path).is_ok();
            return Err(error.after(is_undone));
        }
        Ok(())
    }

    fn empty(&self) -> Result<(), LogError> {
        for path in file::files(&self.dir, |_| true)? {
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.map_err(|error| LogError::io(&path, "removed", error))?;
        }
        Ok(())
    }

    /// Moves the new files of a task into place, and removes files derived from the old ones.
    fn place(&self, task: Uuid, dir: &Path) -> Result<(), LogError> {
        // Remove derived files first: those of the old log must not be read with the new one.
        copies::remove(dir)?;
        let staged = self.dir.join(task.to_string());
        for from in file::files(&staged, |_| true)? {
            let path = dir.join(from.file_name().unwrap_or_default());
            match fs::rename(&from, &path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(LogError::io(&path, "replaced", error));
                }
                _ => {}
            }
        }
        file::sync_dir(dir)
    }

    /// Says that all is done.
    fn end(&self) -> Result<(), LogError> {
        let path = self.dir.join(PLAN);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(LogError::io(&path, "removed", error));
            }
            _ => {}
        }
        file::sync_dir(&self.dir)?;
        let _ = fs::remove_dir_all(&self.dir);
        Ok(())
    }
}

impl Contexts {
    /// Executes a plan. Every step may have been done before.
    pub(super) fn roll_forward(
        &self,
        plan: &RedactionPlan,
        staging: &Staging,
    ) -> Result<(), TaskError> {
        let dirs = self.dirs();
        let mut places: Vec<(Uuid, PathBuf)> = Vec::with_capacity(plan.tasks.len());
        for task in &plan.tasks {
            match dirs.find(*task) {
                Some(dir) => places.push((*task, dir)),
                None => self.check_gone(*task)?,
            }
        }
        for (task, dir) in &places {
            staging.place(*task, dir)?;
        }
        for path in &plan.removed {
            if path.is_dir() {
                fs::remove_dir_all(path).map_err(|error| LogError::io(path, "removed", error))?
            } else {
                remove_if_there(path)?
            }
        }
        if !plan.blobs.is_empty() {
            self.checkpoints().drop_blobs(&plan.blobs)?;
        }
        for (_, dir) in &places {
            derive(dir, &dirs)?;
        }
        self.redact_databases(plan, &places)?;
        Ok(staging.end()?)
    }

    /// Checks that a task is really gone, and not only out of sight because the disk fails.
    fn check_gone(&self, task: Uuid) -> Result<(), LogError> {
        for place in PLACES {
            let dir = self.root().join(place).join(task.to_string());
            dir.try_exists()
                .map_err(|error| LogError::io(&dir, "read", error))?;
        }
        Ok(())
    }

    /// Removes the redacted texts from the databases, and deleted data from their files.
    fn redact_databases(
        &self,
        plan: &RedactionPlan,
        places: &[(Uuid, PathBuf)],
    ) -> Result<(), TaskError> {
        let registry = Registry::open(self.root())?;
        for (task, column, text) in &plan.rows {
            registry.set_text(*task, column, text)?;
        }
        registry.forget_models(&plan.models)?;
        for (task, dir) in places {
            let (log, _) = Log::open(dir, Access::Read, &self.dirs())?;
            registry.set_counters(*task, self.recount(&log)?)?;
        }
        registry.purge()?;
        if let Some(mut chains) = chain_index::if_there(self.root()) {
            for (task, name) in &plan.names {
                chains.redact_name(*task, name)?;
            }
            for (task, dir) in places {
                let (log, _) = Log::open(dir, Access::Read, &self.dirs())?;
                chains.set_redacted(*task, &log.redactions()?)?;
            }
            chains.purge()?;
        }
        // The logs have new files by now, from which the messages are indexed again.
        SearchIndex::forget_for_good(self.root(), |task| plan.tasks.contains(&task))?;
        Ok(())
    }
}

/// Derives the files that depend on a log.
fn derive(dir: &Path, dirs: &TaskDirs) -> Result<(), LogError> {
    let (mut log, _) = Log::open(dir, Access::Write, dirs)?;
    log.flush()?;
    let mut current = Current::open(dir);
    for derived in Derived::ALL {
        if derived.count(&log)? > 0 {
            *current.written(derived) = Some(derived.rewrite(&log)?);
        }
    }
    current.rewrite(&log)?;
    current.save()
}

fn listed(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(",")
}

/// Removes a file that may be gone already.
pub fn remove_if_there(path: &Path) -> Result<(), LogError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LogError::io(path, "removed", error))
        }
        _ => Ok(()),
    }
}
