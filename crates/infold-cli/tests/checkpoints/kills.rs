//! `rewind --files` is killed on its way, and the next command carries it through.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::{Tree, done, home, tree};

/// The number of files that a restoration writes.
const FILES: usize = 600;

fn fill(work: &Path, text: &str) -> Tree {
    for number in 0..FILES {
        let dir = work.join(format!("d{}", number % 20));
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(
            dir.join(format!("f{number}")),
            format!("{text} {number}\n").repeat(50),
        )
        .expect("a file");
    }
    tree(work)
}

fn journal_is_there(checkpoints: &Path) -> bool {
    let found = fs::read_dir(checkpoints).map(|all| all.flatten().collect::<Vec<_>>());
    found.is_ok_and(|all| {
        all.iter()
            .any(|dir| dir.path().join("restoring.json").exists())
    })
}

#[test]
fn a_restoration_that_is_killed_goes_on_with_the_next_command() {
    let (home, work) = home();
    let checkpoints = home.contexts().join("checkpoints");
    let one = fill(&work, "one");
    done(&home, "checkpoint T1 --workspace work");
    home.file("more.jsonl", r#"{"role":"user","content":"e"}"#);
    done(&home, "task push T1 more.jsonl");
    let two = fill(&work, "two");
    done(&home, "checkpoint T1");
    let started = Instant::now();
    let mut carried_through = 0;
    for round in 0.. {
        assert!(
            started.elapsed() < Duration::from_secs(300),
            "it is never met on its way"
        );
        let mut command = home.command("rewind T1 --files --to 4");
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        // Killed at another moment each time, while the journal is there.
        while !journal_is_there(&checkpoints) && child.try_wait().expect("a child").is_none() {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_millis(round % 23));
        let _ = child.kill();
        let _ = child.wait();
        let was_cut_off = journal_is_there(&checkpoints);
        let ran = home.run("checkpoint T1", b"");
        let said = home.transcript(&ran);
        assert_eq!(ran.code, 0, "{said}");
        assert!(!journal_is_there(&checkpoints));
        let is_rewound = home
            .objects("view T1")
            .last()
            .is_some_and(|last| last["seq"] == 4);
        let is_finished = said.contains("that was cut off is finished");
        assert!(!is_finished || was_cut_off, "{said}");
        // The files match the conversation, whatever happened in between.
        let wanted = if is_rewound { &one } else { &two };
        assert!(
            tree(&work) == *wanted,
            "round {round}: rewound: {is_rewound}\n{said}"
        );
        if is_rewound {
            done(&home, "undo T1");
            assert!(tree(&work) == two);
        }
        carried_through += usize::from(is_finished);
        if carried_through == 3 {
            break;
        }
    }
}
