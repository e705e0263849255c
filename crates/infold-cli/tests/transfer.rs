//! Transcripts come in, and the same bytes go out again.

mod common;

use std::fs;
use std::path::PathBuf;

use common::Home;

fn transcripts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../infold-wire/tests/transcripts")
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(transcripts().join(name)).expect("a fixture")
}

fn names() -> Vec<String> {
    let files = fs::read_dir(transcripts()).expect("fixtures");
    let names = files.map(|file| file.expect("a file").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.into_string().expect("a name"))
        .collect();
    names.sort();
    names
}

/// Imports a file; returns the names of the tasks, in a row.
fn import(home: &Home, name: &str, bytes: &[u8]) -> String {
    home.file(name, bytes);
    let ran = home.run(&format!("import {name}"), b"");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.code, 0, "{name}: {said}");
    String::from_utf8(ran.stdout)
        .expect("ids")
        .lines()
        .collect::<Vec<_>>()
        .join(" ")
}

fn exported(home: &Home, line: &str) -> Vec<u8> {
    let ran = home.run(&format!("export {line}"), b"");
    assert_eq!(ran.code, 0, "{}", String::from_utf8_lossy(&ran.stderr));
    ran.stdout
}

#[test]
fn what_was_imported_is_given_back_byte_for_byte() {
    let home = Home::new();
    for name in names() {
        let bytes = fixture(&name);
        let mut variants = vec![bytes.clone(), bytes.trim_ascii_end().to_vec()];
        variants.push([&bytes[..], b"\n\n"].concat());
        if !name.starts_with("anthropic") {
            variants.push([b"\xef\xbb\xbf", &bytes[..]].concat());
            let text = String::from_utf8_lossy(&bytes).replace('\n', "\r\n");
            variants.push(text.into_bytes());
        }
        for bytes in variants {
            let tasks = import(&home, &name, &bytes);
            let back = exported(&home, &tasks);
            assert_eq!(
                String::from_utf8_lossy(&back),
                String::from_utf8_lossy(&bytes),
                "{name}"
            );
        }
    }
    let verified = home.run("verify", b"");
    assert_eq!(
        verified.code,
        0,
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );
}

#[test]
fn importing_tells_what_was_read() {
    let home = Home::new();
    for name in names() {
        home.file(&name, fixture(&name));
    }
    insta::assert_snapshot!(home.tell(
        "
        import claude-code.jsonl
        view T1
        import openai-several.jsonl --json
        import roo.json
        folds T5
        undo T5
        view T5
    "
    ));
}

#[test]
fn what_was_said_since_comes_at_the_end() {
    let home = Home::new();
    let said = br#"{"role":"user","content":[{"type":"text","text":"said since"}]}"#;
    for name in names() {
        if name.starts_with("aider") || name.starts_with("swe") || name.contains("several") {
            continue;
        }
        let task = import(&home, &name, &fixture(&name));
        let before = home.run(&format!("log {task} --json"), b"").stdout;
        assert_eq!(home.run(&format!("task push {task}"), said).code, 0);
        let longer = exported(&home, &task);
        let again = import(&home, &format!("again-{name}"), &longer);
        let after = home.run(&format!("log {again} --json"), b"").stdout;
        let messages = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            text.lines()
                .filter(|line| line.contains("\"seq\":"))
                .count()
        };
        assert_eq!(
            messages(&after),
            messages(&before) + 1,
            "{name}: {}",
            String::from_utf8_lossy(&longer)
        );
        assert!(
            String::from_utf8_lossy(&after).contains("said since"),
            "{name}"
        );
    }
}

#[test]
fn a_task_that_was_not_imported_is_exported_too() {
    let home = Home::new();
    let said = br#"{"role":"user","content":"hi"}
{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"a","content":"beds"}
"#;
    home.tell("task new");
    home.fed("task push T1", said);
    assert_eq!(exported(&home, "T1"), said);
    insta::assert_snapshot!(home.tell(
        "
        export T1 --format anthropic
        export T1 --format codex
        export T1 --format claude-code
        export T1 --format swe-agent
        export T1 --format word
        export T1 --view --out here.jsonl
        export T1 --out no/where.jsonl
    "
    ));
    assert_eq!(
        fs::read(home.path().join("here.jsonl")).expect("a file"),
        said
    );
}

#[test]
fn folds_become_tags_and_tags_folds() {
    let home = Home::new();
    import(&home, "roo.json", &fixture("roo.json"));
    home.file("sum.md", "what came before");
    home.tell("condense T1 4..4 --text sum.md");
    let tagged = exported(&home, "T1");
    let text = String::from_utf8_lossy(&tagged).into_owned();
    // Stand-ins have the times of their folds, which were made just now.
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("isSummary"))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
    assert_eq!(text.matches("\"isSummary\":true").count(), 2);
    let again = import(&home, "again.json", &tagged);
    let view = |task: &str| home.run(&format!("view {task} --raw"), b"").stdout;
    let (before, after) = (view("T1"), view(&again));
    assert_eq!(
        String::from_utf8_lossy(&after),
        String::from_utf8_lossy(&before)
    );
}

#[test]
fn folds_are_entries_in_what_roo_code_shows() {
    let home = Home::new();
    let texts: Vec<String> = (0..14)
        .map(|at| format!("{at} {}", "word ".repeat(30)))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    home.tell("task new --wire anthropic");
    home.fed("task push T1", common::talk(&texts));
    home.fed("condense T1 2..5 --text -", "what came before");
    home.tell("truncate T1 --fraction 0.4");
    // A fold that is not in force is not exported.
    home.fed("condense T1 11..12 --text -", "and after");
    home.tell("undo T1");
    let api = exported(&home, "T1 --format roo --ui ui.json");
    let shown = fs::read(home.path().join("ui.json")).expect("the list");
    let shown: Vec<serde_json::Value> = serde_json::from_slice(&shown).expect("JSON");
    let says: Vec<&str> = shown
        .iter()
        .filter_map(|entry| entry["say"].as_str())
        .collect();
    assert_eq!(says[..3], ["text", "text", "user_feedback"]);
    assert_eq!(
        says[14..],
        ["condense_context", "sliding_window_truncation"]
    );
    let tokens = |at: &str| {
        let view = home.run(&format!("view T1 --at {at}"), b"").stderr;
        let view = String::from_utf8_lossy(&view).into_owned();
        view.split(' ')
            .nth(1)
            .and_then(|number| number.parse::<u64>().ok())
    };
    let condensed = &shown[14]["contextCondense"];
    assert_eq!(condensed["cost"], 0.0);
    assert_eq!(condensed["prevContextTokens"].as_u64(), tokens("14"));
    assert_eq!(condensed["newContextTokens"].as_u64(), tokens("e1"));
    let summary = condensed["summary"].as_str().unwrap_or_default();
    assert!(summary.ends_with("what came before"), "{summary:?}");
    let truncated = &shown[15]["contextTruncation"];
    assert_eq!(truncated["prevContextTokens"].as_u64(), tokens("e1"));
    assert_eq!(truncated["newContextTokens"].as_u64(), tokens("e2"));
    // The tags of the history bear the same names.
    let api = String::from_utf8_lossy(&api).into_owned();
    for (member, id) in [
        ("condenseId", &condensed["condenseId"]),
        ("truncationId", &truncated["truncationId"]),
    ] {
        assert!(api.contains(&format!("\"{member}\":{id}")), "{member}");
    }
    let hidden = api.matches("\"truncationParent\"").count();
    assert_eq!(truncated["messagesRemoved"].as_u64(), Some(hidden as u64));
    let refused = home.run("export T1 --ui ui.json", b"");
    assert_eq!(refused.code, 2);
}

#[test]
fn one_file_is_not_written_as_history_and_as_list() {
    let home = Home::new();
    home.tell("task new --wire anthropic");
    home.fed("task push T1", common::talk(&["hello", "hi"]));
    home.file("there", "as it was");
    fs::create_dir(home.path().join("sub")).expect("a directory");
    for (out, ui) in [
        ("new", "new"),
        ("new", "./new"),
        ("there", "sub/../there"),
        ("sub/new", "./sub/new"),
    ] {
        let line = format!("export T1 --format roo --out {out} --ui {ui}");
        let refused = home.run(&line, b"");
        assert_eq!(refused.code, 2, "{line}");
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(told.contains("the same file"), "{told}");
    }
    let there = fs::read(home.path().join("there")).expect("the file");
    assert_eq!(there, b"as it was");
    assert!(!home.path().join("new").exists() && !home.path().join("sub/new").exists());
    let apart = home.run("export T1 --format roo --out new --ui sub/new", b"");
    assert_eq!(apart.code, 0);
}

#[test]
fn what_cannot_be_read_leaves_nothing_behind() {
    let home = Home::new();
    home.file("ok.jsonl", "{\"role\":\"user\",\"content\":\"hi\"}\n");
    home.file("garbage", "lorem ipsum\n");
    home.file("empty", "");
    home.file(
        "torn.jsonl",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n{\"messages\":[{\"role\":\"us",
    );
    home.file(
        "ghost.jsonl",
        "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"ghost\",\"content\":\"hi\"}\n",
    );
    insta::assert_snapshot!(home.tell(
        "
        import ok.jsonl
        import garbage
        import empty
        import torn.jsonl
        import ghost.jsonl
        import nowhere
        import ok.jsonl --format pi
        task list --json
    "
    ));
    let left = fs::read_dir(home.contexts().join("running")).expect("a directory");
    assert_eq!(left.count(), 1);
}

#[test]
fn a_session_that_is_still_being_written_is_imported_up_to_its_torn_line() {
    let home = Home::new();
    let is_log = |name: &&String| name.ends_with(".jsonl") && *name != "openai-several.jsonl";
    for name in names().iter().filter(is_log) {
        let bytes = fixture(name);
        let torn = &bytes[..bytes.trim_ascii_end().len() - 9];
        home.file("torn.jsonl", torn);
        let ran = home.run("import torn.jsonl", b"");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.code, 0, "{name}: {said}");
        let line = bytes.trim_ascii_end().split(|byte| *byte == b'\n').count();
        let warning = format!("warning: line {line}, the last one, is incomplete");
        assert!(said.contains(&warning), "{name}: {said}");
        let tasks = String::from_utf8(ran.stdout)
            .expect("ids")
            .replace('\n', " ");
        let back = exported(&home, &tasks);
        assert_eq!(
            String::from_utf8_lossy(&back),
            String::from_utf8_lossy(torn)
        );
        for command in ["fold torn.jsonl --window 100k", "count torn.jsonl"] {
            let ran = home.run(command, b"");
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(
                ran.code == 0 && said.contains(&warning),
                "{command}: {said}"
            );
        }
    }
}

#[test]
fn what_is_said_after_a_torn_line_stands_on_a_line_of_its_own() {
    let home = Home::new();
    let bytes = fixture("claude-code.jsonl");
    let torn = &bytes[..bytes.len() - 9];
    let task = import(&home, "torn.jsonl", torn);
    home.run(
        &format!("task push {task} -"),
        br#"{"role":"user","content":"One more bed"}"#,
    );
    let back = exported(&home, &task);
    let kept = torn
        .iter()
        .rposition(|byte| *byte == b'\n')
        .expect("a line")
        + 1;
    assert_eq!(back[..kept], torn[..kept]);
    let added: serde_json::Value = serde_json::from_slice(&back[kept..]).expect("one record");
    assert_eq!(added["message"]["content"], "One more bed");
    let parent = added["parentUuid"].as_str().expect("a parent");
    let lines = String::from_utf8_lossy(&torn[..kept]).into_owned();
    assert!(lines.contains(&format!("\"uuid\":\"{parent}\"")), "{added}");
}

#[test]
fn times_session_directory_and_branch_survive() {
    let home = Home::new();
    let line = |uuid: &str, parent: &str, role: &str, time: &str| {
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"cwd":"/garden","sessionId":"3f9a","version":"2.0.1","gitBranch":"beds","type":"{role}","message":{{"role":"{role}","content":"{uuid}"}},"uuid":"{uuid}","timestamp":"{time}"}}"#
        )
    };
    let times = ["2026-01-02T03:04:05.678Z", "2026-01-02T03:09:00.000Z"];
    let session = [
        line("u-1", "null", "user", times[0]),
        line("a-1", "\"u-1\"", "assistant", times[1]),
    ]
    .join("\n");
    let task = import(&home, "session.jsonl", session.as_bytes());
    let log = home.contexts().join("running").join(&task);
    let stored = fs::read_to_string(log.join("messages.jsonl")).expect("messages");
    for (line, time) in stored.lines().zip(times) {
        assert!(
            line.contains(&format!("\"timestamp\":\"{time}\"")),
            "{line}"
        );
    }
    let metadata = fs::read(log.join("metadata.json")).expect("metadata");
    let metadata: serde_json::Value = serde_json::from_slice(&metadata).expect("JSON");
    assert_eq!(metadata["session"]["id"], "3f9a");
    assert_eq!(metadata["session"]["cwd"], "/garden");
    assert_eq!(metadata["session"]["branch"], "beds");

    let folded = home.run("fold session.jsonl --window 100k --out-format same", b"");
    let viewed = exported(&home, &format!("{task} --view"));
    for written in [folded.stdout, viewed] {
        let records: Vec<serde_json::Value> = String::from_utf8_lossy(&written)
            .lines()
            .map(|line| serde_json::from_str(line).expect("a record"))
            .collect();
        assert_eq!(records.len(), 2);
        for (record, time) in records.iter().zip(times) {
            assert_eq!(record["timestamp"], time);
            assert_eq!(record["sessionId"], "3f9a");
            assert_eq!(record["cwd"], "/garden");
            assert_eq!(record["gitBranch"], "beds");
            assert_eq!(record["version"], "2.0.1");
        }
    }
    let codex = exported(&home, &format!("{task} --format codex"));
    let codex = String::from_utf8_lossy(&codex).into_owned();
    let head: serde_json::Value =
        serde_json::from_str(codex.lines().next().expect("a header")).expect("JSON");
    assert_eq!(head["timestamp"], times[0]);
    assert_eq!(head["payload"]["id"], "3f9a");
    assert_eq!(head["payload"]["cwd"], "/garden");
    assert_eq!(head["payload"]["git"]["branch"], "beds");
    home.file("codex.jsonl", &codex);
    let again = home.run("fold codex.jsonl --window 100k --out-format same", b"");
    assert_eq!(String::from_utf8_lossy(&again.stdout), codex);
}

#[test]
fn a_compaction_made_while_a_call_was_under_way_is_taken_over() {
    let home = Home::new();
    let record = |uuid: &str, parent: &str, role: &str, more: &str, content: &str| {
        format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"s","type":"{role}"{more},"message":{{"role":"{role}","content":{content}}},"uuid":"{uuid}","timestamp":"2026-01-02T03:04:05.000Z"}}"#
        )
    };
    let call = r#"[{"type":"tool_use","id":"t1","name":"Read","input":{}}]"#;
    let boundary = r#"{"parentUuid":null,"logicalParentUuid":"gone","isSidechain":false,"sessionId":"s","type":"system","subtype":"compact_boundary","content":"Conversation compacted","uuid":"b-1","timestamp":"2026-01-02T03:04:05.000Z"}"#;
    let session = [
        record("u-1", "null", "user", "", "\"Count the beds\""),
        record("a-1", "\"u-1\"", "assistant", "", "\"There are six\""),
        record("u-2", "\"a-1\"", "user", "", "\"And the paths?\""),
        record("a-2", "\"u-2\"", "assistant", "", call),
        boundary.to_owned(),
        record(
            "u-3",
            "\"b-1\"",
            "user",
            ",\"isCompactSummary\":true",
            "\"Six beds; paths are being counted\"",
        ),
        record("a-3", "\"u-3\"", "assistant", "", "\"There are two\""),
    ]
    .join("\n");
    home.file("session.jsonl", &session);
    let ran = home.run("import session.jsonl", b"");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        said.contains("5 messages") && said.contains("1 fold imported"),
        "{said}"
    );
    let folds = home.run(
        &format!("folds {}", String::from_utf8_lossy(&ran.stdout).trim()),
        b"",
    );
    let folds = String::from_utf8_lossy(&folds.stdout).into_owned();
    assert!(folds.contains("2..3"), "{folds}");
}

#[test]
fn an_import_that_was_killed_leaves_nothing_once_another_is_done() {
    let home = Home::new();
    let task = import(&home, "a.jsonl", &fixture("claude-code.jsonl"));
    let running = home.contexts().join("running");
    // A draft left by a process that has ended.
    let left = running.join(".7d3e4f7a-0000-4000-8000-000000000001");
    fs::create_dir(&left).expect("a directory");
    let whole = running.join(&task);
    for name in ["metadata.json", "imported.jsonl", "messages.jsonl"] {
        fs::copy(whole.join(name), left.join(name)).expect("a copy");
    }
    import(&home, "b.jsonl", &fixture("pi.jsonl"));
    assert!(!left.exists());
    // A draft of a running process stays.
    fs::create_dir(&left).expect("a directory");
    let metadata = fs::read_to_string(whole.join("metadata.json")).expect("metadata");
    let (before, after) = metadata.split_once("\"process_id\":").expect("a process");
    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
    let own = std::process::id();
    fs::write(
        left.join("metadata.json"),
        format!("{before}\"process_id\":{own}{after}"),
    )
    .expect("metadata");
    fs::copy(whole.join("imported.jsonl"), left.join("imported.jsonl")).expect("a copy");
    import(&home, "c.jsonl", &fixture("codex.jsonl"));
    assert!(left.exists());
}

#[test]
fn an_interrupted_import_leaves_nothing() {
    let home = Home::new();
    let mut session = Vec::new();
    for number in 0..200_000 {
        let line = format!("{{\"role\":\"user\",\"content\":\"bed {number}\"}}\n");
        session.extend(line.into_bytes());
    }
    home.file("session.jsonl", &session);
    let running = home.contexts().join("running");
    let mut child = home
        .command("import session.jsonl --durability never")
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the command starts");
    let drafts = || fs::read_dir(&running).map_or(0, |dir| dir.count());
    let written = || {
        let dirs = fs::read_dir(&running).into_iter().flatten().flatten();
        let size = |dir: fs::DirEntry| fs::metadata(dir.path().join("messages.jsonl"));
        dirs.flat_map(size).any(|file| file.len() > 0)
    };
    let is_over = |child: &mut std::process::Child| child.try_wait().expect("a child").is_some();
    while !written() && !is_over(&mut child) {
        std::thread::yield_now();
    }
    let pid = i32::try_from(child.id()).expect("a pid");
    let _ = std::process::Command::new("kill")
        .arg("-INT")
        .arg(pid.to_string())
        .status();
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert_eq!(drafts(), 0, "{said}");
}
