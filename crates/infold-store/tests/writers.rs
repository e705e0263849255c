//! External conditions that a writer must handle: a lock removed by a user, and a clock that was wrong.

use std::fs;
use std::path::PathBuf;

use infold_log::steer::{self, Side, Target};
use infold_log::{Past as _, Seq};
use infold_store::{AppendError, Contexts, Durability, LogError, Metadata};
use tempfile::TempDir;
use uuid::Uuid;

const QUESTION: [&str; 1] = [r#"{"role":"user","content":"question"}"#];

struct World {
    _root: TempDir,
    contexts: Contexts,
    id: Uuid,
    dir: PathBuf,
}

impl World {
    fn new() -> World {
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Turn);
        let id = contexts.create(Metadata::default()).expect("a task");
        let dir = contexts.place(id).expect("a directory");
        World {
            _root: root,
            contexts,
            id,
            dir,
        }
    }

    fn is_whole(&self) {
        let problems = self.contexts.verify(self.id, None).expect("a verdict");
        assert!(problems.is_empty(), "{problems:?}");
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.dir.join(name)).expect("a file")
    }
}

#[test]
fn who_lost_the_lock_writes_nothing_more() {
    let remove = |path: &PathBuf| fs::remove_file(path).expect("removed");
    let rename = |path: &PathBuf| fs::rename(path, path.with_extension("old")).expect("moved");
    for take_away in [remove, rename] {
        let world = World::new();
        let (mut first, _) = world.contexts.write(world.id).expect("a writer");
        first.append(&QUESTION).expect("a message");
        take_away(&world.dir.join("lock"));
        let (mut second, _) = world.contexts.write(world.id).expect("another writer");
        second.append(&QUESTION).expect("a message");
        second.note("this stays").expect("a note");
        let before = (world.read("messages.jsonl"), world.read("events.jsonl"));

        let refused = first.append(&QUESTION);
        let is_told = matches!(refused, Err(AppendError::Log(LogError::LockLost { .. })));
        assert!(is_told, "{refused:?}");
        assert!(first.note("this does not").is_err());
        assert!(matches!(first.sync(), Err(LogError::LockLost { .. })));
        drop(first);
        let after = (world.read("messages.jsonl"), world.read("events.jsonl"));
        assert_eq!(after, before);
        second.append(&QUESTION).expect("the second goes on");
        drop(second);
        world.is_whole();
    }
}

#[test]
fn a_clock_that_was_wrong_for_a_while_does_not_stop_the_times() {
    let world = World::new();
    let (mut writer, _) = world.contexts.write(world.id).expect("a writer");
    writer.append(&QUESTION).expect("a message");
    writer
        .append(&QUESTION)
        .expect("a message said in the future");
    drop(writer);
    let text = String::from_utf8(world.read("messages.jsonl")).expect("text");
    let (first, second) = text.split_once('\n').expect("two lines");
    let at = second.find("\"timestamp\":\"").expect("a time") + "\"timestamp\":\"".len();
    let wrong = format!(
        "{}2099-01-01T00:00:00.000Z{}",
        &second[..at],
        &second[at + 24..]
    );
    fs::write(
        world.dir.join("messages.jsonl"),
        format!("{first}\n{wrong}"),
    )
    .expect("written");
    for sidecar in ["messages.idx", "events.idx", "states.idx"] {
        let _ = fs::remove_file(world.dir.join(sidecar));
    }

    let (mut writer, _) = world.contexts.write(world.id).expect("a writer");
    writer.append(&QUESTION).expect("a message");
    writer.note("a note").expect("a note");
    writer.append(&QUESTION).expect("a message");
    let time = |number: u64| {
        let seq = Seq::new(number).expect("a seq");
        writer.log().record(seq).expect("a record").time
    };
    let (first, wrong, third, last) = (time(1), time(2), time(3), time(4));
    assert!(first <= third && third <= last && last < wrong);
    assert_eq!(writer.log().last_time().expect("a time"), last);

    // By the time of the last entry all of them were there, whatever their times say.
    let log = writer.log();
    let found = steer::locate(log.state(), Side::To, Target::Time(last), log);
    assert_eq!(found.expect("a point"), log.state().at());
    drop(writer);
    world.is_whole();
}
