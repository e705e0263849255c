//! Every constraint of the request being worked on is in the bytes of every request that the model gets, however often it is folded.

mod front;

use front::{Proxy, Setup, place};
use infold_testkit::{Script, Server, Step};
use infold_wire::Wire;
use serde_json::{Value, json};

const CONSTRAINTS: usize = 20;
/// Enough turns for several folds in the window.
const TURNS: usize = 36;

/// Returns a constraint of the request in one of several forms.
fn constraint(form: &str, number: usize) -> String {
    let value = 137 + 41 * number;
    match form {
        "prose" => format!(
            "For case {number} I want the export to keep to {value} milliseconds, since that is what we agreed with them."
        ),
        "chinese" => {
            format!("{number}、第{number}种情况下响应时间不得超过{value}毫秒，也不能丢数据。")
        }
        _ => format!("- src/part{number}.rs: never more than {value} lines, no new dependency"),
    }
}

/// A result with few repetitions, like those of real tools.
fn result(turn: usize) -> String {
    let parts = [
        "parser", "engine", "cache", "router", "worker", "writer", "index",
    ];
    let line = |line: usize| {
        let pick = |by: usize| parts[(turn * by + line * (by + 2)) % parts.len()];
        let number = turn * 31 + line;
        format!(
            "{line}: fn {}_{}_{number}(value: {}) -> Result<{}>",
            pick(3),
            pick(5),
            pick(8),
            pick(2)
        )
    };
    (0..60).map(line).collect::<Vec<_>>().join("\n")
}

/// Sends the conversation unchanged, and adds the reply to it.
fn send(proxy: &Proxy, messages: &mut Vec<Value>) {
    let body = json!({"model": "m", "max_tokens": 500, "messages": messages});
    let (path, headers) = place(Wire::Anthropic, false);
    let answer = proxy.post(path, headers, body.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let reply: Value = serde_json::from_slice(&answer.body).expect("it is JSON");
    messages.push(json!({"role": "assistant", "content": reply["content"]}));
}

#[test]
fn no_constraint_is_lost_on_the_way_to_the_model() {
    for form in ["prose", "chinese", "paths"] {
        let server = Server::start(Script::new().otherwise(|seen| {
            Step::call(
                "read",
                format!("{{\"path\":\"src/part{}.rs\"}}", seen.number),
            )
        }));
        let setup = Setup {
            window: Some("16000"),
            ..Setup::to(&server.url())
        };
        let proxy = setup.start();
        let constraints: Vec<String> = (0..CONSTRAINTS)
            .map(|number| constraint(form, number))
            .collect();
        let first = "Have a look at the project and tell me what it does.";
        let mut messages = vec![
            json!({"role": "user", "content": first}),
            json!({"role": "assistant", "content": "It is a server for bookings with a queue and an audit log."}),
            json!({"role": "user", "content": format!("Now rework it. Keep to all of this:\n{}", constraints.join("\n"))}),
        ];
        let (mut passes, mut before) = (0, 0);
        for turn in 0..TURNS {
            send(&proxy, &mut messages);
            let sent = server
                .last_call()
                .and_then(|seen| seen.body)
                .expect("a body");
            let sent = String::from_utf8(sent).expect("it is UTF-8");
            // Only a fold makes a request shorter than the one before.
            let count = sent.matches("\"role\"").count();
            passes += usize::from(count < before);
            before = count;
            let lost = constraints.iter().filter(|one| !sent.contains(*one));
            let lost: Vec<&String> = lost.collect();
            assert!(
                lost.is_empty(),
                "{form}, turn {turn}, after {passes} passes: {lost:?}"
            );
            let call = &messages[messages.len() - 1]["content"][0];
            let result =
                json!({"type": "tool_result", "tool_use_id": call["id"], "content": result(turn)});
            messages.push(json!({"role": "user", "content": [result]}));
        }
        assert!(passes > 2, "{form}: {passes} passes");
    }
}
