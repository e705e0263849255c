use jiff::SignedDuration;
use tempfile::TempDir;

use super::*;
use crate::Outcome;

fn home() -> (TempDir, Registry) {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::open(dir.path()).unwrap();
    (dir, registry)
}

fn minute(minute: u8) -> Timestamp {
    format!("2026-11-18T12:{minute:02}:00Z").parse().unwrap()
}

fn task(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// Queues a task that was made at a minute.
fn queue(registry: &Registry, number: u128, made: u8, priority: i64, user: Option<&str>) {
    let row = TaskRow {
        user: user.map(str::to_owned),
        ..TaskRow::new(task(number), Status::Queued, minute(made))
    };
    let entered = {
        let entry = NewEntry {
            priority,
            ..NewEntry::default()
        };
        registry.enqueue(&row, entry, || Ok::<(), String>(()))
    };
    assert_eq!(entered.unwrap(), Ok(Entered::New));
}

fn by(owner: &str, now: Timestamp) -> ClaimRequest {
    ClaimRequest {
        lease: Lease {
            owner: owner.to_owned(),
            until: now + SignedDuration::from_secs(60),
        },
        process_id: 7,
        hostname: "here".to_owned(),
        now,
        per_user: None,
        task: None,
    }
}

fn claimed(registry: &Registry, request: &ClaimRequest) -> Option<Uuid> {
    registry.claim(request).unwrap().map(|entry| entry.uuid)
}

#[test]
fn priority_comes_before_age_and_age_before_the_rest() {
    let (_dir, registry) = home();
    queue(&registry, 1, 5, 0, None);
    queue(&registry, 2, 3, 0, None);
    queue(&registry, 3, 9, 1, None);
    queue(&registry, 4, 1, -1, None);
    let order: Vec<Option<Uuid>> = (0..5)
        .map(|_| claimed(&registry, &by("a", minute(10))))
        .collect();
    let expected = [3, 2, 1, 4].map(|number| Some(task(number)));
    assert_eq!(order, [&expected[..], &[None]].concat());
    let row = registry.get(task(3)).unwrap().unwrap();
    assert_eq!(row.status, Status::Running);
    assert_eq!(row.started_at, Some(minute(10)));
    assert_eq!(
        (row.process_id, row.hostname.as_deref()),
        (Some(7), Some("here"))
    );
}

#[test]
fn a_task_is_queued_once_by_its_id_and_by_its_key() {
    let (_dir, registry) = home();
    let row = |number, status| TaskRow {
        task_source: Some("github".to_owned()),
        owner: Some("o".to_owned()),
        repo: Some("r".to_owned()),
        task_type: Some("issue".to_owned()),
        task_id: Some("12".to_owned()),
        ..TaskRow::new(task(number), status, minute(0))
    };
    let enter = |row: &TaskRow| {
        let entered = registry.enqueue(row, NewEntry::default(), || Ok::<(), String>(()));
        entered.unwrap().unwrap()
    };
    assert_eq!(enter(&row(1, Status::Queued)), Entered::New);
    assert_eq!(enter(&row(1, Status::Queued)), Entered::Known(task(1)));
    assert_eq!(enter(&row(2, Status::Queued)), Entered::Known(task(1)));
    let end = Outcome::Failed {
        error: "no".to_owned(),
    };
    registry.finish(task(1), &end, minute(1)).unwrap();
    // An id is never used again; the thing itself may be taken up again after its end.
    assert_eq!(enter(&row(1, Status::Queued)), Entered::Known(task(1)));
    assert_eq!(enter(&row(2, Status::Queued)), Entered::New);
    let other = TaskRow {
        task_type: Some("pull_request".to_owned()),
        ..row(3, Status::Queued)
    };
    assert_eq!(enter(&other), Entered::New);
}

#[test]
fn what_cannot_be_published_is_not_queued() {
    let (_dir, registry) = home();
    let row = TaskRow::new(task(1), Status::Queued, minute(0));
    let entered = registry.enqueue(&row, NewEntry::default(), || Err("no space"));
    assert_eq!(entered.unwrap(), Err("no space"));
    assert_eq!(registry.get(task(1)).unwrap(), None);
    assert_eq!(registry.queue_entry(task(1)).unwrap(), None);
    assert_eq!(claimed(&registry, &by("a", minute(1))), None);
}

#[test]
fn what_a_new_task_may_do_is_stored_before_it_is_visible() {
    let (dir, registry) = home();
    let row = TaskRow::new(task(1), Status::Running, minute(0));
    let entry = NewEntry {
        allows_commands: true,
        ..NewEntry::default()
    };
    // What another process finds if this one dies while it publishes the task.
    let found = std::cell::RefCell::new(None);
    let entered = registry.enqueue(&row, entry, || {
        let other = Registry::open(dir.path()).unwrap();
        *found.borrow_mut() = other.queue_entry(task(1)).unwrap();
        Ok::<(), String>(())
    });
    assert_eq!(entered.unwrap(), Ok(Entered::New));
    assert!(found.take().unwrap().allows_commands);
}

#[test]
fn an_entry_that_a_crash_left_does_not_decide_about_a_task() {
    let (_dir, registry) = home();
    let left = NewEntry {
        allows_commands: true,
        ..NewEntry::default()
    };
    registry.write(|db| add_entry(db, task(1), left)).unwrap();
    queue(&registry, 1, 0, 0, None);
    let entry = registry.queue_entry(task(1)).unwrap().unwrap();
    assert!(!entry.allows_commands);
}

#[test]
fn a_lease_that_expired_is_given_to_the_next_and_a_renewed_one_is_not() {
    let (_dir, registry) = home();
    queue(&registry, 1, 0, 0, None);
    let first = by("a", minute(1));
    assert_eq!(claimed(&registry, &first), Some(task(1)));
    assert_eq!(claimed(&registry, &by("b", minute(1))), None);
    let longer = Lease {
        until: minute(4),
        ..first.lease.clone()
    };
    let entry = registry.renew_lease(task(1), &longer).unwrap().unwrap();
    assert_eq!((entry.attempts, entry.lease), (1, Some(longer.clone())));
    assert_eq!(claimed(&registry, &by("b", minute(3))), None);
    let second = registry.claim(&by("b", minute(4))).unwrap().unwrap();
    assert_eq!(second.attempts, 2);
    // The first worker lost it, and can neither keep it nor give it back.
    assert_eq!(registry.renew_lease(task(1), &longer).unwrap(), None);
    assert!(!registry.give_back(task(1), "a", &Return::Queued).unwrap());
    assert_eq!(
        registry.get(task(1)).unwrap().unwrap().status,
        Status::Running
    );
}

#[test]
fn what_is_given_back_waits_as_long_as_it_should() {
    let (_dir, registry) = home();
    queue(&registry, 1, 0, 0, None);
    assert_eq!(claimed(&registry, &by("a", minute(1))), Some(task(1)));
    let retry = Return::Retry {
        not_before: minute(5),
        error: "busy".to_owned(),
    };
    assert!(registry.give_back(task(1), "a", &retry).unwrap());
    let row = registry.get(task(1)).unwrap().unwrap();
    assert_eq!(
        (row.status, row.error_message.as_deref()),
        (Status::Queued, Some("busy"))
    );
    assert_eq!(claimed(&registry, &by("a", minute(4))), None);
    let again = registry.claim(&by("a", minute(5))).unwrap().unwrap();
    assert_eq!((again.attempts, again.not_before), (2, None));
    // A worker that was asked to end gives it back, and that is no attempt.
    assert!(registry.give_back(task(1), "a", &Return::Queued).unwrap());
    assert_eq!(registry.queue_entry(task(1)).unwrap().unwrap().attempts, 1);
    assert_eq!(
        registry
            .claim(&by("a", minute(5)))
            .unwrap()
            .unwrap()
            .attempts,
        2
    );
    registry.reset_attempts(task(1), "a").unwrap();
    assert_eq!(registry.queue_entry(task(1)).unwrap().unwrap().attempts, 0);
}

#[test]
fn a_task_that_something_else_has_is_deferred_without_counting_an_attempt() {
    let (_dir, registry) = home();
    queue(&registry, 1, 0, 0, None);
    for at in [1, 3, 5] {
        let entry = registry.claim(&by("a", minute(at))).unwrap().unwrap();
        assert_eq!(entry.attempts, 1);
        let deferred = Return::Deferred {
            not_before: minute(at + 1),
            error: "held".to_owned(),
        };
        assert!(registry.give_back(task(1), "a", &deferred).unwrap());
        assert_eq!(claimed(&registry, &by("b", minute(at))), None);
    }
}

#[test]
fn leave_to_run_commands_stays_with_the_task_while_it_is_unfinished() {
    let (_dir, registry) = home();
    queue(&registry, 1, 0, 0, None);
    queue(&registry, 2, 0, 0, None);
    let allows = |number| {
        let entry = registry.queue_entry(task(number)).unwrap();
        entry.map(|entry| entry.allows_commands)
    };
    registry.allow_commands(task(1)).unwrap();
    assert_eq!((allows(1), allows(2)), (Some(true), Some(false)));
    registry.claim(&by("a", minute(1))).unwrap().unwrap();
    registry.give_back(task(1), "a", &Return::Queued).unwrap();
    registry.requeue(task(1)).unwrap();
    assert_eq!(allows(1), Some(true));
    registry
        .finish(task(1), &Outcome::Completed, minute(2))
        .unwrap();
    assert_eq!(allows(1), None);
}

#[test]
fn a_paused_task_is_nobodys_until_it_is_asked_for() {
    let (_dir, registry) = home();
    queue(&registry, 1, 0, 0, None);
    let request = by("a", minute(1));
    let pause = StopRequest::Pause {
        reason: "later".to_owned(),
    };
    // The task has no worker yet that could be asked.
    assert!(!registry.request_stop(task(1), &pause, minute(1)).unwrap());
    assert_eq!(claimed(&registry, &request), Some(task(1)));
    assert!(registry.request_stop(task(1), &pause, minute(1)).unwrap());
    let entry = registry
        .renew_lease(task(1), &request.lease)
        .unwrap()
        .unwrap();
    assert_eq!(entry.stop, Some(pause));
    let paused = Return::Paused {
        reason: "later".to_owned(),
    };
    assert!(registry.give_back(task(1), "a", &paused).unwrap());
    assert_eq!(claimed(&registry, &by("b", minute(9))), None);
    let asked = ClaimRequest {
        task: Some(task(1)),
        ..by("b", minute(9))
    };
    let entry = registry.claim(&asked).unwrap().unwrap();
    assert_eq!((entry.uuid, entry.stop), (task(1), None));
    // The task is claimed now, so the same request cannot claim it again.
    assert_eq!(claimed(&registry, &asked), None);
}

#[test]
fn a_user_has_only_so_many_tasks_under_way() {
    let (_dir, registry) = home();
    queue(&registry, 1, 0, 9, Some("ada"));
    queue(&registry, 2, 1, 9, Some("ada"));
    queue(&registry, 3, 2, 0, Some("bob"));
    queue(&registry, 4, 3, 0, None);
    queue(&registry, 5, 4, 0, None);
    let request = |now| ClaimRequest {
        per_user: Some(1),
        ..by("a", now)
    };
    assert_eq!(registry.claimable(minute(5), Some(1)).unwrap(), 5);
    let order: Vec<Option<Uuid>> = (0..4)
        .map(|_| claimed(&registry, &request(minute(5))))
        .collect();
    // Tasks without a user count as those of one user.
    assert_eq!(order, [Some(task(1)), Some(task(3)), Some(task(4)), None]);
    assert_eq!(registry.claimable(minute(5), Some(1)).unwrap(), 0);
    registry
        .finish(task(1), &Outcome::Completed, minute(5))
        .unwrap();
    assert_eq!(claimed(&registry, &request(minute(5))), Some(task(2)));
}

#[test]
fn a_task_that_ends_or_is_removed_leaves_the_queue() {
    let (_dir, registry) = home();
    queue(&registry, 1, 0, 0, None);
    queue(&registry, 2, 0, 0, None);
    assert_eq!(registry.queued_or_running().unwrap(), 2);
    registry
        .finish(task(1), &Outcome::Completed, minute(1))
        .unwrap();
    registry.remove(task(2)).unwrap();
    assert_eq!(registry.queue_entry(task(1)).unwrap(), None);
    assert_eq!(registry.queue_entry(task(2)).unwrap(), None);
    assert_eq!(registry.queued_or_running().unwrap(), 0);
}

#[test]
fn many_claimers_never_get_the_same_task() {
    let (dir, registry) = home();
    for number in 1..=40 {
        queue(&registry, number, 0, 0, None);
    }
    let path = dir.path();
    let claim_all = |owner: usize| {
        let registry = Registry::open(path).unwrap();
        let request = by(&owner.to_string(), minute(1));
        let mut all = Vec::new();
        while let Some(task) = claimed(&registry, &request) {
            all.push(task);
        }
        all
    };
    let mut all: Vec<Uuid> = std::thread::scope(|scope| {
        let claimers: Vec<_> = (0..4)
            .map(|owner| scope.spawn(move || claim_all(owner)))
            .collect();
        claimers
            .into_iter()
            .flat_map(|one| one.join().unwrap())
            .collect()
    });
    all.sort_unstable();
    let expected: Vec<Uuid> = (1..=40).map(task).collect();
    assert_eq!(all, expected);
}
