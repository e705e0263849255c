use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::database::beside;

fn key(number: u64) -> Key {
    u128::from(number)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835)
        .to_be_bytes()
}

fn seq(number: u64) -> Seq {
    Seq::new(number).expect("a seq")
}

/// The rows of a conversation whose keys are these.
fn rows(keys: impl IntoIterator<Item = u64>) -> Vec<(Key, Seq)> {
    let numbered = keys.into_iter().zip(1..);
    numbered.map(|(name, at)| (key(name), seq(at))).collect()
}

fn keys(numbers: impl IntoIterator<Item = u64>) -> Vec<Key> {
    numbers.into_iter().map(key).collect()
}

/// The tasks that have a name, the one that got it last first.
fn named(chains: &mut ChainIndex, name: &str) -> Vec<Uuid> {
    let sql = "SELECT task FROM names WHERE name = ?1 ORDER BY number DESC";
    let found = chains.run(|db| {
        db.prepare(sql)?
            .query_map([name], |row| Ok(Uuid::from_bytes(row.get(0)?)))?
            .collect()
    });
    found.expect("they can be read")
}

#[test]
fn the_longest_known_beginning_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    let task = Uuid::new_v4();
    chains.add(task, &rows(1..=100)).unwrap();
    let cases = [
        (keys(1..=100), Some(99)),
        (keys(1..=102), Some(99)),
        (keys(1..=40), Some(39)),
        (keys((1..=3).chain(500..600)), Some(2)),
        (keys(500..600), None),
        (keys([]), None),
    ];
    for (keys, place) in cases {
        let found = chains.find(&keys).unwrap();
        let wanted = place.map(|place| (place, vec![(task, seq(place as u64 + 1))]));
        assert_eq!(found, wanted);
    }
}

#[test]
fn what_came_last_stands_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    let [old, young] = [Uuid::new_v4(), Uuid::new_v4()];
    chains.add(old, &rows([1, 2])).unwrap();
    chains.add(young, &rows([1])).unwrap();
    let both = vec![(young, seq(1)), (old, seq(1))];
    assert_eq!(chains.find(&keys([1])).unwrap(), Some((0, both)));

    for task in [old, young, old] {
        chains.name("session", task).unwrap();
    }
    chains.name("other", old).unwrap();
    assert_eq!(named(&mut chains, "session"), [old, young]);
    assert_eq!(chains.names_of(old).unwrap(), ["session", "other"]);
}

#[test]
fn what_is_said_again_is_found_where_the_task_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    let task = Uuid::new_v4();
    chains.add(task, &rows([1, 2, 3])).unwrap();
    chains.add(task, &[(key(3), seq(7))]).unwrap();
    let found = chains.find(&keys([1, 2, 3])).unwrap();
    assert_eq!(found, Some((2, vec![(task, seq(7))])));
}

#[test]
fn a_key_that_leads_everywhere_leads_to_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    let mut last = Uuid::nil();
    for _ in 0..MAX_TASKS_OF_A_KEY + 10 {
        last = Uuid::new_v4();
        chains.add(last, &rows([1])).unwrap();
    }
    let (_, found) = chains.find(&keys([1])).unwrap().unwrap();
    assert_eq!(found.len(), MAX_TASKS_OF_A_KEY as usize);
    assert_eq!(found[0].0, last);
}

#[test]
fn what_is_forgotten_leads_nowhere_and_the_rest_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    let [gone, stays] = [Uuid::new_v4(), Uuid::new_v4()];
    for task in [gone, stays] {
        chains.add(task, &rows([1])).unwrap();
        chains.name("session", task).unwrap();
    }
    let mut other = if_there(dir.path()).expect("it is there");
    other.forget(gone).unwrap();
    assert_eq!(named(&mut chains, "session"), [stays]);
    let left = chains.find(&keys([1])).unwrap();
    assert_eq!(left, Some((0, vec![(stays, seq(1))])));
}

#[test]
fn an_index_is_there_again_and_is_its_owners_alone() {
    let dir = tempfile::tempdir().unwrap();
    let task = Uuid::new_v4();
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    assert!(chains.is_new());
    chains.add(task, &rows([1])).unwrap();
    chains.filled().unwrap();
    for suffix in ["", "-wal", "-shm"] {
        let file = beside(&dir.path().join(NAME), suffix);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
    drop(chains);
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    assert!(!chains.is_new() && chains.torn().is_none());
    assert_eq!(
        chains.find(&keys([1])).unwrap(),
        Some((0, vec![(task, seq(1))]))
    );
}

#[test]
fn a_damaged_index_is_set_aside_and_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    fs::write(&path, "not a database, and long enough to be taken for one").unwrap();
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    assert!(chains.is_new());
    let torn = chains.torn().expect("it was set aside").to_owned();
    assert!(fs::read(&torn).unwrap().starts_with(b"not a database"));
    chains.add(Uuid::new_v4(), &rows([1])).unwrap();
    chains.filled().unwrap();
    // The old journal must not come into the new index, nor go with the old one.
    chains.renew().unwrap();
    assert!(chains.is_new());
    assert_eq!(chains.find(&keys([1])).unwrap(), None);
    chains.add(Uuid::new_v4(), &rows([2])).unwrap();
    assert!(beside(&path, "-wal").exists());
    let mut other = ChainIndex::open(dir.path()).unwrap();
    assert!(other.find(&keys([2])).unwrap().is_some());
}

#[test]
fn an_index_counts_as_filled_when_somebody_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
    // The process that fills it is killed in the middle.
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    chains.add(one, &rows([1])).unwrap();
    drop(chains);
    // A process that only forgets tasks does not fill it.
    if_there(dir.path())
        .expect("it is there")
        .forget(one)
        .unwrap();
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    assert!(chains.is_new());
    for task in [one, other] {
        chains.add(task, &rows([1])).unwrap();
    }
    chains.filled().unwrap();
    assert!(!chains.is_new());
    drop(chains);
    assert!(!ChainIndex::open(dir.path()).unwrap().is_new());
}

#[test]
fn who_only_forgets_leaves_a_damaged_index_to_who_fills_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(NAME);
    let damaged = "not a database, and long enough to be taken for one";
    fs::write(&path, damaged).unwrap();
    assert!(if_there(dir.path()).is_none());
    assert_eq!(fs::read(&path).unwrap(), damaged.as_bytes());
    assert!(ChainIndex::open(dir.path()).unwrap().is_new());
}

#[test]
fn an_index_of_a_newer_version_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    let newer = "PRAGMA user_version = 9";
    chains.run(|db| db.execute_batch(newer)).unwrap();
    drop(chains);
    let refused = ChainIndex::open(dir.path()).unwrap_err();
    assert!(matches!(refused, RegistryError::TooNew { found: 9, .. }));
}

/// A file with zeros in all pages but the first, as far as it has some.
fn zero_pages(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    assert!(bytes.len() > 3 * 4096);
    bytes[4096..].fill(0);
    fs::write(path, bytes).unwrap();
}

#[test]
fn an_index_that_turns_out_to_be_damaged_is_filled_again_and_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let task = Uuid::new_v4();
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    chains.add(task, &rows(1..=500)).unwrap();
    chains.filled().unwrap();
    drop(chains);
    zero_pages(&dir.path().join(NAME));
    assert!(ChainIndex::check(dir.path()).unwrap().is_some());
    let mut chains = ChainIndex::open(dir.path()).unwrap();
    chains.fill_with(move |chains| {
        chains.add(task, &rows(1..=500)).unwrap();
        chains.filled().unwrap();
    });
    let found = chains.find(&keys(1..=40)).unwrap();
    assert_eq!(found, Some((39, vec![(task, seq(40))])));
    assert!(chains.torn().is_some());
    assert_eq!(ChainIndex::check(dir.path()).unwrap(), None);
}
