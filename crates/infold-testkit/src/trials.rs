//! `infold-testkit sweep-faults|power-cuts|fuzz-store`: checks the effects of a failing disk on the stores of
//! an `infold` binary.

use std::path::PathBuf;

use infold_testkit::{
    CheckReport, Fuzz, PowerCuts, Sweep, TrialFilter, cut_power, fuzz_store, sweep_faults,
};

/// Options of all trials.
#[derive(clap::Args)]
pub struct TrialOptions {
    /// The command under test; the last one counts
    #[arg(
        long,
        value_name = "FILE",
        default_value = "target/debug/infold",
        overrides_with = "infold"
    )]
    infold: PathBuf,
    /// Only runs whose name begins so, as findings name them; several with commas between them
    #[arg(
        long,
        value_name = "RUN",
        default_value = "",
        hide_default_value = true
    )]
    only: TrialFilter,
    /// Where the choice of runs begins
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Injected faults.
#[derive(clap::Args)]
pub struct SweepFaults {
    /// How many runs, spread over all calls of all commands; 0 for all there are
    #[arg(default_value_t = 10_000)]
    runs: usize,
    #[command(flatten)]
    trial: TrialOptions,
}

impl SweepFaults {
    pub fn run(self) -> Result<String, String> {
        let sweep = Sweep {
            runs: self.runs,
            seed: self.trial.seed,
            only: self.trial.only,
            is_loud: true,
        };
        told(&sweep_faults(&self.trial.infold, &sweep)?)
    }
}

/// Simulated power cuts.
#[derive(clap::Args)]
pub struct CutPower {
    /// How many states of the disk, spread over all moments of all sessions; 0 for all there are
    #[arg(default_value_t = 4_000)]
    states: usize,
    #[command(flatten)]
    trial: TrialOptions,
}

impl CutPower {
    pub fn run(self) -> Result<String, String> {
        let cuts = PowerCuts {
            states: self.states,
            seed: self.trial.seed,
            only: self.trial.only,
            is_loud: true,
        };
        told(&cut_power(&self.trial.infold, &cuts)?)
    }
}

/// Damaged files.
#[derive(clap::Args)]
pub struct FuzzStore {
    /// How many cases, spread over all files and all kinds of damage
    #[arg(default_value_t = 2_000)]
    cases: usize,
    #[command(flatten)]
    trial: TrialOptions,
}

impl FuzzStore {
    pub fn run(self) -> Result<String, String> {
        let fuzz = Fuzz {
            cases: self.cases,
            seed: self.trial.seed,
            only: self.trial.only,
            is_loud: true,
        };
        told(&fuzz_store(&self.trial.infold, &fuzz)?)
    }
}

/// Returns the report as text, as an error if there are findings.
fn told(report: &CheckReport) -> Result<String, String> {
    match report.findings.len() {
        0 => Ok(report.to_string()),
        count => Err(format!("{count} findings\n{report}")),
    }
}
