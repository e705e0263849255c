//! Finds a task by the beginning of its id, and those that look most like a mistyped one.

use uuid::Uuid;

use crate::TaskError;

/// Finds the task of some whose id begins with a name.
pub(super) fn with_prefix(name: &str, all: Vec<Uuid>) -> Result<Uuid, TaskError> {
    let wanted = name.to_lowercase();
    let begins = |id: &Uuid| id.to_string().starts_with(&wanted);
    let mut matches: Vec<Uuid> = all.iter().copied().filter(begins).collect();
    match matches.len() {
        1 if !wanted.is_empty() => Ok(matches.remove(0)),
        0 => Err(TaskError::Unknown {
            name: name.to_owned(),
            nearest: nearest(&wanted, all),
        }),
        _ => Err(TaskError::Ambiguous {
            name: name.to_owned(),
            matches,
        }),
    }
}

/// The ids that look most like `name`, at most three.
fn nearest(name: &str, mut all: Vec<Uuid>) -> Vec<Uuid> {
    let name: Vec<char> = name.chars().take(36).collect();
    all.sort_by_cached_key(|id| {
        let id: Vec<char> = id.to_string().chars().take(name.len().max(1)).collect();
        distance(&name, &id)
    });
    all.truncate(3);
    all
}

/// How many characters must be changed, added or left out to make `a` of `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
