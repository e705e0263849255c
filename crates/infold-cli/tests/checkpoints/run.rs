//! `infold run` keeps the files of its workspace step by step.

use std::fs;
use std::process::Command;
use std::sync::{Arc, Mutex};

use infold_testkit::{Script, Server};
use serde_json::json;

use crate::{Home, Tree, calls, configure, done, tree, view};

/// Three steps, each of which changes files; the trees are those at the time of each request.
fn three_steps(home: &Home) -> (Server, Arc<Mutex<Vec<Tree>>>) {
    let trees: Arc<Mutex<Vec<Tree>>> = Arc::default();
    let (seen, work) = (Arc::clone(&trees), home.path().join("work"));
    let mut steps = [
        calls(&[("write", json!({"path": "a.txt", "content": "one\n"}))]),
        calls(&[(
            "run",
            json!({"command": "echo two > a.txt; mkdir -p d/e; ln -s ../a.txt d/l; chmod 700 b.sh; echo x > target/out"}),
        )]),
        calls(&[
            ("read", json!({"path": "a.txt"})),
            ("run", json!({"command": "rm b.sh; echo '' > .gitignore"})),
        ]),
    ]
    .into_iter();
    let server = Server::start(Script::decide(move |_| {
        seen.lock().expect("no panic").push(tree(&work));
        steps.next().expect("three steps")
    }));
    (server, trees)
}

#[test]
fn files_and_conversation_go_back_and_forth_together() {
    let home = Home::new();
    let work = home.path().join("work");
    fs::create_dir_all(work.join("target")).unwrap();
    fs::write(work.join("b.sh"), "echo b\n").unwrap();
    fs::write(work.join(".gitignore"), "target\n").unwrap();
    fs::write(work.join("target/old"), "kept by nobody\n").unwrap();
    let git = |arguments: &[&str]| {
        let ran = Command::new("git")
            .args([
                "-c",
                "user.name=n",
                "-c",
                "user.email=e@x",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(arguments)
            .current_dir(&work)
            .output()
            .expect("git");
        assert!(ran.status.success(), "{arguments:?}");
        ran.stdout
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "begin"]);
    let repository = tree(&work.join(".git"));
    let (server, trees) = three_steps(&home);
    configure(&home, &server, ", max_steps: 3");
    let ran = home.run("run 'do it' --workspace work", b"");
    assert_eq!(ran.code, 1, "{}", home.transcript(&ran));
    home.meet(&String::from_utf8_lossy(&ran.stderr));
    let mut trees = trees.lock().unwrap().clone();
    trees.push(tree(&work));
    assert_eq!(trees.len(), 4);

    let kept = home.objects("checkpoint list T1");
    let after: Vec<u64> = kept
        .iter()
        .map(|one| one["after"].as_u64().unwrap())
        .collect();
    assert_eq!(
        kept.len(),
        4,
        "before the first step and after each: {kept:?}"
    );
    assert_eq!(kept[0]["note"], "start");
    assert_eq!(kept[3]["note"], "step");

    // Files that were ignored when a snapshot was taken are not part of it, and stay whatever happens to the ignore
    // file.
    let without_ignored = |tree: &Tree| -> Tree {
        let kept = tree.iter().filter(|(path, _)| !path.starts_with("target"));
        kept.map(|(path, content)| (path.clone(), content.clone()))
            .collect()
    };
    let last = view(&home, "");
    for (at, wanted) in after.iter().zip(&trees).skip(1) {
        let then = view(&home, &format!(" --at {at}"));
        let is_last = *at == after[3];
        if is_last {
            continue;
        }
        let rewind = format!("rewind T1 --files --to {at}");
        let planned = done(&home, &format!("{rewind} --dry-run"));
        let said = home.run(&rewind, b"");
        let said = home.transcript(&said);
        assert!(
            !planned.contains("target") && !said.contains("target"),
            "{planned}\n{said}"
        );
        assert_eq!(
            without_ignored(&tree(&work)),
            without_ignored(wanted),
            "to {at}"
        );
        assert_eq!(view(&home, ""), then, "to {at}");
        assert_eq!(
            fs::read(work.join("target/old")).unwrap(),
            b"kept by nobody\n"
        );
        done(&home, "undo T1");
        assert_eq!(tree(&work), trees[3], "back from {at}");
        assert_eq!(view(&home, ""), last, "back from {at}");
        done(&home, "redo T1");
        assert_eq!(
            without_ignored(&tree(&work)),
            without_ignored(wanted),
            "to {at} again"
        );
        assert_eq!(view(&home, ""), then, "to {at} again");
        done(&home, "undo T1");
    }
    // To before the model's first reply.
    done(&home, &format!("rewind T1 --files --to {}", after[0]));
    assert_eq!(without_ignored(&tree(&work)), without_ignored(&trees[0]));
    done(&home, "undo T1");
    assert_eq!(tree(&work), trees[3]);
    assert_eq!(
        tree(&work.join(".git")),
        repository,
        "the user's repository"
    );
    assert_eq!(
        done(&home, "doctor")
            .lines()
            .filter(|line| line.contains("problem"))
            .count(),
        0
    );
}

#[test]
fn what_a_person_changed_meanwhile_is_kept_and_comes_back() {
    let home = Home::new();
    let work = home.path().join("work");
    fs::create_dir_all(work.join("target")).unwrap();
    fs::write(work.join("b.sh"), "echo b\n").unwrap();
    let (server, _) = three_steps(&home);
    configure(&home, &server, ", max_steps: 3");
    let ran = home.run("run 'do it' --workspace work", b"");
    home.meet(&String::from_utf8_lossy(&ran.stderr));
    let first = home.objects("checkpoint list T1")[1]["after"]
        .as_u64()
        .unwrap();
    fs::write(work.join("a.txt"), "by hand\n").unwrap();
    fs::write(work.join("mine.txt"), "by hand, too\n").unwrap();
    let by_hand = tree(&work);
    let said = home.objects(&format!("rewind T1 --files --to {first}"));
    let removed = said[0]["files"]["removed"].as_array().unwrap();
    assert!(removed.contains(&json!("mine.txt")), "{said:?}");
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"one\n");
    // The file is edited again before undo: redo restores that edit.
    fs::write(work.join("a.txt"), "and again\n").unwrap();
    let again = tree(&work);
    done(&home, "undo T1");
    assert_eq!(tree(&work), by_hand);
    done(&home, "redo T1");
    assert_eq!(tree(&work), again);
    // An undo of any other step touches no file.
    done(&home, "pin T1 --note 'be kind'");
    fs::write(work.join("a.txt"), "last\n").unwrap();
    done(&home, "undo T1");
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"last\n");
    done(&home, "undo T1 --no-files");
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"last\n");
}

#[test]
fn a_task_goes_on_without_git_and_says_so_once() {
    let home = Home::new();
    let work = home.path().join("work");
    fs::create_dir_all(work.join("target")).unwrap();
    fs::write(work.join("b.sh"), "echo b\n").unwrap();
    let (server, _) = three_steps(&home);
    configure(&home, &server, ", max_steps: 3");
    let mut run = home.command("run 'do it' --workspace work");
    let ran = run.env("PATH", home.path()).output().expect("it runs");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(
        said.matches("no checkpoint: checkpoints need git").count(),
        1,
        "{said}"
    );
    assert_eq!(fs::read(work.join("a.txt")).unwrap(), b"two\n");
    assert_eq!(home.objects("checkpoint list @").len(), 0);
}

#[test]
fn a_task_that_is_told_not_to_keeps_nothing() {
    for (flag, work_section) in [
        (" --no-checkpoints", ", max_steps: 3"),
        ("", ", max_steps: 3, checkpoints: false"),
    ] {
        let home = Home::new();
        fs::create_dir_all(home.path().join("work/target")).unwrap();
        fs::write(home.path().join("work/b.sh"), "").unwrap();
        let (server, _) = three_steps(&home);
        configure(&home, &server, work_section);
        home.run(&format!("run 'do it' --workspace work{flag}"), b"");
        assert!(!home.contexts().join("checkpoints").exists());
    }
}
