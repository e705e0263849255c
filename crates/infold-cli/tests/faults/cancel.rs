//! Cancellation: Ctrl-C, or a request to end.

use std::time::{Duration, Instant};

use infold_testkit::{Script, Server, Step};
use infold_wire::Wire;

use crate::{World, failures, is_valid, messages, signal, until};

/// Stops a call while it waits in `step`.
fn stops(wire: Wire, signal_name: &str, step: Step, args: &[&str]) {
    let what = format!("{} {signal_name}", wire.name());
    let world = World::new();
    let server = Server::start(Script::steps([step, Step::say("here it is")]));
    world.configure("stop", &server);
    let task = world.task(wire);
    let name = task.to_string();
    let mut ask = vec!["ask", &name, "hello", "--window", "4000"];
    ask.extend(args);
    let child = world.command("stop", &ask).spawn().expect("infold runs");
    until("it asks", || server.count() == 1);
    let start = Instant::now();
    signal(&child, signal_name);
    let ran = world.wait(child);
    // The server's answer would take longer.
    assert!(
        start.elapsed() < Duration::from_secs(60),
        "{what}: {:?}",
        start.elapsed()
    );
    assert_eq!(ran.code, Some(130), "{what}: {}", ran.err);
    assert_eq!(ran.out, "", "{what}");
    assert!(ran.err.contains("cancelled"), "{what}: {}", ran.err);
    let log = world.read(task);
    is_valid(&log);
    assert_eq!(messages(&log).len(), 1, "{what}");
    assert_eq!(failures(&log), ["cancelled"], "{what}");
    assert_eq!(world.problems("stop", task), "", "{what}");
    let again = world.run("stop", &ask);
    assert_eq!(
        (again.code, again.out.contains("here it is")),
        (Some(0), true),
        "{what}: {}",
        again.err
    );
    assert_eq!(messages(&world.read(task)).len(), 2, "{what}");
    assert!(!world.has_request(task), "{what}");
}

fn slow() -> Step {
    let text = "word ".repeat(2000);
    Step::say(text)
        .in_pieces(5)
        .pausing(Duration::from_millis(40))
}

#[test]
fn a_stream_is_stopped_on_every_wire() {
    for wire in [
        Wire::Chat,
        Wire::Responses,
        Wire::Anthropic,
        Wire::Gemini,
        Wire::Ollama,
    ] {
        stops(wire, "INT", slow(), &[]);
    }
    stops(Wire::Chat, "INT", slow(), &["--json"]);
}

#[test]
fn a_request_to_end_stops_it_too() {
    stops(Wire::Chat, "TERM", slow(), &[]);
}

#[test]
fn whoever_waits_is_stopped_at_once() {
    stops(Wire::Chat, "INT", Step::never(), &[]);
    let busy = Step::error(429, "{}").header("retry-after", "100");
    stops(Wire::Chat, "TERM", busy, &[]);
}

/// A second signal ends the command without waiting for a slow summary.
#[test]
fn told_twice_it_ends_at_once() {
    let world = World::new();
    let server = Server::start(Script::new());
    world.configure("stop", &server);
    let task = world.task(Wire::Chat);
    let name = task.to_string();
    let said: Vec<String> = (0..40)
        .map(|at| {
            let (role, text) = (["user", "assistant"][at % 2], "so many words ".repeat(40));
            serde_json::json!({"role": role, "content": text}).to_string()
        })
        .collect();
    std::fs::write(world.path("said.jsonl"), said.join("\n")).expect("a file");
    let file = world.path("said.jsonl");
    world.run(
        "stop",
        &["task", "push", &name, file.to_str().expect("a path")],
    );
    let begun = world.path("begun");
    let slow = format!("command:touch {}; exec sleep 100", begun.display());
    let ask = [
        "ask",
        &name,
        "hello",
        "--window",
        "4000",
        "--summarizer",
        &slow,
    ];
    let mut child = world.command("stop", &ask).spawn().expect("infold runs");
    until("it summarises", || begun.exists());
    let start = Instant::now();
    // Two signals that come close together may arrive as one.
    while child.try_wait().expect("it can be looked at").is_none() {
        assert!(start.elapsed() < Duration::from_secs(60), "it goes on");
        signal(&child, "TERM");
        std::thread::sleep(Duration::from_millis(100));
    }
    let ran = world.wait(child);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    let log = world.read(task);
    is_valid(&log);
    assert_eq!(messages(&log).len(), 41);
    assert_eq!(server.count(), 0);
    let again = world.run("stop", &ask[..5]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert_eq!(messages(&world.read(task)).len(), 42);
}
