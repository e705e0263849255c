//! No request has what providers refuse: one half of a pair without the other, or roles that do not alternate.

mod office;

use std::collections::{BTreeMap, BTreeSet};

use infold_serve::ModelCall;
use infold_wire::{ProviderError, Wire};
use office::{Office, bytes};
use serde_json::{Value, json};

fn text(words: usize) -> String {
    "word ".repeat(words)
}

/// Sends a conversation as it grows, one message at each turn of the client; calls `check` with each request.
fn play(wire: Wire, window: u64, messages: &[Value], mut check: impl FnMut(&[Value], &[Value])) {
    let office = Office::new(window);
    let list = match wire {
        Wire::Responses => "input",
        _ => "messages",
    };
    for end in 1..=messages.len() {
        let mut body = json!({"model": "m", "max_tokens": 100});
        body[list] = messages[..end].into();
        let call = office.call(wire, &body, None);
        let taken = office.conversations.accept(&call).expect("it is taken");
        let sent: Value =
            serde_json::from_slice(&bytes(&call.body, &taken.outgoing)).expect("JSON");
        let sent = sent[list].as_array().expect("a list").clone();
        check(&messages[..end], &sent);
    }
    assert_eq!(office.tasks(), 1);
}

/// Returns every id in messages with the number of its occurrences.
fn ids(messages: &[Value]) -> BTreeMap<String, usize> {
    let mut ids = BTreeMap::new();
    let mut all: Vec<&Value> = messages.iter().collect();
    while let Some(value) = all.pop() {
        match value {
            Value::Array(list) => all.extend(list),
            Value::Object(members) => {
                for (name, value) in members {
                    let names = name == "id" || name.ends_with("_id");
                    match value.as_str().filter(|_| names) {
                        Some(id) => *ids.entry(id.to_owned()).or_default() += 1,
                        None => all.push(value),
                    }
                }
            }
            _ => {}
        }
    }
    ids
}

/// Checks that messages tied together by an id are shown all or not at all.
fn whole(client: &[Value], sent: &[Value]) {
    let all = ids(client);
    for (id, count) in ids(sent) {
        assert_eq!(all.get(&id), Some(&count), "{id} is torn in {sent:#?}");
    }
}

/// Turns with something in between that belongs together.
fn turns(count: usize, middle: impl Fn(usize) -> Vec<Value>) -> Vec<Value> {
    let mut all = Vec::new();
    for turn in 0..count {
        all.push(json!({"role": "user", "content": format!("question {turn} {}", text(40))}));
        all.extend(middle(turn));
        all.push(json!({"role": "assistant", "content": format!("answer {turn} {}", text(40))}));
    }
    all
}

fn folded(wire: Wire, messages: &[Value]) {
    // Windows of several sizes, so that folds end at every place.
    for window in (2_000..3_600).step_by(230) {
        let mut folds = BTreeSet::new();
        play(wire, window, messages, |client, sent| {
            whole(client, sent);
            assert_eq!(sent.last(), client.last());
            if sent.len() < client.len() {
                folds.insert(sent[1].to_string());
            }
        });
        assert!(folds.len() > 3, "it was folded {} times", folds.len());
    }
}

#[test]
fn a_search_that_was_paused_stays_with_its_result() {
    let messages = turns(40, |turn| {
        let id = format!("srvtoolu_{turn}");
        vec![
            json!({"role": "assistant", "content": [
                {"type": "text", "text": text(20)},
                {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": text(20)}},
            ]}),
            json!({"role": "assistant", "content": [
                {"type": "web_search_tool_result", "tool_use_id": id, "content": [{"type": "web_search_result", "title": text(60), "url": "https://example.com", "encrypted_content": "x"}]},
                {"type": "text", "text": text(20)},
            ]}),
        ]
    });
    folded(Wire::Anthropic, &messages);
}

#[test]
fn a_program_stays_with_the_calls_that_it_made() {
    let messages = turns(30, |turn| {
        let id = format!("srvtoolu_{turn}");
        let caller = json!({"type": "code_execution_20250825", "tool_id": id});
        let call = |at: usize| json!({"type": "tool_use", "id": format!("toolu_{turn}_{at}"), "name": "f", "input": {}, "caller": caller});
        let result = |at: usize| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{turn}_{at}"), "content": text(60)}]});
        let begins = json!({"type": "server_tool_use", "id": id, "name": "code_execution", "input": {"code": text(30)}});
        vec![
            json!({"role": "assistant", "content": [begins, call(0)]}),
            result(0),
            json!({"role": "assistant", "content": [call(1)]}),
            result(1),
            json!({"role": "assistant", "content": [{"type": "code_execution_tool_result", "tool_use_id": id, "content": {"stdout": text(40)}}]}),
        ]
    });
    folded(Wire::Anthropic, &messages);
}

#[test]
fn an_approval_stays_with_what_it_allows() {
    let messages = turns(40, |turn| {
        let id = format!("mcpr_{turn}");
        vec![
            json!({"type": "mcp_approval_request", "id": id, "name": "f", "arguments": text(30), "server_label": "l"}),
            json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": true}),
            json!({"type": "mcp_call", "id": format!("mcp_{turn}"), "approval_request_id": id, "name": "f", "arguments": "{}", "server_label": "l", "output": text(60)}),
        ]
    });
    folded(Wire::Responses, &messages);
}

#[test]
fn what_is_not_known_stays_with_what_has_the_same_id() {
    let block = |turn: usize, kind: &str| {
        json!({"role": "assistant", "content": [
            {"type": kind, "ref_id": format!("ref_{turn}"), "data": "x"}, {"type": "text", "text": text(30)},
        ]})
    };
    let between = || json!({"role": "user", "content": text(20)});
    let messages = turns(40, |turn| {
        vec![block(turn, "new_begin"), between(), block(turn, "new_end")]
    });
    folded(Wire::Anthropic, &messages);
    let item = |turn: usize, kind: &str| json!({"type": kind, "id": format!("it_{turn}_{kind}"), "ref_id": format!("ref_{turn}"), "data": text(40)});
    let messages = turns(40, |turn| {
        vec![item(turn, "new_begin"), between(), item(turn, "new_end")]
    });
    folded(Wire::Responses, &messages);
}

fn refused(call: &ModelCall, office: &Office) -> Option<Value> {
    let mut taken = office.conversations.accept(call).expect("it is taken");
    let again = taken.exchange.adapt(call, &ProviderError::AlternateRoles);
    let again = again.expect("it can be put together")?;
    Some(serde_json::from_slice(&bytes(&call.body, &again)).expect("JSON"))
}

/// Returns the roles in order; items of one output count as one.
fn speakers(sent: &Value) -> Vec<String> {
    let mut speakers: Vec<String> = Vec::new();
    for item in sent.as_array().expect("a list") {
        let kind = item["type"].as_str().unwrap_or_default();
        let (speaker, is_item) = match item["role"].as_str() {
            Some(role) => (role, kind == "message"),
            None if kind.ends_with("_output") => ("tool", true),
            None => ("assistant", true),
        };
        if !(is_item && speaker != "user" && speakers.last().is_some_and(|last| last == speaker)) {
            speakers.push(speaker.to_owned());
        }
    }
    speakers
}

#[test]
fn separators_stand_between_turns_and_what_was_learned_stays() {
    let call = |turn: usize, at: usize| json!({"type": "function_call", "call_id": format!("c{turn}_{at}"), "name": "f", "arguments": "{}"});
    let output = |turn: usize, at: usize| json!({"type": "function_call_output", "call_id": format!("c{turn}_{at}"), "output": text(40)});
    let mut messages = turns(40, |turn| {
        vec![
            json!({"type": "reasoning", "id": format!("rs_{turn}"), "summary": [], "encrypted_content": "x"}),
            call(turn, 0),
            call(turn, 1),
            output(turn, 0),
            output(turn, 1),
        ]
    });
    messages.push(json!({"role": "user", "content": "and now?"}));
    let mut office = Office::new(4_000);
    let body = json!({"model": "m", "input": messages});
    let call = office.call(Wire::Responses, &body, None);
    let sent = refused(&call, &office).expect("it is repaired");
    let said = speakers(&sent["input"]);
    assert!(said.windows(2).all(|pair| pair[0] != pair[1]), "{said:?}");
    let items = sent["input"].as_array().expect("a list");
    let parallel = items
        .windows(2)
        .filter(|pair| pair.iter().all(|item| item["type"] == "function_call"));
    assert!(
        parallel.count() > 0,
        "calls of one output stand side by side"
    );
    // The quirk is known after a restart, and is not refused again.
    office.restart();
    let taken = office.conversations.accept(&call).expect("it is taken");
    let again: Value = serde_json::from_slice(&bytes(&call.body, &taken.outgoing)).expect("JSON");
    assert_eq!(again, sent);
}

#[test]
fn a_note_is_separated_as_well() {
    let office = Office::new(100_000);
    let messages = turns(2, |_| Vec::new());
    let body = json!({"model": "m", "messages": messages});
    let call = office.call(Wire::Chat, &body, None);
    let task = office
        .conversations
        .accept(&call)
        .expect("it is taken")
        .exchange
        .task();
    let noted = office
        .conversations
        .with(task, |writer| writer.note("be brief"));
    noted.expect("it can be had").expect("it can be noted");
    let sent = refused(&call, &office).expect("it is repaired");
    let said = speakers(&sent["messages"]);
    assert!(said.windows(2).all(|pair| pair[0] != pair[1]), "{said:?}");
    assert!(sent.to_string().contains("be brief"));
}

fn thinks(message: &Value) -> bool {
    message.to_string().contains("\"signature\"")
}

/// An upstream that signs thinking together with all that it was sent.
fn signed(sent: &[Value], turn: usize) -> Value {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hash = DefaultHasher::new();
    Value::from(sent).to_string().hash(&mut hash);
    json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": text(10), "signature": hash.finish().to_string()},
        {"type": "text", "text": format!("answer {turn} {}", text(60))},
    ]})
}

#[test]
fn thinking_is_sent_only_behind_what_it_was_signed_behind() {
    // One quirk is known by the model's name, one is detected by an error.
    for (model, learns) in [("claude-opus-5-5", false), ("claude-next", true)] {
        let mut office = Office::new(3_000);
        let mut history: Vec<Value> = Vec::new();
        let (mut folds, mut kept, mut refusals) = (0, 0, 0);
        for turn in 0..40 {
            history
                .push(json!({"role": "user", "content": format!("question {turn} {}", text(40))}));
            let body = json!({"model": model, "max_tokens": 100, "messages": history});
            let call = office.call(Wire::Anthropic, &body, None);
            let mut taken = office.conversations.accept(&call).expect("it is taken");
            let list = |outgoing| {
                let sent: Value =
                    serde_json::from_slice(&bytes(&call.body, outgoing)).expect("JSON");
                sent["messages"].as_array().expect("a list").clone()
            };
            let stale = |sent: &[Value]| {
                let mut stale = (0..sent.len()).filter(|at| thinks(&sent[*at]));
                stale.any(|at| sent[at]["content"][0] != signed(&sent[..at], 0)["content"][0])
            };
            let mut sent = list(&taken.outgoing);
            if learns && stale(&sent) {
                refusals += 1;
                let again = taken.exchange.adapt(&call, &ProviderError::BoundThinking);
                let again = again.expect("it can be put together");
                sent = list(&again.expect("it is sent again"));
            }
            assert!(!stale(&sent), "turn {turn} of {model}: {sent:#?}");
            folds += usize::from(sent.len() < history.len());
            kept += usize::from(sent.len() < history.len() && sent.iter().any(thinks));
            let reply = signed(&sent, turn);
            let mut recorded = office::reply("");
            recorded.messages = vec![reply.to_string().into_bytes()];
            taken.exchange.record(recorded).expect("it is recorded");
            history.push(reply);
            drop(taken);
            if turn == 25 {
                office.restart();
            }
        }
        assert!(
            folds > 5 && kept > 0,
            "{folds} folded, {kept} of them with thinking"
        );
        assert_eq!(refusals, usize::from(learns), "once is enough");
    }
}
