//! The statements of `infold redact` and `infold doctor` about secrets are true after the command.

mod common;

use std::fs;
use std::path::Path;

use common::{Home, talk};
use serde_json::{Value, json};

const SECRET: &str = "sk-wyvern7741";

/// Put together here, so that the repository contains no secret.
fn github() -> String {
    ["gh", "p_", "Zq7Rk2Xv9Lm4Tb8Nc3Wd6Hf1Gj5Ps0YtEuAi"].concat()
}

/// The files that hold a text.
fn holders(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for path in fs::read_dir(dir).expect("a directory").flatten() {
        let path = path.path();
        if path.is_dir() {
            found.extend(holders(&path, text));
        } else if String::from_utf8_lossy(&fs::read(&path).expect("a file")).contains(text) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// A call with a password among its arguments, and its result, on the wires whose arguments differ in form.
fn calls() -> [Vec<Value>; 3] {
    let arguments = json!({"password": SECRET, "user": "me"});
    let text = arguments.to_string();
    [
        vec![
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
                "function": {"name": "login", "arguments": text}}]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "welcome"}),
        ],
        vec![
            json!({"type": "function_call", "call_id": "c1", "name": "login", "arguments": text}),
            json!({"type": "function_call_output", "call_id": "c1", "output": "welcome"}),
        ],
        vec![
            json!({"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "login", "arguments": arguments}}]}),
            json!({"role": "tool", "tool_name": "login", "content": "welcome"}),
        ],
    ]
}

#[test]
fn a_pattern_with_quotes_takes_arguments_and_tool_records_and_leaves_json() {
    let patterns = [
        format!(r#""password":"{SECRET}""#),
        format!(r#""{SECRET}","user":"me""#),
        r#""password":"[^"]*","user""#.to_owned(),
    ];
    for messages in calls() {
        for pattern in &patterns {
            let home = Home::new();
            home.run("task new", b"");
            let lines: String = messages.iter().map(|line| format!("{line}\n")).collect();
            let said = r#"{"role":"user","content":"log in"}"#;
            let ran = home.run("task push T1", format!("{said}\n{lines}").as_bytes());
            assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
            assert!(!holders(&home.contexts(), SECRET).is_empty());
            let ran = home
                .command("redact T1 --yes --pattern")
                .arg(pattern)
                .output();
            let ran = ran.expect("it runs");
            assert!(ran.status.success(), "{pattern}: {ran:?}");
            let left = holders(&home.contexts(), SECRET);
            assert_eq!(left, Vec::<String>::new(), "{pattern} in {lines}");
            let log = fs::read_to_string(home.running("T1").join("messages.jsonl"));
            for line in log.expect("a log").lines() {
                let line: Value = serde_json::from_str(line).expect("JSON");
                let called = &line["tool_calls"][0]["function"]["arguments"];
                for arguments in [called, &line["arguments"]] {
                    if let Some(text) = arguments.as_str() {
                        let parsed: Result<Value, _> = serde_json::from_str(text);
                        assert!(parsed.is_ok_and(|it| it.is_object()), "{text}");
                    }
                }
            }
            let ran = home.run("verify", b"");
            assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
        }
    }
}

#[test]
fn a_match_that_spans_texts_of_a_message_is_told_and_the_command_fails() {
    let home = Home::new();
    home.run("task new", b"");
    let blocks = json!({"role": "user", "content": [
        {"type": "text", "text": format!("half {SECRET}")}, {"type": "text", "text": "other half"}]});
    let lines = format!("{}{blocks}\n", common::said("user", "half other"));
    home.run("task push T1", lines.as_bytes());
    for (pattern, is_done) in [
        ("7741\",\"type[^o]*other", false),
        ("half other|7741\",\"type[^o]*other", true),
    ] {
        let command = || home.command("redact T1 --yes --pattern");
        let ran = command().arg(pattern).output().expect("it runs");
        let text = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(1), "{text}");
        assert!(text.contains("across several texts of message 2"), "{text}");
        let log = fs::read_to_string(home.running("T1").join("messages.jsonl"));
        assert_eq!(log.expect("a log").contains("[redacted e"), is_done);
    }
}

#[test]
fn the_command_that_is_named_for_a_secret_in_a_frame_takes_it_out() {
    let home = Home::new();
    home.file("talk.jsonl", talk(&["hi", "hello"]));
    home.tell("task new\ntask push T1 talk.jsonl");
    let line = json!({"id": 1, "ts": 1, "after": 1, "wire": "anthropic", "set": {
        "metadata": {"user_id": github()}, "user": github(),
        "tools": [{"name": "login", "description": github(), "input_schema": {"type": "object"}}],
    }, "unset": []});
    let path = format!("contexts/running/{}/frames.jsonl", home.task("T1"));
    home.file(&path, format!("{line}\n"));
    let found = home.objects("doctor --secrets");
    assert_eq!(found.len(), 3, "{found:?}");
    for one in &found {
        let command = one["command"].as_str().expect("a command");
        let command = command.strip_prefix("infold ").expect("a command");
        let command = format!("{} --yes", command.replace('\'', ""));
        home.run(&command, b"");
    }
    assert_eq!(home.objects("doctor --secrets"), Vec::<Value>::new());
    assert_eq!(holders(&home.contexts(), &github()), Vec::<String>::new());
    // The name of a tool stays, and no command is named for it.
    let line = line.to_string().replace("login", &github());
    let line = line.replace(
        &format!("\"description\":\"{}\"", github()),
        "\"description\":\"\"",
    );
    home.file(&path, format!("{line}\n"));
    let found = home.objects("doctor --secrets");
    assert_eq!(found.len(), 3, "{found:?}");
    home.command("redact T1 --yes --pattern")
        .arg(github())
        .output()
        .expect("it runs");
    let found = home.objects("doctor --secrets");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&found[0]["command"], &found[0]["stays"]),
        (&Value::Null, &json!(true))
    );
}

#[test]
fn what_a_killed_process_left_has_a_command_that_removes_it() {
    let home = Home::new();
    home.file("talk.jsonl", talk(&[&github(), "hello"]));
    home.tell("task new\ntask push T1 talk.jsonl");
    let dir = home.running("T1");
    let left = dir.with_file_name(format!(".{}", home.task("T1")));
    fs::rename(&dir, &left).expect("hidden");
    // The task has no row yet.
    fs::remove_file(home.contexts().join("tasks.db")).expect("removed");
    let found = home.objects("doctor --secrets");
    assert!(!found.is_empty());
    for one in &found {
        assert_eq!(one["command"], json!("infold doctor --repair"), "{one}");
    }
    // The process that made it has ended.
    home.run("doctor --repair", b"");
    assert!(!left.exists());
    assert_eq!(home.objects("doctor --secrets"), Vec::<Value>::new());
}

#[test]
fn a_damaged_search_index_is_reported_and_removed() {
    let home = Home::new();
    home.file("talk.jsonl", talk(&["the zebra is striped", "hello"]));
    home.tell("task new\ntask push T1 talk.jsonl");
    let search = || home.run("search zebra", b"").code;
    assert_eq!((search(), home.run("verify", b"").code), (0, 0));
    let path = home.contexts().join("search.db");
    let mut bytes = fs::read(&path).expect("an index");
    bytes[4096..8192].fill(0xff);
    fs::write(&path, bytes).expect("written");
    for command in ["verify", "doctor"] {
        let ran = home.run(command, b"");
        let text = home.transcript(&ran);
        assert!(
            ran.code == 1 && text.contains("search.db is damaged"),
            "{text}"
        );
    }
    let ran = home.run("doctor --repair", b"");
    let text = home.transcript(&ran);
    assert!(
        ran.code == 0 && text.contains("search.db is damaged"),
        "{text}"
    );
    assert!(!path.exists());
    assert_eq!((search(), home.run("verify", b"").code), (0, 0));
}
