//! Models that make mistakes, and providers that fail.

use infold_store::Status;
use infold_testkit::{Answer, Script, Server, Step};
use infold_wire::StopReason;
use serde_json::json;

use crate::{call, done, home, results, rows};

#[test]
fn a_model_that_calls_what_is_not_there_or_writes_broken_arguments_can_act_on_what_it_is_told() {
    let server = Server::start(Script::steps([
        call("teleport", json!({"to": "mars"})),
        Step::call("read", r#"{"path": "#),
        call("read", json!({"file": "a"})),
        Step::call("done", "not json"),
        call("read", json!({"path": "a"})),
        done("read it"),
    ]));
    let home = home(&server, "");
    std::fs::write(home.path().join("work/a"), "the text").unwrap();
    let ran = home.run("run 'read a' --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let told = results(&server.last_call().unwrap().messages());
    assert!(
        told[0].contains("no tool `teleport`") && told[0].contains("read, "),
        "{}",
        told[0]
    );
    assert!(told[1].contains("JSON"), "{}", told[1]);
    assert!(told[2].contains("path"), "{}", told[2]);
    assert!(told[3].contains("JSON"), "{}", told[3]);
    assert_eq!(told[4].trim(), "the text");
    assert_eq!(home.run("verify", b"").code, 0);
}

#[test]
fn a_call_that_is_repeated_is_told_of_and_then_the_task_is_paused() {
    let server = Server::start(Script::decide(|_| call("list", json!({"path": "."}))));
    let home = home(&server, "");
    std::fs::write(home.path().join("work/only.txt"), "x").unwrap();
    let ran = home.run("run 'look' --workspace work", b"");
    assert_eq!(ran.code, 1, "{}", home.transcript(&ran));
    let row = rows(&home).remove(0);
    assert_eq!(row.status, Status::Paused);
    assert_eq!(
        row.error_message.as_deref(),
        Some("the model made the same call of `list` 5 times in a row")
    );
    let told = results(&server.last_call().unwrap().messages());
    let is_told = |text: &String| text.contains("in a row with the same arguments");
    assert_eq!(
        told.iter().map(is_told).collect::<Vec<_>>(),
        [false, false, true, true]
    );
    // The repeated call was still answered; the fifth was not run.
    assert!(told[3].contains("only.txt"));
    assert_eq!((row.counters.llm_calls, row.counters.tool_calls), (5, 5));
}

#[test]
fn an_unknown_tool_that_is_called_again_and_again_is_told_of_too() {
    let server = Server::start(Script::decide(|_| call("teleport", json!({"to": "mars"}))));
    let home = home(&server, "");
    let ran = home.run("run 'go' --workspace work", b"");
    assert_eq!(ran.code, 1, "{}", home.transcript(&ran));
    let told = results(&server.last_call().unwrap().messages());
    let is_told = |text: &String| text.contains("in a row with the same arguments");
    assert_eq!(
        told.iter().map(is_told).collect::<Vec<_>>(),
        [false, false, true, true]
    );
    assert!(
        told[3].starts_with("There is no tool `teleport`"),
        "{}",
        told[3]
    );
}

#[test]
fn a_model_that_says_nothing_is_asked_again_and_then_the_task_is_paused() {
    let silent = || Step::say(" \n");
    let server = Server::start(Script::steps([
        silent(),
        silent(),
        call("list", json!({})),
        silent(),
        silent(),
        silent(),
        silent(),
        done("after all"),
    ]));
    let home = home(&server, "");
    let ran = home.run("run 'look' --workspace work --require-calls", b"");
    assert_eq!(ran.code, 1, "{}", home.transcript(&ran));
    let row = rows(&home).remove(0);
    assert_eq!(row.status, Status::Paused);
    let reason = "the model said nothing 3 times in a row";
    assert_eq!(row.error_message.as_deref(), Some(reason));
    assert_eq!(row.counters.llm_calls, 6);
    home.meet(&row.uuid.to_string());
    let ran = home.run("run --resume T1", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert_eq!(rows(&home)[0].status, Status::Completed);
    let told = server.last_call().unwrap().text();
    assert_eq!(told.matches("Your reply was empty").count(), 6, "{told}");
    assert_eq!(home.run("verify", b"").code, 0);
}

#[test]
fn a_reply_that_is_withheld_completes_nothing() {
    let server = Server::start(Script::steps([
        Step::answer(Answer {
            text: Some("I cannot".to_owned()),
            stop: Some(StopReason::Declined),
            ..Answer::default()
        }),
        done("in another way"),
    ]));
    let home = home(&server, "");
    let ran = home.run("run 'look' --workspace work", b"");
    assert_eq!(ran.code, 1, "{}", home.transcript(&ran));
    let row = rows(&home).remove(0);
    assert_eq!(row.status, Status::Paused);
    let reason = "the provider withheld the reply, or the model declined";
    assert_eq!(row.error_message.as_deref(), Some(reason));
    home.meet(&row.uuid.to_string());
    let ran = home.run("run --resume T1", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let told = server.last_call().unwrap().text();
    assert!(told.contains("Your last reply was withheld"), "{told}");
}

#[test]
fn a_provider_that_fails_costs_attempts_and_then_the_task() {
    let server = Server::start(Script::decide(|_| Step::named("openai/key")));
    let home = home(&server, ", max_attempts: 2");
    assert_eq!(home.run("enqueue 'try' --workspace work", b"").code, 0);
    let ran = home.run("work --once", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let row = rows(&home).remove(0);
    assert_eq!(row.status, Status::Failed);
    let error = row.error_message.unwrap();
    assert!(error.ends_with("(attempt 2, none went on)"), "{error}");
    let asked = server
        .requests()
        .iter()
        .filter(|seen| seen.wire().is_some())
        .count();
    assert_eq!(asked, 2);
}

#[test]
fn in_the_foreground_a_provider_that_fails_leaves_a_task_that_goes_on() {
    let server = Server::start(Script::steps([
        Step::named("openai/key"),
        done("after all"),
    ]));
    let home = home(&server, "");
    let ran = home.run("run 'try' --workspace work", b"");
    assert_eq!(ran.code, 4, "{}", home.transcript(&ran));
    home.meet(&String::from_utf8_lossy(&ran.stderr));
    assert_eq!(rows(&home)[0].status, Status::Paused);
    let ran = home.run("run --resume T1", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert_eq!(rows(&home)[0].status, Status::Completed);
}
