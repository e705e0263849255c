//! Requirements of a provider's model that its wire does not document.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::row::instant;
use super::{Registry, RegistryError};

/// Requirements of a provider's model that its wire does not document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quirks {
    /// Roles must alternate.
    pub alternate: bool,
    /// Messages must be plain: members of another provider are refused.
    pub plain: bool,
    /// Thinking is refused behind other messages than those that it was signed behind.
    pub bound: bool,
}

impl Registry {
    /// Returns the learned requirements of a provider's model.
    pub fn quirks(&self, provider: &str, model: &str) -> Result<Quirks, RegistryError> {
        let sql =
            "SELECT alternate, plain, bound FROM model_quirks WHERE provider = ?1 AND model = ?2";
        let quirks = self.run(|db| {
            let quirks = |row: &rusqlite::Row<'_>| {
                Ok(Quirks {
                    alternate: row.get(0)?,
                    plain: row.get(1)?,
                    bound: row.get(2)?,
                })
            };
            db.query_row(sql, [provider, model], quirks).optional()
        })?;
        Ok(quirks.unwrap_or_default())
    }

    /// Stores the data learned about a provider's model.
    pub fn set_quirks(
        &self,
        provider: &str,
        model: &str,
        quirks: Quirks,
        at: Timestamp,
    ) -> Result<(), RegistryError> {
        let sql = "INSERT INTO model_quirks (provider, model, alternate, plain, bound, updated_at)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                   ON CONFLICT (provider, model) DO UPDATE SET
                       alternate = excluded.alternate,
                       plain = excluded.plain,
                       bound = excluded.bound,
                       updated_at = excluded.updated_at";
        let Quirks {
            alternate,
            plain,
            bound,
        } = quirks;
        let values = params![provider, model, alternate, plain, bound, instant(at)];
        self.run(|db| db.execute(sql, values).map(|_| ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learned_is_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        assert_eq!(registry.quirks("here", "m").unwrap(), Quirks::default());
        let quirks = Quirks {
            alternate: true,
            plain: false,
            bound: true,
        };
        registry
            .set_quirks("here", "m", quirks, Timestamp::now())
            .unwrap();
        drop(registry);
        let registry = Registry::open(dir.path()).unwrap();
        assert_eq!(registry.quirks("here", "m").unwrap(), quirks);
        assert_eq!(registry.quirks("here", "other").unwrap(), Quirks::default());
    }
}
