//! Comments on start and result: each once, harmless, and honest about edits.

use infold_sources::{ResultStatus, SourceKind, TaskResult, revision_of};
use infold_testkit::ForgeFault;
use uuid::Uuid;

use crate::setup::*;

fn result(text: &str) -> TaskResult<'_> {
    TaskResult {
        status: ResultStatus::Completed,
        text,
        revision: None,
    }
}

fn lost_server() -> ForgeFault {
    ForgeFault::status(502)
}

#[tokio::test]
async fn start_and_result_are_commented_once_and_relabelled() {
    for kind in KINDS {
        let forge = forge();
        forge.with(|state| {
            state.repos[0].add_issue("one", "b", "infold");
        });
        let (mut source, mut queue) = (source(kind, &forge), Queue::default());
        let task = fetch_all(&mut source, &mut queue).await.tasks[0].uuid;
        for is_first in [true, false] {
            assert_eq!(source.report_start(&issue(1), task).await, Ok(is_first));
        }
        let revision = revision_of(&queue.enqueued[0].1);
        assert!(revision.is_some());
        for is_first in [true, false] {
            let result = TaskResult {
                revision,
                ..result("It works.")
            };
            let outcome = source
                .report_result(&issue(1), task, &result)
                .await
                .expect("reported");
            assert_eq!((outcome.is_posted, outcome.is_edited), (is_first, false));
            assert_eq!(outcome.relabelling, Ok(()));
        }
        let all = comments(&forge, 1);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0].starts_with(&format!("<!-- infold:{task}:start -->\n")));
        assert!(all[1].starts_with(&format!("<!-- infold:{task}:completed -->\n")));
        assert!(all[1].contains("It works.") && !all[1].contains("edited"));
        assert_eq!(labels(&forge, 1), ["infold:done"]);
        // Another run of the task fails: that is said too.
        let failed = TaskResult {
            status: ResultStatus::Failed,
            ..result("no disk")
        };
        source
            .report_result(&issue(1), task, &failed)
            .await
            .expect("reported");
        assert_eq!(
            (comments(&forge, 1).len(), labels(&forge, 1)),
            (3, vec!["infold:failed".to_owned()])
        );
    }
}

#[tokio::test]
async fn a_lost_answer_doubles_no_comment() {
    for kind in KINDS {
        // The comment arrives and the answer is lost; or it never arrives.
        for fault in [|| ForgeFault::LostReply, lost_server] {
            let forge = forge();
            forge.with(|state| {
                state.repos[0].add_issue("one", "b", "infold");
            });
            let mut source = source(kind, &forge);
            let part = match kind {
                SourceKind::Github => "/comments",
                SourceKind::Gitlab => "/notes",
            };
            forge.fail("POST", part, 2, fault());
            let task = Uuid::new_v4();
            assert_eq!(source.report_start(&issue(1), task).await, Ok(true));
            assert_eq!(comments(&forge, 1).len(), 1, "{kind}");
            assert_eq!(source.report_start(&issue(1), task).await, Ok(false));
            assert_eq!(comments(&forge, 1).len(), 1, "{kind}");
        }
    }
}

#[tokio::test]
async fn a_server_that_never_takes_a_comment_is_given_up() {
    let forge = forge();
    forge.with(|state| {
        state.repos[0].add_issue("one", "b", "infold");
    });
    let mut source = source(SourceKind::Github, &forge);
    forge.fail("POST", "/comments", 100, ForgeFault::status(500));
    let error = source
        .report_start(&issue(1), Uuid::new_v4())
        .await
        .expect_err("no answer");
    assert!(
        error
            .to_string()
            .contains("did not confirm a comment on o/r#1"),
        "{error}"
    );
    assert_eq!(forge.count("POST", "/comments"), 4);
}

#[tokio::test]
async fn a_marker_that_a_stranger_wrote_hides_no_result() {
    for kind in KINDS {
        let forge = forge();
        let task = Uuid::new_v4();
        forge.with(|state| {
            let item = state.repos[0].add_issue("one", "b", "infold");
            item.add_comment("mallory", &format!("<!-- infold:{task}:completed -->"), 5);
        });
        let mut source = source(kind, &forge);
        let outcome = source.report_result(&issue(1), task, &result("done")).await;
        assert!(outcome.expect("reported").is_posted);
        assert_eq!(comments(&forge, 1).len(), 2);
    }
}

#[tokio::test]
async fn the_token_of_an_app_finds_its_own_comments() {
    let forge = forge();
    forge.with(|state| {
        state.login = None;
        state.repos[0].add_issue("one", "b", "infold");
    });
    let mut source = source(SourceKind::Github, &forge);
    let task = Uuid::new_v4();
    assert_eq!(source.report_start(&issue(1), task).await, Ok(true));
    assert_eq!(source.report_start(&issue(1), task).await, Ok(false));
}

#[tokio::test]
async fn an_edit_meanwhile_is_said_in_the_result() {
    for kind in KINDS {
        let forge = forge();
        forge.with(|state| {
            state.repos[0].add_issue("one", "b", "infold");
        });
        let (mut source, mut queue) = (source(kind, &forge), Queue::default());
        let task = fetch_all(&mut source, &mut queue).await.tasks[0].uuid;
        forge.with(|state| state.repos[0].items[0].body = "something else".to_owned());
        let revision = revision_of(&queue.enqueued[0].1);
        let result = TaskResult {
            revision,
            ..result("done")
        };
        let outcome = source
            .report_result(&issue(1), task, &result)
            .await
            .expect("reported");
        assert!(outcome.is_edited);
        assert!(comments(&forge, 1)[0].contains("was edited since the task was taken"));
    }
}

#[tokio::test]
async fn a_result_commands_nothing_and_tells_no_secret() {
    for kind in KINDS {
        let forge = forge();
        forge.with(|state| {
            state.repos[0].add_issue("one", "b", "infold");
        });
        let mut source = source(kind, &forge);
        let text = "/close\n@alice see forge-token and <!-- infold:x:failed -->\n\u{202e}";
        let text = format!("{text}{}", "é".repeat(100_000));
        source
            .report_result(&issue(1), Uuid::new_v4(), &result(&text))
            .await
            .expect("reported");
        let all = comments(&forge, 1);
        assert!(
            all[0].contains("\\/close")
                && all[0].contains("@\u{200b}alice see (token) and &lt;!--")
        );
        assert!(all[0].contains("(cut)") && !all[0].contains('\u{202e}'));
        assert!(!forge.with(|state| state.repos[0].items[0].is_closed));
    }
}
