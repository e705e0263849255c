//! The results of many runs: a table, and each violation.

use std::collections::BTreeMap;
use std::fmt;

/// The kinds of violations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    /// A panic, an unexpected signal, or a hang.
    Crash,
    /// Something that was acknowledged is gone.
    Lost,
    /// A command that does all or nothing did a part.
    HalfDone,
    /// A command's statement about its effect is false or missing.
    Untrue,
    /// Doing it again did not lead where one success leads.
    Retry,
    /// `current.jsonl` differs from the view.
    Stale,
    /// `doctor --repair` did not repair it.
    Unrepaired,
}

impl Flaw {
    pub(crate) const ALL: [(Flaw, &'static str); 7] = [
        (Flaw::Crash, "crashes"),
        (Flaw::Lost, "lost"),
        (Flaw::HalfDone, "half done"),
        (Flaw::Untrue, "untrue"),
        (Flaw::Retry, "bad retry"),
        (Flaw::Stale, "stale"),
        (Flaw::Unrepaired, "unrepaired"),
    ];
}

/// One violation, with the arguments that reproduce it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its kind.
    pub wrong: Flaw,
    /// The run, as `--only` takes it.
    pub run: String,
    /// The cause.
    pub what: String,
}

/// The counts of a row beside violations.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutcomeRow {
    pub(crate) counts: Vec<u64>,
    wrong: BTreeMap<Flaw, u64>,
}

/// The results of all runs.
#[derive(Clone, Debug)]
pub struct CheckReport {
    columns: &'static [&'static str],
    rows: BTreeMap<String, OutcomeRow>,
    /// Everything that was wrong.
    pub findings: Vec<Violation>,
}

impl CheckReport {
    pub(crate) fn new(columns: &'static [&'static str]) -> CheckReport {
        CheckReport {
            columns,
            rows: BTreeMap::new(),
            findings: Vec::new(),
        }
    }

    /// Adds a run to a row.
    pub(crate) fn add(&mut self, row: &str, counts: &[u64], findings: Vec<Violation>) {
        let row = self.rows.entry(row.to_owned()).or_default();
        row.counts.resize(self.columns.len(), 0);
        for (sum, count) in row.counts.iter_mut().zip(counts) {
            *sum += count;
        }
        for finding in &findings {
            *row.wrong.entry(finding.wrong).or_default() += 1;
        }
        self.findings.extend(findings);
    }

    /// Returns the sum of a column over all rows.
    pub fn total(&self, column: &str) -> u64 {
        let at = self.columns.iter().position(|name| *name == column);
        let rows = self.rows.values();
        at.map_or(0, |at| rows.filter_map(|row| row.counts.get(at)).sum())
    }
}

/// The table, with a row for all.
impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<22}", "")?;
        let wrong = Flaw::ALL.iter().map(|(_, name)| *name);
        for name in self.columns.iter().copied().chain(wrong) {
            write!(f, "{name:>11}")?;
        }
        writeln!(f)?;
        let mut all = OutcomeRow::default();
        all.counts.resize(self.columns.len(), 0);
        for (name, row) in &self.rows {
            write_row(f, name, row)?;
            for (sum, count) in all.counts.iter_mut().zip(&row.counts) {
                *sum += count;
            }
            for (wrong, count) in &row.wrong {
                *all.wrong.entry(*wrong).or_default() += count;
            }
        }
        write_row(f, "all", &all)
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, name: &str, row: &OutcomeRow) -> fmt::Result {
    write!(f, "{name:<22}")?;
    let wrong = Flaw::ALL
        .iter()
        .map(|(wrong, _)| row.wrong.get(wrong).copied().unwrap_or(0));
    for count in row.counts.iter().copied().chain(wrong) {
        write!(f, "{count:>11}")?;
    }
    writeln!(f)
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = Flaw::ALL.iter();
        let name = all
            .find(|(wrong, _)| *wrong == self.wrong)
            .map_or("", |(_, name)| name);
        write!(f, "{name}: {}: {}", self.run, self.what)
    }
}
