//! Windows that providers named, believed for a day.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension, params};

use super::row::{amount, instant, time};
use super::{Registry, RegistryError};

/// How long the reported window of a server is trusted, because it may be restarted with another one.
const BELIEVED: SignedDuration = SignedDuration::from_hours(24);

/// A window that a provider named for a model when a request was too long for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedWindow {
    /// The provider that named it.
    pub provider: String,
    /// The model, as it was asked for.
    pub model: String,
    /// The window in tokens.
    pub window: u64,
    /// When.
    pub learned_at: Timestamp,
}

/// Selects the rows of a model from all sources; `provider/model` is one of them.
const OF_MODEL: &str = "(model = ?1 OR model = ?1 || '[1m]' OR provider || '/' || model = ?1)";

impl Registry {
    /// The window that a provider named for a model lately, when a request was too long for it.
    pub fn window(
        &self,
        provider: &str,
        model: &str,
        at: Timestamp,
    ) -> Result<Option<u64>, RegistryError> {
        let sql = "SELECT window FROM model_windows
                   WHERE provider = ?1 AND model = ?2 AND updated_at >= ?3";
        let oldest = at.checked_sub(BELIEVED).unwrap_or(Timestamp::MIN);
        let values = params![provider, model, instant(oldest)];
        self.run(|db| {
            let window = db.query_row(sql, values, |row| row.get::<_, i64>(0));
            Ok(window.optional()?.and_then(|window| window.try_into().ok()))
        })
    }

    /// Keeps the window that a provider named for a model.
    pub fn set_window(
        &self,
        provider: &str,
        model: &str,
        window: u64,
        at: Timestamp,
    ) -> Result<(), RegistryError> {
        let sql = "INSERT INTO model_windows (provider, model, window, updated_at)
                   VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (provider, model) DO UPDATE SET
                       window = excluded.window,
                       updated_at = excluded.updated_at";
        let values = params![provider, model, amount(window), instant(at)];
        self.run(|db| db.execute(sql, values).map(|_| ()))
    }

    /// The windows of a model that are believed at this time.
    pub fn learned_windows(
        &self,
        model: &str,
        at: Timestamp,
    ) -> Result<Vec<LearnedWindow>, RegistryError> {
        let sql = format!(
            "SELECT provider, model, window, updated_at FROM model_windows
             WHERE {OF_MODEL} AND updated_at >= ?2 ORDER BY provider, model"
        );
        let oldest = at.checked_sub(BELIEVED).unwrap_or(Timestamp::MIN);
        self.run(|db| {
            let mut found = db.prepare(&sql)?;
            let rows = found.query_map(params![model, instant(oldest)], |row| {
                Ok(LearnedWindow {
                    provider: row.get("provider")?,
                    model: row.get("model")?,
                    window: row.get::<_, i64>("window")?.try_into().unwrap_or(0),
                    learned_at: time(row, "updated_at")?.unwrap_or(at),
                })
            })?;
            rows.collect()
        })
    }

    /// Forgets all windows of a model; returns how many there were.
    pub fn forget_windows(&self, model: &str) -> Result<usize, RegistryError> {
        let sql = format!("DELETE FROM model_windows WHERE {OF_MODEL}");
        self.run(|db| db.execute(&sql, params![model]))
    }

    /// Deletes the windows of a model that are smaller than a request that it accepted; returns whether there
    /// were any.
    pub fn forget_smaller_windows(
        &self,
        provider: &str,
        model: &str,
        took: u64,
    ) -> Result<bool, RegistryError> {
        let sql = "DELETE FROM model_windows
                   WHERE provider = ?1 AND model IN (?2, ?2 || '[1m]') AND window < ?3";
        let values = params![provider, model, amount(took)];
        self.run(|db| Ok(db.execute(sql, values)? > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_named_is_believed_for_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let now = Timestamp::now();
        let window = |model: &str, at| registry.window("here", model, at).unwrap();
        assert_eq!(window("m", now), None);
        registry.set_window("here", "m", 4096, now).unwrap();
        registry.set_window("here", "m", 2048, now).unwrap();
        assert_eq!(window("m", now), Some(2048));
        assert_eq!(window("other", now), None);
        assert_eq!(window("m", now + SignedDuration::from_hours(25)), None);
    }

    #[test]
    fn what_was_learned_can_be_looked_at_and_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        for (provider, model, window) in [
            ("here", "m", 4096),
            ("there", "m", 8192),
            ("there", "m[1m]", 200_000),
            ("there", "other", 1024),
        ] {
            registry.set_window(provider, model, window, now).unwrap();
        }
        let learned = |name: &str, at| {
            let found = registry.learned_windows(name, at).unwrap();
            let row = |row: LearnedWindow| (row.provider, row.window, row.learned_at);
            found.into_iter().map(row).collect::<Vec<_>>()
        };
        let row = |provider: &str, window| (provider.to_owned(), window, now);
        assert_eq!(
            learned("m", now),
            [row("here", 4096), row("there", 8192), row("there", 200_000)]
        );
        assert_eq!(learned("there/m", now), [row("there", 8192)]);
        assert_eq!(learned("m", now + SignedDuration::from_hours(25)), []);
        assert_eq!(registry.forget_windows("m").unwrap(), 3);
        assert_eq!(learned("m", now), []);
        assert_eq!(learned("other", now), [row("there", 1024)]);
    }

    #[test]
    fn a_window_that_a_larger_request_disproves_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let now = Timestamp::now();
        registry.set_window("here", "m", 4096, now).unwrap();
        let forgets = |took| registry.forget_smaller_windows("here", "m", took).unwrap();
        assert!(!forgets(4096));
        assert_eq!(registry.window("here", "m", now).unwrap(), Some(4096));
        assert!(forgets(4097));
        assert_eq!(registry.window("here", "m", now).unwrap(), None);
        assert!(!forgets(4097));
    }
}
