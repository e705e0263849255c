//! A program for the tests: carries out one checkpoint step in its own process, so that a test can kill it midway or
//! run it as another user.
//!
//! `checkpoint-steps CONTEXTS WORKSPACE TASK STEP`, where STEP is one of
//!
//! - `snapshot`: takes a snapshot of WORKSPACE;
//! - `restore NUMBER`: restores the snapshot with this number;
//! - `finish`: completes a restore that was interrupted.

use std::error::Error;
use std::path::Path;

use infold_checkpoint::{CheckpointSettings, Checkpoints, SnapshotRef};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [contexts, workspace, task, ref step @ ..] = *words.as_slice() else {
        return Err("CONTEXTS WORKSPACE TASK STEP".into());
    };
    let checkpoints = Checkpoints::new(Path::new(contexts), CheckpointSettings::default());
    let task = task.parse()?;
    let mut shadow = checkpoints.open(Path::new(workspace))?;
    match step {
        ["snapshot"] => {
            shadow.snapshot(task, 0)?;
        }
        ["restore", number] => {
            let number = number.parse()?;
            shadow.restore("killed", task, 0, SnapshotRef { task, number })?;
        }
        ["finish"] => {
            shadow.finish_restore()?;
        }
        _ => return Err("snapshot, restore NUMBER or finish".into()),
    }
    Ok(())
}
