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

/// Imports a file; returns what the tasks are called, in a row.
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
    // Stand-ins are as old as their folds, and those were made just now.
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
