//! Prints what came of replays.

use std::collections::HashMap;

use infold::STRATEGIES;
use infold_eval::{Counts, Design, DesignTotals, LostReference, MEASURES, Measure, Replay};
use serde_json::{Value, json};

use super::EvalArgs;
use super::replays::{ReplaySetup, ReplayTotals};
use crate::failure::Failure;
use crate::out::{DIM, Out, count, number, one_line, paint, say, table};

/// Prints what came of it.
pub struct ReplayTables<'a> {
    args: &'a EvalArgs,
    setup: &'a ReplaySetup,
    width: usize,
}

impl<'a> ReplayTables<'a> {
    pub fn new(args: &'a EvalArgs, setup: &'a ReplaySetup, width: usize) -> ReplayTables<'a> {
        ReplayTables { args, setup, width }
    }

    /// Prints the tables of a file, or of all.
    pub fn print(&self, sums: &ReplayTotals, out: &mut Out) -> Result<(), Failure> {
        if out.is_json() {
            return self.objects(sums, out);
        }
        let replayed = sums.sessions - sums.failed;
        let read = format!(
            "{}, {}",
            count(replayed, "session"),
            count(sums.messages, "message")
        );
        out.line(format!("{}: {read}", one_line(&sums.name)))?;
        if replayed == 0 {
            return out.line("");
        }
        match (sums.short, replayed) {
            (0, _) => {}
            (1, 1) => out.line("It never fills the window: nothing was folded.")?,
            (short, _) => out.line(format!(
                "{short} of them never fill the window: nothing was folded there."
            ))?,
        }
        self.strategies(sums, out)?;
        self.passes(sums, out)?;
        let by = STRATEGIES[0].name;
        let heading = format!("Summaries of `{by}` against others of the same size in their place");
        self.compared(&heading, &sums.compared, out)?;
        let heading = "Summaries that the agent wrote itself against others of the same size";
        self.compared(heading, &sums.agent, out)?;
        if let Some(most) = self.args.lost {
            self.lost(&sums.compared, most, out)?;
        }
        out.line("")
    }

    fn strategies(&self, sums: &ReplayTotals, out: &mut Out) -> Result<(), Failure> {
        let mut rows = vec![
            [
                "strategy",
                "requests",
                "tokens sent",
                "cached",
                "folds",
                "cost",
                "recall",
                "reachable",
            ]
            .map(str::to_owned),
        ];
        for (aim, replay) in self.setup.aims.iter().zip(&sums.replays) {
            let total = RequestTotals::of(replay);
            rows.push([
                aim.strategy.name.to_owned(),
                match replay.unfit.len() {
                    0 => number(total.requests),
                    unfit => format!(
                        "{} of {}",
                        number(total.requests),
                        number(total.requests + unfit as u64)
                    ),
                },
                number(total.tokens),
                percent(total.cached, total.tokens),
                number(total.folds),
                match self.setup.prices {
                    Some(_) => dollars(total.cost),
                    None => "–".to_owned(),
                },
                share(replay.scores[Measure::References]),
                percent(replay.reached, replay.scores[Measure::References].wanted),
            ]);
        }
        lines(&table(&rows, &[1, 2, 3, 4, 5, 6], self.width), out)
    }

    /// Says how often each strategy folds, and what is lost by it.
    fn passes(&self, sums: &ReplayTotals, out: &mut Out) -> Result<(), Failure> {
        let mut rows = vec![
            [
                "strategy",
                "passes",
                "window used after",
                "prefix breaks",
                "lost references",
                "lost words",
            ]
            .map(str::to_owned),
        ];
        for (aim, replay) in self.setup.aims.iter().zip(&sums.replays) {
            let total = RequestTotals::of(replay);
            if total.passes == 0 {
                continue;
            }
            let used = total.used_share(aim.budget.window());
            let lost = |measure: Measure| {
                per_100(replay.scores[measure], total.requests)
                    .map_or("–".to_owned(), |lost| format!("{lost:.1}"))
            };
            rows.push([
                aim.strategy.name.to_owned(),
                number(total.passes),
                used.map_or("–".to_owned(), |used| format!("{:.1} %", used * 100.0)),
                number(total.breaks),
                lost(Measure::References),
                lost(Measure::Words),
            ]);
        }
        if rows.len() == 1 {
            return Ok(());
        }
        out.line("")?;
        lines(&table(&rows, &[1, 2, 3, 4], self.width), out)
    }

    fn compared(
        &self,
        heading: &str,
        compared: &[DesignTotals],
        out: &mut Out,
    ) -> Result<(), Failure> {
        if compared.iter().all(|compared| compared.folds == 0) {
            return Ok(());
        }
        out.line("")?;
        out.line(heading)?;
        let mut rows = vec![
            [
                "stand-in",
                "folds",
                "tokens",
                "wanted",
                "kept",
                "recall",
                "words",
                "pairs",
                "per 1,000",
                "extractive",
            ]
            .map(str::to_owned),
        ];
        for one in compared {
            rows.push([
                one.design.name().to_owned(),
                number(one.folds),
                number(one.tokens),
                number(one.scores[Measure::References].wanted),
                number(one.scores[Measure::References].kept),
                recall(one, Measure::References),
                recall(one, Measure::Words),
                recall(one, Measure::Pairs),
                one.density()
                    .map_or("–".to_owned(), |density| format!("{density:.1}")),
                match ratio(compared, one) {
                    _ if one.design == Design::Extractive => String::new(),
                    Some(ratio) => format!("× {ratio:.1}"),
                    None => "–".to_owned(),
                },
            ]);
        }
        lines(&table(&rows, &[1, 2, 3, 4, 5, 6, 7, 8], self.width), out)
    }

    fn lost(&self, compared: &[DesignTotals], most: usize, out: &mut Out) -> Result<(), Failure> {
        let lost = most_lost(compared, most);
        if lost.is_empty() {
            return Ok(());
        }
        out.line("")?;
        out.line("What the summaries lost most often")?;
        let mut rows = vec![["times", "in messages", "last in", "reference"].map(str::to_owned)];
        for lost in lost {
            rows.push([
                number(lost.times),
                number(lost.occurs),
                lost.from.to_owned(),
                one_line(&lost.reference),
            ]);
        }
        lines(&table(&rows, &[0, 1], self.width), out)
    }

    /// Says what the figures mean.
    pub fn legend(&self, out: &mut Out) -> Result<(), Failure> {
        if out.is_json() {
            return Ok(());
        }
        let model = &self.setup.model;
        let cost = match self.setup.prices {
            Some(prices) => format!(
                "Cost at the prices of {model}: ${} a million tokens, ${} cached, ${} written to the cache, ${} for output",
                prices.input, prices.cached, prices.write, prices.output
            ),
            None => format!("Cost: the prices of {model} are not known"),
        };
        out.line(cost)?;
        out.finish()?;
        for line in [
            "cached: what repeats the start of the request before, byte for byte",
            "recall: of the references that user and assistant make to what was folded away, those still in view",
            "reachable: those that are found by reading folded messages back",
            "passes: requests before which something was folded; prefix breaks: those that do not repeat all of the one before",
            "lost: used again, folded away and in no stand-in, for 100 requests",
        ] {
            say(false, paint(DIM, line));
        }
        Ok(())
    }

    fn objects(&self, sums: &ReplayTotals, out: &mut Out) -> Result<(), Failure> {
        for (aim, replay) in self.setup.aims.iter().zip(&sums.replays) {
            let total = RequestTotals::of(replay);
            let references = replay.scores[Measure::References];
            let window = aim.budget.window();
            let mut object = json!({
                "table": "strategies",
                "file": sums.name,
                "strategy": aim.strategy.name,
                "window": window,
                "sessions": sums.sessions - sums.failed,
                "left_out": sums.failed,
                "never_full": sums.short,
                "messages": sums.messages,
                "requests": total.requests,
                "unfit": replay.unfit.len(),
                "tokens": total.tokens,
                "cached_tokens": total.cached,
                "bytes": total.bytes,
                "cached_bytes": total.cached_bytes,
                "output_tokens": total.output,
                "folds": total.folds,
                "model": self.setup.model,
                "cost": self.setup.prices.map(|_| total.cost),
                "wanted": references.wanted,
                "kept": references.kept,
                "recall": references.share(),
                "reached": replay.reached,
                "reachable": part(replay.reached, references.wanted),
                "passes": total.passes,
                "window_share_after_fold": total.used_share(window),
                "prefix_breaks": total.breaks,
                "lost_references_per_100_requests": per_100(references, total.requests),
                "lost_words_per_100_requests": per_100(replay.scores[Measure::Words], total.requests),
            });
            add_scores(&mut object, |measure| replay.scores[measure]);
            out.object(&object)?;
        }
        for (at, compared) in [("infold", &sums.compared), ("agent", &sums.agent)] {
            for one in compared.iter().filter(|one| one.folds > 0) {
                let lost = most_lost(std::slice::from_ref(one), self.args.lost.unwrap_or(0));
                let references = one.scores[Measure::References];
                let mut object = json!({
                    "table": "stand-ins",
                    "file": sums.name,
                    "summaries_of": at,
                    "stand_in": one.design.name(),
                    "folds": one.folds,
                    "tokens": one.tokens,
                    "wanted": references.wanted,
                    "kept": references.kept,
                    "recall": references.share(),
                    "kept_per_1000_tokens": one.density(),
                    "extractive_times": ratio(compared, one),
                    "lost": lost.iter().map(lost_object).collect::<Vec<Value>>(),
                });
                add_scores(&mut object, |measure| one.scores[measure]);
                out.object(&object)?;
            }
        }
        Ok(())
    }
}

fn lost_object(lost: &LostReference) -> Value {
    json!({"reference": lost.reference, "times": lost.times, "last_in": lost.from, "messages": lost.occurs})
}

/// What the requests of a replay come to.
#[derive(Default)]
struct RequestTotals {
    requests: u64,
    tokens: u64,
    cached: u64,
    bytes: u64,
    cached_bytes: u64,
    output: u64,
    folds: u64,
    /// Requests before which something was folded.
    passes: u64,
    /// The tokens of those.
    after_folds: u64,
    /// Requests that do not repeat all of the one before.
    breaks: u64,
    cost: f64,
}

impl RequestTotals {
    /// The mean share of the window that is used after a fold.
    fn used_share(&self, window: u64) -> Option<f64> {
        part(self.after_folds, window * self.passes)
    }

    fn of(replay: &Replay) -> RequestTotals {
        let mut total = RequestTotals::default();
        for request in &replay.requests {
            total.requests += 1;
            total.tokens += request.tokens;
            total.cached += request.cached;
            total.bytes += request.bytes;
            total.cached_bytes += request.cached_bytes;
            total.output += request.output;
            total.folds += request.folds;
            if request.folds > 0 {
                total.passes += 1;
                total.after_folds += request.tokens;
            }
            total.breaks += u64::from(request.breaks);
            total.cost += request.cost;
        }
        total
    }
}

/// How many times as much the extractive summary keeps for each token.
fn ratio(all: &[DesignTotals], one: &DesignTotals) -> Option<f64> {
    let ours = all.iter().find(|one| one.design == Design::Extractive)?;
    let (ours, other) = (ours.density()?, one.density()?);
    (other > 0.0).then(|| ours / other)
}

/// What the extractive summaries, or the only ones given, lost most often.
fn most_lost(compared: &[DesignTotals], most: usize) -> Vec<LostReference> {
    let mut sums: HashMap<&str, LostReference> = HashMap::new();
    let ours = compared.iter();
    for lost in ours.take(1).flat_map(|one| &one.lost) {
        let sum = sums
            .entry(&lost.reference)
            .or_insert_with(|| LostReference {
                times: 0,
                ..lost.clone()
            });
        sum.times += lost.times;
        sum.occurs = sum.occurs.max(lost.occurs);
    }
    let mut all: Vec<LostReference> = sums.into_values().collect();
    all.sort_by(|a, b| {
        let rank = |lost: &LostReference| std::cmp::Reverse((lost.times, lost.occurs));
        rank(a).cmp(&rank(b)).then(a.reference.cmp(&b.reference))
    });
    all.truncate(most);
    all
}

/// An amount to the cent, a small one to the hundredth of it.
fn dollars(amount: f64) -> String {
    match amount < 0.1 {
        true => format!("${amount:.4}"),
        false => format!("${amount:.2}"),
    }
}

fn part(some: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

fn share(counts: Counts) -> String {
    let Counts { wanted, kept } = counts;
    counts.share().map_or("–".to_owned(), |share| {
        format!("{share:.3} ({kept} of {wanted})")
    })
}

fn recall(one: &DesignTotals, measure: Measure) -> String {
    let share = one.scores[measure].share();
    share.map_or("–".to_owned(), |share| format!("{share:.3}"))
}

/// How many were lost for 100 requests.
fn per_100(counts: Counts, requests: u64) -> Option<f64> {
    part(counts.lost() * 100, requests)
}

/// Adds what was wanted and kept by each measure to an object.
fn add_scores(object: &mut Value, counts: impl Fn(Measure) -> Counts) {
    for measure in MEASURES {
        let counts = counts(measure);
        object[measure.name()] =
            json!({"wanted": counts.wanted, "kept": counts.kept, "share": counts.share()});
    }
}

fn percent(some: u64, all: u64) -> String {
    part(some, all).map_or("–".to_owned(), |part| format!("{:.1} %", part * 100.0))
}

pub fn lines(rows: &[String], out: &mut Out) -> Result<(), Failure> {
    for (at, row) in rows.iter().enumerate() {
        match at {
            0 => out.line(paint(DIM, row))?,
            _ => out.line(row)?,
        }
    }
    Ok(())
}
