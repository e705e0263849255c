//! Faults at every call of every command that reads or writes a store, and the checks after each.

mod cases;
mod claims;
mod judge;
mod serve;

use std::fs;
use std::path::{Path, PathBuf};

use super::fixture::Fixture;
use super::holdings::{Holdings, LogLines};
use super::report::{CheckReport, Flaw, Violation};
use super::sandbox::{FinishedCommand, Sandbox};
use super::shim::{DiskFault, FileCall, Mode, read_calls};
use super::trial_filter::TrialFilter;
use super::workers;
use cases::{CommandCase, Nature};

/// Options of a sweep.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// How many runs, spread evenly over all calls and faults; all there are if zero.
    pub runs: usize,
    /// Where the even spread begins.
    pub seed: u64,
    /// Which runs: `push`, `push:12`, `push:12:eio`.
    pub only: TrialFilter,
    /// Prints findings as they come.
    pub is_loud: bool,
}

/// A command whose calls are known.
struct Subject {
    case: CommandCase,
    contexts: PathBuf,
    calls: Vec<FileCall>,
    before: Holdings,
    /// The store after one success, without values that differ from run to run.
    after: Vec<(String, LogLines)>,
    /// The same, to see which tasks are gone.
    left: Holdings,
    /// The output of a command that only reads.
    told: CommandOutput,
}

/// The output of a command: standard output and the file it writes, without the paths of its sandbox.
#[derive(Debug, Default, PartialEq, Eq)]
struct CommandOutput {
    out: String,
    file: Option<Vec<u8>>,
}

impl CommandOutput {
    fn read(ran: &FinishedCommand, sandbox: &Sandbox) -> CommandOutput {
        let out = String::from_utf8_lossy(&ran.out);
        CommandOutput {
            out: out.replace(&sandbox.disk().display().to_string(), ""),
            file: fs::read(sandbox.disk().join(cases::OUTPUT)).ok(),
        }
    }
}

/// One run: a command, the disturbed call, and the fault.
struct SweepRun<'a> {
    subject: &'a Subject,
    at: usize,
    fault: DiskFault,
}

const COLUMNS: [&str; 2] = ["runs", "faults"];

/// Runs commands of `binary` with faults and reports violations.
pub fn sweep_faults(binary: &Path, sweep: &Sweep) -> Result<CheckReport, String> {
    let fixture = Fixture::new(binary)?;
    let mut cases = cases::all(&fixture);
    cases.retain(|case| sweep.only.may_take(case.name));
    let subjects = workers::map(&cases, |_, case| Subject::of(&fixture, case));
    let subjects: Vec<Subject> = subjects.into_iter().collect::<Result<_, _>>()?;
    let runs = select(&subjects, sweep);
    let mut report = CheckReport::new(&COLUMNS);
    let outcomes = workers::map(&runs, |_, run| {
        let (is_harmed, findings) = run.judged(&fixture);
        if sweep.is_loud {
            findings.iter().for_each(|finding| println!("{finding}"));
        }
        (is_harmed, findings)
    });
    for (run, (is_harmed, findings)) in runs.iter().zip(outcomes) {
        report.add(run.subject.case.name, &[1, is_harmed.into()], findings);
    }
    Ok(report)
}

impl Subject {
    /// Runs a command once, undisturbed, and notes its calls.
    fn of(fixture: &Fixture, case: &CommandCase) -> Result<Subject, String> {
        let failed = |what: String| format!("{}: {what}", case.name);
        let contexts = case.contexts(fixture);
        let sandbox = Sandbox::copy_of(&contexts).map_err(|error| failed(error.to_string()))?;
        let before = Holdings::read(&contexts);
        let told = match case.nature {
            Nature::Serves => {
                serve::rehearse(fixture, &sandbox).map_err(failed)?;
                CommandOutput::default()
            }
            _ => {
                let ran = case.run(fixture, &sandbox, Some(Mode::List));
                if !ran.is_ok() {
                    return Err(failed(ran.ending()));
                }
                CommandOutput::read(&ran, &sandbox)
            }
        };
        let left = Holdings::read(&sandbox.contexts());
        Ok(Subject {
            case: case.clone(),
            contexts,
            calls: read_calls(&sandbox.calls()),
            after: left.canonical(&before),
            before,
            left,
            told,
        })
    }

    /// All that can be done to it.
    fn runs(&self) -> Vec<SweepRun<'_>> {
        let harms = self.calls.iter().enumerate().flat_map(|(index, call)| {
            let faults = call.op.faults().iter().copied();
            faults.map(move |fault| (index + 1, fault))
        });
        // All other calls are followed by one that a kill may come before.
        let last = (self.calls.len(), DiskFault::KillAfter);
        let all = harms.chain([last]);
        all.map(|(at, fault)| SweepRun {
            subject: self,
            at,
            fault,
        })
        .collect()
    }
}

impl SweepRun<'_> {
    fn name(&self) -> String {
        format!(
            "{}:{}:{}",
            self.subject.case.name,
            self.at,
            self.fault.name()
        )
    }

    /// Runs it; returns whether the fault happened, and the violations.
    fn judged(&self, fixture: &Fixture) -> (bool, Vec<Violation>) {
        let judged = match self.subject.case.nature {
            Nature::Serves => serve::judge(self, fixture),
            _ => judge::judge(self, fixture),
        };
        let named = |(wrong, what)| Violation {
            wrong,
            run: self.name(),
            what: format!("{what} [{}]", self.place()),
        };
        match judged {
            Ok((is_harmed, wrongs)) => (is_harmed, wrongs.into_iter().map(named).collect()),
            Err(error) => (
                false,
                vec![named((Flaw::Crash, format!("no run: {error}")))],
            ),
        }
    }

    /// The call that is harmed, for people.
    fn place(&self) -> String {
        let Some(call) = self.subject.calls.get(self.at - 1) else {
            return String::new();
        };
        let path = call.path.display().to_string();
        let at = path.find("/disk/").map_or(0, |at| at + "/disk/".len());
        format!("{} {}", call.op.name(), &path[at..])
    }
}

/// Takes as many runs as are asked for, the same share of each command's.
fn select<'a>(subjects: &'a [Subject], sweep: &Sweep) -> Vec<SweepRun<'a>> {
    let all: Vec<Vec<SweepRun<'a>>> = subjects.iter().map(Subject::runs).collect();
    let is_asked = |run: &SweepRun<'_>| sweep.only.takes(&run.name());
    let all: Vec<Vec<SweepRun<'a>>> = all
        .into_iter()
        .map(|runs| runs.into_iter().filter(is_asked).collect())
        .collect();
    let total: usize = all.iter().map(Vec::len).sum();
    if sweep.runs == 0 || sweep.runs >= total {
        return all.into_iter().flatten().collect();
    }
    let spread = |runs: Vec<SweepRun<'a>>| {
        let count = (runs.len() * sweep.runs).div_ceil(total).min(runs.len());
        let (len, offset) = (runs.len(), sweep.seed as usize);
        let mut chosen = vec![false; len];
        for at in 0..count {
            chosen[(at * len / count + offset) % len] = true;
        }
        let kept = runs
            .into_iter()
            .zip(chosen)
            .filter(|(_, is_chosen)| *is_chosen);
        kept.map(|(run, _)| run).collect::<Vec<_>>()
    };
    all.into_iter().flat_map(spread).collect()
}
