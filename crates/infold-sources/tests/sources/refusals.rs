//! Servers that refuse: tokens, repositories, moves.

use infold_sources::{FetchFault, Secret, Source, SourceError, SourceKind, SourceOptions};
use infold_testkit::{ForgeFault, ForgeState};

use crate::setup::*;

#[tokio::test]
async fn a_wrong_token_is_said_and_never_shown() {
    for kind in KINDS {
        let forge = forge();
        let token = "canary-0123456789";
        let options = SourceOptions {
            token: Some(Secret::new(token.to_owned())),
            ..options(&forge)
        };
        // A server that repeats what it was sent.
        forge.fail(
            "GET",
            "/o",
            1,
            ForgeFault::Reply {
                status: 401,
                headers: Vec::new(),
                body: format!("{{\"message\":\"bad token {token} {}\"}}", "x".repeat(500))
                    .into_bytes(),
            },
        );
        let mut source = Source::new(kind, options).expect("an address");
        for _ in 0..2 {
            let report = fetch_all(&mut source, &mut Queue::default()).await;
            let said = format!(
                "{:?} {:?} {report:?} {source:?}",
                problems(&report),
                report.problems
            );
            assert!(!said.contains("canary"), "{said}");
            let cause = &report.problems[0].cause;
            let FetchFault::Source(SourceError::Token { variable, .. }) = cause else {
                panic!("{cause}");
            };
            assert_eq!(*variable, kind.token_variable());
        }
        // It is not tried again.
        assert_eq!(forge.calls().len(), 2);
    }
}

#[tokio::test]
async fn one_repository_that_cannot_be_read_keeps_no_other_from_it() {
    for kind in KINDS {
        let mut state = ForgeState::with_repo("o", "archived");
        state.repos[0].is_archived = true;
        state.repos[0].add_issue("one", "", "infold");
        state.add_repo("o", "r").add_issue("two", "", "infold");
        let forge = infold_testkit::Forge::start(state);
        let options = infold_sources::FetchOptions {
            repos: ["o/missing", "o/archived", "nonsense", "o/r"]
                .map(str::to_owned)
                .to_vec(),
            ..infold_sources::FetchOptions::default()
        };
        let mut queue = Queue::default();
        let report = infold_sources::fetch(&mut source(kind, &forge), &options, &mut queue).await;
        let said = problems(&report);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(
            said[0].contains("o/missing that this token can see"),
            "{said:?}"
        );
        assert_eq!(said[1], "o/archived: o/archived is archived");
        assert!(
            said[2].starts_with("nonsense: is no repository"),
            "{said:?}"
        );
        assert_eq!(queue.names(), ["o/r#1"]);
    }
}

#[tokio::test]
async fn a_token_is_not_sent_to_another_server() {
    for kind in KINDS {
        let (forge, other) = (forge(), forge());
        forge.fail(
            "GET",
            "/o",
            1,
            ForgeFault::Reply {
                status: 301,
                headers: vec![("location", format!("{}/repos/o/r", other.url()))],
                body: Vec::new(),
            },
        );
        let report = fetch_all(&mut source(kind, &forge), &mut Queue::default()).await;
        let cause = &report.problems[0].cause;
        assert!(
            matches!(cause, FetchFault::Source(SourceError::Moved { .. })),
            "{cause}"
        );
        assert_eq!(other.calls().len(), 0);
    }
}

#[tokio::test]
async fn redirects_without_end_are_given_up() {
    let forge = forge();
    let to = format!("{}/repos/o/r", forge.url());
    forge.fail(
        "GET",
        "/o",
        100,
        ForgeFault::Reply {
            status: 302,
            headers: vec![("location", to)],
            body: Vec::new(),
        },
    );
    let report = fetch_all(
        &mut source(SourceKind::Github, &forge),
        &mut Queue::default(),
    )
    .await;
    assert!(problems(&report)[0].contains("redirects without end"));
    assert_eq!(forge.calls().len(), 6);
}

#[tokio::test]
async fn requests_are_those_that_are_documented() {
    let forge = forge();
    forge.with(|state| {
        state.repos[0].add_issue("one", "", "infold");
    });
    let mut queue = Queue::default();
    let github = SourceOptions {
        base_url: Some(format!("{}/api/v3/", forge.url())),
        ..options(&forge)
    };
    let mut github = Source::new(SourceKind::Github, github).expect("an address");
    fetch_all(&mut github, &mut queue).await;
    let calls = forge.calls();
    let header = |at: usize, name: &str| {
        let mut headers = calls[at].headers.iter();
        headers
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.clone())
    };
    let targets: Vec<String> = calls
        .iter()
        .map(|call| format!("{} {}", call.method, call.target))
        .collect();
    assert_eq!(
        targets,
        [
            "GET /api/v3/repos/o/r",
            "GET /api/v3/repos/o/r/issues?state=open&labels=infold&sort=created&direction=asc&per_page=100",
            "POST /api/v3/repos/o/r/issues/1/labels",
            "DELETE /api/v3/repos/o/r/issues/1/labels/infold",
        ]
    );
    assert_eq!(calls[2].body, r#"{"labels":["infold:queued"]}"#);
    assert_eq!(
        header(0, "authorization").as_deref(),
        Some("Bearer forge-token")
    );
    assert_eq!(
        header(0, "x-github-api-version").as_deref(),
        Some("2022-11-28")
    );
    assert_eq!(
        header(0, "accept").as_deref(),
        Some("application/vnd.github+json")
    );
    forge.forget_calls();
    forge.with(|state| state.repos[0].items[0].labels = vec!["infold".to_owned()]);
    fetch_all(
        &mut source(SourceKind::Gitlab, &forge),
        &mut Queue::default(),
    )
    .await;
    let calls = forge.calls();
    let targets: Vec<String> = calls
        .iter()
        .map(|call| format!("{} {}", call.method, call.target))
        .collect();
    assert_eq!(
        targets,
        [
            "GET /api/v4/projects/o%2Fr",
            "GET /api/v4/projects/1000/issues?state=opened&scope=all&labels=infold&order_by=created_at&sort=asc&per_page=100",
            "GET /api/v4/projects/1000/merge_requests?state=opened&scope=all&labels=infold&order_by=created_at&sort=asc&per_page=100",
            "PUT /api/v4/projects/1000/issues/1",
        ]
    );
    assert_eq!(
        calls[3].body,
        r#"{"add_labels":"infold:queued","remove_labels":"infold"}"#
    );
    assert!(
        calls[0]
            .headers
            .contains(&("private-token".to_owned(), "forge-token".to_owned()))
    );
}
