//! The official clients, through the proxy, on a provider that speaks another API.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use infold_testkit::{Answer, Script, Server, Step};
use infold_wire::Wire;
use serde_json::{Value, json};

use crate::common::Home;
use crate::{provider, python, run};

/// `infold serve`, until the test ends.
pub struct Serve(Child, pub String);

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn serve(home: &Home, upstream: &str) -> Serve {
    let mut command = home.command(&format!("serve --port 0 --json --upstream {upstream}"));
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("infold starts");
    let mut line = String::new();
    let read = BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line);
    read.expect("the ready line");
    let ready: Value = serde_json::from_str(&line).expect("JSON");
    let url = ready["listening"].as_str().expect("an address").to_owned();
    Serve(child, url)
}

#[test]
fn clients_talk_to_a_provider_of_another_api() {
    let python = python();
    for (client, end, to) in [
        ("anthropic", ["tool_use", "end_turn"], Wire::Chat),
        ("openai", ["tool_calls", "stop"], Wire::Anthropic),
        ("responses", ["completed", "completed"], Wire::Chat),
        ("gemini", ["STOP", "STOP"], Wire::Chat),
        ("ollama", ["stop", "stop"], Wire::Gemini),
    ] {
        let looks = Answer {
            text: Some("I look.".to_owned()),
            calls: vec![("ls".to_owned(), r#"{"path":"."}"#.to_owned())],
            ..Answer::default()
        };
        let steps = [
            Step::answer(looks),
            Step::say("One file."),
            Step::say("Good bye."),
        ];
        let server = Server::start(Script::steps(steps));
        let home = Home::new();
        let upstream = format!("{}+{}", provider(to), server.url());
        let serve = serve(&home, &upstream);
        let job = json!({"client": client, "url": serve.1});
        let found = run(&python, "relay_sdk.py", &job);
        let [calls, ends] = end;
        let mut expected = json!([
            ["I look.", calls, true],
            {"path": "."},
            ["One file.", ends, true],
            ["Good bye.", ends, true],
        ]);
        if client == "anthropic" {
            expected.as_array_mut().expect("a list").push(json!(true));
        }
        assert_eq!(found, expected, "{client}");
        let mut asked = server.requests();
        asked.retain(|seen| seen.wire().is_some());
        assert_eq!(asked.len(), 3, "{client}");
        assert!(asked.iter().all(|seen| seen.wire() == Some(to)), "{client}");
        drop(serve);
        let tasks = home.objects("task list");
        assert_eq!(tasks.len(), 1, "{client} is one conversation: {tasks:?}");
    }
}
