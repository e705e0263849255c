use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension, params};

use super::row::{amount, instant};
use super::{Registry, RegistryError};

/// A server may be started anew with another window: what it said is believed for so long.
const BELIEVED: SignedDuration = SignedDuration::from_hours(24);

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
}
