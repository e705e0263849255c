//! A reply that is written as a provider would write it reads as the same reply.

use infold_translate::{stream_reply, write_reply};
use infold_wire::reply::{Delivery, ReplyReader};
use infold_wire::{Json, Reply, StopReason, TokenUsage, Wire, quote};
use proptest::prelude::*;

fn read(wire: Wire, form: Delivery, bytes: &[Vec<u8>]) -> Reply {
    let mut reader = ReplyReader::new(wire, form);
    for bytes in bytes {
        reader.push(bytes, &mut |_| {}).expect("it is read");
    }
    let reply = reader.finish().expect("it is complete");
    assert_eq!(reply.id.is_some(), wire == Wire::Responses);
    Reply { id: None, ..reply }
}

/// Reads a reply back, whole and in pieces of this size.
fn check(wire: Wire, reply: &Reply, size: usize) {
    assert_eq!(
        &read(wire, Delivery::Whole, &[write_reply(wire, reply)]),
        reply,
        "{wire} whole"
    );
    let events = stream_reply(wire, reply, size);
    assert_eq!(
        &read(wire, Delivery::Stream, &events),
        reply,
        "{wire} in pieces of {size}"
    );
    let last = events.last().map_or(0, Vec::len);
    let (events, body) = (events.concat(), write_reply(wire, reply));
    let (read, at) = first_complete(wire, Delivery::Stream, &events).expect("it ends");
    assert_eq!(&read, reply, "{wire} at its mark");
    // Only end events may follow.
    assert!(events.len() - at < last, "{wire}");
    let (read, at) = first_complete(wire, Delivery::Whole, &body).expect("it ends");
    assert_eq!((&read, at), (reply, body.len()), "{wire} closed");
}

/// Returns the reply at the moment when the reader first reports it as complete.
fn first_complete(wire: Wire, form: Delivery, bytes: &[u8]) -> Option<(Reply, usize)> {
    let mut reader = ReplyReader::new(wire, form);
    for (at, byte) in bytes.iter().enumerate() {
        reader.push(&[*byte], &mut |_| {}).expect("it is read");
        if reader.is_complete() {
            assert!(reader.is_begun());
            let reply = reader.finish().expect("it is complete");
            return Some((Reply { id: None, ..reply }, at + 1));
        }
    }
    None
}

fn reply(wire: Wire, messages: &[String], stop: StopReason) -> Reply {
    Reply {
        messages: messages.iter().map(|it| it.clone().into_bytes()).collect(),
        stop,
        usage: Some(TokenUsage {
            input: 70,
            cache_read: 30,
            // Gemini does not report tokens written to its cache.
            cache_write: if wire == Wire::Gemini { 0 } else { 5 },
            output: 21,
            reasoning: 4,
        }),
        model: Some("some-model".to_owned()),
        id: None,
    }
}

/// A message that reasons, speaks and calls twice, in the form of a wire.
fn everything(wire: Wire, text: &str, thought: &str, given: &str) -> Vec<String> {
    let arguments = quote(given);
    match wire {
        Wire::Chat => vec![format!(
            r#"{{"role":"assistant","content":{text},"reasoning_content":{thought},"tool_calls":[{{"id":"c1","type":"function","function":{{"name":"ls","arguments":{arguments}}}}},{{"id":"c2","type":"function","function":{{"name":"pwd","arguments":"{{}}"}}}}]}}"#
        )],
        Wire::Responses => vec![
            format!(
                r#"{{"id":"rs_1","type":"reasoning","summary":[{{"type":"summary_text","text":{thought}}}],"encrypted_content":"abc"}}"#
            ),
            format!(
                r#"{{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","text":{text},"annotations":[]}}]}}"#
            ),
            format!(
                r#"{{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"ls","arguments":{arguments}}}"#
            ),
        ],
        Wire::Anthropic => vec![format!(
            r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":{thought},"signature":"c2ln"}},{{"type":"redacted_thinking","data":"xyz"}},{{"type":"text","text":{text},"citations":[{{"type":"char_location","cited_text":"a"}}]}},{{"type":"tool_use","id":"t1","name":"ls","input":{given}}},{{"type":"tool_use","id":"t2","name":"pwd","input":{{}}}}]}}"#
        )],
        Wire::Gemini => vec![format!(
            r#"{{"role":"model","parts":[{{"text":{thought},"thought":true}},{{"text":{text}}},{{"functionCall":{{"name":"ls","args":{given}}},"thoughtSignature":"c2ln"}}]}}"#
        )],
        Wire::Ollama => vec![format!(
            r#"{{"role":"assistant","content":{text},"thinking":{thought},"tool_calls":[{{"function":{{"name":"ls","arguments":{given}}}}}]}}"#
        )],
    }
}

fn plain(wire: Wire, text: &str) -> Vec<String> {
    vec![match wire {
        Wire::Chat | Wire::Ollama => format!(r#"{{"role":"assistant","content":{text}}}"#),
        Wire::Responses => format!(
            r#"{{"id":"msg_1","type":"message","status":"incomplete","role":"assistant","content":[{{"type":"output_text","text":{text},"annotations":[]}}]}}"#
        ),
        Wire::Anthropic => {
            format!(r#"{{"role":"assistant","content":[{{"type":"text","text":{text}}}]}}"#)
        }
        Wire::Gemini => format!(r#"{{"role":"model","parts":[{{"text":{text}}}]}}"#),
    }]
}

/// Removes the fields that a wire does not report.
fn told(wire: Wire, mut reply: Reply) -> Reply {
    if let (Wire::Ollama, Some(usage)) = (wire, &mut reply.usage) {
        *usage = TokenUsage {
            input: usage.sent(),
            output: usage.output,
            ..TokenUsage::default()
        };
    }
    reply
}

#[test]
fn every_stop_of_every_wire_comes_back() {
    for wire in Wire::ALL {
        for stop in [
            StopReason::End,
            StopReason::Length,
            StopReason::Declined,
            StopReason::Other("ODD".to_owned()),
        ] {
            // Only some wires have a word for it.
            if wire == Wire::Ollama && stop == StopReason::Declined {
                continue;
            }
            let reply = told(wire, reply(wire, &plain(wire, r#""Well""#), stop));
            check(wire, &reply, 2);
        }
    }
}

#[test]
fn what_is_not_a_character_survives() {
    let odd = r#""a\ud83d b \ud83d\ude80 \u0000 c\ude80""#;
    for wire in Wire::ALL {
        for size in 1..5 {
            check(
                wire,
                &told(
                    wire,
                    reply(wire, &everything(wire, odd, odd, "{}"), StopReason::Calls),
                ),
                size,
            );
        }
    }
}

#[test]
fn events_are_numbered_and_named_as_their_data_says() {
    let reply = reply(
        Wire::Responses,
        &everything(Wire::Responses, "\"a b\"", "\"t\"", "{}"),
        StopReason::Calls,
    );
    for (number, event) in stream_reply(Wire::Responses, &reply, 1).iter().enumerate() {
        let event = String::from_utf8_lossy(event);
        let (name, data) = event.trim_end().split_once("\ndata: ").unwrap();
        let data = Json::parse(data.as_bytes()).unwrap();
        assert!(
            data.get("type")
                .unwrap()
                .is(name.strip_prefix("event: ").unwrap())
        );
        assert_eq!(
            data.get("sequence_number").and_then(Json::number),
            Some(number as f64)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any text, reasoning and call, with any splits.
    #[test]
    fn reading_what_is_written_gives_what_it_was(
        text in ".{1,60}",
        thought in ".{1,60}",
        value in ".{0,40}",
        size in 1..40usize,
    ) {
        let given = format!(r#"{{"path":{},"n":[1.0,null]}}"#, quote(&value));
        for wire in Wire::ALL {
            let said = everything(wire, &quote(&text), &quote(&thought), &given);
            check(wire, &told(wire, reply(wire, &said, StopReason::Calls)), size);
        }
    }
}
