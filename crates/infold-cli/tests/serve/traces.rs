//! What the server tells of the requests it answered.

use infold_testkit::{Script, Seen, Server, Step};
use infold_wire::Wire;
use serde_json::Value;

use crate::talk::Talk;
use crate::{House, http, until};

/// What was told in these words, oldest first.
fn told(house: &House, what: &str) -> Vec<Value> {
    let traces = house.traces();
    let lines = traces
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|line: &Value| line["message"] == what)
        .collect()
}

#[test]
fn each_request_is_told_with_its_task_and_its_folds() {
    let hangs_up = |seen: &Seen| match seen.text().contains("and now?") {
        true => Step::hang_up(),
        false => Step::model(),
    };
    let server = Server::start(Script::decide(hangs_up));
    let house = House::with(&server, 3_000);
    let mut talk = Talk::new(Wire::Anthropic, true);
    talk.turn(house.port, "hello");
    for turn in 0..6 {
        talk.turn(
            house.port,
            &format!("{turn}: {}", "some more words ".repeat(150)),
        );
    }
    http::get(house.port, "/healthz").expect("an answer");
    until("all is told", || told(&house, "answered").len() >= 8);
    let lines = told(&house, "answered");
    let task = talk.task().to_string();
    let (healthy, turns) = lines.split_last().expect("some were");
    assert!(turns.iter().all(|line| line["task"] == task), "{turns:?}");
    assert_eq!(turns[0]["folds"], 0, "{turns:?}");
    let folds = turns.last().and_then(|line| line["folds"].as_u64());
    assert!(folds > Some(0), "{turns:?}");
    assert_eq!((healthy.get("task"), healthy.get("folds")), (None, None));
    // So is one that nobody answered.
    talk.say("and now?");
    assert_eq!(talk.ask(house.port).expect("an answer").status, 502);
    until("it is told", || {
        let failed = told(&house, "no reply was recorded");
        failed.iter().any(|line| line["task"] == task)
    });
}
