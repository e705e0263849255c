//! Replays sessions under strategies, and adds up what came of them.

use std::path::Path;

use infold::models::Prices;
use infold::{Aim, Config, STRATEGIES, Strategy};
use infold_eval::{
    DEFAULT_MODEL, DesignTotals, Measure, ParsedSession, Plot, PlotStrip, RecordedSession, Replay,
    ReplayError, UnfitRequest,
};
use infold_wire::transcript::{Format, Transcript};

use super::EvalArgs;
use super::tables::ReplayTables;
use crate::failure::{Failure, Kind};
use crate::fold::opened;
use crate::out::{Out, count, say};
use crate::pen::Reach;
use crate::progress::Progress;
use crate::settings::{Choice, Known};

/// Replays sessions under several strategies.
pub fn run(config: &Config, args: &EvalArgs, out: &mut Out) -> Result<(), Failure> {
    let setup = ReplaySetup::new(config, args, out.is_json())?;
    let tables = ReplayTables::new(args, &setup, out.width());
    let name = match &args.files[..] {
        [file] => file.file_name().unwrap_or_default().to_string_lossy(),
        files => format!("all {} files", files.len()).into(),
    };
    let mut all = ReplayTotals::new(&name, &setup);
    for file in &args.files {
        let sums = setup.file(file, args.format, out.is_json())?;
        tables.print(&sums, out)?;
        all.add(sums);
    }
    if args.files.len() > 1 {
        tables.print(&all, out)?;
    }
    tables.legend(out)?;
    out.finish()?;
    if let Some(path) = &args.svg {
        draw(path, &all, &setup)?;
        say(out.is_json(), format!("drawn: {}", path.display()));
    }
    match all.failed + all.unfit {
        0 => Ok(()),
        troubled => {
            let error = format!("not all requests of {} fit", count(troubled, "session"));
            Err(Failure::new(Kind::No, error).hint("give a larger --window"))
        }
    }
}

/// What is replayed, and how.
pub struct ReplaySetup {
    /// What to aim at with each strategy.
    pub aims: Vec<Aim>,
    /// Whose prices are taken.
    pub model: String,
    /// What they are, if they are known.
    pub prices: Option<Prices>,
}

/// What came of the sessions of a file, or of all.
pub struct ReplayTotals {
    /// Whose.
    pub name: String,
    pub sessions: u64,
    pub messages: u64,
    /// Sessions in which nothing was folded.
    pub short: u64,
    /// Sessions that could not be replayed.
    pub failed: u64,
    /// Sessions with requests that did not fit.
    pub unfit: u64,
    /// The requests at which sessions begin.
    pub begins: Vec<usize>,
    /// For each strategy, what it came to; points are not kept.
    pub replays: Vec<Replay>,
    /// The summaries of `infold` against others.
    pub compared: Vec<DesignTotals>,
    /// Those that the sessions' own agents wrote against others.
    pub agent: Vec<DesignTotals>,
}

impl ReplaySetup {
    /// Returns how the arguments say that sessions are replayed.
    pub fn new(config: &Config, args: &EvalArgs, json: bool) -> Result<ReplaySetup, Failure> {
        if args.window.is_none() && args.model.is_none() {
            return Err(Failure::new(Kind::Usage, "how large is the window?")
                .hint("say --window 32k, or --model NAME (`infold models` lists them)"));
        }
        let mut strategies: Vec<Strategy> = Vec::new();
        let asked = match args.strategy.is_empty() {
            true => &STRATEGIES[..],
            false => &args.strategy,
        };
        for strategy in asked {
            if !strategies.contains(strategy) {
                strategies.push(*strategy);
            }
        }
        let mut aims = Vec::new();
        for strategy in strategies {
            let choice = Choice {
                window: args.window,
                model: args.model.clone(),
                strategy: Some(strategy),
                ..Choice::default()
            };
            let mut aim = choice
                .chosen(config, Known::default(), Reach::default(), json)?
                .setup
                .aim;
            aim.summary = args.summary_tokens;
            aims.push(aim);
        }
        let model = args.model.clone().unwrap_or(DEFAULT_MODEL.to_owned());
        let prices = config.find(&model).and_then(|model| model.prices);
        Ok(ReplaySetup {
            aims,
            model,
            prices,
        })
    }

    /// Replays the sessions of a file.
    fn file(
        &self,
        file: &Path,
        format: Option<Format>,
        json: bool,
    ) -> Result<ReplayTotals, Failure> {
        let mut sums = ReplayTotals::new(&file.display().to_string(), self);
        each_session(file, format, json, |session| {
            sums.sessions += 1;
            self.session(&session, &mut sums, json)
        })?;
        Ok(sums)
    }

    /// Replays one session under each strategy.
    fn session(
        &self,
        session: &RecordedSession,
        sums: &mut ReplayTotals,
        json: bool,
    ) -> Result<(), Failure> {
        let which = format!("session {} of {}", sums.sessions, sums.name);
        let warn = |text: String| Failure::new(Kind::No, format!("{which} {text}")).warn(json);
        let parsed = match ParsedSession::of(session) {
            Ok(parsed) => parsed,
            Err(error) => {
                sums.failed += 1;
                warn(format!("is left out: {error}"));
                return Ok(());
            }
        };
        let total = (parsed.len() * self.aims.len()) as u64;
        let mut progress = Progress::new(json, "replaying", total);
        let mut replays = Vec::new();
        for aim in &self.aims {
            let mut watch = || progress.advance(1);
            replays.push(infold_eval::replay(
                session,
                &parsed,
                aim,
                self.prices,
                &mut watch,
            )?);
        }
        drop(progress);
        if let Some((unfit, first)) = worst(&replays) {
            let why = format!("before message {}: {}", first.before, first.reason);
            if replays.iter().all(|replay| replay.requests.is_empty()) {
                sums.failed += 1;
                warn(format!("is left out, none of its requests fits; {why}"));
                return Ok(());
            }
            sums.unfit += 1;
            let all = parsed.requests();
            warn(format!(
                "has {unfit} of {all} requests that do not fit; the first {why}"
            ));
        }
        sums.messages += parsed.len() as u64;
        for (aim, replay) in self.aims.iter().zip(&replays) {
            if aim.strategy.name == STRATEGIES[0].name {
                join(
                    &mut sums.compared,
                    infold_eval::compare(session, &parsed, &replay.points),
                );
            }
        }
        if let Some(compared) = infold_eval::compare_agent(session, &parsed) {
            join(&mut sums.agent, compared);
        }
        let folds = replays.iter().flat_map(|replay| &replay.requests);
        sums.short += u64::from(folds.map(|request| request.folds).sum::<u64>() == 0);
        let begin = sums
            .replays
            .first()
            .map_or(0, |replay| replay.requests.len());
        sums.begins.push(begin);
        for (sum, replay) in sums.replays.iter_mut().zip(replays) {
            sum.add(replay);
        }
        Ok(())
    }
}

/// Reads the sessions of a file one by one.
pub fn each_session(
    file: &Path,
    format: Option<Format>,
    json: bool,
    mut take: impl FnMut(RecordedSession) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let about = |failure: Failure| failure.within(&file.display().to_string());
    let (input, _) = opened(file, json)?;
    let mut transcript = Transcript::open(input, format).map_err(|error| about(error.into()))?;
    let mut sessions = 0;
    while let Some(session) =
        RecordedSession::next(&mut transcript).map_err(|error| about(error.into()))?
    {
        sessions += 1;
        take(session)?;
    }
    if sessions == 0 {
        let error = format!("there are no messages in {}", file.display());
        let hint = format!(
            "it was read as {}; --format says otherwise",
            transcript.format()
        );
        return Err(Failure::new(Kind::No, error).hint(hint));
    }
    Ok(())
}

/// How many requests did not fit under the strategy with most of them, and the first of those.
fn worst(replays: &[Replay]) -> Option<(usize, &UnfitRequest)> {
    let worst = replays.iter().max_by_key(|replay| replay.unfit.len())?;
    Some((worst.unfit.len(), worst.unfit.first()?))
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        match error {
            ReplayError::Scratch(error) => error.into(),
            ReplayError::Step(error) => error.into(),
            ReplayError::Log(error) => error.into(),
        }
    }
}

impl ReplayTotals {
    fn new(name: &str, setup: &ReplaySetup) -> ReplayTotals {
        ReplayTotals {
            name: name.to_owned(),
            sessions: 0,
            messages: 0,
            short: 0,
            failed: 0,
            unfit: 0,
            begins: Vec::new(),
            replays: vec![Replay::default(); setup.aims.len()],
            compared: Vec::new(),
            agent: Vec::new(),
        }
    }

    fn add(&mut self, other: ReplayTotals) {
        let begin = self
            .replays
            .first()
            .map_or(0, |replay| replay.requests.len());
        self.begins.extend(other.begins.iter().map(|at| at + begin));
        self.sessions += other.sessions;
        self.messages += other.messages;
        self.short += other.short;
        self.failed += other.failed;
        self.unfit += other.unfit;
        for (sum, replay) in self.replays.iter_mut().zip(other.replays) {
            sum.add(replay);
        }
        join(&mut self.compared, other.compared);
        join(&mut self.agent, other.agent);
    }
}

fn join(sums: &mut Vec<DesignTotals>, more: Vec<DesignTotals>) {
    for compared in more {
        match sums.iter_mut().find(|sum| sum.design == compared.design) {
            Some(sum) => sum.add(&compared),
            None => sums.push(compared),
        }
    }
}

fn draw(path: &Path, sums: &ReplayTotals, setup: &ReplaySetup) -> Result<(), Failure> {
    let lines = setup.aims.iter().zip(&sums.replays).map(|(aim, replay)| {
        let requests = replay.requests.iter();
        PlotStrip {
            name: aim.strategy.name.to_owned(),
            requests: requests
                .map(|request| (request.tokens, request.folds > 0))
                .collect(),
            recall: {
                let counts = replay.scores[Measure::References];
                (counts.kept, counts.wanted)
            },
        }
    });
    let budget = setup.aims[0].budget;
    let plot = Plot {
        title: format!(
            "{}: {}, {}",
            sums.name,
            count(sums.sessions - sums.failed, "session"),
            count(sums.messages, "message")
        ),
        window: budget.window(),
        allow: budget.allow(),
        lines: lines.collect(),
        breaks: sums.begins.iter().skip(1).copied().collect(),
    };
    std::fs::write(path, plot.svg()).map_err(|error| {
        let text = format!("{} cannot be written: {error}", path.display());
        Failure::new(Kind::Usage, text).hint("give a file in a directory that is there to --svg")
    })
}
