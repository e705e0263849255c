//! Simulated power cuts: whatever a disk may have kept at any moment opens, or is put right, and lost nothing.

mod trace;
mod model;
mod states;
mod recorder;
mod session;
mod judge;

use std::path::Path;

use super::fixture::Fixture;
use super::report::{CheckReport, Flaw, Violation};
use super::trial_filter::TrialFilter;
use super::workers;
use session::{Session, SessionKind};
use states::DiskState;

/// Which states to look at.
#[derive(Clone, Debug, Default)]
pub struct PowerCuts {
    /// How many, spread evenly over all moments; all there are if zero.
    pub states: usize,
    /// Where the even spread begins, and what is drawn at random.
    pub seed: u64,
    /// Which states: `always`, `always:120`, `always:120:none`.
    pub only: TrialFilter,
    /// Prints findings as they come.
    pub is_loud: bool,
}

const COLUMNS: [&str; 3] = ["states", "unreadable", "repaired"];

/// Records sessions of `binary`, cuts the power at every moment, and reports violations.
pub fn cut_power(binary: &Path, cuts: &PowerCuts) -> Result<CheckReport, String> {
    let fixture = Fixture::empty(binary)?;
    let mut kinds: Vec<SessionKind> = session::KINDS.to_vec();
    kinds.retain(|kind| cuts.only.may_take(kind.name()));
    let sessions = workers::map(&kinds, |_, kind| Session::record(&fixture, *kind));
    let sessions: Vec<Session> = sessions.into_iter().collect::<Result<_, _>>()?;
    let mut report = CheckReport::new(&COLUMNS);
    for (at, session) in sessions.iter().enumerate() {
        let share = cuts.states.div_ceil(sessions.len());
        let states = states::sample(session, share, cuts.seed.wrapping_add(at as u64), |name| {
            cuts.only.takes(&format!("{}:{name}", session.kind.name()))
        });
        let outcomes = workers::map(&states, |_, state| {
            let outcome = judge::judge(&fixture, session, state);
            let found = found(session, state, &outcome.wrong);
            if cuts.is_loud {
                found.iter().for_each(|finding| println!("{finding}"));
            }
            (outcome, found)
        });
        for (outcome, found) in outcomes {
            let counts = [1, outcome.is_unreadable.into(), outcome.is_repaired.into()];
            report.add(session.kind.name(), &counts, found);
        }
    }
    Ok(report)
}

fn found(session: &Session, state: &DiskState, wrong: &[(Flaw, String)]) -> Vec<Violation> {
    let named = |(wrong, what): &(Flaw, String)| Violation {
        wrong: *wrong,
        run: format!("{}:{}", session.kind.name(), state.name),
        what: format!("{what} [{}]", session.place(state.cut)),
    };
    wrong.iter().map(named).collect()
}
