//! Two processes on one task.

use infold_log::{EventId, Past as _};

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
    author.kill(last).expect("it wrote");
}

/// A reader may come at any moment: it sees an earlier or the present state, never messages without the event before
/// them.
#[test]
fn readers_see_only_states_that_were() {
    let world = World::new();
    let task = world.task();
    let mut author = Author::start(&world.path(), task, "never");
    let last = author.acknowledged();
    let mut seen = Vec::new();
    // The author stops when its output is closed.
    let lines = std::thread::spawn(move || author.kill_after(3000));
    while !lines.is_finished() {
        let log = world.read(task);
        seen.push(log.state().at());
        if seen.len() % 20 == 0 {
            is_valid(&log);
        }
    }
    let killed = lines.join().expect("it was read to its end");
    assert!(killed.or(last).is_some());
    let log = world.read(task);
    println!("{} states seen", seen.len());
    for point in seen {
        assert_eq!(message(&log, point.seq), authored(point.seq).as_bytes());
        if let Some(next) =
            EventId::new(point.event + 1).filter(|id| Some(*id) <= log.state().last_event())
        {
            let after = log.mark(next).expect("a mark").after;
            assert!(
                after >= point.seq,
                "{point} was seen, but {next} came after message {after}"
            );
        }
    }
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
