//! Which rows of the index count for a search: scope, phrases, exclusions, role, tool, file, time.

use std::collections::HashSet;

use infold_wire::terms::Query;
use rusqlite::Connection;

use super::SearchRequest;
use super::index::SearchIndex;
use super::scan::wanted_facts;
use super::scope::Scope;
use crate::RegistryError;

/// Which rows count.
pub struct RowFilter<'a> {
    scope: &'a Scope,
    /// Only these rows, if the request has filters other than words.
    allowed: Option<HashSet<i64>>,
    excluded: HashSet<i64>,
}

impl RowFilter<'_> {
    /// Reads which rows a query and a request take.
    pub fn new<'a>(
        index: &mut SearchIndex,
        query: &Query,
        request: &SearchRequest<'_>,
        scope: &'a Scope,
    ) -> Result<RowFilter<'a>, RegistryError> {
        let facts = wanted_facts(
            request.role,
            request.tool.as_deref(),
            request.file.as_deref(),
        );
        let facts = facts.iter().map(|fact| format!("(facts : \"{fact}\")"));
        let phrases = query.phrases.iter().map(|words| in_a_row(words));
        let wanted: Vec<String> = facts.chain(phrases).collect();
        let unwanted: Vec<String> = query.excluded.iter().map(|words| in_a_row(words)).collect();
        let (since, until) = (
            request.since.unwrap_or(0),
            request.until.unwrap_or(u64::MAX),
        );
        let has_times = request.since.is_some() || request.until.is_some();
        index.run(|db| {
            let mut allowed = None;
            if !wanted.is_empty() {
                allowed = Some(matching_rows(db, &wanted.join(" AND "))?);
            }
            if has_times {
                let int = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
                let mut rows =
                    db.prepare_cached("SELECT row FROM documents WHERE time BETWEEN ?1 AND ?2")?;
                let rows = rows.query_map([int(since), int(until)], |row| row.get(0))?;
                let rows: HashSet<i64> = rows.collect::<rusqlite::Result<_>>()?;
                allowed = Some(match allowed {
                    Some(allowed) => allowed.intersection(&rows).copied().collect(),
                    None => rows,
                });
            }
            let excluded = if unwanted.is_empty() {
                HashSet::new()
            } else {
                matching_rows(db, &unwanted.join(" OR "))?
            };
            Ok(RowFilter {
                scope,
                allowed,
                excluded,
            })
        })
    }

    /// Says whether a row counts.
    pub fn takes(&self, row: i64) -> bool {
        self.scope.holds(row)
            && self
                .allowed
                .as_ref()
                .is_none_or(|allowed| allowed.contains(&row))
            && !self.excluded.contains(&row)
    }
}

/// The expression for words in a row. Terms hold nothing that FTS5 would read as syntax.
pub(super) fn in_a_row(words: &[String]) -> String {
    format!("(words : \"{}\")", words.join(" "))
}

fn matching_rows(db: &Connection, expression: &str) -> rusqlite::Result<HashSet<i64>> {
    db.prepare_cached("SELECT rowid FROM terms WHERE terms MATCH ?1")?
        .query_map([expression], |row| row.get(0))?
        .collect()
}
