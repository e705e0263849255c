//! Contexts directories of every format that was ever in use are opened, checked, shown and continued.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use infold_log::View;
use infold_store::{Contexts, Durability, Filter, Log, Status};
use tempfile::TempDir;
use uuid::Uuid;

const TASKS: usize = 11;

fn formats() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/formats");
    let entries = fs::read_dir(dir).expect("the formats are in the repository");
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// A copy that only its owner may read: a checkout does not keep modes.
fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a directory") {
        let (from, to) = {
            let entry = entry.expect("an entry");
            (entry.path(), to.join(entry.file_name()))
        };
        if from.is_dir() {
            fs::create_dir(&to).expect("a directory");
            fs::set_permissions(&to, Permissions::from_mode(0o700)).expect("a mode");
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("a copy");
            fs::set_permissions(&to, Permissions::from_mode(0o600)).expect("a mode");
        }
    }
}

fn copied(format: &Path) -> (TempDir, Contexts) {
    let root = tempfile::tempdir().expect("a directory");
    copy(format, root.path());
    let contexts = Contexts::new(root.path(), Durability::Turn);
    (root, contexts)
}

fn view(log: &Log) -> Vec<u8> {
    let view = View::of(log.state().shown(), log).expect("a view");
    log.rendered(&view).expect("a view in bytes")
}

fn is_well(contexts: &Contexts, task: Uuid, what: &str) {
    let registry = contexts.registry().expect("a registry");
    let problems = contexts.verify(task, &registry).expect("a verdict");
    assert!(problems.is_empty(), "{what}: {problems:?}");
}

#[test]
fn every_format_is_shown_as_it_was() {
    for format in formats() {
        let (_root, contexts) = copied(&format);
        let tasks = contexts.tasks().expect("tasks");
        assert_eq!(tasks.len(), TASKS, "{}", format.display());
        for task in tasks {
            let dir = contexts.place(task).expect("a directory");
            let shown = fs::read(dir.join("current.jsonl")).expect("what it showed");
            let log = contexts.read(task).expect("it can be read");
            assert!(view(&log) == shown, "{task} is shown otherwise");
        }
        let rows = contexts.rows(&Filter::default()).expect("rows");
        assert_eq!(rows.len(), TASKS);
        let registry = contexts.registry().expect("a registry");
        let factor = registry.factor("openai", "gpt-5").expect("an answer");
        assert_eq!(factor, Some(1.07), "what was learned is still known");
    }
}

#[test]
fn every_format_is_in_order() {
    for format in formats() {
        let (_root, contexts) = copied(&format);
        for task in contexts.tasks().expect("tasks") {
            is_well(&contexts, task, "as it was found");
        }
    }
}

#[test]
fn every_format_is_continued() {
    for format in formats() {
        let (_root, contexts) = copied(&format);
        let rows = contexts.rows(&Filter::default()).expect("rows");
        for row in rows.iter().filter(|row| row.status == Status::Running) {
            let task = row.uuid;
            let (mut writer, _) = contexts.write(task).expect("a writer");
            let before = writer.log().state().at();
            let said = r#"{"role":"user","content":"and so on"}"#;
            let span = writer.append(&[said]).expect("a message");
            let seq = span.expect("its seq").from();
            assert_eq!(seq.get(), before.seq + 1);
            assert_eq!(writer.log().message(seq).expect("it"), said.as_bytes());
            writer.note("mind this").expect("a note");
            writer.undo().expect("it is undone");
            contexts.settle(task, &writer).expect("it is counted");
            drop(writer);
            is_well(&contexts, task, "continued");
            let fork = contexts.fork(task, None).expect("a fork");
            is_well(&contexts, fork, "a fork");
            let log = contexts.read(fork).expect("it can be read");
            assert!(view(&log).ends_with(b"and so on\"}\n"), "{task}");
        }
    }
}
