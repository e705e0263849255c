//! The server's traces of the requests that it answered.

use infold_testkit::{Script, Seen, Server, Step};
use infold_wire::Wire;
use serde_json::Value;

use crate::talk::Talk;
use crate::{House, http, until};

/// Returns the traces with this message, oldest first.
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
    let hangs_up = |seen: &Seen| {
        if seen.text().contains("and now?") {
            Step::hang_up()
        } else {
            Step::model()
        }
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
    // So is a request without an answer.
    talk.say("and now?");
    assert_eq!(talk.ask(house.port).expect("an answer").status, 502);
    until("it is told", || {
        let failed = told(&house, "no reply was recorded");
        failed.iter().any(|line| line["task"] == task)
    });
}

#[test]
fn a_call_at_an_unknown_path_is_warned_of_once() {
    let server = Server::start(Script::new());
    let house = House::with(&server, None);
    let json = [("content-type", "application/json")];
    let post = |path: &str, body: &str| {
        http::post(house.port, path, &json, body.as_bytes()).expect("an answer")
    };
    let call = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
    let paths = ["/v2/converse", "/v2/other"];
    for path in [paths[0], paths[0], paths[1]] {
        post(path, call);
    }
    // These are no model calls, or known ones.
    post("/v1/embeddings", r#"{"model":"m","input":["hi"]}"#);
    post("/v1/messages/count_tokens", call);
    post("/v1/files", r#"{"purpose":"x"}"#);
    post("/inference/v1/chat/completions", call);
    until("all is told", || told(&house, "answered").len() >= 7);
    let what =
        "this looks like a model call at a path that is not known: passed through unrecorded";
    let warned = told(&house, what);
    let warned: Vec<&str> = warned
        .iter()
        .filter_map(|line| line["path"].as_str())
        .collect();
    assert_eq!(warned, paths);
}
