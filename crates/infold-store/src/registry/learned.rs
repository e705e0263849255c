//! Carries facts learned about models, and the queue, over from a damaged registry.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::Registry;
use crate::{RegistryError, redacted_name};

/// The queue; a task's own log says whether it waits, but not its priority.
const QUEUE: (&str, &str) = ("queue", "uuid, priority, attempts, not_before");

/// The tables of data learned about models, and their columns.
const TABLES: [(&str, &str); 3] = [
    (
        "token_factors",
        "provider, model, factor, reports, updated_at",
    ),
    ("model_windows", "provider, model, window, updated_at"),
    (
        "model_quirks",
        "provider, model, alternate, plain, bound, updated_at",
    ),
];

impl Registry {
    /// Copies the rows that can still be read from a damaged registry; returns their number.
    pub(crate) fn carry_over(&self, damaged: &Path) -> u64 {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let Ok(from) = Connection::open_with_flags(damaged, flags) else {
            return 0;
        };
        self.carry_table(&from, QUEUE.0, QUEUE.1);
        TABLES
            .iter()
            .map(|(table, columns)| self.carry_table(&from, table, columns))
            .sum()
    }

    /// Returns the models with learned data, in the form in which redacted names are stored, if `is_meant`
    /// returns true for the provider or the model.
    pub(crate) fn learned_models(
        &self,
        mut is_meant: impl FnMut(&str) -> bool,
    ) -> Result<Vec<String>, RegistryError> {
        let mut models = Vec::new();
        for (provider, model) in self.models()? {
            if is_meant(&provider) || is_meant(&model) {
                models.push(model_name(&provider, &model));
            }
        }
        Ok(models)
    }

    /// Deletes the data learned about models, which are given as [`Registry::learned_models`] returns them.
    pub(crate) fn forget_models(&self, names: &[String]) -> Result<(), RegistryError> {
        if names.is_empty() {
            return Ok(());
        }
        for (provider, model) in self.models()? {
            if names.contains(&model_name(&provider, &model)) {
                for (table, _) in TABLES {
                    let sql = format!("DELETE FROM {table} WHERE provider = ?1 AND model = ?2");
                    self.run(|db| db.execute(&sql, [&provider, &model]))?;
                }
            }
        }
        Ok(())
    }

    fn models(&self) -> Result<Vec<(String, String)>, RegistryError> {
        let tables = TABLES.map(|(table, _)| format!("SELECT provider, model FROM {table}"));
        let sql = tables.join(" UNION ");
        self.run(|db| {
            db.prepare(&sql)?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
    }

    /// Reads a table from both ends, so that rows on either side of the damage are found.
    fn carry_table(&self, from: &Connection, table: &str, columns: &str) -> u64 {
        let places = vec!["?"; columns.split(',').count()].join(", ");
        let insert = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({places})");
        let mut carried = 0;
        for order in ["ASC", "DESC"] {
            let select = format!("SELECT {columns} FROM {table} ORDER BY rowid {order}");
            for row in readable(from, &select) {
                let kept = self.run(|db| db.execute(&insert, params_from_iter(&row)));
                carried += kept.unwrap_or(0) as u64;
            }
        }
        carried
    }
}

fn model_name(provider: &str, model: &str) -> String {
    redacted_name(&format!("{provider} {model}"))
}

/// The rows that a query gives before it fails.
fn readable(from: &Connection, select: &str) -> Vec<Vec<Value>> {
    let Ok(mut query) = from.prepare(select) else {
        return Vec::new();
    };
    let count = query.column_count();
    let Ok(rows) = query.query_map([], |row| {
        (0..count).map(|at| row.get(at)).collect::<Result<_, _>>()
    }) else {
        return Vec::new();
    };
    rows.map_while(Result::ok).collect()
}
