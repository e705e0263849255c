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
fn metadata_that_cannot_be_used_is_made_again() {
    let other = r#"{"uuid":"5ac1a4d4-3a5c-4d6c-8d0c-7f1f6b1c2d3e","created_at":"2026-01-01T00:00:00.000Z"}"#;
    let damages: [Option<&[u8]>; 4] = [None, Some(b""), Some(&[0; 200]), Some(other.as_bytes())];
    for (damage, has_registry) in damages
        .iter()
        .flat_map(|damage| [(damage, true), (damage, false)])
    {
        let world = World::new();
        let before = Metadata::read(world.path("").as_path()).expect("metadata");
        let path = world.path("metadata.json");
        match damage {
            Some(bytes) => fs::write(&path, bytes).expect("written"),
            None => fs::remove_file(&path).expect("removed"),
        }
        if !has_registry {
            fs::remove_file(world.contexts.root().join("tasks.db")).expect("removed");
        }
        let names_it = |problem: &Problem| matches!(problem, Problem::Damaged(LogError::Damaged { path: told, .. }) if *told == path);
        let problems = world.contexts.verify(world.id, None).expect("a verdict");
        assert!(problems.iter().any(names_it), "{damage:?}: {problems:?}");
        world.repair(world.id);
        assert!(world.problems(world.id).is_empty(), "{damage:?}");
        let after = Metadata::read(world.path("").as_path()).expect("metadata");
        assert_eq!((after.uuid, after.form()), (before.uuid, before.form()));
        if has_registry {
            assert_eq!(after.created_at, before.created_at);
            assert_eq!(after.hostname, before.hostname);
        }
        assert!(after.created_at >= before.created_at);
        let is_kept = world
            .set_aside()
            .iter()
            .any(|name| name.starts_with("torn-metadata"));
        assert_eq!(is_kept, damage.is_some(), "{damage:?}");
    }
}

#[test]
fn the_form_of_messages_is_known_though_the_metadata_is_lost() {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Never);
    let made = Metadata {
        wire: Some("anthropic".to_owned()),
        ..Metadata::default()
    };
    let id = contexts.create(made).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let turn = [
        r#"{"role":"user","content":"look"}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":{}}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"a b"}]}"#,
    ];
    writer.append(&turn).expect("a turn");
    drop(writer);
    let dir = contexts.place(id).expect("a directory");
    fs::remove_file(dir.join("metadata.json")).expect("removed");
    let registry = contexts.registry().expect("a registry");
    contexts.repair(id, &registry).expect("repaired");
    assert_eq!(
        Metadata::read(&dir).expect("metadata").wire.as_deref(),
        Some("anthropic")
    );
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
fn a_task_that_is_gone_and_that_others_continue_is_made_again_with_notes() {
    let world = World::new();
    let fork = world.contexts.fork(world.id, None).expect("a fork");
    fs::remove_dir_all(world.path("")).expect("removed");
    assert!(!world.problems(fork).is_empty());
    let done = world.repair(fork);
    let is_told = |what: &String| what.contains("6 messages that others continue were lost");
    assert!(done.iter().any(is_told), "{done:?}");
    assert!(world.problems(fork).is_empty());
    world.repair(world.id);
    assert!(world.problems(world.id).is_empty());
}

#[test]
fn a_row_that_only_a_fork_kept_goes_when_both_are_gone() {
    let world = World::new();
    let fork = world.contexts.fork(world.id, None).expect("a fork");
    for id in [world.id, fork] {
        let dir = world.contexts.place(id).expect("a directory");
        fs::remove_dir_all(dir).expect("removed");
    }
    let (registry, _) = world.contexts.repaired_registry().expect("a registry");
    assert!(registry.uuids().expect("rows").is_empty());
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
