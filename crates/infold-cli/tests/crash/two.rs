//! Two processes on one task.

use crate::{Author, World, authored, is_valid, message};

#[test]
fn the_second_writer_is_refused_and_gets_in_when_the_first_is_dead() {
    let world = World::new();
    let task = world.task();
    let name = task.to_string();
    let mut author = Author::start(&world.path(), task, "never");
    author.acknowledged().expect("it writes");
    let pid = author.child.id();
    let file = world.file("one.jsonl", authored(1).as_bytes());
    let push = ["task", "push", &name, file.to_str().expect("a plain path")];

    let refused = world.run(&push);
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    let host = hostname();
    let told = format!("process {pid} on {host} is writing to this task");
    assert!(refused.err.contains(&told), "{}", refused.err);
    assert!(
        refused.err.contains(&format!("stop process {pid}")),
        "{}",
        refused.err
    );
    for args in [&["undo", &name][..], &["task", "complete", &name]] {
        assert_eq!(world.run(args).code, Some(3), "{args:?}");
    }

    let (seq, _) = author.kill(None).expect("it wrote");
    let entered = world.run(&push);
    assert_eq!(entered.code, Some(0), "{}", entered.err);
    let told = format!("process {pid} on {host} had ended without closing the task");
    assert!(entered.err.contains(&told), "{}", entered.err);
    let added = entered.object()["from"].as_u64().expect("its seq");
    assert!(added > seq, "{added} after {seq}");
    assert_eq!(message(&world.read(task), added), authored(1).as_bytes());
    assert_eq!(world.problems(task), [""; 0]);
}

#[test]
fn readers_need_no_lock() {
    let world = World::new();
    let task = world.task();
    let name = task.to_string();
    let mut author = Author::start(&world.path(), task, "never");
    let mut last = author.acknowledged();
    for _ in 0..10 {
        let seen = world.run(&["view", &name]);
        assert_eq!(seen.code, Some(0), "view: {}", seen.err);
        let log = world.run(&["log", &name]);
        assert_eq!(log.code, Some(0), "log: {}", log.err);
        let (seq, _) = last.expect("it writes");
        assert!(log.out.lines().count() as u64 >= seq);
        assert_eq!(world.problems(task), [""; 0]);
        last = author.acknowledged();
    }
    // Every state that a reader catches is one that was.
    for _ in 0..150 {
        let log = world.read(task);
        is_valid(&log);
        let at = log.state().at();
        assert_eq!(message(&log, at.seq), authored(at.seq).as_bytes());
    }
    author.kill(last).expect("it wrote");
}

fn hostname() -> String {
    let output = std::process::Command::new("uname")
        .arg("-n")
        .output()
        .expect("uname runs");
    String::from_utf8(output.stdout)
        .expect("a name")
        .trim()
        .to_owned()
}
