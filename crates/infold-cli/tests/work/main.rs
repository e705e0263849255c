//! Carrying out tasks: in the foreground, by workers, and after failures of these.

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod foreground;
mod kills;
mod leave;
mod queue;
mod trouble;
mod sources;

use std::time::{Duration, Instant};

use common::Home;
use infold_store::{Contexts, Durability, Filter, TaskRow, What};
use infold_testkit::{Answer, Server, Step};
use serde_json::{Value, json};

/// A home whose configuration names a server that speaks OpenAI's API, and how to work.
fn home(server: &Server, work: &str) -> Home {
    let home = Home::new();
    let url = server.url();
    home.config(format!(
        "llm: {{here: {{provider: openai, model: scripted, base_url: '{url}', context_length: 32000}}}}\n\
         work: {{commands: true, retry_seconds: 0{work}}}\n"
    ));
    std::fs::create_dir(home.path().join("work")).expect("a workspace");
    home
}

/// Calls of one reply.
fn calls(calls: &[(&str, Value)]) -> Step {
    let calls = calls.iter();
    Step::answer(Answer {
        calls: calls
            .map(|(name, arguments)| ((*name).to_owned(), arguments.to_string()))
            .collect(),
        ..Answer::default()
    })
}

fn call(name: &str, arguments: Value) -> Step {
    calls(&[(name, arguments)])
}

fn done(summary: &str) -> Step {
    call("done", json!({ "summary": summary }))
}

fn contexts(home: &Home) -> Contexts {
    Contexts::new(home.contexts(), Durability::Never)
}

fn rows(home: &Home) -> Vec<TaskRow> {
    let mut rows = contexts(home).rows(&Filter::default()).expect("rows");
    rows.sort_by_key(|row| row.created_at);
    rows
}

/// The results that a request holds, by the text of each.
fn results(messages: &[String]) -> Vec<String> {
    let parsed = messages.iter().map(|message| {
        let value: Value = serde_json::from_str(message).expect("a message");
        value
    });
    let results = parsed.filter(|message| message["role"] == "tool");
    let text = |message: Value| message["content"].as_str().unwrap_or_default().to_owned();
    results.map(text).collect()
}

/// Waits until a condition holds; the duration is not part of the test.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(300), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The events of a task.
fn events(home: &Home, task: uuid::Uuid) -> Vec<What> {
    let log = contexts(home).read(task).expect("a log");
    let ids = (1..=log.state().at().event).filter_map(infold_log::EventId::new);
    ids.map(|id| log.event(id).expect("an event").what)
        .collect()
}
