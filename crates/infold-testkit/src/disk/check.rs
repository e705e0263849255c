//! Checks that hold for every command and every store.

use super::fixture::Fixture;
use super::proxy::{ProxyConversation, content};
use super::report::Flaw;
use super::sandbox::{FinishedCommand, Sandbox};

/// The documented exit codes.
const EXIT_CODES: [i32; 6] = [0, 1, 2, 3, 4, 130];

/// Returns how a command ended, if no command may end so: by a panic, a signal or an exit code that is not documented.
pub(crate) fn crash(ran: &FinishedCommand) -> Option<String> {
    // 101 is the exit code of a Rust program that panicked.
    let is_panic = ran.err.contains("panicked at") || ran.code == Some(101);
    let is_known = ran.code.is_some_and(|code| EXIT_CODES.contains(&code));
    (is_panic || !is_known).then(|| ran.ending())
}

/// Part of the error of a fork whose parent task is gone, a problem that no repair can solve.
const PARENT_GONE: &str = "which is not here";

/// Returns whether a failure is the documented one that only a person can solve.
pub(crate) fn is_excused(ran: &FinishedCommand) -> bool {
    ran.failure()
        .is_some_and(|(error, _)| error.contains(PARENT_GONE))
}

/// Runs `verify`, and `doctor --repair` if there are problems. Returns whether there were, and an error if some remain.
pub(crate) fn repaired(fixture: &Fixture, sandbox: &Sandbox) -> Result<bool, (Flaw, String)> {
    let run_checked = |args: &[&str]| {
        let ran = sandbox.run(&fixture.program, args);
        match crash(&ran) {
            Some(crash) => Err((Flaw::Crash, format!("{}: {crash}", args.join(" ")))),
            None => Ok(ran),
        }
    };
    if run_checked(&["verify"])?.is_ok() {
        return Ok(false);
    }
    let doctor = run_checked(&["doctor", "--repair"])?;
    let left = problems(&doctor);
    if !doctor.is_ok() && (left.is_empty() || !left.iter().all(|left| left.contains(PARENT_GONE))) {
        let what = format!("doctor --repair: {} {left:?}", doctor.ending());
        return Err((Flaw::Unrepaired, what));
    }
    let left = problems(&run_checked(&["verify"])?);
    match left.iter().find(|left| !left.contains(PARENT_GONE)) {
        Some(left) => Err((Flaw::Unrepaired, format!("after doctor --repair: {left}"))),
        None => Ok(true),
    }
}

/// Returns the problems that `verify` or `doctor` report.
fn problems(ran: &FinishedCommand) -> Vec<String> {
    let objects = ran.objects();
    let lists = objects
        .iter()
        .filter_map(|object| object["problems"].as_array());
    let texts = lists.flatten().filter_map(|problem| problem.as_str());
    texts.map(str::to_owned).collect()
}

/// Returns the view of a conversation's task, without the instructions.
pub(crate) fn recorded(
    fixture: &Fixture,
    sandbox: &Sandbox,
    talk: &ProxyConversation,
) -> Result<Vec<String>, String> {
    let task = talk.task.as_deref().ok_or("no task")?;
    let ran = sandbox.run(&fixture.program, &["view", task, "--raw"]);
    if !ran.is_ok() {
        return Err(ran.ending());
    }
    let messages = ran.objects();
    let said = messages
        .iter()
        .filter(|message| message["role"] != "system");
    Ok(said.map(content).collect())
}
