//! Tests of the shim with common programs.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};

use tempfile::TempDir;

use super::{DiskFault, Mode, Shim, read_calls};

/// A directory, and the shim that looks at it.
struct Bench<'a> {
    root: TempDir,
    shim: &'a Shim,
}

impl Bench<'_> {
    fn new(shim: &Shim) -> Bench<'_> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("disk")).unwrap();
        Bench { root, shim }
    }

    /// Runs a line of shell on the disk.
    fn run(&self, line: &str, mode: Mode) -> ExitStatus {
        let disk = self.root.path().join("disk");
        let log = self.root.path().join("log");
        let _ = fs::remove_file(&log);
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &format!("exec {line}")])
            .current_dir(&disk);
        self.shim.load(&mut command, &disk, &log, mode);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().unwrap()
    }

    /// Returns the calls that were listed or harmed: `create f, write f`.
    fn calls(&self) -> String {
        let calls = read_calls(&self.root.path().join("log"));
        let told = calls.iter().map(|call| {
            let name = call.path.file_name().unwrap_or_default().to_string_lossy();
            format!("{} {name}", call.op.name())
        });
        told.collect::<Vec<_>>().join(", ")
    }

    fn size(&self, name: &str) -> Option<u64> {
        let meta = fs::metadata(self.root.path().join("disk").join(name));
        meta.ok().map(|meta| meta.len())
    }
}

const WRITE: &str = "dd if=/dev/zero of=f bs=100 count=2 conv=fsync";

#[test]
fn it_lists_calls_on_files_below_its_directory_alone() {
    let shim = Shim::build().unwrap();
    let bench = Bench::new(&shim);
    assert!(bench.run(WRITE, Mode::List).success());
    assert_eq!(bench.calls(), "create f, write f, write f, sync f");
    assert!(bench.run("mv f g", Mode::List).success());
    assert_eq!(bench.calls(), "rename f");
    assert!(
        bench
            .run("dd if=/dev/zero of=/dev/null count=1", Mode::List)
            .success()
    );
    assert_eq!(bench.calls(), "");
}

#[test]
fn it_harms_the_call_that_it_was_told_to() {
    let shim = Shim::build().unwrap();
    let harmed = |at: usize, fault: DiskFault| {
        let bench = Bench::new(&shim);
        let status = bench.run(WRITE, Mode::Fault(at, fault));
        (bench.calls(), status.success(), bench.size("f"))
    };
    assert_eq!(
        harmed(1, DiskFault::Enospc),
        ("create f".into(), false, None)
    );
    assert_eq!(
        harmed(2, DiskFault::Eio),
        ("write f".into(), false, Some(0))
    );
    assert_eq!(
        harmed(3, DiskFault::Torn),
        ("write f".into(), false, Some(150))
    );
    // It continues with the rest.
    assert_eq!(harmed(3, DiskFault::Short).2, Some(200));
    assert_eq!(
        harmed(4, DiskFault::Eio),
        ("sync f".into(), false, Some(200))
    );
    assert_eq!(harmed(5, DiskFault::Eio), (String::new(), true, Some(200)));
}

#[test]
fn a_full_disk_stays_full_and_a_read_only_one_can_be_read() {
    let shim = Shim::build().unwrap();
    let bench = Bench::new(&shim);
    let on_full_disk = bench.run(WRITE, Mode::Fault(2, DiskFault::Full));
    assert!(!on_full_disk.success());
    assert_eq!(bench.size("f"), Some(50));
    let read_only = Mode::Fault(1, DiskFault::ReadOnly);
    assert!(bench.run("cat f", read_only).success());
    assert!(!bench.run("mv f g", read_only).success());
    assert!(
        !bench
            .run("cat f", Mode::Fault(1, DiskFault::Broken))
            .success()
    );
}

#[test]
fn it_kills_before_in_the_middle_of_and_after_a_call() {
    let shim = Shim::build().unwrap();
    let left = |fault: DiskFault| {
        let bench = Bench::new(&shim);
        let status = bench.run(WRITE, Mode::Fault(3, fault));
        (status.signal(), bench.size("f"))
    };
    assert_eq!(left(DiskFault::Kill), (Some(9), Some(100)));
    assert_eq!(left(DiskFault::KillHalf), (Some(9), Some(150)));
    assert_eq!(left(DiskFault::KillAfter), (Some(9), Some(200)));
}
