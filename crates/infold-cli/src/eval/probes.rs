//! `infold eval --probes`: which planted facts survive a fold.

use infold_eval::Design;
use infold_eval::probes::{
    DISTANCES_TOKENS, FACT_KINDS, LANGUAGES, NOISES, PROBED_DESIGNS, Probe, ProbeConversation,
    SPEAKERS,
};
use serde_json::{Value, json};

use super::EvalArgs;
use super::tables::lines;
use crate::failure::{Failure, Kind};
use crate::out::{DIM, Out, count, number, one_line, paint, say, table};
use crate::progress::Progress;

/// The sizes of summaries if none are given.
const SIZES_TOKENS: [u64; 2] = [2_000, 4_000];

/// A fact, and which stand-ins still say it.
struct ProbedFact {
    probe: Probe,
    survives: Vec<(Design, u64, bool)>,
}

/// A test for one group of probes: what they are grouped by, the name of the group, and which belong to it.
type ProbeGroup = (&'static str, String, Box<dyn Fn(&Probe) -> bool>);

/// Plants facts, folds, and prints what survived.
pub fn run(args: &EvalArgs, out: &mut Out) -> Result<(), Failure> {
    let sizes = match &args.sizes[..] {
        [] => &SIZES_TOKENS[..],
        sizes => sizes,
    };
    let conversations = ProbeConversation::count(args.all);
    let mut progress = Progress::new(out.is_json(), "probing", conversations as u64);
    let mut asked = Vec::new();
    for number in 0..conversations {
        asked.extend(ask(&ProbeConversation::generate(number, args.all), sizes)?);
        progress.advance(1);
    }
    drop(progress);
    if out.is_json() {
        objects(&asked, sizes, out)?;
        return out.finish();
    }
    let probes = count(asked.len() as u64, "planted fact");
    let talks = count(conversations as u64, "generated conversation");
    out.line(format!("{probes} in {talks}"))?;
    for size in sizes {
        print(&asked, *size, out)?;
    }
    if let Some(most) = args.lost {
        lost(&asked, sizes[0], most, out)?;
    }
    out.finish()?;
    let meaning = "how many in 100 planted facts a stand-in still says word for word, whatever its case and spaces";
    say(false, paint(DIM, meaning));
    Ok(())
}

fn ask(conversation: &ProbeConversation, sizes: &[u64]) -> Result<Vec<ProbedFact>, Failure> {
    let answers = conversation.ask(sizes).map_err(|error| {
        Failure::new(Kind::No, format!("a generated message is broken: {error}"))
    })?;
    let probes = conversation.probes.iter().enumerate();
    let asked = probes.map(|(at, probe)| ProbedFact {
        probe: probe.clone(),
        survives: answers
            .iter()
            .map(|answer| (answer.design, answer.size, answer.survives[at]))
            .collect(),
    });
    Ok(asked.collect())
}

/// Groups by everything in which probes differ.
fn groups() -> Vec<ProbeGroup> {
    let mut out: Vec<ProbeGroup> = vec![("all", String::new(), Box::new(|_| true))];
    for kind in FACT_KINDS {
        let test = move |probe: &Probe| probe.kind == kind;
        out.push(("kind", kind.name().to_owned(), Box::new(test)));
    }
    for language in LANGUAGES {
        let test = move |probe: &Probe| probe.language == language;
        out.push(("language", language.name().to_owned(), Box::new(test)));
    }
    for noise in NOISES {
        let test = move |probe: &Probe| probe.noise == noise;
        out.push(("noise", noise.name().to_owned(), Box::new(test)));
    }
    for distance in DISTANCES_TOKENS {
        let test = move |probe: &Probe| probe.distance == distance;
        out.push(("distance", number(distance), Box::new(test)));
    }
    for speaker in SPEAKERS {
        let test = move |probe: &Probe| probe.speaker == speaker;
        out.push(("said by", speaker.name().to_owned(), Box::new(test)));
    }
    out
}

/// How many probes a group has, and how many of them survive in a design at a size.
fn survivors(asked: &[ProbedFact], group: &ProbeGroup, design: Design, size: u64) -> (u64, u64) {
    let (mut all, mut alive) = (0, 0);
    for one in asked.iter().filter(|one| group.2(&one.probe)) {
        all += 1;
        alive += u64::from(one.survives.contains(&(design, size, true)));
    }
    (all, alive)
}

fn print(asked: &[ProbedFact], size: u64, out: &mut Out) -> Result<(), Failure> {
    out.line("")?;
    out.line(format!("At {} tokens", number(size)))?;
    let [first, second, third, fourth] = PROBED_DESIGNS.map(|design| design.name().to_owned());
    let mut rows = vec![[
        "by".to_owned(),
        String::new(),
        "facts".to_owned(),
        first,
        second,
        third,
        fourth,
    ]];
    let mut last = "";
    for group in groups() {
        let shares = PROBED_DESIGNS.map(|design| survivors(asked, &group, design, size));
        if shares[0].0 == 0 {
            continue;
        }
        let [first, second, third, fourth] =
            shares.map(|(all, alive)| format!("{:.0}", alive as f64 * 100.0 / all as f64));
        let by = if group.0 == last { "" } else { group.0 };
        last = group.0;
        rows.push([
            by.to_owned(),
            group.1.clone(),
            number(shares[0].0),
            first,
            second,
            third,
            fourth,
        ]);
    }
    lines(&table(&rows, &[2, 3, 4, 5], out.width()), out)
}

/// Names facts that the extractive summary lost.
fn lost(asked: &[ProbedFact], size: u64, most: usize, out: &mut Out) -> Result<(), Failure> {
    let is_lost = |one: &&ProbedFact| one.survives.contains(&(Design::Extractive, size, false));
    let mut rows = vec![["kind", "language", "noise", "distance", "fact"].map(str::to_owned)];
    for one in asked.iter().filter(is_lost).take(most) {
        rows.push([
            one.probe.kind.name().to_owned(),
            one.probe.language.name().to_owned(),
            one.probe.noise.name().to_owned(),
            number(one.probe.distance),
            one_line(&one.probe.text),
        ]);
    }
    if rows.len() > 1 {
        out.line("")?;
        out.line(format!(
            "What `{}` lost at {} tokens",
            Design::Extractive.name(),
            number(size)
        ))?;
        lines(&table(&rows, &[3], out.width()), out)?;
    }
    Ok(())
}

fn objects(asked: &[ProbedFact], sizes: &[u64], out: &mut Out) -> Result<(), Failure> {
    for size in sizes {
        for group in groups() {
            for design in PROBED_DESIGNS {
                let (probes, survived) = survivors(asked, &group, design, *size);
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
    for one in asked {
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
