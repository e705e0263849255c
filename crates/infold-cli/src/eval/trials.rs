//! `infold eval --sizes` and `--agent`: every stand-in at every point, in several sizes.

use infold::{Config, STRATEGIES};
use infold_eval::{
    DESIGNS, Design, Estimate, MEASURES, ParsedSession, RecordedSession, SizeLimit, Trials,
};
use serde_json::{Value, json};

use super::EvalArgs;
use super::replays::{ReplaySetup, each_session};
use super::tables::lines;
use crate::failure::{Failure, Kind};
use crate::out::{DIM, Out, count, number, paint, say, table};
use crate::progress::Progress;

/// Tries every stand-in where agents condensed, or where `infold` folds, and prints what each keeps.
pub fn run(config: &Config, args: &EvalArgs, out: &mut Out) -> Result<(), Failure> {
    let run = Run::new(config, args, out.is_json())?;
    let mut trials = Trials::default();
    let mut progress = Progress::new(out.is_json(), "measuring", args.files.len() as u64);
    for file in &args.files {
        each_session(file, args.format, out.is_json(), |session| {
            run.session(&session, &mut trials)
        })?;
        progress.advance(1);
    }
    drop(progress);
    if trials.points == 0 {
        return Err(nothing_folded(args));
    }
    if out.is_json() {
        objects(&trials, out)?;
        return out.finish();
    }
    run.heading(&trials, out)?;
    for size in trials.sizes() {
        print(&trials, size, out)?;
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

struct Run<'a> {
    args: &'a EvalArgs,
    /// How sessions are folded that no agent condensed.
    setup: Option<ReplaySetup>,
    json: bool,
}

impl Run<'_> {
    fn new<'a>(config: &Config, args: &'a EvalArgs, json: bool) -> Result<Run<'a>, Failure> {
        let is_sized = args.window.is_some() || args.model.is_some();
        let setup = match is_sized && !args.agent {
            true => Some(ReplaySetup::new(config, args, json)?),
            false => None,
        };
        Ok(Run { args, setup, json })
    }

    /// Tries all stand-ins at the points of one session.
    fn session(&self, session: &RecordedSession, trials: &mut Trials) -> Result<(), Failure> {
        let is_condensed = !session.compactions.is_empty();
        if !is_condensed && self.args.agent {
            return Ok(());
        }
        let parsed = match ParsedSession::of(session) {
            Ok(parsed) => parsed,
            Err(error) => {
                Failure::new(Kind::No, format!("a session is left out: {error}")).warn(self.json);
                return Ok(());
            }
        };
        if is_condensed {
            trials.add_agent(session, &parsed, &self.args.sizes);
            return Ok(());
        }
        let Some(setup) = &self.setup else {
            return Err(Failure::new(Kind::Usage, "how large is the window?")
                .hint("a session that its agent did not condense is folded as --window says; --agent leaves it out"));
        };
        let aims = setup.aims.iter();
        let ours = aims.filter(|aim| aim.strategy.name == STRATEGIES[0].name);
        for aim in ours {
            let replay = infold_eval::replay(session, &parsed, aim, None, &mut || {})?;
            trials.add_points(session, &parsed, &replay.points, &self.args.sizes);
        }
        Ok(())
    }

    fn heading(&self, trials: &Trials, out: &mut Out) -> Result<(), Failure> {
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

fn nothing_folded(args: &EvalArgs) -> Failure {
    match args.agent {
        true => Failure::new(Kind::No, "no agent condensed any of these sessions")
            .hint("leave --agent out and give --sizes and --window"),
        false => Failure::new(Kind::No, "nothing was folded").hint("give a smaller --window"),
    }
}

/// What others are compared with at a size.
fn base(size: SizeLimit) -> Design {
    match size {
        SizeLimit::Agent => Design::Agent,
        SizeLimit::Tokens(_) => Design::Extractive,
    }
}

fn print(trials: &Trials, size: SizeLimit, out: &mut Out) -> Result<(), Failure> {
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
    let mut rows = vec![[
        "stand-in".to_owned(),
        "tokens".to_owned(),
        "references".to_owned(),
        times.clone(),
        "words".to_owned(),
        times.clone(),
        "pairs".to_owned(),
        times,
    ]];
    for design in DESIGNS {
        let Some(tokens) = mean_tokens(trials, design, size) else {
            continue;
        };
        let mut row = vec![design.name().to_owned(), number(tokens.round() as u64)];
        for measure in MEASURES {
            let mean = trials.mean(design, size, measure);
            row.push(match size {
                SizeLimit::Agent => mean.map_or("–".to_owned(), |mean| {
                    format!("{:.1}", mean.value * 100.0)
                }),
                SizeLimit::Tokens(_) => share(mean),
            });
            let ratio = trials.ratio(design, base, size, measure);
            row.push(match size {
                _ if design == base => String::new(),
                SizeLimit::Agent => with_bounds(ratio),
                SizeLimit::Tokens(_) => {
                    ratio.map_or("–".to_owned(), |ratio| format!("{:.2}", ratio.value))
                }
            });
        }
        rows.push(
            row.try_into()
                .expect("two columns and two for each measure"),
        );
    }
    lines(&table(&rows, &[1, 2, 3, 4, 5, 6], out.width()), out)
}

fn objects(trials: &Trials, out: &mut Out) -> Result<(), Failure> {
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

/// The mean tokens of a design at a size; none if it has no stand-in of that size.
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

/// A share in hundredths with its bounds.
fn share(estimate: Option<Estimate>) -> String {
    estimate.map_or("–".to_owned(), |estimate| {
        let [value, low, high] =
            [estimate.value, estimate.low, estimate.high].map(|share| share * 100.0);
        format!("{value:.1} ({low:.1}–{high:.1})")
    })
}

fn with_bounds(estimate: Option<Estimate>) -> String {
    estimate.map_or("–".to_owned(), |estimate| {
        format!(
            "{:.2} ({:.2}–{:.2})",
            estimate.value, estimate.low, estimate.high
        )
    })
}
