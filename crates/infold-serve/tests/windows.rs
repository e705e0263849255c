//! Windows that are not configured: when the model's server is asked, and what its answer means.

mod front;

use std::time::{Duration, Instant};

use front::{Answer, Proxy, Setup, post};
use infold_testkit::{Script, Server};
use serde_json::{Value, json};

fn proxy(server: &Server) -> Proxy {
    let window = None;
    Setup {
        window,
        ..Setup::to(&server.url())
    }
    .start()
}

fn said(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

fn ask(proxy: &Proxy, model: &str, messages: &[Value], options: &Value) -> Answer {
    let body = json!({"model": model, "stream": false, "messages": messages, "options": options});
    let answer = proxy.post("/api/chat", "", body.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

fn reply(answer: &Answer) -> Value {
    let body: Value = serde_json::from_slice(&answer.body).expect("it is JSON");
    body["message"].clone()
}

#[test]
fn a_window_that_the_server_tells_later_counts_from_then_on() {
    let server = Server::start(Script::new());
    let proxy = proxy(&server);
    let asked = || {
        let all = server.requests();
        all.iter().filter(|seen| seen.path == "/api/ps").count()
    };
    // No model is loaded yet, so the server cannot report its window.
    let mut talk = vec![said("user", "hi")];
    let first = ask(&proxy, "m", &talk, &json!({}));
    talk.extend([reply(&first), said("user", "go on")]);
    assert_eq!(asked(), 1);
    // The model is loaded with a large window, and stays loaded.
    let large = json!({"num_ctx": 100_000});
    let load =
        json!({"model": "m", "messages": [said("user", "x")], "stream": false, "options": large});
    post(
        server.address(),
        "/api/chat",
        "",
        load.to_string().as_bytes(),
    );
    let until = Instant::now() + Duration::from_secs(60);
    let wait = |what: &str| {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(100));
    };
    // After a while the server is asked again, for the requests after that.
    let mut second = ask(&proxy, "m", &talk, &large);
    while asked() < 2 {
        wait("it is asked again");
        second = ask(&proxy, "m", &talk, &large);
    }
    assert_eq!(asked(), 2, "it is asked again, and once");
    let long = (0..40).flat_map(|turn| {
        let text = format!("{turn} {}", "word ".repeat(150));
        [said("user", &text), said("assistant", "yes")]
    });
    let long: Vec<Value> = long.chain([said("user", "and now?")]).collect();
    // Another conversation shows when the answer was read.
    for number in 0.. {
        let other: Vec<Value> = [
            said("user", &format!("number {number}")),
            said("assistant", "hi"),
        ]
        .into_iter()
        .chain(long.clone())
        .collect();
        let told = ask(&proxy, "m", &other, &json!({}));
        if told.header("x-infold-folds") == Some("0") {
            break;
        }
        wait("the answer is read");
    }
    // A conversation that is too long for the usual window of such a server is not folded.
    talk.push(reply(&second));
    talk.extend(long);
    let third = ask(&proxy, "m", &talk, &json!({}));
    assert_eq!(third.header("x-infold-folds"), Some("0"), "{}", third.head);
    assert_eq!(third.header("x-infold-task"), first.header("x-infold-task"));
}

#[test]
fn a_conversation_at_hand_goes_on_with_a_model_that_was_not_asked_for_before() {
    let server = Server::start(Script::new());
    let proxy = proxy(&server);
    let mut talk = vec![said("user", "hi")];
    let first = ask(&proxy, "m", &talk, &json!({}));
    talk.extend([reply(&first), said("user", "go on")]);
    let second = ask(&proxy, "another", &talk, &json!({}));
    let task = second.header("x-infold-task");
    assert!(task.is_some(), "it passed unrecorded: {}", second.head);
    assert_eq!(task, first.header("x-infold-task"));
}
