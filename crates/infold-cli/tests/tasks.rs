//! The storage, the names and the removal of tasks.

mod common;

use std::fs;
use std::path::Path;

use common::Home;

/// Runs a command with a home directory, as a person has one.
fn at_home(home: &Home, line: &str, input: &str) -> (String, String, i32) {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut command = home.command(line);
    command.env("HOME", home.path().join("me"));
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes());
    let ran = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a text");
    (
        text(ran.stdout).trim().to_owned(),
        text(ran.stderr),
        ran.status.code().unwrap_or(-1),
    )
}

fn files(dir: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()))
        } else {
            found.extend(fs::read(entry.path()))
        }
    }
    found
}

#[test]
fn tasks_are_in_the_data_directory_unless_some_are_here() {
    let home = Home::new();
    let data = home.path().join("me/.local/share/infold/contexts");
    let (id, _, code) = at_home(&home, "task new", "");
    assert_eq!(code, 0);
    assert!(data.join("running").join(&id).is_dir());
    assert!(!home.contexts().exists());
    // An empty directory of that name may belong to another program.
    fs::create_dir(home.contexts()).expect("a directory");
    let (listed, ..) = at_home(&home, "task list", "");
    assert!(listed.contains(&id[..8]), "{listed}");
    let (there, _, code) = at_home(&home, "--contexts contexts task new", "");
    assert_eq!(code, 0);
    let (listed, ..) = at_home(&home, "task list", "");
    assert!(
        listed.contains(&there[..8]) && !listed.contains(&id[..8]),
        "{listed}"
    );
}

#[test]
fn a_directory_that_was_mistyped_is_told() {
    let home = Home::new();
    for command in ["task list", "verify", "doctor", "view @", "task clean"] {
        let (out, error, code) = at_home(&home, &format!("--contexts contxts {command}"), "");
        assert_eq!((out.as_str(), code), ("", 2), "{command}: {error}");
        assert!(error.contains("no such directory"), "{error}");
    }
    assert!(!home.path().join("contxts").exists());
    let (_, error, code) = at_home(&home, "--contexts contxts task new", "");
    assert_eq!(code, 0, "{error}");
}

#[test]
fn the_newest_activity_comes_first_and_is_called_at() {
    let home = Home::new();
    let say = |text: &str| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
    home.run("task new", b"");
    home.run("task new", b"");
    home.run("task push T2", say("Write the manual").as_bytes());
    home.run("task push T1", say("Fix the parser").as_bytes());
    let titles = |home: &Home| -> Vec<String> {
        let rows = home.objects("task list");
        rows.iter()
            .map(|row| row["title"].as_str().unwrap_or("").to_owned())
            .collect()
    };
    assert_eq!(titles(&home), ["Fix the parser", "Write the manual"]);
    home.run("task push @2", say("and an index").as_bytes());
    assert_eq!(titles(&home), ["Write the manual", "Fix the parser"]);
    let shown = home.objects("task show");
    assert_eq!(shown[0]["uuid"], home.task("T2").as_str());
    let ran = home.run("view @3", b"");
    assert_eq!(ran.code, 2);
}

#[test]
fn the_newest_task_is_meant_where_none_is_named() {
    let home = Home::new();
    home.tell("task new\ntask new");
    let texts: Vec<String> = (0..12)
        .map(|at| format!("{at} {}", "word ".repeat(30)))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    home.run("task push T1", common::talk(&texts).as_bytes());
    home.run("task push T2", common::talk(&["hi", "hello"]).as_bytes());
    home.run("task push T1", common::said("user", "go on").as_bytes());
    for (line, input) in [
        ("view", ""),
        ("log", ""),
        ("condense 2..5 --text -", "what came before"),
        ("condense --preview --window 8k", ""),
        ("folds", ""),
        ("truncate --fraction 0.3", ""),
        ("undo", ""),
        ("redo", ""),
        ("rewind --to 12", ""),
        ("manage --window 9k --force", ""),
        ("export", ""),
        ("task show", ""),
        ("fork", ""),
    ] {
        let ran = home.run(line, input.as_bytes());
        assert_eq!(ran.code, 0, "{line}: {}", home.transcript(&ran));
    }
    assert!(home.objects("folds T1").len() >= 2);
    assert!(home.objects("folds T2").is_empty());
}

#[test]
fn a_deleted_task_is_nowhere() {
    let home = Home::new();
    let secret = "xyzzy-7f31c0-plugh";
    let said = format!("{{\"role\":\"user\",\"content\":\"the key is {secret}\"}}\n");
    home.run("task new", b"");
    home.run("task new", b"");
    home.run("task push T1", said.as_bytes());
    home.run("condense T1 1 --text -", format!("key {secret}").as_bytes());
    home.run(
        "task push T2",
        b"{\"role\":\"user\",\"content\":\"hello\"}\n",
    );
    let is_there = |home: &Home| {
        let all = files(&home.contexts());
        all.iter()
            .any(|bytes| memchr::memmem::find(bytes, secret.as_bytes()).is_some())
    };
    assert!(is_there(&home));
    let ran = home.run("task delete T1", b"");
    assert_eq!(ran.code, 2, "nobody was asked");
    assert!(is_there(&home));
    let ran = home.run("task delete T1 --yes", b"");
    assert_eq!(ran.code, 0);
    assert!(!is_there(&home));
    let ran = home.run("verify", b"");
    assert_eq!(ran.code, 0);
    assert_eq!(home.objects("task list").len(), 1);
}

#[test]
fn a_task_that_others_continue_goes_only_with_them() {
    let home = Home::new();
    home.run("task new", b"");
    home.run(
        "task push T1",
        b"{\"role\":\"user\",\"content\":\"hello\"}\n",
    );
    home.run("fork T1", b"");
    home.run(
        "task push T2",
        b"{\"role\":\"assistant\",\"content\":\"hi\"}\n",
    );
    home.run("fork T2", b"");
    home.run("task push T3", b"{\"role\":\"user\",\"content\":\"bye\"}\n");
    let ran = home.run("task delete T1 --yes", b"");
    let error = String::from_utf8(ran.stderr).expect("a text");
    assert_eq!(ran.code, 1, "{error}");
    for task in ["T2", "T3"] {
        assert!(error.contains(&home.task(task)), "{error}");
    }
    assert_eq!(home.objects("task list").len(), 3);
    let ran = home.run("task delete T1 --with-forks --yes", b"");
    assert_eq!(ran.code, 0);
    assert_eq!(home.objects("task list").len(), 0);
}
