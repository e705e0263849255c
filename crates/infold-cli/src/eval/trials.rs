//! `infold eval --sizes` and `--agent`: every design at every point, in several sizes.

use infold::{Config, STRATEGIES};
use infold_eval::{
    DESIGNS, Design, Estimate, MEASURES, ParsedSession, RecordedSession, SizeLimit, Trials,
};
use serde_json::{Value, json};

use super::EvalArgs;
use super::replays::{ReplaySetup, each_session};
use super::tables::{or_dash, print_table};
use crate::error::CliError;
use crate::output::{DIM, Output, count, number, paint, say};
use crate::progress::ProgressLine;

/// Tries every design where agents condensed, or where `infold` folds, and prints the terms that each keeps.
pub fn run(config: &Config, args: &EvalArgs, out: &mut Output) -> Result<(), CliError> {
    let run = TrialRun::new(config, args, out.is_json())?;
    let mut trials = Trials::default();
    let mut progress = ProgressLine::new(out.is_json(), "measuring", args.files.len() as u64);
    for file in &args.files {
        each_session(file, args.format, out.is_json(), |session| {
            run.try_session(&session, &mut trials)
        })?;
        progress.advance(1);
    }
    drop(progress);
    if trials.points == 0 {
        return Err(no_points(args));
    }
    if out.is_json() {
        print_objects(&trials, out)?;
        return out.finish();
    }
    run.print_heading(&trials, out)?;
    for size in trials.sizes() {
        print_size(&trials, size, out)?;
    }
    out.finish()?;
    for line in [
        "references, words, pairs: of those that are used again later and are not shown, how many in 100 the stand-in holds",
        "mean over points; in brackets, between what bounds 95 of 100 resamples of sessions and points lie",
    ] {
        say(false, paint(DIM, line));
    }
    Ok(())
}

struct TrialRun<'a> {
    args: &'a EvalArgs,
    /// The setup for sessions that no agent condensed.
    setup: Option<ReplaySetup>,
    json: bool,
}

impl TrialRun<'_> {
    fn new<'a>(config: &Config, args: &'a EvalArgs, json: bool) -> Result<TrialRun<'a>, CliError> {
        let is_sized = args.window.is_some() || args.model.is_some();
        let setup = (is_sized && !args.agent)
            .then(|| ReplaySetup::new(config, args, json))
            .transpose()?;
        Ok(TrialRun { args, setup, json })
    }

    /// Tries all stand-ins at the points of one session.
    fn try_session(&self, session: &RecordedSession, trials: &mut Trials) -> Result<(), CliError> {
        let is_condensed = !session.compactions.is_empty();
        if !is_condensed && self.args.agent {
            return Ok(());
        }
        let parsed = match ParsedSession::of(session) {
            Ok(parsed) => parsed,
            Err(error) => {
                CliError::no(format!("a session is left out: {error}")).warn(self.json);
                return Ok(());
            }
        };
        if is_condensed {
            trials.add_agent(session, &parsed, &self.args.sizes);
            return Ok(());
        }
        let Some(setup) = &self.setup else {
            return Err(CliError::usage("no window size given")
                .hint("--window sets it for sessions that their agent did not condense; --agent leaves these out"));
        };
        let aims = setup.aims.iter();
        let ours = aims.filter(|aim| aim.strategy.name == STRATEGIES[0].name);
        for aim in ours {
            let replay = infold_eval::replay(session, &parsed, aim, None, &mut || {})?;
            trials.add_points(session, &parsed, &replay.points, &self.args.sizes);
        }
        Ok(())
    }

    fn print_heading(&self, trials: &Trials, out: &mut Output) -> Result<(), CliError> {
        let folded = (trials.points - trials.agent_points) as u64;
        let points = count(trials.points as u64, "point");
        let sessions = count(trials.sessions as u64, "session");
        let agent = match trials.agent_points {
            0 => String::new(),
            agent => format!(", {agent} where an agent condensed"),
        };
        let ours = match (folded, &self.setup) {
            (0, _) | (_, None) => String::new(),
            (folded, Some(setup)) => format!(
                ", {folded} where `{}` folds a window of {}",
                STRATEGIES[0].name,
                number(setup.aims[0].budget.window())
            ),
        };
        out.line(format!("{points} in {sessions}{agent}{ours}"))
    }
}

fn no_points(args: &EvalArgs) -> CliError {
    if args.agent {
        CliError::no("no agent condensed any of these sessions")
            .hint("leave --agent out and give --sizes and --window")
    } else {
        CliError::no("nothing was folded").hint("give a smaller --window")
    }
}

/// Returns the design that others are compared with at a size.
fn base(size: SizeLimit) -> Design {
    match size {
        SizeLimit::Agent => Design::Agent,
        SizeLimit::Tokens(_) => Design::Extractive,
    }
}

fn print_size(trials: &Trials, size: SizeLimit, out: &mut Output) -> Result<(), CliError> {
    let base = base(size);
    out.line("")?;
    out.line(match size {
        SizeLimit::Tokens(tokens) => format!("At {} tokens", number(tokens)),
        SizeLimit::Agent => "At the agent's size".to_owned(),
    })?;
    let times = match base {
        Design::Extractive => "× extr.".to_owned(),
        base => format!("× {}", base.name()),
    };
    let is_agent = size == SizeLimit::Agent;
    let mut rows: Vec<[String; 8]> = Vec::new();
    for design in DESIGNS {
        let Some(tokens) = mean_tokens(trials, design, size) else {
            continue;
        };
        let mut row = vec![design.name().to_owned(), number(tokens.round() as u64)];
        for measure in MEASURES {
            let mean = trials.mean(design, size, measure).map(in_percent);
            let ratio = trials.ratio(design, base, size, measure);
            // At the agent's size the ratio has bounds, else the mean.
            row.push(or_dash(mean, |mean| with_bounds(mean, 1, !is_agent)));
            row.push(if design == base {
                String::new()
            } else {
                or_dash(ratio, |ratio| with_bounds(ratio, 2, is_agent))
            });
        }
        rows.push(
            row.try_into()
                .expect("two columns and two for each measure"),
        );
    }
    let header = format!("stand-in|tokens|references|{times}|words|{times}|pairs|{times}");
    print_table(&header, rows, &[1, 2, 3, 4, 5, 6], out)
}

fn print_objects(trials: &Trials, out: &mut Output) -> Result<(), CliError> {
    for size in trials.sizes() {
        for design in DESIGNS {
            let Some(tokens) = mean_tokens(trials, design, size) else {
                continue;
            };
            let mut object = json!({
                "table": "sizes",
                "size": size_value(size),
                "stand_in": design.name(),
                "sessions": trials.sessions,
                "points": trials.of(design, size).count(),
                "tokens": tokens,
            });
            for measure in MEASURES {
                let against = |base| bounds(trials.ratio(design, base, size, measure));
                object[measure.name()] = json!({
                    "share": bounds(trials.mean(design, size, measure)),
                    "times_extractive": against(Design::Extractive),
                    "times_agent": (size == SizeLimit::Agent).then(|| against(Design::Agent)),
                });
            }
            out.object(&object)?;
        }
    }
    for trial in &trials.all {
        let mut object = json!({
            "table": "points",
            "session": trial.session + 1,
            "point": trial.point + 1,
            "size": size_value(trial.size),
            "stand_in": trial.design.name(),
            "tokens": trial.tokens,
        });
        for measure in MEASURES {
            let counts = trial.scores[measure];
            object[measure.name()] = json!({"wanted": counts.wanted, "kept": counts.kept});
        }
        out.object(&object)?;
    }
    Ok(())
}

/// Returns the mean tokens of a design at a size; none if it has no stand-in of that size.
fn mean_tokens(trials: &Trials, design: Design, size: SizeLimit) -> Option<f64> {
    let tokens: Vec<u64> = trials.of(design, size).map(|trial| trial.tokens).collect();
    (!tokens.is_empty()).then(|| tokens.iter().sum::<u64>() as f64 / tokens.len() as f64)
}

fn size_value(size: SizeLimit) -> Value {
    match size {
        SizeLimit::Tokens(tokens) => json!(tokens),
        SizeLimit::Agent => json!("agent"),
    }
}

fn bounds(estimate: Option<Estimate>) -> Value {
    estimate.map_or(
        Value::Null,
        |estimate| json!({"mean": estimate.value, "low": estimate.low, "high": estimate.high}),
    )
}

fn in_percent(share: Estimate) -> Estimate {
    Estimate {
        value: share.value * 100.0,
        low: share.low * 100.0,
        high: share.high * 100.0,
    }
}

fn with_bounds(estimate: Estimate, digits: usize, bounds: bool) -> String {
    let Estimate { value, low, high } = estimate;
    if bounds {
        format!("{value:.digits$} ({low:.digits$}–{high:.digits$})")
    } else {
        format!("{value:.digits$}")
    }
}
