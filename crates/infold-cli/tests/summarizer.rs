//! Who writes the summaries: a model where there is one to ask, and nobody is asked in vain.

mod common;

use common::Home;
use infold_testkit::{Script, Server, Step};
use serde_json::Value;

const WRITTEN: &str = "## Goal\nThe parser is being made fast.";

fn server() -> Server {
    Server::start(Script::decide(|_| Step::say(WRITTEN)))
}

fn session() -> String {
    let words = "alpha river stone seven green apple house table ".repeat(8);
    let turn = |at: usize| {
        let user = common::said("user", &format!("request {at}"));
        user + &common::said("assistant", &format!("reply {at} {words}"))
    };
    (0..120).map(turn).collect()
}

/// A task, and a configuration that names a provider.
fn home(server: &Server, more: &str) -> Home {
    let home = Home::new();
    home.file("session.jsonl", session());
    let url = server.url();
    home.config(format!(
        "llm: {{here: {{provider: lmstudio, model: big, base_url: '{url}'}}}}\n{more}"
    ));
    home.tell("task new --context-length 8000\ntask push T1 session.jsonl");
    home
}

/// Who wrote the summary.
fn writer(home: &Home, line: &str) -> String {
    let objects = home.objects(line);
    let steps = objects[0]["steps"].as_array().cloned().unwrap_or_default();
    let found = steps.iter().find_map(|step| step["summarizer"].as_str());
    found
        .or(objects[0]["summarizer"].as_str())
        .unwrap_or("nobody")
        .to_owned()
}

#[test]
fn a_model_that_can_be_asked_writes_unless_somebody_says_otherwise() {
    let server = server();
    for (more, line, by) in [
        ("", "manage T1", "model:big"),
        ("", "condense T1 --window 8k", "model:big"),
        ("", "manage T1 --summarizer extractive", "extractive"),
        ("", "manage T1 --summarizer model:small", "model:small"),
        ("summarizer: extractive", "manage T1", "extractive"),
        ("summarizer: model:small", "manage T1", "model:small"),
        (
            "profiles: {big: {condense_model: small}}",
            "manage T1",
            "model:small",
        ),
        (
            "summarizer: 'command:echo it went on'",
            "manage T1",
            "command:echo it went on",
        ),
    ] {
        let home = home(&server, more);
        assert_eq!(writer(&home, line), by, "{more} {line}");
        let view = home.tell("view T1 --raw");
        assert_eq!(
            view.contains("made fast"),
            by.starts_with("model"),
            "{more} {line}"
        );
    }
}

#[test]
fn the_model_that_is_talked_to_writes_the_summary_too() {
    let server = server();
    let home = home(&server, "");
    let ran = home.run("ask T1 'and now?' --window 8k", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let view = home.tell("view T1 --raw");
    assert!(view.contains("made fast"), "{view}");
    let first = server.requests()[0].text();
    assert!(first.contains("You write the summary"), "{first}");
    assert!(
        server
            .last()
            .is_some_and(|last| last.text().contains("and now?"))
    );
}

#[test]
fn a_file_is_folded_by_a_model_only_if_the_call_asks_for_it() {
    let server = server();
    let home = home(&server, "summarizer: model");
    let asked = server.count();
    let plain = home.run("fold session.jsonl --window 8k", b"");
    assert_eq!((plain.code, server.count()), (0, asked));
    home.tell("manage T1 --dry-run");
    assert_eq!(server.count(), asked, "nor is a rehearsal");
    let folded = home.run("fold session.jsonl --window 8k --summarizer model", b"");
    assert!(String::from_utf8_lossy(&folded.stdout).contains("made fast"));
    assert!(server.count() > asked);
}

#[test]
fn what_a_summary_took_is_counted() {
    let server = server();
    let home = home(&server, "summarizer: {use: model, check: true}");
    home.tell("manage T1");
    let row: &Value = &home.objects("task show T1")[0];
    // What is too long for its window comes in parts, and each is looked over.
    let calls = server.count();
    assert!(calls >= 2 && calls.is_multiple_of(2), "{calls}");
    assert_eq!(row["llm_call_count"], calls, "{row}");
    assert!(row["total_tokens"].as_u64() > Some(1_000), "{row}");
    let before = home.tell("view T1 --raw");
    home.tell("undo T1");
    assert_ne!(home.tell("view T1 --raw"), before);
    assert_eq!(home.objects("task show T1")[0]["llm_call_count"], calls);
}

#[test]
fn a_model_that_nobody_has_is_asked_for_in_vain() {
    let home = Home::new();
    home.file("session.jsonl", session());
    home.tell("task new --context-length 8000\ntask push T1 session.jsonl");
    insta::assert_snapshot!(home.tell("manage T1 --summarizer model"), @"
    $ infold manage T1 --summarizer model
    ! error: no provider: nobody says whom to ask
    ! hint: --provider NAME, or `llm:` in config.yaml (docs/CONFIG.md); without a key, `--provider ollama` asks a model on this machine
    [2]
    ");
    // One without its key is not asked, and the built-in summarizer writes.
    home.config("llm: {openai: {model: gpt-5}}");
    assert_eq!(writer(&home, "manage T1"), "extractive");
}
