//! Look-ups that a reply was made with: in the kept view, and in redactions.

use std::fs;

use infold_log::steer::{Side, Target};
use infold_log::{Seq, Span, View};
use infold_store::{Contexts, Durability, Metadata};
use infold_wire::Wire;
use serde_json::json;
use uuid::Uuid;

const SECRET: &str = "hunter2-zzyzx";

/// A task whose last reply was made with a look-up.
fn task(contexts: &Contexts) -> Uuid {
    task_that_says(
        contexts,
        &format!("it is {SECRET}"),
        &format!("it is {SECRET}"),
    )
}

/// A task whose last reply, as the client has it, was made with a look-up that this was said after.
fn task_that_says(contexts: &Contexts, reply: &str, last: &str) -> Uuid {
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let said = [
        json!({"role": "user", "content": "which one?"}).to_string(),
        json!({"role": "assistant", "content": reply}).to_string(),
    ];
    writer.append(&said).expect("messages");
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "recall", "arguments": "{}"}});
    let messages = [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c", "content": SECRET}),
        json!({"role": "assistant", "content": last}),
    ];
    let messages = messages.map(|message| message.to_string().into_bytes());
    let from = Seq::new(2).expect("a seq");
    let event = writer.lookup(from, Wire::Chat, messages.to_vec(), Vec::new());
    event.expect("it is written").expect("a reply");
    id
}

#[test]
fn the_kept_view_shows_them_once_as_the_conversation_grows() {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    let id = task(&contexts);
    for turn in 0..3 {
        let (mut writer, _) = contexts.write(id).expect("a writer");
        let said = [
            json!({"role": "user", "content": format!("and {turn}?")}).to_string(),
            json!({"role": "assistant", "content": "so"}).to_string(),
        ];
        for message in &said {
            writer.append(&[message]).expect("a message");
        }
        drop(writer);
        let problems = contexts.verify(id, None).expect("checked");
        assert!(problems.is_empty(), "turn {turn}: {problems:?}");
        let path = contexts.place(id).expect("a place").join("current.jsonl");
        let current = fs::read_to_string(path).expect("a view");
        assert_eq!(current.matches("tool_call_id").count(), 1, "{current}");
    }
}

#[test]
fn an_empty_last_reply_leaves_a_valid_view() {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    for reply in ["let me see", ""] {
        let id = task_that_says(&contexts, reply, "");
        let (mut writer, _) = contexts.write(id).expect("a writer");
        let next = json!({"role": "user", "content": "and?"}).to_string();
        writer.append(&[next]).expect("a message");
        drop(writer);
        let problems = contexts.verify(id, None).expect("checked");
        assert!(problems.is_empty(), "`{reply}`: {problems:?}");
        let log = contexts.read(id).expect("a log");
        let view = View::of(log.state().shown(), &log).expect("a view");
        let shown = String::from_utf8(log.rendered(&view).expect("rendered")).expect("text");
        assert!(shown.contains(SECRET), "`{reply}`: {shown}");
    }
}

#[test]
fn a_look_up_with_a_secret_is_not_kept_where_secrets_are_replaced() {
    let key = format!("{}_{}", "ghp", "R4kq9ZtX2vLm7WcY1bNd5hJf8sAe3uGpQo6i");
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn).redacting(true);
    for (last, is_kept) in [(key.as_str(), false), ("no secret", true)] {
        let id = task_that_says(&contexts, last, last);
        let log = contexts.read(id).expect("a log");
        let view = View::of(log.state().shown(), &log).expect("a view");
        let shown = String::from_utf8(log.rendered(&view).expect("rendered")).expect("text");
        assert_eq!(shown.contains("tool_call_id"), is_kept, "{shown}");
        assert!(!shown.contains(&key), "{shown}");
        assert!(contexts.verify(id, None).expect("checked").is_empty());
    }
}

#[test]
fn a_rewind_or_a_fork_to_the_reply_keeps_them() {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    let id = task(&contexts);
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let next = json!({"role": "user", "content": "and?"}).to_string();
    writer.append(&[next]).expect("a message");
    writer.note("a note").expect("a note");
    let is_shown = |id: Uuid| {
        let log = contexts.read(id).expect("a log");
        let view = View::of(log.state().shown(), &log).expect("a view");
        let shown = String::from_utf8(log.rendered(&view).expect("rendered")).expect("text");
        assert!(
            !shown.contains("and?") && !shown.contains("a note"),
            "{shown}"
        );
        shown.contains("tool_call_id")
    };
    let at = Target::Message(2);
    writer.rewind(Side::To, at).expect("rewound");
    drop(writer);
    assert!(is_shown(id), "after a rewind");
    let fork = contexts.fork_as(id, Some(at), |_| {}).expect("a fork");
    assert!(is_shown(fork), "in a fork");
    let fork = contexts.fork_as(fork, Some(at), |_| {}).expect("a fork");
    assert!(is_shown(fork), "in a fork of it");
    // Before the reply there is nothing of it.
    let (mut writer, _) = contexts.write(id).expect("a writer");
    writer.rewind(Side::Before, at).expect("rewound");
    drop(writer);
    assert!(!is_shown(id), "before the reply");
}

#[test]
fn they_go_with_a_reply_that_is_redacted() {
    let matches = |text: &str| {
        let found = text.match_indices(SECRET);
        found.map(|(at, hit)| at..at + hit.len()).collect()
    };
    let reply: [Span; 1] = ["2".parse().expect("a span")];
    let targets = [
        infold_store::RedactTarget::Messages(&reply),
        infold_store::RedactTarget::Matches {
            within: None,
            find: &matches,
        },
    ];
    for target in targets {
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Turn);
        let id = task(&contexts);
        contexts.redact(id, target).expect("redacted");
        let dir = contexts.place(id).expect("a place");
        for name in ["messages.jsonl", "events.jsonl", "current.jsonl"] {
            let text = fs::read_to_string(dir.join(name)).expect("a file");
            assert!(!text.contains("zzyzx"), "{name}: {text}");
        }
        assert!(contexts.verify(id, None).expect("checked").is_empty());
    }
}
