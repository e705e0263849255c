//! Removes a task for good, because somebody wants it gone.

use std::fs;
use std::path::Path;

use uuid::Uuid;

use crate::{Chains, Contexts, LogError, TaskError, chains};

impl Contexts {
    /// The tasks that continue a task, or one that does, those first that nobody continues.
    pub fn continued_by(&self, id: Uuid) -> Result<Vec<Uuid>, TaskError> {
        self.with_registry(|registry| {
            let (mut found, mut next) = (Vec::new(), 0);
            let mut of = id;
            loop {
                for fork in registry.forks_of(of)? {
                    if self.place(fork).is_some() && !found.contains(&fork) {
                        found.push(fork);
                    }
                }
                match found.get(next) {
                    Some(fork) => (of, next) = (*fork, next + 1),
                    None => break,
                }
            }
            found.reverse();
            Ok::<_, TaskError>(found)
        })
    }

    /// Removes a task, whatever its status, from the disk, the registry and the index. A task that others continue stays,
    /// and they are named.
    ///
    /// A crash leaves the task, or what `clean` removes.
    pub fn delete(&self, id: Uuid) -> Result<(), TaskError> {
        let dir = self.known(id)?;
        let lock = self.locked(id, &dir)?;
        let by = self.continued_by(id)?;
        if !by.is_empty() {
            return Err(TaskError::Continued { task: id, by });
        }
        self.with_registry(|registry| registry.remove(id))?;
        let mut chains = chains::if_there(&self.root);
        if let Some(chains) = &mut chains {
            chains.forget(id)?;
        }
        let hidden = self.hide(&dir, id);
        drop(lock);
        if dir.exists() {
            return hidden.map(drop).map_err(TaskError::from);
        }
        // From here on it is removed, and what is left are traces.
        hidden
            .map_err(TaskError::from)
            .and_then(|trash| self.wipe(&trash, chains))
            .map_err(|source| TaskError::Removed {
                task: id,
                source: Box::new(source),
            })
    }

    /// Removes the files of a task, and what is left of it in the databases.
    fn wipe(&self, trash: &Path, chains: Option<Chains>) -> Result<(), TaskError> {
        fs::remove_dir_all(trash).map_err(|error| LogError::io(trash, "removed", error))?;
        // What it was about stood in the registry, and what it was called in the index.
        if let Some(mut chains) = chains {
            chains.purge()?;
        }
        self.with_registry(|registry| registry.purge())
    }
}
