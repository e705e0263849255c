//! Makes a lost or damaged `metadata.json` again, from the registry and the log.

use std::fs;
use std::path::Path;

use infold_log::{Seq, Span};
use infold_wire::Wire;
use uuid::Uuid;

use crate::file::{self, Access};
use crate::{Contexts, InEffect, Log, LogError, Metadata, Registry, TaskError, TaskRow};

impl Metadata {
    /// Checks the metadata of a task; a missing file, or one of another task, counts as damage.
    pub(crate) fn check(dir: &Path, id: Uuid) -> Result<(), LogError> {
        let path = dir.join(Metadata::NAME);
        if !path.exists() {
            return Err(LogError::damaged(&path, 0, "it is missing"));
        }
        let found = Metadata::read(dir)?.uuid;
        if found != id {
            let reason = format!("it belongs to task {found}");
            return Err(LogError::damaged(&path, 0, reason));
        }
        Ok(())
    }
}

impl Contexts {
    /// Replaces metadata that cannot be used. The damaged file is kept aside.
    ///
    /// Facts that cannot be recovered, such as the agent's session that the task was made from, are left out.
    pub(crate) fn restore_metadata(
        &self,
        id: Uuid,
        dir: &Path,
        registry: &Registry,
    ) -> Result<Option<String>, TaskError> {
        let Err(LogError::Damaged { path, .. }) = Metadata::check(dir, id) else {
            return Ok(None);
        };
        let row = registry.get(id)?;
        let source = match row {
            Some(_) => "the registry and the log",
            None => "the log",
        };
        let metadata = self.metadata_of(id, dir, row)?;
        let lock = self.locked(id, dir)?;
        let kept = if path.exists() {
            let aside = file::move_aside(&path)?.display().to_string();
            format!("; the damaged file is {aside}")
        } else {
            String::new()
        };
        file::replace(&path, metadata.encode().as_bytes())?;
        file::sync_dir(dir)?;
        drop(lock);
        Ok(Some(format!(
            "{} made again from {source}{kept}",
            Metadata::NAME
        )))
    }

    fn metadata_of(
        &self,
        id: Uuid,
        dir: &Path,
        row: Option<TaskRow>,
    ) -> Result<Metadata, TaskError> {
        let log = Log::open(dir, Access::Rederive, &self.dirs());
        // A log that is damaged as well is mended after this.
        let log = log.ok().map(|(log, _)| log);
        let wire = log.as_ref().map_or(Ok(Wire::Chat), common_wire)?;
        let mut metadata = Metadata {
            uuid: id,
            wire: Some(wire.name().to_owned()),
            ..Metadata::default()
        };
        if let Some(row) = row {
            let created = row.created_at.as_millisecond();
            metadata = Metadata {
                task_source: row.task_source,
                owner: row.owner,
                repo: row.repo,
                task_type: row.task_type,
                task_id: row.task_id,
                created_at: u64::try_from(created).unwrap_or(0),
                process_id: row.process_id.unwrap_or(0),
                hostname: row.hostname.unwrap_or_default(),
                llm_provider: row.llm_provider,
                user: row.user,
                agent: row.agent,
                cwd: row.cwd,
                // The registry does not distinguish chosen values from defaults.
                in_effect: InEffect {
                    model: row.model,
                    context_length: row.context_length,
                    compression_threshold: None,
                },
                ..metadata
            };
        } else if let Some(log) = &log {
            metadata.created_at = log.last_time()?;
        }
        if metadata.created_at == 0 {
            let made = fs::metadata(dir).and_then(|meta| meta.modified());
            let since = made
                .ok()
                .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            let millis = since.map_or(0, |since| since.as_millis());
            metadata.created_at = u64::try_from(millis).unwrap_or(0);
        }
        Ok(metadata)
    }
}

/// The wire on which every message can be sent as it is; chat if there is none.
fn common_wire(log: &Log) -> Result<Wire, LogError> {
    let last = Seq::new(log.state().at().seq);
    let all = Seq::new(1)
        .zip(last)
        .and_then(|(first, last)| Span::new(first, last));
    let Some(all) = all else {
        return Ok(Wire::Chat);
    };
    for wire in Wire::ALL {
        if log.is_native(all, wire)? {
            return Ok(wire);
        }
    }
    Ok(Wire::Chat)
}
