//! Redacted messages are still recognised when the client sends them again, and are not recorded again.

mod front;
mod office;

use front::{Proxy, Setup, place};
use infold::redact::RedactionRequest;
use infold_log::Seq;
use infold_serve::ConversationName;
use infold_testkit::{Script, Server, Step};
use infold_wire::Wire;
use office::{Office, assistant, user};
use serde_json::{Value, json};
use uuid::Uuid;

const SECRET: &str = "hunter2zzyzx";

fn of(spans: &str, pattern: Option<&str>) -> RedactionRequest {
    let spans = spans.split_whitespace();
    RedactionRequest {
        spans: spans.map(|span| span.parse().expect("a span")).collect(),
        pattern: pattern.map(|pattern| pattern.parse().expect("a pattern")),
    }
}

/// Redacts like the command: the server is asked to release the task first.
fn redact(proxy: &Proxy, task: Uuid, redact: &RedactionRequest) {
    let contexts = infold_store::Contexts::new(
        proxy.conversations.contexts().root(),
        infold_store::Durability::Turn,
    );
    loop {
        match redact.carry_out(&contexts, task) {
            Err(infold_store::TaskError::Open { task, .. }) => proxy.conversations.release(task),
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

/// Sends the conversation with one more message; returns the task.
fn ask(proxy: &Proxy, wire: Wire, said: &mut Vec<Value>, text: &str) -> Uuid {
    said.push(message(wire, "user", text));
    let (path, headers) = place(wire, false);
    let answer = proxy.post(path, headers, &body(wire, said));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let task = answer.header("x-infold-task").expect("it is recorded");
    let number = said.len();
    said.push(message(
        wire,
        "assistant",
        &format!("reply to {number} {SECRET}"),
    ));
    task.parse().expect("an id")
}

fn script() -> Script {
    Script::new().otherwise(|seen| {
        let text = String::from_utf8_lossy(seen.body.as_deref().unwrap_or_default()).into_owned();
        let count = text.matches("\"role\"").count();
        Step::say(format!("reply to {count} {SECRET}"))
    })
}

#[test]
fn a_resent_original_is_known_through_the_proxy_on_every_wire() {
    for wire in Wire::ALL {
        for what in [of("1..3", None), of("", Some(SECRET))] {
            let server = Server::start(script());
            let mut proxy = Proxy::to(&server.url());
            let mut said = Vec::new();
            let task = ask(&proxy, wire, &mut said, &format!("my key is {SECRET}"));
            assert_eq!(
                ask(&proxy, wire, &mut said, &format!("{SECRET} again")),
                task
            );
            assert!(proxy.kept().contains(SECRET));
            redact(&proxy, task, &of("4", None));
            redact(&proxy, task, &what);
            assert!(!proxy.kept().contains(SECRET), "{wire}");
            // The client's bytes are sent unchanged, and two messages are recorded.
            said.push(message(wire, "user", "go on"));
            let sent = body(wire, &said);
            let (path, headers) = place(wire, false);
            let answer = proxy.post(path, headers, &sent);
            assert_eq!(
                answer.header("x-infold-task"),
                Some(&*task.to_string()),
                "{wire}"
            );
            let seen = server.last_call().expect("it was asked");
            assert_eq!(seen.body.as_deref(), Some(&*sent), "{wire}");
            let last = |proxy: &Proxy| {
                let log = proxy
                    .conversations
                    .contexts()
                    .read(task)
                    .expect("it can be read");
                log.state().at().seq
            };
            assert_eq!(last(&proxy), 6, "{wire}");
            redact(&proxy, task, &of("", Some(SECRET)));
            assert!(!proxy.kept().contains(SECRET), "{wire}");
            // A server that starts anew knows it, too.
            said.push(message(wire, "assistant", &format!("reply to 5 {SECRET}")));
            let directory = proxy.directory();
            proxy.finish();
            let proxy = Setup::to(&server.url()).start_in(directory);
            assert_eq!(ask(&proxy, wire, &mut said, "still there?"), task, "{wire}");
            assert_eq!(last(&proxy), 8, "{wire}");
            assert_eq!(
                proxy
                    .conversations
                    .contexts()
                    .tasks()
                    .expect("a list")
                    .len(),
                1
            );
        }
    }
}

#[test]
fn a_conversation_is_found_again_when_the_index_is_lost_after_a_redaction() {
    let mut office = Office::new(100_000);
    let said = [user(SECRET), assistant("well"), user("and then?")];
    let task = office.turn(&said[..1], "well", None);
    assert_eq!(office.turn(&said, "nothing", None), task);
    office.conversations.release(task);
    of("1", None)
        .carry_out(office.conversations.contexts(), task)
        .expect("it is redacted");
    office.restart_without_index();
    let on = [&said[..], &[assistant("nothing"), user("bye")]].concat();
    assert_eq!(office.turn(&on, "bye", None), task);
    assert_eq!(office.tasks(), 1);
    assert_eq!(
        office.holds(task)[2..],
        ["and then?", "nothing", "bye", "bye"]
    );
}

/// The key of a conversation of one message depends on more than the message.
#[test]
fn a_conversation_of_one_message_is_found_again_when_the_index_is_lost() {
    for name in [None, Some("nightly")] {
        for is_answered in [true, false] {
            let mut office = Office::new(100_000);
            let name = || name.map(|name| ConversationName::Given(name.to_owned()));
            let said = [user(&format!("my key is {SECRET}"))];
            let turn = |office: &Office| {
                if is_answered {
                    office.turn(&said, "well", name())
                } else {
                    office.ask(&said, name()).0.task()
                }
            };
            let task = turn(&office);
            office.conversations.release(task);
            of("1", None)
                .carry_out(office.conversations.contexts(), task)
                .expect("it is redacted");
            office.restart_without_index();
            assert_eq!(turn(&office), task);
            assert_eq!(office.tasks(), 1);
            assert!(!all(office.conversations.contexts().root()).contains(SECRET));
            // The same messages to another model are another conversation.
            let body = json!({"model": "other", "messages": said});
            let call = office.call(Wire::Chat, &body, None);
            let accepted = office.conversations.accept(&call).expect("it is taken");
            assert_ne!(accepted.exchange.task(), task);
        }
    }
}

#[test]
fn an_output_in_pieces_is_known_when_one_of_them_was_redacted() {
    for gone in ["2", "3", "4", "2..4"] {
        let mut office = Office::new(100_000);
        let part = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
        let mut said = vec![
            part("user", "tell me"),
            part("model", "it is "),
            part("model", SECRET),
            part("model", ", you know"),
            part("user", "thanks"),
        ];
        let take = |office: &Office, said: &[Value]| {
            let call = office.call(Wire::Gemini, &json!({"contents": said}), None);
            let mut exchange = office
                .conversations
                .accept(&call)
                .expect("it is taken")
                .exchange;
            let mut reply = office::reply("");
            reply.messages = vec![part("model", "welcome").to_string().into_bytes()];
            exchange.record(reply).expect("it is recorded");
            exchange.task()
        };
        let task = take(&office, &said);
        office.conversations.release(task);
        of(gone, None)
            .carry_out(office.conversations.contexts(), task)
            .expect("it is redacted");
        for again in 0..2 {
            said.extend([part("model", "welcome"), part("user", "and on")]);
            assert_eq!(take(&office, &said), task, "{gone}");
            let log = office
                .conversations
                .contexts()
                .read(task)
                .expect("it can be read");
            assert_eq!(log.state().at().seq, 8 + 2 * again, "{gone}");
            office.restart_without_index();
        }
        assert_eq!(office.tasks(), 1);
    }
}

/// Returns the contents of all files of a store.
fn all(dir: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            text += &all(&path)
        } else {
            text += &String::from_utf8_lossy(&std::fs::read(&path).expect("a file"))
        }
    }
    text
}

#[test]
fn a_system_prompt_of_a_chat_request_goes_from_its_frames_too() {
    let system = json!({"role": "system", "content": format!("The password is {SECRET}.")});
    let server = Server::start(Script::new().otherwise(|_| Step::say("fine")));
    let proxy = Proxy::to(&server.url());
    let (path, headers) = place(Wire::Chat, false);
    let said = [system, message(Wire::Chat, "user", SECRET)];
    let answer = proxy.post(path, headers, &body(Wire::Chat, &said));
    let task: Uuid = answer
        .header("x-infold-task")
        .expect("a task")
        .parse()
        .expect("an id");
    assert!(proxy.kept().contains(SECRET));
    redact(&proxy, task, &of("1", None));
    assert!(!proxy.kept().contains(SECRET), "{}", proxy.kept());
}

/// A client changes its system prompt and its tools, and continues with the secret in them.
#[test]
fn a_secret_does_not_come_back_with_a_changed_prompt_on_any_wire() {
    for wire in Wire::ALL {
        let server = Server::start(Script::new().otherwise(|_| Step::say("fine")));
        let proxy = Proxy::to(&server.url());
        let mut said = Vec::new();
        let mut turn = |version: u32| {
            said.push(message(wire, "user", &format!("question {version}")));
            let prompt = format!("The password is {SECRET}; version {version}.");
            let mut body: Value = serde_json::from_slice(&body(wire, &said)).expect("JSON");
            match wire {
                Wire::Chat | Wire::Ollama => {
                    let list = body["messages"].as_array_mut().expect("messages");
                    list.insert(0, json!({"role": "system", "content": prompt}));
                }
                Wire::Anthropic => body["system"] = json!([{"type": "text", "text": prompt}]),
                Wire::Responses => body["instructions"] = json!(prompt),
                Wire::Gemini => body["systemInstruction"] = json!({"parts": [{"text": prompt}]}),
            }
            body["metadata"] = json!({"user_id": format!("{SECRET}-{version}")});
            let sent = body.to_string().into_bytes();
            let (path, headers) = place(wire, false);
            let answer = proxy.post(path, headers, &sent);
            assert_eq!(answer.status, 200, "{wire}: {}", answer.text());
            let seen = server.last_call().expect("it was asked");
            assert_eq!(seen.body.as_deref(), Some(&*sent), "{wire}");
            said.push(message(wire, "assistant", "fine"));
            let task = answer.header("x-infold-task").expect("it is recorded");
            task.parse::<Uuid>().expect("an id")
        };
        let task = turn(1);
        assert!(proxy.kept().contains(SECRET), "{wire}");
        redact(&proxy, task, &of("", Some(SECRET)));
        for version in 2..5 {
            assert_eq!(turn(version), task, "{wire}");
            assert!(!proxy.kept().contains(SECRET), "{wire}: {}", proxy.kept());
        }
        assert!(proxy.kept().contains("version 4"), "{wire}");
    }
}

#[test]
fn names_of_conversations_go_too_while_the_server_has_its_databases_open() {
    for is_deleted in [true, false] {
        let office = Office::new(100_000);
        let name = || Some(ConversationName::Given(format!("about {SECRET}")));
        let task = office.turn(&[user(&format!("{SECRET}?"))], "well", name());
        office.turn(&[user("something else")], "yes", None);
        let contexts = office.conversations.contexts();
        assert!(all(contexts.root()).contains(SECRET));
        office.conversations.release(task);
        if is_deleted {
            contexts.delete(task).expect("it is removed")
        } else {
            let redacted = of("", Some(SECRET)).carry_out(contexts, task);
            assert!(!redacted.expect("it is redacted").is_empty());
        }
        assert!(!all(contexts.root()).contains(SECRET), "{is_deleted}");
        assert_eq!(office.tasks(), if is_deleted { 1 } else { 2 });
    }
}

#[test]
fn a_folded_conversation_goes_on_after_a_redaction_with_the_clients_bytes() {
    let office = Office::new(8_000);
    let mut said = Vec::new();
    let long = "and so on and on ".repeat(120);
    let mut task = None;
    for turn in 0..24 {
        said.push(user(&format!(
            "question {turn} about {SECRET}{turn}x {long}"
        )));
        let now = office.turn(&said, &format!("answer {turn}"), None);
        assert_eq!(*task.get_or_insert(now), now);
        said.push(assistant(&format!("answer {turn}")));
    }
    let task = task.expect("a task");
    let contexts = office.conversations.contexts();
    let folds = |contexts: &infold_store::Contexts| {
        let log = contexts.read(task).expect("it can be read");
        let items = log.state().shown().items();
        items
            .iter()
            .filter(|item| matches!(item, infold_log::Item::Fold(_)))
            .count()
    };
    assert!(folds(contexts) > 0);
    office.conversations.release(task);
    of("", Some(&format!("{SECRET}[0-9]+x")))
        .carry_out(contexts, task)
        .expect("it is redacted");
    let log = contexts.read(task).expect("it can be read");
    let before = log.state().at().seq;
    assert!(!String::from_utf8_lossy(&log.message(Seq::FIRST).expect("there")).contains(SECRET));
    said.push(user("go on"));
    let (mut exchange, sent) = office.ask(&said, None);
    exchange.record(office::reply("gone on")).expect("recorded");
    assert_eq!(exchange.task(), task);
    drop(exchange);
    let log = contexts.read(task).expect("it can be read");
    assert_eq!(log.state().at().seq, before + 2);
    // The end of the conversation is sent in the client's own words.
    let sent = sent["messages"].as_array().expect("messages");
    assert!(sent.len() < said.len());
    assert_eq!(sent[sent.len() - 3..], said[said.len() - 3..]);
    assert_eq!(office.tasks(), 1);
}

#[test]
fn the_api_redacts_what_the_server_holds() {
    let server = Server::start(script());
    let proxy = Proxy::to(&server.url());
    let mut said = Vec::new();
    let task = ask(
        &proxy,
        Wire::Chat,
        &mut said,
        &format!("my key is {SECRET}"),
    );
    let path = format!("/infold/api/tasks/{task}/redact");
    let post = |body: Value| {
        proxy.post(
            &path,
            "content-type: application/json\r\n",
            body.to_string().as_bytes(),
        )
    };
    let preview = post(json!({"pattern": SECRET, "dry_run": true}));
    assert_eq!(preview.status, 200, "{}", preview.text());
    assert!(proxy.kept().contains(SECRET));
    let done = post(json!({"pattern": SECRET}));
    assert_eq!(done.status, 200, "{}", done.text());
    let done: Value = serde_json::from_str(&done.text()).expect("JSON");
    assert_eq!(
        done["tasks"][0]["messages"].as_array().map(Vec::len),
        Some(2)
    );
    assert!(!proxy.kept().contains(SECRET));
    assert_eq!(post(json!({"pattern": SECRET})).status, 409);
    assert_eq!(post(json!({"pattern": "a*"})).status, 400);
    assert_eq!(post(json!({})).status, 400);
    assert_eq!(post(json!({"messages": [1, "2..2"]})).status, 200);
    assert_eq!(ask(&proxy, Wire::Chat, &mut said, "go on"), task);
}
