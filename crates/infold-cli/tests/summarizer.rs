//! The choice of the summarizer: a model where one is available, and no calls without need.

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

/// Returns the summarizer that wrote the summary.
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
    // A text that is too long for the model's window comes in parts, and each summary is checked.
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
    ! error: no provider configured
    ! hint: use --provider NAME, or set `llm:` in config.yaml (docs/CONFIG.md); `--provider ollama` uses a model on this machine, without a key
    [2]
    ");
    // A model without its key is not called, and the built-in summarizer writes.
    home.config("llm: {openai: {model: gpt-5}}");
    assert_eq!(writer(&home, "manage T1"), "extractive");
}

#[test]
fn the_model_that_condenses_may_be_of_another_provider() {
    let (server, other) = (server(), server());
    let url = other.url();
    let home = home(&server, "");
    let configured = |condenser: &str, model: &str| {
        let here = server.url();
        home.config(format!(
            "llm: {{provider: here, here: {{provider: lmstudio, model: '{model}', base_url: '{here}'}}, \
             there: {{provider: anthropic, api_key: key, base_url: '{url}'}}}}\n\
             profiles: {{default: {{condense_model: '{condenser}'}}}}\n"
        ));
    };
    configured("there/claude-haiku-4-5", "big");
    let asked = server.count();
    assert_eq!(writer(&home, "manage T1"), "model:claude-haiku-4-5");
    assert_eq!((server.count(), other.count() > 0), (asked, true));
    // The model of the conversation stays the same.
    home.tell("undo T1");
    let (asked, there) = (server.count(), other.count());
    let ran = home.run("ask T1 'and now?' --window 8k", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert!(server.count() > asked && other.count() > there);
    // A service that has models of many makers calls them so itself.
    home.tell("undo T1");
    configured("there/claude-haiku-4-5", "maker/big");
    assert_eq!(
        writer(&home, "manage T1 --force"),
        "model:there/claude-haiku-4-5"
    );
    // A missing key is reported, and the built-in summarizer writes.
    home.tell("undo T1");
    configured("openai/gpt-5-mini", "big");
    let ran = home.run("manage T1 --force", b"");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        said.contains("gpt-5-mini of openai is not available"),
        "{said}"
    );
}

#[test]
fn where_nobody_wants_folds_no_model_is_paid_for_one() {
    let server = server();
    let home = home(&server, "profiles: {big: {auto: false}}");
    // A local model is free.
    assert_eq!(writer(&home, "manage T1"), "model:big");
    home.tell("undo T1");
    let url = server.url();
    let prices = "models: {big: {window: 8000, prices: {input: 1, output: 2}}}";
    home.config(format!(
        "llm: {{here: {{provider: lmstudio, model: big, base_url: '{url}'}}}}\n\
         profiles: {{big: {{auto: false}}}}\n{prices}\n"
    ));
    let asked = server.count();
    // The messages do not fit, so they are folded; no model is called.
    assert_eq!(writer(&home, "manage T1"), "extractive");
    assert_eq!(server.count(), asked);
    // While there is room, nothing is folded, however full it is.
    assert_eq!(writer(&home, "manage T1 --threshold 5"), "nobody");
    home.tell("undo T1");
    // A fold that the user requests is written by the model.
    assert_eq!(writer(&home, "manage T1 --force"), "model:big");
}
