//! Refusals: one error, one hint, the right exit code, and nothing changed.

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Home, Ran, said, talk};
use infold_store::{Durability, TaskDirs, Writer};
use insta::assert_snapshot;

const CALLS: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{}"}}]}"#;

/// A home with one task, `T1`, of six messages and a fold over 2 to 4.
fn with_task() -> Home {
    let home = Home::new();
    home.file(
        "chat.jsonl",
        talk(&["one", "two", "three", "four", "five", "six"]),
    );
    home.file("summary.md", "what was said");
    home.tell("task new\ntask push T1 chat.jsonl\ncondense T1 2..4 --text summary.md");
    home
}

/// Runs commands that must be refused, and returns their output.
///
/// Each prints one error and one hint, the same in JSON, and changes nothing.
fn refused(home: &Home, story: &str) -> String {
    let lines = story.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| refused_with(home, line, b"")).collect()
}

fn refused_with(home: &Home, line: &str, input: &[u8]) -> String {
    let before = home.bytes();
    let ran = home.run(line, input);
    let scripted = home.run(&format!("{line} --json"), input);
    assert!(home.bytes() == before, "`{line}` changed something");
    let text = String::from_utf8(ran.stderr.clone()).expect("UTF-8");
    let said: Vec<&str> = text.lines().collect();
    let [error, hint] = said[..] else {
        panic!("`{line}` said:\n{text}");
    };
    let object: serde_json::Value =
        serde_json::from_slice(&scripted.stderr).expect("the error is JSON");
    assert_eq!(
        Some(error),
        object["error"]
            .as_str()
            .map(|text| format!("error: {text}"))
            .as_deref()
    );
    assert_eq!(
        Some(hint),
        object["hint"]
            .as_str()
            .map(|text| format!("hint: {text}"))
            .as_deref()
    );
    assert_eq!(
        (ran.code, object["exit"].as_i64()),
        (scripted.code, Some(ran.code.into()))
    );
    assert_eq!(
        (ran.stdout.len(), scripted.stdout.len()),
        (0, 0),
        "`{line}` printed a result"
    );
    assert_ne!(ran.code, 0, "`{line}`");
    format!("$ infold {line}\n{}", home.transcript(&ran))
}

#[test]
fn a_task_that_is_not_there() {
    let home = Home::new();
    assert_snapshot!(refused(&home, "view 3f9a\ntask push 3f9a"), @"
    $ infold view 3f9a
    ! error: no task `3f9a`
    ! hint: there are no tasks here; `infold task new` creates one, --contexts DIR sets another directory
    [2]
    $ infold task push 3f9a
    ! error: no task `3f9a`
    ! hint: there are no tasks here; `infold task new` creates one, --contexts DIR sets another directory
    [2]
    ");
    home.tell("task new");
    assert_snapshot!(refused(&home, "
        view nonsense
        task show 00000000-0000-4000-8000-000000000000
        undo zzz
        task complete zzz
        fork zzz
        verify zzz
    "), @r"
    $ infold view nonsense
    ! error: no task `nonsense`
    ! hint: nearest: T1; `infold task list` lists all
    [2]
    $ infold task show 00000000-0000-4000-8000-000000000000
    ! error: no task `00000000-0000-4000-8000-000000000000`
    ! hint: nearest: T1; `infold task list` lists all
    [2]
    $ infold undo zzz
    ! error: no task `zzz`
    ! hint: nearest: T1; `infold task list` lists all
    [2]
    $ infold task complete zzz
    ! error: no task `zzz`
    ! hint: nearest: T1; `infold task list` lists all
    [2]
    $ infold fork zzz
    ! error: no task `zzz`
    ! hint: nearest: T1; `infold task list` lists all
    [2]
    $ infold verify zzz
    ! error: no task `zzz`
    ! hint: nearest: T1; `infold task list` lists all
    [2]
    ");
}

#[test]
fn a_prefix_that_two_tasks_share() {
    let home = with_task();
    let id = home.task("T1");
    let at = id.rfind(|c| c != 'f').expect("an id is not all f");
    let next = id[at..]
        .chars()
        .next()
        .and_then(|c| c.to_digit(16))
        .expect("a digit")
        + 1;
    let twin = format!("{}{next:x}{}", &id[..at], &id[at + 1..]);
    let running = home.contexts().join("running");
    fs::create_dir(running.join(&twin)).expect("a directory");
    for entry in fs::read_dir(running.join(&id)).expect("a directory") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), running.join(&twin).join(entry.file_name())).expect("a copy");
    }
    home.meet(&twin);
    assert_snapshot!(refused(&home, "view t1\nundo t1"), @r"
    $ infold view t1
    ! error: `t1······` could be 2 tasks
    ! hint: use more of its id: T1, T2
    [2]
    $ infold undo t1
    ! error: `t1······` could be 2 tasks
    ! hint: use more of its id: T1, T2
    [2]
    ");
}

#[test]
fn a_message_or_an_event_that_does_not_exist() {
    let home = with_task();
    assert_snapshot!(refused(&home, "
        view T1 --at 7
        view T1 --at 0
        log T1 --at e2
        folds T1 --at e0
        recall T1 5..7
        condense T1 5..7 --text summary.md
        mask T1 9
        pin T1 7
        unpin T1 7
        unpin T1 0
        unpin T1 e5
        unfold T1 e9
        fork T1 --at 7
    "), @r"
    $ infold view T1 --at 7
    ! error: message 7 does not exist; the last one is 6
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold view T1 --at 0
    ! error: message 0 does not exist; the last one is 6
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold log T1 --at e2
    ! error: event e2 does not exist; the last one is e1
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold folds T1 --at e0
    ! error: event e0 does not exist; the last one is e1
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold recall T1 5..7
    ! error: message 7 does not exist; the last one is 6
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold condense T1 5..7 --text summary.md
    ! error: message 7 does not exist; the last one is 6
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold mask T1 9
    ! error: message 9 does not exist; the last one is 6
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold pin T1 7
    ! error: message 7 does not exist; the last one is 6
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold unpin T1 7
    ! error: message 7 does not exist; the last one is 6
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold unpin T1 0
    ! error: messages and events are counted from 1
    ! hint: `infold view t1······` marks what is pinned
    [2]
    $ infold unpin T1 e5
    ! error: event e5 does not exist; the last one is e1
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold unfold T1 e9
    ! error: event e9 does not exist; the last one is e1
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold fork T1 --at 7
    ! error: message 7 does not exist; the last one is 6
    ! hint: `infold log t1······` shows all messages and events
    [2]
    ");
}

#[test]
fn a_rewind_to_the_future() {
    let home = with_task();
    assert_snapshot!(refused(&home, "
        rewind T1 --to 7
        rewind T1 --before 8
        rewind T1 --to e2
        rewind T1 --to 9999-01-01
        rewind T1 --to 99999999999999
        rewind T1 --to e1
    "), @"
    $ infold rewind T1 --to 7
    ! error: message 7 does not exist; the last one is 6
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold rewind T1 --before 8
    ! error: message 8 does not exist; the last one is 6
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold rewind T1 --to e2
    ! error: event e2 does not exist; the last one is e1
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold rewind T1 --to 9999-01-01
    ! error: YYYY-MM-DDThh:mm:ss.mmmZ is in the future
    ! hint: `infold log t1······ --json` shows the times
    [2]
    $ infold rewind T1 --to 99999999999999
    ! error: YYYY-MM-DDThh:mm:ss.mmmZ is in the future
    ! hint: `infold log t1······ --json` shows the times
    [2]
    $ infold rewind T1 --to e1
    ! error: the conversation is already there
    ! hint: nothing was changed
    [1]
    ");
}

#[test]
fn a_fold_that_cannot_be_opened() {
    let home = with_task();
    home.tell("condense T1 2..5 --text summary.md");
    assert_snapshot!(refused(&home, "unfold T1 e1"), @r"
    $ infold unfold T1 e1
    ! error: fold e1 lies inside fold e2
    ! hint: remove the outer fold first: `infold unfold t1······ e2`
    [2]
    ");
    home.tell("unfold T1 e2\nunfold T1 e1\npin T1 3");
    assert_snapshot!(refused(&home, "unfold T1 e1\nunfold T1 e5"), @r"
    $ infold unfold T1 e1
    ! error: fold e1 is not active
    ! hint: `infold folds t1······` shows which are active
    [2]
    $ infold unfold T1 e5
    ! error: fold e5 is not active
    ! hint: `infold folds t1······` shows which are active
    [2]
    ");
}

#[test]
fn a_fold_over_what_cannot_be_hidden() {
    let home = Home::new();
    home.file("open.jsonl", talk(&["one", "two", "three"]) + CALLS + "\n");
    home.file("summary.md", "what was said");
    home.file("empty.md", " \n");
    home.file("latin.md", b"caf\xe9");
    home.tell("task new\ntask push T1 open.jsonl\npin T1 2");
    assert_snapshot!(refused(&home, "
        condense T1 3..4 --text summary.md
        condense T1 1 --text summary.md
        condense T1 2 --text summary.md
        condense T1 3 --text empty.md
        condense T1 3 --text latin.md
        condense T1 3 --text nowhere.md
        truncate T1 --fraction 0.001
        mask T1 1
        mask T1 3
        pin T1 2
        unpin T1 3
        redo T1
    "), @"
    $ infold condense T1 3..4 --text summary.md
    ! error: the round that starts at message 4 still waits for 2 tool result(s)
    ! hint: wait for the results, or end the range before message 4
    [2]
    $ infold condense T1 1 --text summary.md
    ! error: nothing to fold: the system prompt and the first request are always shown
    ! hint: `infold view t1······` shows what is visible
    [1]
    $ infold condense T1 2 --text summary.md
    ! error: nothing to fold: everything in that range is pinned
    ! hint: `infold view t1······` shows what is visible
    [1]
    $ infold condense T1 3 --text empty.md
    ! error: the summary is empty
    ! hint: nothing was folded
    [2]
    $ infold condense T1 3 --text latin.md
    ! error: latin.md is not UTF-8 (byte 3)
    ! hint: --text names a file with the summary, or - for standard input
    [2]
    $ infold condense T1 3 --text nowhere.md
    ! error: nowhere.md could not be read: No such file or directory (os error 2)
    ! hint: --text names a file with the summary, or - for standard input
    [2]
    $ infold truncate T1 --fraction 0.001
    ! error: nothing to fold: so small a fraction of what is visible is less than two messages
    ! hint: `infold view t1······` shows what is visible
    [1]
    $ infold mask T1 1
    ! error: part 0 of message 1 cannot be masked: the system prompt and the first request are always shown whole
    ! hint: `infold recall t1······ 1` shows the message
    [2]
    $ infold mask T1 3
    ! error: part 0 of message 3 cannot be masked: only tool results and images can be
    ! hint: `infold recall t1······ 3` shows the message
    [2]
    $ infold pin T1 2
    ! error: message 2 is pinned already
    ! hint: `infold unpin t1······ 2` removes the pin
    [1]
    $ infold unpin T1 3
    ! error: message 3 is not pinned
    ! hint: `infold view t1······` marks what is pinned
    [1]
    $ infold redo T1
    ! error: nothing to redo
    ! hint: only an undo with nothing after it can be redone
    [1]
    ");
    home.tell("rewind T1 --to 2");
    assert_snapshot!(refused(&home, "
        condense T1 3 --text summary.md
        pin T1 3
        mask T1 3
        truncate T1
    "), @r"
    $ infold condense T1 3 --text summary.md
    ! error: message 3 is hidden by a rewind
    ! hint: `infold recall t1······ 3` shows it; `infold rewind t1······ --to 3` returns to it
    [2]
    $ infold pin T1 3
    ! error: message 3 is hidden by a rewind
    ! hint: `infold recall t1······ 3` shows it; `infold rewind t1······ --to 3` returns to it
    [2]
    $ infold mask T1 3
    ! error: message 3 is hidden by a rewind
    ! hint: `infold recall t1······ 3` shows it; `infold rewind t1······ --to 3` returns to it
    [2]
    $ infold truncate T1
    ! error: nothing to fold: only the system prompt, the first request, pins, stand-ins and the last round are visible
    ! hint: `infold view t1······` shows what is visible
    [1]
    ");
}

#[test]
fn a_step_when_there_is_none_to_take_back() {
    let home = Home::new();
    home.tell("task new");
    home.fed("task push T1", "");
    assert_snapshot!(refused(&home, "undo T1\nredo T1\ntruncate T1"), @r"
    $ infold undo T1
    ! error: nothing to undo
    ! hint: `infold log t1······` shows the steps
    [1]
    $ infold redo T1
    ! error: nothing to redo
    ! hint: only an undo with nothing after it can be redone
    [1]
    $ infold truncate T1
    ! error: nothing to fold: only the system prompt, the first request, pins, stand-ins and the last round are visible
    ! hint: `infold view t1······` shows what is visible
    [1]
    ");
}

#[test]
fn an_ended_task_takes_nothing_more() {
    let home = with_task();
    home.tell("task complete T1");
    assert_snapshot!(refused(&home, "
        task push T1 chat.jsonl
        undo T1
        task fail T1 --error 'too late'
        task complete T1
    "), @r"
    $ infold task push T1 chat.jsonl
    ! error: task T1 has ended (completed)
    ! hint: `infold fork T1` continues it in a new task
    [2]
    $ infold undo T1
    ! error: task T1 has ended (completed)
    ! hint: `infold fork T1` continues it in a new task
    [2]
    $ infold task fail T1 --error 'too late'
    ! error: task T1 has ended (completed)
    ! hint: `infold fork T1` continues it in a new task
    [2]
    $ infold task complete T1
    ! error: task T1 has ended (completed)
    ! hint: `infold fork T1` continues it in a new task
    [2]
    ");
}

#[test]
fn a_second_writer() {
    let home = with_task();
    let first = Writer::open(&home.running("T1"), Durability::Never, &TaskDirs::none());
    let first = first.expect("nobody else writes");
    assert_snapshot!(refused(&home, "
        task push T1 chat.jsonl
        condense T1 5 --text summary.md
        undo T1
        task complete T1
    "), @r"
    $ infold task push T1 chat.jsonl
    ! error: task T1: process N on HOST is writing to this task
    ! hint: wait for it, or stop process N
    [3]
    $ infold condense T1 5 --text summary.md
    ! error: task T1: process N on HOST is writing to this task
    ! hint: wait for it, or stop process N
    [3]
    $ infold undo T1
    ! error: task T1: process N on HOST is writing to this task
    ! hint: wait for it, or stop process N
    [3]
    $ infold task complete T1
    ! error: task T1: process N on HOST is writing to this task
    ! hint: wait for it, or stop process N
    [3]
    ");
    assert_eq!(home.objects("view T1").len(), 4, "readers need no lock");
    assert_eq!(home.objects("fork T1").len(), 1, "nor does whoever forks");
    drop(first);
    assert_snapshot!(home.tell("task push T1 chat.jsonl"), @r"
    $ infold task push T1 chat.jsonl
    7..12
    ");
}

#[test]
fn a_directory_that_is_write_protected() {
    let home = with_task();
    let program = home.path().join("infold");
    // Not copied by this process: a test that starts a process at that moment would inherit the open file, and a
    // program that is open for writing cannot be started.
    run("cp", &[Path::new(env!("CARGO_BIN_EXE_infold")), &program]);
    chmod(&home.path(), 0o755);
    let root = is_root();
    if root {
        run(
            "chown",
            &[Path::new("-R"), Path::new("65534"), &home.contexts()],
        );
    }
    let before = home.bytes();
    protect(&home.contexts(), true);
    let ran = |line: &str| {
        let mut command = Command::new(&program);
        let given = home.command(line);
        command
            .args(given.get_args())
            .current_dir(home.path())
            .env_clear();
        command.envs(
            given
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        if root {
            command.uid(65534);
        }
        let ran = Ran::from(command.output().expect("the command starts"));
        format!("$ infold {line}\n{}", home.transcript(&ran))
    };
    let told: String = [
        "view T1",
        "folds T1",
        "recall T1 2",
        "task push T1 chat.jsonl",
        "undo T1",
        "task complete T1",
        "task new",
        "fork T1",
        "task list",
        "doctor",
    ]
    .map(ran)
    .concat();
    let after = home.bytes();
    protect(&home.contexts(), false);
    assert!(after == before, "something was changed");
    assert_snapshot!(told, @"
    $ infold view T1
    1        user   one                                                                         5 tokens
    2-4      e1 (summary of 3 messages, 15 tokens)                                             35 tokens
    5        user   five                                                                        5 tokens
    6        model  six                                                                         5 tokens
    ! view 50 tokens, log 30 in 6 messages
    $ infold folds T1
    e1  summary  2..4  active  15 → 35 tokens  YYYY-MM-DD hh:mm:ss
    $ infold recall T1 2
    ── 2 model · YYYY-MM-DDThh:mm:ss.mmmZ · hidden
    two
    $ infold task push T1 chat.jsonl
    ! error: ./contexts/tasks.db cannot be written
    ! hint: the contexts directory must be writable by you
    [3]
    $ infold undo T1
    ! error: ./contexts/tasks.db cannot be written
    ! hint: the contexts directory must be writable by you
    [3]
    $ infold task complete T1
    ! error: ./contexts/tasks.db cannot be written
    ! hint: the contexts directory must be writable by you
    [3]
    $ infold task new
    ! error: ./contexts/tasks.db cannot be written
    ! hint: the contexts directory must be writable by you
    [3]
    $ infold fork T1
    ! error: ./contexts/tasks.db cannot be written
    ! hint: the contexts directory must be writable by you
    [3]
    $ infold task list
    task      status   active            tokens  folds  agent  directory  about
    t1······  running  YYYY-MM-DD hh:mm      30      1  –      –          one
    $ infold doctor
    infold     0.1.0
    contexts   DIR/contexts
    tasks      1 running
    on disk    SIZE
    ! no problems found
    ");
}

#[test]
fn a_note_that_says_nothing() {
    let home = with_task();
    assert_snapshot!(refused(&home, "pin T1 --note="), @r"
    $ infold pin T1 --note=
    ! error: a note has to say something
    ! hint: nothing was pinned
    [2]
    ");
}

#[test]
fn a_registry_of_a_newer_version() {
    let home = with_task();
    let path = home.contexts().join("tasks.db");
    let mut bytes = fs::read(&path).expect("it is there");
    // The place of `PRAGMA user_version` in SQLite's header.
    bytes[60..64].copy_from_slice(&99u32.to_be_bytes());
    fs::write(&path, bytes).expect("it can be written");
    assert_snapshot!(refused(&home, "
        task new
        task list
        task show T1
        task clean --older-than 0s
        fork T1
        doctor
        pin T1 2
        task complete T1
    "), @"
    $ infold task new
    ! error: ./contexts/tasks.db is of version 99, and this infold knows up to 7
    ! hint: use a newer infold; nothing was changed
    [3]
    $ infold task list
    ! error: ./contexts/tasks.db is of version 99, and this infold knows up to 7
    ! hint: use a newer infold; nothing was changed
    [3]
    $ infold task show T1
    ! error: ./contexts/tasks.db is of version 99, and this infold knows up to 7
    ! hint: use a newer infold; nothing was changed
    [3]
    $ infold task clean --older-than 0s
    ! error: ./contexts/tasks.db is of version 99, and this infold knows up to 7
    ! hint: use a newer infold; nothing was changed
    [3]
    $ infold fork T1
    ! error: ./contexts/tasks.db is of version 99, and this infold knows up to 7
    ! hint: use a newer infold; nothing was changed
    [3]
    $ infold doctor
    ! error: ./contexts/tasks.db is of version 99, and this infold knows up to 7
    ! hint: use a newer infold; nothing was changed
    [3]
    $ infold pin T1 2
    ! error: ./contexts/tasks.db is of version 99, and this infold knows up to 7
    ! hint: use a newer infold; nothing was changed
    [3]
    $ infold task complete T1
    ! error: ./contexts/tasks.db is of version 99, and this infold knows up to 7
    ! hint: use a newer infold; nothing was changed
    [3]
    ");
    assert_eq!(
        home.objects("view T1").len(),
        4,
        "the log needs no registry"
    );
}

#[test]
fn a_registry_that_is_none() {
    let home = with_task();
    fs::write(
        home.contexts().join("tasks.db"),
        b"not a database, but long enough to be read",
    )
    .expect("it can be written");
    let listed = home.run("task list --json", b"");
    assert_eq!(listed.code, 0);
    let told = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(told.contains("tasks.db was damaged"), "{told}");
    let repaired = home.tell("doctor --repair");
    assert!(repaired.ends_with("! no problems found\n"), "{repaired}");
    assert_eq!(home.objects("task list").len(), 1);
}

#[test]
fn a_message_of_200_megabytes() {
    let home = with_task();
    let before = home.bytes();
    let mut told = String::new();
    for start in ["", "["] {
        let mut child = home
            .command("task push T1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut input = child.stdin.take().expect("a pipe");
        let head = format!("{start}{{\"role\":\"user\",\"content\":\"");
        input.write_all(head.as_bytes()).expect("the start is read");
        let piece = vec![b'x'; 1 << 20];
        let read = (0..200)
            .take_while(|_| input.write_all(&piece).is_ok())
            .count();
        drop(input);
        let ran = Ran::from(child.wait_with_output().expect("the command ends"));
        assert!(read < 100, "it was refused only after {read} MB");
        told += &home.transcript(&ran);
    }
    assert_snapshot!(told, @r"
    ! error: line 1, message 1: longer than 64 MiB, the most a message may have
    ! hint: put large data into a file and its path into the message; nothing was stored
    [2]
    ! error: line 1, message 1: longer than 64 MiB, the most a message may have
    ! hint: put large data into a file and its path into the message; nothing was stored
    [2]
    ");
    assert!(home.bytes() == before, "something was changed");
}

#[test]
fn what_is_not_messages() {
    let home = with_task();
    home.file(
        "ok-then-not.jsonl",
        said("user", "fine") + "\n" + "{\"role\":\"user\"}\n" + &said("user", "x"),
    );
    home.file("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01");
    home.file(
        "latin.jsonl",
        b"{\"role\":\"user\",\"content\":\"caf\xe9\"}\n",
    );
    home.file("plain.txt", "Dear model,\nplease help.\n");
    home.file(
        "pretty.json",
        "{\n  \"role\": \"user\",\n  \"content\": \"hi\"\n}\n",
    );
    home.file(
        "request.json",
        "{\"model\":\"gpt-5\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n",
    );
    home.file("role.jsonl", "{\"role\":\"robot\",\"content\":\"beep\"}\n");
    home.file("number.jsonl", "{\"role\":\"user\",\"content\":7}\n");
    home.file(
        "cut.jsonl",
        said("user", "fine") + "{\"role\":\"user\",\"cont",
    );
    home.file(
        "two.jsonl",
        "{\"role\":\"user\",\"content\":\"a\"}{\"role\":\"user\",\"content\":\"b\"}\n",
    );
    home.file("values.json", "[1, 2]");
    home.file("open.json", "[{\"role\":\"user\",\"content\":\"a\"}");
    home.file("nul.jsonl", "{\"role\":\"user\",\"content\":\"a\0b\"}\n");
    home.file("deep.jsonl", "[".repeat(100_000));
    fs::create_dir(home.path().join("directory")).expect("a directory");
    assert_snapshot!(refused(&home, "
        task push T1 ok-then-not.jsonl
        task push T1 picture.png
        task push T1 latin.jsonl
        task push T1 plain.txt
        task push T1 pretty.json
        task push T1 request.json
        task push T1 role.jsonl
        task push T1 number.jsonl
        task push T1 cut.jsonl
        task push T1 two.jsonl
        task push T1 values.json
        task push T1 open.json
        task push T1 nul.jsonl
        task push T1 deep.jsonl
        task push T1 directory
        task push T1 nowhere.jsonl
    "), @r#"
    $ infold task push T1 ok-then-not.jsonl
    ! error: line 3, message 2: no "content" and no tool call
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 picture.png
    ! error: line 1, message 1: invalid UTF-8 at byte 0
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 latin.jsonl
    ! error: line 1, message 1: invalid UTF-8 at byte 29
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 plain.txt
    ! error: line 1, message 1: not JSON: expected value at line 1 column 1
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 pretty.json
    ! error: line 1, message 1: not JSON: EOF while parsing an object at line 1 column 1
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 request.json
    ! error: line 1, message 1: no "role"
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 role.jsonl
    ! error: line 1, message 1: unknown role `robot` (known: system, developer, user, assistant, tool, function)
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 number.jsonl
    ! error: line 1, message 1: "content" is a number, neither text nor a list of blocks
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 cut.jsonl
    ! error: line 2, message 2: not JSON: EOF while parsing a string at line 1 column 20
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 two.jsonl
    ! error: line 1, message 1: not JSON: trailing characters at line 1 column 30
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 values.json
    ! error: line 1, message 1: a message is a JSON object, not a number
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 open.json
    ! error: line 1: the array is not closed
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 nul.jsonl
    ! error: line 1, message 1: not JSON: control character (\u0000-\u001F) found while parsing a string at line 1 column 27
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 deep.jsonl
    ! error: line 1: the array is not closed
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    $ infold task push T1 directory
    ! error: directory could not be read: is a directory
    ! hint: name the file with the messages, or - for standard input
    [2]
    $ infold task push T1 nowhere.jsonl
    ! error: nowhere.jsonl could not be read: No such file or directory (os error 2)
    ! hint: name the file with the messages, or - for standard input
    [2]
    "#);
    // The same from a pipe, which cannot be read twice.
    assert_snapshot!(refused_with(&home, "task push T1", b"\x89PNG\r\n\x1a\n"), @r#"
    $ infold task push T1
    ! error: line 1, message 1: invalid UTF-8 at byte 0
    ! hint: the input is JSON Lines (one message per line) or a JSON array, of messages with "role" and "content"; nothing was stored
    [2]
    "#);
}

#[test]
fn no_messages_at_all_is_no_error() {
    let home = with_task();
    let before = home.bytes();
    assert_snapshot!([
        home.fed("task push T1", ""),
        home.fed("task push T1", "\n \n"),
        home.fed("task push T1", "[ ]"),
        home.fed("task push T1", "\u{feff}"),
    ]
    .concat(), @r"
    $ infold task push T1
    ! no messages
    $ infold task push T1
    ! no messages
    $ infold task push T1
    ! no messages
    $ infold task push T1
    ! no messages
    ");
    assert!(home.bytes() == before, "something was changed");
}

#[test]
fn what_is_not_a_tool_record() {
    let home = with_task();
    assert_snapshot!([
        refused_with(&home, "task tool T1", b""),
        refused_with(&home, "task tool T1", b"ls"),
        refused_with(&home, "task tool T1", b"{\"args\":{}}"),
        refused_with(&home, "task tool T1", b"{\"tool\":\"ls\",\"status\":\"maybe\"}"),
        refused_with(&home, "task tool T1", b"{\"tool\":\"\xff\"}"),
    ]
    .concat(), @r#"
    $ infold task tool T1
    ! error: a tool record is a JSON object: not JSON: EOF while parsing a value at line 1 column 0
    ! hint: such as {"tool":"ls","args":{},"result":"a b","status":"success","duration_ms":3}
    [2]
    $ infold task tool T1
    ! error: a tool record is a JSON object: not JSON: expected value at line 1 column 1
    ! hint: such as {"tool":"ls","args":{},"result":"a b","status":"success","duration_ms":3}
    [2]
    $ infold task tool T1
    ! error: "tool" must name the tool
    ! hint: such as {"tool":"ls","args":{},"result":"a b","status":"success","duration_ms":3}
    [2]
    $ infold task tool T1
    ! error: "status" must be "success" or "error"
    ! hint: such as {"tool":"ls","args":{},"result":"a b","status":"success","duration_ms":3}
    [2]
    $ infold task tool T1
    ! error: a tool record is a JSON object: invalid UTF-8 at byte 9
    ! hint: such as {"tool":"ls","args":{},"result":"a b","status":"success","duration_ms":3}
    [2]
    "#);
}

#[test]
fn contexts_that_are_no_directory() {
    let home = Home::new();
    home.file("contexts", "I am a file");
    assert_snapshot!(refused(&home, "
        task new
        task list
        view 3f9a
        doctor
        verify
        doctor --repair
    "), @r"
    $ infold task new
    ! error: ./contexts/running could not be made: Not a directory (os error 20)
    ! hint: --contexts DIR or INFOLD_CONTEXTS sets the directory of the tasks
    [3]
    $ infold task list
    ! error: ./contexts/running could not be made: Not a directory (os error 20)
    ! hint: --contexts DIR or INFOLD_CONTEXTS sets the directory of the tasks
    [3]
    $ infold view 3f9a
    ! error: ./contexts/running could not be read: Not a directory (os error 20)
    ! hint: --contexts DIR or INFOLD_CONTEXTS sets the directory of the tasks
    [3]
    $ infold doctor
    ! error: ./contexts/running could not be made: Not a directory (os error 20)
    ! hint: --contexts DIR or INFOLD_CONTEXTS sets the directory of the tasks
    [3]
    $ infold verify
    ! error: ./contexts/running could not be read: Not a directory (os error 20)
    ! hint: --contexts DIR or INFOLD_CONTEXTS sets the directory of the tasks
    [3]
    $ infold doctor --repair
    ! error: ./contexts/running could not be made: Not a directory (os error 20)
    ! hint: --contexts DIR or INFOLD_CONTEXTS sets the directory of the tasks
    [3]
    ");
}

#[test]
fn a_wrong_command_line() {
    let home = with_task();
    assert_snapshot!(home.tell("
        folsd T1
        view T1 --row
        rewind T1
        rewind T1 --to 3 --before 4
        view T1 --at yesterday
        rewind T1 --to yesterday
        condense T1 9..3 --text summary.md
        truncate T1 --fraction 2
        task clean --older-than soon
        task list --status done
    "), @"
    $ infold folsd T1
    ! error: unrecognized subcommand 'folsd'
    !
    !   tip: some similar subcommands exist: 'tools', 'models', 'unfold', 'fold', 'folds'
    !
    ! Usage: infold [OPTIONS] <COMMAND>
    !
    ! For more information, try '--help'.
    [2]
    $ infold view T1 --row
    ! error: unexpected argument '--row' found
    !
    !   tip: a similar argument exists: '--raw'
    !
    ! Usage: infold view --raw <TASK>
    !
    ! For more information, try '--help'.
    [2]
    $ infold rewind T1
    ! error: the following required arguments were not provided:
    !   <--to <SEQ|EVENT|TIME>|--before <SEQ|EVENT|TIME>>
    !
    ! Usage: infold rewind <--to <SEQ|EVENT|TIME>|--before <SEQ|EVENT|TIME>> <TASK>
    !
    ! For more information, try '--help'.
    [2]
    $ infold rewind T1 --to 3 --before 4
    ! error: the argument '--to <SEQ|EVENT|TIME>' cannot be used with '--before <SEQ|EVENT|TIME>'
    !
    ! Usage: infold rewind <--to <SEQ|EVENT|TIME>|--before <SEQ|EVENT|TIME>> <TASK>
    !
    ! For more information, try '--help'.
    [2]
    $ infold view T1 --at yesterday
    ! error: invalid value 'yesterday' for '--at <SEQ|EVENT|TIME>': `yesterday` is neither a seq (32), an event (e3) nor a time (2026-11-15T12:00Z)
    !
    ! For more information, try '--help'.
    [2]
    $ infold rewind T1 --to yesterday
    ! error: invalid value 'yesterday' for '--to <SEQ|EVENT|TIME>': `yesterday` is neither a seq (32), an event (e3) nor a time (2026-11-15T12:00Z)
    !
    ! For more information, try '--help'.
    [2]
    $ infold condense T1 9..3 --text summary.md
    ! error: invalid value '9..3' for '[A..B]': `9..3` is not a range of messages such as 3..12
    !
    ! For more information, try '--help'.
    [2]
    $ infold truncate T1 --fraction 2
    ! error: invalid value '2' for '--fraction <FRACTION>': must be more than 0 and at most 1
    !
    ! For more information, try '--help'.
    [2]
    $ infold task clean --older-than soon
    ! error: invalid value 'soon' for '--older-than <AGE>': `soon` is not an age such as 30d, 12h, 90m or 10s
    !
    ! For more information, try '--help'.
    [2]
    $ infold task list --status done
    ! error: invalid value 'done' for '--status <STATUS>': no status `done`; there are queued, running, paused, completed, failed
    !
    ! For more information, try '--help'.
    [2]
    ");
    assert_snapshot!(home.tell("
        folsd T1 --json
        view T1 --row --json
        rewind T1 --json
        truncate T1 --fraction 2 --json
        task list --status done --json
        --json
    "), @r#"
    $ infold folsd T1 --json
    ! {"error":"unrecognized subcommand 'folsd'","exit":2,"hint":"some similar subcommands exist: 'tools', 'models', 'unfold', 'fold', 'folds'"}
    [2]
    $ infold view T1 --row --json
    ! {"error":"unexpected argument '--row' found","exit":2,"hint":"a similar argument exists: '--raw'"}
    [2]
    $ infold rewind T1 --json
    ! {"error":"the following required arguments were not provided: <--to <SEQ|EVENT|TIME>|--before <SEQ|EVENT|TIME>>","exit":2,"hint":"`infold --help` lists the commands"}
    [2]
    $ infold truncate T1 --fraction 2 --json
    ! {"error":"invalid value '2' for '--fraction <FRACTION>': must be more than 0 and at most 1","exit":2,"hint":"`infold --help` lists the commands"}
    [2]
    $ infold task list --status done --json
    ! {"error":"invalid value 'done' for '--status <STATUS>': no status `done`; there are queued, running, paused, completed, failed","exit":2,"hint":"`infold --help` lists the commands"}
    [2]
    $ infold --json
    ! {"error":"'infold' requires a subcommand but one was not provided [subcommands: fold, ask, send, run, enqueue, work, serve, wrap, setup, mcp, fetch, provider, task, import, export, log, view, folds, search, recall, state, layers, tools, manage, condense, truncate, mask, unfold, rewind, undo, redo, checkpoint, diff, fork, pin, unpin, redact, count, eval, gain, models, config, verify, doctor, completions, help]","exit":2,"hint":"`infold --help` lists the commands"}
    [2]
    "#);
}

#[test]
fn a_reader_that_went_away() {
    let home = Home::new();
    let texts: Vec<String> = (0..2000).map(|n| format!("message {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    home.file("chat.jsonl", talk(&texts));
    home.tell("task new\ntask push T1 chat.jsonl");
    for line in [
        "log T1",
        "view T1",
        "log T1 --json",
        "view T1 --raw",
        "recall T1 1..2000",
    ] {
        let mut child = home
            .command(line)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut first = String::new();
        // Like `head -1`: reads one line and closes the pipe.
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
        lines.read_line(&mut first).expect("a line");
        drop(lines);
        let ran = Ran::from(child.wait_with_output().expect("the command ends"));
        assert!(!first.is_empty(), "{line}");
        assert_eq!(
            (ran.code, String::from_utf8_lossy(&ran.stderr)),
            (0, "".into()),
            "{line}"
        );
    }
}

#[test]
fn nobody_who_listens_to_what_is_said_beside() {
    let home = with_task();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(stderr) = full() else { return };
    let status = home
        .command("view T1")
        .stdout(Stdio::null())
        .stderr(stderr)
        .status();
    assert_eq!(status.expect("the command starts").code(), Some(0));
    let stdout = full().expect("it was there");
    let ran = home.command("view T1").stdout(stdout).output();
    assert_snapshot!(home.transcript(&Ran::from(ran.expect("the command starts"))), @r"
    ! error: the output could not be written: No space left on device (os error 28)
    [3]
    ");
}

fn is_root() -> bool {
    let mut id = Command::new("id")
        .arg("-u")
        .stdout(Stdio::piped())
        .spawn()
        .expect("id");
    let mut text = String::new();
    id.stdout
        .take()
        .expect("a pipe")
        .read_to_string(&mut text)
        .expect("a number");
    id.wait().expect("id ends");
    text.trim() == "0"
}

fn run(program: &str, args: &[&Path]) {
    let status = Command::new(program).args(args).status().expect(program);
    assert!(status.success(), "{program}");
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// Takes the right to write away from a directory and all in it, or gives it back.
fn protect(dir: &Path, on: bool) {
    let write = if on { 0 } else { 0o200 };
    if !on {
        chmod(dir, 0o700);
    }
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            protect(&path, on)
        } else {
            chmod(&path, 0o400 | write)
        }
    }
    if on {
        chmod(dir, 0o500);
    }
}
