//! Replays sessions under strategies, and adds up the results.

use std::path::Path;

use infold::models::Prices;
use infold::{Aim, Config, STRATEGIES, Strategy};
use infold_eval::{
    DEFAULT_MODEL, DesignTotals, Measure, ParsedSession, Plot, PlotStrip, RecordedSession, Replay,
    ReplayError, UnfitRequest,
};
use infold_wire::transcript::{Transcript, TranscriptFormat};

use super::tables::ReplayTables;
use super::{EvalArgs, RecallChoice};
use crate::error::CliError;
use crate::fold_options::{FoldOptions, TaskModel};
use crate::input::open_transcript;
use crate::model_access::ModelAccess;
use crate::output::{Output, count, say};
use crate::progress::ProgressLine;

/// Replays sessions under several strategies.
pub fn run(config: &Config, args: &EvalArgs, out: &mut Output) -> Result<(), CliError> {
    let setup = ReplaySetup::new(config, args, out.is_json())?;
    let tables = ReplayTables::new(args, &setup);
    let name = match &args.files[..] {
        [file] => file.file_name().unwrap_or_default().to_string_lossy(),
        files => format!("all {} files", files.len()).into(),
    };
    let mut all = ReplayTotals::new(&name, &setup);
    for file in &args.files {
        let totals = setup.replay_file(file, args.format, out.is_json())?;
        tables.print(&totals, out)?;
        all.add(totals);
    }
    if args.files.len() > 1 {
        tables.print(&all, out)?;
    }
    tables.print_legend(out)?;
    out.finish()?;
    if let Some(path) = &args.svg {
        write_plot(path, &all, &setup)?;
        say(out.is_json(), format!("drawn: {}", path.display()));
    }
    let affected = all.failed + all.unfit;
    if affected == 0 {
        return Ok(());
    }
    let error = format!("not all requests of {} fit", count(affected, "session"));
    Err(CliError::no(error).hint("give a larger --window"))
}

/// The settings for replaying sessions.
pub struct ReplaySetup {
    /// The aim of each strategy.
    pub aims: Vec<Aim>,
    /// The model whose prices are taken.
    pub model: String,
    /// The model's prices, if known.
    pub prices: Option<Prices>,
}

/// The results of the sessions of a file, or of all files.
#[derive(Default)]
pub struct ReplayTotals {
    /// The name of the file.
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
    /// The replays of each strategy, without their points.
    pub replays: Vec<Replay>,
    /// The summaries of `infold` against other designs.
    pub designs: Vec<DesignTotals>,
    /// The summaries of the sessions' own agents against other designs.
    pub agent_designs: Vec<DesignTotals>,
}

impl ReplaySetup {
    /// Returns the setup for the arguments.
    pub fn new(config: &Config, args: &EvalArgs, json: bool) -> Result<ReplaySetup, CliError> {
        if args.window.is_none() && args.model.is_none() {
            return Err(CliError::usage("no window size given")
                .hint("give --window 32k, or --model NAME (`infold models` lists them)"));
        }
        let mut strategies: Vec<Strategy> = Vec::new();
        let given = if args.strategy.is_empty() {
            &STRATEGIES[..]
        } else {
            &args.strategy
        };
        for strategy in given {
            if !strategies.contains(strategy) {
                strategies.push(*strategy);
            }
        }
        let mut aims = Vec::new();
        for strategy in strategies {
            let choice = FoldOptions {
                window: args.window,
                model: args.model.clone(),
                strategy: Some(strategy),
                ..FoldOptions::default()
            };
            let mut aim = choice
                .setup(config, TaskModel::default(), ModelAccess::default(), json)?
                .setup
                .aim;
            aim.summary = args.summary_tokens;
            aim.recall = aim
                .recall
                .filter(|_| args.recall == Some(RecallChoice::Auto));
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
    fn replay_file(
        &self,
        file: &Path,
        format: Option<TranscriptFormat>,
        json: bool,
    ) -> Result<ReplayTotals, CliError> {
        let mut totals = ReplayTotals::new(&file.display().to_string(), self);
        each_session(file, format, json, |session| {
            totals.sessions += 1;
            self.replay_session(&session, &mut totals, json)
        })?;
        Ok(totals)
    }

    /// Replays one session under each strategy.
    fn replay_session(
        &self,
        session: &RecordedSession,
        totals: &mut ReplayTotals,
        json: bool,
    ) -> Result<(), CliError> {
        let which = format!("session {} of {}", totals.sessions, totals.name);
        let warn = |text: String| CliError::no(format!("{which} {text}")).warn(json);
        let parsed = match ParsedSession::of(session) {
            Ok(parsed) => parsed,
            Err(error) => {
                totals.failed += 1;
                warn(format!("is left out: {error}"));
                return Ok(());
            }
        };
        let total = (parsed.len() * self.aims.len()) as u64;
        let mut progress = ProgressLine::new(json, "replaying", total);
        let mut replays = Vec::new();
        for aim in &self.aims {
            let mut on_message = || progress.advance(1);
            replays.push(infold_eval::replay(
                session,
                &parsed,
                aim,
                self.prices,
                &mut on_message,
            )?);
        }
        drop(progress);
        if let Some((unfit, first)) = most_unfit(&replays) {
            let why = format!("before message {}: {}", first.before, first.reason);
            if replays.iter().all(|replay| replay.requests.is_empty()) {
                totals.failed += 1;
                warn(format!("is left out, none of its requests fits; {why}"));
                return Ok(());
            }
            totals.unfit += 1;
            let all = parsed.requests();
            warn(format!(
                "has {unfit} of {all} requests that do not fit; the first {why}"
            ));
        }
        totals.messages += parsed.len() as u64;
        for (aim, replay) in self.aims.iter().zip(&replays) {
            if aim.strategy.name == STRATEGIES[0].name {
                join(
                    &mut totals.designs,
                    infold_eval::compare(session, &parsed, &replay.points),
                );
            }
        }
        if let Some(compared) = infold_eval::compare_agent(session, &parsed) {
            join(&mut totals.agent_designs, compared);
        }
        let folds = replays.iter().flat_map(|replay| &replay.requests);
        totals.short += u64::from(folds.map(|request| request.folds).sum::<u64>() == 0);
        totals.begins.push(totals.requests());
        for (sum, replay) in totals.replays.iter_mut().zip(replays) {
            sum.add(replay);
        }
        Ok(())
    }
}

/// Reads the sessions of a file one by one.
pub fn each_session(
    file: &Path,
    format: Option<TranscriptFormat>,
    json: bool,
    mut handle: impl FnMut(RecordedSession) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let about = |failure: CliError| failure.within(&file.display().to_string());
    let (input, _) = open_transcript(file, json)?;
    let mut transcript = Transcript::open(input, format).map_err(|error| about(error.into()))?;
    let mut sessions = 0;
    while let Some(session) =
        RecordedSession::next(&mut transcript).map_err(|error| about(error.into()))?
    {
        sessions += 1;
        handle(session)?;
    }
    if sessions == 0 {
        let error = format!("no messages in {}", file.display());
        let format = transcript.format();
        let hint = format!("it was read as {format}; --format sets another format");
        return Err(CliError::no(error).hint(hint));
    }
    Ok(())
}

/// Returns the number of unfit requests of the strategy with the most, and the first of those.
fn most_unfit(replays: &[Replay]) -> Option<(usize, &UnfitRequest)> {
    let worst = replays.iter().max_by_key(|replay| replay.unfit.len())?;
    Some((worst.unfit.len(), worst.unfit.first()?))
}

impl From<ReplayError> for CliError {
    fn from(error: ReplayError) -> CliError {
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
            replays: vec![Replay::default(); setup.aims.len()],
            ..ReplayTotals::default()
        }
    }

    /// Returns the number of requests under the first strategy.
    fn requests(&self) -> usize {
        let first = self.replays.first();
        first.map_or(0, |replay| replay.requests.len())
    }

    fn add(&mut self, other: ReplayTotals) {
        let begin = self.requests();
        self.begins.extend(other.begins.iter().map(|at| at + begin));
        self.sessions += other.sessions;
        self.messages += other.messages;
        self.short += other.short;
        self.failed += other.failed;
        self.unfit += other.unfit;
        for (sum, replay) in self.replays.iter_mut().zip(other.replays) {
            sum.add(replay);
        }
        join(&mut self.designs, other.designs);
        join(&mut self.agent_designs, other.agent_designs);
    }
}

fn join(totals: &mut Vec<DesignTotals>, more: Vec<DesignTotals>) {
    for compared in more {
        match totals.iter_mut().find(|sum| sum.design == compared.design) {
            Some(sum) => sum.add(&compared),
            None => totals.push(compared),
        }
    }
}

fn write_plot(path: &Path, totals: &ReplayTotals, setup: &ReplaySetup) -> Result<(), CliError> {
    let strips = setup.aims.iter().zip(&totals.replays).map(|(aim, replay)| {
        let requests = replay.requests.iter();
        let references = replay.scores[Measure::References];
        PlotStrip {
            name: aim.strategy.name.to_owned(),
            requests: requests
                .map(|request| (request.tokens, request.folds > 0))
                .collect(),
            recall: (references.kept, references.wanted),
        }
    });
    let budget = setup.aims[0].budget;
    let plot = Plot {
        title: format!(
            "{}: {}, {}",
            totals.name,
            count(totals.sessions - totals.failed, "session"),
            count(totals.messages, "message")
        ),
        window: budget.window(),
        allow: budget.allow(),
        strips: strips.collect(),
        breaks: totals.begins.iter().skip(1).copied().collect(),
    };
    std::fs::write(path, plot.svg()).map_err(|error| {
        let text = format!("{} cannot be written: {error}", path.display());
        CliError::usage(text).hint("--svg takes a file in an existing directory")
    })
}
