//! What fails after a look-up, and where others failed.

use infold_testkit::{Model, Step};
use infold_wire::Wire;

use crate::blocks::Block;
use crate::client::{Client, Office};

fn lookup() -> Vec<Block> {
    vec![
        Block::Text("Let me see. ".to_owned()),
        Block::Lookup("setting_217".to_owned()),
    ]
}

#[test]
fn an_error_after_a_look_up_is_the_providers_own() {
    let body = r#"{"error":{"message":"out of order today","type":"server_error","code":500}}"#;
    for wire in Wire::ALL {
        let office = Office::new();
        let client = Client::new(&office, wire, false, "this");
        office.say(wire, &[lookup()]);
        office.next([Step::error(500, body)]);
        let answer = client.post();
        assert_eq!(
            (answer.status, answer.text()),
            (500, body.to_owned()),
            "{wire}"
        );
        // Nothing of it is kept, and the conversation goes on.
        let mut client = client;
        client.turn();
        office.is_accepted();
    }
}

#[test]
fn a_stream_that_fails_after_a_look_up_says_so_and_does_not_end_well() {
    let failures = [
        Step::error(
            500,
            r#"{"error":{"message":"out of order today","type":"server_error"}}"#,
        ),
        Step::empty(),
        Step::say("cut off in the middle of it").cut_after_events(2),
    ];
    for wire in Wire::ALL {
        for (at, failure) in failures.iter().enumerate() {
            let office = Office::new();
            let client = Client::new(&office, wire, true, "this");
            office.say(wire, &[lookup()]);
            office.next([failure.clone()]);
            let answer = client.post();
            let text = answer.text();
            assert_eq!(answer.status, 200, "{wire}");
            assert!(
                text.contains("Let me"),
                "{wire} {at}: what came before is there: {text}"
            );
            let is_told = text.contains("error") || !answer.whole;
            assert!(is_told, "{wire} {at}: {text}");
            for end in [
                "message_stop",
                "response.completed",
                "[DONE]",
                "\"done\":true",
                "\"finishReason\":\"STOP\"",
            ] {
                assert!(!text.contains(end), "{wire} {at}: {text}");
            }
            let mut client = client;
            client.turn();
        }
    }
}

#[test]
fn a_model_that_takes_no_tools_is_asked_without_them() {
    let office = Office::with(Model::default(), "serve:\n  recall_tool: true\n");
    let refused = r#"{"error":"registry.ollama.ai/library/m does not support tools"}"#;
    let mut client = Client::new(&office, Wire::Ollama, true, "this");
    client.members = serde_json::json!({"tools": null});
    office.next([Step::error(400, refused)]);
    client.turn();
    client.turn();
    let calls = office.calls();
    let has_tools: Vec<bool> = calls
        .iter()
        .map(|seen| seen.text().contains("search_history"))
        .collect();
    assert_eq!(has_tools, [true, false, false]);
    let folded = calls[1].messages().len() < client.messages.len() - 4;
    assert!(folded, "only the tools are left out");
}
