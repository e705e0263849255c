//! Damages files, and checks that commands still answer, that a repair leaves a valid store, and that a server
//! continues to record.

mod damage_kind;
mod store;
mod kept;
mod judge;

use std::path::Path;

use super::fixture::Fixture;
use super::report::{CheckReport, Violation};
use super::trial_filter::TrialFilter;
use super::workers;
use crate::random::Random;
use damage_kind::DamageKind;
use store::{DamagedFile, Store};

/// Options of a fuzz run.
#[derive(Clone, Debug, Default)]
pub struct Fuzz {
    /// The number of cases, before `only` selects some of them.
    pub cases: usize,
    /// The seed.
    pub seed: u64,
    /// The cases that run, by the beginning of their names: `events.jsonl`, `events.jsonl:zero`,
    /// `events.jsonl:zero:main:3`.
    pub only: TrialFilter,
    /// Whether findings are printed as soon as they are found.
    pub is_loud: bool,
}

/// One case: a file, and its damage.
struct FuzzCase<'a> {
    store: &'a Store,
    damaged: &'a DamagedFile,
    damage: DamageKind,
    /// The seed for the place of the damage in the file.
    seed: u64,
    /// `FILE:HARM:TASK:ROUND`, by which [`Fuzz::only`] selects it.
    name: String,
}

/// The columns of numbers in the report.
const COLUMNS: [&str; 2] = ["cases", "repaired"];

/// Damages stores of `binary` and reports violations.
pub fn fuzz_store(binary: &Path, fuzz: &Fuzz) -> Result<CheckReport, String> {
    let fixture = Fixture::new(binary)?;
    let stores = [Store::new(&fixture)?, Store::large(&fixture)?];
    let cases = select(&stores, fuzz);
    let outcomes = workers::map(&cases, |_, case| {
        let (is_repaired, wrong) = judge::judge(&fixture, case);
        let to_violation = |(wrong, what)| Violation {
            wrong,
            run: case.name.clone(),
            what,
        };
        let found: Vec<Violation> = wrong.into_iter().map(to_violation).collect();
        if fuzz.is_loud {
            found.iter().for_each(|finding| println!("{finding}"));
        }
        (is_repaired, found)
    });
    let mut report = CheckReport::new(&COLUMNS);
    for (case, (is_repaired, found)) in cases.iter().zip(outcomes) {
        report.add(&case.damaged.file, &[1, is_repaired.into()], found);
    }
    Ok(report)
}

/// Selects the cases: each file with each kind of damage, repeated with other seeds until there are enough.
fn select<'a>(stores: &'a [Store], fuzz: &Fuzz) -> Vec<FuzzCase<'a>> {
    let damaged_files = stores.iter().flat_map(|store| {
        store
            .damaged_files
            .iter()
            .map(move |damaged| (store, damaged))
    });
    let pairs: Vec<(&Store, &DamagedFile, DamageKind)> = damaged_files
        .flat_map(|(store, damaged)| DamageKind::all().map(move |damage| (store, damaged, damage)))
        .filter(|(_, damaged, damage)| damage.applies(damaged))
        .collect();
    let mut cases = Vec::new();
    // The order is shuffled (Fisher–Yates), so that a few cases cover many kinds of damage. Each pair comes once before
    // any comes again.
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    let mut random = Random::new(fuzz.seed);
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    for number in 0..fuzz.cases.max(1) {
        let (store, damaged, damage) = pairs[order[number % order.len()]];
        let round = number / order.len();
        let name = format!(
            "{}:{}:{}:{round}",
            damaged.file,
            damage.name(),
            damaged.task
        );
        cases.push(FuzzCase {
            store,
            damaged,
            damage,
            seed: fuzz
                .seed
                .wrapping_mul(1_000_003)
                .wrapping_add(number as u64),
            name,
        });
    }
    cases.retain(|case| fuzz.only.takes(&case.name));
    cases
}
