//! The index of conversations, filled again from the tasks' own files when it is lost.

use std::sync::atomic::Ordering::SeqCst;

use infold_log::{Past as _, Role, Seq};
use infold_store::{Chains, Contexts, Key, Metadata, RegistryError};
use infold_wire::normal;
use uuid::Uuid;

use super::{DeskError, Inner};
use crate::held::Places;

/// Opens the index of a contexts directory.
pub(super) fn open(contexts: &Contexts) -> Result<Chains, RegistryError> {
    let mut chains = Chains::open(contexts.root())?;
    if chains.is_new() {
        fill(&mut chains, contexts);
    }
    Ok(chains)
}

impl Inner {
    /// How often the index was started anew.
    pub fn mended(&self) -> u64 {
        self.mended.load(SeqCst)
    }

    /// Starts an index anew that turned out to be damaged, unless somebody did since.
    pub fn mend(&self, mended: u64) -> Result<(), DeskError> {
        let mut chains = self.chains();
        if self.mended() == mended {
            *chains = Chains::anew(self.contexts.root())?;
            fill(&mut chains, &self.contexts);
            self.mended.fetch_add(1, SeqCst);
            tracing::warn!(aside = ?chains.torn(), "the index of conversations was damaged, and made anew");
        }
        Ok(())
    }
}

/// Adds the tasks that are there. One that cannot be read is left out: it could not go on anyway.
fn fill(chains: &mut Chains, contexts: &Contexts) {
    for task in contexts.tasks().unwrap_or_default() {
        let added = rows(contexts, task).and_then(|rows| match rows.is_empty() {
            true => Ok(()),
            false => Ok(chains.add(task, &rows)?),
        });
        if let Err(error) = added {
            tracing::warn!(%task, %error, "a conversation will not be recognised");
        }
    }
}

/// What leads to a task. As long as nobody answered, more than the words would count, and that is lost.
fn rows(contexts: &Contexts, task: Uuid) -> Result<Vec<(Key, Seq)>, DeskError> {
    let mut rows = Vec::new();
    let Some(dir) = contexts.place(task) else {
        return Ok(rows);
    };
    if Metadata::read(&dir)?.task_source.as_deref() != Some("proxy") {
        return Ok(rows);
    }
    let log = contexts.read(task)?;
    let (mut chain, mut answered) = (normal::root(), false);
    for (seq, digest) in Places::default().follow(&log)? {
        chain = normal::chain(chain, *digest);
        answered |= log.record(*seq)?.role == Role::Assistant;
        // What a fork has from its parent leads to the parent.
        if answered && seq.get() >= log.own().seq {
            rows.push((chain, *seq));
        }
    }
    Ok(rows)
}
