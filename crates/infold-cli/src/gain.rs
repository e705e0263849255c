//! `infold gain`: the savings of folding, beside the same requests unfolded.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use infold::Config;
use infold::gain::{Gain, ModelRates, Period, Spending, task_gain};
use infold::search::{parse_end_time, parse_time};
use infold_store::{Contexts, Metadata};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::error::CliResult;
use crate::output::{DIM, Output, count, note, number, one_line, paint};
use crate::progress::ProgressLine;

/// The arguments of `infold gain`.
#[derive(Debug, Args)]
pub struct GainArgs {
    /// Only this task
    #[arg(long)]
    task: Option<String>,
    /// Only requests from then on: a time, a date, or an age such as 30d or 12h
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<u64>,
    /// Only requests up to then; a date is meant to its end
    #[arg(long, value_name = "TIME", value_parser = parse_end_time)]
    until: Option<u64>,
    /// The tables below the total
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "WHAT",
        default_value = "day,agent,model"
    )]
    by: Vec<Grouping>,
}

/// The key by which requests are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Grouping {
    /// Their day, in UTC
    Day,
    /// The agent that made them
    Agent,
    /// Their model
    Model,
    /// Their task
    Task,
}

/// A day in UTC, an agent, a model, a task.
type GainPlace = (jiff::civil::Date, String, String, Uuid);

/// A day, an agent, a model or a task, with its savings.
type NamedGain = (String, Gain);

/// The most rows of a table: the newest days, or those with the most tokens; `--json` has all.
const MAX_SHOWN_ROWS: usize = 14;

/// `infold gain`
pub fn run(contexts: &Contexts, config: &Config, args: &GainArgs, out: &mut Output) -> CliResult {
    let gains = collect(contexts, config, args, out.is_json())?;
    let mut total = Gain::default();
    gains.iter().for_each(|(_, gain)| total += *gain);
    if out.is_json() {
        out.object(&gain_json("total", "", &total))?;
        for by in &args.by {
            for (name, gain) in group(&gains, *by) {
                out.object(&gain_json(by.name(), &name, &gain))?;
            }
        }
        return Ok(());
    }
    if total.requests == 0 {
        note(
            false,
            "no requests yet: `infold serve`, `wrap`, `ask` and `run` record what each one takes",
        );
        return Ok(());
    }
    print_total(&total, &gains, out)?;
    for by in &args.by {
        print_groups(*by, group(&gains, *by), out)?;
    }
    out.finish()?;
    note(
        false,
        "unfolded: the same requests with every message of their conversation, counted as the provider counted what was sent, with all that repeats the request before in its cache",
    );
    Ok(())
}

/// Reads the gains of all tasks that are meant.
fn collect(
    contexts: &Contexts,
    config: &Config,
    args: &GainArgs,
    json: bool,
) -> CliResult<Vec<(GainPlace, Gain)>> {
    let tasks = match &args.task {
        Some(task) => vec![contexts.resolve(task)?],
        None => contexts.tasks()?,
    };
    let period = Period {
        since: args.since,
        until: args.until,
    };
    let mut gains = Vec::new();
    let mut progress = ProgressLine::new(json, "reading", tasks.len() as u64);
    for task in tasks {
        match read_task(contexts, config, task, period) {
            Ok(found) => gains.extend(found),
            // One damaged task does not hide the figures of the others.
            Err(error) => error.about(&task.to_string()[..8]).warn(json),
        }
        progress.advance(1);
    }
    Ok(gains)
}

fn read_task(
    contexts: &Contexts,
    config: &Config,
    task: Uuid,
    period: Period,
) -> CliResult<Vec<(GainPlace, Gain)>> {
    let log = contexts.read(task)?;
    let metadata = Metadata::read(log.dir())?;
    let own_window = metadata
        .context_length
        .or(metadata.in_effect.context_length);
    let facts = |model: &str| {
        let row = config.find(model);
        ModelRates {
            prices: row.and_then(|row| row.prices),
            // A task may be limited to less than its model supports, which is no overflow.
            window: infold::models::window(model, row).max(own_window),
        }
    };
    let agent = metadata.agent.unwrap_or_default();
    let found = task_gain(&log, period, &facts)?.into_iter();
    let found = found.map(|((day, model), gain)| ((day, agent.clone(), model, task), gain));
    Ok(found.collect())
}

/// Sums up the savings of each day, agent, model or task; days are in order, the others by their tokens.
fn group(gains: &[(GainPlace, Gain)], by: Grouping) -> Vec<NamedGain> {
    let mut groups: BTreeMap<String, Gain> = BTreeMap::new();
    for ((day, agent, model, task), gain) in gains {
        let name = match by {
            Grouping::Day => day.to_string(),
            Grouping::Agent => agent.clone(),
            Grouping::Model => model.clone(),
            Grouping::Task => task.to_string(),
        };
        *groups.entry(name).or_default() += *gain;
    }
    let mut rows: Vec<NamedGain> = groups.into_iter().collect();
    if by != Grouping::Day {
        rows.sort_by_key(|(_, gain)| std::cmp::Reverse(gain.sent.tokens));
    }
    rows
}

fn print_total(total: &Gain, gains: &[(GainPlace, Gain)], out: &mut Output) -> CliResult {
    let days = group(gains, Grouping::Day);
    let tasks = group(gains, Grouping::Task).len() as u64;
    let first = days.first().map_or("", |(day, _)| day);
    let last = days.last().map_or("", |(day, _)| day);
    out.line(format!(
        "{} of {}, {first} to {last}",
        count(total.requests, "request"),
        count(tasks, "task"),
    ))?;
    let Gain { sent, unfolded, .. } = total;
    let mut rows = vec![
        [
            "tokens".to_owned(),
            number(sent.tokens),
            number(unfolded.tokens),
            format!(
                "{} ({})",
                signed(total.tokens_saved()),
                percent(total.tokens_saved() as f64, unfolded.tokens as f64)
            ),
        ],
        [
            "in the cache".to_owned(),
            cached_share(sent),
            cached_share(unfolded),
            String::new(),
        ],
    ];
    if total.unpriced < total.requests {
        rows.push([
            "cost".to_owned(),
            dollars(sent.cost),
            dollars(unfolded.cost),
            format!(
                "{} ({})",
                dollars(total.cost_saved()),
                percent(total.cost_saved(), unfolded.cost)
            ),
        ]);
    }
    out.table(["", "sent", "unfolded", "saved"], rows, &[1, 2, 3])?;
    out.line(format!(
        "{} unfolded would not have fit the window of the model",
        count(total.overflows, "request")
    ))?;
    out.line(format!(
        "folds: {} with a summary, {} without, {}",
        number(total.summaries),
        number(total.windows),
        count(total.masks, "stub")
    ))?;
    if total.unpriced > 0 && total.unpriced < total.requests {
        out.line(format!(
            "cost: without {} of unknown price",
            count(total.unpriced, "request")
        ))?;
    }
    Ok(())
}

fn print_groups(by: Grouping, mut groups: Vec<NamedGain>, out: &mut Output) -> CliResult {
    let left_out = groups.len().saturating_sub(MAX_SHOWN_ROWS);
    if by == Grouping::Day {
        groups.drain(..left_out);
    } else {
        groups.truncate(MAX_SHOWN_ROWS);
    }
    out.line("")?;
    let rows = groups.iter().map(|(name, gain)| {
        let name = match by {
            Grouping::Task => name[..8].to_owned(),
            _ if name.is_empty() => "–".to_owned(),
            _ => one_line(name),
        };
        let cost = if gain.unpriced < gain.requests {
            dollars(gain.cost_saved())
        } else {
            "–".to_owned()
        };
        [
            name,
            number(gain.requests),
            number(gain.sent.tokens),
            number(gain.unfolded.tokens),
            percent(gain.tokens_saved() as f64, gain.unfolded.tokens as f64),
            cost,
            cached_share(&gain.sent),
            number(gain.summaries + gain.windows + gain.masks),
            number(gain.overflows),
        ]
    });
    let head = [
        by.name(),
        "requests",
        "sent",
        "unfolded",
        "saved",
        "$ saved",
        "cached",
        "folds",
        "too long",
    ];
    out.table(head, rows, &[1, 2, 3, 4, 5, 6, 7, 8])?;
    if left_out > 0 {
        out.line(paint(DIM, format!("and {left_out} more; --json has all")))?;
    }
    Ok(())
}

impl Grouping {
    fn name(self) -> &'static str {
        match self {
            Grouping::Day => "day",
            Grouping::Agent => "agent",
            Grouping::Model => "model",
            Grouping::Task => "task",
        }
    }
}

fn gain_json(by: &str, name: &str, gain: &Gain) -> Value {
    let spending = |spent: &Spending| json!({"tokens": spent.tokens, "cached": spent.cached, "cost": spent.cost});
    json!({
        "by": by,
        "name": name,
        "requests": gain.requests,
        "sent": spending(&gain.sent),
        "unfolded": spending(&gain.unfolded),
        "tokens_saved": gain.tokens_saved(),
        "cost_saved": gain.cost_saved(),
        "overflows": gain.overflows,
        "unpriced": gain.unpriced,
        "summaries": gain.summaries,
        "windows": gain.windows,
        "masks": gain.masks,
    })
}

fn cached_share(spent: &Spending) -> String {
    percent(spent.cached as f64, spent.tokens as f64)
}

fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 {
        format!("{:.0} %", part * 100.0 / whole)
    } else {
        "–".to_owned()
    }
}

fn signed(tokens: i64) -> String {
    let sign = if tokens < 0 { "−" } else { "" };
    format!("{sign}{}", number(tokens.unsigned_abs()))
}

fn dollars(amount: f64) -> String {
    let sign = if amount < 0.0 { "−" } else { "" };
    format!("{sign}${:.2}", amount.abs())
}
