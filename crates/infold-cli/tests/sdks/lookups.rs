//! The official clients, while the model looks up folded messages: they see one reply without it.

use infold_testkit::{Answer, Model, Script, Server, Step};
use serde_json::{Value, json};

use crate::common::Home;
use crate::relay::serve;
use crate::{python, run};

/// A conversation that is too long for its window, with a value that no summary can hold.
fn opening() -> Vec<Value> {
    let row = |number: u32| format!("{} = {}", word(number), 7_000 + number * 37);
    let table: Vec<String> = (0..300).map(row).collect();
    let said = |role: &str, text: String| json!({"role": role, "content": text});
    let mut all = vec![
        said("user", "Let us talk.".to_owned()),
        said("assistant", "Gladly.".to_owned()),
        said("user", table.join("\n")),
    ];
    for turn in 0..36 {
        all.push(said(
            "assistant",
            format!("Answer {turn}: {}", "there is a lot to say ".repeat(40)),
        ));
        all.push(said(
            "user",
            format!("Question {turn}: {}", "tell me more about it ".repeat(14)),
        ));
    }
    all.push(said("assistant", "That is all.".to_owned()));
    all
}

/// A word that no other row has, nor a part of it.
fn word(number: u32) -> String {
    let mut rest = number * 48_271 + 4_000_000;
    let mut letters = Vec::new();
    while rest > 0 {
        letters.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    letters.into_iter().collect()
}

pub fn says(text: &str, calls: &[(&str, &str)]) -> Step {
    let calls = calls
        .iter()
        .map(|(name, given)| ((*name).to_owned(), (*given).to_owned()));
    Step::answer(Answer {
        text: Some(text.to_owned()),
        calls: calls.collect(),
        ..Answer::default()
    })
}

#[test]
fn clients_never_see_a_look_up() {
    let python = python();
    for (client, end) in [
        ("anthropic", ["tool_use", "end_turn"]),
        ("openai", ["tool_calls", "stop"]),
        ("responses", ["completed", "completed"]),
        ("gemini", ["STOP", "STOP"]),
        ("ollama", ["stop", "stop"]),
    ] {
        let query = json!({"query": word(217)}).to_string();
        let search = ("search_history", query.as_str());
        let list = ("ls", r#"{"path":"."}"#);
        let steps = [
            says("I look. ", &[search]),
            says("And there.", &[search, list]),
            says("One", &[search]),
            says(" file.", &[]),
            says("Good bye.", &[]),
        ];
        let server = Server::start(Script::steps(steps).model(Model::picky()));
        let home = Home::new();
        home.config("serve:\n  recall_tool: true\nsummarizer: extractive\nprofiles:\n  m:\n    window: 16000\n");
        let serve = serve(&home, &server.url());
        let job = json!({"client": client, "url": serve.1, "opening": opening()});
        let found = run(&python, "relay_sdk.py", &job);
        let [calls, ends] = end;
        let mut expected = json!([
            ["I look. And there.", calls, true],
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
        assert_eq!(asked.len(), 5, "{client}");
        // Beside the client's call, and in all that follows.
        let holds = |at: usize| asked[at].text().matches("= 15029").count();
        assert_eq!([0, 1, 2, 3, 4].map(holds), [0, 1, 2, 3, 3], "{client}");
        drop(serve);
        let tasks = home.objects("task list");
        assert_eq!(tasks.len(), 1, "{client} is one conversation: {tasks:?}");
    }
}
