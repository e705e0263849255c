//! A process that is killed in the middle of a snapshot or a restoration.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use infold_checkpoint::{Shadow, SnapshotRef};

use crate::tree::{Node, Tree, difference, read_tree};
use crate::world::{Random, TASK, World, repetitions};

/// Runs a step in a process of its own, which is killed after a while. Returns whether it ended before.
fn step(world: &World, words: &[&str], kill_after: Option<Duration>) -> bool {
    let mut child = Command::new(env!("CARGO_BIN_EXE_checkpoint-steps"))
        .args([&world.contexts, &world.workspace])
        .arg(TASK.to_string())
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if let Some(after) = kill_after {
        std::thread::sleep(after);
        let _ = child.kill();
    }
    let output = child.wait_with_output().unwrap();
    if kill_after.is_none() {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
    }
    output.status.success()
}

/// Fills the workspace: files that differ from state to state, in number, type and place.
fn fill(world: &World, state: u64, random: &mut Random) {
    for number in 0..60 {
        let at = world.workspace.join(format!("d{}/f{number}", number % 7));
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        match random.below(6) {
            0 => {
                let _ = fs::remove_file(&at);
            }
            1 => {}
            _ => {
                let size = random.below(4000);
                fs::write(&at, format!("{state} {number} ").repeat(size / 8)).unwrap();
            }
        }
    }
    let turning = world.workspace.join("turning");
    if random.below(2) == 0 {
        let _ = fs::remove_dir_all(&turning);
        fs::write(&turning, format!("file {state}")).unwrap();
    } else {
        let _ = fs::remove_file(&turning);
        let _ = fs::create_dir(&turning);
        fs::write(turning.join("in it"), format!("{state}")).unwrap();
    }
    fs::write(
        world.workspace.join("secret.log"),
        format!("ignored {state}"),
    )
    .unwrap();
}

fn files(tree: &Tree) -> BTreeMap<&std::path::Path, &Node> {
    let files = tree.iter().filter(|(_, node)| !node.is_directory());
    files.map(|(path, node)| (path.as_path(), node)).collect()
}

#[test]
fn what_is_killed_at_any_moment_loses_nothing_and_is_finished_by_the_next() {
    let world = World::new();
    let mut random = Random::new(repetitions("INFOLD_CHECKPOINT_SEED", 5));
    fs::write(world.workspace.join(".gitignore"), "*.log\n").unwrap();
    let mut taken: Vec<(SnapshotRef, Tree)> = Vec::new();
    for state in 0..4 {
        fill(&world, state, &mut random);
        let snapshot = world.open().snapshot(TASK, 0).unwrap();
        taken.push((snapshot.at, world.tree()));
    }
    // How long a step takes that is not killed.
    let start = Instant::now();
    step(&world, &["restore", "1"], None);
    let whole = start.elapsed().max(Duration::from_millis(20));
    let (mut killed, mut resumed) = (0, 0);
    for round in 0..repetitions("INFOLD_CHECKPOINT_KILLS", 20) {
        if random.below(3) == 0 {
            fill(&world, 100 + round, &mut random);
        }
        let before = world.tree();
        let delay = whole.mul_f64(random.below(1200) as f64 / 1000.0);
        if random.below(3) == 0 {
            killed += u64::from(!step(&world, &["snapshot"], Some(delay)));
            unchanged(&before, &world.tree());
            let mut shadow = world.open();
            assert_eq!((shadow.warning(), shadow.pending()), (None, None));
            let snapshot = shadow.snapshot(TASK, 0).unwrap();
            taken.push((snapshot.at, before));
            continue;
        }
        let (to, target) = &taken[random.below(taken.len())];
        let number = to.number.to_string();
        let is_done = step(&world, &["restore", &number], Some(delay));
        killed += u64::from(!is_done);
        let mut shadow = world.open();
        assert_eq!(shadow.warning(), None);
        if let Some(pending) = shadow.pending().cloned() {
            assert_eq!(pending.to, *to);
            resumed += 1;
            if random.below(2) == 0 {
                drop(shadow);
                // The next is killed, too.
                let delay = whole.mul_f64(random.below(1000) as f64 / 1000.0);
                let mut child = Command::new(env!("CARGO_BIN_EXE_checkpoint-steps"));
                child.args([&world.contexts, &world.workspace]);
                child.arg(TASK.to_string()).arg("finish");
                let mut child = child.stderr(Stdio::null()).spawn().unwrap();
                std::thread::sleep(delay);
                let _ = child.kill();
                child.wait().unwrap();
                shadow = world.open();
            }
            if let Some(restored) = shadow.finish_restore().unwrap() {
                assert_eq!((restored.kept, restored.saved), (vec![], vec![]));
            }
            restored(&before, target, &world.tree());
            lost_nothing(&world, &mut shadow, pending.from, &before);
        } else if is_done {
            restored(&before, target, &world.tree());
        } else {
            // It was killed before it began, or after it had ended.
            let now = world.tree();
            if now != before {
                restored(&before, target, &now);
            }
        }
        taken.push((shadow.snapshot(TASK, 0).unwrap().at, world.tree()));
    }
    println!("{killed} killed, {resumed} restorations finished by the next");
}

fn unchanged(before: &Tree, now: &Tree) {
    assert!(before == now, "{}", difference(before, now));
}

/// The tree is that of the snapshot; what is ignored is as it was before.
fn restored(before: &Tree, target: &Tree, now: &Tree) {
    let ignored = std::path::Path::new("secret.log");
    let mut expected = target.clone();
    expected.insert(ignored.to_owned(), before[ignored].clone());
    assert!(
        files(&expected) == files(now),
        "{}",
        difference(&expected, now)
    );
    unchanged(&expected, now);
}

/// Asserts that the snapshot taken first restores the files that were there before.
fn lost_nothing(world: &World, shadow: &mut Shadow, from: SnapshotRef, before: &Tree) {
    shadow.restore("back", TASK, 0, from).unwrap();
    let now = read_tree(&world.workspace);
    unchanged(before, &now);
}
