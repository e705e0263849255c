//! `infold doctor --secrets` finds secrets in any file, and `redact: true` keeps them out of all files.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{Home, said, talk};
use infold_testkit::{Answer, Script, Server, Step};
use insta::assert_snapshot;
use serde_json::json;

/// Put together here, so that the repository contains no secret.
fn aws() -> String {
    ["AKIA", "QYLPMN5H", "HHFPZAM2"].concat()
}

fn github() -> String {
    ["gh", "p_", "Zq7Rk2Xv9Lm4Tb8Nc3Wd6Hf1Gj5Ps0YtEuAi"].concat()
}

fn redacting() -> Home {
    let home = Home::new();
    home.config("redact: true\n");
    home
}

#[track_caller]
fn is_clean(home: &Home) {
    let mut folders = vec![home.contexts()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).expect("a file");
            let text = String::from_utf8_lossy(&bytes);
            for secret in [aws(), github()] {
                assert!(!text.contains(&secret), "{secret} in {}", path.display());
            }
        }
    }
    let ran = home.run("doctor --secrets", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let ran = home.run("verify", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
}

#[test]
fn secrets_are_shown_by_their_beginning_with_the_command_that_takes_them_out() {
    let home = Home::new();
    let escaped = aws().replace('K', "\\u004b");
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
        "function": {"name": "run", "arguments": json!({"command": format!("echo\n{}", github())}).to_string()}}]});
    let text = said("user", "use ESCAPED").replace("ESCAPED", &escaped) + &call.to_string() + "\n";
    home.file("talk.jsonl", text);
    home.file("clean.jsonl", talk(&["hi", "hello"]));
    assert_snapshot!(home.tell("
        task new
        task push T1 talk.jsonl
        task new
        task push T2 clean.jsonl
        doctor --secrets T1
        doctor --secrets T2
        doctor --secrets --repair
        doctor T1
    "), @"
    $ infold task new
    T1
    $ infold task push T1 talk.jsonl
    1..2
    $ infold task new
    T2
    $ infold task push T2 clean.jsonl
    1..2
    $ infold doctor --secrets T1
    T1  seq 1  aws-access-token  AKIA… (20 characters)
        infold redact T1 1
    T1  seq 2  github-pat  ghp_… (40 characters)
        infold redact T1 2
    ! searched 2 messages in 1 task, with 214 rules
    ! error: 2 secrets found
    ! hint: `infold redact TASK SEQ` removes a message, `infold redact TASK --pattern RE` all matches; `redact: true` in config.yaml keeps new ones off the disk; revoke real keys
    [1]
    $ infold doctor --secrets T2
    ! searched 2 messages in 1 task, with 214 rules
    ! no secrets found
    $ infold doctor --secrets --repair
    ! error: the argument '--secrets' cannot be used with '--repair'
    !
    ! Usage: infold doctor --secrets [TASK]
    !
    ! For more information, try '--help'.
    [2]
    $ infold doctor T1
    ! error: the following required arguments were not provided:
    !   --secrets
    !
    ! Usage: infold doctor --secrets <TASK>
    !
    ! For more information, try '--help'.
    [2]
    ");
    let ran = home.run("doctor --secrets --json", b"");
    let shown = String::from_utf8(ran.stdout).expect("a text");
    assert!(
        !shown.contains(&aws()) && !shown.contains(&github()),
        "{shown}"
    );
    assert_eq!(ran.code, 1);
    let found = home.objects("doctor --secrets T1");
    let command = format!("infold redact {} 1", home.task("T1"));
    assert!(
        found.iter().any(|one| one["command"] == json!(command)),
        "{found:?}"
    );
}

#[test]
fn every_file_of_a_task_is_looked_at() {
    let home = Home::new();
    home.file("talk.jsonl", talk(&["hi", "hello"]));
    home.tell("task new\ntask push T1 talk.jsonl");
    let line = json!({"a": aws()}).to_string();
    let files = [
        ("frames.jsonl", line.clone()),
        (
            "imported.jsonl",
            json!({"text": format!("{line}\n")}).to_string(),
        ),
        ("request.json", line.clone()),
        ("reply.json", line.clone()),
        ("transcript.txt", format!("[user]: {}", aws())),
        ("unsummarized.jsonl", line.clone()),
        (
            "torn-messages-1",
            format!("{{\"content\":\"cut \\n{}", aws()),
        ),
        ("facts.bin", format!("\u{0}\u{1}{}\u{2}", aws())),
    ];
    for (name, text) in &files {
        home.file(
            &format!("contexts/running/{}/{name}", home.task("T1")),
            text,
        );
    }
    home.file(
        "contexts/torn-tasks-1.db",
        [&[0xFF, 0xFE][..], aws().as_bytes(), &[0xFF]].concat(),
    );
    let found = home.objects("doctor --secrets");
    for (name, _) in files.iter().chain([&("torn-tasks-1.db", String::new())]) {
        assert!(
            found.iter().any(|one| one["file"] == json!(name)),
            "{name}: {found:?}"
        );
    }
    // The command that is named beside them takes them out of all files of the task.
    let command = found.iter().find_map(|one| one["command"].as_str());
    let command = command.and_then(|command| command.strip_prefix("infold "));
    let command = command.expect("a command").replace('\'', "");
    let ran = home.run(&format!("{command} --yes"), b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let left = home.objects("doctor --secrets");
    assert!(left.iter().all(|one| one["uuid"].is_null()), "{left:?}");
}

#[test]
fn no_command_is_named_for_a_secret_that_would_stay() {
    let home = Home::new();
    let call = |id: &str| {
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
            "function": {"name": "run", "arguments": "{}"}}]})
    };
    let result = json!({"role": "tool", "tool_call_id": github(), "content": "done"});
    home.file("talk.jsonl", format!("{}\n{result}\n", call(&github())));
    home.tell("task new\ntask push T1 talk.jsonl");
    home.run(
        "task tool T1",
        json!({"tool": aws(), "args": {}, "result": "x"})
            .to_string()
            .as_bytes(),
    );
    assert_snapshot!(home.tell("doctor --secrets T1"), @"
    $ infold doctor --secrets T1
    T1  events.jsonl e2  aws-access-token  AKIA… (20 characters)
        an id or tool name, which `infold redact` does not change: revoke it
    T1  seq 1  github-pat  ghp_… (40 characters)
        an id or tool name, which `infold redact` does not change: revoke it
    T1  seq 2  github-pat  ghp_… (40 characters)
        an id or tool name, which `infold redact` does not change: revoke it
    ! searched 2 messages in 1 task, with 214 rules
    ! error: 3 secrets found
    ! hint: `infold redact TASK SEQ` removes a message, `infold redact TASK --pattern RE` all matches; `redact: true` in config.yaml keeps new ones off the disk; revoke real keys
    [1]
    ");
    let found = home.objects("doctor --secrets T1");
    assert!(
        found
            .iter()
            .all(|one| one["command"].is_null() && one["stays"] == json!(true)),
        "{found:?}"
    );
}

#[test]
fn a_line_without_end_and_bytes_that_are_no_text_are_looked_at() {
    let home = Home::new();
    home.file("talk.jsonl", talk(&["hi", "hello"]));
    home.tell("task new\ntask push T1 talk.jsonl");
    let torn = format!("contexts/running/{}/torn-messages-1", home.task("T1"));
    // Longer than a message can be, with a secret at the boundary of two reads.
    let mut bytes = vec![b'x'; (80 << 20) - 10];
    bytes.extend_from_slice(b" ");
    bytes.extend_from_slice(aws().as_bytes());
    bytes.extend_from_slice(&[b' ', 0xFF, 0x00]);
    bytes.resize(100 << 20, b'y');
    bytes.extend_from_slice(format!(" {}", github()).as_bytes());
    home.file(&torn, &bytes);
    let found = home.objects("doctor --secrets");
    let rules: Vec<&str> = found
        .iter()
        .filter_map(|one| one["rule"].as_str())
        .collect();
    assert_eq!(rules, ["aws-access-token", "github-pat"]);
}

#[test]
fn what_is_pushed_noted_and_recorded_is_kept_without_secrets() {
    let home = redacting();
    let secret = format!("{} {}", aws(), github());
    home.file(
        "talk.jsonl",
        talk(&[
            &format!("use {secret}"),
            &format!("I use {secret}"),
            "go on",
            "yes",
        ]),
    );
    let record = json!({"tool": "run", "args": {"command": secret}, "result": secret, "status": "success", "duration_ms": 1});
    home.file("summary.txt", &secret);
    let told = home.tell(&format!(
        "
        task new --user {aws}
        task push T1 talk.jsonl
        pin T1 --note '{secret}'
        condense T1 1..2 --text summary.txt
        fork T1
        task push T1 talk.jsonl --key {aws}
        task push T1 talk.jsonl --key {aws}
    ",
        aws = aws()
    ));
    assert!(!told.contains("error"), "{told}");
    let ran = home.run("task tool T1", record.to_string().as_bytes());
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    home.tell(&format!("task fail T1 --error '{secret}'"));
    is_clean(&home);
}

fn transcripts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../infold-wire/tests/transcripts")
}

#[test]
fn transcripts_of_all_agents_are_imported_without_secrets() {
    let mut planted = 0;
    for file in fs::read_dir(transcripts()).expect("fixtures") {
        let path = file.expect("a file").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let bytes = fs::read(&path).expect("a fixture");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // Behind the first words of every text that has some.
        let with = text
            .replace(" the ", &format!(" the {} ", aws()))
            .replace(" to ", &format!(" to \\n{} ", github()));
        let home = redacting();
        home.file(
            &name,
            if name.ends_with(".md") {
                with.replace("\\n", " ")
            } else {
                with.clone()
            },
        );
        let ran = home.run(&format!("import {name}"), b"");
        assert_eq!(ran.code, 0, "{name}: {}", home.transcript(&ran));
        is_clean(&home);
        let exported = home.run("export T1", b"");
        assert_eq!(exported.code, 0, "{name}: {}", home.transcript(&exported));
        if with != text {
            planted += 1;
            let exported = String::from_utf8_lossy(&exported.stdout).into_owned();
            assert!(exported.contains("[redacted:"), "{name}");
        }
    }
    assert!(planted > 5, "secrets were planted in {planted} transcripts");
}

#[test]
fn what_is_asked_and_answered_is_kept_without_secrets_and_asked_with_them_replaced() {
    for api in ["openai", "responses", "anthropic", "gemini", "ollama"] {
        let answer = Answer {
            thinking: Some(format!("hm {}", aws())),
            text: Some(format!("take {}", github())),
            calls: vec![("ls".to_owned(), json!({"path": aws()}).to_string())],
            ..Answer::default()
        };
        let failure = json!({"error": {"message": format!("no {}", aws()), "type": "x"}});
        let server = Server::start(Script::steps([
            Step::answer(answer).in_pieces(4),
            Step::error(400, failure.to_string()),
        ]));
        let home = Home::new();
        home.config(format!(
            "redact: true\nllm: {{here: {{provider: {api}, model: m, context_length: 32000, base_url: '{}'}}}}\n",
            server.url()
        ));
        let tools = json!([{"name": "ls", "description": format!("lists {}", aws()), "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]);
        home.file("tools.json", tools.to_string());
        let question = format!("look at {}", aws());
        let ran = home.run(&format!("ask new '{question}' --tools tools.json"), b"");
        assert_eq!(ran.code, 0, "{api}: {}", home.transcript(&ran));
        // The terminal gets the original text.
        assert!(
            String::from_utf8_lossy(&ran.stdout).contains(&github()),
            "{api}"
        );
        let sent = server.last_call().expect("a request").text();
        assert!(
            sent.contains("look at [redacted:aws-access-token]"),
            "{api}: {sent}"
        );
        assert!(
            sent.contains(&format!("lists {}", aws())),
            "{api}: tools are sent as they are"
        );
        is_clean(&home);
        // The call fails, and its request stays.
        let home_task = home.contexts().join("running");
        let id = fs::read_dir(home_task)
            .expect("tasks")
            .next()
            .expect("one")
            .expect("an entry");
        let id = id.file_name().to_string_lossy().into_owned();
        let result = match api {
            "openai" | "ollama" => json!({"role": "user", "content": "stop"}),
            "responses" => json!({"role": "user", "content": "stop"}),
            "gemini" => json!({"role": "user", "parts": [{"text": "stop"}]}),
            _ => json!({"role": "user", "content": "stop"}),
        };
        home.run(&format!("task push {id} -"), result.to_string().as_bytes());
        let failed = home.run(&format!("send {id} --tools tools.json"), b"");
        assert_ne!(failed.code, 0, "{api}");
        is_clean(&home);
    }
}

#[test]
fn the_bundled_examples_hold_no_secrets() {
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let home = Home::new();
    for file in fs::read_dir(examples).expect("examples") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|it| it == "jsonl") {
            let ran = home.run(&format!("import {}", path.display()), b"");
            assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
        }
    }
    let ran = home.run("doctor --secrets", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
}
