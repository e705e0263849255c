//! The layered state of a task in the requests that pass.

use infold_log::EventId;
use infold_store::{Contexts, Durability, What};
use infold_testkit::{Model, Seen, Step};
use infold_wire::{Json, Wire};
use serde_json::{Value, json};

use crate::blocks::Block;
use crate::client::{Client, Office};
use crate::front::Answer;

const INJECT: &str = "layers:\n  inject: true\n";

fn office() -> Office {
    Office::with(Model::picky(), INJECT)
}

fn every_way(mut test: impl FnMut(Wire, bool)) {
    for wire in Wire::ALL {
        for stream in [false, true] {
            test(wire, stream);
        }
    }
}

/// A client with a system prompt that asks its first question.
fn client<'o>(office: &'o Office, wire: Wire, stream: bool) -> Client<'o> {
    let mut client = without_prompt(office, wire, stream);
    let prompt = "Be brief.";
    match wire {
        Wire::Chat | Wire::Ollama => {
            let prompt = json!({"role": "system", "content": prompt});
            client.messages.insert(0, prompt);
        }
        Wire::Responses => client.members["instructions"] = prompt.into(),
        Wire::Anthropic => client.members["system"] = prompt.into(),
        Wire::Gemini => {
            client.members["systemInstruction"] = json!({"parts": [{"text": prompt}]});
        }
    }
    client
}

fn without_prompt<'o>(office: &'o Office, wire: Wire, stream: bool) -> Client<'o> {
    let mut client = Client {
        office,
        wire,
        stream,
        messages: Vec::new(),
        members: json!({}),
        task: None,
    };
    client.ask("What is to be done?");
    client
}

fn step(client: &Client<'_>, step: &Value) -> Answer {
    let task = client.task.as_ref().expect("a task");
    let path = format!("/infold/api/tasks/{task}/steps");
    let answer = client
        .office
        .proxy
        .post(&path, "", step.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

/// Gives the task of a client a goal and a plan.
fn set(client: &Client<'_>, plan: &str) {
    let changes = json!([
        {"op": "set", "field": "goal", "items": ["migrate the users table"]},
        {"op": "set", "field": "plan", "items": [plan]},
    ]);
    step(client, &json!({"step": "state", "changes": changes}));
}

fn last(office: &Office) -> Seen {
    office.calls().pop().expect("a call")
}

/// Returns the system prompt of a request as the provider reads it.
fn prompt(wire: Wire, seen: &Seen) -> String {
    let json = seen.json().expect("JSON");
    let member = match wire {
        Wire::Chat | Wire::Ollama => return seen.messages().first().cloned().unwrap_or_default(),
        Wire::Responses => "instructions",
        Wire::Anthropic => "system",
        Wire::Gemini => "systemInstruction",
    };
    let bytes = json.get(member).map(Json::bytes).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn last_message(seen: &Seen) -> String {
    seen.messages().last().cloned().unwrap_or_default()
}

/// Returns a request without the injected texts.
fn without_contexts(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(start) = text.find("<context>") {
        let tail = r"</context>\n";
        let end = text[start..].find(tail).expect("an end") + start + tail.len();
        let start = match text[..start].strip_suffix(r"\n\n") {
            Some(before) => before.len(),
            None => start,
        };
        text.replace_range(start..end, "");
    }
    text.replace(r#",{"text":""}"#, "")
        .replace(r#",{"type":"text","text":""}"#, "")
}

/// The texts of the state that the log of a conversation shows, or showed.
fn recorded(client: &Client<'_>) -> Vec<String> {
    let task = client.task.as_ref().expect("a task").parse();
    let contexts = client.office.proxy.conversations.contexts();
    let log = contexts.read(task.expect("an id")).expect("a log");
    let ids = (1..=log.state().at().event).filter_map(EventId::new);
    let texts = ids.filter_map(|id| match log.event(id).expect("an event").what {
        What::Recall(recall) if recall.source.is_none() => Some(recall.text),
        _ => None,
    });
    texts.collect()
}

#[test]
fn both_parts_stand_in_the_request_and_all_else_is_as_it_came() {
    every_way(|wire, stream| {
        let office = office();
        let mut client = client(&office, wire, stream);
        let own = client.body();
        let answer = client.post();
        assert_eq!(answer.header("x-infold-layers"), Some("0"), "{wire}");
        assert_eq!(office.calls()[0].body, Some(own), "{wire}: no state yet");
        client.turn();
        set(&client, "rehearse on a copy");
        let own = String::from_utf8(client.body()).expect("text");
        client.turn();
        let seen = last(&office);
        let prompt = prompt(wire, &seen);
        assert!(
            prompt.contains("Be brief.") && prompt.contains("<goal>migrate the users table</goal>"),
            "{wire} {prompt}"
        );
        assert!(!prompt.contains("rehearse"), "{wire} {prompt}");
        let end = last_message(&seen);
        assert!(
            end.contains("And then?") && end.contains(">rehearse on a copy</step>"),
            "{wire} {end}"
        );
        assert!(!end.contains("migrate"), "{wire} {end}");
        assert_eq!(without_contexts(&seen.text()), own, "{wire} {stream}");
        assert_eq!(recorded(&client).len(), 1, "{wire}");
        office.is_accepted();
    });
}

#[test]
fn what_did_not_change_is_not_repeated_and_the_prefix_stays() {
    every_way(|wire, stream| {
        let office = office();
        let mut client = client(&office, wire, stream);
        client.turn();
        set(&client, "rehearse on a copy");
        client.turn();
        let first = last(&office);
        // An answer, and a call with a result.
        office.say(wire, &[vec![Block::Text("Well.".to_owned())]]);
        client.turn();
        office.say(wire, &[vec![Block::Call("ls".to_owned())]]);
        client.turn();
        client.turn();
        let second = last(&office);
        let (before, after) = (first.messages(), second.messages());
        assert_eq!(after[..before.len()], before[..], "{wire} {stream}");
        assert_eq!(prompt(wire, &first), prompt(wire, &second), "{wire}");
        assert_eq!(second.text().matches("rehearse").count(), 1, "{wire}");
        // One change adds one text at the end.
        set(&client, "write the migration");
        client.turn();
        let third = last(&office);
        let (before, after) = (second.messages(), third.messages());
        assert_eq!(after[..before.len()], before[..], "{wire} {stream}");
        assert!(last_message(&third).contains("write the migration"));
        assert_eq!(third.text().matches("<work_buffer>").count(), 2, "{wire}");
        assert_eq!(recorded(&client).len(), 2, "{wire}");
        // An undone plan is no longer shown: the one before is shown again.
        step(&client, &json!({"step": "undo"}));
        client.turn();
        assert!(last_message(&last(&office)).contains("rehearse"), "{wire}");
        step(&client, &json!({"step": "undo"}));
        client.turn();
        let fifth = last(&office);
        assert!(
            last_message(&fifth).contains(r"<context>\n</context>\n"),
            "{wire}"
        );
        assert!(!prompt(wire, &fifth).contains("migrate"), "{wire}");
        client.turn();
        assert_eq!(recorded(&client).len(), 4, "{wire}: it is said once");
        office.is_accepted();
    });
}

#[test]
fn a_result_of_a_tool_carries_it() {
    every_way(|wire, stream| {
        let office = office();
        let mut client = client(&office, wire, stream);
        office.say(wire, &[vec![Block::Call("ls".to_owned())]]);
        client.turn();
        set(&client, "rehearse on a copy");
        let own = String::from_utf8(client.body()).expect("text");
        client.turn();
        let seen = last(&office);
        let end = last_message(&seen);
        assert!(
            end.contains("rehearse") && end.contains("ran "),
            "{wire} {end}"
        );
        assert_eq!(without_contexts(&seen.text()), own, "{wire}");
        office.is_accepted();
    });
}

#[test]
fn a_retry_has_the_same_bytes() {
    every_way(|wire, stream| {
        let office = office();
        let mut client = client(&office, wire, stream);
        client.turn();
        set(&client, "rehearse on a copy");
        // The reply is recorded, and the client asks the same again; then the provider fails, and it asks once more.
        client.post();
        let sent = last(&office);
        assert!(last_message(&sent).contains("rehearse"), "{wire}");
        office.say(wire, &[vec![Block::Text("Otherwise.".to_owned())]]);
        client.post();
        assert_eq!(last(&office).body, sent.body, "{wire} {stream}");
        office.next([Step::error(500, "{}")]);
        client.post();
        assert_eq!(last(&office).body, sent.body, "{wire} {stream}");
        client.turn();
        assert_eq!(last(&office).body, sent.body, "{wire} {stream}");
        client.turn();
        assert_eq!(
            last(&office).text().matches("rehearse").count(),
            1,
            "{wire}"
        );
        let (before, after) = (sent.messages(), last(&office).messages());
        assert_eq!(after[..before.len()], before[..], "{wire} {stream}");
        office.is_accepted();
    });
}

#[test]
fn without_a_system_prompt_it_is_one() {
    every_way(|wire, stream| {
        let office = office();
        let mut client = without_prompt(&office, wire, stream);
        client.turn();
        set(&client, "rehearse on a copy");
        client.turn();
        let seen = last(&office);
        let prompt = prompt(wire, &seen);
        assert!(prompt.contains("migrate"), "{wire} {}", seen.text());
        assert!(last_message(&seen).contains("rehearse"), "{wire}");
        client.turn();
        assert_eq!(self::prompt(wire, &last(&office)), prompt, "{wire}");
        office.is_accepted();
    });
}

#[test]
fn a_fold_hides_it_with_its_round_and_it_is_shown_again() {
    every_way(|wire, stream| {
        let office = office();
        let mut client = client(&office, wire, stream);
        client.turn();
        set(&client, "rehearse on a copy");
        client.turn();
        let is_folded = (0..60).any(|turn| {
            client.messages.pop();
            client.ask(&format!(
                "Question {turn}: {}",
                "tell me more about it ".repeat(60)
            ));
            let count = client.messages.len();
            client.turn();
            last(&office).messages().len() < count
        });
        assert!(is_folded, "{wire}");
        let seen = last(&office);
        assert_eq!(
            seen.text().matches("</work_buffer>").count(),
            1,
            "{wire} {}",
            seen.text()
        );
        assert!(last_message(&seen).contains("rehearse"), "{wire}");
        assert!(prompt(wire, &seen).contains("migrate"), "{wire}");
        assert_eq!(recorded(&client).len(), 2, "{wire}");
        let before = seen.messages();
        let answer = client.post();
        let sent = last(&office);
        assert_eq!(
            sent.messages()[..before.len()],
            before[..],
            "{wire} {stream}"
        );
        let tokens = answer.header("x-infold-layers").expect("a header");
        assert!(tokens.parse::<u64>().expect("a number") > 20, "{tokens}");
        // A retry of a folded request, too, has the same bytes.
        client.post();
        assert_eq!(last(&office).body, sent.body, "{wire} {stream}");
        office.is_accepted();
    });
}

#[test]
fn a_client_that_goes_back_keeps_the_state() {
    every_way(|wire, stream| {
        let office = office();
        let mut client = client(&office, wire, stream);
        let first = client.messages.clone();
        client.turn();
        client.turn();
        let all = client.messages.clone();
        set(&client, "rehearse on a copy");
        // The client repeats its first question, and continues from another answer.
        client.messages = first.clone();
        office.say(wire, &[vec![Block::Text("Otherwise.".to_owned())]]);
        let answer = client.post();
        client.task = answer.header("x-infold-task").map(str::to_owned);
        assert!(prompt(wire, &last(&office)).contains("migrate"), "{wire}");
        let reply = crate::client::read(wire, stream, &answer.body);
        for message in &reply.messages {
            let message = serde_json::from_slice(message).expect("JSON");
            client.messages.push(message);
        }
        client.ask("Why?");
        client.task = None;
        client.turn();
        let seen = last(&office);
        assert!(prompt(wire, &seen).contains("migrate"), "{wire} {stream}");
        assert!(last_message(&seen).contains("rehearse"), "{wire} {stream}");
        // The other branch has it, too.
        client.messages = all;
        client.task = None;
        client.turn();
        let seen = last(&office);
        assert!(prompt(wire, &seen).contains("migrate"), "{wire} {stream}");
        assert!(last_message(&seen).contains("rehearse"), "{wire} {stream}");
        office.is_accepted();
    });
}

#[test]
fn blocks_and_their_marks_stay_where_they_are() {
    let office = office();
    let mut client = without_prompt(&office, Wire::Anthropic, true);
    let mark = json!({"type": "ephemeral"});
    client.members["system"] = json!([
        {"type": "text", "text": "You are an agent."},
        {"type": "text", "text": "Be brief.", "cache_control": mark},
    ]);
    let marked = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text, "cache_control": mark}]});
    client.messages[0] = marked("What is to be done?");
    client.turn();
    set(&client, "rehearse on a copy");
    client.messages.pop();
    client.messages.push(marked("And then?"));
    let own = String::from_utf8(client.body()).expect("text");
    client.turn();
    let seen = last(&office);
    assert_eq!(without_contexts(&seen.text()), own);
    let system: Value = serde_json::from_str(&prompt(Wire::Anthropic, &seen)).expect("JSON");
    assert_eq!(system.as_array().map(Vec::len), Some(3), "{system}");
    assert!(system[2].get("cache_control").is_none(), "{system}");
    let end: Value = serde_json::from_str(&last_message(&seen)).expect("JSON");
    assert_eq!(end["content"].as_array().map(Vec::len), Some(2), "{end}");
    office.is_accepted();
}

#[test]
fn nothing_follows_a_prefill() {
    let office = Office::with(Model::default(), INJECT);
    let mut client = client(&office, Wire::Anthropic, false);
    client.turn();
    set(&client, "rehearse on a copy");
    client
        .messages
        .push(json!({"role": "assistant", "content": "I will"}));
    client.post();
    let seen = last(&office);
    assert!(prompt(Wire::Anthropic, &seen).contains("migrate"));
    assert!(!seen.text().contains("rehearse"), "{}", seen.text());
    office.is_accepted();
}

#[test]
fn a_stored_conversation_stays_stored() {
    for stream in [false, true] {
        let office = office();
        let mut client = without_prompt(&office, Wire::Responses, stream);
        client.members["store"] = true.into();
        office.say(Wire::Responses, &[vec![Block::Text("Well.".to_owned())]]);
        let reply = client.turn();
        set(&client, "rehearse on a copy");
        let ask = |client: &mut Client<'_>, id: Option<&String>, input: Value| {
            client.members["previous_response_id"] =
                id.map_or(Value::Null, |id| id.as_str().into());
            let mut body: Value = serde_json::from_slice(&client.body()).expect("JSON");
            body["input"] = input;
            let answer = office
                .proxy
                .post("/v1/responses", "", body.to_string().as_bytes());
            assert_eq!(answer.status, 200, "{}", answer.text());
            crate::client::read(Wire::Responses, stream, &answer.body)
        };
        office.say(Wire::Responses, &[vec![Block::Text("Yes.".to_owned())]]);
        let reply = ask(&mut client, reply.id.as_ref(), json!("And then?"));
        let seen = last(&office).text();
        assert!(seen.contains("previous_response_id"), "{seen}");
        assert!(
            seen.contains(r#""input":"And then?\n\n<context>"#),
            "{seen}"
        );
        assert!(seen.contains("migrate"), "{seen}");
        // The provider stores the shown context, which is not repeated.
        office.say(Wire::Responses, &[vec![Block::Text("No.".to_owned())]]);
        let next = json!([{"role": "user", "content": "Go on."}]);
        ask(&mut client, reply.id.as_ref(), next);
        let seen = last(&office).text();
        assert!(seen.contains("previous_response_id"), "{seen}");
        assert!(!seen.contains("rehearse"), "{seen}");
        assert!(seen.contains("migrate"), "{seen}");
        assert_eq!(recorded(&client).len(), 1);
    }
}

#[test]
fn instructions_that_a_provider_checks_are_left_alone() {
    let office = office();
    let mut client = client(&office, Wire::Responses, true);
    let developer = json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Ask first."}]});
    client.messages.insert(0, developer);
    client.turn();
    set(&client, "rehearse on a copy");
    client.turn();
    let seen = last(&office);
    assert_eq!(prompt(Wire::Responses, &seen), r#""Be brief.""#);
    let first = &seen.messages()[0];
    assert!(
        first.contains("Ask first.") && first.contains("migrate"),
        "{first}"
    );
    office.is_accepted();
}

#[test]
fn with_a_cached_content_all_of_it_stands_at_the_end() {
    let office = Office::with(Model::default(), INJECT);
    let mut client = without_prompt(&office, Wire::Gemini, false);
    client.members["tools"] = Value::Null;
    client.members["cachedContent"] = "cachedContents/1".into();
    client.turn();
    set(&client, "rehearse on a copy");
    client.turn();
    let seen = last(&office);
    assert_eq!(prompt(Wire::Gemini, &seen), "");
    let end = last_message(&seen);
    assert!(end.contains("rehearse") && end.contains("migrate"), "{end}");
}

#[test]
fn a_provider_of_another_wire_gets_it_too() {
    for (api, wires) in [
        ("anthropic", [Wire::Chat, Wire::Gemini]),
        ("openai", [Wire::Anthropic, Wire::Responses]),
    ] {
        for wire in wires {
            let model = Model {
                alternate: false,
                ..Model::default()
            };
            let office = Office::to(model, INJECT, &format!("{api}+"));
            let mut client = client(&office, wire, true);
            office.next([Step::call("run", r#"{"command":"ls"}"#)]);
            client.turn();
            set(&client, "rehearse on a copy");
            let count = client.messages.len();
            client.turn();
            let seen = last(&office);
            let to = seen.wire().expect("a wire");
            assert_ne!(to, wire);
            assert!(prompt(to, &seen).contains("migrate"), "{wire} {api}");
            let end = last_message(&seen);
            assert!(
                end.contains("rehearse") && end.contains("ran "),
                "{wire} {api}: {count} {end}"
            );
            client.turn();
            let (before, after) = (seen.messages(), last(&office).messages());
            assert_eq!(after[..before.len()], before[..], "{wire} {api}");
            office.is_accepted();
        }
    }
}

#[test]
fn look_ups_and_a_policy_work_beside_it() {
    every_way(|wire, stream| {
        let config =
            format!("{INJECT}serve:\n  recall_tool: true\ntools:\n  permissions: [read]\n");
        let office = Office::with(Model::picky(), &config);
        let mut client = Client::new(&office, wire, stream, "the settings");
        client.turn();
        set(&client, "rehearse on a copy");
        office.say(
            wire,
            &[
                vec![Block::Lookup(crate::client::word(217))],
                vec![
                    Block::Text("So. ".to_owned()),
                    Block::Tool("Bash", r#"{"command":"ls"}"#.to_owned()),
                ],
                vec![Block::Text("Done.".to_owned())],
            ],
        );
        client.turn();
        let seen = last(&office);
        assert!(seen.text().contains("rehearse"), "{wire} {}", seen.text());
        assert!(seen.text().contains("migrate"), "{wire}");
        assert!(
            seen.text().contains("The call of `Bash` was refused"),
            "{wire}"
        );
        let before = seen.messages();
        client.turn();
        let seen = last(&office);
        assert_eq!(
            seen.messages()[..before.len()],
            before[..],
            "{wire} {stream}"
        );
        assert_eq!(seen.text().matches("rehearse").count(), 1, "{wire}");
        office.is_accepted();
    });
}

#[test]
fn a_state_that_does_not_fit_is_not_shown_and_the_request_goes_on() {
    let office = Office::with(Model::picky(), "layers:\n  inject: true\n  max_tokens: 5\n");
    let mut client = client(&office, Wire::Chat, false);
    client.turn();
    set(&client, "rehearse on a copy");
    let own = client.body();
    client.turn();
    assert_eq!(last(&office).body, Some(own));
}

#[test]
fn without_the_setting_nothing_is_shown() {
    let office = Office::with(Model::picky(), "");
    let mut client = client(&office, Wire::Anthropic, false);
    client.turn();
    set(&client, "rehearse on a copy");
    let own = client.body();
    let answer = client.post();
    assert_eq!(answer.header("x-infold-layers"), None);
    assert_eq!(last(&office).body, Some(own));
}

#[test]
fn what_cannot_be_recorded_is_not_inserted() {
    for wire in [Wire::Chat, Wire::Anthropic] {
        let office = office();
        let mut client = client(&office, wire, false);
        client.turn();
        set(&client, "rehearse on a copy");
        client.turn();
        let before = last(&office).messages();
        set(&client, "write the migration");
        // Another process has the task, and keeps it.
        let task = client.task.as_ref().expect("a task").parse();
        let task = task.expect("an id");
        office.proxy.conversations.release(task);
        let contexts = Contexts::new(office.proxy.directory().path(), Durability::Never);
        let writer = contexts.write(task).expect("a writer");
        let answer = client.post();
        assert_eq!(answer.status, 200, "{wire} {}", answer.text());
        assert_eq!(answer.header("x-infold-task"), None, "{wire}: unrecorded");
        let seen = last(&office);
        assert!(!seen.text().contains("write the migration"), "{wire}");
        assert!(prompt(wire, &seen).contains("migrate"), "{wire}");
        assert_eq!(seen.messages()[..before.len()], before[..], "{wire}");
        drop(writer);
        client.turn();
        let seen = last(&office);
        assert!(
            last_message(&seen).contains("write the migration"),
            "{wire}"
        );
        office.is_accepted();
    }
}

#[test]
fn room_is_kept_for_a_state_that_changes_with_every_request() {
    const THRESHOLD_TOKENS: u64 = 9_600;
    // Counting is not exact to the token.
    const SLACK_TOKENS: u64 = 100;
    let config = format!("{INJECT}context_storage:\n  compression_threshold: 0.6\n");
    let office = Office::with(Model::picky(), &config);
    let mut client = client(&office, Wire::Chat, false);
    client.turn();
    let mut folds = 0;
    for turn in 0..40 {
        set(
            &client,
            &format!("{turn} {}", "rehearse it on a copy ".repeat(200)),
        );
        client.messages.pop();
        client.ask(&format!("{turn} {}", "tell me more ".repeat(60)));
        let answer = client.post();
        let header = |name: &str| {
            let value = answer.header(name).expect("a header");
            value.parse::<u64>().expect("a number")
        };
        let (after, layers) = (header("x-infold-tokens-after"), header("x-infold-layers"));
        assert!((1_000..1_600).contains(&layers), "{layers}");
        assert!(
            after <= THRESHOLD_TOKENS + SLACK_TOKENS,
            "{turn}: {after} tokens, {layers} of them the state"
        );
        folds = folds.max(header("x-infold-folds"));
        let reply = crate::client::read(Wire::Chat, false, &answer.body);
        let reply = serde_json::from_slice(&reply.messages[0]).expect("JSON");
        client.messages.push(reply);
        client.ask("And then?");
    }
    assert!(folds > 0);
    office.is_accepted();
}
