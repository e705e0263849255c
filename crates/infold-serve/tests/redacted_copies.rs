//! A client's copy of a redacted message is not recorded in the clear, also where the conversation is no longer the same before it.

mod front;
mod office;

use front::{Proxy, Setup, place};
use infold::redact::RedactionRequest;
use infold_store::{Contexts, Durability, TaskError};
use infold_testkit::{Script, Server, Step};
use infold_wire::Wire;
use office::{Office, assistant, user};
use serde_json::{Value, json};
use uuid::Uuid;

const SECRET: &str = "hunter2zzyzx";

fn request(spans: &str, pattern: Option<&str>) -> RedactionRequest {
    let spans = spans.split_whitespace();
    RedactionRequest {
        spans: spans.map(|span| span.parse().expect("a span")).collect(),
        pattern: pattern.map(|pattern| pattern.parse().expect("a pattern")),
    }
}

/// Redacts like the command: the server is asked to release the task first.
fn redact(proxy: &Proxy, task: Uuid, redact: &RedactionRequest) {
    let root = proxy.conversations.contexts().root();
    let contexts = Contexts::new(root, Durability::Turn);
    loop {
        match redact.carry_out(&contexts, task) {
            Err(TaskError::Open { task, .. }) => proxy.conversations.release(task),
            done => {
                assert!(!done.expect("it is redacted").is_empty());
                return;
            }
        }
    }
}

/// A message of each wire.
fn message(wire: Wire, role: &str, text: &str) -> Value {
    match (wire, role) {
        (Wire::Gemini, "assistant") => json!({"role": "model", "parts": [{"text": text}]}),
        (Wire::Gemini, _) => json!({"role": "user", "parts": [{"text": text}]}),
        _ => json!({"role": role, "content": text}),
    }
}

fn body(wire: Wire, said: &[Value]) -> Vec<u8> {
    let body = match wire {
        Wire::Chat | Wire::Ollama => json!({"model": "m", "stream": false, "messages": said}),
        Wire::Anthropic => json!({"model": "m", "max_tokens": 50, "messages": said}),
        Wire::Responses => json!({"model": "m", "input": said}),
        Wire::Gemini => json!({"contents": said}),
    };
    body.to_string().into_bytes()
}

/// Sends the conversation unchanged; returns the task. The provider must get the client's bytes.
fn send(proxy: &Proxy, server: &Server, wire: Wire, said: &[Value]) -> Uuid {
    let (path, headers) = place(wire, false);
    let sent = body(wire, said);
    let answer = proxy.post(path, headers, &sent);
    assert_eq!(answer.status, 200, "{wire}: {}", answer.text());
    let seen = server.last_call().expect("it was asked");
    assert_eq!(seen.body.as_deref(), Some(&*sent), "{wire}");
    let task = answer.header("x-infold-task").expect("it is recorded");
    task.parse().expect("an id")
}

fn server() -> Server {
    Server::start(Script::new().otherwise(|_| Step::say("fine")))
}

/// Three questions and their answers, of which the second has the secret; returns them and their task.
fn conversation(proxy: &Proxy, server: &Server, wire: Wire) -> (Vec<Value>, Uuid) {
    let (mut said, mut task) = (Vec::new(), None);
    for text in ["what is this?", SECRET, "and on we go"] {
        said.push(message(wire, "user", text));
        let now = send(proxy, server, wire, &said);
        assert_eq!(*task.get_or_insert(now), now, "{wire}");
        said.push(message(wire, "assistant", "fine"));
    }
    (said, task.expect("a task"))
}

#[test]
fn an_edit_before_a_redacted_message_does_not_bring_it_back_on_any_wire() {
    for wire in Wire::ALL {
        for what in [request("3", None), request("", Some("hunter2"))] {
            // An edit of the first message, after which nothing is known; and of the answer before the redacted one,
            // which makes a fork.
            for edited in [0, 1] {
                let server = server();
                let mut proxy = Proxy::to(&server.url());
                let (said, task) = conversation(&proxy, &server, wire);
                redact(&proxy, task, &what);
                assert!(!proxy.kept().contains("hunter2"), "{wire}");
                let mut edit = said.clone();
                let role = ["user", "assistant"][edited];
                edit[edited] = message(wire, role, "something else");
                edit.push(message(wire, "user", "so?"));
                let fork = send(&proxy, &server, wire, &edit);
                assert_ne!(fork, task, "{wire}");
                assert!(!proxy.kept().contains("hunter2"), "{wire} {edited}");
                // Both branches continue.
                edit.push(message(wire, "assistant", "fine"));
                for (said, task) in [(&mut edit, fork), (&mut said.clone(), task)] {
                    said.push(message(wire, "user", "more?"));
                    assert_eq!(send(&proxy, &server, wire, said), task, "{wire}");
                }
                assert!(!proxy.kept().contains("hunter2"), "{wire} {edited}");
                // A server that starts anew knows it too, with the conversation index and without.
                for is_lost in [false, true] {
                    let directory = proxy.directory();
                    proxy.finish();
                    for suffix in ["", "-wal", "-shm"] {
                        let path = directory.path().join(format!("chains.db{suffix}"));
                        if is_lost {
                            let _ = std::fs::remove_file(path);
                        }
                    }
                    proxy = Setup::to(&server.url()).start_in(directory);
                    edit[edited] = message(wire, role, &format!("otherwise {is_lost}"));
                    send(&proxy, &server, wire, &edit);
                    assert!(!proxy.kept().contains("hunter2"), "{wire} {is_lost}");
                }
            }
        }
    }
}

/// Returns the contents of all files of a store.
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

/// Asks on a wire, and the model answers; returns the task.
fn turn(office: &Office, wire: Wire, said: &[Value], reply: Value) -> Uuid {
    let body: Value = serde_json::from_slice(&body(wire, said)).expect("JSON");
    let call = office.call(wire, &body, None);
    let accepted = office.conversations.accept(&call).expect("it is taken");
    let sent = office::bytes(&call.body, &accepted.outgoing);
    assert_eq!(sent, body.to_string().into_bytes(), "{wire}");
    let mut exchange = accepted.exchange;
    let mut recorded = office::reply("");
    recorded.messages = vec![reply.to_string().into_bytes()];
    exchange.record(recorded).expect("it is recorded");
    exchange.task()
}

fn redact_in(office: &Office, task: Uuid, what: &RedactionRequest) {
    let contexts = office.conversations.contexts();
    loop {
        match what.carry_out(contexts, task) {
            Err(TaskError::Open { task, .. }) => office.conversations.release(task),
            done => {
                assert!(!done.expect("it is redacted").is_empty());
                return;
            }
        }
    }
}

/// The call and the result of a tool over a wire without ids, and over chat.
fn tool_use(wire: Wire, path: &str, output: &str) -> [Value; 2] {
    let arguments = json!({"path": path});
    match wire {
        Wire::Gemini => [
            json!({"role": "model", "parts": [{"functionCall": {"name": "read", "args": arguments}}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": output}}}]}),
        ],
        Wire::Ollama => [
            json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read", "arguments": arguments}}]}),
            json!({"role": "tool", "tool_name": "read", "content": output}),
        ],
        _ => [
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
                "function": {"name": "read", "arguments": arguments.to_string()}}]}),
            json!({"role": "tool", "tool_call_id": "call_1", "content": output}),
        ],
    }
}

#[test]
fn a_conversation_that_goes_on_over_an_api_with_call_ids_does_not_bring_it_back() {
    for wire in [Wire::Gemini, Wire::Ollama] {
        for what in [request("2..3", None), request("", Some("hunter2"))] {
            let mut office = Office::new(100_000);
            let said = |wire: Wire| {
                let [call, result] =
                    tool_use(wire, &format!("/keys/{SECRET}"), &format!("it is {SECRET}"));
                let mut said = vec![message(wire, "user", "read it"), call, result];
                said.push(message(wire, "assistant", "done"));
                said
            };
            let first = said(wire);
            turn(&office, wire, &first[..1], first[1].clone());
            let task = turn(&office, wire, &first[..3], first[3].clone());
            assert!(all_files(office.conversations.contexts().root()).contains(SECRET));
            redact_in(&office, task, &what);
            assert!(!all_files(office.conversations.contexts().root()).contains("hunter2"));
            for is_lost in [false, true] {
                let mut said = said(Wire::Chat);
                said.push(message(Wire::Chat, "user", &format!("thanks {is_lost}")));
                turn(&office, Wire::Chat, &said, assistant("welcome"));
                let files = all_files(office.conversations.contexts().root());
                assert!(!files.contains("hunter2"), "{wire} {is_lost}");
                office.restart_without_index();
            }
        }
    }
}

/// A redaction does not affect the same words in other conversations, nor in later messages.
#[test]
fn what_somebody_says_anew_is_recorded() {
    let office = Office::new(100_000);
    let said = [
        user("shall I?"),
        assistant("go on?"),
        user("yes"),
        assistant("gone on"),
    ];
    office.turn(&said[..1], "go on?", None);
    let task = office.turn(&said[..3], "gone on", None);
    redact_in(&office, task, &request("3", None));
    // The same word to another question, in another conversation, and later in the same one.
    let other = [user("hello"), assistant("well?"), user("yes")];
    let other = office.turn(&other, "good", None);
    assert_eq!(office.holds(other)[2], "yes");
    let again = [&said[..], &[user("yes")]].concat();
    assert_eq!(office.turn(&again, "fine", None), task);
    assert_eq!(
        office.holds(task)[2..],
        ["[redacted e1]", "gone on", "yes", "fine"]
    );
}

/// A redacted secret does not come back with the frame of a task that holds a copy.
#[test]
fn the_frame_beside_a_copy_loses_the_secret_too() {
    let office = Office::new(100_000);
    let turn = |said: &[Value], version: u32| {
        let prompt = format!("Version {version}. The key is {SECRET}.");
        let messages = [&[office::system(&prompt)], said].concat();
        office.turn(&messages, "fine", None)
    };
    let said = [
        user("what?"),
        assistant("fine"),
        user(&format!("my {SECRET}")),
    ];
    let task = turn(&said[..1], 1);
    assert_eq!(turn(&said, 1), task);
    redact_in(&office, task, &request("", Some("hunter2[a-z]*")));
    let edited = [
        user("who?"),
        assistant("fine"),
        user(&format!("my {SECRET}")),
        assistant("fine"),
        user("on"),
    ];
    assert_ne!(turn(&edited, 2), task);
    let files = all_files(office.conversations.contexts().root());
    assert!(files.contains("Version 2") && !files.contains("hunter2"));
}

/// A copy loses only the matches, if the matched part of the original is known.
#[test]
fn a_copy_loses_what_the_pattern_matched_and_no_more() {
    let office = Office::new(100_000);
    let said = |first: &str| {
        [
            user(first),
            assistant("fine"),
            user(&format!("my key is {SECRET}, keep it")),
        ]
    };
    office.turn(&said("what?")[..1], "fine", None);
    let task = office.turn(&said("what?"), "fine", None);
    redact_in(&office, task, &request("", Some(SECRET)));
    let copy = office.turn(&said("who?"), "fine", None);
    assert_ne!(copy, task);
    assert_eq!(office.holds(copy)[2], "my key is [redacted e1], keep it");
    let problems = office.conversations.contexts().verify(copy, None);
    assert_eq!(problems.expect("it can be checked").len(), 0);
}

/// The same question to another model, or with other tools, is another conversation with the same first message.
#[test]
fn a_redacted_question_that_is_asked_of_another_model_stays_redacted() {
    let office = Office::new(100_000);
    let said = [user(&format!("my key is {SECRET}"))];
    let task = office.turn(&said, "fine", None);
    redact_in(&office, task, &request("1", None));
    let bodies = [
        json!({"model": "other", "messages": said}),
        json!({"model": "m", "messages": said, "tools": [{"type": "function", "function": {"name": "ls"}}]}),
    ];
    for body in bodies {
        let call = office.call(Wire::Chat, &body, None);
        let accepted = office.conversations.accept(&call).expect("it is taken");
        assert_ne!(accepted.exchange.task(), task);
        let files = all_files(office.conversations.contexts().root());
        assert!(!files.contains("hunter2"));
    }
}

/// Each chunk of a streamed reply comes back as a message, of which one was redacted.
#[test]
fn a_piece_of_an_output_does_not_come_back_behind_an_edit() {
    for what in [
        request("3", None),
        request("2..4", None),
        request("", Some("hunter2")),
    ] {
        let office = Office::new(100_000);
        let part = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
        let said = |first: &str| {
            vec![
                part("user", first),
                part("model", "it is "),
                part("model", SECRET),
                part("model", ", you know"),
                part("user", "thanks"),
            ]
        };
        let reply = || part("model", "welcome");
        let task = turn(&office, Wire::Gemini, &said("tell me"), reply());
        redact_in(&office, task, &what);
        let mut edited = said("please tell me");
        let fork = turn(&office, Wire::Gemini, &edited, reply());
        assert_ne!(fork, task);
        let files = || all_files(office.conversations.contexts().root());
        assert!(!files().contains("hunter2"));
        // It is still recognised by the joined content of its pieces.
        edited.extend([reply(), part("user", "and on")]);
        assert_eq!(turn(&office, Wire::Gemini, &edited, reply()), fork);
        assert!(!files().contains("hunter2"));
    }
}
