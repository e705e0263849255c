//! Tasks that end because nothing comes to them, and go on when something does.

use infold_store::{Contexts, Durability, Metadata, Outcome, Status, TaskError, end_of};
use jiff::Timestamp;
use uuid::Uuid;

fn task(contexts: &Contexts) -> Uuid {
    let metadata = Metadata {
        task_source: Some("proxy".to_owned()),
        ..Metadata::default()
    };
    let id = contexts.create(metadata).expect("a task");
    say(contexts, id, "hello");
    id
}

fn say(contexts: &Contexts, id: Uuid, text: &str) {
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
    writer.append(&[message]).expect("a message");
    contexts.settle(id, &writer).expect("counted");
}

#[test]
fn a_task_that_ended_idle_goes_on_when_something_comes() {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    let id = task(&contexts);
    let row = |contexts: &Contexts| contexts.row(id).expect("a registry").expect("a row");
    let active = row(&contexts).active_at;
    assert!(active.is_some());
    assert!(contexts.end_idle(id).expect("it ends"));
    let ended = row(&contexts);
    assert_eq!(ended.status, Status::Completed);
    assert_eq!(
        ended.completed_at, active,
        "it ended with its last activity"
    );
    let registry = contexts.registry().expect("a registry");
    assert!(
        contexts
            .verify(id, &registry)
            .expect("a verdict")
            .is_empty()
    );
    drop(registry);
    // Derived anew it is the same.
    std::fs::remove_file(root.path().join("tasks.db")).expect("removed");
    assert_eq!(row(&contexts).completed_at, active);
    say(&contexts, id, "are you there?");
    let again = row(&contexts);
    assert_eq!((again.status, again.completed_at), (Status::Running, None));
    let log = contexts.read(id).expect("a log");
    assert_eq!(log.state().at().seq, 2);
    assert!(end_of(&log).expect("an event").is_none());
    let registry = contexts.registry().expect("a registry");
    assert!(
        contexts
            .verify(id, &registry)
            .expect("a verdict")
            .is_empty()
    );
}

#[test]
fn a_task_that_somebody_ended_stays_so() {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    let id = task(&contexts);
    contexts.finish(id, &Outcome::Completed).expect("it ends");
    let opened = contexts.write(id);
    assert!(matches!(opened, Err(TaskError::Ended { .. })));
    assert!(!contexts.end_idle(id).expect("nothing to do"));
}

#[test]
fn only_tasks_to_which_nothing_came_are_idle_and_none_that_is_held() {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    let (old, new) = (task(&contexts), task(&contexts));
    contexts
        .create(Metadata::default())
        .expect("another source");
    let registry = contexts.registry().expect("a registry");
    let long_ago: Timestamp = "2020-01-01T00:00:00Z".parse().expect("a time");
    registry.set_activity(old, long_ago, None).expect("set");
    let before: Timestamp = "2021-01-01T00:00:00Z".parse().expect("a time");
    assert_eq!(registry.idle("proxy", before, 9).expect("a list"), [old]);
    let all = registry.idle("proxy", Timestamp::MAX, 9).expect("a list");
    assert_eq!(all, [old, new]);
    let held = contexts.write(old).expect("a writer");
    assert!(!contexts.end_idle(old).expect("an answer"));
    drop(held);
    assert!(contexts.end_idle(old).expect("it ends"));
}

#[test]
fn the_newest_task_is_the_one_last_written_to_before_the_registry_knows() {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    let (old, new) = (task(&contexts), task(&contexts));
    let named = |name: &str| contexts.resolve(name).expect("a task");
    assert_eq!((named("@"), named("@2")), (new, old));
    // The clock of a file system may tick only every few milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(30));
    let (mut writer, _) = contexts.write(old).expect("a writer");
    let settled = contexts.row(old).expect("a registry").expect("a row");
    writer
        .append(&[r#"{"role":"user","content":"more"}"#])
        .expect("a message");
    let row = contexts.row(old).expect("a registry").expect("a row");
    assert_eq!(row.active_at, settled.active_at, "nothing was settled");
    assert_eq!((named("@"), named("@2")), (old, new));
    // The files of an ended task may be touched, and nothing came to it.
    contexts.settle(old, &writer).expect("counted");
    drop(writer);
    contexts.finish(new, &Outcome::Completed).expect("it ends");
    say(&contexts, old, "and more");
    let dir = contexts.place(new).expect("a directory");
    let file = std::fs::File::options()
        .append(true)
        .open(dir.join("messages.jsonl"));
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    file.expect("a file").set_modified(later).expect("touched");
    assert_eq!((named("@"), named("@2")), (old, new));
}
