//! Measures snapshots beside `git add -A && git commit`; `scripts/bench-checkpoints` runs it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use infold_checkpoint::{CheckpointSettings, Checkpoints, Shadow};
use uuid::Uuid;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const FILES: usize = 10_000;
const TASK: Uuid = Uuid::from_u128(20);

struct Bench {
    root: tempfile::TempDir,
    workspace: PathBuf,
    contexts: PathBuf,
    /// A copy of the workspace's files, with a repository of its own that plain git writes.
    plain: PathBuf,
}

fn main() -> Result<()> {
    let count = std::env::args().nth(1).map(|text| text.parse());
    let snapshots: u64 = count.transpose()?.unwrap_or(1000);
    let bench = Bench::new()?;
    let user = digest_of(&bench.workspace.join(".git"), false)?;
    println!("A repository of {FILES} files, with two submodules, ignored files and links.\n");
    println!(
        "{:34} {:>10} {:>10} {:>7} {:>12} {:>12}",
        "", "snapshot", "plain git", "ratio", "bytes added", "plain git"
    );
    let checkpoints = Checkpoints::new(&bench.contexts, CheckpointSettings::default());
    let mut shadow = checkpoints.open(&bench.workspace)?;
    bench.row("first", &mut shadow, 1, |_| Ok(()))?;
    let first = shadow.snapshots().last().ok_or("no snapshot")?;
    // Files written just now are read again until their change time lies in the past.
    std::thread::sleep(Duration::from_millis(300));
    shadow.snapshot(TASK, 0)?;
    bench.row("unchanged", &mut shadow, 9, |_| Ok(()))?;
    bench.row("one file changed", &mut shadow, 9, |round| {
        bench.change(round)
    })?;
    drop(shadow);
    let opened = best(9, || {
        let mut shadow = checkpoints.open(&bench.workspace)?;
        shadow.snapshot(TASK, 0).map(|_| ()).map_err(Into::into)
    });
    println!("{:34} {:>10}", "opened, and unchanged", millis(opened?));

    let mut shadow = checkpoints.open(&bench.workspace)?;
    println!("\nRestoration");
    let before = digest_of(&bench.workspace, true)?;
    shadow.restore("there", TASK, 0, first)?;
    let there = digest_of(&bench.workspace, true)?;
    for number in 0..FILES / 20 {
        fs::remove_file(bench.file(number * 20))?;
    }
    fs::remove_dir_all(bench.workspace.join("links"))?;
    let start = Instant::now();
    let (broken, restored) = shadow.restore("again", TASK, 0, first)?;
    let took = start.elapsed();
    let again = digest_of(&bench.workspace, true)?;
    println!(
        "  {} files and links written in {}: {}",
        restored.written,
        millis(took),
        same(there == again)
    );
    shadow.restore("broken", TASK, 0, broken.at)?;
    shadow.restore("once more", TASK, 0, first)?;
    println!(
        "  to a state with 500 files less, and back: {}",
        same(digest_of(&bench.workspace, true)? == there)
    );
    println!(
        "  changed since the first snapshot: {}",
        if before == there {
            "nothing"
        } else {
            "files, as meant"
        }
    );
    println!(
        "  the user's repository, its index, refs, reflog and hooks: {}",
        same(digest_of(&bench.workspace.join(".git"), false)? == user)
    );

    println!("\n{snapshots} snapshots, one file changed each");
    let start_bytes = bytes_in(&bench.contexts)?;
    let mut times = Vec::new();
    for round in 0..snapshots {
        bench.change(round)?;
        let start = Instant::now();
        shadow.snapshot(TASK, 0)?;
        times.push(start.elapsed());
    }
    let grown = bytes_in(&bench.contexts)?;
    println!(
        "  first ten {}, last ten {} (median); slowest {}",
        median(&times[..10.min(times.len())]),
        median(&times[times.len().saturating_sub(10)..]),
        millis(times.iter().max().copied().unwrap_or_default())
    );
    println!(
        "  bytes: {start_bytes} before, {grown} after: {} a snapshot",
        (grown - start_bytes) / snapshots.max(1)
    );
    let start = Instant::now();
    let compacted = shadow.compact()?;
    println!(
        "  packed anew in {}: {} bytes, {} a snapshot",
        millis(start.elapsed()),
        compacted.after,
        compacted.after.saturating_sub(start_bytes) / snapshots.max(1)
    );
    bench.change(snapshots + 1)?;
    let start = Instant::now();
    shadow.snapshot(TASK, 0)?;
    println!("  one more after that: {}", millis(start.elapsed()));
    Ok(())
}

impl Bench {
    fn new() -> Result<Bench> {
        let root = tempfile::tempdir()?;
        let base = root.path().canonicalize()?;
        let bench = Bench {
            workspace: base.join("work"),
            contexts: base.join("contexts"),
            plain: base.join("plain"),
            root,
        };
        for number in 0..FILES {
            let at = bench.file(number);
            fs::create_dir_all(at.parent().ok_or("no directory")?)?;
            let lines = (0..20 + number % 40).map(|line| format!("line {line} of file {number}\n"));
            fs::write(&at, lines.collect::<String>())?;
            if number % 50 == 0 {
                fs::set_permissions(&at, fs::Permissions::from_mode(0o755))?;
            }
        }
        let links = bench.workspace.join("links");
        fs::create_dir_all(&links)?;
        for number in 0..100 {
            symlink(
                format!("../src/{}/file{number}.rs", number % 100),
                links.join(format!("{number}")),
            )?;
        }
        fs::write(bench.workspace.join(".gitignore"), "*.o\ntarget/\n")?;
        for number in 0..2000 {
            let at = bench.workspace.join(format!("target/debug/{number}.o"));
            fs::create_dir_all(at.parent().ok_or("no directory")?)?;
            fs::write(at, "object")?;
        }
        let module = bench.root.path().join("module");
        fs::create_dir_all(&module)?;
        fs::write(module.join("lib.c"), "int main;\n")?;
        git(&module, &["init", "-q"])?;
        git(&module, &["add", "-A"])?;
        git(&module, &["commit", "-qm", "module"])?;
        git(&bench.workspace, &["init", "-q"])?;
        let from = module.display().to_string();
        for name in ["vendor/one", "vendor/two"] {
            git(
                &bench.workspace,
                &[
                    "-c",
                    "protocol.file.allow=always",
                    "submodule",
                    "-q",
                    "add",
                    &from,
                    name,
                ],
            )?;
        }
        git(&bench.workspace, &["add", "-A"])?;
        git(&bench.workspace, &["commit", "-qm", "all"])?;
        // The same files, without repositories in them.
        let copied = Command::new("cp")
            .arg("-a")
            .args([&bench.workspace, &bench.plain])
            .status()?;
        if !copied.success() {
            return Err("the workspace cannot be copied".into());
        }
        for name in [".git", ".gitmodules", "vendor/one/.git", "vendor/two/.git"] {
            let at = bench.plain.join(name);
            let _ = fs::remove_dir_all(&at).or_else(|_| fs::remove_file(&at));
        }
        git(&bench.plain, &["init", "-q"])?;
        Ok(bench)
    }

    fn file(&self, number: usize) -> PathBuf {
        self.workspace
            .join(format!("src/{}/file{number}.rs", number % 100))
    }

    fn change(&self, round: u64) -> Result<()> {
        let number = (round as usize * 7919) % FILES;
        for root in [&self.workspace, &self.plain] {
            let at = root.join(format!("src/{}/file{number}.rs", number % 100));
            let text = fs::read_to_string(&at)?;
            fs::write(at, format!("{text}// change {round}\n"))?;
        }
        Ok(())
    }

    /// Times a snapshot and plain git by turns, and prints the best of each.
    fn row(
        &self,
        name: &str,
        shadow: &mut Shadow,
        rounds: u64,
        change: impl Fn(u64) -> Result<()>,
    ) -> Result<()> {
        let (mut ours, mut plain) = (Duration::MAX, Duration::MAX);
        let before = (
            bytes_in(&self.contexts)?,
            bytes_in(&self.plain.join(".git"))?,
        );
        for round in 0..rounds {
            change(round)?;
            let start = Instant::now();
            shadow.snapshot(TASK, 0)?;
            ours = ours.min(start.elapsed());
            let start = Instant::now();
            git(&self.plain, &["add", "-A"])?;
            git(
                &self.plain,
                &["commit", "-q", "--allow-empty", "-m", "step"],
            )?;
            plain = plain.min(start.elapsed());
        }
        let added = (
            bytes_in(&self.contexts)? - before.0,
            bytes_in(&self.plain.join(".git"))? - before.1,
        );
        println!(
            "{name:34} {:>10} {:>10} {:>7.2} {:>12} {:>12}",
            millis(ours),
            millis(plain),
            ours.as_secs_f64() / plain.as_secs_f64(),
            added.0 / rounds,
            added.1 / rounds,
        );
        Ok(())
    }
}

fn best(rounds: u64, mut act: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        act()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn median(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort();
    times
        .get(times.len() / 2)
        .map_or(String::new(), |time| millis(*time))
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

fn same(is_same: bool) -> &'static str {
    if is_same { "exact" } else { "NOT AS IT WAS" }
}

/// Returns the names, types, permissions and contents of a directory as one digest.
fn digest_of(directory: &Path, without_git: bool) -> Result<blake3::Hash> {
    let mut entries = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(at) = pending.pop() {
        for entry in fs::read_dir(&at)? {
            let path = entry?.path();
            if without_git && path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            let meta = fs::symlink_metadata(&path)?;
            let contents = if meta.is_dir() {
                pending.push(path.clone());
                Vec::new()
            } else if meta.is_symlink() {
                fs::read_link(&path)?.into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path)?
            };
            entries.insert(path, (meta.permissions().mode(), blake3::hash(&contents)));
        }
    }
    Ok(blake3::hash(format!("{entries:?}").as_bytes()))
}

fn bytes_in(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut pending = vec![directory.to_owned()];
    while let Some(at) = pending.pop() {
        if !at.exists() {
            continue;
        }
        for entry in fs::read_dir(&at)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            if meta.is_dir() {
                pending.push(entry.path());
            } else {
                bytes += meta.len();
            }
        }
    }
    Ok(bytes)
}

fn git(directory: &Path, arguments: &[&str]) -> Result<()> {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.org",
            "-c",
            "gc.auto=0",
        ])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(directory)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    )
    .into())
}
