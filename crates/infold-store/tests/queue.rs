//! Tasks that wait in the queue of a contexts directory.

use infold_log::Seq;
use infold_store::{
    ClaimRequest, Contexts, Durability, Enqueued, Lease, Metadata, NewTask, Return, Status,
    TaskError, recorded_status,
};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

fn home() -> (tempfile::TempDir, Contexts) {
    let dir = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(dir.path().join("contexts"), Durability::Never);
    (dir, contexts)
}

fn said(text: &str) -> Vec<u8> {
    format!(r#"{{"role":"user","content":"{text}"}}"#).into_bytes()
}

fn new_task(text: &str) -> NewTask {
    NewTask {
        metadata: Metadata {
            task_source: Some("cli".to_owned()),
            user: Some("ada".to_owned()),
            ..Metadata::default()
        },
        messages: vec![said(text)],
        ..NewTask::default()
    }
}

fn claim(contexts: &Contexts, owner: &str) -> Option<Uuid> {
    claim_at(contexts, owner, 1, Timestamp::now(), None)
}

/// Claims a task for a process, at a time.
fn claim_at(
    contexts: &Contexts,
    owner: &str,
    process_id: u32,
    now: Timestamp,
    task: Option<Uuid>,
) -> Option<Uuid> {
    let request = ClaimRequest {
        lease: Lease {
            owner: owner.to_owned(),
            until: now + SignedDuration::from_secs(60),
        },
        process_id,
        hostname: infold_store::host(),
        now,
        per_user: None,
        task,
    };
    let entry = contexts.with_registry(|rows| rows.claim(&request));
    let entry = entry.expect("a registry");
    entry.map(|entry| entry.uuid)
}

fn status(contexts: &Contexts, task: Uuid) -> (Status, Option<String>) {
    let row = contexts.row(task).expect("a registry");
    let row = row.expect("a row");
    (row.status, row.error_message)
}

#[test]
fn a_queued_task_is_there_whole_before_anybody_works_on_it() {
    let (_dir, contexts) = home();
    let Enqueued { task, is_new } = contexts.enqueue(new_task("fix the tests")).unwrap();
    assert!(is_new);
    let log = contexts.read(task).unwrap();
    assert_eq!(log.message(Seq::FIRST).unwrap(), said("fix the tests"));
    let row = contexts.row(task).unwrap().unwrap();
    assert_eq!(row.status, Status::Queued);
    assert_eq!(row.title.as_deref(), Some("fix the tests"));
    assert_eq!(
        (row.started_at, row.process_id, row.hostname),
        (None, None, None)
    );
    assert_eq!(row.user.as_deref(), Some("ada"));
    let dir = contexts.root().join("running");
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 1);
}

#[test]
fn the_id_that_a_caller_brings_is_queued_once() {
    let (_dir, contexts) = home();
    let mine = Uuid::from_u128(7);
    let bring = |text: &str| {
        let new = NewTask {
            uuid: Some(mine),
            ..new_task(text)
        };
        contexts.enqueue(new).unwrap()
    };
    assert_eq!(
        bring("one"),
        Enqueued {
            task: mine,
            is_new: true
        }
    );
    assert_eq!(
        bring("two"),
        Enqueued {
            task: mine,
            is_new: false
        }
    );
    let log = contexts.read(mine).unwrap();
    assert_eq!(log.state().at().seq, 1);
    assert_eq!(claim(&contexts, "a"), Some(mine));
    assert_eq!(claim(&contexts, "b"), None);
}

#[test]
fn many_who_bring_the_same_id_make_one_task() {
    let (_dir, contexts) = home();
    contexts.enqueue(new_task("another")).unwrap();
    let mine = Uuid::from_u128(9);
    let made: usize = std::thread::scope(|scope| {
        let bring = || {
            let new = NewTask {
                uuid: Some(mine),
                ..new_task("the same")
            };
            usize::from(contexts.enqueue(new).unwrap().is_new)
        };
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(bring)).collect();
        callers.into_iter().map(|one| one.join().unwrap()).sum()
    });
    assert_eq!(made, 1);
    assert_eq!(contexts.tasks().unwrap().len(), 2);
    let left = std::fs::read_dir(contexts.root().join("running")).unwrap();
    assert_eq!(left.count(), 2, "nothing hidden is left behind");
}

#[test]
fn a_message_that_is_none_queues_nothing() {
    let (_dir, contexts) = home();
    let new = NewTask {
        messages: vec![b"no message".to_vec()],
        ..new_task("")
    };
    assert!(contexts.enqueue(new).is_err());
    assert!(contexts.tasks().unwrap().is_empty());
    assert_eq!(claim(&contexts, "a"), None);
}

#[test]
fn pause_resume_and_cancel_are_in_the_log_and_in_the_registry() {
    let (_dir, contexts) = home();
    let task = contexts.enqueue(new_task("wait")).unwrap().task;
    assert!(contexts.pause(task, "not today").unwrap());
    let paused = (Status::Paused, Some("not today".to_owned()));
    assert_eq!(status(&contexts, task), paused);
    assert_eq!(
        recorded_status(&contexts.read(task).unwrap()).unwrap(),
        Some(paused)
    );
    assert_eq!(claim(&contexts, "a"), None);
    assert!(contexts.resume(task).unwrap());
    assert_eq!(status(&contexts, task), (Status::Queued, None));
    assert_eq!(claim(&contexts, "a"), Some(task));
    // Its worker has it: it is asked, and nothing else changes.
    assert!(!contexts.resume(task).unwrap());
    assert!(!contexts.cancel(task, "not needed").unwrap());
    assert_eq!(status(&contexts, task).0, Status::Running);
    let (writer, _) = contexts.write(task).unwrap();
    assert!(
        contexts
            .give_back(task, writer, "a", Return::Queued)
            .unwrap()
    );
    assert!(contexts.cancel(task, "not needed").unwrap());
    let failed = (Status::Failed, Some("not needed".to_owned()));
    assert_eq!(status(&contexts, task), failed);
    let error = contexts.resume(task).unwrap_err();
    assert!(matches!(error, TaskError::Ended { .. }), "{error}");
}

#[test]
fn a_lost_registry_knows_again_what_waits_and_what_was_set_aside() {
    let (_dir, contexts) = home();
    let waiting = contexts.enqueue(new_task("wait")).unwrap().task;
    let paused = contexts.enqueue(new_task("pause")).unwrap().task;
    contexts.pause(paused, "later").unwrap();
    for name in ["tasks.db", "tasks.db-wal", "tasks.db-shm"] {
        let _ = std::fs::remove_file(contexts.root().join(name));
    }
    assert_eq!(status(&contexts, waiting), (Status::Queued, None));
    assert_eq!(
        status(&contexts, paused),
        (Status::Paused, Some("later".to_owned()))
    );
    assert_eq!(claim(&contexts, "a"), Some(waiting));
    assert_eq!(claim(&contexts, "a"), None);
}

#[test]
fn a_task_with_a_lease_from_the_start_never_waits() {
    let (_dir, contexts) = home();
    let lease = Lease {
        owner: "me".to_owned(),
        until: Timestamp::now() + SignedDuration::from_secs(60),
    };
    let new = NewTask {
        lease: Some(lease),
        ..new_task("now")
    };
    let task = contexts.enqueue(new).unwrap().task;
    let row = contexts.row(task).unwrap().unwrap();
    assert_eq!(row.status, Status::Running);
    assert!(row.started_at.is_some() && row.process_id.is_some());
    assert_eq!(claim(&contexts, "a"), None);
}

#[test]
fn a_worker_that_was_asked_to_pause_goes_on_if_the_task_is_resumed_first() {
    let (_dir, contexts) = home();
    let task = contexts.enqueue(new_task("work")).unwrap().task;
    assert_eq!(claim(&contexts, "a"), Some(task));
    assert!(!contexts.pause(task, "lunch").unwrap());
    assert!(!contexts.resume(task).unwrap());
    let entry = contexts.with_registry(|rows| rows.queue_entry(task));
    assert_eq!(entry.unwrap().unwrap().stop, None);
    // A cancellation is not taken back by that.
    assert!(!contexts.cancel(task, "not needed").unwrap());
    assert!(!contexts.resume(task).unwrap());
    let entry = contexts.with_registry(|rows| rows.queue_entry(task));
    assert!(entry.unwrap().unwrap().stop.is_some());
}

#[test]
fn the_lease_of_a_process_that_died_is_ended_and_no_other() {
    let (_dir, contexts) = home();
    let task = contexts.enqueue(new_task("work")).unwrap().task;
    assert_eq!(claim(&contexts, "a"), Some(task));
    let row = contexts.row(task).unwrap().unwrap();
    let (pid, host) = (row.process_id.unwrap(), row.hostname.unwrap());
    // It has not opened the task yet, or closed it: nothing proves that it is gone.
    assert!(!contexts.end_dead_lease(task).unwrap());
    let lock = contexts.place(task).unwrap().join("lock");
    let sign = |pid: u32, host: &str| {
        let name = format!("{{\"pid\":{pid},\"host\":\"{host}\",\"since\":\"x\"}}\n");
        std::fs::write(&lock, name).unwrap();
    };
    sign(pid + 1, &host);
    assert!(
        !contexts.end_dead_lease(task).unwrap(),
        "an earlier process"
    );
    sign(pid, "elsewhere");
    assert!(!contexts.end_dead_lease(task).unwrap(), "another machine");
    sign(pid, &host);
    {
        let held = std::fs::File::open(&lock).unwrap();
        held.lock().unwrap();
        assert!(!contexts.end_dead_lease(task).unwrap(), "it lives");
    }
    assert!(contexts.end_dead_lease(task).unwrap());
    // Any worker goes on with it. One that died before it took the lock, or could not sign it, left no name.
    assert_eq!(
        claim_at(&contexts, "b", 1, Timestamp::now(), None),
        Some(task)
    );
    std::fs::write(&lock, "").unwrap();
    assert!(!contexts.end_dead_lease(task).unwrap(), "it may be opening");
    let now = Timestamp::now() + SignedDuration::from_hours(1);
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    let pid = ended.id();
    ended.wait().unwrap();
    assert_eq!(claim_at(&contexts, "c", pid, now, Some(task)), Some(task));
    {
        let held = std::fs::File::open(&lock).unwrap();
        held.lock().unwrap();
        assert!(
            !contexts.end_dead_lease(task).unwrap(),
            "the lock is held by some process"
        );
    }
    assert!(contexts.end_dead_lease(task).unwrap());
    // A task without a worker is cancelled at once, because no worker would answer the request.
    assert!(contexts.cancel(task, "not needed").unwrap());
}
