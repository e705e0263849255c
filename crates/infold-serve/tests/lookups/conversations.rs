//! Whole conversations with look-ups, on every wire, to a provider that checks every rule.

use infold_wire::{Json, Wire};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::blocks::{Block, merged};
use crate::client::{Client, FACT, Office, read, word};
use crate::filter::{all_numbered, rounds};

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

fn lookup() -> Block {
    Block::Lookup(word(217))
}

fn call() -> Block {
    Block::Call("ls".to_owned())
}

#[test]
fn a_hidden_fact_is_looked_up_and_the_client_sees_only_the_answer() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            let office = Office::new();
            let mut client = Client::new(&office, wire, stream, "this");
            let rounds = [
                vec![
                    Block::Think("hm".to_owned()),
                    text("Let me see. "),
                    lookup(),
                ],
                vec![text("It is 15029.")],
            ];
            office.say(wire, &rounds);
            let body = client.body();
            let seen = client.turn();
            let expected = merged(wire, &all_numbered(&rounds));
            assert_eq!(seen.usage, expected.usage, "{wire} {stream}");
            assert_eq!(seen.stop, expected.stop, "{wire} {stream}");
            let calls = office.calls();
            assert_eq!(calls.len(), 2, "{wire} {stream}");
            assert!(!calls[0].text().contains(FACT), "{wire}: it is hidden");
            let second = calls[1].messages();
            let answer = second.last().expect("a message");
            assert!(answer.contains(FACT), "{wire} {stream}: {answer}");
            assert_eq!(second[..calls[0].messages().len()], calls[0].messages()[..]);

            // A retry repeats the bytes.
            office.say(wire, &rounds);
            let again = client.office.proxy.post(
                crate::front::place(wire, stream).0,
                crate::front::place(wire, stream).1,
                &body,
            );
            assert_eq!(read(wire, stream, &again.body).usage, seen.usage);
            let retried = office.calls();
            assert_eq!(retried[2].text(), calls[0].text(), "{wire} {stream}");
            let second = retried[3].messages();

            // The look-ups stay in their place, behind the same bytes.
            client.turn();
            let next = office.calls().last().expect("a call").messages();
            assert_eq!(next[..second.len()], second[..], "{wire} {stream}");
            office.is_accepted();
        }
    }
}

#[test]
fn a_look_up_beside_a_call_of_the_client_is_answered_with_its_results() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            let office = Office::new();
            let mut client = Client::new(&office, wire, stream, "this");
            let rounds = [vec![text("Both. "), call(), lookup(), call()]];
            office.say(wire, &rounds);
            let seen = client.turn();
            assert_eq!(seen.stop, infold_wire::StopReason::Calls, "{wire} {stream}");
            office.say(wire, &[vec![text("Done.")]]);
            client.turn();
            let calls = office.calls();
            assert_eq!(calls.len(), 2, "{wire} {stream}");
            let sent = calls[1].text();
            assert!(sent.contains(FACT), "{wire} {stream}: {sent}");
            client.turn();
            office.is_accepted();
        }
    }
}

#[test]
fn look_ups_end() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            let office = Office::new();
            let mut client = Client::new(&office, wire, stream, "this");
            let mut rounds = vec![vec![lookup()]; 4];
            rounds.push(vec![text("Enough.")]);
            office.say(wire, &rounds);
            client.turn();
            let calls = office.calls();
            assert_eq!(calls.len(), 5, "{wire} {stream}");
            let has_tool = |at: usize| {
                let json = calls[at].json().expect("JSON");
                let tools = json.get("tools").map(Json::bytes).unwrap_or_default();
                String::from_utf8_lossy(tools).contains("search_history")
            };
            assert!(has_tool(0) && has_tool(3), "{wire}");
            assert!(!has_tool(4), "{wire}: the last request offers none");
            client.turn();
            office.is_accepted();
        }
    }
}

#[test]
fn a_stored_response_goes_on_with_its_look_ups() {
    let wire = Wire::Responses;
    for stream in [false, true] {
        let office = Office::new();
        let mut client = Client::new(&office, wire, stream, "this");
        client.members = serde_json::json!({"store": true});
        office.say(wire, &[vec![lookup()], vec![text("It is 15029.")]]);
        let seen = client.turn();
        let id = seen.id.expect("it is stored");
        client.members = serde_json::json!({"store": true, "previous_response_id": id});
        client.messages.drain(..client.messages.len() - 1);
        client.turn();
        let calls = office.calls();
        let sent = calls.last().expect("a call").text();
        assert!(
            !sent.contains("previous_response_id"),
            "{stream}: it is sent in full"
        );
        assert!(sent.contains(FACT), "{stream}: {sent}");
        assert!(sent.contains("search_history"), "{stream}");
        office.is_accepted();
    }
}

#[test]
fn a_look_up_is_folded_away_with_its_round() {
    let office = Office::new();
    let mut client = Client::new(&office, Wire::Chat, true, "this");
    office.say(Wire::Chat, &[vec![lookup()], vec![text("It is 15029.")]]);
    client.turn();
    let last = |office: &Office| office.calls().last().expect("a call").text();
    client.turn();
    assert!(last(&office).contains(FACT));
    for turn in 0..30 {
        client.messages.pop();
        client.ask(&format!(
            "More {turn}: {}",
            "of the same as it was before ".repeat(60)
        ));
        client.turn();
    }
    assert!(
        !last(&office).contains("call_0x0"),
        "the call is gone with its result"
    );
    assert!(
        last(&office).contains("search_history"),
        "the tools are still offered"
    );
    office.is_accepted();
}

/// Random conversations: every request is accepted, every reply is the same as without look-ups, and each conversation
/// is one task.
#[test]
fn any_conversation_with_look_ups_is_one_that_the_provider_accepts() {
    let mut runner = TestRunner::deterministic();
    let turns = prop::collection::vec(rounds(), 4);
    let cases = std::env::var("LOOKUP_CASES").ok();
    let cases: usize = cases.and_then(|text| text.parse().ok()).unwrap_or(3);
    for wire in Wire::ALL {
        let office = Office::new();
        for case in 0..cases {
            let stream = case % 2 == 0;
            let mut client = Client::new(&office, wire, stream, &format!("number {case}"));
            for turn in turns.new_tree(&mut runner).expect("turns").current() {
                office.say(wire, &turn);
                let seen = client.turn();
                let expected = merged(wire, &all_numbered(&turn));
                assert_eq!(seen.usage, expected.usage, "{wire} {turn:?}");
                assert_eq!(seen.stop, expected.stop, "{wire} {turn:?}");
                let words = |reply: &infold_wire::Reply| {
                    let mut out = String::new();
                    for message in &reply.messages {
                        let message = infold_wire::Message::read(message).expect("a message");
                        infold_wire::append_plain_text(&message, &mut out);
                    }
                    // Texts that follow each other may be one.
                    out.replace('\n', "")
                };
                assert_eq!(words(&seen), words(&expected), "{wire} {turn:?}");
                office.is_accepted();
            }
        }
    }
}

#[test]
fn what_is_redacted_is_gone_from_look_ups_too() {
    let office = Office::new();
    let mut client = Client::new(&office, Wire::Anthropic, true, "this");
    office.say(
        Wire::Anthropic,
        &[vec![lookup()], vec![text("It is 15029.")]],
    );
    client.turn();
    let kept = || office.proxy.kept();
    assert!(kept().contains("\"type\":\"lookup\""));
    assert!(kept().contains(&word(217)));
    let task = client.task.clone().expect("a task");
    let body = serde_json::json!({"pattern": word(217)}).to_string();
    let path = format!("/infold/api/tasks/{task}/redact");
    let answer = office.proxy.post(&path, "", body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(!kept().contains(&word(217)), "nothing of it is left");
    client.turn();
    assert!(!kept().contains(&word(217)), "nor does it come back");
    let sent = office.calls().last().expect("a call").text();
    assert!(sent.contains("It is 15029."), "the reply stays");
    office.is_accepted();
}
