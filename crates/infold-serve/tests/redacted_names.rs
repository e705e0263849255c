//! The redacted name of a conversation is recognised by its digest: the conversation continues as the same task, and
//! the name does not come back to the disk.

mod front;
mod office;

use front::{Setup, place};
use infold::redact::RedactionRequest;
use infold_serve::ConversationName;
use infold_store::TaskError;
use infold_testkit::{Script, Server, Step};
use infold_wire::Wire;
use office::{Office, assistant, user};
use serde_json::{Value, json};
use uuid::Uuid;

const SECRET: &str = "hunter2zzyzx";

type MakeName = fn(String) -> ConversationName;

const KINDS: [MakeName; 2] = [ConversationName::Given, ConversationName::Session];

fn by_pattern(pattern: &str) -> RedactionRequest {
    RedactionRequest {
        spans: Vec::new(),
        pattern: Some(pattern.parse().expect("a pattern")),
    }
}

fn redact(office: &Office, task: Uuid, pattern: &str) {
    let contexts = office.conversations.contexts();
    loop {
        match by_pattern(pattern).carry_out(contexts, task) {
            Err(TaskError::Open { task, .. }) => office.conversations.release(task),
            done => {
                assert!(!done.expect("it is redacted").is_empty());
                return;
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

fn assert_gone(office: &Office, place: &str) {
    let files = all_files(office.conversations.contexts().root());
    let at = files.find(SECRET);
    let around = at.map(|at| files[..at].chars().rev().take(80).collect::<Vec<_>>());
    let around = around.map(|chars| chars.into_iter().rev().collect::<String>());
    assert_eq!(around, None, "{place}");
}

/// Sends the conversation with one more message.
fn go_on(office: &Office, said: &mut Vec<Value>, name: Option<ConversationName>) -> Uuid {
    said.push(user(&format!("question {}", said.len())));
    let answer = format!("answer {}", said.len());
    let task = office.turn(said, &answer, name);
    said.push(assistant(&answer));
    task
}

#[test]
fn a_conversation_whose_name_was_redacted_goes_on_as_the_same_task() {
    for kind in KINDS {
        // Named from its beginning, or later: then only the index knew the name.
        for is_named_first in [true, false] {
            let mut office = Office::new(100_000);
            let name = || Some(kind(format!("about {SECRET}, really")));
            let mut said = Vec::new();
            let first = name().filter(|_| is_named_first);
            let task = go_on(&office, &mut said, first);
            assert_eq!(go_on(&office, &mut said, name()), task);
            redact(&office, task, SECRET);
            assert_gone(&office, "redacted");
            for step in 0..2 {
                assert_eq!(go_on(&office, &mut said, name()), task, "{step}");
                assert_gone(&office, "gone on with");
                office.restart();
                assert_eq!(go_on(&office, &mut said, name()), task, "{step}");
                assert_gone(&office, "after a restart");
                office.restart_without_index();
                assert_eq!(go_on(&office, &mut said, name()), task, "{step}");
                assert_gone(&office, "without the index");
                // A pattern that matches digests leaves them.
                redact(&office, task, "answer|[0-9a-f]{6,}|redacted");
            }
            assert_eq!(office.tasks(), 1);
            // Another conversation with this name, and one that leaves the first.
            let mut other = vec![user("something else"), assistant("what?")];
            let other = go_on(&office, &mut other, name());
            let mut fork = said[..3].to_vec();
            let fork = go_on(&office, &mut fork, name());
            assert!(other != task && fork != other);
            assert_gone(&office, "elsewhere");
        }
    }
}

#[test]
fn an_unanswered_conversation_whose_name_was_redacted_is_recognised() {
    for kind in KINDS {
        let office = Office::new(100_000);
        let name = || Some(kind(SECRET.to_owned()));
        let said = [user("are you there?")];
        let task = office.ask(&said, name()).0.task();
        redact(&office, task, SECRET);
        assert_eq!(office.ask(&said, name()).0.task(), task);
        assert_eq!(office.tasks(), 1);
        assert_gone(&office, "asked again");
    }
}

/// A session that the body names, which is recorded with the frame of its request.
#[test]
fn a_session_in_the_body_does_not_come_back_with_its_frame() {
    let mut office = Office::new(100_000);
    let turn = |office: &Office, said: &[&str]| {
        let messages = said.iter().enumerate().map(|(at, text)| {
            let role = ["user", "assistant"][at % 2];
            json!({"type": "message", "role": role, "content": text})
        });
        let body = json!({"model": "m", "prompt_cache_key": format!("for {SECRET}"),
            "input": messages.collect::<Vec<_>>()});
        let call = office.call(Wire::Responses, &body, None);
        let accepted = office.conversations.accept(&call).expect("it is taken");
        let mut exchange = accepted.exchange;
        let mut reply = office::reply("");
        let text = json!({"type": "message", "role": "assistant", "content": "fine"});
        reply.messages = vec![text.to_string().into_bytes()];
        exchange.record(reply).expect("it is recorded");
        exchange.task()
    };
    let said = ["hello", "fine", "and?", "fine", "so?", "fine", "well?"];
    let task = turn(&office, &said[..1]);
    assert_eq!(turn(&office, &said[..3]), task);
    redact(&office, task, SECRET);
    assert_gone(&office, "redacted");
    assert_eq!(turn(&office, &said[..5]), task);
    assert_gone(&office, "gone on with");
    office.restart_without_index();
    assert_eq!(turn(&office, &said), task);
    assert_gone(&office, "without the index");
    // A client continues from an earlier point, and then both branches are continued.
    let fork = turn(&office, &["hello", "fine", "or else?"]);
    assert_ne!(fork, task);
    assert_gone(&office, "in a fork");
    assert_eq!(
        turn(&office, &["hello", "fine", "or else?", "fine", "yes"]),
        fork
    );
    assert_gone(&office, "in a fork that goes on");
}

/// A session that the body names, on the wires that have one: as a text, at the end of a user id, and in a user id that is JSON.
#[test]
fn a_session_in_the_body_does_not_come_back_for_another_task() {
    let user_id = format!("user_1_account_2_session_{SECRET}");
    let as_json = json!({"device_id": "d", "session_id": SECRET}).to_string();
    let bodies = [
        (
            Wire::Responses,
            "input",
            json!({"prompt_cache_key": SECRET}),
        ),
        (Wire::Chat, "messages", json!({"prompt_cache_key": SECRET})),
        (
            Wire::Anthropic,
            "messages",
            json!({"max_tokens": 9, "metadata": {"user_id": user_id}}),
        ),
        (
            Wire::Anthropic,
            "messages",
            json!({"max_tokens": 9, "metadata": {"user_id": as_json}}),
        ),
    ];
    for (wire, list, members) in bodies {
        let mut office = Office::new(100_000);
        let ask = |office: &Office, text: &str| {
            let mut body = members.clone();
            body["model"] = json!("m");
            body[list] = json!([{"role": "user", "content": text}]);
            let call = office.call(wire, &body, None);
            let accepted = office.conversations.accept(&call).expect("it is taken");
            let sent = office::bytes(&call.body, &accepted.outgoing);
            assert_eq!(sent, body.to_string().into_bytes());
            let mut exchange = accepted.exchange;
            exchange.record(office::reply("fine")).expect("recorded");
            exchange.task()
        };
        let task = ask(&office, "hello");
        redact(&office, task, SECRET);
        assert_gone(&office, "redacted");
        let other = ask(&office, "something else");
        assert_ne!(other, task);
        assert_gone(&office, "another task");
        let log = office.conversations.contexts().read(other).expect("a log");
        let frame = log.last_frame().expect("frames").expect("a frame");
        let frame = format!(
            "{:?}",
            frame
                .members
                .values()
                .map(|value| String::from_utf8_lossy(value))
                .collect::<Vec<_>>()
        );
        assert!(frame.contains("[redacted #"), "{frame}");
        office.restart_without_index();
        assert_ne!(ask(&office, "a third thing"), other);
        assert_gone(&office, "without the index");
    }
}

#[test]
fn words_that_tell_what_a_task_is_stay() {
    let mut office = Office::new(100_000);
    let name = || Some(ConversationName::Given("nightly".to_owned()));
    let mut said = Vec::new();
    let task = go_on(&office, &mut said, name());
    redact(&office, task, "proxy|named|question|given");
    office.restart_without_index();
    assert_eq!(go_on(&office, &mut said, name()), task);
    assert_eq!(office.tasks(), 1);
}

#[test]
fn another_task_of_that_name_keeps_it() {
    let office = Office::new(100_000);
    let name = || Some(ConversationName::Given(format!("about {SECRET}")));
    let (mut one, mut other) = (vec![], vec![user("hello"), assistant("who is there?")]);
    let redacted = go_on(&office, &mut one, name());
    let kept = go_on(&office, &mut other, name());
    redact(&office, redacted, SECRET);
    assert_eq!(go_on(&office, &mut one, name()), redacted);
    assert_eq!(go_on(&office, &mut other, name()), kept);
    assert_eq!(office.tasks(), 2);
}

#[test]
fn names_with_secrets_are_kept_as_digests_where_secrets_are_replaced() {
    let key = |end: &str| ["ghp", "_", "Zq7Rk2Xv9Lm4Tb8Nc3Wd6Hf1Gj5Ps0YtEu", end].concat();
    let server = Server::start(Script::new().otherwise(|_| Step::say("fine")));
    let setup = || Setup {
        config: "redact: true\n".to_owned(),
        ..Setup::to(&server.url())
    };
    let mut proxy = setup().start();
    let (path, _) = place(Wire::Chat, false);
    let mut said = Vec::new();
    let mut tasks = Vec::new();
    for round in 0..3 {
        said.push(json!({"role": "user", "content": format!("question {round}")}));
        let body = json!({"model": "m", "messages": said}).to_string();
        said.push(json!({"role": "assistant", "content": "fine"}));
        // The same messages under names that differ in the secret alone: in a header, the path, and a session.
        for end in ["Ai", "Oo"] {
            let name = format!("bot-{}", key(end));
            let given = format!("x-infold-task: {name}\r\n");
            let session = format!("x-session-id: {name}\r\n");
            let in_path = format!("/t/{name}-in-path{path}");
            for (path, headers) in [(path, &*given), (&in_path, ""), (path, &session)] {
                let answer = proxy.post(path, headers, body.as_bytes());
                assert_eq!(answer.status, 200, "{}", answer.text());
                let task = answer.header("x-infold-task").expect("it is recorded");
                tasks.push(task.to_owned());
            }
            assert!(!proxy.kept().contains(&key(end)), "{round}");
        }
        let directory = proxy.directory();
        proxy.finish();
        if round == 1 {
            for suffix in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(directory.path().join(format!("chains.db{suffix}")));
            }
        }
        proxy = setup().start_in(directory);
    }
    assert_eq!(tasks[..6], tasks[6..12]);
    assert_eq!(tasks[..6], tasks[12..]);
    let distinct: std::collections::BTreeSet<_> = tasks.iter().collect();
    assert_eq!(distinct.len(), 6);
}
