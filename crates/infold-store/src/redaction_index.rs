//! Copies the redactions in the logs to the conversation index (`chains.db`).

use std::path::Path;

use memchr::memmem;

use crate::chain_index::ChainIndex;
use crate::file::{Access, Growing};
use crate::lines::Lines;
use crate::redacted_name::redacted_name;
use crate::{Contexts, LogError, PushKey, TaskError};

impl Contexts {
    /// Adds the redactions of all tasks to an index, unless that was done before.
    pub fn add_redacted(&self, chains: &mut ChainIndex) -> Result<(), TaskError> {
        if chains.has_redacted()? {
            return Ok(());
        }
        for task in self.tasks()? {
            let mentions = self.place(task).map(|dir| mentions_redaction(&dir));
            if !mentions.transpose()?.unwrap_or_default() {
                continue;
            }
            // A task that cannot be read is not continued either.
            let Ok(log) = self.read(task) else { continue };
            let redactions = log.redactions()?;
            if !redactions.is_empty() {
                chains.set_redacted(task, &redactions)?;
            }
        }
        Ok(chains.redacted_filled()?)
    }

    /// Returns the key of a push in the form in which it is written: one that was redacted in a task stays so in every other.
    pub fn stored_key(&self, key: PushKey) -> Result<PushKey, TaskError> {
        let redacted = redacted_name(key.name());
        let mut chains = ChainIndex::open(self.root())?;
        self.add_redacted(&mut chains)?;
        if chains.is_redacted_name(&redacted)? {
            Ok(key.renamed(redacted))
        } else {
            Ok(key)
        }
    }
}

/// Returns whether an event of a task may say that something was redacted. Few do, and the log is opened for those alone.
fn mentions_redaction(dir: &Path) -> Result<bool, LogError> {
    let events = Growing::open(dir.join("events.jsonl"), Access::Read)?;
    let mut lines = Lines::new(&events, 0);
    while let Some(line) = lines.next()? {
        if memmem::find(line.bytes, b"redact").is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
