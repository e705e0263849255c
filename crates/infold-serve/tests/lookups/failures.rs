//! Failures after a look-up.

use std::io::{Read as _, Write as _};

use infold_testkit::{Answer, Gate, Model, Step};
use infold_translate::stream_reply;
use infold_wire::{StopReason, Wire};

use crate::blocks::{Block, numbered, reply};
use crate::client::{Client, Office, read};
use crate::front::{connect, head, place};

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
        // Nothing of the reply is recorded, and the conversation continues.
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

#[test]
fn text_before_a_look_up_flows_at_once() {
    let gate = Gate::closed();
    for wire in Wire::ALL {
        let office = Office::new();
        let client = Client::new(&office, wire, true, "this");
        let gate = gate.clone();
        let rounds = [lookup()];
        let said = reply(wire, 0, &numbered(0, &rounds[0]));
        let events = stream_reply(wire, &said, 40);
        let first = events
            .iter()
            .position(|event| String::from_utf8_lossy(event).contains("Let me see"));
        let first = first.expect("a text") + 1;
        office.next([Step::exact(said).in_pieces(40).gated(first, &gate)]);
        office.say(wire, &[vec![Block::Text("Here.".to_owned())]]);
        let (path, headers) = place(wire, true);
        let body = client.body();
        let address = office.proxy.address;
        let mut stream = connect(address);
        let head = head(address, path, headers, body.len());
        stream.write_all(head.as_bytes()).expect("it is taken");
        stream.write_all(&body).expect("it is taken");
        let mut got = Vec::new();
        let mut piece = [0; 4096];
        while !String::from_utf8_lossy(&got).contains("Let me see") {
            let count = stream.read(&mut piece).expect("more of it");
            assert!(count > 0, "{wire}: it waits for the text alone");
            got.extend_from_slice(&piece[..count]);
        }
        let text = String::from_utf8_lossy(&got).into_owned();
        assert!(!text.contains("Here."), "{wire}: the rest waits: {text}");
        drop(stream);
    }
    gate.open();
}

#[test]
fn a_list_of_chunks_stays_a_list() {
    let office = Office::new();
    let client = Client::new(&office, Wire::Gemini, true, "this");
    office.say(
        Wire::Gemini,
        &[lookup(), vec![Block::Text("Here it is.".to_owned())]],
    );
    let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent";
    let answer = office.proxy.post(path, "", &client.body());
    let chunks: serde_json::Value = serde_json::from_slice(&answer.body).expect("a list");
    let seen = read(Wire::Gemini, true, &answer.body);
    let text = String::from_utf8_lossy(&seen.messages[0]).into_owned();
    assert!(
        chunks.is_array() && text.contains("Let me see. Here it is."),
        "{text}"
    );
    assert!(!answer.text().contains("search_history"));
    office.is_accepted();
}

#[test]
fn a_provider_of_another_api_looks_things_up_too() {
    for (from, to) in [
        (Wire::Anthropic, Wire::Chat),
        (Wire::Chat, Wire::Gemini),
        (Wire::Responses, Wire::Anthropic),
    ] {
        let api = match to {
            Wire::Chat => "openai",
            other => other.name(),
        };
        let office = Office::translating(api);
        let mut client = Client::new(&office, from, true, "this");
        let calls = [
            ("search_history", r#"{"query":"nothing"}"#),
            ("run", r#"{"command":"ls"}"#),
        ];
        let answer = |text: &str, count: usize| {
            let calls = calls[..count].iter();
            Step::answer(Answer {
                text: Some(text.to_owned()),
                calls: calls
                    .map(|(name, given)| ((*name).to_owned(), (*given).to_owned()))
                    .collect(),
                ..Answer::default()
            })
        };
        office.next([answer("One. ", 1), answer("Two.", 2), answer("Three.", 0)]);
        let seen = client.turn();
        assert_eq!(seen.stop, StopReason::Calls, "{from} to {to}");
        client.turn();
        assert_eq!(office.calls().len(), 3, "{from} to {to}");
        assert!(office.calls().iter().all(|seen| seen.wire() == Some(to)));
        office.is_accepted();
    }
}

#[test]
fn what_is_looked_up_is_counted() {
    let office = Office::new();
    let client = Client::new(&office, Wire::Chat, true, "this");
    office.say(
        Wire::Chat,
        &[lookup(), vec![Block::Text("Here.".to_owned())]],
    );
    assert_eq!(
        client.post().header("x-infold-recall-tool"),
        Some("offered")
    );
    let metrics = office
        .proxy
        .ask("GET /metrics HTTP/1.1\nhost: 127.0.0.1:PORT")
        .text();
    assert!(
        metrics.contains("infold_recall_tool_calls_total 1"),
        "{metrics}"
    );
}
