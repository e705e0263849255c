//! The commands that people type, and the behaviour that they must be able to rely on.

mod common;

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use common::{Home, Ran, said, talk};
use infold_testkit::{Script, Server, Step};

fn ran(home: &Home, line: &str, env: &[(&str, &str)], input: &str) -> Ran {
    let mut command = home.command(line);
    command.envs(env.iter().copied());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes());
    let ran = Ran::from(child.wait_with_output().expect("it ends"));
    home.meet(&String::from_utf8_lossy(&ran.stdout));
    ran
}

fn stderr(ran: &Ran) -> String {
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

fn stdout(ran: &Ran) -> String {
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

#[test]
fn the_window_in_the_environment_may_have_a_unit() {
    let home = Home::new();
    home.file("talk.jsonl", talk(&["hi", "hello"]));
    for (set, shown) in [("8k", "8,000"), ("8000", "8,000"), ("1.5m", "1,500,000")] {
        let ran = ran(&home, "fold talk.jsonl", &[("INFOLD_WINDOW", set)], "");
        assert_eq!(ran.code, 0, "{}", stderr(&ran));
        assert!(stderr(&ran).contains(&format!("a window of {shown}")));
    }
    let wrong = ran(&home, "fold talk.jsonl", &[("INFOLD_WINDOW", "8kb")], "");
    assert_eq!(wrong.code, 2);
    assert!(stderr(&wrong).contains("not `8kb`"), "{}", stderr(&wrong));
}

#[test]
fn without_a_file_standard_input_is_read() {
    let home = Home::new();
    let talk = talk(&["hi", "hello"]);
    let folded = ran(&home, "fold --window 8k", &[], &talk);
    assert_eq!(stdout(&folded), talk, "{}", stderr(&folded));
    let counted = ran(&home, "count", &[], &talk);
    assert!(stdout(&counted).contains("in 2 messages as openai"));
    let imported = ran(&home, "import", &[], &talk);
    assert!(
        stderr(&imported).contains("2 messages"),
        "{}",
        stderr(&imported)
    );
}

#[test]
fn several_files_are_read_one_after_the_other() {
    let home = Home::new();
    let (one, two) = (talk(&["hi", "hello"]), talk(&["and", "so", "on"]));
    home.file("one.jsonl", &one).file("two.jsonl", &two);
    let folded = ran(&home, "fold one.jsonl two.jsonl --window 8k", &[], "");
    assert_eq!(stdout(&folded), format!("{one}\n{two}"));
    let story = stderr(&folded);
    assert!(
        story.contains("one.jsonl") && story.contains("two.jsonl"),
        "{story}"
    );
    let counted = stdout(&ran(&home, "count one.jsonl two.jsonl", &[], ""));
    for said in [
        "one.jsonl\n",
        "in 2 messages",
        "two.jsonl\n",
        "in 3 messages",
    ] {
        assert!(counted.contains(said), "{counted}");
    }
    let imported = ran(&home, "import one.jsonl two.jsonl", &[], "");
    assert_eq!(
        stdout(&imported).lines().count(),
        2,
        "{}",
        stderr(&imported)
    );
    // The import publishes all conversations or none.
    home.file("bad.jsonl", said("ghost", "boo"));
    let tasks = || {
        fs::read_dir(home.contexts().join("running"))
            .expect("tasks")
            .count()
    };
    let before = tasks();
    let refused = ran(&home, "import one.jsonl bad.jsonl", &[], "");
    assert_eq!(refused.code, 2);
    assert!(
        stderr(&refused).contains("bad.jsonl: "),
        "{}",
        stderr(&refused)
    );
    assert_eq!(tasks(), before);
}

#[test]
fn a_question_alone_starts_a_task() {
    let server = Server::start(Script::steps([
        Step::say("scattering"),
        Step::say("stars"),
        Step::say("clouds"),
    ]));
    let home = Home::new();
    let url = server.url();
    home.config(format!(
        "llm: {{here: {{provider: openai, model: m, base_url: '{url}', context_length: 32000}}}}\n"
    ));
    let asked = home.run("ask 'why is the sky blue?'", b"");
    assert_eq!(stdout(&asked), "scattering\n", "{}", stderr(&asked));
    assert!(stderr(&asked).contains("task "));
    let piped = home.run("ask", b"and at night?");
    assert_eq!(stdout(&piped), "stars\n", "{}", stderr(&piped));
    let piped = home.run("ask -", b"and by day?");
    assert_eq!(stdout(&piped), "clouds\n", "{}", stderr(&piped));
    let tasks = home.objects("task list");
    assert_eq!(tasks.len(), 3);
    // An argument that may be an id is read as one.
    let unknown = home.run("ask 3f9a", b"");
    assert_eq!(unknown.code, 2, "{}", stderr(&unknown));
    assert!(stderr(&unknown).contains("no task `3f9a`"));
}

#[test]
fn characters_that_turn_text_round_are_escaped() {
    let home = Home::new();
    home.tell("task new");
    let text = "rm \u{202e}txt.efas\u{2066} \u{200f}ok";
    let blocks = format!(
        "{}\n",
        serde_json::json!({"role": "user", "content": [{"type": "text", "text": text}]})
    );
    home.fed("task push T1", said("user", text) + &blocks);
    home.file("talk.jsonl", said("user", text));
    for line in ["log T1", "view T1", "recall T1 1..2", "count talk.jsonl"] {
        let shown = stdout(&home.run(line, b""));
        assert!(shown.contains("\\u202e"), "{line}: {shown}");
        for control in ['\u{202e}', '\u{2066}', '\u{200f}'] {
            assert!(!shown.contains(control), "{line}: {shown}");
        }
    }
    let unknown = stderr(&home.run(&format!("view '{text}'"), b""));
    assert!(unknown.contains("\\u202e") && !unknown.contains('\u{202e}'));
    // Data goes out as it came in.
    let exported = home.run("export T1", b"");
    assert!(stdout(&exported).contains('\u{202e}'));
}

#[test]
fn a_transcript_that_is_pushed_is_named_and_so_is_what_takes_it() {
    let home = Home::new();
    home.tell("task new");
    let line = r#"{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","message":{"role":"user","content":"hi"},"uuid":"u","timestamp":"2026-01-02T03:04:05.000Z"}"#;
    home.file("session.jsonl", line);
    let pushed = home.run("task push T1 session.jsonl", b"");
    assert_eq!(pushed.code, 2);
    let said = stderr(&pushed);
    assert!(said.contains("a transcript of claude-code"), "{said}");
    assert!(said.contains("`infold import session.jsonl`"), "{said}");
    home.file("wrong.jsonl", "{\"a\":1}");
    let pushed = home.run("task push T1 wrong.jsonl", b"");
    assert!(!stderr(&pushed).contains("import"), "{}", stderr(&pushed));
}

#[test]
fn the_newest_session_of_an_agent_is_found() {
    let home = Home::new();
    let claude = |text: &str| {
        format!(
            r#"{{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","message":{{"role":"user","content":"{text}"}},"uuid":"u","timestamp":"2026-01-02T03:04:05.000Z"}}"#
        )
    };
    let codex = r#"{"timestamp":"2026-01-02T03:04:05.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"of codex"}]}}"#;
    let gemini = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-02T03:04:05.000Z","lastUpdated":"2026-01-02T03:04:05.000Z","messages":[{"id":"1","timestamp":"2026-01-02T03:04:05.000Z","type":"user","content":"of gemini"}]}"#;
    let put = |path: &str, text: &str, age: u64| {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(&path, text).expect("written");
        let written = SystemTime::now() - Duration::from_secs(age);
        let file = File::options().append(true).open(&path).expect("there");
        file.set_modified(written).expect("a time");
    };
    put(".claude/projects/a/1.jsonl", &claude("older"), 90);
    put(".claude/projects/b/2.jsonl", &claude("newest"), 50);
    put(".claude/projects/b/agent-3.jsonl", &claude("sub-agent"), 10);
    put(".claude/projects/b/notes.md", "notes", 1);
    put(".codex/sessions/2026/01/02/rollout-x.jsonl", codex, 9);
    put(".gemini/tmp/h/chats/session-1.json", gemini, 9);
    let own = home.path();
    let env = [("HOME", own.to_str().expect("a path"))];
    for (agent, text) in [
        ("claude", "newest"),
        ("codex", "of codex"),
        ("gemini", "of gemini"),
    ] {
        let folded = ran(&home, &format!("fold --last {agent} --window 8k"), &env, "");
        assert!(stdout(&folded).contains(text), "{}", stderr(&folded));
        let counted = ran(&home, &format!("count --last {agent}"), &env, "");
        assert!(stdout(&counted).contains(text), "{}", stderr(&counted));
    }
    let elsewhere = [("CODEX_HOME", "/nowhere"), env[0]];
    let none = ran(&home, "fold --last codex --window 8k", &elsewhere, "");
    assert_eq!(none.code, 1);
    assert!(stderr(&none).contains("no session found in /nowhere/sessions"));
}

#[test]
fn a_second_writer_waits_for_one_that_is_soon_done() {
    let home = Home::new();
    home.tell("task new");
    home.fed("task push T1", talk(&["hi", "hello"]));
    let lock = File::options()
        .read(true)
        .write(true)
        .open(home.running("T1").join("lock"))
        .expect("a lock file");
    lock.try_lock().expect("nobody has it");
    let refused = home.run("pin T1 2", b"");
    assert_eq!(refused.code, 3, "{}", stderr(&refused));
    let mut waiting = home
        .command("pin T1 2")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // The command has found the task locked, or will find it free.
    std::thread::sleep(Duration::from_millis(150));
    lock.unlock().expect("let go");
    assert!(waiting.wait().expect("it ends").success());
}

/// Returns the numbers behind a word in the output of a command.
fn figures(text: &str, word: &str) -> Vec<u64> {
    let after = text.split(word).skip(1);
    let number = |rest: &str| {
        let digits = rest.trim_start().split([' ', '\n']).next()?;
        digits.replace(',', "").parse().ok()
    };
    after.filter_map(number).collect()
}

#[test]
fn the_bar_and_what_was_read_are_in_the_same_tokens() {
    let home = Home::new();
    let mut talk = String::new();
    for at in 0..300 {
        talk += &said("user", &format!("question {at} {}", "word ".repeat(50)));
        talk += &said("assistant", &format!("answer {at} {}", "thing ".repeat(50)));
    }
    home.file("talk.jsonl", &talk);
    for model in ["claude-sonnet-4-5", "gpt-4o"] {
        let line = format!("fold talk.jsonl --model {model} --window 30k");
        let story = stderr(&ran(&home, &line, &[], ""));
        let read = figures(&story, "as openai, ")[0];
        let parts = figures(&story, "kept ")[0] + figures(&story, "condensed ")[0];
        assert_eq!(read, parts, "{story}");
    }
}

#[test]
fn what_is_pinned_is_not_drawn_as_condensed() {
    let home = Home::new();
    let mut talk = String::new();
    for at in 0..300 {
        talk += &said("user", &format!("question {at} {}", "word ".repeat(50)));
        talk += &said("assistant", &format!("answer {at} {}", "thing ".repeat(50)));
    }
    home.tell("task new");
    home.fed("task push T1", &talk);
    home.tell("pin T1 51\npin T1 90");
    let managed = stdout(&home.run("manage T1 --window 30k", b""));
    let folds = stdout(&home.run("folds T1 --json", b""));
    let fold: serde_json::Value = serde_json::from_str(folds.trim()).expect("one fold");
    let condensed = figures(&managed, "▒ condensed ")[0];
    assert_eq!(fold["original_tokens"], condensed, "{managed}{folds}");
}

/// Returns bash's completions of the last of these words.
fn completed(home: &Home, words: &[&str]) -> Vec<String> {
    const LINE: &str = r#". ./infold.bash; COMP_WORDS=(infold "$@"); COMP_CWORD=$#;
        _infold infold "${@: -1}" "${COMP_WORDS[COMP_CWORD-1]}"; printf '%s\n' "${COMPREPLY[@]}""#;
    home.file("infold.bash", home.run("completions bash", b"").stdout);
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_infold"));
    let dir = binary.parent().expect("a directory").display();
    let path = format!("{dir}:{}", std::env::var("PATH").unwrap_or_default());
    let output = std::process::Command::new("bash")
        .args(["--norc", "-c", LINE, "bash"])
        .args(words)
        .current_dir(home.path())
        .env("PATH", path)
        .env_remove("INFOLD_CONTEXTS")
        .output()
        .expect("bash");
    let offered = String::from_utf8_lossy(&output.stdout).into_owned();
    let offered = offered.lines().filter(|line| !line.is_empty());
    offered.map(str::to_owned).collect()
}

#[test]
fn ids_of_tasks_are_completed_in_the_shell() {
    let home = Home::new();
    home.tell("task new\ntask new");
    home.fed("task push T1", talk(&["hi", "hello"]));
    let id = |name: &str| home.task(name)[..8].to_owned();
    let (one, two) = (id("T1"), id("T2"));
    for line in [&["view"][..], &["task", "show"], &["export"], &["condense"]] {
        let words = [line, &[&one[..6]]].concat();
        assert_eq!(completed(&home, &words), [one.as_str()], "{line:?}");
        let offered = completed(&home, &[line, &[""]].concat());
        assert!(
            offered.contains(&one) && offered.contains(&two),
            "{offered:?}"
        );
    }
    // If a command takes no task, none is offered.
    assert!(completed(&home, &["models", &one[..6]]).is_empty());
    let listed = home.run("task list --ids", b"").stdout;
    assert!(String::from_utf8_lossy(&listed).contains(&format!("{one}\thi\n")));
    let script = |shell: &str| home.tell(&format!("completions {shell}"));
    assert!(script("zsh").contains("':task -- The task:_infold_tasks'"));
    assert!(script("fish").contains("subcommand view\" -f -k -a \"(infold task list"));
}

/// Runs the command alone on a terminal, as a person who types its name.
fn alone(home: &Home) -> String {
    let ran = std::process::Command::new("script")
        .args(["-qec", env!("CARGO_BIN_EXE_infold"), "/dev/null"])
        .current_dir(home.path())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("util-linux has it");
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8_lossy(&ran.stdout).replace('\r', "")
}

#[test]
fn alone_on_a_terminal_it_says_what_is_here_and_what_comes_next() {
    let home = Home::new();
    let said = alone(&home);
    assert!(said.starts_with("Infold stores everything"), "{said}");
    assert!(said.contains("no tasks yet"), "{said}");
    assert!(said.contains("\nnext "), "{said}");
    // Ten lines, and blank ones between.
    let lines = said.lines().filter(|line| !line.is_empty());
    assert!(lines.count() <= 10, "{said}");
    // Looking creates nothing.
    assert_eq!(fs::read_dir(home.path()).expect("a home").count(), 0);
    home.tell("task new");
    let said = alone(&home);
    assert!(said.contains("1 task in "), "{said}");
    // A script gets the usual error.
    let ran = ran(&home, "", &[], "");
    assert_eq!(ran.code, 2);
    assert!(stderr(&ran).contains("Usage"), "{}", stderr(&ran));
}
