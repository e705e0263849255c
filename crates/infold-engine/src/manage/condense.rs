//! The condense step of a pass: gets a summary, checks it, and folds the messages that it covers.

use infold_log::plan::{self, FloorSize, Keep};
use infold_log::steer::Cover;
use infold_log::{Cause, Role, Seq, Source, Span, View, steer};
use infold_store::{Log, LogError, Usage, Working, WorkingFile, Writer, stand_in_tokens};
use infold_wire::stand_in::summary_heading;
use infold_wire::{Message, TypedTextFilter, append_words};

use super::fold_source::FoldSource;
use super::{Aim, Executor, ManageError, Pass, PassStart};
use crate::claims::{CheckedSummary, ClaimChecker, append_typed_text};
use crate::extract::SummaryForm;
use crate::strategy::{KeepPolicy, StandIn};
use crate::summarizer::{Extractive, Summarizer, SummarizerError, SummaryRequest};
use crate::{PassAction, PassStep};

/// Shorter summaries are not useful.
const MIN_SUMMARY_TOKENS: u64 = 96;

/// The messages that are shown instead of the folded ones.
type StandInText = Vec<(Role, String)>;

impl Pass<'_> {
    /// Folds everything between the floor and the tail behind a summary.
    pub(super) fn condense(
        &mut self,
        executor: &mut Executor<'_>,
        summarizer: &mut dyn Summarizer,
    ) -> Result<(), ManageError> {
        if !self.aim.strategy.condenses {
            return Ok(());
        }
        let Some((cover, tail)) = self.choose_cover(executor)? else {
            return Ok(());
        };
        let draft = self.draft(executor, cover, tail, summarizer);
        // Usage is recorded even without a summary.
        for usage in std::mem::take(&mut self.spent) {
            executor.usage(usage)?;
        }
        let Some(draft) = draft? else {
            return Ok(());
        };
        let fold = executor.fold(Cause::Summary, &cover, self.aim.trigger, draft.stand_in)?;
        let (before, after) = self.measured(executor, PassAction::Condensed)?;
        self.outcome.steps.push(PassStep {
            action: PassAction::Condensed,
            folds: fold.into_iter().collect(),
            hidden: cover.messages,
            span: cover.span,
            before,
            after,
            summarizer: Some(draft.summarizer),
        });
        Ok(())
    }

    /// Gets a summary; `None` if none is smaller than the messages that it replaces.
    fn draft(
        &mut self,
        executor: &Executor<'_>,
        cover: Cover,
        tail: Seq,
        summarizer: &mut dyn Summarizer,
    ) -> Result<Option<Draft>, ManageError> {
        let folded = FoldSource::read(executor, cover)?;
        let budget = self.summary_budget(executor, &folded)?;
        let _kept = match executor {
            Executor::Writes(writer) => Some(write_kept(writer.log(), tail)?),
            Executor::Simulates { .. } => None,
        };
        let written = self.write_summary(executor, &folded, budget, summarizer)?;
        Ok(written.map(|(summarizer, stand_in)| Draft {
            cover,
            summarizer,
            leaves: folded.leaves,
            enters: stand_in_tokens(&stand_in),
            stand_in,
            cost: self.outcome.cost,
            errors: self.outcome.errors.clone(),
            dropped: self.outcome.dropped.clone(),
        }))
    }

    /// Chooses the messages to fold, and the beginning of the tail.
    fn choose_cover(&self, executor: &Executor<'_>) -> Result<Option<(Cover, Seq)>, ManageError> {
        let (aim, scale) = (self.aim, self.scale);
        let floor = FloorSize::of(executor.state(), executor.log())?;
        let fixed = scale.size(floor.total()).tokens;
        let window = self.limit_by_bytes(self.budget.room());
        let room = |limit: u64| {
            let left = self
                .limit_by_bytes(limit)
                .saturating_sub(fixed + window / 16);
            scale.counted(left) + floor.last.tokens
        };
        let (keep, room) = match aim.strategy.keeps {
            KeepPolicy::Messages(_) => (Keep::Messages(aim.keep), room(aim.budget.allow())),
            KeepPolicy::Share(share) => (Keep::Share(share), room(aim.budget.allow())),
            KeepPolicy::Window(share) => {
                let most = scale.counted((window as f64 * share) as u64);
                (
                    Keep::Tokens(most, aim.keep),
                    room(self.outcome.target.tokens),
                )
            }
        };
        let Some(tail) = plan::tail(executor.state(), keep, room, executor.log())? else {
            return Ok(None);
        };
        let cover = plan::before_tail(executor.state(), tail, executor.log())?;
        let cover = cover.filter(|cover| self.forced || cover.messages >= aim.strategy.least);
        Ok(cover.map(|cover| (cover, tail)))
    }

    /// Returns how many tokens, as counted, the summary may have.
    fn summary_budget(
        &self,
        executor: &Executor<'_>,
        folded: &FoldSource,
    ) -> Result<u64, LogError> {
        if let Some(asked) = self.aim.summary {
            return Ok(asked);
        }
        let heading = [(Role::User, self.heading(folded))];
        let rest = view_without(executor, &folded.cover)? + stand_in_tokens(&heading);
        let target = self.limit_by_bytes(self.outcome.target.tokens);
        let rest = self.scale.part(rest) + self.aim.frame.tokens;
        let window = self.limit_by_bytes(self.budget.room());
        // If the last round exceeds the target, further rounds follow soon: until then a summary may exceed it, too.
        let least = self
            .limit_by_bytes(self.aim.budget.allow())
            .saturating_sub(rest);
        let least = least.min(self.least_summary()).max(window / 16);
        let most = self.scale.counted(target.saturating_sub(rest).max(least));
        // The log has the messages behind earlier summaries, so a summary may grow again.
        let share = (folded.original as f64 * self.aim.ratio.clamp(0.05, 0.9)) as u64;
        let longest = self
            .scale
            .counted((window as f64 * self.aim.strategy.summary_share) as u64);
        Ok(most
            .min(share)
            .clamp(MIN_SUMMARY_TOKENS, longest.max(MIN_SUMMARY_TOKENS)))
    }

    /// Has the summary written and checked; the built-in summarizer is the fallback.
    fn write_summary(
        &mut self,
        executor: &Executor<'_>,
        folded: &FoldSource,
        budget: u64,
        summarizer: &mut dyn Summarizer,
    ) -> Result<Option<(String, StandInText)>, ManageError> {
        if summarizer.name() != Extractive.name() {
            let asked = self.ask_summarizer(executor, folded, budget, summarizer);
            // Named after the call: a model that the provider lacks is replaced by another one.
            let name = summarizer.name();
            match asked {
                Ok(stand_in) => return Ok(Some((name, stand_in))),
                Err(SummarizerError::Log(error)) => return Err(error.into()),
                Err(SummarizerError::Cancelled) => return Err(ManageError::Cancelled),
                Err(error) => {
                    self.outcome.inflated |= matches!(error, SummarizerError::Larger { .. });
                    let error = format!("the summarizer {name} failed: {error}");
                    self.outcome.errors.push(error);
                }
            }
        }
        // A shorter one may still be smaller than the messages that it replaces.
        let form = self.aim.strategy.form;
        let heading = match form {
            SummaryForm::Sections => self.heading(folded),
            _ => StandIn::heading_by_code(&self.heading(folded)),
        };
        for budget in [budget, budget / 2, budget / 4] {
            let budget = budget.max(MIN_SUMMARY_TOKENS) as usize;
            let text = folded.extract.write_as(form, budget);
            // Its quotations are literal, so there is nothing to check.
            if let Ok(stand_in) = self.compose_stand_in(executor, folded, &heading, (&text, "")) {
                return Ok(Some((Extractive.name(), stand_in)));
            }
        }
        Ok(None)
    }

    /// Asks a summarizer, in chunks if it cannot take everything at once.
    fn ask_summarizer(
        &mut self,
        executor: &Executor<'_>,
        folded: &FoldSource,
        budget: u64,
        summarizer: &mut dyn Summarizer,
    ) -> Result<StandInText, SummarizerError> {
        let mut previous = folded.previous.clone();
        let request = SummaryRequest {
            log: executor.log(),
            runs: &folded.runs,
            previous: folded.previous.as_deref(),
            extract: &folded.extract,
            part: (1, 1),
            strategy: self.aim.strategy,
            budget: budget - budget / 4,
            prompt: self.aim.prompt.as_deref(),
        };
        let chunks = folded.chunks(executor.log(), summarizer.takes(&request))?;
        for (at, chunk) in chunks.iter().enumerate() {
            let request = SummaryRequest {
                runs: chunk,
                previous: previous.as_deref(),
                part: (at + 1, chunks.len()),
                ..request
            };
            self.outcome.calls += 1;
            let written = summarizer.summarize(&request);
            for usage in summarizer.spent() {
                self.outcome.cost += usage.cost as f64 / 1e6;
                self.spent.push(usage);
            }
            let text = written?;
            if text.trim().is_empty() {
                return Err(SummarizerError::Empty);
            }
            previous = Some(text.trim().to_owned());
        }
        let text = previous.ok_or(SummarizerError::Empty)?;
        // The forms of other agents have no place for our lists.
        let lists = match self.aim.strategy.form {
            SummaryForm::Sections => folded.extract.lists(&text, (budget / 4) as usize),
            _ => String::new(),
        };
        let text = if lists.is_empty() {
            text
        } else {
            format!("{text}\n\n{lists}")
        };
        self.check_claims(executor, folded, &text, budget)
    }

    /// Drops unsupported claims, adds the requests instead, and refuses a summary that is not worth showing.
    fn check_claims(
        &mut self,
        executor: &Executor<'_>,
        folded: &FoldSource,
        text: &str,
        budget: u64,
    ) -> Result<StandInText, SummarizerError> {
        let mut checked = drop_unsupported(text, executor, folded)?;
        if !checked.dropped.is_empty() {
            let text = self.aim.strategy.form.with_titles_apart(text);
            checked = drop_unsupported(&text, executor, folded)?;
        }
        let requests = if checked.dropped.is_empty() {
            String::new()
        } else {
            folded
                .extract
                .requests((budget / 8).max(MIN_SUMMARY_TOKENS) as usize)
        };
        // The rest of the summary must be worth something without them.
        let heading = self.heading(folded);
        let mut stand_in =
            self.compose_stand_in(executor, folded, &heading, (&checked.text, ""))?;
        if !requests.is_empty() {
            let text = (&checked.text[..], &requests[..]);
            stand_in = self
                .compose_stand_in(executor, folded, &heading, text)
                .unwrap_or(stand_in);
        }
        self.outcome
            .dropped
            .extend(checked.dropped.into_iter().map(|dropped| dropped.line));
        Ok(stand_in)
    }

    /// Returns the heading of a summary, which names the tool that the request offers.
    fn heading(&self, folded: &FoldSource) -> String {
        let tool = self.aim.recall_tool.as_deref();
        summary_heading(folded.cover.span, folded.cover.messages, tool)
    }

    /// Composes the stand-in of a summary; refuses an empty one, or one that would not make the view smaller.
    fn compose_stand_in(
        &self,
        executor: &Executor<'_>,
        folded: &FoldSource,
        heading: &str,
        (text, below): (&str, &str),
    ) -> Result<StandInText, SummarizerError> {
        if text.trim().is_empty() {
            return Err(SummarizerError::Empty);
        }
        let form = self.aim.strategy.stand_in;
        let stand_in = form.compose(heading, text.trim(), below);
        let summary = stand_in_tokens(&stand_in);
        // A stand-in that saves little would be replaced repeatedly.
        if summary > folded.leaves - folded.leaves / 4 {
            return Err(SummarizerError::Larger {
                summary,
                replaced: folded.leaves,
            });
        }
        let allow = self.aim.budget.allow();
        let fits = self
            .scale
            .counted(allow.saturating_sub(self.aim.frame.tokens));
        let rest = view_without(executor, &folded.cover)?;
        if rest < fits && rest + summary > fits {
            let room = fits - rest;
            return Err(SummarizerError::TooLong { summary, room });
        }
        Ok(stand_in)
    }
}

/// A fold that is proposed, for a person to review.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The messages that it would hide.
    pub cover: Cover,
    /// The summarizer that wrote the summary.
    pub summarizer: String,
    /// The messages that would be shown instead.
    pub stand_in: Vec<(Role, String)>,
    /// Tokens that would leave the view, as counted.
    pub leaves: u64,
    /// Tokens that would enter it.
    pub enters: u64,
    /// The cost of the summary in dollars.
    pub cost: f64,
    /// Errors on the way.
    pub errors: Vec<String>,
    /// Sentences of the summary with unsupported claims.
    pub dropped: Vec<String>,
}

impl Draft {
    /// Returns a fold over `asked`, or over the messages that `manage` would condense, with a given text.
    pub fn given(
        log: &Log,
        aim: &Aim,
        asked: Option<Span>,
        text: &str,
    ) -> Result<Option<Draft>, ManageError> {
        let executor = Executor::Simulates {
            log,
            state: Box::new(log.state().clone()),
        };
        let cover = match asked {
            Some(span) => Some(steer::cover(log.state(), span, log)?),
            None => match forced_pass(log, aim)? {
                Some(pass) => pass.choose_cover(&executor)?.map(|(cover, _)| cover),
                None => None,
            },
        };
        let Some(cover) = cover else {
            return Ok(None);
        };
        let draft = Draft {
            cover,
            summarizer: "hand".to_owned(),
            leaves: leaves(&executor, &cover)?,
            enters: 0,
            stand_in: Vec::new(),
            cost: 0.0,
            errors: Vec::new(),
            dropped: Vec::new(),
        };
        Ok(Some(draft.with_summary(text, aim)))
    }

    /// Returns the summary without heading and attached text.
    pub fn summary(&self) -> &str {
        StandIn::summary(&self.stand_in)
    }

    /// Returns the same fold with another text.
    pub fn with_summary(mut self, text: &str, aim: &Aim) -> Draft {
        let tool = aim.recall_tool.as_deref();
        let heading = summary_heading(self.cover.span, self.cover.messages, tool);
        self.stand_in = aim.strategy.stand_in.compose(&heading, text.trim(), "");
        self.enters = stand_in_tokens(&self.stand_in);
        self
    }
}

/// Gets a summary of `asked`, or of the messages that `manage` would condense, without changing the view; its usage is
/// recorded.
///
/// `None` if there is nothing to condense, or no summary is smaller than the messages that it replaces.
pub fn draft(
    writer: &mut Writer,
    aim: &Aim,
    asked: Option<Span>,
    summarizer: &mut dyn Summarizer,
) -> Result<Option<Draft>, ManageError> {
    let (draft, spent) = drafted(writer.log(), aim, asked, summarizer)?;
    for usage in spent {
        writer.usage(usage)?;
    }
    draft
}

/// A draft, and the usage of the summarizer.
type Drafted = (Result<Option<Draft>, ManageError>, Vec<Usage>);

/// Has a summary written of a log that is only read.
pub(super) fn drafted(
    log: &Log,
    aim: &Aim,
    asked: Option<Span>,
    summarizer: &mut dyn Summarizer,
) -> Result<Drafted, ManageError> {
    let Some(mut pass) = forced_pass(log, aim)? else {
        return Ok((Ok(None), Vec::new()));
    };
    let executor = Executor::Simulates {
        log,
        state: Box::new(log.state().clone()),
    };
    let found = match asked {
        None => pass.choose_cover(&executor)?,
        Some(span) => {
            let cover = steer::cover(log.state(), span, log)?;
            Some((cover, cover.span.to().next()))
        }
    };
    let Some((cover, tail)) = found else {
        return Ok((Ok(None), Vec::new()));
    };
    let draft = pass.draft(&executor, cover, tail, summarizer);
    Ok((draft, pass.spent))
}

/// Drops the claims of a summary that the user's messages do not support.
fn drop_unsupported(
    summary: &str,
    executor: &Executor<'_>,
    folded: &FoldSource,
) -> Result<CheckedSummary, LogError> {
    let (log, state) = (executor.log(), executor.state());
    let mut checker = ClaimChecker::new(summary);
    if checker.has_claims() {
        let mut text = String::new();
        let mut typist = TypedTextFilter::default();
        let mut against = |source: Source, bytes: &[u8]| {
            if let (Some(seq), Ok(message)) = (source.seq(), Message::parse(bytes)) {
                text.clear();
                match message.role() {
                    Role::Assistant => {
                        typist.reply();
                        append_words(&message, &mut text);
                        checker.read_assistant(&text);
                    }
                    _ => {
                        append_typed_text(&mut typist, &message, &mut text);
                        checker.read_user(Some(seq.get()), &text);
                    }
                }
            }
            Ok(())
        };
        // The index finds requests, each with the message before it; text beside tool results is found only by reading.
        plan::requests(state, log, |seq| {
            let before = seq.prev().unwrap_or(seq);
            let span = Span::new(before, seq).unwrap_or(Span::one(seq));
            log.each_message(span, &mut against)
        })?;
        for run in &folded.runs {
            log.each_message(*run, &mut against)?;
        }
    }
    Ok(checker.finish())
}

/// Returns a pass that is due because a person asks for it.
fn forced_pass<'a>(log: &Log, aim: &'a Aim) -> Result<Option<Pass<'a>>, ManageError> {
    Ok(match Pass::begin(log, aim, true)? {
        PassStart::Due(pass) => Some(pass),
        PassStart::Skipped(_) => None,
    })
}

/// Returns the tokens that leave the view, as counted, when a cover is folded.
pub(super) fn leaves(executor: &Executor<'_>, cover: &Cover) -> Result<u64, LogError> {
    let before = View::of(executor.state().shown(), executor.log())?.tokens();
    Ok(before.saturating_sub(view_without(executor, cover)?))
}

/// Returns the tokens of the view, as counted, if a cover were folded without a stand-in.
fn view_without(executor: &Executor<'_>, cover: &Cover) -> Result<u64, LogError> {
    let mut state = executor.state().clone();
    let event = steer::folded(Cause::Summary, cover, 0);
    state.event(&event, None, 0, executor.log())?;
    Ok(View::of(state.shown(), executor.log())?.tokens())
}

/// Writes the messages that stay to a working file while the summary is written.
fn write_kept(log: &Log, tail: Seq) -> Result<WorkingFile, LogError> {
    let mut kept = log.create_working_file(Working::Kept)?;
    let last = log.state().shown().last().unwrap_or(tail);
    if let Some(span) = Span::new(tail, last) {
        for run in log.state().shown().path() {
            let Some(run) = run.meet(span) else { continue };
            log.each_message(run, &mut |_, bytes| {
                kept.write(bytes)?;
                kept.write(b"\n")
            })?;
        }
    }
    kept.flush()?;
    Ok(kept)
}
