//! Hidden messages that a request refers to are shown again, at the very end of the request.

mod office;

use infold_wire::Wire;
use office::{Office, bytes};
use serde_json::{Value, json};

/// A table of settings that no summary can hold whole.
fn table() -> String {
    let row = |number: u32| format!("{} = {}", name(number), value(number));
    (0..600).map(row).collect::<Vec<_>>().join("\n")
}

fn name(number: u32) -> String {
    format!("setting_{number:03}")
}

fn value(number: u32) -> u32 {
    7_000 + number * 37
}

/// A long conversation that begins with the table as a tool's result.
fn talk(wire: Wire, turns: usize) -> Vec<Value> {
    let user = |text: &str| match wire {
        Wire::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
        _ => json!({"role": "user", "content": text}),
    };
    let model = |text: &str| match wire {
        Wire::Gemini => json!({"role": "model", "parts": [{"text": text}]}),
        _ => json!({"role": "assistant", "content": text}),
    };
    let mut all = vec![user("Read the settings.")];
    all.extend(match wire {
        Wire::Chat => vec![
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "cat", "arguments": "{}"}}]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": table()}),
        ],
        Wire::Ollama => vec![
            json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "cat", "arguments": {}}}]}),
            json!({"role": "tool", "tool_name": "cat", "content": table()}),
        ],
        Wire::Anthropic => vec![
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "cat", "input": {}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": table()}]}),
        ],
        Wire::Gemini => vec![
            json!({"role": "model", "parts": [{"functionCall": {"name": "cat", "args": {}}}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"name": "cat", "response": {"output": table()}}}]}),
        ],
        Wire::Responses => vec![
            json!({"type": "function_call", "call_id": "c1", "name": "cat", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "c1", "output": table()}),
        ],
    });
    all.push(model("I have read them."));
    for turn in 0..turns {
        all.push(user(&format!(
            "Question {turn}: {}",
            "tell me more about it ".repeat(12)
        )));
        all.push(model(&format!(
            "Answer {turn}: {}",
            "there is a lot to say ".repeat(30)
        )));
    }
    all
}

/// Sends a conversation; returns the messages that went out, and how many excerpts the last of them carries.
fn send(office: &Office, wire: Wire, messages: &[Value]) -> (Vec<Value>, String) {
    let list = match wire {
        Wire::Responses => "input",
        Wire::Gemini => "contents",
        _ => "messages",
    };
    let mut body = json!({"model": "m", "max_tokens": 100});
    if wire == Wire::Gemini {
        body = json!({});
    }
    body[list] = messages.into();
    let call = office.call(wire, &body, None);
    let taken = office.conversations.accept(&call).expect("it is taken");
    let sent = serde_json::from_slice::<Value>(&bytes(&call.body, &taken.outgoing)).expect("JSON");
    let headers = taken.exchange.headers();
    let recalled = headers
        .iter()
        .find(|(name, _)| *name == "x-infold-recalled");
    let recalled = recalled.map(|(_, value)| value.clone()).unwrap_or_default();
    (sent[list].as_array().expect("a list").clone(), recalled)
}

fn ask(wire: Wire, text: &str) -> Value {
    match wire {
        Wire::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
        _ => json!({"role": "user", "content": text}),
    }
}

fn answer(wire: Wire, text: &str) -> Value {
    match wire {
        Wire::Gemini => json!({"role": "model", "parts": [{"text": text}]}),
        _ => json!({"role": "assistant", "content": text}),
    }
}

#[test]
fn a_hidden_value_comes_back_with_the_message_that_asks_for_it() {
    for wire in Wire::ALL {
        let office = Office::new(8_000);
        let mut messages = talk(wire, 30);
        let (sent, recalled) = send(&office, wire, &messages[..messages.len() - 1]);
        assert!(sent.len() < messages.len() - 1, "{wire}: it is folded");
        assert_eq!(recalled, "0", "{wire}: nothing is referred to");
        let shown = Value::from(sent).to_string();
        let hidden = |number: &u32| !shown.contains(&name(*number));
        let number = (100..600).find(hidden).expect("no summary holds them all");
        let (name, value) = (name(number), value(number));

        messages.push(ask(wire, &format!("What is `{name}` set to?")));
        let (sent, recalled) = send(&office, wire, &messages);
        let last = sent.last().expect("a message").to_string();
        assert_eq!(recalled, "1", "{wire}: {last}");
        assert!(
            last.contains(&format!("{name} = {value}")),
            "{wire}: {last}"
        );
        assert!(
            last.contains(&format!("What is `{name}` set to?")),
            "{wire}"
        );
        // A repeated request has the same bytes.
        assert_eq!(send(&office, wire, &messages), (sent.clone(), recalled));

        // The excerpt stays in its place, and is not quoted twice while it is in view.
        messages.push(answer(wire, &value.to_string()));
        messages.push(ask(wire, &format!("And {name}, was that in milliseconds?")));
        let (next, recalled) = send(&office, wire, &messages);
        assert_eq!(next[..sent.len()], sent[..], "{wire}: the prefix stays");
        assert_eq!(recalled, "0", "{wire}: it is in view");
        assert_eq!(next.last(), messages.last());
        assert_eq!(office.tasks(), 1);
    }
}
