//! Files of a task that are gone or are none, and ends that were lost: `repair` leaves a task that verifies.

use std::fs;
use std::path::PathBuf;

use infold_store::{Contexts, Durability, LogError, Metadata, Outcome, Problem, TaskError};
use tempfile::TempDir;
use uuid::Uuid;

struct World {
    _root: TempDir,
    contexts: Contexts,
    id: Uuid,
}

impl World {
    /// Three turns, closed in good order.
    fn new() -> World {
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Never);
        let id = contexts.create(Metadata::default()).expect("a task");
        let (mut writer, _) = contexts.write(id).expect("a writer");
        for number in 0..3 {
            let turn = [
                format!(r#"{{"role":"user","content":"question {number}"}}"#),
                format!(r#"{{"role":"assistant","content":"answer {number}"}}"#),
            ];
            writer.append(&turn).expect("a turn");
        }
        writer.note("mind the gap").expect("a note");
        contexts.settle(id, &writer).expect("counted");
        drop(writer);
        World {
            _root: root,
            contexts,
            id,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        let dir = self.contexts.place(self.id).expect("it has a directory");
        dir.join(name)
    }

    fn problems(&self, id: Uuid) -> Vec<Problem> {
        let registry = self.contexts.registry().expect("a registry");
        self.contexts.verify(id, &registry).expect("a verdict")
    }

    fn repair(&self, id: Uuid) -> Vec<String> {
        let registry = self.contexts.registry().expect("a registry");
        self.contexts.repair(id, &registry).expect("repaired")
    }

    fn set_aside(&self) -> Vec<String> {
        let dir = self.contexts.place(self.id).expect("it has a directory");
        let entries = fs::read_dir(dir).expect("a directory").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("torn-")).collect()
    }
}

#[test]
fn a_directory_in_the_place_of_a_file_is_moved_aside() {
    for name in [
        "messages.jsonl",
        "events.jsonl",
        "messages.idx",
        "events.idx",
        "states.idx",
        "current.jsonl",
        "current.idx",
        "lock",
        "transcript.txt",
    ] {
        let world = World::new();
        let path = world.path(name);
        let _ = fs::remove_file(&path);
        fs::create_dir(&path).expect("a directory");
        fs::write(path.join("inside"), "kept").expect("written");
        let problems = world.problems(world.id);
        let is_told = |problem: &Problem| matches!(problem, Problem::Misplaced { path: told } if *told == path);
        assert!(problems.iter().any(is_told), "{name}: {problems:?}");
        world.repair(world.id);
        assert!(world.problems(world.id).is_empty(), "{name}");
        let aside = world.set_aside();
        let kept = aside
            .iter()
            .any(|aside| world.path(aside).join("inside").exists());
        assert!(kept, "{name}: {aside:?}");
        let (mut writer, _) = world
            .contexts
            .write(world.id)
            .expect("it can be gone on with");
        let more = [r#"{"role":"user","content":"more"}"#];
        writer.append(&more).expect("a message");
    }
}

#[test]
fn a_log_whose_file_is_missing_is_gone_on_with() {
    for name in ["messages.jsonl", "events.jsonl"] {
        let world = World::new();
        fs::remove_file(world.path(name)).expect("removed");
        let done = world.repair(world.id);
        assert!(
            done.iter().any(|what| what.contains("was missing")),
            "{done:?}"
        );
        assert!(world.problems(world.id).is_empty(), "{name}");
    }
}

#[test]
fn a_task_that_had_ended_ends_again_if_that_is_lost() {
    let world = World::new();
    let error = "no way".to_owned();
    let end = Outcome::Failed { error };
    world.contexts.finish(world.id, &end).expect("ended");
    fs::write(world.path("events.jsonl"), "").expect("written");
    world.repair(world.id);
    assert!(world.problems(world.id).is_empty());
    let ended = world.contexts.write(world.id);
    let status = end.status();
    assert!(matches!(ended, Err(TaskError::Ended { status: said, .. }) if said == status));
    let row = world.contexts.row(world.id).expect("a registry");
    assert_eq!(
        row.and_then(|row| row.error_message).as_deref(),
        Some("no way")
    );
}

#[test]
fn what_others_continue_is_replaced_by_notes() {
    let world = World::new();
    let fork = world.contexts.fork(world.id, None).expect("a fork");
    let messages = fs::read(world.path("messages.jsonl")).expect("a file");
    let first = messages.iter().position(|byte| *byte == b'\n').unwrap_or(0) + 1;
    fs::write(world.path("messages.jsonl"), &messages[..first]).expect("written");
    world.repair(world.id);
    let problems = world.problems(fork);
    let is_short =
        |problem: &Problem| matches!(problem, Problem::Damaged(LogError::NoParent { .. }));
    assert!(problems.iter().any(is_short), "{problems:?}");
    let done = world.repair(fork);
    assert!(
        done.iter()
            .any(|what| what.contains("5 messages that others continue were lost")),
        "{done:?}"
    );
    assert!(world.problems(fork).is_empty());
    world.repair(world.id);
    assert!(world.problems(world.id).is_empty());
}
