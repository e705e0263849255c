//! `infold state` and `infold layers`, and the state in requests.

#[path = "../common/mod.rs"]
mod common;
mod embeddings;

use common::Home;
use infold_testkit::{Answer, Script, Server, Step};
use serde_json::Value;

const STATE: &str = "\
system:
  policies: [never drop a column]
task:
  goal: migrate the users table
runtime: {phase: planning, environment: production}
memory:
  semantic:
    facts:
      - {text: the table has 40 million rows, source: psql}
work:
  plan:
    - {description: write it, status: done}
    - rehearse
";

fn home() -> Home {
    let home = Home::new();
    home.file("state.yaml", STATE);
    home.file("chat.jsonl", r#"{"role":"user","content":"begin"}"#);
    home.tell("task new\ntask push T1 chat.jsonl");
    home
}

#[test]
fn a_state_is_loaded_changed_shown_and_undone() {
    let home = home();
    let told = home.tell(
        "state T1 load state.yaml
         state T1 done plan 2
         state T1 add working_variables 8 --name workers
         state T1 get
         undo T1
         state T1 get working_variables
         state T1 get goal --at 1",
    );
    let wanted = "\
system.policies
  1 never drop a column
task.goal
    migrate the users table
runtime.phase
    planning
runtime.environment
    prod
memory.short_term.working_variables
  1 8 [name: workers]
memory.semantic.facts
  1 the table has 40 million rows [source: psql]
work.plan
  1 write it [status: completed]
  2 rehearse [status: completed]
";
    assert!(told.contains(wanted), "{told}");
    assert!(
        told.contains("memory.short_term.working_variables is empty"),
        "{told}"
    );
    assert!(
        told.contains("task.goal is empty"),
        "the goal was set after message 1:\n{told}"
    );
    assert_eq!(home.tell("verify T1").matches("ok").count(), 1);
}

#[test]
fn the_document_is_within_its_limit_or_says_what_is_missing() {
    let home = home();
    home.tell("state T1 load state.yaml");
    let built = &home.objects("layers build T1 --max-tokens 400")[0];
    assert!(built["tokens"].as_u64() <= built["limit"].as_u64());
    assert_eq!(built["limit"], 360);
    let document = built["document"].as_str().expect("a document");
    assert!(document.starts_with("<context>\n<system>\n"), "{document}");
    assert!(document.contains(r#"<fact source="psql">the table has 40 million rows</fact>"#));
    let ran = home.run("layers build T1 --max-tokens 30", b"");
    assert_eq!(ran.code, 1);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        said.contains("system and task layers need") && said.contains("are missing"),
        "{said}"
    );
    let explained = home.tell("layers build T1 --max-tokens 140 --explain");
    assert!(
        explained.contains("out: ") && explained.contains("tokens were left"),
        "{explained}"
    );
}

#[test]
fn what_is_wrong_is_named_with_what_was_meant() {
    let home = home();
    home.file("wrong.yaml", "task:\n  gaol: x\n");
    for (line, said) in [
        ("state T1 load wrong.yaml", "line 2: no key `gaol` in task"),
        ("state T1 load wrong.yaml", "did you mean `goal`?"),
        ("state T1 set phase exekuting", "did you mean `executing`?"),
        (
            "state T1 set environment prodution",
            "did you mean `production`?",
        ),
        ("state T1 get gaol", "did you mean `goal`?"),
        (
            "state T1 add goal x",
            "`task.goal` holds one value, not a list",
        ),
        (
            "state T1 remove plan 3",
            "`work.plan` has 0 items, and no item 3",
        ),
        (
            "state T1 set deadline tomorrow",
            "a time such as 2026-01-31T18:00:00Z",
        ),
        ("state T1 set output_format '{broken'", "a JSON Schema"),
        (
            "state T1 add retrieved x --relevance 7",
            "relevance is a number from 0 to 1",
        ),
        (
            "state T1 add policies x --tool y",
            "items of `system.policies` have no `tool`",
        ),
        (
            "state T1 add plan x --status compelted",
            "did you mean `completed`?",
        ),
        (
            "state T1 add plan x --status nonsense",
            "status is one of pending, in_progress, completed, blocked, cancelled",
        ),
        (
            "state T1 load /dev/zero",
            "/dev/zero: the file has more than 64 MiB",
        ),
    ] {
        let ran = home.run(line, b"");
        let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.code, 2, "{line}: {stderr}");
        assert!(stderr.contains(said), "{line}: {stderr}");
    }
    assert!(home.tell("state T1 get").contains("the state is empty"));
}

#[test]
fn requests_carry_the_state_on_every_wire() {
    for api in ["openai", "anthropic", "gemini", "ollama", "responses"] {
        let answers = (0..3).map(|_| {
            Step::answer(Answer {
                text: Some("well".to_owned()),
                ..Answer::default()
            })
        });
        let server = Server::start(Script::steps(answers));
        let home = home();
        let url = server.url();
        home.config(format!(
            "llm: {{here: {{provider: {api}, model: m, base_url: '{url}'}}}}\n"
        ));
        home.tell("state T1 load state.yaml");
        let posted = |line: &str| -> String {
            let ran = home.run(line, b"");
            assert_eq!(ran.code, 0, "{api}: {}", home.transcript(&ran));
            let all = server.requests();
            let last = all.iter().rfind(|seen| seen.text().contains("begin"));
            last.expect("a request").text()
        };
        let body = posted("ask T1 'go on' --window 32k");
        assert_eq!(
            body.matches("migrate the users table").count(),
            1,
            "{api}: {body}"
        );
        assert_eq!(body.matches("never drop a column").count(), 1, "{api}");
        assert_eq!(body.matches("rehearse").count(), 1, "{api}");
        assert!(
            body.find("go on") < body.find("rehearse"),
            "{api}: what changes comes last\n{body}"
        );
        // The next request repeats the shown context, and nothing twice.
        let body = posted("ask T1 'and then?' --window 32k");
        assert_eq!(body.matches("rehearse").count(), 1, "{api}: {body}");
        // The changes are shown at the new end.
        home.tell("state T1 add plan 'drop the old column'");
        let body = posted("ask T1 'well?' --window 32k");
        assert!(
            body.find("well?") < body.find("drop the old column"),
            "{api}: {body}"
        );
        let parsed: Value = serde_json::from_str(&body).expect("JSON");
        assert!(parsed.is_object());
    }
}

#[test]
fn a_secret_in_the_state_is_redacted_there_too() {
    let home = home();
    home.file("secret.yaml", "task:\n  goal: deploy with hunter2secret\n  output_format: {type: hunter2secret}\nmemory:\n  semantic:\n    facts:\n      - {text: a, source: hunter2secret}\n");
    home.tell("state T1 load secret.yaml\nstate T1 add plan 'use hunter2secret'\nfork T1");
    let told = home.tell("redact T1 --pattern hunter2secret --yes");
    assert!(!told.contains("matches nothing"), "{told}");
    let mut files = vec![home.contexts()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a directory");
            files.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            let found = bytes.windows(13).any(|part| part == b"hunter2secret");
            assert!(!found, "{}", path.display());
        }
    }
    let told = home.tell("state T1 get\nverify T1");
    assert!(told.contains("deploy with [redacted"), "{told}");
    assert!(told.contains("ok"), "{told}");
}

#[test]
fn a_view_that_is_sent_as_it_is_carries_the_state_too() {
    let server = Server::start(Script::new());
    let home = home();
    let url = server.url();
    home.config(format!(
        "llm: {{here: {{provider: openai, model: m, base_url: '{url}'}}}}\n"
    ));
    home.tell("state T1 load state.yaml");
    let ran = home.run("send T1 --window 32k", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let body = server.requests().last().expect("a request").text();
    assert_eq!(body.matches("migrate the users table").count(), 1, "{body}");
    assert_eq!(body.matches("rehearse").count(), 1, "{body}");
}

#[test]
fn a_plan_takes_the_statuses_of_agents_lists() {
    let home = home();
    home.tell("state T1 set plan one");
    for (given, kept) in [
        ("pending", "pending"),
        ("todo", "pending"),
        ("in_progress", "in_progress"),
        ("inProgress", "in_progress"),
        ("blocked", "blocked"),
        ("canceled", "cancelled"),
        ("done", "completed"),
    ] {
        let told = home.tell(&format!(
            "state T1 done plan 1 --status {given}\nstate T1 get plan"
        ));
        assert!(told.contains(&format!("one [status: {kept}]")), "{told}");
    }
}

#[test]
fn the_state_is_shown_as_it_was_at_a_time() {
    let home = home();
    home.tell("state T1 set goal first");
    let entries = home.objects("log T1");
    let newest = entries.last().expect("an event");
    let time = newest["timestamp"].as_str().expect("a time");
    home.tell("state T1 set goal second");
    let told = home.tell(&format!("state T1 get goal --at {time}"));
    assert!(told.contains("first"), "{told}");
    let built = home.tell(&format!("layers build T1 --max-tokens 400 --at {time}"));
    assert!(built.contains("<goal>first</goal>"), "{built}");
    let wrong = home.run("layers build T1 --at 1999-01-01", b"");
    assert_eq!(wrong.code, 2, "there was nothing then");
}

#[test]
fn a_number_of_tokens_may_have_a_unit_in_the_configuration() {
    let home = home();
    home.tell("state T1 load state.yaml");
    home.config("layers:\n  max_tokens: 4k\n");
    assert_eq!(home.objects("layers build T1")[0]["limit"], 3600);
}

#[test]
fn an_export_says_that_the_state_stays_behind() {
    let home = home();
    let before = home.run("export T1", b"");
    home.tell("state T1 load state.yaml");
    let after = home.run("export T1", b"");
    assert_eq!(before.stdout, after.stdout);
    let said = |ran: &common::Ran| String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(!said(&before).contains("layered state"));
    assert!(
        said(&after).contains("no place for the layered state"),
        "{}",
        said(&after)
    );
}
