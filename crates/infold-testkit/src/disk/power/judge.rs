//! Checks of a store after a power cut.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;

use super::session::Session;
use super::states::DiskState;
use crate::disk::check::{crash, is_excused, repaired};
use crate::disk::fixture::Fixture;
use crate::disk::holdings::Holdings;
use crate::disk::report::Flaw;
use crate::disk::sandbox::Sandbox;

/// The result of checking a state.
#[derive(Debug, Default)]
pub(super) struct StateVerdict {
    /// Whether a task could not be continued before the store was repaired.
    pub(super) is_unreadable: bool,
    /// Whether `doctor --repair` had something to repair.
    pub(super) is_repaired: bool,
    pub(super) wrong: Vec<(Flaw, String)>,
}

/// Checks a store after a reboot with the remaining files of the disk.
pub(super) fn judge(fixture: &Fixture, session: &Session, state: &DiskState) -> StateVerdict {
    let mut outcome = StateVerdict::default();
    let sandbox = match booted(session, state) {
        Ok(sandbox) => sandbox,
        Err(error) => {
            outcome
                .wrong
                .push((Flaw::Crash, format!("no run: {error}")));
            return outcome;
        }
    };
    // Users continue their work at once, or check the store first.
    if state.cut.is_multiple_of(2) {
        outcome.go_on(fixture, &sandbox);
        outcome.repair(fixture, &sandbox);
    } else {
        outcome.repair(fixture, &sandbox);
        outcome.go_on(fixture, &sandbox);
    }
    let held = Holdings::read(&sandbox.contexts());
    if let Some(lost) = session.promised(state.cut).lost_in(&held) {
        outcome.wrong.push((Flaw::Lost, lost));
    }
    // By now every task had a writer, which updates its derived files, or has ended, which did so too.
    let stale = held
        .tasks
        .keys()
        .find_map(|id| stale(fixture, &sandbox, &held, id));
    outcome.wrong.extend(stale);
    outcome
}

fn booted(session: &Session, state: &DiskState) -> io::Result<Sandbox> {
    let sandbox = Sandbox::new()?;
    for (path, bytes) in state.tree(session) {
        let path = sandbox.disk().join(path);
        // The files were created with this mode, so that other users cannot read them.
        let mode = match bytes {
            None => {
                fs::create_dir_all(&path)?;
                0o700
            }
            Some(bytes) => {
                fs::write(&path, bytes)?;
                0o600
            }
        };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    fs::write(sandbox.boot(), "8d2e1a54-0c3b-4f5e-9a67-2f1d0e6b7c98\n")?;
    Ok(sandbox)
}

impl StateVerdict {
    /// Appends a message to every running task.
    fn go_on(&mut self, fixture: &Fixture, sandbox: &Sandbox) {
        let question = fixture
            .names()
            .input("question.jsonl")
            .display()
            .to_string();
        let held = Holdings::read(&sandbox.contexts());
        for (id, _) in held
            .tasks
            .iter()
            .filter(|(_, task)| task.place == "running")
        {
            let push = || sandbox.run(&fixture.program, &["task", "push", id, &question]);
            let first = push();
            if let Some(what) = crash(&first) {
                self.wrong.push((Flaw::Crash, what));
            }
            // A task that ended meanwhile is not gone on with.
            if matches!(first.code, Some(0 | 2)) || is_excused(&first) {
                let mut written = stale(fixture, sandbox, &held, id).filter(|_| first.is_ok());
                if matches!(written, Some((Flaw::Unrepaired, _))) {
                    // An append does not read earlier messages, but showing them does.
                    self.is_unreadable = true;
                    self.repair(fixture, sandbox);
                    written = stale(fixture, sandbox, &held, id);
                }
                self.wrong.extend(written);
                continue;
            }
            self.is_unreadable = true;
            self.repair(fixture, sandbox);
            let again = push();
            if !matches!(again.code, Some(0 | 2)) && !is_excused(&again) {
                let what = format!("task {id} cannot be gone on with: {}", again.ending());
                self.wrong.push((Flaw::Unrepaired, what));
            }
        }
    }

    fn repair(&mut self, fixture: &Fixture, sandbox: &Sandbox) {
        match repaired(fixture, sandbox) {
            Ok(is_repaired) => self.is_repaired |= is_repaired,
            Err(wrong) => self.wrong.push(wrong),
        }
    }
}

/// Returns how `current.jsonl` of a task differs from the view.
fn stale(
    fixture: &Fixture,
    sandbox: &Sandbox,
    held: &Holdings,
    id: &str,
) -> Option<(Flaw, String)> {
    let view = sandbox.run(&fixture.program, &["view", id, "--raw"]);
    if is_excused(&view) {
        return None;
    }
    if !view.is_ok() {
        let what = format!("task {id} cannot be shown: {}", view.ending());
        return Some((Flaw::Unrepaired, what));
    }
    let current = held.dir(&sandbox.contexts(), id).join("current.jsonl");
    let current = fs::read(current).unwrap_or_default();
    let (have, want) = (current.len(), view.out.len());
    (current != view.out).then(|| {
        let what = format!(
            "current.jsonl of task {id} has {have} bytes and is not the view, which has {want}"
        );
        (Flaw::Stale, what)
    })
}
