//! Checks of a store after a command met a fault.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::cases::Nature;
use super::claims::EffectClaim;
use super::{CommandOutput, Flaw, SweepRun};
use crate::disk::check::{crash, repaired};
use crate::disk::fixture::{Fixture, SECRET};
use crate::disk::holdings::{Holdings, LogLines};
use crate::disk::sandbox::{FinishedCommand, Sandbox};
use crate::disk::shim::{Mode, read_calls};

/// How much of a command took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    Part,
    All,
}

const SIGKILL: i32 = 9;

pub(super) type Judged = io::Result<(bool, Vec<(Flaw, String)>)>;

/// Runs a command with a fault, checks the store, and retries and repairs. Returns whether the fault happened, and the
/// violations.
pub(super) fn judge(run: &SweepRun<'_>, fixture: &Fixture) -> Judged {
    let sandbox = Sandbox::copy_of(&run.subject.contexts)?;
    let case = &run.subject.case;
    let ran = case.run(fixture, &sandbox, Some(Mode::Fault(run.at, run.fault)));
    let is_harmed = !read_calls(&sandbox.calls()).is_empty();
    let mut trial = FaultTrial {
        run,
        fixture,
        sandbox,
        wrong: Vec::new(),
    };
    trial.check_end(&ran);
    let effect = trial.effect();
    trial.check_claim(&ran, effect, is_harmed);
    trial.check_told(&ran);
    // A user may retry first or repair first: half of the runs try each order.
    if (run.at + run.fault as usize).is_multiple_of(2) {
        trial.repair();
        trial.retry(effect);
    } else {
        trial.retry(effect);
        trial.repair();
    }
    trial.check_kept();
    trial.check_secret();
    Ok((is_harmed, trial.wrong))
}

/// A run after its fault, with the violations found so far.
struct FaultTrial<'a> {
    run: &'a SweepRun<'a>,
    fixture: &'a Fixture,
    sandbox: Sandbox,
    wrong: Vec<(Flaw, String)>,
}

impl FaultTrial<'_> {
    fn say(&mut self, wrong: Flaw, what: impl Into<String>) {
        self.wrong.push((wrong, what.into()));
    }

    fn nature(&self) -> Nature {
        self.run.subject.case.nature
    }

    fn holdings(&self) -> Holdings {
        Holdings::read(&self.sandbox.contexts())
    }

    /// Checks that the command did not panic or hang, and was ended by no signal but that of the fault.
    fn check_end(&mut self, ran: &FinishedCommand) {
        let is_killed = self.run.fault.is_kill() && ran.signal == Some(SIGKILL);
        if let Some(what) = crash(ran).filter(|_| !is_killed) {
            self.say(Flaw::Crash, what);
        }
    }

    /// Returns how much of the command took effect, by the documented files and, where they hold more than was acknowledged
    /// before, by the command that reads them.
    fn effect(&mut self) -> Effect {
        let subject = self.run.subject;
        let nature = self.nature();
        let facts = |tasks: &[(String, LogLines)]| nature.visible(tasks);
        let before = facts(&subject.before.canonical(&subject.before));
        let after = facts(&subject.after);
        if let (Nature::Rewrites, Some(task)) = (nature, subject.case.task) {
            // A decided redaction is completed by the next command.
            let log = ["log", self.fixture.task(task)];
            let ran = self.sandbox.run(&self.fixture.program, &log);
            if !ran.is_ok() {
                self.say(Flaw::HalfDone, format!("then {}: {}", log[0], ran.ending()));
            }
        }
        let now = self.holdings();
        let mut seen = facts(&now.canonical(&subject.before));
        if seen != before {
            seen = facts(&self.seen(now).canonical(&subject.before));
        }
        if seen == after {
            Effect::All
        } else if seen == before {
            Effect::None
        } else {
            Effect::Part
        }
    }

    /// Removes lines that readers are not shown: those of a push that failed and was not rolled back yet.
    fn seen(&mut self, mut now: Holdings) -> Holdings {
        let Some(name) = self.run.subject.case.task else {
            return now;
        };
        let id = self.fixture.task(name);
        let log = self.sandbox.run(&self.fixture.program, &["log", id]);
        if !log.is_ok() {
            // The repair shows later whether this is a violation.
            return now;
        }
        let objects = log.objects();
        let last_seq = objects
            .iter()
            .filter_map(|object| object["seq"].as_u64())
            .max();
        let ids = objects
            .iter()
            .filter_map(|object| object["event"].as_str()?.strip_prefix('e')?.parse().ok());
        let last_event: Option<u64> = ids.max();
        if let Some(task) = now.tasks.get_mut(id) {
            task.messages.retain(|line| number(line, "seq") <= last_seq);
            task.events.retain(|line| number(line, "id") <= last_event);
        }
        now
    }

    /// Checks that the command's claim is true.
    fn check_claim(&mut self, ran: &FinishedCommand, effect: Effect, is_harmed: bool) {
        let nature = self.nature();
        if effect == Effect::Part
            && !matches!(nature, Nature::Steps | Nature::Removes | Nature::Repairs)
        {
            self.say(
                Flaw::HalfDone,
                format!("a part of it is there; {}", ran.ending()),
            );
        }
        let is_done = effect == Effect::All || matches!(nature, Nature::Removes | Nature::Repairs);
        match ran.code {
            Some(0) if !is_done && nature != Nature::Steps => {
                self.say(Flaw::Lost, "says that it is done, and it is not");
            }
            Some(0) | None => {}
            Some(code) if !is_harmed || self.run.fault.is_harmless() => {
                let what = format!("fails ({code}) where nothing failed: {}", ran.ending());
                self.say(Flaw::Untrue, what);
            }
            Some(2) => {
                let what = format!("calls the command wrong: {}", ran.ending());
                self.say(Flaw::Untrue, what);
            }
            Some(_) => self.check_words(ran, effect),
        }
        // A printed result is acknowledged, whatever the exit code.
        if matches!(
            nature,
            Nature::Atomic | Nature::Repeatable | Nature::Rewrites
        ) && !ran.objects().is_empty()
            && effect != Effect::All
        {
            self.say(
                Flaw::Lost,
                format!("printed its result, and it is not there; {}", ran.ending()),
            );
        }
    }

    /// Checks that a command that only reads fails, or prints the same as without a fault.
    fn check_told(&mut self, ran: &FinishedCommand) {
        if self.nature() != Nature::Reads {
            return;
        }
        let (told, whole) = (
            CommandOutput::read(ran, &self.sandbox),
            &self.run.subject.told,
        );
        if ran.is_ok() && told.out != whole.out {
            let (have, want) = (told.out.len(), whole.out.len());
            self.say(
                Flaw::Untrue,
                format!("exit 0, and prints {have} bytes that are not the {want} it should"),
            );
        }
        let is_wanted = ran.is_ok() || told.file.is_some();
        if is_wanted && told.file != whole.file {
            self.say(
                Flaw::HalfDone,
                format!("the file it writes is not whole; {}", ran.ending()),
            );
        }
    }

    fn check_words(&mut self, ran: &FinishedCommand, effect: Effect) {
        let Some((error, hint)) = ran.failure() else {
            self.say(Flaw::Untrue, format!("says no reason: {}", ran.ending()));
            return;
        };
        // A repair lists what it did.
        if matches!(self.nature(), Nature::Reads | Nature::Repairs) {
            return;
        }
        let what = match (EffectClaim::of(&error, &hint), effect) {
            (EffectClaim::Nothing, Effect::Part | Effect::All) => {
                "says that nothing was changed, and it was"
            }
            (EffectClaim::Silent, Effect::Part | Effect::All) => {
                "fails, and does not say that it took effect"
            }
            (EffectClaim::Done, Effect::None) => "says that it is done, and it is not",
            _ => return,
        };
        self.say(Flaw::Untrue, format!("{what}: {}", ran.ending()));
    }

    /// Repeats the command, and checks that the store is then as after one success.
    fn retry(&mut self, effect: Effect) {
        let case = &self.run.subject.case;
        let ran = match (case.nature, effect) {
            (Nature::Atomic | Nature::Repeatable, Effect::Part) => return,
            (Nature::Rewrites, Effect::Part) => return,
            (Nature::Atomic | Nature::Rewrites, Effect::All) => return,
            // The task is gone, so the command cannot name it.
            (Nature::Removes, Effect::All) if case.has_secret => return,
            (Nature::Steps, Effect::Part | Effect::All) if case.task.is_none() => return,
            (Nature::Steps, Effect::All) => return,
            (Nature::Steps, Effect::Part) => case.resume(self.fixture, &self.sandbox),
            _ => case.run(self.fixture, &self.sandbox, None),
        };
        let is_known = case.nature == Nature::Repeatable && effect == Effect::All;
        // The command may report that it was done already.
        let is_fair = ran.is_ok() || is_known && matches!(ran.code, Some(1 | 2));
        if let Some(what) = crash(&ran) {
            self.say(Flaw::Crash, format!("done again: {what}"));
        } else if !is_fair {
            self.say(Flaw::Retry, format!("done again: {}", ran.ending()));
        } else if let Some(what) = self.differs() {
            self.say(Flaw::Retry, what);
        }
    }

    /// Describes how the store differs from that after one success; `None` if it does not.
    fn differs(&self) -> Option<String> {
        let subject = self.run.subject;
        let now = self.holdings().canonical(&subject.before);
        if subject.case.nature.comparable(&now) == subject.case.nature.comparable(&subject.after) {
            return None;
        }
        let told = |tasks: &[(String, LogLines)]| {
            let told = tasks.iter().map(|(id, task)| {
                let (messages, events) = (task.messages.len(), task.events.len());
                format!(
                    "{} {} {messages}+{events}",
                    &id[..id.len().min(8)],
                    task.place
                )
            });
            told.collect::<Vec<_>>()
        };
        let (now, after) = (told(&now), told(&subject.after));
        let differing = |one: &[String], other: &[String]| {
            let lines = one.iter().filter(|line| !other.contains(line)).cloned();
            lines.collect::<Vec<_>>().join(", ")
        };
        Some(format!(
            "done again: [{}] instead of [{}]",
            differing(&now, &after),
            differing(&after, &now)
        ))
    }

    /// Checks that the store is intact, or can be repaired.
    fn repair(&mut self) {
        if let Err((wrong, what)) = repaired(self.fixture, &self.sandbox) {
            self.say(wrong, what);
        }
    }

    /// Checks that nothing is lost that was there before.
    fn check_kept(&mut self) {
        let subject = self.run.subject;
        if subject.case.nature == Nature::Repairs {
            return;
        }
        let mut before = subject.before.clone();
        // The tasks that the command removes do not count.
        before
            .tasks
            .retain(|id, _| subject.left.tasks.contains_key(id));
        if subject.case.nature == Nature::Rewrites {
            // The tasks that the command rewrites do not count: `retry` compares them with the expected ones.
            before
                .tasks
                .retain(|id, task| subject.left.tasks.get(id) == Some(task));
        }
        if let Some(lost) = before.lost_in(&self.holdings()) {
            self.say(Flaw::Lost, lost);
        }
    }
}

impl FaultTrial<'_> {
    /// By now the command took effect, at once or when it was done again.
    fn check_secret(&mut self) {
        let case = &self.run.subject.case;
        if !case.has_secret {
            return;
        }
        if case.nature == Nature::Removes {
            let args = ["doctor", "--repair"];
            let ran = self.sandbox.run(&self.fixture.program, &args);
            if !ran.is_ok() {
                self.say(
                    Flaw::Unrepaired,
                    format!("doctor --repair: {}", ran.ending()),
                );
            }
        }
        for path in holders(&self.sandbox.contexts()) {
            let what = format!("the secret is still in {}", path.display());
            self.say(Flaw::HalfDone, what);
        }
    }
}

/// The files that hold the secret.
fn holders(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = path.path();
        if path.is_dir() {
            found.extend(holders(&path));
        } else if String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).contains(SECRET) {
            found.push(path);
        }
    }
    found
}

/// A number that a line has.
fn number(line: &str, name: &str) -> Option<u64> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    line[name].as_u64()
}
