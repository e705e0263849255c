//! A limit of file sizes (`ulimit -f`): the system would end the process with a signal.

use std::process::Command;

use crate::{Ran, World, is_valid};

#[test]
fn a_write_beyond_the_limit_of_file_sizes_fails_like_one_on_a_full_disk() {
    let world = World::new();
    let task = world.task();
    let long = format!(
        "{{\"role\":\"user\",\"content\":\"{}\"}}\n",
        "word ".repeat(60_000)
    );
    let file = world.file("long.jsonl", long.as_bytes());
    let kept = world.file("kept.jsonl", b"{\"role\":\"user\",\"content\":\"kept\"}\n");
    world.ok(&["task", "push", &task.to_string(), &kept.to_string_lossy()]);

    // Blocks of 512 or 1,024 bytes: the registry fits, the message does not.
    let mut limited = Command::new("sh");
    world.prepare(&mut limited);
    let script = "ulimit -f 250 && exec \"$0\" --json task push \"$1\" \"$2\"";
    limited.args(["-c", script, env!("CARGO_BIN_EXE_infold")]);
    limited.arg(task.to_string()).arg(&file);
    let ran = Ran::of(limited.output().expect("sh runs"));
    assert_eq!(ran.code, Some(3), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("no space left"), "{}", ran.err);

    let log = world.read(task);
    assert_eq!(log.state().at().seq, 1);
    is_valid(&log);
    assert_eq!(world.problems(task), Vec::<String>::new());
    world.ok(&["task", "push", &task.to_string(), &file.to_string_lossy()]);
}
