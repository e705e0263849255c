//! Servers that fail, limit, break off or answer nonsense.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use infold_sources::{FetchFault, RestLimits, Source, SourceError, SourceKind, SourceOptions};
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

/// Returns the only error of a fetch, and how many tasks were enqueued.
async fn error_of(source: &mut Source) -> (SourceError, usize) {
    let mut queue = Queue::default();
    let mut report = fetch_all(source, &mut queue).await;
    assert_eq!(report.problems.len(), 1, "{:?}", problems(&report));
    match report.problems.remove(0).cause {
        FetchFault::Source(error) => (error, queue.enqueued.len()),
        other => panic!("{other}"),
    }
}

/// Remembers the waits of a source.
fn waits(source: &mut Source) -> Arc<Mutex<Vec<Duration>>> {
    let waits = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&waits);
    source.on_wait(move |_, wait| told.lock().expect("no panic").push(wait));
    waits
}

#[tokio::test]
async fn a_page_that_fails_or_breaks_off_is_read_again() {
    for kind in KINDS {
        for fault in [
            || ForgeFault::status(500),
            || ForgeFault::status(503),
            || ForgeFault::CutReply,
            || ForgeFault::LostReply,
        ] {
            let forge = forge_with(120);
            forge.fail("GET", "page=2", 1, fault());
            let mut queue = Queue::default();
            let report = fetch_all(&mut source(kind, &forge), &mut queue).await;
            assert_eq!(problems(&report), Vec::<String>::new());
            assert_eq!(queue.enqueued.len(), 120);
        }
    }
}

#[tokio::test]
async fn a_label_is_set_although_answers_are_lost() {
    for kind in KINDS {
        let forge = forge_with(1);
        for method in ["POST", "PUT", "DELETE"] {
            forge.fail(method, "/issues/1", 1, ForgeFault::LostReply);
        }
        let mut queue = Queue::default();
        let report = fetch_all(&mut source(kind, &forge), &mut queue).await;
        assert_eq!(problems(&report), Vec::<String>::new());
        assert_eq!(labels(&forge, 1), ["infold:queued"]);
    }
}

#[tokio::test]
async fn a_server_that_stays_broken_is_given_up_and_what_was_listed_is_taken() {
    for kind in KINDS {
        let forge = forge_with(150);
        forge.fail("GET", "page=2", 100, ForgeFault::status(502));
        let (error, enqueued) = error_of(&mut source(kind, &forge)).await;
        assert!(matches!(error, SourceError::Unavailable { .. }), "{error}");
        assert_eq!((forge.count("GET", "page=2"), enqueued), (4, 100));
    }
}

#[tokio::test]
async fn nobody_listens() {
    let forge = forge();
    let options = options(&forge);
    drop(forge);
    let mut source = Source::new(SourceKind::Github, options).expect("an address");
    let (error, _) = error_of(&mut source).await;
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}

#[tokio::test]
async fn rate_limits_are_waited_for() {
    for kind in KINDS {
        for status in [429, 403] {
            let forge = forge_with(1);
            forge.fail(
                "GET",
                "/issues",
                1,
                ForgeFault::Reply {
                    status,
                    headers: vec![("retry-after", "1".to_owned())],
                    body: b"{\"message\":\"You have exceeded a secondary rate limit\"}".to_vec(),
                },
            );
            let mut source = source(kind, &forge);
            let waits = waits(&mut source);
            let mut queue = Queue::default();
            let report = fetch_all(&mut source, &mut queue).await;
            assert_eq!(problems(&report), Vec::<String>::new());
            assert_eq!(queue.enqueued.len(), 1);
            let waits = waits.lock().expect("no panic");
            assert_eq!(waits.len(), 1);
            assert!(waits[0] > Duration::from_millis(900), "{waits:?}");
        }
    }
}

#[tokio::test]
async fn a_long_rate_limit_is_an_error_and_no_further_request_is_sent() {
    for kind in KINDS {
        let forge = forge_with(3);
        forge.with(|state| state.rate.remaining = 3);
        let mut queue = Queue::default();
        let mut source = source(kind, &forge);
        let report = fetch_all(&mut source, &mut queue).await;
        let [problem] = &report.problems[..] else {
            panic!("{:?}", problems(&report));
        };
        let FetchFault::Source(SourceError::RateLimited { wait, .. }) = &problem.cause else {
            panic!("{problem}");
        };
        assert!(*wait > Duration::from_secs(3600));
        assert_eq!(
            (forge.calls().len(), queue.enqueued.len()),
            (3, 1),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn answers_that_are_none_are_errors() {
    let bodies: [&[u8]; 6] = [
        b"",
        b"[{\"number\":1}",
        b"[\"\xff\"]",
        b"<html>",
        b"{}",
        b"null",
    ];
    for kind in KINDS {
        for body in bodies {
            let forge = forge_with(150);
            forge.fail(
                "GET",
                "page=2",
                1,
                ForgeFault::Reply {
                    status: 200,
                    headers: Vec::new(),
                    body: body.to_vec(),
                },
            );
            let (error, enqueued) = error_of(&mut source(kind, &forge)).await;
            assert!(matches!(error, SourceError::Unreadable { .. }), "{error}");
            assert_eq!(enqueued, 100);
        }
    }
}

#[tokio::test]
async fn a_body_without_end_is_not_read_to_its_end() {
    let forge = forge_with(1);
    forge.with(|state| state.repos[0].items[0].body = "x".repeat(3 << 20));
    let limits = RestLimits {
        body_bytes: 1 << 20,
        ..RestLimits::default()
    };
    let options = SourceOptions {
        limits,
        ..options(&forge)
    };
    let mut source = Source::new(SourceKind::Github, options).expect("an address");
    let (error, _) = error_of(&mut source).await;
    assert!(
        error.to_string().contains("larger than 1048576 bytes"),
        "{error}"
    );
}

#[tokio::test]
async fn a_huge_issue_is_cut_for_the_model() {
    let forge = forge_with(1);
    forge.with(|state| state.repos[0].items[0].body = "word ".repeat(1 << 20));
    let mut queue = Queue::default();
    let report = fetch_all(&mut source(SourceKind::Gitlab, &forge), &mut queue).await;
    assert_eq!(problems(&report), Vec::<String>::new());
    assert!(queue.enqueued[0].1.len() < 300 << 10);
}
