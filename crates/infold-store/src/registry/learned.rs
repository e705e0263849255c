//! Carries facts learned about models over from a damaged registry.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use super::Registry;

/// The tables that cannot be filled again from the tasks, and their columns.
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
    /// Takes over from a damaged registry what can still be read of it; returns how many rows that is.
    pub(crate) fn carry_over(&self, damaged: &Path) -> u64 {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let Ok(from) = Connection::open_with_flags(damaged, flags) else {
            return 0;
        };
        TABLES
            .iter()
            .map(|(table, columns)| self.carry_table(&from, table, columns))
            .sum()
    }

    /// Reads a table from both ends: what lies on either side of the damage is found.
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
