//! Summaries that take long: who waits for them, and who does not.

mod office;

use std::path::Path;
use std::time::{Duration, Instant};

use infold_serve::{Exchange, LiveItem};
use infold_store::{Contexts, Durability};
use office::{Office, assistant, reply, user};
use serde_json::Value;

const WINDOW: u64 = 4_000;
/// A quarter of the window is for the reply, a tenth is held back: a request with more tokens is folded.
const MOST: u64 = 2_600;

/// A summarizer that says when it begins, and writes when it may.
fn slow(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "command:touch {dir}/begun; while [ -d {dir} ] && [ ! -e {dir}/may ]; do sleep 0.02; done; echo 'They spoke of rivers.'"
    )
}

/// Waits until something is so, for a while.
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn header(exchange: &Exchange, name: &str) -> u64 {
    let headers = exchange.headers();
    let found = headers.iter().find(|(other, _)| *other == name);
    found.map_or(0, |(_, value)| value.parse().expect("it is a number"))
}

/// Continues until a request has this many tokens; nothing is folded on the way.
fn talk(office: &Office, history: &mut Vec<Value>, tokens: u64) {
    loop {
        let turn = history.len();
        history.push(user(&format!("question {turn} {}", "word ".repeat(40))));
        let (mut exchange, _) = office.ask(history, None);
        assert_eq!(header(&exchange, "x-infold-folds"), 0, "at turn {turn}");
        exchange.record(reply("well")).expect("it is recorded");
        history.push(assistant("well"));
        if header(&exchange, "x-infold-tokens-after") > tokens {
            return;
        }
    }
}

#[test]
fn what_still_fits_does_not_wait_for_a_summary() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let office = Office::writing(WINDOW, &slow(dir.path()));
    let mut history = Vec::new();
    talk(&office, &mut history, MOST * 87 / 100);
    wait("a summary is begun", || dir.path().join("begun").exists());
    talk(&office, &mut history, MOST + 50);
    std::fs::write(dir.path().join("may"), "").expect("it can be written");
    history.push(user("and now?"));
    wait("it is used", || {
        let (exchange, sent) = office.ask(&history, None);
        header(&exchange, "x-infold-folds") == 1
            && sent.to_string().contains("They spoke of rivers.")
    });
    let metrics = office.conversations.metrics().render();
    assert!(
        metrics.contains("infold_folds_total{kind=\"summary\"} 1"),
        "{metrics}"
    );
}

#[test]
fn what_no_longer_fits_is_folded_at_once() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let office = Office::writing(WINDOW, &slow(dir.path()));
    let mut history = Vec::new();
    talk(&office, &mut history, MOST * 87 / 100);
    wait("a summary is begun", || dir.path().join("begun").exists());
    history.push(user(&format!("look: {}", "word ".repeat(1_200))));
    let (exchange, sent) = office.ask(&history, None);
    assert_eq!(header(&exchange, "x-infold-folds"), 1);
    assert!(!sent.to_string().contains("They spoke of rivers."));
}

#[test]
fn nobody_else_waits_for_a_summary_that_a_request_needs_at_once() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let office = Office::writing(WINDOW, &slow(dir.path()));
    let mut history = Vec::new();
    talk(&office, &mut history, MOST / 2);
    let task = office.turn(&history, "well", None);
    history.push(assistant("well"));
    history.push(user(&format!("look: {}", "word ".repeat(1_800))));
    let (folded, sent) = std::thread::scope(|scope| {
        let asked = scope.spawn(|| office.ask(&history, None));
        wait("a summary is begun", || dir.path().join("begun").exists());
        // The lease of this task is taken, those of others are free.
        let pinned = office
            .conversations
            .with(task, |writer| writer.note("by hand"));
        pinned
            .expect("it can be had")
            .expect("it can be written to");
        office.turn(&[user("something else")], "well", None);
        // And another process gets it.
        office.conversations.release(task);
        let other = Contexts::new(office.conversations.contexts().root(), Durability::Never);
        let gotten = other.write(task).map(drop);
        let waits = !asked.is_finished();
        std::fs::write(dir.path().join("may"), "").expect("it can be written");
        gotten.expect("nobody holds it");
        assert!(waits, "it waits for its summary");
        asked.join().expect("it is asked")
    });
    assert_eq!(folded.task(), task);
    assert_eq!(header(&folded, "x-infold-folds"), 1);
    let sent = sent.to_string();
    assert!(sent.contains("They spoke of rivers."), "{sent}");
    assert!(sent.contains("by hand"), "{sent}");
}

#[test]
fn a_summary_of_what_went_another_way_is_not_used() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let office = Office::writing(WINDOW, &slow(dir.path()));
    let mut history = Vec::new();
    talk(&office, &mut history, MOST / 2);
    let task = office.turn(&history, "well", None);
    history.push(assistant("well"));
    history.push(user(&format!("look: {}", "word ".repeat(1_800))));
    let (folded, sent) = std::thread::scope(|scope| {
        let asked = scope.spawn(|| office.ask(&history, None));
        wait("a summary is begun", || dir.path().join("begun").exists());
        let hidden = office
            .conversations
            .with(task, |writer| writer.truncate(0.3));
        hidden
            .expect("it can be had")
            .expect("it can be written to");
        std::fs::write(dir.path().join("may"), "").expect("it can be written");
        asked.join().expect("it is asked")
    });
    assert!(header(&folded, "x-infold-folds") > 0);
    assert!(!sent.to_string().contains("They spoke of rivers."));
}

#[test]
fn that_something_is_being_folded_is_told_before_the_work() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let office = Office::writing(WINDOW, &slow(dir.path()));
    let mut history = Vec::new();
    talk(&office, &mut history, MOST / 2);
    history.push(user(&format!("look: {}", "word ".repeat(1_800))));
    let mut listener = office
        .conversations
        .events()
        .listen()
        .expect("there is room");
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime can be made");
    let mut next = || loop {
        let heard = runtime.block_on(listener.next()).expect("it goes on");
        if let LiveItem::Event(change) = heard
            && change.name.starts_with("fold")
        {
            return (change.name, change.json.clone());
        }
    };
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| office.ask(&history, None));
        let (what, json) = next();
        assert_eq!(what, "folding");
        assert!(json.contains(r#""due":"window""#), "{json}");
        // The summary has not been written yet.
        std::fs::write(dir.path().join("may"), "").expect("it can be written");
        asked.join().expect("it is asked");
    });
    assert_eq!(next().0, "fold");
}
