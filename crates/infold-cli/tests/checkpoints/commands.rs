//! `infold checkpoint`, `diff` and `rewind --files` by hand.

use std::fs;

use serde_json::json;

use crate::{done, home, tree};

#[test]
fn files_are_kept_listed_compared_and_put_back() {
    let (home, work) = home();
    fs::write(work.join("a.txt"), "one\ntwo\n").unwrap();
    let story = home.tell(
        "
        checkpoint T1
        checkpoint T1 --workspace work
        checkpoint T1
        checkpoint list T1
        ",
    );
    insta::assert_snapshot!(story, @r"
    $ infold checkpoint T1
    ! error: the task has no workspace: none was named, and it was not made in a directory
    ! hint: `infold checkpoint t1······ --workspace DIR` names it, and is remembered
    [2]
    $ infold checkpoint T1 --workspace work
    e1: checkpoint 1 of work: 1 added, 0 changed, 0 removed
    $ infold checkpoint T1
    nothing changed since checkpoint 1
    $ infold checkpoint list T1
    event  after  time                 checkpoint  why      files
    e1         4  YYYY-MM-DD hh:mm:ss  1           command  1 added, 0 changed, 0 removed
    ");
    fs::write(work.join("a.txt"), "one\n2\n").unwrap();
    fs::write(work.join("b.txt"), "new\n").unwrap();
    let story = home.tell(
        "
        diff T1 4..now
        diff T1 4.. --stat
        rewind T1 --files --to 4 --dry-run
        rewind T1 --files --to 2
        checkpoint T1
        ",
    );
    insta::assert_snapshot!(story, @r"
    $ infold diff T1 4..now
    diff --git a/a.txt b/a.txt
    index 814f4a4..99b356d 100644
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    diff --git a/b.txt b/b.txt
    new file mode 100644
    index 0000000..3e75765
    --- /dev/null
    +++ b/b.txt
    @@ -0,0 +1 @@
    +new
    $ infold diff T1 4.. --stat
     a.txt | 2 +-
     b.txt | 1 +
     2 files changed, 2 insertions(+), 1 deletion(-)
    $ infold rewind T1 --files --to 4 --dry-run
    modified a.txt
    removed  b.txt
    $ infold rewind T1 --files --to 2
    ! error: no checkpoint at or before that point; the first one is e1
    ! hint: `infold checkpoint list t1······` shows what is kept; without --files, and with --no-files of `undo` and `redo`, files stay as they are
    [2]
    $ infold checkpoint T1
    e2: checkpoint 2 of DIR/work: 1 added, 1 changed, 0 removed
    ");
    let log = home.tell("log T1");
    assert!(
        log.contains("1 added, 1 changed, 0 removed (command)"),
        "{log}"
    );
    let changes = home.objects("diff T1 e1..e2");
    assert_eq!(
        changes[0]["files"][0],
        json!({"path": "a.txt", "change": "modified"})
    );
    let before = tree(&work);
    let story = home.tell(
        "
        rewind T1 --files --to e1
        undo T1
        undo T1
        ",
    );
    insta::assert_snapshot!(story, @r"
    $ infold rewind T1 --files --to e1
    rewound to e1: 0 messages hidden, none lost; view 20 → 20 tokens; 1 file written, 1 removed (undo: infold undo t1······)
    ! wrote a.txt
    ! removed b.txt
    $ infold undo T1
    undid e3; view 20 → 20 tokens; 2 files written, 0 removed (redo: infold redo t1······)
    ! wrote a.txt
    ! wrote b.txt
    $ infold undo T1
    ! error: nothing to undo
    ! hint: `infold log t1······` shows the steps
    [1]
    ");
    assert_eq!(tree(&work), before);
}

#[test]
fn workspaces_that_cannot_be_kept_are_refused() {
    let (home, work) = home();
    fs::create_dir_all(home.path().join("me/project")).unwrap();
    fs::write(work.join("file"), "").unwrap();
    let refused = |workspace: &str| {
        let mut command = home.command(&format!("checkpoint T1 --workspace {workspace}"));
        let ran = command
            .env("HOME", home.path().join("me"))
            .output()
            .expect("it runs");
        assert_eq!(ran.status.code(), Some(2), "{workspace}");
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    for (workspace, why) in [
        ("/", "it is the root of the file system"),
        ("me", "it is the home directory"),
        (".", "the home directory is in it"),
        ("nowhere", "it does not exist"),
        ("work/file", "it is not a directory"),
        ("contexts", "it is in the directory of the contexts"),
    ] {
        let said = refused(workspace);
        assert!(
            said.contains(why) && said.contains("hint: "),
            "{workspace}: {said}"
        );
    }
    assert_eq!(home.objects("checkpoint list T1").len(), 0);
    // A workspace inside another one is separate.
    done(&home, "checkpoint T1 --workspace me/project");
}

#[test]
fn without_git_the_command_says_what_is_missing() {
    let (home, _) = home();
    let mut command = home.command("checkpoint T1 --workspace work");
    let ran = command.env("PATH", home.path()).output().expect("it runs");
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        said.contains("checkpoints need git") && said.contains("apt install git"),
        "{said}"
    );
    done(&home, "view T1");
    done(&home, "rewind T1 --to 2");
    done(&home, "undo T1");
}

#[test]
fn a_fork_at_a_message_has_the_files_that_show_its_effect() {
    let (home, work) = home();
    fs::write(work.join("a"), "one").unwrap();
    done(&home, "checkpoint T1 --workspace work");
    home.run(
        "task push T1",
        br#"{"role":"user","content":"e"}
{"role":"assistant","content":"f"}
"#,
    );
    fs::write(work.join("a"), "two").unwrap();
    done(&home, "checkpoint T1");
    home.run("task push T1", br#"{"role":"user","content":"g"}"#);
    fs::write(work.join("a"), "nine").unwrap();
    home.meet(&done(&home, "fork T1 --at 6"));
    done(&home, "rewind T2 --files --to 6");
    assert_eq!(fs::read(work.join("a")).unwrap(), b"two");
    done(&home, "rewind T1 --files --to 6");
    assert_eq!(fs::read(work.join("a")).unwrap(), b"two");
}

#[test]
fn nothing_is_left_of_a_task_that_was_compared_and_deleted() {
    let (home, work) = home();
    fs::write(work.join("a"), "one").unwrap();
    done(&home, "checkpoint T1 --workspace work");
    fs::write(work.join("a"), "a secret").unwrap();
    done(&home, "diff T1 e1..now");
    done(&home, "rewind T1 --files --to e1 --dry-run");
    done(&home, "task delete T1 --yes");
    let left = fs::read_dir(home.contexts().join("checkpoints")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn two_tasks_of_one_workspace_and_a_fork_share_what_is_common() {
    let (home, work) = home();
    let contexts = home.contexts();
    fs::write(work.join("a"), "one").unwrap();
    done(&home, "checkpoint T1 --workspace work");
    home.run("task new", b"");
    home.run("task push T2", br#"{"role":"user","content":"x"}"#);
    fs::write(work.join("a"), "two").unwrap();
    done(&home, "checkpoint T2 --workspace work");
    assert_eq!(
        fs::read_dir(contexts.join("checkpoints")).unwrap().count(),
        1,
        "one repository"
    );
    done(
        &home,
        "task push T1 more.jsonl"
            .replace("more.jsonl", &more(&home))
            .as_str(),
    );
    fs::write(work.join("a"), "three").unwrap();
    done(&home, "checkpoint T1");
    // A fork can restore the checkpoints of its parent.
    let forked = done(&home, "fork T1");
    home.meet(&forked);
    fs::write(work.join("a"), "four").unwrap();
    done(&home, "rewind T3 --files --to 4");
    assert_eq!(fs::read(work.join("a")).unwrap(), b"one");
    done(&home, "undo T3");
    assert_eq!(fs::read(work.join("a")).unwrap(), b"four");
    done(&home, "rewind T2 --files --to 1");
    assert_eq!(fs::read(work.join("a")).unwrap(), b"two");
    // The checkpoints of a task are removed with it, and other tasks keep theirs.
    done(&home, "task delete T2 --yes");
    done(&home, "rewind T3 --files --to e2");
    assert_eq!(fs::read(work.join("a")).unwrap(), b"three");
    done(&home, "checkpoint gc");
    done(&home, "verify");
    done(&home, "task delete T3 --yes");
    done(&home, "task delete T1 --yes");
    assert_eq!(
        fs::read_dir(contexts.join("checkpoints")).unwrap().count(),
        0
    );
}

/// A file with one more message.
fn more(home: &crate::Home) -> String {
    home.file("more.jsonl", r#"{"role":"user","content":"e"}"#);
    "more.jsonl".to_owned()
}

#[test]
fn a_point_before_the_first_checkpoint_is_refused() {
    let (home, _) = home();
    let story = home.tell(
        "
        rewind T1 --files --to 2
        diff T1 2..now
        checkpoint T1 --workspace work
        rewind T1 --files --to 2
        rewind T1 --files --to 9
        diff T1 x..3
        ",
    );
    insta::assert_snapshot!(story, @r"
    $ infold rewind T1 --files --to 2
    ! error: the task has no checkpoints
    ! hint: `infold checkpoint list t1······` shows what is kept; without --files, and with --no-files of `undo` and `redo`, files stay as they are
    [2]
    $ infold diff T1 2..now
    ! error: the task has no checkpoints
    ! hint: `infold checkpoint list t1······` shows what is kept
    [2]
    $ infold checkpoint T1 --workspace work
    e1: checkpoint 1 of work: 0 added, 0 changed, 0 removed
    $ infold rewind T1 --files --to 2
    ! error: no checkpoint at or before that point; the first one is e1
    ! hint: `infold checkpoint list t1······` shows what is kept; without --files, and with --no-files of `undo` and `redo`, files stay as they are
    [2]
    $ infold rewind T1 --files --to 9
    ! error: message 9 does not exist; the last one is 4
    ! hint: `infold log t1······` shows all messages and events
    [2]
    $ infold diff T1 x..3
    ! error: invalid value 'x..3' for '<A..B>': `x` is neither a seq (32), an event (e3) nor a time (2026-11-15T12:00Z), and not `now`
    !
    ! For more information, try '--help'.
    [2]
    ");
}

#[test]
fn damaged_checkpoints_are_set_aside_and_said_once() {
    let (home, work) = home();
    fs::write(work.join("a"), "one").unwrap();
    done(&home, "checkpoint T1 --workspace work");
    let shadows: Vec<_> = fs::read_dir(home.contexts().join("checkpoints"))
        .unwrap()
        .flatten()
        .collect();
    let repository = shadows[0].path().join("repo.git");
    fs::write(repository.join("HEAD"), "nonsense").unwrap();
    fs::remove_dir_all(repository.join("objects")).unwrap();
    fs::write(work.join("a"), "two").unwrap();
    let ran = home.run("checkpoint T1", b"");
    let said = home.transcript(&ran);
    assert_eq!(ran.code, 0, "{said}");
    assert!(said.contains("set aside"), "{said}");
    let ran = home.run("checkpoint T1", b"");
    assert!(!home.transcript(&ran).contains("set aside"));
    // Numbers are not used again.
    let numbers: Vec<_> = home
        .objects("checkpoint list T1")
        .iter()
        .map(|one| one["checkpoint"].clone())
        .collect();
    assert_eq!(numbers, [json!(1), json!(2)]);
    let ran = home.run("rewind T1 --files --to e1", b"");
    assert_eq!(ran.code, 2, "{}", home.transcript(&ran));
    assert_eq!(fs::read(work.join("a")).unwrap(), b"two");
}
