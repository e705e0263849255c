//! The official clients under a policy for tools: they never see a call that was refused.

use infold_testkit::{Model, Script, Server};
use serde_json::json;

use crate::common::Home;
use crate::lookups::says;
use crate::relay::serve;
use crate::{python, run};

#[test]
fn clients_never_see_a_refused_call() {
    let python = python();
    for (client, end) in [
        ("anthropic", ["tool_use", "end_turn"]),
        ("openai", ["tool_calls", "stop"]),
        ("responses", ["completed", "completed"]),
        ("gemini", ["STOP", "STOP"]),
        ("ollama", ["stop", "stop"]),
    ] {
        let hidden = ("Bash", r#"{"path":"/"}"#);
        let wrong = ("ls", r#"{"path":7}"#);
        let list = ("ls", r#"{"path":"."}"#);
        let steps = [
            says("I look. ", &[hidden]),
            says("Once ", &[wrong]),
            says("more.", &[hidden, list]),
            says("One", &[hidden]),
            says(" file.", &[]),
            says("Good bye.", &[]),
        ];
        let server = Server::start(Script::steps(steps).model(Model::picky()));
        let home = Home::new();
        home.config("tools:\n  phase: planning\n  permissions: [search]\n");
        let serve = serve(&home, &server.url());
        let job = json!({"client": client, "url": serve.1, "tools": ["Bash"]});
        let found = run(&python, "relay_sdk.py", &job);
        let [calls, ends] = end;
        let mut expected = json!([
            ["I look. Once more.", calls, true],
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
        assert_eq!(asked.len(), 6, "{client}");
        let first = asked[0].text();
        assert!(!first.contains("Bash"), "{client}: {first}");
        // The refusal stays in all following requests.
        let told = |at: usize| {
            asked[at]
                .text()
                .matches("was refused and not executed")
                .count()
        };
        assert_eq!([0, 1, 2, 3, 4, 5].map(told), [0, 1, 2, 3, 4, 4], "{client}");
        drop(serve);
        let tasks = home.objects("task list");
        assert_eq!(tasks.len(), 1, "{client} is one conversation: {tasks:?}");
        let audit = home.objects("tools audit @");
        let of = |kind: &str| audit.iter().filter(|row| row["type"] == kind).count();
        assert_eq!(
            (of("tools_shown"), of("refusal")),
            (1, 4),
            "{client}: {audit:?}"
        );
    }
}
