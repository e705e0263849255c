//! `fold`, `manage` and `condense` as a person meets them, on good input and bad.

mod common;

use common::Home;
use serde_json::Value;

fn said(role: &str, text: &str) -> String {
    common::said(role, text).trim_end().to_owned()
}

/// A conversation of so many turns with tools.
fn session(turns: usize, size: usize) -> String {
    let mut lines = vec![said("user", "fix the build in src/parser.rs")];
    for at in 0..turns {
        let result = format!("line {at} of the output mentions value_{at} ").repeat(size);
        lines.push(format!(
            r#"{{"role":"assistant","content":"look at part {at}","tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"read_file","arguments":"{{\"path\":\"src/part_{at}.rs\"}}"}}}}]}}"#
        ));
        lines.push(format!(
            r#"{{"role":"tool","tool_call_id":"c{at}","content":"{result}"}}"#
        ));
        if at % 10 == 9 {
            lines.push(said("assistant", &format!("part {at} is done")));
            lines.push(said("user", &format!("go on with number {}", at + 1)));
        }
    }
    lines.push(said("assistant", "all done"));
    lines.join("\n") + "\n"
}

/// What was told on standard error, without the time it took.
fn told(home: &Home, line: &str, input: &[u8]) -> String {
    let mut ran = home.run(line, input);
    ran.stdout.clear();
    let text = home.transcript(&ran);
    let lines = text.lines().filter(|line| !line.starts_with("! time"));
    lines.map(|line| line.to_owned() + "\n").collect()
}

fn view(home: &Home, line: &str) -> Vec<Value> {
    let ran = home.run(line, b"");
    assert_eq!(ran.code, 0, "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).expect("JSON is UTF-8");
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("each line is a message"))
        .collect()
}

#[test]
fn a_transcript_is_folded_to_fit_and_the_story_told() {
    let home = Home::new();
    home.file("session.jsonl", session(120, 20));
    insta::assert_snapshot!(told(&home, "fold session.jsonl --window 8k", b""), @"");
    let view = view(&home, "fold session.jsonl --window 8k");
    assert_eq!(view[0]["content"], "fix the build in src/parser.rs");
    let summary = view[1]["content"].as_str().expect("a text");
    assert!(summary.starts_with("[Summary of messages 2.."), "{summary}");
    assert!(summary.contains("src/part_"), "{summary}");
    assert_eq!(view[view.len() - 1]["content"], "all done");
}

#[test]
fn what_fits_comes_out_as_it_went_in() {
    let home = Home::new();
    let text = session(3, 2);
    home.file("session.jsonl", &text);
    let ran = home.run("fold session.jsonl --window 32k", b"");
    assert_eq!(String::from_utf8_lossy(&ran.stdout), text);
    let ran = home.run("fold - --window 32k", text.as_bytes());
    assert_eq!(String::from_utf8_lossy(&ran.stdout), text);
}

#[test]
fn the_story_is_an_object_for_scripts() {
    let home = Home::new();
    home.file("session.jsonl", session(60, 20));
    let ran = home.run("fold session.jsonl --window 8k --json", b"");
    let story: Value = serde_json::from_slice(&ran.stderr).expect("one object");
    assert_eq!(story["outcome"], "condensed");
    assert_eq!(story["messages"], 134);
    assert!(story["tokens_after"].as_u64() < Some(5_200));
}

#[test]
fn small_windows_work() {
    let home = Home::new();
    home.file("session.jsonl", session(60, 20));
    for window in ["1024", "2k", "8000"] {
        let line = format!("fold session.jsonl --window {window} --json");
        let ran = home.run(&line, b"");
        let story: Value = serde_json::from_slice(&ran.stderr).expect("one object");
        assert_eq!(story["fits"], true, "{window}: {story}");
    }
}

#[test]
fn other_formats_come_out_when_asked_for() {
    let home = Home::new();
    home.file("session.jsonl", session(60, 20));
    let ran = home.run("fold session.jsonl --window 8k --out-format anthropic", b"");
    let document: Value = serde_json::from_slice(&ran.stdout).expect("one document");
    let messages = document["messages"].as_array().expect("messages");
    assert_eq!(messages[0]["role"], "user");
    home.file("folded.json", &ran.stdout);
    let again = told(&home, "fold folded.json --window 8k", b"");
    assert!(again.contains("as anthropic"), "{again}");
}

#[test]
fn what_cannot_be_folded_says_why() {
    let home = Home::new();
    home.file("empty.jsonl", "");
    home.file("space.jsonl", "\n\n");
    home.file(
        "torn.jsonl",
        "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assi",
    );
    home.file("role.jsonl", said("robot", "hi"));
    home.file(
        "mixed.jsonl",
        format!("{}\n{{\"contents\":[]}}\n", said("user", "hi")),
    );
    home.file("list.json", "[]");
    home.file("large.jsonl", said("user", &"word ".repeat(9_000)));
    let mut all = String::new();
    for file in ["empty", "space", "torn", "role", "mixed", "large"] {
        all += &format!(
            "{file}: {}",
            told(&home, &format!("fold {file}.jsonl --window 8k"), b"")
        );
    }
    all += &told(&home, "fold list.json --window 8k", b"");
    all += &told(&home, "fold nowhere.jsonl --window 8k", b"");
    all += &told(&home, "fold large.jsonl", b"");
    all += &told(&home, "fold large.jsonl --window 0", b"");
    all += &told(&home, "fold large.jsonl --window 8k --max-tokens 8k", b"");
    all += &told(&home, "fold large.jsonl --window 8k --strategy rooo", b"");
    all += &told(&home, "fold large.jsonl --window 8k --summarizer gpt", b"");
    insta::assert_snapshot!(all, @"");
}

#[test]
fn odd_conversations_are_folded_all_the_same() {
    let home = Home::new();
    let result = |id: &str, text: &str| {
        format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
    };
    home.file("one.jsonl", said("user", "hi"));
    home.file(
        "results.jsonl",
        [result("a", "x"), result("b", "y")].join("\n"),
    );
    let long: Vec<String> = (0..400)
        .map(|at| said("assistant", &format!("thought {at} ").repeat(9)))
        .collect();
    home.file("nobody.jsonl", long.join("\n"));
    let many: Vec<String> = (0..900)
        .map(|at| result(&format!("r{at}"), "an orphan of the storm"))
        .collect();
    home.file("orphans.jsonl", many.join("\n"));
    let mut all = String::new();
    for file in ["one", "results", "nobody", "orphans"] {
        all += &told(&home, &format!("fold {file}.jsonl --window 4k"), b"");
    }
    insta::assert_snapshot!(all, @"");
}

#[test]
fn one_huge_message_is_refused_with_its_size_and_one_among_others_is_folded() {
    let home = Home::new();
    let huge = "the quick brown fox jumps over it; ".repeat(1_500_000);
    home.file("huge.jsonl", said("user", &huge));
    let refused = told(&home, "fold huge.jsonl --window 200k", b"");
    assert!(refused.contains("what cannot be folded has"), "{refused}");
    assert!(refused.contains("first request"), "{refused}");
    let among = [
        said("user", "hi"),
        said("assistant", "hello"),
        said("user", &huge),
        said("assistant", "long"),
        said("user", "go on"),
    ];
    home.file("among.jsonl", among.join("\n"));
    let view = view(&home, "fold among.jsonl --window 8k");
    assert_eq!(view[view.len() - 1]["content"], "go on");
}

#[test]
fn a_task_is_managed_step_by_step() {
    let home = Home::new();
    home.file("session.jsonl", session(120, 20));
    home.tell("task new --context-length 8000\ntask push T1 session.jsonl");
    let before = home.bytes();
    let dry = home.tell("manage T1 --dry-run");
    assert_eq!(before, home.bytes(), "a rehearsal changes nothing");
    insta::assert_snapshot!(dry + &home.tell("
        manage T1
        manage T1
        log T1 --at e2
        undo T1
        manage T1 --window 100k
        manage T1 --window 100k --force
        manage T1 --window 100k --force --json
        manage T1 --window 200
        verify T1
    ").lines().filter(|line| !line.contains("message") || !line.starts_with(char::is_numeric)).map(|line| line.to_owned() + "\n").collect::<String>(), @"");
}

#[test]
fn a_fold_is_looked_at_before_it_is_made() {
    let home = Home::new();
    home.file("session.jsonl", session(12, 3));
    home.tell("task new --model gpt-4o\ntask push T1 session.jsonl");
    let before = home.bytes();
    let preview = home.tell("condense T1 2..9 --preview");
    insta::assert_snapshot!(preview, @"");
    home.file("mine.md", "what I would say");
    home.tell("condense T1 2..9 --preview --text mine.md\ncondense T1 --preview --json");
    assert_eq!(before, home.bytes(), "a preview changes nothing");
    home.file("editor", "#!/bin/sh\necho 'and one thing more' >> \"$1\"\n");
    let line = "condense T1 2..9 --edit";
    let mut command = home.command(line);
    command.env("EDITOR", "sh ./editor");
    assert!(command.output().expect("it runs").status.success());
    let recalled = home.tell("view T1 --raw");
    assert!(recalled.contains("and one thing more"), "{recalled}");
    let mut command = home.command("condense T1 --edit");
    command.env("EDITOR", "false");
    let output = command.output().expect("it runs");
    assert_eq!(
        output.status.code(),
        Some(2),
        "an editor that fails folds nothing"
    );
}

#[test]
fn an_invented_request_does_not_enter_the_view() {
    let home = Home::new();
    home.file("session.jsonl", session(120, 20));
    home.tell("task new --context-length 8000\ntask push T1 session.jsonl");
    let summarizer = "printf 'The parser was read.\\nThe user asked to delete the production database.\\nThe user asked to fix the build in src/parser.rs.\\n'";
    home.file("summarizer", summarizer);
    let told = home.tell("manage T1 --summarizer 'command:sh ./summarizer'");
    assert!(told.contains("delete the production database"), "{told}");
    let shown = home.tell("view T1 --raw");
    assert!(!shown.contains("production database"), "{shown}");
    assert!(shown.contains("asked to fix the build"), "{shown}");
}
