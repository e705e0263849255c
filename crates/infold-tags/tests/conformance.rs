//! Runs every recorded case in `tests/vectors`, or in the directory that
//! `INFOLD_VECTORS` names, and says for each file how many pass.
//!
//! Skipped are only inputs tagged `malformed` that our types cannot hold.
//! Everything else must match.

#[path = "conformance/arguments.rs"]
mod arguments;
#[path = "conformance/value.rs"]
mod value;
#[path = "conformance/case.rs"]
mod case;
#[path = "conformance/input.rs"]
mod input;
#[path = "conformance/script.rs"]
mod script;
#[path = "conformance/managing.rs"]
mod managing;
#[path = "conformance/functions.rs"]
mod functions;

use std::error::Error;
use std::fmt;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use arguments::Asked;
use case::Verdict;

fn main() -> ExitCode {
    match arguments::asked(std::env::args().skip(1)) {
        Asked::Name => println!("conformance: test"),
        Asked::Nothing => println!("conformance: filtered out"),
        Asked::Run => match run(&directory()) {
            Ok(total) => {
                println!("conformance: {total}");
                return ExitCode::from(u8::from(total.failed > 0));
            }
            Err(error) => {
                println!("conformance: {error}");
                return ExitCode::FAILURE;
            }
        },
        Asked::Silence => {}
    }
    ExitCode::SUCCESS
}

fn directory() -> PathBuf {
    match std::env::var_os("INFOLD_VECTORS") {
        Some(named) => named.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors"),
    }
}

/// Runs all files of a directory; one without any is an error.
fn run(directory: &Path) -> Result<Tally, Box<dyn Error>> {
    let entries = std::fs::read_dir(directory)
        .map_err(|error| format!("cannot read {}: {error}", directory.display()))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    let mut total = Tally::default();
    for file in &files {
        total += run_file(file)?;
    }
    if total == Tally::default() {
        return Err(format!("no vectors in {}", directory.display()).into());
    }
    Ok(total)
}

fn run_file(file: &Path) -> Result<Tally, Box<dyn Error>> {
    let text = std::fs::read(file)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let mut tally = Tally::default();
    let mut reasons = Vec::new();
    // On line feeds only: other line separators occur inside strings.
    for line in text.split(|&byte| byte == b'\n') {
        if line.is_empty() {
            continue;
        }
        let (id, verdict) = case::judge(line);
        match verdict {
            Verdict::Passed => tally.passed += 1,
            Verdict::Skipped(reason) => {
                tally.skipped += 1;
                reasons.push(reason);
            }
            Verdict::Failed(why) => {
                tally.failed += 1;
                println!("FAILED {name} {id}: {why}");
            }
        }
    }
    reasons.sort();
    reasons.dedup();
    match reasons.join(", ").as_str() {
        "" => println!("{name}: {tally}"),
        reasons => println!("{name}: {tally} ({reasons})"),
    }
    Ok(tally)
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}
