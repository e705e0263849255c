//! The table of redactions: digests by which copies are recognised.

use infold_log::EventId;
use infold_wire::digest::Digest;
use rusqlite::{Connection, Row, params};
use uuid::Uuid;

use super::ChainIndex;
use crate::redacted_digests::{RedactedDigests, TaskRedactions};
use crate::redacted_lines::RedactedLine;
use crate::redacted_name::{NAME_KINDS, name_digest};
use crate::redacted_values::RedactedValue;
use crate::{RegistryError, stored};

/// The application id of an index that contains the redactions of all tasks, with names and lines.
const WITH_REDACTED: i64 = 2;

pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS redacted (
        digest BLOB NOT NULL,
        task BLOB NOT NULL,
        event INTEGER NOT NULL,
        PRIMARY KEY (digest, task, event)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS redacted_task ON redacted (task);
    CREATE TABLE IF NOT EXISTS redacted_texts (
        kind INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        sum INTEGER NOT NULL,
        digest TEXT NOT NULL,
        task BLOB NOT NULL,
        event INTEGER NOT NULL,
        PRIMARY KEY (digest, task, event, kind)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS redacted_texts_task ON redacted_texts (task);
";

/// The kinds of rows with texts: lines of messages, and texts of frames.
const LINE: i64 = 0;
const OF_PROMPT: i64 = 1;

impl ChainIndex {
    /// Replaces the digests by which copies of a task's redacted texts are recognised.
    pub fn set_redacted(
        &mut self,
        task: Uuid,
        redactions: &TaskRedactions,
    ) -> Result<(), RegistryError> {
        self.write(|db| {
            forget_redacted(db, task)?;
            let sql = "INSERT OR IGNORE INTO redacted (digest, task, event) VALUES (?1, ?2, ?3)";
            let mut add = db.prepare_cached(sql)?;
            for (digest, event) in &redactions.digests {
                add.execute(params![digest, task.as_bytes(), row_number(*event)])?;
            }
            let sql = "INSERT OR IGNORE INTO redacted_texts (kind, bytes, sum, digest, task, event) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let mut add = db.prepare_cached(sql)?;
            let mut add_text = |kind: i64, bytes: usize, sum: u32, digest: &str, event: EventId| {
                let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
                let event = row_number(event);
                add.execute(params![kind, bytes, sum, digest, task.as_bytes(), event])
            };
            for (line, event) in &redactions.lines {
                let digest = stored::hex(Some(line.digest));
                add_text(LINE, line.bytes, line.start.into(), &digest, *event)?;
            }
            for (value, event) in &redactions.of_prompts {
                add_text(OF_PROMPT, value.bytes, value.sum, &value.digest, *event)?;
            }
            Ok(())
        })
    }

    /// Returns whether the redactions of the existing tasks were added.
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

    /// Returns whether a name, given in its redacted form, was redacted, as the name of a conversation or as
    /// the key of a push.
    pub fn is_redacted_name(&mut self, redacted: &str) -> Result<bool, RegistryError> {
        for kind in NAME_KINDS {
            if self.has_name(&format!("{kind} {redacted}"))? {
                return Ok(true);
            }
        }
        match name_digest(redacted) {
            Some(digest) => self.is_redacted(&digest),
            None => Ok(false),
        }
    }

    /// Returns the digests of all that was redacted.
    pub fn redacted(&mut self) -> Result<RedactedDigests, RegistryError> {
        self.run(|db| {
            let mut all = RedactedDigests::default();
            let mut digests = db.prepare_cached("SELECT task, event, digest FROM redacted")?;
            let mut rows = digests.query([])?;
            while let Some(row) = rows.next()? {
                if let Some(of) = event_of(row)? {
                    let digest: Digest = row.get(2)?;
                    all.add(digest, of);
                }
            }
            let sql = "SELECT task, event, kind, bytes, sum, digest FROM redacted_texts";
            let mut texts = db.prepare_cached(sql)?;
            let mut rows = texts.query([])?;
            while let Some(row) = rows.next()? {
                if let Some(of) = event_of(row)? {
                    add_text(row, of, &mut all)?;
                }
            }
            Ok(all)
        })
    }
}

/// Deletes the redactions of a task.
pub(super) fn forget_redacted(db: &Connection, task: Uuid) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM redacted WHERE task = ?1",
        "DELETE FROM redacted_texts WHERE task = ?1",
    ] {
        db.prepare_cached(sql)?.execute([task.as_bytes()])?;
    }
    Ok(())
}

fn row_number(event: EventId) -> i64 {
    i64::try_from(event.get()).unwrap_or(i64::MAX)
}

/// Reads the task and the event that a row begins with.
fn event_of(row: &Row<'_>) -> rusqlite::Result<Option<(Uuid, EventId)>> {
    let (task, event): (_, i64) = (Uuid::from_bytes(row.get(0)?), row.get(1)?);
    let event = u64::try_from(event).ok().and_then(EventId::new);
    Ok(event.map(|event| (task, event)))
}

/// Reads a row with a text. One that no version writes is passed over.
fn add_text(row: &Row<'_>, of: (Uuid, EventId), all: &mut RedactedDigests) -> rusqlite::Result<()> {
    let (kind, bytes, sum): (i64, i64, u32) = (row.get(2)?, row.get(3)?, row.get(4)?);
    let digest: String = row.get(5)?;
    let Ok(bytes) = usize::try_from(bytes) else {
        return Ok(());
    };
    match kind {
        LINE => {
            let digest = stored::unhex(&digest).flatten();
            if let (Ok(start), Some(digest)) = (u16::try_from(sum), digest) {
                let line = RedactedLine {
                    bytes,
                    start,
                    digest,
                };
                all.add_line(line, of);
            }
        }
        OF_PROMPT => all.add_of_prompt(RedactedValue {
            bytes,
            sum,
            digest,
            is_of_prompt: true,
        }),
        _ => {}
    }
    Ok(())
}
