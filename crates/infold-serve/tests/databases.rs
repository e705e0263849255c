//! A server whose databases are damaged, before it starts or while it runs, continues to record without help.

mod office;

use std::fs;
use std::path::Path;

use infold_store::Filter;
use office::{Office, assistant, user};
use serde_json::Value;

const PAGE: usize = 4096;
const CONVERSATIONS: usize = 120;

/// Fills all pages of a database but the first with something else.
fn damage(root: &Path, name: &str, fill: u8) {
    let path = root.join(name);
    let mut bytes = fs::read(&path).expect("a database");
    assert!(bytes.len() > 4 * PAGE, "{name} has few pages");
    bytes[PAGE..].fill(fill);
    // Overwrite the file in place, so that open handles meet the damage too.
    fs::write(path, bytes).expect("written");
}

fn conversation(number: usize) -> Vec<Value> {
    vec![
        user(&format!("hello, I am number {number}")),
        assistant(&format!("hello, number {number}")),
        user("what is new?"),
        assistant("nothing"),
    ]
}

/// An office with some conversations, whose databases are closed.
fn office() -> Office {
    let mut office = Office::new(100_000);
    for number in 0..CONVERSATIONS {
        let said = conversation(number);
        let first = office.turn(&said[..1], &format!("hello, number {number}"), None);
        assert_eq!(office.turn(&said[..3], "nothing", None), first);
    }
    office.restart_after(|_| {});
    office
}

/// Old conversations continue in their tasks, new ones are recorded, and all are listed.
fn works(office: &Office, what: &str, first: usize) {
    let before = office.tasks();
    for number in (first..CONVERSATIONS).step_by(CONVERSATIONS / 3) {
        let mut said = conversation(number);
        said.push(user(what));
        office.turn(&said, "I see", None);
    }
    assert_eq!(office.tasks(), before, "{what}: they are recognised");
    let fresh = [user(&format!("something new: {what}"))];
    let task = office.turn(&fresh, "indeed", None);
    assert_eq!(office.holds(task).len(), 2, "{what}");
    assert_eq!(office.tasks(), before + 1, "{what}");
    let rows = office.conversations.contexts().rows(&Filter::default());
    assert_eq!(
        rows.expect("they can be listed").len(),
        before + 1,
        "{what}"
    );
}

#[test]
fn databases_that_were_damaged_before_it_started() {
    for (name, fill) in [("tasks.db", 0), ("chains.db", 0), ("chains.db", 0x5a)] {
        let mut office = office();
        office.restart_after(|root| damage(root, name, fill));
        works(&office, name, 0);
    }
}

#[test]
fn databases_that_are_damaged_while_it_runs() {
    for (name, fill) in [("tasks.db", 0x5a), ("chains.db", 0x5a)] {
        let office = office();
        let root = office.conversations.contexts().root().to_owned();
        damage(&root, name, fill);
        works(&office, name, 0);
        works(&office, &format!("{name} again"), 1);
    }
}
