//! Steps between registry and directories that a crash left incomplete, and their completion.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use infold_log::steer::Target;
use infold_log::{Point, Seq};
use infold_store::{
    Contexts, Counters, Durability, EventLine, Filter, Metadata, Outcome, Status, TaskError, What,
};
use jiff::Timestamp;
use tempfile::TempDir;
use uuid::Uuid;

struct World {
    root: TempDir,
    contexts: Contexts,
}

impl World {
    fn new() -> World {
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Never);
        World { root, contexts }
    }

    fn task(&self) -> Uuid {
        let id = self.contexts.create(Metadata::default()).expect("a task");
        let (mut writer, _) = self.contexts.write(id).expect("a writer");
        let texts = [
            r#"{"role":"user","content":"go"}"#,
            r#"{"role":"assistant","content":"done"}"#,
        ];
        writer.append(&texts).expect("messages");
        self.contexts.settle(id, &writer).expect("counted");
        id
    }

    fn dir(&self, place: &str, id: Uuid) -> PathBuf {
        self.root.path().join(place).join(id.to_string())
    }

    /// Writes into the log that the task failed, without the steps that follow from it.
    ///
    /// The process that did so has ended, and its name is still in the lock.
    fn say_failed(&self, id: Uuid) {
        let dir = self.contexts.place(id).expect("it has a directory");
        let log = self.contexts.read(id).expect("a reader");
        let Point { seq, .. } = log.state().at();
        let line = EventLine {
            id: log.state().next_event(),
            ts: log.last_time().expect("a time"),
            after: seq,
            pass: None,
            what: What::Status {
                status: Status::Failed,
                error: Some("no".to_owned()),
                is_idle: false,
            },
        };
        let mut events = fs::read(dir.join("events.jsonl")).expect("events");
        events.extend(line.encode());
        fs::write(dir.join("events.jsonl"), events).expect("one more event");
        fs::write(dir.join("lock"), r#"{"pid":1,"host":"gone"}"#).expect("a name");
    }

    /// Returns the status of a task in the repaired registry, as any later command sees it.
    fn status(&self, id: Uuid) -> Status {
        let rows = self.rows();
        let row = rows.iter().find(|(row, _)| *row == id);
        row.expect("it has a row").1
    }

    fn rows(&self) -> Vec<(Uuid, Status)> {
        let registry = self.contexts.registry().expect("a registry");
        let rows = registry.list(&Filter::default()).expect("rows");
        rows.into_iter().map(|row| (row.uuid, row.status)).collect()
    }

    /// Everywhere the task is said to have failed, and nothing is wrong with it.
    fn has_failed(&self, id: Uuid) {
        assert_eq!(self.status(id), Status::Failed);
        assert!(self.dir("completed", id).is_dir() && !self.dir("running", id).exists());
        let registry = self.contexts.registry().expect("a registry");
        let row = registry.get(id).expect("a row").expect("a row");
        assert_eq!(row.error_message.as_deref(), Some("no"));
        let last = self
            .contexts
            .read(id)
            .expect("a reader")
            .last_time()
            .expect("a time");
        let ended = row.completed_at.expect("a time").as_millisecond();
        assert_eq!(u64::try_from(ended).expect("after 1970"), last);
        self.is_well(id);
    }

    fn is_well(&self, id: Uuid) {
        let registry = self.contexts.registry().expect("a registry");
        let problems = self.contexts.verify(id, &registry).expect("a verdict");
        assert!(problems.is_empty(), "{problems:?}");
    }
}

fn failed() -> Outcome {
    Outcome::Failed {
        error: "no".to_owned(),
    }
}

#[test]
fn an_end_that_only_the_log_knows_is_carried_through() {
    let world = World::new();
    let id = world.task();
    world.say_failed(id);
    world.has_failed(id);
}

#[test]
fn an_end_that_only_the_log_knows_is_carried_through_by_a_writer() {
    let world = World::new();
    let id = world.task();
    world.say_failed(id);
    let error = world.contexts.write(id).expect_err("it has ended");
    assert!(
        matches!(
            error,
            TaskError::Ended {
                status: Status::Failed,
                ..
            }
        ),
        "{error}"
    );
    world.has_failed(id);
}

#[test]
fn ending_again_what_was_not_carried_through_is_no_error() {
    let world = World::new();
    let id = world.task();
    world.say_failed(id);
    world
        .contexts
        .finish(id, &failed())
        .expect("it had failed before");
    world.has_failed(id);
    let error = world
        .contexts
        .finish(id, &failed())
        .expect_err("it has ended");
    assert!(matches!(error, TaskError::Ended { .. }), "{error}");
}

#[test]
fn an_end_that_cannot_be_carried_through_now_is_one_all_the_same() {
    let world = World::new();
    let id = world.task();
    // Something stands where its directory should go.
    let obstacle = world.dir("completed", id).join("something");
    fs::create_dir_all(&obstacle).expect("an obstacle");
    for _ in 0..2 {
        let ended = world.contexts.finish(id, &failed());
        ended.expect("its log says so, and saying it again is harmless");
        let log = world.contexts.read(id).expect("a reader");
        assert_eq!(log.state().at().event, 1);
    }
    assert_eq!(world.status(id), Status::Failed);
    fs::remove_dir_all(world.dir("completed", id)).expect("removed");
    world.has_failed(id);
}

#[test]
fn an_end_that_log_and_registry_know_moves_the_directory() {
    let world = World::new();
    let id = world.task();
    world.say_failed(id);
    let registry = world.contexts.registry().expect("a registry");
    // Put back to the moment before the move.
    fs::rename(world.dir("completed", id), world.dir("running", id)).expect("moved back");
    assert_eq!(
        registry.get(id).expect("a row").expect("a row").status,
        Status::Failed
    );
    world.has_failed(id);
}

#[test]
fn an_end_that_the_registry_missed_is_entered() {
    let world = World::new();
    let id = world.task();
    world.say_failed(id);
    fs::rename(world.dir("running", id), world.dir("completed", id)).expect("moved");
    assert_eq!(world.status(id), Status::Failed);
    // Its sidecars lack the one event; only `doctor` repairs those of a completed task.
    let registry = world.contexts.registry().expect("a registry");
    world.contexts.repair(id, &registry).expect("repaired");
    world.has_failed(id);
}

#[test]
fn an_end_that_only_the_registry_knows_is_none() {
    let world = World::new();
    let id = world.task();
    let registry = world.contexts.registry().expect("a registry");
    registry
        .finish(id, &failed(), Timestamp::now())
        .expect("a row");
    assert_eq!(world.status(id), Status::Running);
    world.is_well(id);
    world.contexts.write(id).expect("it can be gone on with");
}

#[test]
fn a_fork_names_the_task_that_holds_what_it_continues() {
    let world = World::new();
    let first = world.task();
    let mut last = first;
    for _ in 0..40 {
        last = world.contexts.fork(last, None).expect("a fork");
        let log = world.contexts.read(last).expect("it reads");
        assert_eq!(
            log.parent().expect("it continues another").0,
            first.to_string()
        );
    }
    let point = Target::Message(1);
    let (mut writer, _) = world.contexts.write(last).expect("a writer");
    writer
        .append(&[r#"{"role":"user","content":"more"}"#])
        .expect("a message");
    drop(writer);
    let early = world.contexts.fork(last, Some(point)).expect("a fork");
    let late = world.contexts.fork(last, None).expect("a fork");
    let parent = |id| {
        world
            .contexts
            .read(id)
            .expect("it reads")
            .parent()
            .expect("a fork")
            .0
            .to_owned()
    };
    assert_eq!(parent(early), first.to_string());
    assert_eq!(parent(late), last.to_string());
    world.is_well(early);
    world.is_well(late);
}

#[test]
fn a_task_that_continues_itself_is_told_so() {
    let world = World::new();
    let parent = world.task();
    let child = world.contexts.fork(parent, None).expect("a fork");
    let (mut writer, _) = world.contexts.write(child).expect("a writer");
    writer
        .append(&[r#"{"role":"user","content":"more"}"#])
        .expect("a message");
    drop(writer);
    let grandchild = world.contexts.fork(child, None).expect("a fork");
    for continued in [child, grandchild] {
        let path = world.dir("running", child).join("events.jsonl");
        let events = fs::read_to_string(&path).expect("events");
        let (old, new) = (parent.to_string(), continued.to_string());
        fs::write(&path, events.replace(&old, &new)).expect("events");
        for task in [child, grandchild] {
            let sidecar = world.dir("running", task).join("lineage.idx");
            let _ = fs::remove_file(sidecar);
            // Opening a fork does not open the tasks that it continues.
            let opened = world.contexts.read(task);
            let seen = opened.and_then(|log| {
                let all = (1..=log.state().at().seq).filter_map(Seq::new);
                Ok(all
                    .map(|seq| log.message(seq))
                    .collect::<Result<Vec<_>, _>>()?)
            });
            let error = seen.expect_err("a circle").to_string();
            assert!(error.contains("continues itself"), "{error}");
            let problems = world
                .contexts
                .verify(task, None)
                .expect("it can be looked at");
            assert!(!problems.is_empty());
        }
        fs::write(&path, events).expect("events");
        world.is_well(grandchild);
    }
}

#[test]
fn a_directory_without_a_row_gets_one() {
    let world = World::new();
    let (parent, ended) = (world.task(), world.task());
    let child = world.contexts.fork(parent, None).expect("a fork");
    world.contexts.finish(ended, &failed()).expect("failed");
    world
        .contexts
        .finish(parent, &Outcome::Completed)
        .expect("completed");
    for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        let _ = fs::remove_file(world.root.path().join(name));
    }
    // Those that ended are entered, too.
    let mut rows = world.rows();
    rows.sort_by_key(|(_, status)| status.to_string());
    let ended_rows = [(parent, Status::Completed), (ended, Status::Failed)];
    assert_eq!(rows[..2], ended_rows);
    assert_eq!(rows[2..], [(child, Status::Running)]);
    world.is_well(child);
    let (registry, _) = world.contexts.repaired_registry().expect("a registry");
    assert_eq!(registry.uuids().expect("rows").len(), 3);
    world.has_failed(ended);
    let counters = registry
        .get(parent)
        .expect("a row")
        .expect("a row")
        .counters;
    assert_eq!(
        counters,
        Counters {
            llm_calls: 1,
            tokens: 10,
            ..Counters::default()
        }
    );
    // The new registry knows that the fork needs its parent.
    let gone = world.contexts.clean(later(), true).expect("cleaned");
    assert_eq!(gone.iter().map(|row| row.uuid).collect::<Vec<_>>(), [ended]);
    world.is_well(child);
}

#[test]
fn a_row_without_a_directory_is_told_and_removed() {
    let world = World::new();
    let (id, other) = (world.task(), world.task());
    fs::remove_dir_all(world.dir("running", id)).expect("removed");
    let registry = world.contexts.registry().expect("a registry");
    assert_eq!(
        world
            .contexts
            .verify(id, &registry)
            .expect("a verdict")
            .len(),
        1
    );
    let (_, done) = world.contexts.repaired_registry().expect("a registry");
    assert!(
        matches!(&done[..], [one] if one.contains(&id.to_string())),
        "{done:?}"
    );
    assert_eq!(world.rows(), [(other, Status::Running)]);
}

#[test]
fn one_task_that_cannot_be_read_does_not_stop_the_others() {
    let world = World::new();
    let (broken, bare) = (world.task(), Uuid::new_v4());
    fs::create_dir(world.dir("running", bare)).expect("a directory");
    let dir = world.dir("running", broken);
    let registry = world.contexts.registry().expect("a registry");
    registry
        .finish(broken, &failed(), Timestamp::now())
        .expect("a row");
    let log = fs::read(dir.join("messages.jsonl")).expect("messages");
    fs::write(dir.join("messages.jsonl"), [b"x\n", &log[..]].concat()).expect("damaged");
    for name in ["messages.idx", "events.idx"] {
        fs::remove_file(dir.join(name)).expect("removed");
    }
    let other = world.task();
    world.is_well(other);
    world.contexts.finish(other, &failed()).expect("failed");
    world.has_failed(other);
    let (registry, _) = world.contexts.repaired_registry().expect("a registry");
    let problems = world.contexts.verify(bare, &registry).expect("a verdict");
    assert!(!problems.is_empty());
}

#[test]
fn what_is_left_of_a_task_that_was_never_made_goes_with_the_old() {
    let world = World::new();
    let parent = world.task();
    let child = world.contexts.fork(parent, None).expect("a fork");
    world
        .contexts
        .finish(parent, &Outcome::Completed)
        .expect("completed");
    // Go back to the moment before the directory got its name, with and without a process that works on it.
    let registry = world.contexts.registry().expect("a registry");
    let hidden = world.root.path().join("running").join(format!(".{child}"));
    fs::rename(world.dir("running", child), &hidden).expect("renamed");
    let (rows, _) = world.contexts.repaired_registry().expect("a registry");
    assert_eq!(rows.uuids().expect("rows"), [parent]);
    registry.add_fork(child, parent).expect("a reference");
    let gone = world.contexts.clean(later(), true).expect("cleaned");
    assert!(
        gone.is_empty() && hidden.is_dir(),
        "it may be in the making"
    );

    let long_ago = SystemTime::now() - Duration::from_secs(7200);
    let dir = fs::File::open(&hidden).expect("a directory");
    dir.set_modified(long_ago).expect("an older one");
    world.contexts.clean(later(), true).expect("cleaned");
    assert!(!hidden.exists());
    let gone = world.contexts.clean(later(), true).expect("cleaned");
    assert_eq!(gone.len(), 1, "nothing refers to the parent any more");
}

#[test]
fn a_removal_that_was_cut_off_is_finished() {
    let world = World::new();
    let (rowless, trash) = (world.task(), world.task());
    for id in [rowless, trash] {
        world
            .contexts
            .finish(id, &Outcome::Completed)
            .expect("completed");
    }
    let registry = world.contexts.registry().expect("a registry");
    for id in [rowless, trash] {
        registry.remove(id).expect("no row");
    }
    let hidden = world
        .root
        .path()
        .join("completed")
        .join(format!(".{trash}"));
    fs::rename(world.dir("completed", trash), &hidden).expect("renamed");
    assert_eq!(world.contexts.tasks().expect("directories"), [rowless]);
    let gone = world.contexts.clean(later(), true).expect("cleaned");
    assert_eq!(gone.len(), 1);
    assert!(!hidden.exists() && !world.dir("completed", rowless).exists());
    assert_eq!(world.rows(), []);
}

#[test]
fn a_task_whose_directory_was_removed_is_not_listed() {
    for is_kept in [false, true] {
        let world = World::new();
        let (stays, running, completed) = (world.task(), world.task(), world.task());
        let finished = world.contexts.finish(completed, &Outcome::Completed);
        finished.expect("completed");
        let contexts = if is_kept {
            world.contexts.clone().keeping().expect("a registry")
        } else {
            world.contexts.clone()
        };
        for (place, id) in [("running", running), ("completed", completed)] {
            fs::remove_dir_all(world.dir(place, id)).expect("removed");
        }
        let filter = Filter {
            limit: Some(1),
            ..Filter::default()
        };
        let listed = contexts.rows(&filter).expect("rows");
        let listed: Vec<Uuid> = listed.iter().map(|row| row.uuid).collect();
        assert_eq!(listed, [stays], "kept: {is_kept}");
        assert_eq!(contexts.row(running).expect("an answer"), None);
        let registry = world.contexts.registry().expect("a registry");
        assert_eq!(registry.uuids().expect("rows"), [stays], "kept: {is_kept}");
    }
}

#[test]
fn a_parent_whose_directory_was_removed_is_not_listed() {
    let world = World::new();
    let parent = world.task();
    let fork = world.contexts.fork(parent, None).expect("a fork");
    fs::remove_dir_all(world.dir("running", parent)).expect("removed");
    let listed = world.contexts.rows(&Filter::default()).expect("rows");
    let listed: Vec<Uuid> = listed.iter().map(|row| row.uuid).collect();
    assert_eq!(listed, [fork]);
}

fn later() -> Timestamp {
    Timestamp::now() + Duration::from_secs(60)
}

#[test]
fn a_registry_made_anew_still_spares_what_forks_refer_to() {
    let world = World::new();
    let parent = world.task();
    let fork = world.contexts.fork(parent, None).expect("a fork");
    let done = world.contexts.finish(parent, &Outcome::Completed);
    done.expect("it ends");
    for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        let _ = fs::remove_file(world.root.path().join(name));
    }
    world.contexts.repaired_registry().expect("a new registry");
    let later = Timestamp::now() + Duration::from_secs(60);
    let removed = world.contexts.clean(later, true).expect("cleaning");
    assert!(removed.is_empty(), "{removed:?}");
    let log = world.contexts.read(fork).expect("the fork reads on");
    assert_eq!(log.state().at().seq, 2);
}

#[test]
fn a_log_without_one_of_its_files_is_damaged_not_empty() {
    for name in ["messages.jsonl", "events.jsonl"] {
        let world = World::new();
        let id = world.task();
        let path = world.dir("running", id).join(name);
        fs::remove_file(&path).expect("it was there");
        let error = world.contexts.read(id).expect_err("it is damaged");
        assert!(error.to_string().contains("the file is missing"), "{error}");
        assert!(world.contexts.write(id).is_err());
        assert!(!path.exists(), "nothing was made in its place");
        let registry = world.contexts.registry().expect("the registry");
        let problems = world.contexts.verify(id, &registry).expect("a check");
        assert_eq!(problems.len(), 1, "{problems:?}");
    }
}

#[test]
fn who_keeps_the_registry_neither_opens_it_again_nor_lists_tasks() {
    let mut world = World::new();
    let stray = world.task();
    let kept = world.contexts.clone().keeping().expect("it stays open");
    world.contexts = kept;
    // Both are what a registry that is opened anew would put right.
    let db = world.root.path().join("tasks.db");
    let elsewhere = world.root.path().join("elsewhere.db");
    fs::rename(&db, &elsewhere).expect("the registry moves");
    world.say_failed(stray);

    let id = world.task();
    let fork = world.contexts.fork(id, None).expect("a fork");
    let row = world.contexts.row(id).expect("it is asked").expect("a row");
    assert_eq!((row.status, row.counters.llm_calls), (Status::Running, 1));
    let known = world.contexts.rows(&Filter::default()).expect("rows");
    let known: Vec<Uuid> = known.into_iter().map(|row| row.uuid).collect();
    assert_eq!(known, [fork, id, stray]);
    assert!(world.dir("running", stray).is_dir());
    world
        .contexts
        .finish(id, &Outcome::Completed)
        .expect("it ends");
    assert!(world.dir("completed", id).is_dir());
    assert!(!db.exists());
}

#[test]
fn a_registry_that_is_kept_is_used_from_many_threads() {
    let world = World::new();
    let contexts = world.contexts.clone().keeping().expect("it stays open");
    let made = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let make = |_| contexts.create(Metadata::default()).expect("a task");
                    (0..25).map(make).collect::<Vec<Uuid>>()
                })
            })
            .collect();
        let made = threads.into_iter().map(|thread| thread.join());
        made.flat_map(|made| made.expect("no panic"))
            .collect::<Vec<_>>()
    });
    let known = world.rows();
    assert_eq!(known.len(), 100);
    assert!(
        made.iter()
            .all(|id| known.contains(&(*id, Status::Running)))
    );
}

#[test]
fn who_finds_a_task_held_by_a_server_learns_where_it_answers() {
    let world = World::new();
    let id = world.task();
    let server = world.contexts.clone().at("http://127.0.0.1:7333");
    let writer = server.write(id).expect("a writer");
    let held = world.contexts.write(id).expect_err("it is held");
    assert_eq!(held.held_at(), Some("http://127.0.0.1:7333"));
    let told = held.to_string();
    let wanted = " (infold serve at http://127.0.0.1:7333) is writing to this task";
    assert!(told.ends_with(wanted), "{told}");
    drop(writer);
    world.contexts.write(id).expect("it was given up");
}
