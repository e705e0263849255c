//! Decides which ended tasks may be removed.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use uuid::Uuid;

use super::row::{self, TaskRow, Text, instant};

pub(super) fn expired(db: &Connection, before: Timestamp) -> rusqlite::Result<Vec<TaskRow>> {
    // Use one transaction, so that both queries see the same state.
    let moment = Transaction::new_unchecked(db, TransactionBehavior::Deferred)?;
    let old = ended(&moment, before)?;
    let order = removable(old.iter().map(|row| row.uuid), &parents(&moment)?);
    let mut rows: HashMap<Uuid, TaskRow> = old.into_iter().map(|row| (row.uuid, row)).collect();
    Ok(order
        .into_iter()
        .filter_map(|uuid| rows.remove(&uuid))
        .collect())
}

fn ended(db: &Connection, before: Timestamp) -> rusqlite::Result<Vec<TaskRow>> {
    let sql = "SELECT * FROM tasks WHERE status IN ('completed', 'failed')
               AND coalesce(completed_at, created_at) < ?1 ORDER BY created_at, rowid";
    db.prepare(sql)?
        .query_map([instant(before)], row::read)?
        .collect()
}

fn parents(db: &Connection) -> rusqlite::Result<HashMap<Uuid, Uuid>> {
    let pair = |row: &rusqlite::Row<'_>| {
        Ok((
            row.get::<_, Text<Uuid>>(0)?.0,
            row.get::<_, Text<Uuid>>(1)?.0,
        ))
    };
    db.prepare("SELECT child, parent FROM forks")?
        .query_map([], pair)?
        .collect()
}

/// Returns those of the `old` tasks that may be removed, forks before their parents.
///
/// A task may be removed once all its forks are. A task that is not old stays, as does a fork that has no row
/// yet, and so do all their ancestors.
fn removable(old: impl Iterator<Item = Uuid>, parents: &HashMap<Uuid, Uuid>) -> Vec<Uuid> {
    let mut forks: HashMap<Uuid, usize> = HashMap::new();
    for parent in parents.values() {
        *forks.entry(*parent).or_default() += 1;
    }
    let old: Vec<Uuid> = old.collect();
    let may_go: HashSet<Uuid> = old.iter().copied().collect();
    let mut order: Vec<Uuid> = old
        .into_iter()
        .filter(|task| !forks.contains_key(task))
        .collect();
    let mut next = 0;
    while let Some(task) = order.get(next) {
        next += 1;
        let Some(parent) = parents.get(task) else {
            continue;
        };
        let left = forks.entry(*parent).or_default();
        *left -= 1;
        if *left == 0 && may_go.contains(parent) {
            order.push(*parent);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    /// Tasks by number: whether each is old, and which earlier one it was forked from.
    fn any_family() -> impl Strategy<Value = Vec<(bool, Option<usize>)>> {
        prop::collection::vec(
            (
                prop::bool::weighted(0.8),
                any::<Option<prop::sample::Index>>(),
            ),
            0..40,
        )
        .prop_map(|tasks| {
            let earlier = |number: usize, from: Option<prop::sample::Index>| {
                from.filter(|_| number > 0).map(|from| from.index(number))
            };
            let numbered = tasks.into_iter().enumerate();
            numbered
                .map(|(number, (old, from))| (old, earlier(number, from)))
                .collect()
        })
    }

    fn goes(family: &[(bool, Option<usize>)], number: usize) -> bool {
        let is_fork = |other: &usize| family[*other].1 == Some(number);
        family[number].0
            && (0..family.len())
                .filter(is_fork)
                .all(|fork| goes(family, fork))
    }

    proptest! {
        /// A task is removed if it and all its direct and indirect forks are old, forks first.
        #[test]
        fn what_is_referred_to_stays(family in any_family()) {
            let numbers = || 0..family.len();
            let parents: HashMap<Uuid, Uuid> = numbers()
                .filter_map(|number| Some((task(number), task(family[number].1?))))
                .collect();
            let old = numbers().filter(|number| family[*number].0).map(task);
            let order = removable(old, &parents);

            let place = |number: usize| order.iter().position(|gone| *gone == task(number));
            for number in numbers() {
                prop_assert_eq!(place(number).is_some(), goes(&family, number));
                if let (Some(parent), Some(fork)) = (family[number].1.and_then(place), place(number)) {
                    prop_assert!(fork < parent);
                }
            }
            prop_assert_eq!(order.len(), numbers().filter(|n| goes(&family, *n)).count());
        }
    }
}
