//! Deletes a task for good.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use uuid::Uuid;

use crate::file::files;
use crate::search::SearchIndex;
use crate::{ChainIndex, Contexts, LogError, TaskError, chain_index};

impl Contexts {
    /// Returns all descendants of a task, leaves first.
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

    /// Removes a task, whatever its status, from the disk, the registry and the index. A task that others
    /// continue stays, and the error lists them.
    ///
    /// A crash leaves either the task, or files that `clean` removes.
    pub fn delete(&self, id: Uuid) -> Result<(), TaskError> {
        let dir = self.known(id)?;
        let lock = self.locked(id, &dir)?;
        let by = self.continued_by(id)?;
        if !by.is_empty() {
            return Err(TaskError::Continued { task: id, by });
        }
        self.with_registry(|registry| registry.remove(id))?;
        let mut chains = chain_index::if_there(&self.root);
        if let Some(chains) = &mut chains {
            chains.forget(id)?;
        }
        let hidden = self.hide(&dir, id);
        drop(lock);
        if dir.exists() {
            return hidden.map(drop).map_err(TaskError::from);
        }
        // From here on the task is removed; only traces remain.
        hidden
            .map_err(TaskError::from)
            .and_then(|trash| self.wipe(id, &trash, chains))
            .map_err(|source| TaskError::Removed {
                task: id,
                source: Box::new(source),
            })
    }

    /// Deletes the files of a task, and its rows in the databases.
    fn wipe(&self, id: Uuid, trash: &Path, chains: Option<ChainIndex>) -> Result<(), TaskError> {
        fs::remove_dir_all(trash).map_err(|error| LogError::io(trash, "removed", error))?;
        self.checkpoints().forget(&[id])?;
        self.remove_torn_databases_with(id)?;
        // Its title was in the registry, and its name in the index.
        if let Some(mut chains) = chains {
            chains.purge()?;
        }
        self.forget_gone_in_search()?;
        self.with_registry(|registry| registry.purge())
    }

    /// Deletes the terms of removed tasks from the search index for good.
    pub(crate) fn forget_gone_in_search(&self) -> Result<(), TaskError> {
        let is_gone = |task| self.place(task).is_none();
        Ok(SearchIndex::forget_for_good(self.root(), is_gone)?)
    }

    /// Removes damaged databases that were set aside and know of a task.
    pub(crate) fn remove_torn_databases_with(&self, id: Uuid) -> Result<(), LogError> {
        let torn = files(&self.root, |name| name.starts_with("torn-"))?;
        let text = id.to_string();
        let mut stems = BTreeSet::new();
        for path in torn.iter().filter(|path| path.is_file()) {
            let bytes = fs::read(path).map_err(|error| LogError::io(path, "read", error))?;
            let knows = |id: &[u8]| memchr::memmem::find(&bytes, id).is_some();
            if knows(text.as_bytes()) || knows(id.as_bytes()) {
                stems.insert(stem(path).to_owned());
            }
        }
        for path in torn.iter().filter(|path| stems.contains(stem(path))) {
            fs::remove_file(path).map_err(|error| LogError::io(path, "removed", error))?;
        }
        Ok(())
    }
}

/// Returns the prefix of the names of a database and of its journal files.
fn stem(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    name.split_once(".db").map_or(name, |(stem, _)| stem)
}
