//! The official clients while their task has a state: a command gives it one under way, and the provider gets it.

use infold_testkit::{Model, Script, Server, Step};
use serde_json::json;

use crate::common::Home;
use crate::lookups::says;
use crate::relay::serve;
use crate::{python, run};

const STATE: &str = "task:\n  goal: migrate the users table\nwork:\n  plan: [rehearse on a copy]\n";

#[test]
fn clients_talk_on_while_their_task_gets_a_state() {
    let python = python();
    for (client, end) in [
        ("anthropic", ["tool_use", "end_turn"]),
        ("openai", ["tool_calls", "stop"]),
        ("responses", ["completed", "completed"]),
        ("gemini", ["STOP", "STOP"]),
        ("ollama", ["stop", "stop"]),
    ] {
        let home = Home::new();
        home.config("layers:\n  inject: true\n");
        home.file("state.yaml", STATE);
        // The server has the task open, and waits for the first reply, when the command asks for it.
        let mut load = home.command("state @ load state.yaml");
        let mut count = 0;
        let script = Script::decide(move |_| {
            count += 1;
            match count {
                1 => {
                    let output = load.output().expect("infold runs");
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    if output.status.success() {
                        says("I look.", &[("ls", r#"{"path":"."}"#)])
                    } else {
                        Step::say(said)
                    }
                }
                2 => Step::say("One file."),
                _ => Step::say("Good bye."),
            }
        });
        let server = Server::start(script.model(Model::picky()));
        let serve = serve(&home, &server.url());
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
        let refused = server.take_refusals();
        assert!(refused.is_empty(), "{client}: {refused:?}");
        let mut asked = server.requests();
        asked.retain(|seen| seen.wire().is_some());
        assert_eq!(asked.len(), 3, "{client}");
        for text in ["migrate", "rehearse"] {
            let held = asked.iter().map(|it| it.text().matches(text).count());
            assert_eq!(held.collect::<Vec<_>>(), [0, 1, 1], "{client}: {text}");
        }
        let (before, after) = (asked[1].messages(), asked[2].messages());
        assert_eq!(after[..before.len()], before[..], "{client}");
        drop(serve);
        let tasks = home.objects("task list");
        assert_eq!(tasks.len(), 1, "{client} is one conversation: {tasks:?}");
    }
}
