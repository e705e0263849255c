//! `infold redact` in typical use.

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
    would redact messages 1, 3 (2 matches), and in 1 text derived from messages
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
    // A transcript that is stored record by record, and one whose messages are converted.
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

#[test]
fn files_that_hold_a_match_are_named_and_go() {
    let home = Home::new();
    home.run("task new", b"");
    home.run("task push T1", said("user", "hello").as_bytes());
    let task = home.running("T1");
    fs::write(task.join("request.json"), format!("{{\"a\":\"{SECRET}\"}}")).expect("a file");
    fs::write(home.contexts().join("torn-chains-1.db"), SECRET).expect("a file");
    assert_snapshot!(home.tell("
        redact T1 --pattern sk-[a-z0-9]+ --dry-run
        redact T1 --pattern sk-[a-z0-9]+ --yes
        redact T1 --pattern sk-[a-z0-9]+ --yes
        verify T1
    "), @"
    $ infold redact T1 --pattern sk-[a-z0-9]+ --dry-run
    would remove ./contexts/running/T1/request.json
    would remove ./contexts/torn-chains-1.db
    $ infold redact T1 --pattern sk-[a-z0-9]+ --yes
    ./contexts/running/T1/request.json removed
    ./contexts/torn-chains-1.db removed
    $ infold redact T1 --pattern sk-[a-z0-9]+ --yes
    ! error: the pattern matches nothing; nothing was changed
    [1]
    $ infold verify T1
    T1  ok
    ! 1 task checked
    ");
    assert_eq!(holders(&home.contexts()), Vec::<String>::new());
}

#[test]
fn a_match_in_the_name_of_a_tool_is_told() {
    let home = Home::new();
    home.run("task new", b"");
    home.run("task push T1", said("user", "hello").as_bytes());
    home.run(
        "task tool T1",
        br#"{"tool":"swordfish","args":{},"result":"ok"}"#,
    );
    assert_snapshot!(home.tell("
        redact T1 --pattern swordfish --yes
        pin T1 --note 'swordfish'
        redact T1 --pattern swordfish --yes
    "), @"
    $ infold redact T1 --pattern swordfish --yes
    ! error: the pattern matches nothing; nothing was changed
    ! hint: 1 match in ids, roles, types, names and positions, which pair and place messages
    [1]
    $ infold pin T1 --note 'swordfish'
    e2: pinned a note; view 5 → 12 tokens (undo: infold undo t1······)
    $ infold redact T1 --pattern swordfish --yes
    e3: redacted 1 text derived from messages
    ! 1 match left in ids, roles, types, names and positions, which pair and place messages
    ");
}

/// Returns whether a member ties records and messages together.
fn is_structure(name: &str) -> bool {
    let names = "role type name tool_name status id uuid subtype record_type toolName timestamp startTime lastUpdated";
    let ends = ["_id", "_ids", "Id", "ID", "Uuid", "UUID"];
    names.split(' ').any(|known| known == name) || ends.iter().any(|end| name.ends_with(end))
}

/// Calls `take` with each text that is content.
fn contents(json: &serde_json::Value, is_data: bool, take: &mut dyn FnMut(&str)) {
    const DATA: &str = "input args result arguments response output action operation toolUseResult";
    match json {
        serde_json::Value::String(text) => take(text),
        serde_json::Value::Array(all) => all.iter().for_each(|one| contents(one, is_data, take)),
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                let is_data = is_data || DATA.split(' ').any(|known| known == name);
                if is_data || !is_structure(name) {
                    contents(value, is_data, take);
                }
            }
        }
        _ => {}
    }
}

/// Returns the values of a transcript: one on each line, or one document. Those with half a surrogate pair are left
/// out.
#[track_caller]
fn values(text: &str, what: &str) -> Vec<serde_json::Value> {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let is_json = |text: &str| infold_wire::Json::parse(text.as_bytes()).is_ok();
    let values = if lines.iter().all(|line| is_json(line)) {
        lines
    } else {
        vec![text]
    };
    for value in &values {
        assert!(is_json(value), "{what}: {value}");
    }
    let values = values.into_iter();
    values
        .filter_map(|value| serde_json::from_str(value).ok())
        .collect()
}

/// Redacts an imported transcript: the export can be imported again, without the redacted texts.
fn check_import(name: &str, transcript: &[u8], how: &[&str]) {
    let home = Home::new();
    home.file("in.jsonl", transcript);
    let what = format!("{name} {how:?}");
    let ran = home.run("import in.jsonl", b"");
    assert_eq!(ran.code, 0, "{what}: {}", home.transcript(&ran));
    let redacted = home.command("redact T1 --yes").args(how).output();
    let redacted = redacted.expect("the command runs");
    let stderr = String::from_utf8_lossy(&redacted.stderr);
    let is_nothing = stderr.contains("matches nothing");
    assert!(redacted.status.success() || is_nothing, "{what}: {stderr}");
    let ran = home.run("verify", b"");
    assert_eq!(ran.code, 0, "{what}: {}", home.transcript(&ran));
    let exported = home.run("export T1", b"");
    assert_eq!(exported.code, 0, "{what}: {}", home.transcript(&exported));
    let text = String::from_utf8(exported.stdout).expect("a text");
    let values = values(text.trim_start_matches('\u{feff}'), &what);
    if let ["--pattern", pattern] = how {
        let pattern: infold::redact::Pattern = pattern.parse().expect("a pattern");
        let marker: infold::redact::Pattern = r"\[redacted e\d+\]".parse().expect("a pattern");
        for value in &values {
            contents(value, false, &mut |said| {
                let mut said = said.to_owned();
                for range in marker.find(&said).into_iter().rev() {
                    said.replace_range(range, "\u{1}");
                }
                assert!(pattern.find(&said).is_empty(), "{what}: {said}");
            });
        }
    }
    home.file("out.jsonl", &text);
    let ran = home.run("import out.jsonl", b"");
    assert_eq!(ran.code, 0, "{what}: {}", home.transcript(&ran));
}

const WAYS: [&[&str]; 10] = [
    &["1"],
    &["2", "4..5"],
    &["1..6"],
    &["--pattern", r"password\W+\w+"],
    &["--pattern", r"\d{5}"],
    &["--pattern", r#""password":"[^"]*""#],
    &["--pattern", "true|false|null"],
    &["--pattern", "n"],
    &["--pattern", r"\\"],
    &["--pattern", r"content|message|uuid|payload|parts|user"],
];

/// A session of Claude Code in which each result repeats its message in numbers, names and booleans.
fn claude_session() -> String {
    let results = [
        ("port 48231", r#"{"port":48231}"#),
        ("password tiger99", r#"{"password":"tiger99","n":5}"#),
        ("true null zip", r#"{"verbose":true,"zip":null}"#),
        ("59113 flag", r#"{"a":59113,"flag":true}"#),
        (
            "type user message role uuid u1 2026 01T00",
            r#"{"a":"type user"}"#,
        ),
        ("a\\\"b\nc", r#"{"password":"a\\\"b\nc","é":"\u00e9 x"}"#),
    ];
    let mut session = String::new();
    let mut parent = serde_json::Value::Null;
    for (at, (content, result)) in results.into_iter().enumerate() {
        let (user, assistant) = (format!("u{at}"), format!("a{at}"));
        let user_line = serde_json::json!({"type": "user", "parentUuid": parent, "uuid": user, "sessionId": "s", "isSidechain": false,
            "timestamp": "2026-01-01T00:00:01.000Z", "message": {"role": "user", "content": content}});
        let line = user_line.to_string();
        let line = line.strip_suffix('}').expect("an object");
        session += &format!("{line},\"toolUseResult\":{result}}}\n");
        let line = serde_json::json!({"type": "assistant", "parentUuid": user, "uuid": assistant, "sessionId": "s", "isSidechain": false,
            "timestamp": "2026-01-01T00:00:02.000Z", "message": {"id": format!("m{at}"), "role": "assistant", "content": [{"type": "text", "text": "ok"}]}});
        session += &format!("{line}\n");
        parent = assistant.into();
    }
    session
}

#[test]
fn what_an_import_kept_is_redacted_value_by_value() {
    let session = claude_session();
    let ways = [
        &["1", "5"][..],
        &["3", "9", "11"],
        &["7"],
        &["--pattern", r"port\W+\d+"],
        &["--pattern", "tiger99.*"],
        &["--pattern", "(?s)a.*"],
        &["--pattern", "[\":,{}]"],
        &["--pattern", "u00"],
        &["--pattern", r"\d+"],
        // The pattern matches its own marker, so only the form of the remaining text is checked.
        &["--pattern", ".", "1..12"],
    ];
    for how in ways.into_iter().chain(WAYS) {
        check_import("claude-code", session.as_bytes(), how);
    }
    let home = Home::new();
    home.file("in.jsonl", session);
    home.tell("import in.jsonl\nredact T1 1 7 --yes");
    let text = String::from_utf8(home.run("export T1", b"").stdout).expect("a text");
    for (line, end) in [
        (0, r#""toolUseResult":{"[redacted e1]":"[redacted e1]"}}"#),
        (
            6,
            r#""toolUseResult":{"a":"[redacted e1]","[redacted e1]":true}}"#,
        ),
    ] {
        let line = text.lines().nth(line).unwrap_or_default();
        assert!(line.ends_with(end), "{line}");
    }
    // A pattern may begin in a name and end in its value.
    let home = Home::new();
    home.file("in.jsonl", claude_session());
    home.tell(
        r"import in.jsonl
        redact T1 --yes --pattern password\W+tiger\w+
        redact T1 --yes --pattern port\W+\d+",
    );
    let text = String::from_utf8(home.run("export T1", b"").stdout).expect("a text");
    assert!(
        !text.contains("tiger99") && !text.contains("48231"),
        "{text}"
    );
}

#[test]
fn redacted_transcripts_of_every_format_can_be_imported_again() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let formats = [
        "openai",
        "anthropic",
        "gemini",
        "roo",
        "claude-code",
        "codex",
        "gemini-cli",
        "pi",
    ];
    for name in ["session.jsonl", "long-session.jsonl"] {
        let home = Home::new();
        let ran = home.run(&format!("import {}", examples.join(name).display()), b"");
        assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
        for (at, format) in formats.into_iter().enumerate() {
            let transcript = home
                .run(&format!("export T1 --format {format}"), b"")
                .stdout;
            for (way, how) in WAYS.into_iter().enumerate() {
                // Half of the ways for the short one, one for the long one.
                let is_tried = match name {
                    "session.jsonl" => (way + at) % 2 == 0,
                    _ => way == at + 1,
                };
                if is_tried {
                    check_import(&format!("{name} {format}"), &transcript, how);
                }
            }
        }
    }
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infold-wire/tests/transcripts");
    for entry in fs::read_dir(fixtures).expect("fixtures").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            continue;
        }
        let transcript = fs::read(entry.path()).expect("a file");
        for how in [WAYS[0], WAYS[7], WAYS[9]] {
            check_import(&name, &transcript, how);
        }
    }
}

/// Sessions of real work: the first lines of all files in the directory that `INFOLD_SESSIONS` names.
#[test]
fn redacted_sessions_of_claude_code_can_be_imported_again() {
    let Some(dir) = std::env::var_os("INFOLD_SESSIONS") else {
        return;
    };
    for (at, entry) in fs::read_dir(dir)
        .expect("a directory")
        .flatten()
        .enumerate()
    {
        let text = fs::read_to_string(entry.path()).expect("a session");
        let lines: String = text.split_inclusive('\n').take(250).collect();
        let name = entry.path().display().to_string();
        for way in [at % WAYS.len(), (at * 3 + 5) % WAYS.len()] {
            check_import(&name, lines.as_bytes(), WAYS[way]);
        }
    }
}
