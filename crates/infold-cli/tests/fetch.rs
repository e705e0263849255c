//! `infold fetch` against servers on loopback.

mod common;

use common::{Home, Ran};
use infold_testkit::{Forge, ForgeState};

fn forge() -> Forge {
    let mut state = ForgeState::with_repo("o", "r");
    let repo = &mut state.repos[0];
    repo.add_issue("first \u{202e}\u{1b}[2J", "b", "infold");
    repo.add_request("second", "b", "infold");
    repo.add_issue("other", "b", "bug");
    Forge::start(state)
}

fn config(source: &str, forge: &Forge) -> String {
    format!(
        "sources: {{{source}: {{base_url: '{}', repos: [o/r]}}}}\n",
        forge.url()
    )
}

fn run(home: &Home, line: &str, token: &str) -> Ran {
    let mut command = home.command(line);
    command.env("HOME", home.path());
    if !token.is_empty() {
        command
            .env("GITHUB_TOKEN", token)
            .env("GITLAB_TOKEN", token);
    }
    Ran::from(command.output().expect("the command ends"))
}

#[test]
fn a_dry_run_lists_and_changes_nothing() {
    for source in ["github", "gitlab"] {
        let (home, forge) = (Home::new(), forge());
        home.config(config(source, &forge));
        // Public repositories are listed without a token.
        for token in ["forge-token", ""] {
            let ran = run(
                &home,
                &format!("--json fetch --source {source} --dry-run"),
                token,
            );
            assert_eq!(ran.code, 0, "{}", String::from_utf8_lossy(&ran.stderr));
            let text = String::from_utf8(ran.stdout).expect("UTF-8");
            let tasks: Vec<serde_json::Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).expect("JSON"))
                .collect();
            let types: Vec<&str> = tasks
                .iter()
                .filter_map(|task| task["task_type"].as_str())
                .collect();
            let request = if source == "github" {
                "pull_request"
            } else {
                "merge_request"
            };
            assert_eq!(types, ["issue", request]);
            assert_eq!(
                (&tasks[0]["task_id"], &tasks[0]["new"]),
                (&"1".into(), &true.into())
            );
        }
        let ran = run(
            &home,
            &format!("fetch --source {source} --dry-run"),
            "forge-token",
        );
        let text = String::from_utf8(ran.stdout).expect("UTF-8");
        assert!(
            !text.contains('\u{202e}') && !text.contains('\u{1b}'),
            "{text:?}"
        );
        assert!(forge.calls().iter().all(|call| call.method == "GET"));
        assert!(!home.contexts().exists());
    }
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let (home, forge) = (Home::new(), forge());
    home.config(config("github", &forge));
    let said = |line: &str, token: &str| {
        let ran = run(&home, line, token);
        let text = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(!text.contains("canary"), "{text}");
        (ran.code, text)
    };
    for (line, token, code, words) in [
        ("fetch --source github", "", 2, "GITHUB_TOKEN is not set"),
        (
            "fetch --source gitlab",
            "forge-token",
            2,
            "sources.gitlab.repos",
        ),
        ("fetch --source gitea", "", 2, "github, gitlab"),
        (
            "fetch --source github --repo r",
            "forge-token",
            2,
            "owner/name",
        ),
        (
            "fetch --source github --repo o/none",
            "forge-token",
            4,
            "has no repository o/none",
        ),
        (
            "fetch --source github --label infold:done",
            "forge-token",
            2,
            "cannot be the label",
        ),
        (
            "fetch --source github",
            "canary-token",
            4,
            "check GITHUB_TOKEN",
        ),
    ] {
        let (exit, text) = said(line, token);
        assert_eq!(exit, code, "{line}: {text}");
        assert!(text.contains(words), "{line}: {text}");
    }
}

#[test]
fn an_untrusted_file_sends_the_token_nowhere() {
    let (home, own, evil) = (Home::new(), forge(), forge());
    let user = home.path().join("user/infold");
    std::fs::create_dir_all(&user).expect("a directory");
    std::fs::write(user.join("config.yaml"), config("github", &own)).expect("a file");
    // `redact` makes it a file of Infold.
    home.file(
        "config.yaml",
        format!("{}redact: true\n", config("github", &evil)),
    );
    let mut command = home.command("fetch --source github --dry-run");
    command
        .env("XDG_CONFIG_HOME", home.path().join("user"))
        .env("HOME", home.path());
    command.env("GITHUB_TOKEN", "forge-token");
    let ran = Ran::from(command.output().expect("the command ends"));
    assert_eq!(ran.code, 0, "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(evil.calls().len(), 0);
    assert!(!own.calls().is_empty());
}
