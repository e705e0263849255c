//! Clients that send a reply back in another form: it is still the recorded one, with its look-ups.

use infold_testkit::{Answer, Step};
use infold_wire::Wire;
use serde_json::{Value, json};

use crate::blocks::Block;
use crate::client::{Client, FACT, Office, word};

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

fn lookup() -> Block {
    Block::Lookup(word(217))
}

/// The last request.
fn last(office: &Office) -> String {
    office.calls().last().expect("a call").text()
}

/// Joins adjacent texts of a reply of Responses from `from` on.
fn join_texts(messages: &mut Vec<Value>, from: usize, is_plain: bool) {
    let is_text = |item: &Value| item["type"] == "message";
    let texts: Vec<String> = messages[from..]
        .iter()
        .filter(|item| is_text(item))
        .map(|item| {
            item["content"][0]["text"]
                .as_str()
                .expect("a text")
                .to_owned()
        })
        .collect();
    assert!(texts.len() > 1, "{messages:?}");
    let first = messages[from..].iter().position(is_text).expect("a text") + from;
    let text = texts.concat();
    let joined = if is_plain {
        json!({"role": "assistant", "content": text})
    } else {
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
    };
    let mut at = 0;
    messages.retain(|item| {
        at += 1;
        at <= from || !is_text(item)
    });
    messages.insert(first, joined);
}

#[test]
fn a_response_whose_texts_come_back_as_one_has_its_look_ups() {
    let wire = Wire::Responses;
    for is_plain in [false, true] {
        for calls in [false, true] {
            let mut office = Office::new();
            let mut client = Client::new(&office, wire, true, "this");
            let mut end = vec![text("It is 15029.")];
            if calls {
                end.push(Block::Call("ls".to_owned()));
            }
            let thought = Block::Think("hm".to_owned());
            office.say(wire, &[vec![thought, text("Let me see. "), lookup()], end]);
            let from = client.messages.len();
            client.turn();
            join_texts(&mut client.messages, from, is_plain);
            let context = format!("{is_plain} {calls}");
            client.turn();
            assert!(last(&office).contains(FACT), "{context}: {}", last(&office));
            assert_eq!(
                last(&office).matches("It is 15029.").count(),
                1,
                "{context}"
            );
            // While the conversation continues, and when it is repeated from there.
            client.turn();
            assert!(last(&office).contains(FACT), "{context}");
            let (messages, task) = (client.messages.clone(), client.task.clone());
            office.is_accepted();
            office.restart("serve:\n  recall_tool: true\n");
            let mut client = Client::new(&office, wire, true, "this");
            (client.messages, client.task) = (messages, task);
            client.turn();
            assert!(last(&office).contains(FACT), "{context}: after a restart");
            office.is_accepted();
        }
    }
}

#[test]
fn a_reply_with_other_texts_is_another_one() {
    let wire = Wire::Responses;
    let office = Office::new();
    let mut client = Client::new(&office, wire, true, "this");
    office.say(
        wire,
        &[
            vec![text("Let me see. "), lookup()],
            vec![text("It is 15029.")],
        ],
    );
    let from = client.messages.len();
    client.turn();
    join_texts(&mut client.messages, from, true);
    client.messages[from]["content"] = "Let me see. It is 15028.".into();
    client.turn();
    let sent = last(&office);
    assert!(
        sent.contains("15028") && !sent.contains("It is 15029."),
        "{sent}"
    );
    assert!(!sent.contains(FACT), "{sent}");
    office.is_accepted();
}

#[test]
fn calls_of_another_api_that_come_back_without_ids_have_their_look_ups() {
    for api in ["openai", "responses", "anthropic", "gemini"] {
        for stream in [false, true] {
            let office = Office::translating(api);
            let mut client = Client::new(&office, Wire::Ollama, stream, "this");
            let calls = [
                ("search_history", json!({"query": word(217)})),
                ("run", json!({"command": "ls"})),
                ("run", json!({"command": "pwd"})),
            ];
            let answer = Answer {
                text: Some("Both. ".to_owned()),
                calls: calls
                    .map(|(name, given)| (name.to_owned(), given.to_string()))
                    .to_vec(),
                ..Answer::default()
            };
            office.next([Step::answer(answer)]);
            client.turn();
            let context = format!("{api} {stream}");
            let mut dropped = 0;
            for message in &mut client.messages {
                let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
                for call in calls.into_iter().flatten() {
                    let call = call.as_object_mut().expect("an object");
                    dropped += usize::from(call.remove("id").is_some());
                }
            }
            assert_eq!(dropped, 2, "{context}: it had ids");
            client.turn();
            assert!(last(&office).contains(FACT), "{context}: {}", last(&office));
            client.turn();
            assert!(last(&office).contains(FACT), "{context}");
            office.is_accepted();
        }
    }
}
