//! `infold redact` as people meet it.

mod common;

use std::fs;
use std::path::Path;

use common::{Home, said};
use insta::assert_snapshot;

const SECRET: &str = "sk-wyvern7741";

/// The files that hold the secret.
fn holders(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for path in fs::read_dir(dir).expect("a directory").flatten() {
        let path = path.path();
        if path.is_dir() {
            found.extend(holders(&path));
        } else if String::from_utf8_lossy(&fs::read(&path).expect("a file")).contains("wyvern") {
            found.push(path.display().to_string());
        }
    }
    found
}

fn home() -> Home {
    let home = Home::new();
    home.run("task new", b"");
    let lines = [
        said("user", &format!("the key is {SECRET}")),
        said("assistant", "noted"),
        said("user", &format!("again: {SECRET} and {SECRET}")),
        said("assistant", "yes"),
    ];
    home.run("task push T1", lines.concat().as_bytes());
    home
}

#[test]
fn a_pattern_is_previewed_and_replaced() {
    let home = home();
    home.run(
        "condense T1 2..3 --text -",
        format!("key {SECRET}").as_bytes(),
    );
    assert_snapshot!(home.tell("
        redact T1 --pattern sk-[a-z0-9]+ --dry-run
        redact T1 --pattern sk-[a-z0-9]+
        redact T1 --pattern sk-[a-z0-9]+ --yes
        recall T1 1..3
        redact T1 --pattern sk-[a-z0-9]+ --yes
        undo T1
        verify T1
    "), @r#"
    $ infold redact T1 --pattern sk-[a-z0-9]+ --dry-run
    would redact messages 1, 3 (2 matches)
    $ infold redact T1 --pattern sk-[a-z0-9]+
    ! error: this removes the content of messages permanently, and there is no terminal to confirm it
    ! hint: --yes redacts without confirmation, --dry-run prints what would be redacted
    [2]
    $ infold redact T1 --pattern sk-[a-z0-9]+ --yes
    e2: redacted messages 1, 3 (2 matches), and in 1 text derived from messages
    $ infold recall T1 1..3
    ── 1 user · YYYY-MM-DDThh:mm:ss.mmmZ
    the key is [redacted e2]
    ── 2 model · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    noted
    ── 3 user · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    again: [redacted e2] and [redacted e2]
    $ infold redact T1 --pattern sk-[a-z0-9]+ --yes
    ! error: the pattern matches nothing; nothing was changed
    [1]
    $ infold undo T1
    undid e1; view 57 → 43 tokens (redo: infold redo t1······)
    $ infold verify T1
    T1  ok
    ! 1 task checked
    "#);
    assert_eq!(holders(&home.contexts()), Vec::<String>::new());
}

#[test]
fn messages_are_redacted_whole() {
    let home = home();
    assert_snapshot!(home.tell("
        redact T1 1 3..3 --yes
        view T1
        log T1
        verify T1
    "), @r#"
    $ infold redact T1 1 3..3 --yes
    e1: redacted messages 1, 3
    $ infold view T1
    1        user   [redacted e1]                                                              10 tokens
    2        model  noted                                                                       6 tokens
    3        user   [redacted e1]                                                              10 tokens
    4        model  yes                                                                         5 tokens
    ! view 31 tokens, log 31 in 4 messages
    $ infold log T1
    1        user   [redacted e1]                                                              10 tokens
    2        model  noted                                                                       6 tokens
    3        user   [redacted e1]                                                              10 tokens
    4        model  yes                                                                         5 tokens
    e1       redacted messages 1, 3
    $ infold verify T1
    T1  ok
    ! 1 task checked
    "#);
    assert_eq!(holders(&home.contexts()), Vec::<String>::new());
}

#[test]
fn a_pattern_may_begin_with_a_hyphen() {
    let home = Home::new();
    home.run("task new", b"");
    home.run(
        "task push T1",
        said("user", "-----BEGIN KEY----- wyvern").as_bytes(),
    );
    assert_snapshot!(home.tell("
        redact T1 --pattern -----BEGIN.* --dry-run
        redact T1 --pattern=-----BEGIN.* --yes
    "), @"
    $ infold redact T1 --pattern -----BEGIN.* --dry-run
    would redact message 1
    $ infold redact T1 --pattern=-----BEGIN.* --yes
    e1: redacted message 1
    ");
    assert_eq!(holders(&home.contexts()), Vec::<String>::new());
}

#[test]
fn what_cannot_be_redacted_is_told() {
    let home = home();
    let before = home.bytes();
    assert_snapshot!(home.tell("
        redact T1
        redact T1 9 --yes
        redact T1 0
        redact T1 --pattern nowhere --yes
        redact T1 --pattern nowhere --dry-run
        redact T1 --pattern a(b --yes
        redact T1 --pattern x* --yes
        redact T9 1 --yes
        redact T1 1
    "), @r#"
    $ infold redact T1
    ! error: the following required arguments were not provided:
    !   <SEQ|A..B>...
    !
    ! Usage: infold redact <TASK> <SEQ|A..B>...
    !
    ! For more information, try '--help'.
    [2]
    $ infold redact T1 9 --yes
    ! error: message 9 does not exist; the last one is 4
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold redact T1 0
    ! error: invalid value '0' for '[SEQ|A..B]...': `0` is not a range of messages such as 3..12
    !
    ! For more information, try '--help'.
    [2]
    $ infold redact T1 --pattern nowhere --yes
    ! error: the pattern matches nothing; nothing was changed
    [1]
    $ infold redact T1 --pattern nowhere --dry-run
    ! error: the pattern matches nothing; nothing was changed
    [1]
    $ infold redact T1 --pattern a(b --yes
    ! error: invalid value 'a(b' for '--pattern <RE>': not a regular expression: unclosed group at character 2
    !
    ! For more information, try '--help'.
    [2]
    $ infold redact T1 --pattern x* --yes
    ! error: invalid value 'x*' for '--pattern <RE>': a pattern that matches the empty string would be found everywhere
    !
    ! For more information, try '--help'.
    [2]
    $ infold redact T9 1 --yes
    ! error: no task `T9`
    ! hint: nearest: T1; `infold task list` lists all
    [2]
    $ infold redact T1 1
    ! error: this removes the content of messages permanently, and there is no terminal to confirm it
    ! hint: --yes redacts without confirmation, --dry-run prints what would be redacted
    [2]
    "#);
    let now = home.bytes();
    for name in ["messages.jsonl", "events.jsonl"] {
        let of = |files: &std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>| {
            let file = files.iter().find(|(path, _)| path.ends_with(name));
            file.map(|(_, bytes)| bytes.clone())
        };
        assert_eq!(of(&now), of(&before), "{name}");
    }
}

#[test]
fn an_import_is_exported_with_markers_in_it() {
    // One that is kept record for record, one whose messages are written in another form.
    let claude = format!(
        "{}\n{}\n",
        serde_json::json!({"type": "user", "uuid": "a", "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": format!("my key: {SECRET}")}, "toolUseResult": {"note": SECRET}}),
        serde_json::json!({"type": "assistant", "uuid": "b", "parentUuid": "a", "sessionId": "s", "timestamp": "2026-01-01T00:00:01.000Z",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "fine"}]}}),
    );
    let codex = format!(
        "{}\n{}\n{}\n",
        serde_json::json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": "session_meta", "payload": {"id": "s", "cwd": "/w"}}),
        serde_json::json!({"timestamp": "2026-01-01T00:00:01.000Z", "type": "response_item", "payload":
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": format!("my key: {SECRET}")}]}}),
        serde_json::json!({"timestamp": "2026-01-01T00:00:02.000Z", "type": "event_msg", "payload":
            {"type": "user_message", "message": format!("my \"key\": {SECRET}")}}),
    );
    for (name, text) in [("claude.jsonl", claude), ("codex.jsonl", codex)] {
        for how in ["1 --yes", "--pattern sk-[a-z0-9]+ --yes"] {
            let home = Home::new();
            home.file(name, &text);
            let ran = home.run(&format!("import {name}"), b"");
            assert_eq!(ran.code, 0, "{}", String::from_utf8_lossy(&ran.stderr));
            let ran = home.run(&format!("redact T1 {how}"), b"");
            assert_eq!(ran.code, 0, "{}", String::from_utf8_lossy(&ran.stderr));
            assert_eq!(
                holders(&home.contexts()),
                Vec::<String>::new(),
                "{name} {how}"
            );
            assert_eq!(home.run("verify", b"").code, 0);
            let out = String::from_utf8(home.run("export T1", b"").stdout).expect("a text");
            assert!(!out.contains("wyvern"), "{out}");
            assert!(out.contains("[redacted e"), "{out}");
            for line in out.lines() {
                serde_json::from_str::<serde_json::Value>(line).expect("JSON");
            }
        }
    }
}
