//! Prints the results of replays as tables or JSON objects.

use std::cmp::Reverse;
use std::collections::HashMap;

use infold::STRATEGIES;
use infold_eval::{Counts, Design, DesignTotals, LostReference, MEASURES, Measure, Needs, Replay};
use serde_json::{Value, json};

use super::EvalArgs;
use super::replays::{ReplaySetup, ReplayTotals};
use crate::error::CliError;
use crate::output::{DIM, Output, count, format_table, number, one_line, paint, say};

/// The explanations of the figures, printed below the tables.
const LEGEND: [&str; 5] = [
    "cached: what repeats the start of the request before, byte for byte",
    "recall: of the references that user and assistant make to what was folded away, those still in view",
    "reachable: those that are found by reading folded messages back",
    "passes: requests before which something was folded; prefix breaks: those that do not repeat all of the one before",
    "lost: used again, folded away and in no stand-in, for 100 requests",
];

/// Prints the tables of an evaluation.
pub struct ReplayTables<'a> {
    args: &'a EvalArgs,
    setup: &'a ReplaySetup,
}

impl<'a> ReplayTables<'a> {
    pub fn new(args: &'a EvalArgs, setup: &'a ReplaySetup) -> ReplayTables<'a> {
        ReplayTables { args, setup }
    }

    /// Prints the tables of a file, or of all.
    pub fn print(&self, totals: &ReplayTotals, out: &mut Output) -> Result<(), CliError> {
        if out.is_json() {
            self.print_strategy_objects(totals, out)?;
            return self.print_stand_in_objects(totals, out);
        }
        let replayed = totals.sessions - totals.failed;
        let (sessions, messages) = (
            count(replayed, "session"),
            count(totals.messages, "message"),
        );
        out.line(format!(
            "{}: {sessions}, {messages}",
            one_line(&totals.name)
        ))?;
        if replayed == 0 {
            return out.line("");
        }
        match (totals.short, replayed) {
            (0, _) => {}
            (1, 1) => out.line("It never fills the window: nothing was folded.")?,
            (short, _) => out.line(format!(
                "{short} of them never fill the window: nothing was folded there."
            ))?,
        }
        self.print_strategies(totals, out)?;
        self.print_passes(totals, out)?;
        if self.args.recall.is_some() {
            self.print_needs(totals, out)?;
        }
        let by = STRATEGIES[0].name;
        let heading = format!("Summaries of `{by}` against others of the same size in their place");
        print_designs(&heading, &totals.designs, out)?;
        let heading = "Summaries that the agent wrote itself against others of the same size";
        print_designs(heading, &totals.agent_designs, out)?;
        if let Some(most) = self.args.lost {
            print_lost(&totals.designs, most, out)?;
        }
        out.line("")
    }

    fn print_strategies(&self, totals: &ReplayTotals, out: &mut Output) -> Result<(), CliError> {
        let mut rows = Vec::new();
        for (aim, replay) in self.setup.aims.iter().zip(&totals.replays) {
            let total = RequestTotals::of(replay);
            let references = replay.scores[Measure::References];
            let Counts { wanted, kept } = references;
            let requests = number(total.requests);
            rows.push([
                aim.strategy.name.to_owned(),
                match replay.unfit.len() as u64 {
                    0 => requests,
                    unfit => format!("{requests} of {}", number(total.requests + unfit)),
                },
                number(total.tokens),
                percent(ratio(total.cached, total.tokens)),
                number(total.folds),
                or_dash(self.setup.prices, |_| dollars(total.cost)),
                or_dash(references.share(), |share| {
                    format!("{share:.3} ({kept} of {wanted})")
                }),
                percent(ratio(replay.reached, wanted)),
            ]);
        }
        let header = "strategy|requests|tokens sent|cached|folds|cost|recall|reachable";
        print_table(header, rows, &[1, 2, 3, 4, 5, 6], out)
    }

    /// Prints the number of folds of each strategy, and its losses.
    fn print_passes(&self, totals: &ReplayTotals, out: &mut Output) -> Result<(), CliError> {
        let mut rows = Vec::new();
        for (aim, replay) in self.setup.aims.iter().zip(&totals.replays) {
            let total = RequestTotals::of(replay);
            if total.passes > 0 {
                let lost = |measure: Measure| {
                    let lost = lost_per_100(replay.scores[measure], total.requests);
                    or_dash(lost, |lost| format!("{lost:.1}"))
                };
                rows.push([
                    aim.strategy.name.to_owned(),
                    number(total.passes),
                    percent(total.share_after_fold(aim.budget.window())),
                    number(total.breaks),
                    lost(Measure::References),
                    lost(Measure::Words),
                ]);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        out.line("")?;
        let header = "strategy|passes|window used after|prefix breaks|lost references|lost words";
        print_table(header, rows, &[1, 2, 3, 4], out)
    }

    /// Prints the prices, and the meaning of the figures.
    pub fn print_legend(&self, out: &mut Output) -> Result<(), CliError> {
        if out.is_json() {
            return Ok(());
        }
        let model = &self.setup.model;
        out.line(match self.setup.prices {
            Some(prices) => format!(
                "Cost at the prices of {model}: ${} a million tokens, ${} cached, ${} written to the cache, ${} for output",
                prices.input, prices.cached, prices.write, prices.output
            ),
            None => format!("Cost: the prices of {model} are not known"),
        })?;
        out.finish()?;
        LEGEND.iter().for_each(|line| say(false, paint(DIM, line)));
        Ok(())
    }

    fn print_strategy_objects(
        &self,
        totals: &ReplayTotals,
        out: &mut Output,
    ) -> Result<(), CliError> {
        for (aim, replay) in self.setup.aims.iter().zip(&totals.replays) {
            let total = RequestTotals::of(replay);
            let references = replay.scores[Measure::References];
            let words = replay.scores[Measure::Words];
            let window = aim.budget.window();
            let mut object = json!({
                "table": "strategies",
                "file": totals.name,
                "strategy": aim.strategy.name,
                "window": window,
                "sessions": totals.sessions - totals.failed,
                "left_out": totals.failed,
                "never_full": totals.short,
                "messages": totals.messages,
                "requests": total.requests,
                "unfit": replay.unfit.len(),
                "tokens": total.tokens,
                "cached_tokens": total.cached,
                "bytes": total.bytes,
                "cached_bytes": total.cached_bytes,
                "output_tokens": total.output,
                "unfolded_tokens": total.unfolded,
                "folds": total.folds,
                "model": self.setup.model,
                "cost": self.setup.prices.map(|_| total.cost),
                "wanted": references.wanted,
                "kept": references.kept,
                "recall": references.share(),
                "reached": replay.reached,
                "recalled_excerpts": replay.recalled_excerpts,
                "recalled_tokens": replay.recalled_tokens,
                "reachable": ratio(replay.reached, references.wanted),
                "passes": total.passes,
                "window_share_after_fold": total.share_after_fold(window),
                "prefix_breaks": total.breaks,
                "lost_references_per_100_requests": lost_per_100(references, total.requests),
                "lost_words_per_100_requests": lost_per_100(words, total.requests),
            });
            add_scores(&mut object, |measure| replay.scores[measure]);
            for (name, needs) in replay_needs(replay) {
                object[name] = json!({"wanted": needs.wanted, "in_view": needs.in_view, "recalled": needs.recalled, "lost": needs.lost()});
            }
            out.object(&object)?;
        }
        Ok(())
    }

    /// Prints the needed references and their places, if a recall option was given.
    fn print_needs(&self, totals: &ReplayTotals, out: &mut Output) -> Result<(), CliError> {
        let mut rows = Vec::new();
        for (aim, replay) in self.setup.aims.iter().zip(&totals.replays) {
            let lost = replay_needs(replay).map(|(_, needs)| {
                let without = needs.wanted - needs.in_view;
                format!(
                    "{} → {} of {}",
                    number(without),
                    number(needs.lost()),
                    number(needs.wanted)
                )
            });
            let [used, content, documents] = lost;
            rows.push([
                aim.strategy.name.to_owned(),
                number(replay.recalled_excerpts),
                number(replay.recalled_tokens),
                content,
                documents,
                used,
            ]);
        }
        out.line("")?;
        let header =
            "strategy|excerpts|tokens|content not in view|of documents|references not in view";
        print_table(header, rows, &[1, 2, 3, 4, 5], out)
    }

    fn print_stand_in_objects(
        &self,
        totals: &ReplayTotals,
        out: &mut Output,
    ) -> Result<(), CliError> {
        for (of, designs) in [
            ("infold", &totals.designs),
            ("agent", &totals.agent_designs),
        ] {
            for one in designs.iter().filter(|one| one.folds > 0) {
                let lost = most_lost(&one.lost, self.args.lost.unwrap_or(0)).into_iter().map(
                    |lost| json!({"reference": lost.reference, "times": lost.times, "last_in": lost.from, "messages": lost.occurs}),
                );
                let references = one.scores[Measure::References];
                let mut object = json!({
                    "table": "stand-ins",
                    "file": totals.name,
                    "summaries_of": of,
                    "stand_in": one.design.name(),
                    "folds": one.folds,
                    "tokens": one.tokens,
                    "wanted": references.wanted,
                    "kept": references.kept,
                    "recall": references.share(),
                    "kept_per_1000_tokens": one.density(),
                    "extractive_times": extractive_ratio(designs, one),
                    "lost": lost.collect::<Vec<Value>>(),
                });
                add_scores(&mut object, |measure| one.scores[measure]);
                out.object(&object)?;
            }
        }
        Ok(())
    }
}

fn print_designs(
    heading: &str,
    designs: &[DesignTotals],
    out: &mut Output,
) -> Result<(), CliError> {
    if designs.iter().all(|one| one.folds == 0) {
        return Ok(());
    }
    out.line("")?;
    out.line(heading)?;
    let rows = designs.iter().map(|one| {
        let recall =
            |measure: Measure| or_dash(one.scores[measure].share(), |share| format!("{share:.3}"));
        let times = match extractive_ratio(designs, one) {
            _ if one.design == Design::Extractive => String::new(),
            times => or_dash(times, |times| format!("× {times:.1}")),
        };
        [
            one.design.name().to_owned(),
            number(one.folds),
            number(one.tokens),
            number(one.scores[Measure::References].wanted),
            number(one.scores[Measure::References].kept),
            recall(Measure::References),
            recall(Measure::Words),
            recall(Measure::Pairs),
            or_dash(one.density(), |density| format!("{density:.1}")),
            times,
        ]
    });
    let header = "stand-in|folds|tokens|wanted|kept|recall|words|pairs|per 1,000|extractive";
    print_table(header, rows.collect(), &[1, 2, 3, 4, 5, 6, 7, 8], out)
}

fn print_lost(designs: &[DesignTotals], most: usize, out: &mut Output) -> Result<(), CliError> {
    // The extractive summaries come first.
    let lost = designs
        .first()
        .map_or(Vec::new(), |ours| most_lost(&ours.lost, most));
    if lost.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line("What the summaries lost most often")?;
    let rows = lost.into_iter().map(|lost| {
        let reference = one_line(&lost.reference);
        [
            number(lost.times),
            number(lost.occurs),
            lost.from.to_owned(),
            reference,
        ]
    });
    print_table(
        "times|in messages|last in|reference",
        rows.collect(),
        &[0, 1],
        out,
    )
}

/// Sums over the requests of a replay.
#[derive(Default)]
struct RequestTotals {
    requests: u64,
    tokens: u64,
    cached: u64,
    bytes: u64,
    cached_bytes: u64,
    output: u64,
    unfolded: u64,
    folds: u64,
    /// Requests before which something was folded.
    passes: u64,
    /// The tokens of those requests.
    after_folds: u64,
    /// Requests that do not repeat all of the one before.
    breaks: u64,
    cost: f64,
}

impl RequestTotals {
    fn of(replay: &Replay) -> RequestTotals {
        let mut total = RequestTotals::default();
        for request in &replay.requests {
            total.requests += 1;
            total.tokens += request.tokens;
            total.cached += request.cached;
            total.bytes += request.bytes;
            total.cached_bytes += request.cached_bytes;
            total.output += request.output;
            total.unfolded += request.unfolded;
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

    /// Returns the mean share of the window that is used after a fold.
    fn share_after_fold(&self, window: u64) -> Option<f64> {
        ratio(self.after_folds, window * self.passes)
    }
}

/// Returns how many times as much the extractive summary keeps for each token.
fn extractive_ratio(all: &[DesignTotals], one: &DesignTotals) -> Option<f64> {
    let ours = all.iter().find(|one| one.design == Design::Extractive)?;
    let (ours, other) = (ours.density()?, one.density()?);
    (other > 0.0).then(|| ours / other)
}

/// Returns the references that were lost most often, each once.
fn most_lost(lost: &[LostReference], most: usize) -> Vec<LostReference> {
    let mut sums: HashMap<&str, LostReference> = HashMap::new();
    for lost in lost {
        let none = || LostReference {
            times: 0,
            ..lost.clone()
        };
        let sum = sums.entry(&lost.reference).or_insert_with(none);
        sum.times += lost.times;
        sum.occurs = sum.occurs.max(lost.occurs);
    }
    let mut all: Vec<LostReference> = sums.into_values().collect();
    all.sort_by_cached_key(|lost| (Reverse((lost.times, lost.occurs)), lost.reference.clone()));
    all.truncate(most);
    all
}

/// Returns the references needed in a replay, by their names in JSON objects.
fn replay_needs(replay: &Replay) -> [(&'static str, Needs); 3] {
    [
        ("used_again", replay.used_again),
        ("content", replay.content),
        ("documents", replay.documents),
    ]
}

/// Adds the wanted and kept terms of each measure to an object.
fn add_scores(object: &mut Value, counts: impl Fn(Measure) -> Counts) {
    for measure in MEASURES {
        let counts = counts(measure);
        object[measure.name()] =
            json!({"wanted": counts.wanted, "kept": counts.kept, "share": counts.share()});
    }
}

/// Writes an amount in dollars: to the cent, a small one to a hundredth of that.
fn dollars(amount: f64) -> String {
    if amount < 0.1 {
        format!("${amount:.4}")
    } else {
        format!("${amount:.2}")
    }
}

fn ratio(some: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

fn lost_per_100(counts: Counts, requests: u64) -> Option<f64> {
    ratio(counts.lost() * 100, requests)
}

fn percent(share: Option<f64>) -> String {
    or_dash(share, |share| format!("{:.1} %", share * 100.0))
}

/// Formats a value, or writes a dash if there is none.
pub fn or_dash<T>(value: Option<T>, format: impl Fn(T) -> String) -> String {
    value.map_or("–".to_owned(), format)
}

/// Prints rows under a header whose columns are separated by `|`.
pub fn print_table<const N: usize>(
    header: &str,
    mut rows: Vec<[String; N]>,
    right: &[usize],
    out: &mut Output,
) -> Result<(), CliError> {
    let mut names = header.split('|').map(str::to_owned);
    rows.insert(0, std::array::from_fn(|_| names.next().unwrap_or_default()));
    let mut lines = format_table(&rows, right, out.width()).into_iter();
    if let Some(header) = lines.next() {
        out.line(paint(DIM, header))?;
    }
    lines.try_for_each(|line| out.line(line))
}
