//! `infold eval --probes`: which planted facts survive a fold.

use infold_eval::Design;
use infold_eval::probes::{
    DISTANCES_TOKENS, FACT_KINDS, FactKind, LANGUAGES, Language, NOISES, Noise, PROBED_DESIGNS,
    Probe, ProbeConversation, SPEAKERS, Speaker,
};
use serde_json::{Value, json};

use super::EvalArgs;
use super::tables::print_table;
use crate::error::CliError;
use crate::output::{DIM, Output, count, number, one_line, paint, say};
use crate::progress::ProgressLine;

/// The sizes of summaries if none are given.
const DEFAULT_SIZES_TOKENS: [u64; 2] = [2_000, 4_000];

/// A fact, and the stand-ins that still contain it.
struct ProbedFact {
    probe: Probe,
    survives: Vec<(Design, u64, bool)>,
}

/// A group of probes: the property, its value, and the function that reads the value.
type ProbeGroup = (&'static str, String, fn(&Probe) -> String);

/// Plants facts, folds, and prints the surviving ones.
pub fn run(args: &EvalArgs, out: &mut Output) -> Result<(), CliError> {
    let sizes = match &args.sizes[..] {
        [] => &DEFAULT_SIZES_TOKENS[..],
        sizes => sizes,
    };
    let conversations = ProbeConversation::count(args.all);
    let mut progress = ProgressLine::new(out.is_json(), "probing", conversations as u64);
    let mut facts = Vec::new();
    for number in 0..conversations {
        facts.extend(probe(
            &ProbeConversation::generate(number, args.all),
            sizes,
        )?);
        progress.advance(1);
    }
    drop(progress);
    if out.is_json() {
        print_objects(&facts, sizes, out)?;
        return out.finish();
    }
    let probes = count(facts.len() as u64, "planted fact");
    let talks = count(conversations as u64, "generated conversation");
    out.line(format!("{probes} in {talks}"))?;
    for size in sizes {
        print_size(&facts, *size, out)?;
    }
    if let Some(most) = args.lost {
        print_lost(&facts, sizes[0], most, out)?;
    }
    out.finish()?;
    let legend = "how many in 100 planted facts a stand-in still says word for word, whatever its case and spaces";
    say(false, paint(DIM, legend));
    Ok(())
}

fn probe(conversation: &ProbeConversation, sizes: &[u64]) -> Result<Vec<ProbedFact>, CliError> {
    let answers = conversation
        .probe(sizes)
        .map_err(|error| CliError::no(format!("a generated message is broken: {error}")))?;
    let probes = conversation.probes.iter().enumerate();
    let facts = probes.map(|(at, probe)| ProbedFact {
        probe: probe.clone(),
        survives: answers
            .iter()
            .map(|answer| (answer.design, answer.size, answer.survives[at]))
            .collect(),
    });
    Ok(facts.collect())
}

/// Returns the groups by every property in which probes differ.
fn groups() -> Vec<ProbeGroup> {
    type Property = (&'static str, Vec<String>, fn(&Probe) -> String);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let properties: [Property; 6] = [
        ("all", names(&[""]), |_| String::new()),
        ("kind", names(&FACT_KINDS.map(FactKind::name)), |probe| {
            probe.kind.name().to_owned()
        }),
        ("language", names(&LANGUAGES.map(Language::name)), |probe| {
            probe.language.name().to_owned()
        }),
        ("noise", names(&NOISES.map(Noise::name)), |probe| {
            probe.noise.name().to_owned()
        }),
        ("distance", DISTANCES_TOKENS.map(number).to_vec(), |probe| {
            number(probe.distance)
        }),
        ("said by", names(&SPEAKERS.map(Speaker::name)), |probe| {
            probe.speaker.name().to_owned()
        }),
    ];
    let groups = properties
        .into_iter()
        .flat_map(|(by, names, read)| names.into_iter().map(move |name| (by, name, read)));
    groups.collect()
}

/// Returns the number of probes in a group, and of those that survive in a design at a size.
fn count_survivors(
    facts: &[ProbedFact],
    group: &ProbeGroup,
    design: Design,
    size: u64,
) -> (u64, u64) {
    let (mut all, mut alive) = (0, 0);
    for one in facts.iter().filter(|one| group.2(&one.probe) == group.1) {
        all += 1;
        alive += u64::from(one.survives.contains(&(design, size, true)));
    }
    (all, alive)
}

fn print_size(facts: &[ProbedFact], size: u64, out: &mut Output) -> Result<(), CliError> {
    out.line("")?;
    out.line(format!("At {} tokens", number(size)))?;
    let mut rows = Vec::new();
    let mut last = "";
    for group in groups() {
        let shares = PROBED_DESIGNS.map(|design| count_survivors(facts, &group, design, size));
        if shares[0].0 == 0 {
            continue;
        }
        let [first, second, third, fourth] =
            shares.map(|(all, alive)| format!("{:.0}", alive as f64 * 100.0 / all as f64));
        let by = if group.0 == last { "" } else { group.0 };
        last = group.0;
        let count = number(shares[0].0);
        rows.push([by.to_owned(), group.1, count, first, second, third, fourth]);
    }
    let header = format!("by||facts|{}", PROBED_DESIGNS.map(Design::name).join("|"));
    print_table(&header, rows, &[2, 3, 4, 5], out)
}

/// Lists facts that the extractive summary lost.
fn print_lost(
    facts: &[ProbedFact],
    size: u64,
    most: usize,
    out: &mut Output,
) -> Result<(), CliError> {
    let is_lost = |one: &&ProbedFact| one.survives.contains(&(Design::Extractive, size, false));
    let rows: Vec<[String; 5]> = facts
        .iter()
        .filter(is_lost)
        .take(most)
        .map(|ProbedFact { probe, .. }| {
            let names = [probe.kind.name(), probe.language.name(), probe.noise.name()];
            let [kind, language, noise] = names.map(str::to_owned);
            [
                kind,
                language,
                noise,
                number(probe.distance),
                one_line(&probe.text),
            ]
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    out.line("")?;
    let design = Design::Extractive.name();
    out.line(format!("What `{design}` lost at {} tokens", number(size)))?;
    print_table("kind|language|noise|distance|fact", rows, &[3], out)
}

fn print_objects(facts: &[ProbedFact], sizes: &[u64], out: &mut Output) -> Result<(), CliError> {
    for size in sizes {
        for group in groups() {
            for design in PROBED_DESIGNS {
                let (probes, survived) = count_survivors(facts, &group, design, *size);
                if probes == 0 {
                    continue;
                }
                out.object(&json!({
                    "table": "probes",
                    "size": size,
                    "by": group.0,
                    "name": group.1,
                    "stand_in": design.name(),
                    "probes": probes,
                    "survived": survived,
                    "share": survived as f64 / probes as f64,
                }))?;
            }
        }
    }
    for one in facts {
        let survives = one.survives.iter().filter(|(.., survives)| *survives);
        let survives =
            survives.map(|(design, size, _)| json!({"stand_in": design.name(), "size": size}));
        out.object(&json!({
            "table": "probe",
            "kind": one.probe.kind.name(),
            "language": one.probe.language.name(),
            "noise": one.probe.noise.name(),
            "distance": one.probe.distance,
            "said_by": one.probe.speaker.name(),
            "text": one.probe.text,
            "keys": one.probe.keys,
            "survives_in": survives.collect::<Vec<Value>>(),
        }))?;
    }
    Ok(())
}
