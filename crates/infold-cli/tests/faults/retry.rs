//! The number of retries, and the waits between them.

use std::time::{Duration, SystemTime};

use infold_testkit::{Script, Server, Step};
use infold_wire::Wire;

use crate::{World, failures, messages};

/// Returns the time between requests.
fn gaps(server: &Server) -> Vec<Duration> {
    let times: Vec<SystemTime> = server.requests().iter().map(|seen| seen.at).collect();
    let between = times.windows(2);
    between
        .map(|pair| pair[1].duration_since(pair[0]).unwrap_or_default())
        .collect()
}

fn busy() -> Step {
    Step::error(503, r#"{"error":{"message":"overloaded"}}"#)
}

#[test]
fn waits_end() {
    let world = World::new();
    let server = Server::start(Script::decide(|_| busy()));
    world.configure("busy", &server);
    let task = world.task(Wire::Chat);
    let name = task.to_string();
    let ask = ["ask", &name, "hello", "--window", "4000"];
    let ran = world.run("busy", &[&ask[..], &["--first-wait", "40"]].concat());
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert_eq!(ran.out, "");
    assert_eq!(server.count(), 6);
    let log = world.read(task);
    assert_eq!(messages(&log).len(), 1);
    assert_eq!(failures(&log).len(), 1);
    assert!(world.has_request(task));
}

#[test]
fn what_a_provider_asks_for_is_waited() {
    let world = World::new();
    let limited = || Step::error(429, r#"{"error":{"message":"slow down"}}"#);
    let server = Server::start(Script::steps([
        limited().header("retry-after", "1"),
        limited().header("retry-after-ms", "400"),
        Step::say("now"),
    ]));
    world.configure("limited", &server);
    let task = world.task(Wire::Chat);
    let name = task.to_string();
    let ran = world.run(
        "limited",
        &[
            "ask",
            &name,
            "hello",
            "--window",
            "4000",
            "--first-wait",
            "1",
        ],
    );
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "now\n"),
        "{}",
        ran.err
    );
    let gaps = gaps(&server);
    let least = [1000, 400].map(Duration::from_millis);
    assert!(
        gaps.len() == 2 && gaps[0] >= least[0] && gaps[1] >= least[1],
        "{gaps:?}"
    );
    assert!(!world.has_request(task));
}

/// More than there is patience for is not waited at all.
#[test]
fn a_wait_beyond_the_deadline_is_not_begun() {
    let world = World::new();
    let limited = Step::error(429, r#"{"error":{"message":"slow down"}}"#);
    let server = Server::start(Script::steps([limited.header("retry-after", "3600")]));
    world.configure("limited", &server);
    let name = world.task(Wire::Chat).to_string();
    let ran = world.run("limited", &["ask", &name, "hello", "--window", "4000"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    assert_eq!(server.count(), 1);
}

/// A reader of standard output through a pipe gets the reply, and nothing of the broken ones.
#[test]
fn a_pipe_gets_only_what_is_whole() {
    let world = World::new();
    let server = Server::start(Script::steps([
        Step::say("this one breaks off somewhere")
            .in_pieces(4)
            .cut_after_events(5),
        Step::say("and this one is whole").in_pieces(4),
    ]));
    world.configure("broken", &server);
    let task = world.task(Wire::Chat);
    let name = task.to_string();
    let ran = world.run(
        "broken",
        &[
            "ask",
            &name,
            "hello",
            "--window",
            "4000",
            "--first-wait",
            "1",
        ],
    );
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "and this one is whole\n"),
        "{}",
        ran.err
    );
    assert_eq!(server.count(), 2);
    assert_eq!(messages(&world.read(task))[1].1, "and this one is whole");
}

/// A server that drops the front of a prompt gets the request again, and only the second reply counts.
#[test]
fn a_reply_to_half_a_prompt_is_not_told() {
    let world = World::new();
    let server = Server::start(
        Script::steps([Step::say("first"), Step::say("second")])
            .model(infold_testkit::Model::window(600)),
    );
    world.configure("cut", &server);
    let task = world.task(Wire::Ollama);
    let name = task.to_string();
    let said: Vec<String> = (0..12)
        .map(|at| {
            let (role, text) = (["user", "assistant"][at % 2], "so many words ".repeat(40));
            serde_json::json!({"role": role, "content": text}).to_string()
        })
        .collect();
    std::fs::write(world.path("said.jsonl"), said.join("\n")).expect("a file");
    let file = world.path("said.jsonl");
    let pushed = world.run(
        "cut",
        &["task", "push", &name, file.to_str().expect("a path")],
    );
    assert_eq!(pushed.code, Some(0), "{}", pushed.err);
    let ran = world.run(
        "cut",
        &[
            "ask",
            &name,
            "hello",
            "--window",
            "4000",
            "--max-tokens",
            "50",
            "--json",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(server.count(), 2, "{}", ran.out);
    assert_eq!(ran.object()["text"], "second");
    let log = messages(&world.read(task));
    assert_eq!((log.len(), log[13].1.as_str()), (14, "second"));
}

/// Instructions that were given with a question that failed may be given with it again.
#[test]
fn what_is_said_again_is_kept_once() {
    let world = World::new();
    let server = Server::start(Script::steps([
        Step::named("openai/key"),
        Step::say("yes"),
        Step::say("no"),
    ]));
    world.configure("again", &server);
    let task = world.task(Wire::Chat);
    let name = task.to_string();
    let ask = [
        "ask", &name, "is it?", "--system", "be brief", "--window", "4000",
    ];
    assert_eq!(world.run("again", &ask).code, Some(4));
    let ran = world.run("again", &ask);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "yes\n"),
        "{}",
        ran.err
    );
    assert_eq!(messages(&world.read(task)).len(), 3);
    // Once answered, it is a question like any other.
    let ran = world.run("again", &ask[..3]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (Some(0), "no\n"),
        "{}",
        ran.err
    );
    assert_eq!(messages(&world.read(task)).len(), 5);
    let other = ["ask", &name, "is it?", "--system", "be long"];
    assert_eq!(world.run("again", &other).code, Some(2));
}
