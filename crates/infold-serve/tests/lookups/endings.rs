//! The ends of replies with look-ups: empty, with more look-ups, compressed, or with an error.

use infold_store::{Contexts, Durability};
use infold_testkit::Step;
use infold_translate::{stream_reply, write_reply};
use infold_wire::{Json, Reply, StopReason, Wire};

use crate::blocks::{Block, numbered, reply};
use crate::client::{Client, FACT, Office, read, word};
use crate::front::packed;

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
    out
}

/// Checks that the log shows only valid messages.
fn is_valid(client: &Client<'_>) {
    let directory = client.office.proxy.directory();
    let contexts = Contexts::new(directory.path(), Durability::Never);
    let task = client.task.as_deref().expect("a task");
    let problems = contexts.verify(task.parse().expect("an id"), None);
    let problems = problems.expect("checked");
    assert!(problems.is_empty(), "{}: {problems:?}", client.wire);
}

/// The events of a response are numbered from zero, up to the error that it ends with.
fn numbered_to_the_error(stream: &str) {
    let events = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<&str> = events.collect();
    let last = events.last().expect("an event");
    assert!(last.contains("\"type\":\"error\""), "{stream}");
    for (at, event) in events.iter().enumerate() {
        let json = Json::parse(event.as_bytes()).expect("JSON");
        let number = json.get("sequence_number").and_then(Json::number);
        assert_eq!(number, Some(at as f64), "{event}");
    }
}

#[test]
fn an_empty_last_reply_leaves_a_valid_view() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            for said in ["Let me see. ", ""] {
                let mut office = Office::new();
                let mut client = Client::new(&office, wire, stream, "this");
                let first = match said {
                    "" => vec![lookup()],
                    said => vec![text(said), lookup()],
                };
                office.say(wire, &[first, Vec::new()]);
                client.turn();
                assert_eq!(office.calls().len(), 2, "{wire} {stream}");
                if !said.is_empty() {
                    client.turn();
                }
                office.is_accepted();
                let task = client.task;
                // The proxy writes its pending records when it ends.
                office.restart("serve:\n  recall_tool: true\n");
                let mut client = Client::new(&office, wire, stream, "this");
                client.task = task;
                is_valid(&client);
            }
        }
    }
}

#[test]
fn a_model_that_does_not_stop_looking_things_up_is_answered_for() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            for said in ["Let me see. ", ""] {
                let office = Office::new();
                let mut client = Client::new(&office, wire, stream, "this");
                let round = match said {
                    "" => vec![lookup()],
                    said => vec![text(said), lookup()],
                };
                office.say(wire, &vec![round; 5]);
                let seen = client.turn();
                let told = words(&seen);
                assert!(
                    told.contains("look-ups are used up"),
                    "{wire} {stream}: {told}"
                );
                assert_eq!(told.contains(said), !told.is_empty(), "{wire}: {told}");
                assert_eq!(seen.stop, StopReason::End, "{wire} {stream}");
                let usage = seen.usage.expect("usage");
                assert_eq!(usage.output, 10 + 11 + 12 + 13 + 14, "{wire} {stream}");
                assert_eq!(office.calls().len(), 5, "{wire} {stream}");
                client.turn();
                let sent = office.calls().last().expect("a call").text();
                assert!(sent.contains("look-ups are used up"), "{wire} {stream}");
                office.is_accepted();
                is_valid(&client);
            }
        }
    }
}

#[test]
fn a_list_of_chunks_stays_a_list_when_look_ups_are_used_up() {
    let office = Office::new();
    let client = Client::new(&office, Wire::Gemini, true, "this");
    office.say(Wire::Gemini, &vec![vec![lookup()]; 5]);
    let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent";
    let answer = office.proxy.post(path, "", &client.body());
    let chunks: serde_json::Value = serde_json::from_slice(&answer.body).expect("a list");
    assert!(chunks.is_array(), "{chunks}");
    let seen = read(Wire::Gemini, true, &answer.body);
    assert!(words(&seen).contains("look-ups are used up"));
    office.is_accepted();
}

#[test]
fn a_compressed_reply_is_read_all_the_same() {
    let codings = packed(b"x").map(|(coding, _)| coding);
    for wire in Wire::ALL {
        for stream in [false, true] {
            for (at, coding) in codings.iter().enumerate() {
                let office = Office::new();
                let mut client = Client::new(&office, wire, stream, "this");
                let rounds = [
                    vec![text("Let me see. "), lookup()],
                    vec![text("It is 15029.")],
                ];
                let steps = rounds.iter().enumerate().map(|(round, blocks)| {
                    let said = reply(wire, round, &numbered(round, blocks));
                    let plain = if stream {
                        stream_reply(wire, &said, 8).concat()
                    } else {
                        write_reply(wire, &said)
                    };
                    let kind = match (stream, wire) {
                        (false, _) => "application/json",
                        (true, Wire::Ollama) => "application/x-ndjson",
                        (true, _) => "text/event-stream",
                    };
                    let (_, body) = packed(&plain).into_iter().nth(at).expect("a body");
                    Step::error(200, body)
                        .header("content-type", kind)
                        .header("content-encoding", coding)
                });
                office.next(steps);
                let seen = client.turn();
                let told = words(&seen).replace('\n', "");
                assert_eq!(told, "Let me see. It is 15029.", "{wire} {stream} {coding}");
                let calls = office.calls();
                assert_eq!(calls.len(), 2, "{wire} {stream} {coding}");
                for call in &calls {
                    assert_eq!(call.header("accept-encoding"), Some("identity"), "{wire}");
                }
                client.turn();
                let sent = office.calls().last().expect("a call").text();
                assert!(sent.contains(FACT), "{wire} {stream} {coding}: recorded");
                office.is_accepted();
            }
        }
    }
}

/// A reply as one body or as events, and the type that a server should give it.
fn written(wire: Wire, stream: bool, said: &Reply) -> (Vec<u8>, &'static str) {
    match (stream, wire) {
        (false, _) => (write_reply(wire, said), "application/json"),
        (true, Wire::Ollama) => (stream_reply(wire, said, 8).concat(), "application/x-ndjson"),
        (true, _) => (stream_reply(wire, said, 8).concat(), "text/event-stream"),
    }
}

#[test]
fn a_look_up_that_the_limit_of_tokens_cut_off_is_no_empty_reply() {
    for wire in Wire::ALL {
        for stream in [false, true] {
            let office = Office::new();
            let mut client = Client::new(&office, wire, stream, "this");
            let said = Reply {
                stop: StopReason::Length,
                ..reply(wire, 0, &numbered(0, &[lookup()]))
            };
            let (body, kind) = written(wire, stream, &said);
            office.next([Step::error(200, body).header("content-type", kind)]);
            let told = words(&client.turn());
            assert!(
                told.contains("reached its limit"),
                "{wire} {stream}: {told}"
            );
            client.turn();
            office.is_accepted();
            is_valid(&client);
        }
    }
}

#[test]
fn a_stream_is_known_by_what_it_holds_whatever_it_is_called() {
    for wire in Wire::ALL {
        for kind in ["text/plain", "application/json", "TEXT/EVENT-STREAM", ""] {
            if wire == Wire::Ollama && kind == "TEXT/EVENT-STREAM" {
                continue;
            }
            let office = Office::new();
            let client = Client::new(&office, wire, true, "this");
            let rounds = [
                vec![text("Let me see. "), lookup()],
                vec![text("It is 15029.")],
            ];
            let steps = rounds.iter().enumerate().map(|(round, blocks)| {
                let said = reply(wire, round, &numbered(round, blocks));
                let (body, _) = written(wire, true, &said);
                Step::error(200, body).header("content-type", kind)
            });
            office.next(steps);
            let answer = client.post();
            let told = answer.text();
            assert!(!told.contains("search_history"), "{wire} `{kind}`: {told}");
            let seen = words(&read(wire, true, &answer.body)).replace('\n', "");
            assert_eq!(seen, "Let me see. It is 15029.", "{wire} `{kind}`");
        }
    }
}

#[test]
fn a_call_whose_name_comes_late_or_in_pieces_is_held_back_too() {
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-0\",\"object\":\"chat.completion.chunk\",\"created\":0,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let names = [
        [r#"{"arguments":""}"#, r#"{"name":"search_history"}"#],
        [
            r#"{"name":"search_","arguments":""}"#,
            r#"{"name":"history"}"#,
        ],
    ];
    for [first, second] in names {
        let office = Office::new();
        let client = Client::new(&office, Wire::Chat, true, "this");
        let body = [
            chunk(r#"{"role":"assistant","content":"Let me see. "}"#, "null"),
            chunk(
                &format!(
                    r#"{{"tool_calls":[{{"index":0,"id":"c1","type":"function","function":{first}}}]}}"#
                ),
                "null",
            ),
            chunk(
                &format!(r#"{{"tool_calls":[{{"index":0,"function":{second}}}]}}"#),
                "null",
            ),
            chunk(
                r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"query\":\"x\"}"}}]}"#,
                "null",
            ),
            chunk("{}", "\"tool_calls\""),
            "data: [DONE]\n\n".to_owned(),
        ];
        let said = reply(Wire::Chat, 1, &numbered(1, &[text("Done.")]));
        let (last, kind) = written(Wire::Chat, true, &said);
        office.next([
            Step::error(200, body.concat().into_bytes()).header("content-type", kind),
            Step::error(200, last).header("content-type", kind),
        ]);
        let answer = client.post();
        let told = answer.text();
        assert!(!told.contains("tool_calls"), "{first}: {told}");
        assert_eq!(told.matches("[DONE]").count(), 1, "{first}: {told}");
        let seen = words(&read(Wire::Chat, true, &answer.body)).replace('\n', "");
        assert_eq!(seen, "Let me see. Done.", "{first}");
    }
}

#[test]
fn a_reply_in_an_unknown_coding_is_not_passed_on_unread() {
    let office = Office::new();
    let mut client = Client::new(&office, Wire::Chat, true, "this");
    let said = reply(Wire::Chat, 0, &numbered(0, &[lookup()]));
    let step = Step::error(200, stream_reply(Wire::Chat, &said, 8).concat())
        .header("content-type", "text/event-stream")
        .header("content-encoding", "rot13");
    office.next([step]);
    let answer = client.post();
    let told = answer.text();
    assert_eq!(answer.status, 502, "{told}");
    assert!(told.contains("rot13"), "{told}");
    assert!(!told.contains("search_history"), "{told}");
    // No tools are offered any more if replies cannot be read.
    client.turn();
    let sent = office.calls().last().expect("a call").text();
    assert!(!sent.contains("search_history"), "{sent}");
}

#[test]
fn a_later_error_of_a_response_has_the_next_number() {
    let office = Office::new();
    let client = Client::new(&office, Wire::Responses, true, "this");
    let failures = [
        Step::error(500, r#"{"error":{"message":"out of order today"}}"#),
        Step::empty(),
    ];
    for failure in failures {
        office.say(Wire::Responses, &[vec![text("Let me see. "), lookup()]]);
        office.next([failure]);
        numbered_to_the_error(&client.post().text());
    }
}

#[test]
fn a_provider_of_another_api_may_compress_and_fail_too() {
    for at in 0..packed(b"x").len() {
        let office = Office::translating("openai");
        let mut client = Client::new(&office, Wire::Anthropic, true, "this");
        let rounds = [
            vec![text("Let me see. "), lookup()],
            vec![text("It is 15029.")],
        ];
        let steps = rounds.iter().enumerate().map(|(round, blocks)| {
            let said = reply(Wire::Chat, round, &numbered(round, blocks));
            let plain = stream_reply(Wire::Chat, &said, 8).concat();
            let (coding, body) = packed(&plain).into_iter().nth(at).expect("a body");
            Step::error(200, body)
                .header("content-type", "text/event-stream")
                .header("content-encoding", coding)
        });
        office.next(steps);
        let told = words(&client.turn()).replace('\n', "");
        assert_eq!(told, "Let me see. It is 15029.", "{at}");
        office.is_accepted();
    }
    // A translated stream of Responses is numbered to its end, with a look-up before that or without.
    for lookups in 0..2 {
        let office = Office::translating("openai");
        let client = Client::new(&office, Wire::Responses, true, "this");
        office.say(
            Wire::Chat,
            &vec![vec![text("Let me see. "), lookup()]; lookups],
        );
        let said = reply(Wire::Chat, 0, &numbered(0, &[text("It is")]));
        let mut events = stream_reply(Wire::Chat, &said, 8);
        events.truncate(2);
        events.push(b"data: {\"error\":{\"message\":\"out of order today\"}}\n\n".to_vec());
        let step = Step::error(200, events.concat()).header("content-type", "text/event-stream");
        office.next([step]);
        let told = client.post().text();
        assert!(told.contains("It is"), "{told}");
        numbered_to_the_error(&told);
    }
}
