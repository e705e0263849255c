//! A full disk, at every file in turn.

use std::process::Command;

use crate::{Ran, World, authored, is_valid, message};
use uuid::Uuid;

impl World {
    /// Runs a command that cannot make a file larger than `blocks` blocks of 512 bytes.
    fn limited(&self, blocks: u32, args: &[&str]) -> Ran {
        let mut command = Command::new("sh");
        self.prepare(&mut command);
        let script = r#"trap '' XFSZ; ulimit -f "$0"; exec "$@""#;
        command.args([
            "-c",
            script,
            &blocks.to_string(),
            env!("CARGO_BIN_EXE_infold"),
            "--json",
        ]);
        Ran::of(command.args(args).output().expect("sh runs"))
    }

    /// A task with some messages and folds.
    fn grown(&self) -> Uuid {
        let task = self.task();
        let said: Vec<String> = (1..=48).map(authored).collect();
        let file = self.file("said.jsonl", said.join("\n").as_bytes());
        let name = task.to_string();
        self.ok(&["task", "push", &name, file.to_str().expect("a plain path")]);
        self.ok(&["truncate", &name, "--fraction", "0.2"]);
        task
    }
}

/// Checks that a command failed because of the full disk, and printed that with a hint.
fn is_clear(ran: &Ran, what: &str) {
    assert_eq!(ran.code, Some(3), "{what}: {}{}", ran.out, ran.err);
    let error: serde_json::Value =
        serde_json::from_str(ran.err.lines().last().unwrap_or_default()).expect("an error in JSON");
    let text = error["error"].as_str().unwrap_or_default();
    // SQLite does not say why it could not write.
    assert!(
        text.contains("no space left") || text.contains("tasks.db"),
        "{what}: {text}"
    );
    assert!(error["hint"].is_string(), "{what}: {error}");
}

const LIMITS: [u32; 26] = [
    0, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 18, 20, 23, 26, 30, 36, 42, 50, 64, 66, 72, 80, 96, 128,
    256,
];

/// Does something within each limit, then without, on a task that is there before.
fn sweep(work: impl Fn(&World, &str, &dyn Fn(&[&str]) -> Ran) -> Ran) {
    let (mut failed, mut done) = (0, 0);
    for blocks in LIMITS {
        let world = World::new();
        let task = world.grown();
        let name = task.to_string();
        let before = world.read(task).state().at();
        let ran = work(&world, &name, &|args| world.limited(blocks, args));
        let log = world.read(task);
        is_valid(&log);
        for number in 1..=before.seq {
            assert_eq!(message(&log, number), authored(number).as_bytes());
        }
        match ran.code {
            Some(0) => done += 1,
            _ => {
                failed += 1;
                is_clear(&ran, &format!("within {blocks} blocks"));
                let again = work(&world, &name, &|args| world.run(args));
                assert_eq!(again.code, Some(0), "after {blocks} blocks: {}", again.err);
            }
        }
        // Something is written when there is space again, and then all is well.
        if world.list()[&task] == "running" {
            world.ok(&["pin", &name, "--note", "on"]);
        }
        assert_eq!(world.problems(task), [""; 0], "after {blocks} blocks");
    }
    assert!(failed > 3 && done > 3, "{failed} failed, {done} were done");
}

#[test]
fn a_push_without_space_keeps_all_or_nothing_of_it() {
    sweep(|world, name, run| {
        let before = world.read(name.parse().expect("a UUID")).state().at().seq;
        let said: Vec<String> = (49..=60).map(authored).collect();
        let file = world.file("more.jsonl", said.join("\n").as_bytes());
        let ran = run(&["task", "push", name, file.to_str().expect("a plain path")]);
        let after = world.read(name.parse().expect("a UUID")).state().at().seq;
        assert_eq!(
            after - before,
            if ran.code == Some(0) { 12 } else { 0 },
            "{}",
            ran.err
        );
        ran
    });
}

#[test]
fn a_step_without_space_is_made_or_not() {
    sweep(|world, name, run| {
        let text = world.file("text.md", "what was said ".repeat(300).as_bytes());
        let before = world.read(name.parse().expect("a UUID")).state().at().event;
        let ran = run(&[
            "condense",
            name,
            "14..30",
            "--text",
            text.to_str().expect("a plain path"),
        ]);
        let after = world.read(name.parse().expect("a UUID")).state().at().event;
        assert_eq!(
            after - before,
            u64::from(ran.code == Some(0)),
            "{}",
            ran.err
        );
        ran
    });
}

#[test]
fn an_end_without_space_is_carried_through_later() {
    sweep(|_, name, run| run(&["task", "complete", name]));
}

#[test]
fn a_fork_without_space_comes_to_be_whole_or_not_at_all() {
    sweep(|world, name, run| {
        let before = world.list().len();
        let ran = run(&["fork", name, "--at", "20"]);
        let rows = world.list();
        assert_eq!(
            rows.len(),
            world.contexts().tasks().expect("directories").len()
        );
        if ran.code == Some(0) {
            assert!(rows.contains_key(&crate::id(&ran.object())));
        } else {
            // The task may have been created nevertheless, but then it is listed.
            assert!(rows.len() - before <= 1);
        }
        for task in rows.into_keys() {
            is_valid(&world.read(task));
        }
        ran
    });
}
