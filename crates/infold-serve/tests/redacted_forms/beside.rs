//! Redaction outside of messages: prompts, names, records of tools.

use infold_serve::ConversationName;
use infold_wire::Wire;
use serde_json::{Value, json};

use crate::messages::deployment;
use crate::office::{self, Office, assistant, user};
use crate::said::{
    SECRET, Said, all_files, body, is_kept, message, messages, output, pattern, redact, send, whole,
};

/// The body of a request with a system prompt.
fn prompted(wire: Wire, prompt: &str, said: &[Value]) -> Value {
    let mut body = body(wire, said);
    match wire {
        Wire::Chat | Wire::Ollama => {
            let messages = [&[json!({"role": "system", "content": prompt})], said].concat();
            body["messages"] = json!(messages);
        }
        Wire::Responses => body["instructions"] = json!(prompt),
        Wire::Anthropic => body["system"] = json!(prompt),
        Wire::Gemini => body["systemInstruction"] = json!({"parts": [{"text": prompt}]}),
    }
    body
}

#[test]
fn a_redacted_prompt_does_not_come_back_with_another_conversation() {
    for wire in Wire::ALL {
        for first in ["what is it?", "who is it?"] {
            let mut office = Office::new(100_000);
            let prompt = |day: &str| format!("Be kind. It is {day}. The key is {SECRET}, use it.");
            let said = |first: &str| messages(wire, "", &[Said::User(first.to_owned())]);
            let reply = || message(wire, "", &Said::Model("fine".to_owned()));
            let begun = prompted(wire, &prompt("Monday"), &said("what is it?"));
            let task = send(&office, wire, &begun, reply());
            redact(&office, task, &pattern(SECRET));
            for day in ["Monday", "Tuesday"] {
                let other = [
                    Said::User(first.to_owned()),
                    Said::Model("fine".to_owned()),
                    Said::User("on".to_owned()),
                ];
                for to in [wire, Wire::Anthropic] {
                    let other = prompted(to, &prompt(day), &messages(to, "", &other));
                    send(
                        &office,
                        to,
                        &other,
                        message(to, "", &Said::Model("fine".to_owned())),
                    );
                    assert!(!is_kept(&office), "{wire} {first} {day}");
                }
                office.restart_without_index();
            }
            let files = all_files(office.conversations.contexts().root());
            assert!(files.contains("Tuesday"), "{wire}");
        }
    }
}

/// A secret that was redacted in a message is left out of a later prompt that quotes it.
#[test]
fn a_prompt_that_quotes_what_was_redacted_before_loses_it() {
    for wire in Wire::ALL {
        for what in [pattern(SECRET), pattern(".*hunter2.*"), whole("1")] {
            let office = Office::new(100_000);
            let mut said = messages(
                wire,
                "",
                &[Said::User(format!("my key is {SECRET}, keep it"))],
            );
            let reply = message(wire, "", &Said::Model("fine".to_owned()));
            let task = send(&office, wire, &body(wire, &said), reply.clone());
            redact(&office, task, &what);
            said.extend([
                reply.clone(),
                message(wire, "", &Said::User("on".to_owned())),
            ]);
            let quoted = prompted(wire, &format!("You know {SECRET} well"), &said);
            send(&office, wire, &quoted, reply);
            assert!(!is_kept(&office), "{wire} {:?}", what.pattern);
        }
    }
}

/// Prompts of other conversations keep texts that were redacted in messages alone.
#[test]
fn prompts_of_other_conversations_stay() {
    let office = Office::new(100_000);
    let task = office.turn(
        &[user("the Example Corporation is my employer")],
        "fine",
        None,
    );
    redact(&office, task, &pattern("Example Corporation"));
    let other = [
        office::system("You work for the Example Corporation."),
        user("hello"),
    ];
    office.turn(&other, "hello", None);
    let files = all_files(office.conversations.contexts().root());
    assert!(files.contains("You work for the Example Corporation."));
}

#[test]
fn a_redacted_name_is_not_written_again_when_it_is_given_otherwise() {
    type MakeName = fn(String) -> ConversationName;
    let kinds: [MakeName; 2] = [ConversationName::Given, ConversationName::Session];
    for first in kinds {
        for second in kinds {
            let mut office = Office::new(100_000);
            let name = |kind: MakeName| Some(kind(format!("about-{SECRET}")));
            let mut said = vec![user("hello")];
            let task = office.turn(&said, "fine", name(first));
            redact(&office, task, &pattern("hunter2"));
            for step in 0..2 {
                said.extend([assistant("fine"), user(&format!("more {step}"))]);
                office.turn(&said, "fine", name(second));
                assert!(!is_kept(&office), "the same conversation");
                office.turn(
                    &[user(&format!("something else {step}"))],
                    "fine",
                    name(second),
                );
                assert!(!is_kept(&office), "another conversation");
                let body = json!({"model": "m", "messages": [user(&format!("third {step}"))],
                    "prompt_cache_key": format!("about-{SECRET}")});
                send(&office, Wire::Chat, &body, assistant("fine"));
                assert!(!is_kept(&office), "a member of the body");
                office.restart_without_index();
            }
        }
    }
}

/// A redaction right behind a request has the task while the records of its tools are written.
#[test]
fn tools_are_recorded_though_a_redaction_has_the_task() {
    let office = Office::new(100_000);
    let said = deployment(
        "please deploy it",
        json!({"n": 1}),
        output(&format!("it is {SECRET}")),
    );
    let all = messages(Wire::Chat, "call_1", &said);
    let task = send(
        &office,
        Wire::Chat,
        &body(Wire::Chat, &all[..1]),
        all[1].clone(),
    );
    let request = body(Wire::Chat, &all[..3]);
    assert_eq!(send(&office, Wire::Chat, &request, all[3].clone()), task);
    let contexts = office.conversations.contexts();
    let writer = loop {
        office.conversations.release(task);
        if let Ok((writer, _)) = contexts.write(task) {
            break writer;
        }
    };
    // Long enough for the job to be tried, if it was not done before.
    std::thread::sleep(std::time::Duration::from_millis(700));
    drop(writer);
    redact(&office, task, &pattern(SECRET));
    office.conversations.close();
    let tools = contexts.root().join(format!("running/{task}/tools.jsonl"));
    let tools = std::fs::read_to_string(tools).expect("tools are recorded");
    assert_eq!(tools.lines().count(), 1, "{tools}");
    assert!(
        !is_kept(&office) && tools.contains("[redacted e"),
        "{tools}"
    );
}
