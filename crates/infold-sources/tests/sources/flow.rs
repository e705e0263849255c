//! The way of a task: listed, enqueued once, relabelled.

use infold_sources::{FetchOptions, QueueStatus, SourceKind, fetch};
use infold_testkit::ForgeFault;

use crate::setup::*;

#[tokio::test]
async fn each_task_is_enqueued_once_and_relabelled() {
    for kind in KINDS {
        let forge = forge();
        forge.with(|state| {
            let repo = &mut state.repos[0];
            repo.add_issue("first", "the body", "infold")
                .labels
                .push("bug".to_owned());
            repo.add_request("second", "", "infold");
            repo.add_issue("of others", "", "bug");
            repo.add_issue("closed", "", "infold").is_closed = true;
            let item = repo.add_issue("with comments", "b", "infold");
            item.add_comment("bob", "please \u{202e}hurry", 2_000);
            item.add_comment("infold-bot", "<!-- infold:x:start -->\nbegun", 2_001);
            item.add_comment("carol", "among us", 2_002);
            item.comments[2].is_internal = kind == SourceKind::Gitlab;
        });
        let (mut source, mut queue) = (source(kind, &forge), Queue::default());
        let report = fetch_all(&mut source, &mut queue).await;
        assert_eq!(problems(&report), Vec::<String>::new());
        let names = match kind {
            SourceKind::Github => ["o/r#1", "o/r#2", "o/r#5"],
            SourceKind::Gitlab => ["o/r#1", "o/r#5", "o/r!2"],
        };
        assert_eq!(queue.names(), names, "{kind}");
        let types: Vec<&str> = report
            .tasks
            .iter()
            .map(|task| task.task.task_type.name())
            .collect();
        let expected = match kind {
            SourceKind::Github => ["issue", "pull_request", "issue"],
            SourceKind::Gitlab => ["issue", "issue", "merge_request"],
        };
        assert_eq!(types, expected);
        assert!(
            report
                .tasks
                .iter()
                .all(|task| task.is_new && task.is_relabelled)
        );
        assert_eq!(labels(&forge, 1), ["bug", "infold:queued"]);
        assert_eq!(labels(&forge, 2), ["infold:queued"]);
        assert_eq!(labels(&forge, 4), ["infold"]);
        let (_, text) = queue
            .enqueued
            .iter()
            .find(|(name, _)| name == "o/r#5")
            .expect("a task");
        assert!(
            text.contains("comment by bob") && text.contains("please \\u{202e}hurry"),
            "{text}"
        );
        assert!(!text.contains("begun"), "{text}");
        assert_eq!(text.contains("among us"), kind == SourceKind::Github);
        let again = fetch_all(&mut source, &mut queue).await;
        assert_eq!((again.tasks.len(), queue.enqueued.len()), (0, 3));
    }
}

#[tokio::test]
async fn a_fetch_that_ends_before_relabelling_is_made_up_for() {
    for kind in KINDS {
        let forge = forge();
        forge.with(|state| {
            state.repos[0].add_issue("one", "", "infold");
            state.repos[0].add_issue("two", "", "infold");
        });
        let mut queue = Queue::default();
        let (method, part) = match kind {
            SourceKind::Github => ("POST", "/issues/1/labels"),
            SourceKind::Gitlab => ("PUT", "/issues/1"),
        };
        forge.fail(method, part, 1, ForgeFault::status(403));
        let report = fetch_all(&mut source(kind, &forge), &mut queue).await;
        assert_eq!(queue.names(), ["o/r#1", "o/r#2"]);
        assert_eq!(report.new_tasks(), 2);
        assert_eq!(report.problems.len(), 1, "{:?}", problems(&report));
        assert_eq!(labels(&forge, 1), ["infold"]);
        let again = fetch_all(&mut source(kind, &forge), &mut queue).await;
        assert_eq!(
            (again.tasks.len(), again.new_tasks(), queue.enqueued.len()),
            (1, 0, 2)
        );
        assert_eq!(labels(&forge, 1), ["infold:queued"]);
    }
}

#[tokio::test]
async fn a_task_that_ended_meanwhile_gets_the_label_of_its_end() {
    for kind in KINDS {
        let forge = forge();
        forge.with(|state| {
            state.repos[0].add_issue("one", "", "infold");
            state.repos[0].add_issue("two", "", "infold");
        });
        let (mut source, mut queue) = (source(kind, &forge), Queue::default());
        let report = fetch_all(&mut source, &mut queue).await;
        let ids: Vec<_> = report.tasks.iter().map(|task| task.uuid).collect();
        queue.entries.insert(ids[0], QueueStatus::Completed);
        queue.entries.insert(ids[1], QueueStatus::Failed);
        // A user labels them again.
        forge.with(|state| {
            state.repos[0]
                .items
                .iter_mut()
                .for_each(|item| item.add_label("infold"))
        });
        let report = fetch_all(&mut source, &mut queue).await;
        assert_eq!((report.new_tasks(), queue.enqueued.len()), (0, 2));
        assert_eq!(labels(&forge, 1), ["infold:done"]);
        assert_eq!(labels(&forge, 2), ["infold:failed"]);
    }
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_a_limit_holds() {
    for kind in KINDS {
        let forge = forge();
        forge.with(|state| {
            for at in 0..5 {
                state.repos[0].add_issue(&format!("issue {at}"), "", "infold");
            }
        });
        let (mut source, mut queue) = (source(kind, &forge), Queue::default());
        let mut options = FetchOptions {
            repos: vec!["o/r".to_owned()],
            is_dry_run: true,
            ..FetchOptions::default()
        };
        let report = fetch(&mut source, &options, &mut queue).await;
        assert_eq!((report.new_tasks(), queue.enqueued.len()), (5, 0));
        assert!(forge.calls().iter().all(|call| call.method == "GET"));
        options.is_dry_run = false;
        options.limit = Some(2);
        let report = fetch(&mut source, &options, &mut queue).await;
        assert_eq!((report.new_tasks(), queue.enqueued.len()), (2, 2));
        assert_eq!(labels(&forge, 3), ["infold"]);
    }
}

#[tokio::test]
async fn a_queue_that_refuses_one_task_gets_the_others() {
    let forge = forge();
    forge.with(|state| {
        state.repos[0].add_issue("refused", "", "infold");
        state.repos[0].add_issue("two", "", "infold");
    });
    let (mut source, mut queue) = (source(SourceKind::Github, &forge), Queue::default());
    let report = fetch_all(&mut source, &mut queue).await;
    assert_eq!(
        problems(&report),
        ["o/r#1: cannot be enqueued: the disk is full"]
    );
    assert_eq!(queue.names(), ["o/r#2"]);
    // A task that is not in the queue is not labelled as taken.
    assert_eq!(labels(&forge, 1), ["infold"]);
}

#[tokio::test]
async fn a_renamed_repository_is_the_same_one() {
    for kind in KINDS {
        let forge = forge();
        forge.with(|state| {
            state.repos[0].add_issue("one", "", "infold");
        });
        let mut queue = Queue::default();
        fetch_all(&mut source(kind, &forge), &mut queue).await;
        forge.with(|state| {
            let repo = &mut state.repos[0];
            repo.old_names.push("o/r".to_owned());
            repo.name = "new".to_owned();
            repo.items[0].add_label("infold");
            repo.add_issue("two", "", "infold");
        });
        let mut source = source(kind, &forge);
        let report = fetch_all(&mut source, &mut queue).await;
        assert_eq!(problems(&report), Vec::<String>::new());
        assert_eq!(queue.names(), ["o/r#1", "o/new#2"], "{kind}");
        assert_eq!(labels(&forge, 2), ["infold:queued"]);
        // A task that was taken under the old name.
        let task = queue_id(&report, 0);
        assert!(source.report_start(&issue(1), task).await.expect("posted"));
        assert_eq!(comments(&forge, 1).len(), 1);
    }
}

fn queue_id(report: &infold_sources::FetchReport, at: usize) -> uuid::Uuid {
    report.tasks[at].uuid
}
