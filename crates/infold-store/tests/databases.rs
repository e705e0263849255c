//! Damaged databases are set aside and rebuilt by the process that finds the damage, without any manual step.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use infold_store::{
    Contexts, Durability, Filter, Metadata, Outcome, Quirks, RegistryError, Report, Status,
    TaskError,
};
use jiff::Timestamp;
use tempfile::TempDir;
use uuid::Uuid;

const PAGE: usize = 4096;
const TASKS: usize = 60;

/// The recorded notices. Each test looks for the name of its own directory.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn told(root: &Path) -> usize {
    let told = TOLD.lock().expect("no panic");
    let name = root.display().to_string();
    told.iter().filter(|text| text.contains(&name)).count()
}

fn contexts(root: &Path) -> Contexts {
    let contexts = Contexts::new(root, Durability::Never);
    contexts.telling(|text| TOLD.lock().expect("no panic").push(text.to_owned()))
}

/// A directory with so many tasks that the registry has many pages, half of them ended, and things that were learned.
fn filled() -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = contexts(root.path()).keeping().expect("a registry");
    for number in 0..TASKS {
        let task = contexts.create(Metadata {
            repo: Some("a long name of a repository ".repeat(8)),
            ..Metadata::default()
        });
        let task = task.expect("a task");
        if number % 2 == 0 {
            let ended = contexts.finish(task, &Outcome::Completed);
            ended.expect("it ends");
        }
    }
    let learned = contexts.with_registry(|registry| {
        for number in 0..20 {
            let model = format!("model {number}");
            let report = Report {
                provider: "here",
                model: &model,
                guess: 1.0,
                counted: 1000,
                reported: 1100,
            };
            registry.learn(&report, Timestamp::now())?;
        }
        registry.set_window("here", "m", 9_000, Timestamp::now())?;
        let quirks = Quirks {
            alternate: true,
            ..Quirks::default()
        };
        registry.set_quirks("here", "m", quirks, Timestamp::now())
    });
    learned.expect("it is learned");
    root
}

fn registry_path(root: &Path) -> PathBuf {
    let path = root.join("tasks.db");
    // The last process that used it closed it, so it has no journal.
    assert!(!root.join("tasks.db-wal").exists());
    path
}

fn set_aside(root: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(root).expect("files").flatten();
    let paths = files.map(|file| file.path());
    let is_torn = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.starts_with("torn-") && name.ends_with(".db"))
    };
    paths.filter(is_torn).collect()
}

/// All that a person or a server does, with a registry that is opened for each call or kept.
fn works(contexts: &Contexts, what: &str) {
    let rows = contexts.rows(&Filter::default()).expect(what);
    assert_eq!(rows.len(), TASKS, "{what}");
    let ended = rows.iter().filter(|row| row.status == Status::Completed);
    assert_eq!(ended.count(), TASKS / 2, "{what}");
    let task = contexts.create(Metadata::default()).expect(what);
    let (mut writer, _) = contexts.write(task).expect(what);
    let said = r#"{"role":"user","content":"hi"}"#;
    writer.append(&[said]).expect(what);
    contexts.settle(task, &writer).expect(what);
    drop(writer);
    contexts.finish(task, &Outcome::Completed).expect(what);
    let registry = contexts.registry().expect(what);
    let problems = contexts.verify(task, &registry).expect(what);
    assert!(problems.is_empty(), "{what}: {problems:?}");
}

#[test]
fn a_damaged_page_of_the_registry_is_no_end() {
    let root = filled();
    let whole = fs::read(registry_path(root.path())).expect("the registry");
    let pages = whole.len() / PAGE;
    assert!(pages > 12, "{pages} pages");
    for page in 0..pages {
        for (fill, is_kept) in [(0, false), (0xa5, true)] {
            let what = format!("page {page} of {fill:#x}, kept: {is_kept}");
            let copy = tempfile::tempdir().expect("a directory");
            let copied = std::process::Command::new("cp")
                .args(["-a", &format!("{}/.", root.path().display())])
                .arg(copy.path())
                .status();
            assert!(copied.expect("cp runs").success());
            let mut damaged = whole.clone();
            damaged[page * PAGE..(page + 1) * PAGE].fill(fill);
            fs::write(registry_path(copy.path()), &damaged).expect("written");
            let contexts = contexts(copy.path());
            let contexts = if is_kept {
                contexts.keeping().expect(&what)
            } else {
                contexts
            };
            works(&contexts, &what);
            // A check of all pages finds damage to a page that was not read.
            let (registry, _) = contexts.repaired_registry().expect(&what);
            assert_eq!(registry.check().expect(&what), None, "{what}");
            let torn = set_aside(copy.path());
            assert!(torn.len() <= 1, "{what}: {torn:?}");
            assert_eq!(told(copy.path()), torn.len(), "{what}: it is said once");
            // The database that was set aside contains everything that was written before the damage was found.
            let is_kept = |torn: &PathBuf| fs::read(torn).expect("it").len() >= damaged.len();
            assert!(torn.iter().all(is_kept), "{what}: {torn:?}");
        }
    }
}

#[test]
fn what_was_learned_is_carried_over() {
    let root = filled();
    let path = registry_path(root.path());
    let mut bytes = fs::read(&path).expect("the registry");
    // All pages that hold names of repositories, which are those of the tasks.
    let mut count = 0;
    for page in bytes.chunks_exact_mut(PAGE).skip(1) {
        if memchr::memmem::find(page, b"name of a repository").is_some() {
            page.fill(0);
            count += 1;
        }
    }
    assert!(count > 3);
    fs::write(&path, bytes).expect("written");
    let contexts = contexts(root.path());
    works(&contexts, "without tasks");
    let registry = contexts.registry().expect("a registry");
    assert_eq!(registry.check().expect("an answer"), None);
    let window = registry.window("here", "m", Timestamp::now());
    assert_eq!(window.expect("an answer"), Some(9_000));
    assert!(registry.quirks("here", "m").expect("an answer").alternate);
    for number in 0..20 {
        let factor = registry.factor("here", &format!("model {number}"));
        assert!(
            factor
                .expect("an answer")
                .is_some_and(|factor| factor > 1.0)
        );
    }
}

#[test]
fn a_lost_registry_knows_the_tasks_that_ended() {
    let root = filled();
    fs::remove_file(registry_path(root.path())).expect("removed");
    let contexts = contexts(root.path());
    works(&contexts, "without a registry");
    assert_eq!(told(root.path()), 0);
}

#[test]
fn something_else_in_its_place_is_set_aside() {
    for other in ["", "not a database, but something else\n"] {
        let root = filled();
        fs::write(registry_path(root.path()), other.repeat(1000)).expect("written");
        works(&contexts(root.path()), other);
    }
}

#[test]
fn a_path_that_is_too_long_is_told_before_anything_is_made() {
    let root = tempfile::tempdir().expect("a directory");
    let mut long = root.path().to_owned();
    while long.as_os_str().len() < 500 {
        long.push("a-directory-with-a-name-of-some-length");
    }
    for contexts in [
        Contexts::new(&long, Durability::Never),
        Contexts::new(long.join("deeper"), Durability::Never),
    ] {
        let error = contexts.create(Metadata::default());
        let error = error.expect_err("SQLite takes no such path");
        let is_told = matches!(
            error,
            TaskError::Registry(RegistryError::PathTooLong { .. })
        );
        assert!(is_told, "{error}");
        assert_eq!(fs::read_dir(root.path()).expect("files").count(), 0);
    }
    // One that just fits does.
    let fits = root.path().join("x".repeat(200));
    let rest = 512 - "/chains.db-journal".len() - 2 - fits.as_os_str().len();
    let fits = fits.join("y".repeat(rest.min(250)));
    let task: Uuid = Contexts::new(&fits, Durability::Never)
        .create(Metadata::default())
        .expect("a task");
    assert!(fits.join("running").join(task.to_string()).is_dir());
}

#[test]
fn a_new_task_is_known_to_everybody_before_its_row_is_written() {
    let root = tempfile::tempdir().expect("a directory");
    let kept = contexts(root.path()).keeping().expect("a registry");
    let create = || kept.create(Metadata::default()).expect("a task");
    let (own, others, lost) = (create(), create(), create());
    assert!(kept.row(own).expect("it can be read").is_some());
    let known = |contexts: &Contexts, task: Uuid| {
        let rows = contexts.rows(&Filter::default()).expect("a list");
        rows.iter().filter(|row| row.uuid == task).count()
    };
    let late = create();
    assert_eq!(known(&contexts(root.path()), late), 1);
    assert_eq!(known(&kept, late), 1);
    assert_eq!(known(&contexts(root.path()), others), 1);
    // The process that made the last one was killed before the registry had it.
    let killed = create();
    drop(kept);
    assert_eq!(known(&contexts(root.path()), killed), 1);
    assert_eq!(known(&contexts(root.path()), lost), 1);
}
