//! Puts right what is wrong with tasks and their registry.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use uuid::Uuid;

use crate::derived::Derived;
use crate::lock::{Lock, Taken};
use crate::verify::Problem;
use crate::{Contexts, Durability, LogError, OpenError, Registry, TaskError, Writer};

const SIDECARS: [&str; 4] = ["messages.idx", "events.idx", "states.idx", "current.idx"];

impl Contexts {
    /// Opens the registry; one that is damaged anywhere is kept aside and made anew from the directories.
    pub fn repaired_registry(&self) -> Result<(Registry, Vec<String>), TaskError> {
        let mut done = Vec::new();
        let mut registry = self.registry()?;
        if let Some(reason) = registry.check()? {
            let opened = registry.identity();
            // Closed first: whoever closes a database last removes the journal that stands beside it.
            drop(registry);
            registry = self.renew_registry(opened, &reason)?;
            done.push(format!("damaged registry made anew: {reason}"));
        }
        for id in self.tasks()? {
            if registry.get(id)?.is_none() {
                match self.enter(id, &registry) {
                    Ok(()) => done.push(format!("task {id} entered into the registry")),
                    // `verify` tells what is wrong with it.
                    Err(TaskError::Log(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        for id in registry.uuids()? {
            if self.place(id).is_none() && registry.remove(id)? {
                done.push(format!("row of task {id} removed: its directory is gone"));
            }
        }
        Ok((registry, done))
    }

    /// Puts a task right and says what was done. Damaged bytes are kept aside.
    pub fn repair(&self, id: Uuid, registry: &Registry) -> Result<Vec<String>, TaskError> {
        let problems = self.verify(id, registry)?;
        let Some(dir) = self.place(id).filter(|_| !problems.is_empty()) else {
            return Ok(Vec::new());
        };
        let mut done = self.mend(id, &dir, &problems)?;
        for problem in &problems {
            if let Problem::Exposed { path, mode } = problem {
                let closed = fs::Permissions::from_mode(mode & 0o700);
                fs::set_permissions(path, closed)
                    .map_err(|error| LogError::io(path, "closed", error))?;
                done.push(format!("{} closed to others", path.display()));
            }
        }
        if problems
            .iter()
            .any(|problem| !matches!(problem, Problem::Exposed { .. }))
        {
            let lock = self.locked(id, &dir)?;
            for name in SIDECARS {
                let _ = fs::remove_file(dir.join(name));
            }
            drop(lock);
            done.extend(self.rewrite(id, &dir, registry)?);
        }
        Ok(done)
    }

    /// Takes the lock of a task, so that no writer is in the way.
    pub(crate) fn locked(&self, id: Uuid, dir: &Path) -> Result<Lock, TaskError> {
        match Lock::take(dir, self.address())? {
            Taken::Ours(lock, _) => Ok(lock),
            Taken::Held(holder) => {
                let source = OpenError::Held { holder };
                Err(TaskError::Open { task: id, source })
            }
        }
    }

    /// Derives everything of a task anew from its log.
    fn rewrite(&self, id: Uuid, dir: &Path, registry: &Registry) -> Result<Vec<String>, TaskError> {
        let opened = Writer::open(dir, Durability::Turn, &self.dirs());
        let (writer, repairs) = opened.map_err(|source| match source {
            OpenError::Log(error) => TaskError::Log(error),
            source => TaskError::Open { task: id, source },
        })?;
        for derived in Derived::ALL {
            if !derived.lines(writer.log())?.is_empty() || dir.join(derived.name()).exists() {
                derived.rewrite(writer.log())?;
            }
        }
        registry.set_counters(id, self.recount(writer.log())?)?;
        let mut done: Vec<String> = repairs.iter().map(|repair| repair.to_string()).collect();
        done.push("everything derived was derived anew".to_owned());
        Ok(done)
    }
}

/// How many bytes a task takes on disk.
pub fn size(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files
        .filter_map(|entry| entry.metadata().ok())
        .map(|meta| meta.len())
        .sum()
}
