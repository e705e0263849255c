//! Files of a task that are gone or are none, and ends that were lost: `repair` leaves a task that verifies.

use std::fs;
use std::path::PathBuf;

use infold_log::View;
use infold_log::steer::Target;
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

/// A task of three turns and three notes, a fork of it, and a fork of that, each with a message and a note of its own.
struct Family {
    world: World,
    fork: Uuid,
    second: Uuid,
}

/// The part of a parent's file that is lost before the parent is continued.
#[derive(Clone, Copy, Debug)]
enum Loss {
    AllEvents,
    AllButOneEvent,
    AllMessages,
    HalfOfMessages,
}

/// The entries that are written after the loss.
#[derive(Clone, Copy, Debug)]
struct Written {
    messages: usize,
    notes: usize,
}

impl Family {
    fn new() -> Family {
        let world = World::new();
        let (mut writer, _) = world.contexts.write(world.id).expect("a writer");
        writer.note("mind the step").expect("a note");
        writer.note("mind the door").expect("a note");
        drop(writer);
        let [fork, second] = [world.id; 2];
        let mut family = Family {
            world,
            fork,
            second,
        };
        family.fork = family.fork_of(family.world.id, "of the fork");
        family.second = family.fork_of(family.fork, "of the second");
        family
    }

    fn fork_of(&self, parent: Uuid, text: &str) -> Uuid {
        let fork = self.world.contexts.fork(parent, None).expect("a fork");
        self.write(
            fork,
            Written {
                messages: 1,
                notes: 1,
            },
            text,
        );
        fork
    }

    fn write(&self, id: Uuid, written: Written, text: &str) {
        let (mut writer, _) = self.world.contexts.write(id).expect("a writer");
        for _ in 0..written.messages {
            let message = format!(r#"{{"role":"user","content":"a message {text}"}}"#);
            writer.append(&[message]).expect("a message");
        }
        for _ in 0..written.notes {
            writer.note(&format!("a note {text}")).expect("a note");
        }
        self.world.contexts.settle(id, &writer).expect("counted");
    }

    /// Shortens a file of the first task, and then writes to that task.
    fn lose(&self, loss: Loss, written: Written) {
        let name = match loss {
            Loss::AllEvents | Loss::AllButOneEvent => "events.jsonl",
            Loss::AllMessages | Loss::HalfOfMessages => "messages.jsonl",
        };
        let path = self.world.path(name);
        let text = fs::read_to_string(&path).expect("a file");
        let left = match loss {
            Loss::AllEvents | Loss::AllMessages => 0,
            Loss::AllButOneEvent => 1,
            Loss::HalfOfMessages => 3,
        };
        let left: String = text.split_inclusive('\n').take(left).collect();
        fs::write(&path, left).expect("written");
        self.write(self.world.id, written, "that came later");
    }

    /// Repairs all tasks as often as `doctor --repair` does at most, and says what was done.
    fn repair(&self) -> Vec<String> {
        let contexts = &self.world.contexts;
        let (registry, mut done) = contexts.repaired_registry().expect("a registry");
        for _ in 0..4 {
            for id in contexts.tasks().expect("tasks") {
                // The parent of a task may have to be repaired before it.
                done.extend(contexts.repair(id, &registry).into_iter().flatten());
            }
        }
        done
    }

    fn view(&self, id: Uuid) -> String {
        let log = self.world.contexts.read(id).expect("it opens");
        let view = View::of(log.state().shown(), &log).expect("a view");
        String::from_utf8(log.rendered(&view).expect("its bytes")).expect("a text")
    }

    fn check_all(&self) {
        for id in self.world.contexts.tasks().expect("tasks") {
            let problems = self.world.problems(id);
            assert!(problems.is_empty(), "{id}: {problems:?}");
        }
    }

    /// Every line that a file of a task had, in the file or set aside.
    fn check_kept(&self, id: Uuid, name: &str, before: &str) {
        let dir = self.world.contexts.place(id).expect("a directory");
        let files = fs::read_dir(dir).expect("files").flatten();
        let texts = files
            .filter(|file| {
                let other = file.file_name().to_string_lossy().into_owned();
                other == name || other.starts_with("torn-")
            })
            .map(|file| fs::read_to_string(file.path()).expect("a text"));
        let kept: String = texts.collect();
        for line in before.lines() {
            assert!(kept.contains(line), "{name}: {line}");
        }
    }

    fn text(&self, id: Uuid, name: &str) -> String {
        let dir = self.world.contexts.place(id).expect("a directory");
        fs::read_to_string(dir.join(name)).expect("a file")
    }
}

const WRITTEN: [(usize, usize); 6] = [(1, 0), (1, 1), (0, 1), (0, 5), (1, 5), (9, 5)];

#[test]
fn a_fork_of_a_task_that_lost_its_log_and_was_gone_on_with_opens_after_a_repair() {
    for loss in [
        Loss::AllEvents,
        Loss::AllButOneEvent,
        Loss::AllMessages,
        Loss::HalfOfMessages,
    ] {
        for (messages, notes) in WRITTEN {
            let written = Written { messages, notes };
            let family = Family::new();
            let Family {
                world,
                fork,
                second,
            } = &family;
            let logs = [*fork, *second].map(|id| {
                (
                    id,
                    ["messages.jsonl", "events.jsonl"].map(|name| (name, family.text(id, name))),
                )
            });
            family.lose(loss, written);
            let later = family.fork_of(world.id, "of one forked later");
            let shown_later = [family.view(world.id), family.view(later)];
            assert!(!world.problems(*fork).is_empty(), "{loss:?} {written:?}");
            let done = family.repair();
            let is_told =
                |what: &&String| what.contains("that this one continues, and was written to since");
            assert_eq!(
                done.iter().filter(is_told).count(),
                1,
                "{loss:?} {written:?}: {done:#?}"
            );
            family.check_all();
            for (id, files) in &logs {
                files
                    .iter()
                    .for_each(|(name, text)| family.check_kept(*id, name, text));
            }
            // The others are as they were.
            assert_eq!([family.view(world.id), family.view(later)], shown_later);
            for (id, own) in [(*fork, "of the fork"), (*second, "of the second")] {
                let shown = family.view(id);
                assert!(shown.contains(&format!("a message {own}")), "{shown}");
                assert!(shown.contains(&format!("a note {own}")), "{shown}");
                assert!(
                    !shown.contains("that came later"),
                    "{loss:?} {written:?}: {shown}"
                );
                let lost = match loss {
                    Loss::AllEvents | Loss::AllButOneEvent => 0,
                    Loss::AllMessages => 6,
                    Loss::HalfOfMessages => 3,
                };
                assert_eq!(
                    shown.matches("was lost from the disk").count(),
                    lost,
                    "{shown}"
                );
                family.write(
                    id,
                    Written {
                        messages: 1,
                        notes: 1,
                    },
                    "after the repair",
                );
            }
            family.check_all();
        }
    }
}

#[test]
fn what_a_fork_undid_of_a_lost_log_undoes_nothing_else() {
    let family = Family::new();
    let world = &family.world;
    let other = world.contexts.fork(world.id, None).expect("a fork");
    let (mut writer, _) = world.contexts.write(other).expect("a writer");
    // It undoes the note that is lost then, not the one before, which stays.
    writer.undo().expect("undone");
    drop(writer);
    let written = Written {
        messages: 1,
        notes: 0,
    };
    family.lose(Loss::AllButOneEvent, written);
    family.repair();
    family.check_all();
    let shown = family.view(other);
    assert!(shown.contains("mind the gap"), "{shown}");
    assert!(!shown.contains("mind the door"), "{shown}");
}

#[test]
fn forks_from_several_points_of_a_log_that_lost_its_end_all_open_after_a_repair() {
    let family = Family::new();
    let world = &family.world;
    let forks = [2, 4, 6].map(|seq| {
        let at = Target::Message(seq);
        world.contexts.fork(world.id, Some(at)).expect("a fork")
    });
    let text = family.text(world.id, "messages.jsonl");
    let first: String = text.split_inclusive('\n').take(1).collect();
    fs::write(world.path("messages.jsonl"), first).expect("written");
    family.repair();
    family.check_all();
    for (fork, lost) in forks.into_iter().zip([1, 3, 5]) {
        let shown = family.view(fork);
        assert_eq!(
            shown.matches("was lost from the disk").count(),
            lost,
            "{shown}"
        );
    }
}

#[test]
fn a_repair_of_a_fork_that_was_cut_short_is_done_again() {
    let family = Family::new();
    let Family { world, fork, .. } = &family;
    family.lose(
        Loss::HalfOfMessages,
        Written {
            messages: 1,
            notes: 1,
        },
    );
    let dir = world.contexts.place(*fork).expect("a directory");
    let events = fs::read(dir.join("events.jsonl")).expect("a file");
    family.repair();
    let shown = family.view(*fork);
    // The messages are there, the event that says from where is not.
    fs::write(dir.join("events.jsonl"), events).expect("written");
    fs::remove_file(dir.join("lineage.idx")).expect("removed");
    family.repair();
    family.check_all();
    assert_eq!(family.view(*fork), shown);
}

#[test]
fn a_fork_that_lost_a_file_and_what_it_continues_opens_after_one_repair() {
    for name in ["messages.jsonl", "events.jsonl"] {
        let family = Family::new();
        let Family {
            world,
            fork,
            second,
        } = &family;
        fs::remove_dir_all(world.path("")).expect("removed");
        let dir = world.contexts.place(*fork).expect("a directory");
        fs::remove_file(dir.join(name)).expect("removed");
        let done = world.repair(*fork);
        for what in ["was missing", "that others continue were lost"] {
            let is_told = done.iter().any(|done| done.contains(what));
            assert!(is_told, "{name}: {done:?}");
        }
        assert!(world.problems(*fork).is_empty(), "{name}");
        family.repair();
        family.check_all();
        assert!(family.view(*second).contains("a note of the second"));
    }
}

#[test]
fn a_row_goes_whose_directory_and_all_that_names_it_never_reached_the_disk() {
    let names = ["events.jsonl", "lineage.idx"];
    for empties in [true, false] {
        let world = World::new();
        let fork = world.contexts.fork(world.id, None).expect("a fork");
        let dir = world.contexts.place(fork).expect("a directory");
        fs::remove_dir_all(world.path("")).expect("removed");
        for name in names {
            // While a file names it, it is missed.
            let (registry, _) = world.contexts.repaired_registry().expect("a registry");
            assert!(registry.get(world.id).expect("a registry").is_some());
            if empties {
                fs::write(dir.join(name), "").expect("written")
            } else {
                fs::remove_file(dir.join(name)).expect("removed")
            }
        }
        let (registry, done) = world.contexts.repaired_registry().expect("a registry");
        assert_eq!(registry.uuids().expect("rows"), [fork]);
        for what in ["its files do not say so", "its directory is gone"] {
            assert!(done.iter().any(|done| done.contains(what)), "{done:?}");
        }
        let done = world.repair(fork);
        assert!(world.problems(fork).is_empty(), "{done:?}");
        let (_, done) = world.contexts.repaired_registry().expect("a registry");
        assert!(done.is_empty(), "{done:?}");
    }
}
