//! Bodies that are called by another type than theirs, end too early, or are refused after a look-up.

use infold_testkit::Step;
use infold_translate::{stream_reply, write_reply};
use infold_wire::{Reply, Wire};

use crate::blocks::{Block, numbered, reply};
use crate::client::{Client, FACT, Office, word};
use crate::front::Answer;

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

fn lookup() -> Block {
    Block::Lookup(word(217))
}

/// Returns all text of a reply.
fn words(reply: &Reply) -> String {
    let mut out = String::new();
    for message in &reply.messages {
        let message = infold_wire::Message::read(message).expect("a message");
        infold_wire::append_plain_text(&message, &mut out);
    }
    out.replace('\n', "")
}

fn written(wire: Wire, stream: bool, round: usize, blocks: &[Block]) -> Vec<u8> {
    let said = reply(wire, round, &numbered(round, blocks));
    if stream {
        stream_reply(wire, &said, 8).concat()
    } else {
        write_reply(wire, &said)
    }
}

fn type_of(wire: Wire, stream: bool) -> &'static str {
    match (stream, wire) {
        (false, _) => "application/json",
        (true, Wire::Ollama) => "application/x-ndjson",
        (true, _) => "text/event-stream",
    }
}

/// Checks that no part of a look-up is in an answer.
fn shows_no_lookup(answer: &Answer, context: &str) {
    let told = answer.text();
    let parts = ["\"tool_calls\"", "\"tool_use\"", "functionCall\""];
    for part in parts
        .into_iter()
        .chain(["\"function_call\"", "search", "_history"])
    {
        assert!(!told.contains(part), "{context}: `{part}` in {told}");
    }
    assert!(!told.contains(&word(217)), "{context}: {told}");
}

/// An answer says that something failed, and does not end as if nothing had.
fn tells_of_failure(answer: &Answer, context: &str) {
    let told = answer.text();
    assert!(told.contains("error"), "{context}: {told}");
    let ends = [
        "message_stop",
        "response.completed",
        "[DONE]",
        "\"done\":true",
        "\"finishReason\":\"STOP\"",
    ];
    for end in ends {
        assert!(!told.contains(end), "{context}: {told}");
    }
}

#[test]
fn one_body_is_known_by_what_it_holds_whatever_it_is_called() {
    for wire in Wire::ALL {
        for kind in ["text/event-stream", "application/x-ndjson"] {
            for before in ["", "\n ", "\u{feff}"] {
                let office = Office::new();
                let mut client = Client::new(&office, wire, false, "this");
                let rounds = [
                    vec![text("Let me see. "), lookup()],
                    vec![text("It is 15029.")],
                ];
                let steps = rounds.iter().enumerate().map(|(round, blocks)| {
                    let body = written(wire, false, round, blocks);
                    let body = [before.as_bytes(), &*body].concat();
                    Step::error(200, body).header("content-type", kind)
                });
                office.next(steps);
                let told = words(&client.turn());
                assert_eq!(told, "Let me see. It is 15029.", "{wire} {kind} {before:?}");
                client.turn();
                let sent = office.calls().last().expect("a call").text();
                assert!(sent.contains(FACT), "{wire} {kind} {before:?}: recorded");
                office.is_accepted();
            }
        }
    }
}

#[test]
fn a_look_up_beside_calls_of_the_client_is_stripped_whatever_the_body_is_called() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            for kind in ["text/event-stream", "application/json", "text/plain"] {
                let office = Office::new();
                let mut client = Client::new(&office, wire, stream, "this");
                let blocks = [text("Both. "), lookup(), Block::Call("ls".to_owned())];
                let body = written(wire, stream, 0, &blocks);
                office.next([Step::error(200, body).header("content-type", kind)]);
                let seen = client.turn();
                let context = format!("{wire} {stream} {kind}");
                assert_eq!(seen.stop, infold_wire::StopReason::Calls, "{context}");
                client.turn();
                let sent = office.calls().last().expect("a call").text();
                assert!(sent.contains(FACT), "{context}: {sent}");
                office.is_accepted();
            }
        }
    }
}

#[test]
fn rounds_that_come_in_two_forms_are_one_reply_in_the_first() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            let office = Office::new();
            let mut client = Client::new(&office, wire, stream, "this");
            let first = written(wire, stream, 0, &[text("Let me see. "), lookup()]);
            let second = written(wire, !stream, 1, &[text("It is 15029.")]);
            office.next([
                Step::error(200, first).header("content-type", type_of(wire, stream)),
                Step::error(200, second).header("content-type", type_of(wire, !stream)),
            ]);
            let told = words(&client.turn());
            assert_eq!(told, "Let me see. It is 15029.", "{wire} {stream}");
            client.turn();
            office.is_accepted();
        }
    }
}

#[test]
fn a_mark_before_a_later_round_is_left_out() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            let office = Office::new();
            let client = Client::new(&office, wire, stream, "this");
            let rounds = [
                vec![text("Let me see. "), lookup()],
                vec![text("It is 15029.")],
            ];
            let kind = type_of(wire, stream);
            let steps = rounds.iter().enumerate().map(|(round, blocks)| {
                let body = written(wire, stream, round, blocks);
                let body = ["\u{feff}".as_bytes(), &*body].concat();
                Step::error(200, body).header("content-type", kind)
            });
            office.next(steps);
            let told = client.post().text();
            assert!(told.contains("029."), "{wire} {stream}: {told}");
            let marks = told.matches('\u{feff}').count();
            assert!(
                marks <= 1 && !told[3..].contains('\u{feff}'),
                "{wire}: {told}"
            );
        }
    }
}

/// Lengths at which a body with a look-up may break off: from within its call to just before its end.
fn cuts(body: &[u8]) -> Vec<usize> {
    let text = String::from_utf8_lossy(body);
    let call = text.find("search_history").expect("a call");
    let end = text.trim_end().len();
    let step = ((end - call) / 5).max(1);
    let mut cuts: Vec<usize> = (call + 4..end).step_by(step).collect();
    cuts.push(call + "search_history".len() + 1);
    cuts
}

#[test]
fn a_body_that_ends_within_a_look_up_shows_nothing_of_it() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            let body = written(wire, stream, 0, &[text("Let me see. "), lookup()]);
            let office = Office::new();
            let mut client = Client::new(&office, wire, stream, "this");
            for cut in cuts(&body) {
                let context = format!("{wire} {stream} {cut} of {}", body.len());
                let kind = type_of(wire, stream);
                office.next([Step::error(200, &body[..cut]).header("content-type", kind)]);
                let calls = office.calls().len();
                let answer = client.post();
                // The end marker of a chat, and the bytes behind the end of other streams, are optional.
                if office.calls().len() > calls + 1 {
                    continue;
                }
                shows_no_lookup(&answer, &context);
                tells_of_failure(&answer, &context);
                if stream {
                    assert!(answer.text().contains("Let me"), "{context}");
                } else {
                    assert_eq!(answer.status, 502, "{context}: {}", answer.text());
                }
            }
            client.turn();
            office.is_accepted();
        }
    }
}

#[test]
fn a_list_of_chunks_that_ends_within_a_look_up_shows_nothing_of_it() {
    let wire = Wire::Gemini;
    let events = written(wire, true, 0, &[text("Let me see. "), lookup()]);
    let events = String::from_utf8(events).expect("text");
    let chunks = events.lines().filter_map(|it| it.strip_prefix("data: "));
    let list = format!("[{}]", chunks.collect::<Vec<_>>().join(",\r\n"));
    let office = Office::new();
    let client = Client::new(&office, wire, true, "this");
    for cut in cuts(list.as_bytes()) {
        office.next([Step::error(200, &list[..cut])]);
        let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent";
        let answer = office.proxy.post(path, "", &client.body());
        shows_no_lookup(&answer, &format!("{cut}"));
        assert_eq!(answer.status, 502, "{cut}: {}", answer.text());
    }
}

#[test]
fn an_event_that_cannot_be_read_does_not_reach_the_client() {
    for wire in Wire::ALL {
        let office = Office::new();
        let mut client = Client::new(&office, wire, true, "this");
        let body = written(wire, true, 0, &[text("Let me see. "), lookup()]);
        let body = String::from_utf8(body).expect("text");
        // The event with the name of the call ends within its JSON.
        let call = body.find("search_history").expect("a call") + "search_history".len();
        let rest = &body[call..];
        let end = rest.find('\n').expect("a line");
        let body = format!("{}{}", &body[..call], &rest[end..]);
        let kind = type_of(wire, true);
        office.next([Step::error(200, body.into_bytes()).header("content-type", kind)]);
        let answer = client.post();
        shows_no_lookup(&answer, wire.name());
        assert!(answer.text().contains("error"), "{wire}: {}", answer.text());
        client.turn();
    }
}

#[test]
fn a_body_without_look_ups_that_ends_too_early_passes_as_it_is() {
    for wire in Wire::ALL {
        let office = Office::new();
        let client = Client::new(&office, wire, true, "this");
        let said = reply(wire, 0, &numbered(0, &[text("It is so and no other way.")]));
        let mut events = stream_reply(wire, &said, 4);
        events.truncate(4);
        let body = events.concat();
        let kind = type_of(wire, true);
        office.next([Step::error(200, body.clone()).header("content-type", kind)]);
        assert_eq!(client.post().body, body, "{wire}");
    }
    // A body that is no reply at all, or one of another form, is not replaced either.
    for body in ["<html>try again</html>", r#"{"data":[],"object":"list"}"#] {
        let office = Office::new();
        let client = Client::new(&office, Wire::Chat, false, "this");
        office.next([Step::error(200, body)]);
        let answer = client.post();
        assert_eq!((answer.status, answer.text()), (200, body.to_owned()));
    }
}

#[test]
fn results_that_the_provider_refuses_do_not_cost_the_reply() {
    let refused = r#"{"error":{"message":"tool results are not supported","type":"invalid_request_error","code":400}}"#;
    for wire in Wire::ALL {
        for stream in [false, true] {
            for (own_tool, status) in [(true, 400), (false, 422), (true, 413)] {
                let office = Office::new();
                let mut client = Client::new(&office, wire, stream, "this");
                if !own_tool {
                    client.members = serde_json::json!({"tools": null});
                }
                let context = format!("{wire} {stream} {own_tool}");
                office.say(wire, &[vec![text("Let me see. "), lookup()]]);
                office.next([Step::error(status, refused)]);
                office.say(wire, &[vec![text("It is so.")]]);
                let seen = client.turn();
                assert_eq!(words(&seen), "Let me see. It is so.", "{context}");
                assert_eq!(seen.stop, infold_wire::StopReason::End, "{context}");
                let usage = seen.usage.expect("usage");
                assert_eq!(usage.output, 10 + 10, "{context}: of both replies");
                let calls = office.calls();
                assert_eq!(calls.len(), 3, "{context}");
                assert!(!calls[2].text().contains("search_history"), "{context}");
                assert_eq!(calls[2].messages(), calls[0].messages(), "{context}");
                // The refused tools are not offered again.
                client.turn();
                let sent = office.calls().last().expect("a call").text();
                assert!(!sent.contains("search_history"), "{context}: {sent}");
                assert!(sent.contains("It is so."), "{context}: {sent}");
                office.is_accepted();
            }
        }
    }
}

#[test]
fn a_provider_that_refuses_without_the_tools_too_is_heard() {
    let refused =
        r#"{"error":{"message":"not like this","type":"invalid_request_error","code":400}}"#;
    for wire in Wire::ALL {
        for stream in [false, true] {
            let office = Office::new();
            let client = Client::new(&office, wire, stream, "this");
            office.say(wire, &[vec![text("Let me see. "), lookup()]]);
            office.next(vec![Step::error(400, refused); 4]);
            let answer = client.post();
            let told = answer.text();
            assert!(told.contains("not like this"), "{wire} {stream}: {told}");
            assert_eq!(answer.status == 200, stream, "{wire}: {told}");
            shows_no_lookup(&answer, wire.name());
        }
    }
}
