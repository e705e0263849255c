//! Full disks, files that may not be read, and files that change all the time.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use infold_checkpoint::{CheckpointError, LeftOutReason};

use crate::world::{TASK, World};

/// A small file system in memory, where that is allowed.
fn small_disk() -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
        .arg(dir.path())
        .output();
    mounted
        .is_ok_and(|output| output.status.success())
        .then_some(dir)
}

fn unmount(path: &Path) {
    let _ = Command::new("umount").arg("-l").arg(path).status();
}

fn fill(path: &Path) {
    let mut filler = File::create(path).unwrap();
    for size in [4096, 1] {
        while filler.write_all(&vec![0; size]).is_ok() {}
    }
}

#[test]
fn a_full_disk_is_named_and_nothing_is_half_done() {
    let Some(dir) = small_disk() else {
        return;
    };
    let mount = dir.path().to_owned();
    let world = World::at(dir, 1 << 20);
    let noise = |seed: u64| {
        let mut random = crate::world::Random::new(seed);
        let words = (0..30_000).map(move |_| format!("{:x}", random.next()));
        words.collect::<String>()
    };
    world.write("a", &noise(1));
    let mut shadow = world.open();
    let first = shadow.snapshot(TASK, 0).unwrap();
    world.write("a", &noise(2));
    let filler = mount.join("filler");
    fill(&filler);
    let error = shadow.snapshot(TASK, 0).unwrap_err();
    assert!(matches!(error, CheckpointError::Full { .. }), "{error:?}");
    assert_eq!(shadow.snapshots().count(), 1);
    fs::remove_file(&filler).unwrap();
    drop(shadow);
    let mut shadow = world.open();
    assert_eq!(shadow.warning(), None);
    let second = shadow.snapshot(TASK, 0).unwrap();
    assert_eq!(second.at.number, 2);

    // And in the middle of a restoration: nothing has changed, and it goes on later.
    let _ = shadow.prepare_restore("id", TASK, 0, first.at).unwrap();
    fill(&filler);
    let error = shadow.finish_restore().unwrap_err();
    assert!(matches!(error, CheckpointError::Full { .. }), "{error:?}");
    assert_eq!(world.read("a").unwrap(), noise(2));
    fs::remove_file(&filler).unwrap();
    drop(shadow);
    let mut shadow = world.open();
    assert_eq!(shadow.warning(), None);
    shadow.finish_restore().unwrap().unwrap();
    assert_eq!(world.read("a").unwrap(), noise(1));
    drop(shadow);
    unmount(&mount);
}

/// Gives everything to a user who may not read everything. Returns whether that is allowed.
fn give_away(path: &Path) -> bool {
    let is_root = fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
    let has_command = Command::new("setpriv").arg("--version").output().is_ok();
    let given = || {
        Command::new("chown")
            .args(["-R", NOBODY])
            .arg(path)
            .status()
    };
    is_root && has_command && given().is_ok_and(|status| status.success())
}

/// Runs the helper as that user.
fn step_as_nobody(world: &World, words: &[&str]) {
    // The binary may be in a directory that others cannot enter.
    let binary = world.root.path().join("checkpoint-steps");
    // By a process of its own: a file that another test's child inherited open for writing cannot be run.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_checkpoint-steps"))
        .arg(&binary)
        .status();
    assert!(copied.unwrap().success());
    let output = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg(binary)
        .args([&world.contexts, &world.workspace])
        .arg(TASK.to_string())
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

const NOBODY: &str = "65534";

#[test]
fn what_may_not_be_read_is_left_out_and_what_may_not_be_written_is_made_writable() {
    let world = World::new();
    world.write("readable", "one");
    world.write("unreadable", "not for you");
    world.write("closed/inside", "nor this");
    world.write("readonly/a", "one");
    let mode = |name: &str, mode| {
        let at = world.workspace.join(name);
        fs::set_permissions(at, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (name, bits) in [
        ("unreadable", 0),
        ("closed", 0),
        ("readonly/a", 0o444),
        ("readonly", 0o555),
    ] {
        mode(name, bits);
    }
    fs::create_dir_all(&world.contexts).unwrap();
    if !give_away(world.root.path()) {
        return;
    }
    step_as_nobody(&world, &["snapshot"]);
    fs::remove_file(world.workspace.join("readonly/a")).unwrap();
    world.write("readonly/b", "new");
    give_away(&world.workspace);
    step_as_nobody(&world, &["restore", "1"]);
    let at = |name: &str| world.workspace.join(name);
    assert_eq!(fs::read_to_string(at("readonly/a")).unwrap(), "one");
    assert!(!at("readonly/b").exists());
    assert_eq!(
        fs::metadata(at("readonly")).unwrap().permissions().mode() & 0o7777,
        0o555
    );
    assert_eq!(
        fs::metadata(at("readonly/a")).unwrap().permissions().mode() & 0o7777,
        0o444
    );
    assert_eq!(fs::read_to_string(at("unreadable")).unwrap(), "not for you");
    assert_eq!(fs::read_to_string(at("closed/inside")).unwrap(), "nor this");
    let held = world.held(infold_checkpoint::SnapshotRef {
        task: TASK,
        number: 1,
    });
    let held: Vec<_> = held.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(held, ["readable", "readonly/a"]);
}

#[test]
fn a_file_that_changes_all_the_time_is_whole_or_left_out() {
    let world = World::with_limit(64 << 20);
    let at = world.workspace.join("log");
    fs::write(&at, vec![b'a'; 4 << 20]).unwrap();
    world.write("quiet", "quiet");
    let stop = AtomicBool::new(false);
    let mut shadow = world.open();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut letter = b'a';
            while !stop.load(Ordering::Relaxed) {
                letter = if letter == b'z' { b'a' } else { letter + 1 };
                let new = at.with_extension("new");
                fs::write(&new, vec![letter; (4 << 20) + usize::from(letter)]).unwrap();
                if letter.is_multiple_of(2) {
                    fs::rename(&new, &at).unwrap();
                } else {
                    fs::write(&at, vec![letter; 3 << 20]).unwrap();
                }
            }
        });
        for _ in 0..12 {
            let snapshot = shadow.snapshot(TASK, 0).unwrap();
            assert_eq!(
                shadow
                    .content(snapshot.at, "quiet".as_ref())
                    .unwrap()
                    .unwrap(),
                b"quiet"
            );
            let content = shadow.content(snapshot.at, "log".as_ref()).unwrap();
            let left_out = snapshot
                .left_out
                .iter()
                .find(|out| out.path == Path::new("log"));
            match (content, left_out) {
                (Some(_), None) => {}
                (None, Some(out)) => assert_eq!(out.why, LeftOutReason::Changing),
                // It was not there for an instant.
                (None, None) => {}
                (Some(_), Some(out)) => panic!("in it and left out: {out:?}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let last = shadow.snapshot(TASK, 0).unwrap();
    let content = shadow.content(last.at, "log".as_ref()).unwrap().unwrap();
    assert_eq!(content, fs::read(&at).unwrap());
}
