//! A redaction covers the records of tools, all members of frames and keys of pushes, and the search for
//! secrets completes it.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use infold_log::Span;
use infold_store::{
    ContentDigest, Contexts, Durability, Metadata, PushKey, RedactTarget, StoredSecret,
};
use infold_wire::Wire;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

const SECRET: &str = "hunter2-zzyzx";

type Find<'a> = &'a dyn Fn(&str) -> Vec<Range<usize>>;

fn store() -> (TempDir, Contexts) {
    let root = tempfile::tempdir().expect("a directory");
    let contexts = Contexts::new(root.path(), Durability::Turn);
    (root, contexts)
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, found),
            path => found.push(path),
        }
    }
}

fn assert_gone(root: &Path, step: &str) {
    let mut all = Vec::new();
    files(root, &mut all);
    all.retain(|path| {
        let text = String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
        text.contains("hunter2") || text.contains("zzyzx")
    });
    assert_eq!(all, Vec::<PathBuf>::new(), "{step}");
}

/// Makes a task with these messages and the records of the tools in them.
fn task_with(contexts: &Contexts, messages: &[Value]) -> Uuid {
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let messages: Vec<String> = messages.iter().map(Value::to_string).collect();
    let span = writer.append(&messages).expect("appended");
    let count = writer.record_tools(span.expect("messages"));
    assert_eq!(count.expect("recorded"), 1);
    id
}

/// Finds a text from one word to another, or to its end.
fn from_to(text: &str, from: &str, to: Option<&str>) -> Vec<Range<usize>> {
    let Some(start) = text.find(from).filter(|_| text.contains(SECRET)) else {
        return Vec::new();
    };
    let end = to.map_or(Some(text.len()), |to| {
        let at = text[start..].find(to)?;
        Some(start + at + to.len())
    });
    Vec::from_iter(end.map(|end| start..end))
}

fn call_and_result(wire: Wire) -> [Value; 2] {
    let args = json!({"path": format!("/keys/{SECRET}"), "n": 1});
    match wire {
        Wire::Chat => [
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
                "function": {"name": "read", "arguments": args.to_string()}}]}),
            json!({"role": "tool", "tool_call_id": "c", "content": "done"}),
        ],
        Wire::Responses => [
            json!({"type": "function_call", "call_id": "c", "name": "read", "arguments": args.to_string()}),
            json!({"type": "function_call_output", "call_id": "c", "output": "done"}),
        ],
        Wire::Anthropic => [
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read", "input": args}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]}),
        ],
        Wire::Gemini => [
            json!({"role": "model", "parts": [{"functionCall": {"name": "read", "args": args}}]}),
            json!({"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "done"}}}]}),
        ],
        Wire::Ollama => [
            json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read", "arguments": args}}]}),
            json!({"role": "tool", "tool_name": "read", "content": "done"}),
        ],
    }
}

#[test]
fn a_pattern_that_goes_beyond_arguments_reaches_the_record_of_the_tool() {
    let whole = |text: &str| from_to(text, text.get(..1).unwrap_or_default(), None);
    let named = |text: &str| from_to(text, "\"arguments\":", None);
    for wire in Wire::ALL {
        let is_text = matches!(wire, Wire::Chat | Wire::Responses);
        let finds: [Find<'_>; 2] = [&whole, &named];
        // Arguments that are an object are not searched together with the name that they have.
        for find in finds.into_iter().take(1 + usize::from(is_text)) {
            let (root, contexts) = store();
            let user = json!({"role": "user", "content": "read it"});
            let user = match wire {
                Wire::Gemini => json!({"role": "user", "parts": [{"text": "read it"}]}),
                _ => user,
            };
            let [call, result] = call_and_result(wire);
            let id = task_with(&contexts, &[user, call, result]);
            let target = RedactTarget::Matches { within: None, find };
            contexts.redact(id, target).expect("redacted");
            assert_gone(root.path(), &wire.to_string());
            let dir = contexts.place(id).expect("a directory");
            let tools = fs::read_to_string(dir.join("tools.jsonl")).expect("records");
            let record: Value = serde_json::from_str(&tools).expect("a record");
            assert!(
                record["args"].is_object() && record["result"] == "done",
                "{tools}"
            );
            let registry = contexts.registry().expect("a registry");
            assert!(contexts.verify(id, &registry).expect("verified").is_empty());
        }
    }
}

#[test]
fn a_pattern_over_the_only_member_of_a_result_reaches_the_record_of_the_tool() {
    for member in ["output", "result", "content", "error", "key"] {
        let (root, contexts) = store();
        let response = json!({"name": "read", "response": {member: SECRET}});
        let messages = [
            json!({"role": "user", "parts": [{"text": "read it"}]}),
            json!({"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}),
            json!({"role": "user", "parts": [{"functionResponse": response}]}),
        ];
        let id = task_with(&contexts, &messages);
        let start = format!("\"{member}\":\"");
        let find = |text: &str| from_to(text, &start, Some(SECRET));
        let target = RedactTarget::Matches {
            within: None,
            find: &find,
        };
        contexts.redact(id, target).expect("redacted");
        assert_gone(root.path(), member);
    }
}

/// A message that goes whole is looked for in tools and in all other members, too.
#[test]
fn words_of_a_redacted_message_go_from_every_member_of_frames() {
    let (root, contexts) = store();
    let id = contexts.create(Metadata::default()).expect("a task");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let say = |text: &str| json!({"role": "user", "content": text}).to_string();
    let messages = [
        say(&format!("m {SECRET}")),
        say("log in with the key in version"),
    ];
    writer.append(&messages).expect("messages");
    let members = |version: u32| {
        let tools = json!([{"name": "login", "description": format!("log in with {SECRET} in version {version}"),
            "input_schema": {"type": "object", "properties": {"key": {"const": SECRET, "default": SECRET}}}}]);
        let metadata = json!({"user_id": format!("{version}-{SECRET}"), "by": {SECRET: 1}});
        [
            ("model", json!("m").to_string()),
            ("tools", tools.to_string()),
            ("metadata", metadata.to_string()),
            ("user", json!(SECRET).to_string()),
        ]
    };
    let record = |writer: &mut infold_store::Writer, version: u32| {
        let members = members(version);
        let members: Vec<(&str, &[u8])> = members
            .iter()
            .map(|(name, value)| (*name, value.as_bytes()))
            .collect();
        writer.frame(Wire::Anthropic, &members).expect("a frame");
    };
    record(&mut writer, 1);
    drop(writer);
    let spans: [Span; 1] = ["1".parse().expect("a span")];
    contexts
        .redact(id, RedactTarget::Messages(&spans))
        .expect("redacted");
    assert_gone(root.path(), "redacted");
    let (mut writer, _) = contexts.write(id).expect("a writer");
    record(&mut writer, 2);
    let last = writer.log().last_frame().expect("frames").expect("a frame");
    drop(writer);
    assert_gone(root.path(), "a changed frame");
    // Members that identify the conversation stay, and so do the texts of other messages.
    assert_eq!(last.members["model"], b"\"m\"");
    let tools: Value = serde_json::from_slice(&last.members["tools"]).expect("JSON");
    assert_eq!(tools[0]["name"], "login");
    let description = tools[0]["description"].as_str().expect("a text");
    assert!(description.starts_with("log in with"), "{description}");
}

fn push(contexts: &Contexts, id: Uuid, key: &str, text: &str) -> Option<Span> {
    let message = json!({"role": "user", "content": text})
        .to_string()
        .into_bytes();
    let mut digest = ContentDigest::default();
    digest.add(&message);
    let key = PushKey::new(key, digest).expect("a key");
    let key = contexts.stored_key(key).expect("a key");
    let mut messages = std::iter::once(message);
    let (mut writer, _) = contexts.write(id).expect("a writer");
    let pushed = writer.push(Some(&key), &mut || Ok(messages.next()));
    pushed.expect("pushed")
}

#[test]
fn the_redacted_key_of_a_push_is_not_written_again_for_another_task() {
    let (root, contexts) = store();
    let key = format!("run of {SECRET}");
    let one = contexts.create(Metadata::default()).expect("a task");
    let other = contexts.create(Metadata::default()).expect("a task");
    let pushed = push(&contexts, one, &key, "hello");
    let find = |text: &str| from_to(text, SECRET, Some(SECRET));
    let target = RedactTarget::Matches {
        within: None,
        find: &find,
    };
    contexts.redact(one, target).expect("redacted");
    assert_gone(root.path(), "redacted");
    for _ in 0..2 {
        assert_eq!(push(&contexts, one, &key, "hello"), pushed);
        let also = push(&contexts, other, &key, "hello");
        assert!(also.is_some());
        // Once for each task.
        assert_eq!(push(&contexts, other, &key, "hello"), also);
        assert_gone(root.path(), "pushed again");
        // Without its index it is known by the logs.
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(root.path().join(format!("chains.db{suffix}")));
        }
    }
    let third = contexts.create(Metadata::default()).expect("a task");
    push(&contexts, third, &key, "hello");
    assert_gone(root.path(), "without the index");
    let kept = push(&contexts, other, "another key", "hello");
    assert!(kept.is_some());
    let dir = contexts.place(other).expect("a directory");
    let events = fs::read_to_string(dir.join("events.jsonl")).expect("events");
    assert!(events.contains("\"another key\""));
}

/// A redaction that was decided and killed is completed before anything is looked at.
#[test]
fn who_looks_for_secrets_completes_a_redaction_that_was_killed() {
    let key = ["ghp", "_", "Zq7Rk2Xv9Lm4Tb8Nc3Wd6Hf1Gj5Ps0YtEuAi"].concat();
    for is_beside in [false, true] {
        let (root, contexts) = store();
        let id = contexts.create(Metadata::default()).expect("a task");
        let (mut writer, _) = contexts.write(id).expect("a writer");
        let text = json!({"role": "user", "content": format!("it is {key}")});
        writer.append(&[text.to_string()]).expect("a message");
        drop(writer);
        let dir = contexts.place(id).expect("a directory");
        let path = dir.join("messages.jsonl");
        let before = fs::read(&path).expect("messages");
        let spans: [Span; 1] = ["1".parse().expect("a span")];
        let target = RedactTarget::Messages(&spans);
        contexts.redact(id, target).expect("redacted");
        // As it was right after the decision.
        let staged = root.path().join("redacting").join(id.to_string());
        fs::create_dir_all(&staged).expect("a directory");
        for name in ["messages.jsonl", "events.jsonl"] {
            fs::copy(dir.join(name), staged.join(name)).expect("copied");
        }
        fs::write(&path, before).expect("written");
        let plan = json!({"tasks": [id.to_string()], "rows": [], "names": [], "removed": []});
        let plan_path = root.path().join("redacting/plan.json");
        fs::write(plan_path, plan.to_string()).expect("a plan");
        let mut found: Vec<StoredSecret> = Vec::new();
        let mut take = |secret| found.push(secret);
        if is_beside {
            let looked = contexts.find_secrets_beside_tasks(&mut |_| (), &mut take);
            looked.expect("searched");
        } else {
            let looked = contexts.find_secrets(id, &mut |_| (), &mut take);
            looked.expect("searched");
        }
        assert_eq!(found, []);
        assert!(!root.path().join("redacting").exists());
        let messages = fs::read_to_string(&path).expect("messages");
        assert!(messages.contains("[redacted e1]"));
    }
}
