//! A full disk whose blocks are smaller than SQLite assumes.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::{Ran, World};

/// A file system with blocks of one kilobyte.
struct Disk {
    dir: TempDir,
}

impl Disk {
    /// Makes and mounts one, where that is allowed.
    fn mount() -> Option<Disk> {
        let dir = tempfile::tempdir().expect("a directory");
        let (image, place) = (dir.path().join("image"), dir.path().join("disk"));
        fs::create_dir(&place).expect("a directory");
        let made = File::create(&image).and_then(|file| file.set_len(8 << 20));
        made.expect("a file");
        let done = |command: &mut Command| {
            let run = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            run.is_ok_and(|status| status.success())
        };
        let made = done(
            Command::new("mkfs.ext4")
                .args(["-q", "-F", "-b", "1024"])
                .arg(&image),
        );
        let mounted = made
            && done(
                Command::new("mount")
                    .args(["-o", "loop"])
                    .arg(&image)
                    .arg(&place),
            );
        mounted.then_some(Disk { dir })
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("disk")
    }

    /// Fills the disk except for `left` kilobytes.
    fn fill(&self, left: u64) {
        let path = self.path().join("filler");
        let mut filler = File::options()
            .create(true)
            .append(true)
            .open(path)
            .expect("a file");
        while filler.write_all(&[0; 1024]).is_ok() {}
        let size = filler.metadata().expect("a size").len();
        let kept = size.saturating_sub(left << 10);
        filler.set_len(kept).expect("shortened");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn run(contexts: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_infold"));
    command
        .env("INFOLD_CONTEXTS", contexts)
        .arg("--json")
        .args(args);
    Ran::of(command.stdin(Stdio::null()).output().expect("infold runs"))
}

#[test]
fn nobody_is_killed_on_a_full_disk_with_small_blocks() {
    let Some(disk) = Disk::mount() else {
        eprintln!("left out: no file system can be mounted here");
        return;
    };
    // A registry with a write-ahead log, as other systems have it.
    let world = World::new();
    world.task();
    let contexts = disk.path().join("contexts");
    let copied = Command::new("cp")
        .arg("-a")
        .args([&world.path(), &contexts])
        .status();
    assert!(copied.expect("cp runs").success());
    let mut done = 0;
    for left in 0..40 {
        disk.fill(left);
        for args in [&["task", "list"][..], &["task", "new"]] {
            let ran = run(&contexts, args);
            // Killed by a signal it has no exit code.
            assert!(
                matches!(ran.code, Some(0 | 3)),
                "{args:?} with {left} KiB left: {:?} {}",
                ran.code,
                ran.err
            );
            done += u32::from(ran.code == Some(0));
        }
    }
    assert!(done > 0);
    fs::remove_file(disk.path().join("filler")).expect("removed");
    let ran = run(&contexts, &["task", "new"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let ran = run(&contexts, &["doctor"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
}
