//! Look-ups that a reply was made with: in the kept view, and in redactions.

use std::fs;

use infold_log::{Seq, Span};
use infold_store::{Contexts, Durability, Metadata, Target};
use infold_wire::Wire;
use serde_json::json;
use uuid::Uuid;

const SECRET: &str = "hunter2-zzyzx";

/// A task whose last reply was made with a look-up.
fn task(contexts: &Contexts) -> Uuid {
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let said = [
        json!({"role": "user", "content": "which one?"}).to_string(),
        json!({"role": "assistant", "content": format!("it is {SECRET}")}).to_string(),
    ];
    writer.append(&said).expect("messages");
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "recall", "arguments": "{}"}});
    let messages = [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c", "content": SECRET}),
        json!({"role": "assistant", "content": format!("it is {SECRET}")}),
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
fn they_go_with_a_reply_that_is_redacted() {
    let matches = |text: &str| {
        let found = text.match_indices(SECRET);
        found.map(|(at, hit)| at..at + hit.len()).collect()
    };
    let reply: [Span; 1] = ["2".parse().expect("a span")];
    let targets = [
        Target::Messages(&reply),
        Target::Matches {
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
