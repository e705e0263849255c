//! Issues that are fetched, carried out, commented on and relabelled.

use infold_store::Status;
use infold_testkit::{Forge, ForgeState, Script, Server};
use serde_json::json;

use crate::common::{Home, Ran};
use crate::{call, done, home, rows};

const TOKEN: &str = "forge-token";

fn forge() -> Forge {
    let mut state = ForgeState::with_repo("o", "r");
    let repo = &mut state.repos[0];
    repo.add_issue("a typo", "in the `README`", "infold");
    repo.add_request("what cannot be done", "at all", "infold");
    repo.add_issue("something else", "", "bug");
    Forge::start(state)
}

fn run(home: &Home, line: &str) -> Ran {
    let mut command = home.command(line);
    command.env("XDG_CACHE_HOME", home.path().join("cache"));
    command
        .env("GITHUB_TOKEN", TOKEN)
        .env("GITLAB_TOKEN", TOKEN);
    let ran = Ran::from(command.output().expect("the command ends"));
    assert_eq!(ran.code, 0, "{line}: {}", home.transcript(&ran));
    ran
}

#[test]
fn an_issue_is_fetched_once_carried_out_commented_on_and_relabelled() {
    for source in ["github", "gitlab"] {
        let server = Server::start(Script::decide(|seen| {
            let text = &seen.messages()[1];
            if text.contains("what cannot be done") {
                call("done", json!({"summary": "it cannot", "failed": true}))
            } else {
                done("fixed for @everyone")
            }
        }));
        let (home, forge) = (home(&server, ""), forge());
        let config = home.path().join("config.yaml");
        let mut text = std::fs::read_to_string(&config).expect("a configuration");
        text += &format!(
            "sources: {{{source}: {{base_url: '{}', repos: [o/r]}}}}\n",
            forge.url()
        );
        std::fs::write(&config, text).expect("a configuration");
        for _ in 0..2 {
            run(&home, &format!("fetch --source {source}"));
            assert_eq!(rows(&home).len(), 2, "{source}");
        }
        let labels = |number: usize| forge.with(|it| it.repos[0].items[number].labels.clone());
        assert_eq!(labels(0), ["infold:queued"], "{source}");
        run(&home, "work --once");
        let statuses: Vec<Status> = rows(&home).iter().map(|row| row.status).collect();
        assert!(statuses.contains(&Status::Completed) && statuses.contains(&Status::Failed));
        assert_eq!(labels(0), ["infold:done"], "{source}");
        assert_eq!(labels(1), ["infold:failed"], "{source}");
        assert_eq!(labels(2), ["bug"], "{source}");
        let comments: Vec<String> = forge.with(|it| {
            let comments = it.repos[0].items[0].comments.iter();
            comments.map(|comment| comment.body.clone()).collect()
        });
        assert_eq!(comments.len(), 2, "{source}: {comments:?}");
        assert!(comments[0].contains("begun"), "{comments:?}");
        assert!(comments[1].contains("fixed for"), "{comments:?}");
        assert!(!comments[1].contains("@everyone"), "{comments:?}");
        // A task that has ended is neither fetched nor commented on again.
        run(&home, &format!("fetch --source {source}"));
        run(&home, "work --once");
        assert_eq!(rows(&home).len(), 2, "{source}");
        assert_eq!(forge.with(|it| it.repos[0].items[0].comments.len()), 2);
        // The token is the environment's alone.
        let grep = std::process::Command::new("grep")
            .args(["-r", "-l", TOKEN])
            .arg(home.contexts())
            .output();
        assert_eq!(grep.expect("grep").stdout, b"", "{source}");
    }
}

#[test]
fn a_fetched_task_that_is_cancelled_while_it_waits_is_reported_too() {
    for source in ["github", "gitlab"] {
        let server = Server::start(Script::decide(|_| done("never")));
        let (home, forge) = (home(&server, ""), forge());
        let config = home.path().join("config.yaml");
        let mut text = std::fs::read_to_string(&config).expect("a configuration");
        text += &format!(
            "sources: {{{source}: {{base_url: '{}', repos: [o/r]}}}}\n",
            forge.url()
        );
        std::fs::write(&config, text).expect("a configuration");
        run(&home, &format!("fetch --source {source}"));
        let typo = rows(&home)
            .into_iter()
            .find(|row| row.task_type.as_deref() == Some("issue"));
        let task = typo.expect("the issue").uuid;
        run(
            &home,
            &format!("task cancel {task} --reason 'fixed elsewhere'"),
        );
        forge.with(|it| {
            let item = &it.repos[0].items[0];
            assert_eq!(item.labels, ["infold:failed"], "{source}");
            let bodies: Vec<&str> = item.comments.iter().map(|it| it.body.as_str()).collect();
            assert_eq!(bodies.len(), 1, "{source}: {bodies:?}");
            assert!(
                bodies[0].contains("fixed elsewhere"),
                "{source}: {bodies:?}"
            );
        });
    }
}
