//! What was redacted does not come back when a client sends its own copy in another form, and nothing else is taken for a copy.

mod office;

use infold::redact::RedactionRequest;
use infold_serve::ConversationName;
use infold_store::TaskError;
use infold_wire::Wire;
use office::{Office, assistant, user};
use serde_json::{Value, json};
use uuid::Uuid;

const SECRET: &str = "hunter2zzyzx";

fn whole(spans: &str) -> RedactionRequest {
    let spans = spans.split_whitespace();
    RedactionRequest {
        spans: spans.map(|span| span.parse().expect("a span")).collect(),
        pattern: None,
    }
}

fn pattern(pattern: &str) -> RedactionRequest {
    RedactionRequest {
        spans: Vec::new(),
        pattern: Some(pattern.parse().expect("a pattern")),
    }
}

/// All files of a store, one after the other.
fn all_files(dir: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            text += &all_files(&path);
        } else {
            text += &String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default());
        }
    }
    text
}

fn is_kept(office: &Office) -> bool {
    all_files(office.conversations.contexts().root()).contains("hunter2")
}

fn redact(office: &Office, task: Uuid, what: &RedactionRequest) {
    let contexts = office.conversations.contexts();
    loop {
        match what.carry_out(contexts, task) {
            Err(TaskError::Open { task, .. }) => office.conversations.release(task),
            done => {
                assert!(!done.expect("it is redacted").is_empty());
                assert!(!is_kept(office));
                return;
            }
        }
    }
}

/// Part of a conversation, whatever the wire.
#[derive(Clone)]
enum Said {
    User(String),
    Model(String),
    Call(Value),
    /// The result of a call: its text, and the object that Gemini has.
    Output(String, Value),
}

fn output(text: &str) -> Said {
    Said::Output(text.to_owned(), json!({"output": text}))
}

fn message(wire: Wire, id: &str, said: &Said) -> Value {
    match (wire, said) {
        (Wire::Gemini, Said::User(text)) => json!({"role": "user", "parts": [{"text": text}]}),
        (Wire::Gemini, Said::Model(text)) => json!({"role": "model", "parts": [{"text": text}]}),
        (Wire::Gemini, Said::Call(args)) => {
            json!({"role": "model", "parts": [{"functionCall": {"name": "run", "args": args}}]})
        }
        (Wire::Gemini, Said::Output(_, object)) => {
            json!({"role": "user", "parts": [{"functionResponse": {"name": "run", "response": object}}]})
        }
        (_, Said::User(text)) => json!({"role": "user", "content": text}),
        (_, Said::Model(text)) => json!({"role": "assistant", "content": text}),
        (Wire::Chat, Said::Call(args)) => json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "run", "arguments": args.to_string()}}]}),
        (Wire::Chat, Said::Output(text, _)) => json!({"role": "tool", "tool_call_id": id, "content": text}),
        (Wire::Ollama, Said::Call(args)) => {
            json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "run", "arguments": args}}]})
        }
        (Wire::Ollama, Said::Output(text, _)) => json!({"role": "tool", "tool_name": "run", "content": text}),
        (Wire::Anthropic, Said::Call(args)) => {
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "run", "input": args}]})
        }
        (Wire::Anthropic, Said::Output(text, _)) => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})
        }
        (Wire::Responses, Said::Call(args)) => {
            json!({"type": "function_call", "call_id": id, "name": "run", "arguments": args.to_string()})
        }
        (Wire::Responses, Said::Output(text, _)) => {
            json!({"type": "function_call_output", "call_id": id, "output": text})
        }
    }
}

fn messages(wire: Wire, id: &str, said: &[Said]) -> Vec<Value> {
    said.iter().map(|said| message(wire, id, said)).collect()
}

fn body(wire: Wire, said: &[Value]) -> Value {
    match wire {
        Wire::Chat | Wire::Ollama => json!({"model": "m", "stream": false, "messages": said}),
        Wire::Anthropic => json!({"model": "m", "max_tokens": 50, "messages": said}),
        Wire::Responses => json!({"model": "m", "input": said}),
        Wire::Gemini => json!({"contents": said}),
    }
}

/// Sends a request, of which the provider must get the client's bytes, and records a reply; returns the task.
fn send(office: &Office, wire: Wire, body: &Value, reply: Value) -> Uuid {
    let call = office.call(wire, body, None);
    let accepted = office.conversations.accept(&call).expect("it is taken");
    let sent = office::bytes(&call.body, &accepted.outgoing);
    assert_eq!(sent, body.to_string().into_bytes(), "{wire}");
    let mut exchange = accepted.exchange;
    let mut recorded = office::reply("");
    recorded.messages = vec![reply.to_string().into_bytes()];
    exchange.record(recorded).expect("it is recorded");
    exchange.task()
}

/// Has a conversation on a wire, as an agent does: each message of the model answers what stands before it.
fn converse(office: &Office, wire: Wire, id: &str, said: &[Said]) -> Uuid {
    let all = messages(wire, id, said);
    let mut task = None;
    for (at, said) in said.iter().enumerate() {
        if matches!(said, Said::Model(_) | Said::Call(_)) {
            task = Some(send(office, wire, &body(wire, &all[..at]), all[at].clone()));
        }
    }
    task.expect("the model answered")
}

/// A call and its result between a question and an answer.
fn deployment(question: &str, args: Value, result: Said) -> Vec<Said> {
    vec![
        Said::User(question.to_owned()),
        Said::Call(args),
        result,
        Said::Model("I deployed it, all is well".to_owned()),
        Said::User("go on".to_owned()),
        Said::Model("gone on".to_owned()),
    ]
}

/// Redacts a conversation on each wire, and sends it again on each wire with other ids, with its first question and with another; returns
/// the cases in which the secret came back.
fn leaks_over_wires(args: &Value, result: &Said, what: &RedactionRequest) -> Vec<String> {
    let mut leaks = Vec::new();
    for from in Wire::ALL {
        for to in Wire::ALL {
            for question in ["please deploy it", "deploy it at once"] {
                let mut office = Office::new(100_000);
                let said = deployment("please deploy it", args.clone(), result.clone());
                let task = converse(&office, from, "call_1", &said);
                redact(&office, task, what);
                for is_lost in [false, true] {
                    let mut again = deployment(question, args.clone(), result.clone());
                    again.push(Said::User(format!("and now? {is_lost}")));
                    let again = messages(to, "call_9", &again);
                    let reply = message(to, "", &Said::Model("so".to_owned()));
                    send(&office, to, &body(to, &again), reply);
                    if is_kept(&office) {
                        leaks.push(format!("{from} to {to}, {question}, {is_lost}"));
                        break;
                    }
                    office.restart_without_index();
                }
            }
        }
    }
    leaks
}

#[test]
fn calls_with_other_ids_stay_redacted_on_every_wire() {
    let args = json!({"command": format!("deploy é --key '{SECRET}' \"now\""), "n": 3, "deep": {"list": ["a", SECRET]}});
    for what in [pattern(SECRET), pattern(".*hunter2.*"), whole("2")] {
        let leaks = leaks_over_wires(&args, &output("fine"), &what);
        assert_eq!(leaks, Vec::<String>::new(), "{:?}", what.pattern);
    }
}

#[test]
fn results_with_other_ids_stay_redacted_on_every_wire() {
    let result = output(&format!("the key\nis {SECRET}"));
    for what in [pattern(SECRET), whole("3")] {
        let leaks = leaks_over_wires(&json!({"n": 1}), &result, &what);
        assert_eq!(leaks, Vec::<String>::new(), "{:?}", what.pattern);
    }
}

#[test]
fn results_that_are_objects_stay_redacted_on_every_wire() {
    let object = json!({"user": "bob", "key": SECRET, "n": 1});
    let spanning = Some("key.*hunter2.*user");
    let said = json!({"content": [{"type": "text", "text": format!("say {SECRET}")}]});
    let named = json!({SECRET: "as a name"});
    let objects = [
        (object.clone(), object.clone(), spanning),
        (object.clone(), json!({"output": object}), spanning),
        (object.clone(), json!({"result": object.to_string()}), spanning),
        (said.clone(), said, None),
        (named.clone(), named, None),
    ];
    for (text, object, spanning) in objects {
        let result = Said::Output(text.to_string(), object);
        for what in [Some(pattern(SECRET)), spanning.map(pattern), Some(whole("3"))] {
            let Some(what) = what else { continue };
            let leaks = leaks_over_wires(&json!({"n": 1}), &result, &what);
            assert_eq!(leaks, Vec::<String>::new(), "{text} {:?}", what.pattern);
        }
    }
}

#[test]
fn arguments_that_a_pattern_took_whole_stay_redacted_on_every_wire() {
    let args = json!({"a": "bob", "command": format!("deploy {SECRET} now"), "n": 3});
    for spanning in ["bob.*hunter2.*3", "\"a\".*hunter2[a-z]*"] {
        let leaks = leaks_over_wires(&args, &output("fine"), &pattern(spanning));
        assert_eq!(leaks, Vec::<String>::new(), "{spanning}");
    }
}

/// Short messages that are redacted are not taken from other conversations that have the same neighbours.
#[test]
fn everyday_messages_of_other_conversations_stay() {
    let cases = [
        ("ok", "Done.", whole("3")),
        ("yes", "Shall I go on?", whole("3")),
        ("yes", "Shall I go on?", pattern("^yes$")),
        ("continue please", "Sure?", whole("3")),
        ("option 2", "Which one of them?", pattern("option 2")),
    ];
    for (short, before, what) in cases {
        for wire in Wire::ALL {
            let office = Office::new(100_000);
            let said = |first: &str, last: &str| {
                vec![
                    Said::User(first.to_owned()),
                    Said::Model(before.to_owned()),
                    Said::User(short.to_owned()),
                    Said::Model(last.to_owned()),
                ]
            };
            let task = converse(&office, wire, "", &said("about apples and trees", "here we are"));
            redact(&office, task, &what);
            let other = said("about ships and harbours", "something else entirely");
            let other = converse(&office, wire, "", &other);
            let files = all_files(&office.conversations.contexts().root().join("running").join(other.to_string()));
            assert!(files.contains(short) && !files.contains("[redacted"), "{wire} {short}");
        }
    }
}

/// In a fork, the same short answer to another question is no copy.
#[test]
fn a_short_answer_in_a_fork_stays() {
    let office = Office::new(100_000);
    let said = |second: &str| {
        [user("go?"), assistant(second), user("ok"), assistant("went"), user("further?"), assistant("and then?"), user("ok")]
    };
    office.turn(&said("where to?")[..1], "where to?", None);
    office.turn(&said("where to?")[..3], "went", None);
    let task = office.turn(&said("where to?")[..5], "and then?", None);
    redact(&office, task, &whole("3"));
    let mut fork = said("where?").to_vec();
    fork.extend([assistant("there"), user("thanks")]);
    let fork = office.turn(&fork, "welcome", None);
    assert_ne!(fork, task);
    let holds = office.holds(fork);
    assert_eq!((holds[2].starts_with("[redacted"), &*holds[6]), (true, "ok"));
}

#[test]
fn texts_that_a_client_joined_split_or_broke_otherwise_stay_redacted() {
    let first = format!("first part says {SECRET} to you");
    let second = "second part is harmless";
    let text = |text: &str| json!({"type": "text", "text": text});
    let two = json!([text(&first), text(second)]);
    let lines = |by: &str| json!([&first, second, "third line"].join(by));
    let cases = [
        (two.clone(), json!(format!("{first}{second}"))),
        (two.clone(), json!(format!("{first}\n{second}"))),
        (two.clone(), json!(format!("{first}\n\n{second}"))),
        (two.clone(), json!([text(&first)])),
        (two.clone(), json!([text(&format!("{first}\r\n")), text(second), text("a reminder")])),
        (json!([text(&format!("{first}\n")), text(second)]), json!(format!("{first} {second}\n"))),
        (json!(first), json!([text("a reminder"), text(&first)])),
        (lines("\n"), lines("\r\n")),
        (lines("\r\n"), lines("\n")),
        (lines("\n"), json!([text(&first), text("second part is harmless\nthird line")])),
    ];
    for (at, (before, after)) in cases.iter().enumerate() {
        for what in [pattern(SECRET), pattern(".*hunter2.*"), whole("3")] {
            // Only the form is another; the answer before it; and the first question.
            for edited in [None, Some(1), Some(0)] {
                let office = Office::new(100_000);
                let said = [user("what is it?"), assistant("tell me"), json!({"role": "user", "content": before})];
                office.turn(&said[..1], "tell me", None);
                let task = office.turn(&said, "I see, thank you", None);
                redact(&office, task, &what);
                let mut again = said.to_vec();
                again[2]["content"] = after.clone();
                if let Some(edited) = edited {
                    again[edited]["content"] = json!("something else");
                }
                again.extend([assistant("I see, thank you"), user("go on")]);
                office.turn(&again, "gone on", None);
                assert!(!is_kept(&office), "{at} {:?} {edited:?}", what.pattern);
                if after.to_string().contains("third line") && what.pattern.is_some() {
                    let files = all_files(office.conversations.contexts().root());
                    assert!(files.contains("third line"), "{at}");
                }
            }
        }
    }
}

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
                let other = [Said::User(first.to_owned()), Said::Model("fine".to_owned()), Said::User("on".to_owned())];
                for to in [wire, Wire::Anthropic] {
                    let other = prompted(to, &prompt(day), &messages(to, "", &other));
                    send(&office, to, &other, message(to, "", &Said::Model("fine".to_owned())));
                    assert!(!is_kept(&office), "{wire} {first} {day}");
                }
                office.restart_without_index();
            }
            let files = all_files(office.conversations.contexts().root());
            assert!(files.contains("Tuesday"), "{wire}");
        }
    }
}

/// What was redacted was never part of a prompt, and is quoted in one then.
#[test]
fn a_prompt_that_quotes_what_was_redacted_before_loses_it() {
    for wire in Wire::ALL {
        for what in [pattern(SECRET), pattern(".*hunter2.*"), whole("1")] {
            let office = Office::new(100_000);
            let mut said = messages(wire, "", &[Said::User(format!("my key is {SECRET}, keep it"))]);
            let reply = message(wire, "", &Said::Model("fine".to_owned()));
            let task = send(&office, wire, &body(wire, &said), reply.clone());
            redact(&office, task, &what);
            said.extend([reply.clone(), message(wire, "", &Said::User("on".to_owned()))]);
            let quoted = prompted(wire, &format!("You know {SECRET} well"), &said);
            send(&office, wire, &quoted, reply);
            assert!(!is_kept(&office), "{wire} {:?}", what.pattern);
        }
    }
}

/// Prompts of other conversations keep what was redacted in messages alone.
#[test]
fn prompts_of_other_conversations_stay() {
    let office = Office::new(100_000);
    let task = office.turn(&[user("the Example Corporation is my employer")], "fine", None);
    redact(&office, task, &pattern("Example Corporation"));
    let other = [office::system("You work for the Example Corporation."), user("hello")];
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
                office.turn(&[user(&format!("something else {step}"))], "fine", name(second));
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
