//! Lists: pages, changes between them, cached pages.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt as _;

use infold_sources::{FetchOptions, Source, SourceKind, SourceOptions, fetch};
use infold_testkit::{Forge, ForgeFault};

use crate::setup::*;

fn forge_with(count: usize) -> Forge {
    let forge = forge();
    forge.with(|state| {
        for at in 0..count {
            state.repos[0].add_issue(&format!("issue {at}"), "what to do", "infold");
        }
    });
    forge
}

async fn dry_run(source: &mut Source) -> infold_sources::FetchReport {
    let options = FetchOptions {
        repos: vec!["o/r".to_owned()],
        is_dry_run: true,
        ..FetchOptions::default()
    };
    fetch(source, &options, &mut Queue::default()).await
}

#[tokio::test]
async fn ten_thousand_issues_are_all_listed_once() {
    for kind in KINDS {
        let forge = forge_with(10_001);
        let report = dry_run(&mut source(kind, &forge)).await;
        assert_eq!(problems(&report), Vec::<String>::new());
        let ids: HashSet<_> = report.tasks.iter().map(|task| task.uuid).collect();
        assert_eq!((report.tasks.len(), ids.len()), (10_001, 10_001), "{kind}");
        assert_eq!(forge.count("GET", "/issues?"), 101);
    }
}

#[tokio::test]
async fn a_list_that_changes_while_it_is_read_doubles_nothing() {
    for kind in KINDS {
        let forge = forge_with(250);
        // A page is read twice in part: an older issue is opened again, and moves all others by one.
        let mut times = 0;
        let change = ForgeFault::Change(Box::new(move |state| {
            times += 1;
            if times == 2 {
                let item = state.repos[0].add_issue("reopened", "", "infold");
                item.created = 0;
            }
        }));
        forge.fail("GET", "/issues", 10, change);
        let mut queue = Queue::default();
        let report = fetch_all(&mut source(kind, &forge), &mut queue).await;
        assert_eq!(problems(&report), Vec::<String>::new());
        assert_eq!(report.tasks.len(), 250, "{kind}");
        // The next fetch finds the one that was missed.
        let report = fetch_all(&mut source(kind, &forge), &mut queue).await;
        assert_eq!(
            (report.new_tasks(), queue.enqueued.len()),
            (1, 251),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn pages_that_have_not_changed_come_from_the_cache() {
    for kind in KINDS {
        let forge = forge_with(150);
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("pages.jsonl");
        let options = || SourceOptions {
            cache_file: Some(file.clone()),
            ..options(&forge)
        };
        let mut source = Source::new(kind, options()).expect("an address");
        let first = dry_run(&mut source).await;
        source.save_cache().expect("written");
        let text = std::fs::read_to_string(&file).expect("a file");
        assert!(!text.contains("forge-token"));
        let mode = std::fs::metadata(&file)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        forge.forget_calls();
        let mut source = Source::new(kind, options()).expect("an address");
        let second = dry_run(&mut source).await;
        assert!(
            forge.calls().iter().all(|call| call.status == 304),
            "{kind}"
        );
        let ids = |report: &infold_sources::FetchReport| {
            report
                .tasks
                .iter()
                .map(|task| task.uuid)
                .collect::<Vec<_>>()
        };
        assert_eq!((ids(&first), first.tasks.len()), (ids(&second), 150));
        // A page that has changed is read again.
        forge.with(|state| state.repos[0].items[140].title = "edited".to_owned());
        let third = dry_run(&mut source).await;
        assert_eq!(third.tasks[140].task.title, "edited");
    }
}

#[tokio::test]
async fn pages_by_key_are_followed_by_their_link() {
    let forge = forge_with(5);
    let link = format!(
        "<{}/api/v4/projects/1000/issues?pagination=keyset&cursor=2&per_page=2&sort=asc>; rel=\"next\"",
        forge.url()
    );
    forge.fail(
        "GET",
        "/issues",
        1,
        ForgeFault::Reply {
            status: 200,
            headers: vec![("link", link)],
            body: b"[{\"iid\":1,\"title\":\"issue 0\"},{\"iid\":2,\"title\":\"issue 1\"}]".to_vec(),
        },
    );
    let report = dry_run(&mut source(SourceKind::Gitlab, &forge)).await;
    let ids: Vec<&str> = report
        .tasks
        .iter()
        .map(|task| task.task.task_id.as_str())
        .collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn a_link_to_another_host_is_followed_here() {
    let (forge, other) = (forge_with(2), forge_with(7));
    let link = format!(
        "<{}/repos/o/r/issues?page=2&per_page=1&direction=asc>; rel=\"next\"",
        other.url()
    );
    forge.fail(
        "GET",
        "/issues",
        1,
        ForgeFault::Reply {
            status: 200,
            headers: vec![("link", link)],
            body: b"[{\"number\":1,\"title\":\"issue 0\"}]".to_vec(),
        },
    );
    let report = dry_run(&mut source(SourceKind::Github, &forge)).await;
    assert_eq!((report.tasks.len(), other.calls().len()), (2, 0));
}

#[tokio::test]
async fn items_that_are_no_tasks_are_counted_and_left_out() {
    let forge = forge();
    forge.fail("GET", "/issues", 1, ForgeFault::Reply {
        status: 200,
        headers: Vec::new(),
        body: br#"[{"number":7,"user":null,"body":null,"labels":["x",{"name":"y"}]},{"title":"none"},7,null,{"number":-1},{"number":"8"}]"#.to_vec(),
    });
    let report = dry_run(&mut source(SourceKind::Github, &forge)).await;
    assert_eq!(
        problems(&report),
        ["o/r: 5 items of the list could not be read"]
    );
    let task = &report.tasks[0].task;
    assert_eq!(
        (task.author.as_str(), task.body.as_str(), &*task.labels),
        ("ghost", "", &["x".to_owned(), "y".to_owned()][..])
    );
}
