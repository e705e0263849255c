//! The table of what was redacted: digests by which copies are recognised.

use infold_log::EventId;
use infold_wire::digest::Digest;
use rusqlite::params;
use uuid::Uuid;

use super::ChainIndex;
use crate::RegistryError;
use crate::redacted_digests::RedactedDigests;

/// The application id of an index that holds what was redacted in all tasks.
const WITH_REDACTED: i64 = 1;

impl ChainIndex {
    /// Sets the digests by which copies of what was redacted in a task are recognised, each with its event.
    pub fn set_redacted(
        &mut self,
        task: Uuid,
        digests: &[(Digest, EventId)],
    ) -> Result<(), RegistryError> {
        self.write(|db| {
            db.prepare_cached("DELETE FROM redacted WHERE task = ?1")?
                .execute([task.as_bytes()])?;
            let sql = "INSERT OR IGNORE INTO redacted (digest, task, event) VALUES (?1, ?2, ?3)";
            let mut add = db.prepare_cached(sql)?;
            for (digest, event) in digests {
                let event = i64::try_from(event.get()).unwrap_or(i64::MAX);
                add.execute(params![digest, task.as_bytes(), event])?;
            }
            Ok(())
        })
    }

    /// Returns whether what was redacted in the tasks that are there was added.
    pub(crate) fn has_redacted(&mut self) -> Result<bool, RegistryError> {
        let id = self.run(|db| db.query_row("PRAGMA application_id", [], |row| row.get(0)));
        id.map(|id: i64| id == WITH_REDACTED)
    }

    /// Notes that it was. Who is stopped before that adds it again.
    pub(crate) fn redacted_filled(&mut self) -> Result<(), RegistryError> {
        self.write(|db| db.pragma_update(None, "application_id", WITH_REDACTED))
    }

    /// Returns whether something with this digest was redacted.
    pub(crate) fn is_redacted(&mut self, digest: &Digest) -> Result<bool, RegistryError> {
        self.run(|db| {
            db.prepare_cached("SELECT 1 FROM redacted WHERE digest = ?1 LIMIT 1")?
                .exists([digest])
        })
    }

    /// Returns the digests of all that was redacted.
    pub fn redacted(&mut self) -> Result<RedactedDigests, RegistryError> {
        self.run(|db| {
            let mut all = db.prepare_cached("SELECT digest, task, event FROM redacted")?;
            let rows = all.query_map([], |row| {
                let event: i64 = row.get(2)?;
                let event = u64::try_from(event).ok().and_then(EventId::new);
                Ok((row.get(0)?, Uuid::from_bytes(row.get(1)?), event))
            })?;
            let rows = rows.filter_map(|row: rusqlite::Result<_>| {
                row.map(|(digest, task, event)| Some((digest, task, event?)))
                    .transpose()
            });
            rows.collect()
        })
    }
}
