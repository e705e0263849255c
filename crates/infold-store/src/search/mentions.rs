//! Looks up which messages of a task mention a term.

use std::fs;
use std::time::{Instant, SystemTime};

use infold_log::Seq;
use infold_wire::terms::{FormKind, Query};
use rusqlite::params;
use uuid::Uuid;

use super::fill::Behind;
use super::filter::in_a_row;
use super::index::SearchIndex;
use super::scope::{Scope, parts};
use crate::{Contexts, TaskError};

/// The most rows that are read in a store with other tasks between those that a task continues.
const MAX_ROWS: usize = 2000;

/// The search index, open for look-ups of terms in the messages of one task.
pub struct MentionIndex {
    index: SearchIndex,
    scope: Option<Scope>,
}

impl Contexts {
    /// Opens the search index for a task and the tasks that it continues, brought up to their logs as far as there is time.
    ///
    /// Only these tasks are looked at, so that it does not matter how many others there are.
    pub fn mention_index(&self, task: Uuid, deadline: Instant) -> Result<MentionIndex, TaskError> {
        let mut index = SearchIndex::open(self.root())?;
        for (holder, _) in self.lineage(task)? {
            let Some(dir) = self.place(holder) else {
                continue;
            };
            let len = fs::metadata(dir.join("messages.jsonl")).map_or(0, |meta| meta.len());
            let mark = index.mark(holder)?;
            if mark.map_or(0, |mark| mark.bytes) != len && Instant::now() < deadline {
                let behind = Behind {
                    task: holder,
                    mark,
                    len,
                    changed: SystemTime::UNIX_EPOCH,
                };
                self.index_task(&mut index, &behind, deadline)?;
            }
        }
        let scope = Scope::of(self, Some(&[task]), &mut index)?;
        Ok(MentionIndex { index, scope })
    }
}

impl MentionIndex {
    /// Returns the messages that mention a name, a path or other words in a row: the newest first, at most `limit` of them.
    pub fn mentions(&mut self, text: &str, limit: usize) -> Result<Vec<Seq>, TaskError> {
        let Some(scope) = &self.scope else {
            return Ok(Vec::new());
        };
        let query = Query::parse(&format!("\"{}\"", text.replace('"', " ")));
        let expression = match (query.phrases.first(), query.terms.first()) {
            (Some(words), _) => in_a_row(words),
            (None, Some(term)) => {
                let exact = term.forms.iter().find(|form| form.kind == FormKind::Word);
                match exact {
                    Some(form) => format!("\"{}\"", form.term),
                    None => return Ok(Vec::new()),
                }
            }
            (None, None) => return Ok(Vec::new()),
        };
        let Some((first, last, is_one_task)) = scope.bounds() else {
            return Ok(Vec::new());
        };
        let max_rows = if is_one_task { limit } else { MAX_ROWS };
        // Use one query for all tasks that it continues: rows of others between them are skipped.
        let mut found = self.index.run(|db| {
            let mut statement = db.prepare_cached(
                "SELECT rowid FROM terms WHERE terms MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC",
            )?;
            let rows = statement.query_map(params![expression, first, last], |row| row.get(0))?;
            let mut found = Vec::new();
            for row in rows.take(max_rows) {
                let row: i64 = row?;
                found.extend(parts(row).1.filter(|_| scope.holds(row)));
            }
            Ok(found)
        })?;
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.truncate(limit);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Durability, Metadata};
    use infold_log::steer::Target;

    #[test]
    fn names_and_paths_are_found_whole_and_the_newest_first() {
        let root = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(root.path(), Durability::Never);
        let task = contexts.create(Metadata::default()).unwrap();
        let other = contexts.create(Metadata::default()).unwrap();
        let said = [
            r#"{"role":"user","content":"see src/net/retry_budget.rs"}"#,
            r#"{"role":"assistant","content":"src/net holds retry_budget, 1750"}"#,
            r#"{"role":"user","content":"and retry_budget again"}"#,
        ];
        for id in [task, other] {
            contexts.write(id).unwrap().0.append(&said).unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut index = contexts.mention_index(task, deadline).unwrap();
        let mut seqs = |text: &str, limit| -> Vec<u64> {
            let found = index.mentions(text, limit).unwrap();
            found.into_iter().map(Seq::get).collect()
        };
        assert_eq!(seqs("src/net/retry_budget.rs", 9), [1]);
        assert_eq!(seqs("retry_budget", 9)[..2], [3, 2]);
        assert_eq!(seqs("retry_budget", 1), [3]);
        assert_eq!(seqs("1750", 9), [2]);
        assert!(seqs("nowhere_at_all", 9).is_empty());
        assert!(seqs("\" OR * -", 9).is_empty());
    }

    #[test]
    fn what_a_chain_of_forks_continues_is_found_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let contexts = Contexts::new(root.path(), Durability::Never);
        let mut task = contexts.create(Metadata::default()).unwrap();
        for turn in 0..5 {
            let said = [
                format!(r#"{{"role":"user","content":"take port_{turn} of shared_name"}}"#),
                r#"{"role":"assistant","content":"done"}"#.to_owned(),
                format!(r#"{{"role":"user","content":"left_behind_{turn} shared_name"}}"#),
            ];
            contexts.write(task).unwrap().0.append(&said).unwrap();
            let other = contexts.create(Metadata::default()).unwrap();
            contexts.write(other).unwrap().0.append(&said).unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            contexts.fill_search_index(deadline).unwrap();
            let at = Target::Message(turn * 2 + 2);
            task = contexts.fork(task, Some(at)).unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut index = contexts.mention_index(task, deadline).unwrap();
        let mut seqs = |text: &str| -> Vec<u64> {
            let found = index.mentions(text, 9).unwrap();
            found.into_iter().map(Seq::get).collect()
        };
        assert_eq!(seqs("shared_name"), [9, 7, 5, 3, 1]);
        assert_eq!(seqs("port_1"), [3]);
        assert!(seqs("left_behind_1").is_empty());
    }
}
