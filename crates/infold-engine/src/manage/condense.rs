use infold_log::plan::{self, FloorSize, Keep};
use infold_log::steer::Cover;
use infold_log::{Cause, Role, Seq, Source, Span, View, steer};
use infold_store::{Aside, Log, LogError, Usage, Working, Writer, heading, stand_in_tokens};
use infold_wire::{Message, Typist, spoken};

use super::folded::Folded;
use super::{Aim, Begun, Hand, ManageError, Pass};
use crate::extract::Form;
use crate::quotes::{Checked, Claims, user_words};
use crate::strategy::{Keeps, StandIn};
use crate::summarizer::{Brief, Extractive, Summarizer, SummarizerError};
use crate::{Did, Step, Strategy};

/// A summary shorter than this says nothing.
const SHORTEST: u64 = 96;

/// What is shown instead of what is folded, message by message.
type StandInText = Vec<(Role, String)>;

impl Pass<'_> {
    /// Folds everything between the floor and the tail behind a summary.
    pub(super) fn condense(
        &mut self,
        hand: &mut Hand<'_>,
        summarizer: &mut dyn Summarizer,
    ) -> Result<(), ManageError> {
        if !self.aim.strategy.condenses {
            return Ok(());
        }
        let Some((cover, tail)) = self.covered(hand)? else {
            return Ok(());
        };
        let draft = self.draft(hand, cover, tail, summarizer);
        // What was paid for is a fact, whatever came of it.
        for usage in std::mem::take(&mut self.spent) {
            hand.usage(usage)?;
        }
        let Some(draft) = draft? else {
            return Ok(());
        };
        let fold = hand.fold(Cause::Summary, &cover, self.aim.trigger, draft.stand_in)?;
        let (before, after) = self.measured(hand, Did::Condensed)?;
        self.outcome.steps.push(Step {
            did: Did::Condensed,
            folds: fold.into_iter().collect(),
            hidden: cover.messages,
            span: cover.span,
            before,
            after,
            summarizer: Some(draft.summarizer),
        });
        Ok(())
    }

    /// Has a summary written; none if nothing that is smaller could be.
    fn draft(
        &mut self,
        hand: &Hand<'_>,
        cover: Cover,
        tail: Seq,
        summarizer: &mut dyn Summarizer,
    ) -> Result<Option<Draft>, ManageError> {
        let folded = Folded::read(hand, cover)?;
        let budget = self.summary_budget(hand, &folded)?;
        let _kept = match hand {
            Hand::Writes(writer) => Some(set_aside(writer.log(), tail)?),
            Hand::Imagines { .. } => None,
        };
        let written = self.written(hand, &folded, budget, summarizer)?;
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

    /// Chooses what to fold, and where the tail begins.
    fn covered(&self, hand: &Hand<'_>) -> Result<Option<(Cover, Seq)>, ManageError> {
        let (aim, scale) = (self.aim, self.scale);
        let floor = FloorSize::of(hand.state(), hand.log())?;
        let fixed = scale.size(floor.total()).tokens;
        let window = self.narrowed(self.budget.room());
        let room = |limit: u64| {
            let left = self.narrowed(limit).saturating_sub(fixed + window / 16);
            scale.counted(left) + floor.last.tokens
        };
        let (keep, room) = match aim.strategy.keeps {
            Keeps::Messages(_) => (Keep::Messages(aim.keep), room(aim.budget.allow())),
            Keeps::Share(share) => (Keep::Share(share), room(aim.budget.allow())),
            Keeps::Window(share) => {
                let most = scale.counted((window as f64 * share) as u64);
                (
                    Keep::Tokens(most, aim.keep),
                    room(self.outcome.target.tokens),
                )
            }
        };
        let Some(tail) = plan::tail(hand.state(), keep, room, hand.log())? else {
            return Ok(None);
        };
        let cover = plan::before_tail(hand.state(), tail, hand.log())?;
        let cover = cover.filter(|cover| self.forced || cover.messages >= aim.strategy.least);
        Ok(cover.map(|cover| (cover, tail)))
    }

    /// How many tokens, as counted, the summary may have.
    fn summary_budget(&self, hand: &Hand<'_>, folded: &Folded) -> Result<u64, LogError> {
        if let Some(asked) = self.aim.summary {
            return Ok(asked);
        }
        let rest = view_without(hand, &folded.cover)?;
        let target = self.narrowed(self.outcome.target.tokens);
        let rest = self.scale.part(rest) + self.aim.frame.tokens;
        let window = self.narrowed(self.budget.room());
        // A last round above target is followed by others soon: until then a summary may go above it, too.
        let least = self.narrowed(self.aim.budget.allow()).saturating_sub(rest);
        let least = least.min(self.least_summary()).max(window / 16);
        let most = self.scale.counted(target.saturating_sub(rest).max(least));
        // The log has all that earlier summaries stand for, so a summary may grow again.
        let share = (folded.original as f64 * self.aim.ratio.clamp(0.05, 0.9)) as u64;
        let longest = self
            .scale
            .counted((window as f64 * self.aim.strategy.summary_share) as u64);
        Ok(most.min(share).clamp(SHORTEST, longest.max(SHORTEST)))
    }

    /// Has the summary written and checked; the built-in summarizer helps out.
    fn written(
        &mut self,
        hand: &Hand<'_>,
        folded: &Folded,
        budget: u64,
        summarizer: &mut dyn Summarizer,
    ) -> Result<Option<(String, StandInText)>, ManageError> {
        let built_in = summarizer.name() == Extractive.name();
        let asked = match built_in {
            true => Err(None),
            false => self.asked(hand, folded, budget, summarizer).map_err(Some),
        };
        let failed = match asked {
            Ok(stand_in) => return Ok(Some((summarizer.name(), stand_in))),
            Err(Some(SummarizerError::Log(error))) => return Err(error.into()),
            Err(Some(SummarizerError::Cancelled)) => return Err(ManageError::Cancelled),
            Err(failed) => failed,
        };
        if let Some(error) = failed {
            self.outcome.inflated |= matches!(error, SummarizerError::Larger { .. });
            let name = summarizer.name();
            self.outcome
                .errors
                .push(format!("the summarizer {name} failed: {error}"));
        }
        // A shorter one may still be smaller than what it replaces.
        let form = self.aim.strategy.form;
        let heading = match form {
            Form::Sections => heading(folded.cover.span, folded.cover.messages),
            _ => StandIn::heading_by_code(&heading(folded.cover.span, folded.cover.messages)),
        };
        for budget in [budget, budget / 2, budget / 4] {
            let budget = budget.max(SHORTEST) as usize;
            let text = folded.extract.write_as(form, budget);
            // It quotes what was said as it was said: there is nothing to check.
            if let Ok(stand_in) = self.shown(hand, folded, &heading, (&text, "")) {
                return Ok(Some((Extractive.name(), stand_in)));
            }
        }
        Ok(None)
    }

    /// Asks a summarizer, in chunks if it cannot take everything at once.
    fn asked(
        &mut self,
        hand: &Hand<'_>,
        folded: &Folded,
        budget: u64,
        summarizer: &mut dyn Summarizer,
    ) -> Result<StandInText, SummarizerError> {
        let mut previous = folded.previous.clone();
        let brief = Brief {
            log: hand.log(),
            runs: &folded.runs,
            previous: folded.previous.as_deref(),
            extract: &folded.extract,
            part: (1, 1),
            strategy: self.aim.strategy,
            budget: budget - budget / 4,
            prompt: self.aim.prompt.as_deref(),
        };
        let chunks = folded.chunks(hand.log(), summarizer.takes(&brief))?;
        for (at, chunk) in chunks.iter().enumerate() {
            let brief = Brief {
                runs: chunk,
                previous: previous.as_deref(),
                part: (at + 1, chunks.len()),
                ..brief
            };
            self.outcome.calls += 1;
            let written = summarizer.summarize(&brief);
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
        // An agent's form has no place for lists of ours.
        let lists = match self.aim.strategy.form {
            Form::Sections => folded.extract.lists(&text, (budget / 4) as usize),
            _ => String::new(),
        };
        let text = match lists.is_empty() {
            true => text,
            false => format!("{text}\n\n{lists}"),
        };
        self.checked(hand, folded, &text, budget)
    }

    /// Drops what nobody said, adds what was said instead, and refuses what is not worth showing.
    fn checked(
        &mut self,
        hand: &Hand<'_>,
        folded: &Folded,
        text: &str,
        budget: u64,
    ) -> Result<StandInText, SummarizerError> {
        let mut checked = said(text, hand, folded)?;
        if !checked.dropped.is_empty() {
            let text = self.aim.strategy.form.with_titles_apart(text);
            checked = said(&text, hand, folded)?;
        }
        let requests = match checked.dropped.is_empty() {
            true => String::new(),
            false => folded.extract.requests((budget / 8).max(SHORTEST) as usize),
        };
        // What is left must be worth something without them.
        let heading = heading(folded.cover.span, folded.cover.messages);
        let mut stand_in = self.shown(hand, folded, &heading, (&checked.text, ""))?;
        if !requests.is_empty() {
            let text = (&checked.text[..], &requests[..]);
            stand_in = self.shown(hand, folded, &heading, text).unwrap_or(stand_in);
        }
        self.outcome
            .dropped
            .extend(checked.dropped.into_iter().map(|dropped| dropped.line));
        Ok(stand_in)
    }

    /// How a summary would be shown; refuses what is empty or would not make the view smaller.
    fn shown(
        &self,
        hand: &Hand<'_>,
        folded: &Folded,
        heading: &str,
        (text, below): (&str, &str),
    ) -> Result<StandInText, SummarizerError> {
        if text.trim().is_empty() {
            return Err(SummarizerError::Empty);
        }
        let form = self.aim.strategy.stand_in;
        let stand_in = form.compose(heading, text.trim(), below);
        let summary = stand_in_tokens(&stand_in);
        // One that saves next to nothing would be made again and again.
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
        let rest = view_without(hand, &folded.cover)?;
        if rest < fits && rest + summary > fits {
            let room = fits - rest;
            return Err(SummarizerError::TooLong { summary, room });
        }
        Ok(stand_in)
    }
}

/// A fold that could be made, for a person to look at first.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// What it would hide.
    pub cover: Cover,
    /// Who wrote the summary.
    pub summarizer: String,
    /// What would be shown instead.
    pub stand_in: Vec<(Role, String)>,
    /// Tokens that would leave the view, as counted.
    pub leaves: u64,
    /// Tokens that would enter it.
    pub enters: u64,
    /// What the summary cost, in dollars.
    pub cost: f64,
    /// What went wrong on the way.
    pub errors: Vec<String>,
    /// Sentences that the summary claimed and nobody said.
    pub dropped: Vec<String>,
}

impl Draft {
    /// A fold over `asked`, or over what `manage` would condense, with a text that is given.
    pub fn given(
        log: &Log,
        aim: &Aim,
        asked: Option<Span>,
        text: &str,
    ) -> Result<Option<Draft>, ManageError> {
        let hand = Hand::Imagines {
            log,
            state: log.state().clone(),
        };
        let cover = match asked {
            Some(span) => Some(steer::cover(log.state(), span, log)?),
            None => match forced(log, aim)? {
                Some(pass) => pass.covered(&hand)?.map(|(cover, _)| cover),
                None => None,
            },
        };
        let Some(cover) = cover else {
            return Ok(None);
        };
        let draft = Draft {
            cover,
            summarizer: "hand".to_owned(),
            leaves: leaves(&hand, &cover)?,
            enters: 0,
            stand_in: Vec::new(),
            cost: 0.0,
            errors: Vec::new(),
            dropped: Vec::new(),
        };
        Ok(Some(draft.with_summary(text, &aim.strategy)))
    }

    /// The summary, without what stands around it.
    pub fn summary(&self) -> &str {
        StandIn::summary(&self.stand_in)
    }

    /// The same fold with another text.
    pub fn with_summary(mut self, text: &str, strategy: &Strategy) -> Draft {
        let heading = heading(self.cover.span, self.cover.messages);
        self.stand_in = strategy.stand_in.compose(&heading, text.trim(), "");
        self.enters = stand_in_tokens(&self.stand_in);
        self
    }
}

/// Has a summary written of `asked`, or of what `manage` would condense, and changes nothing
/// of the view; what the summary took is recorded.
///
/// None if there is nothing to condense, or no summary is smaller than what it replaces.
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

/// What came of having a summary written, and what it took.
type Drafted = (Result<Option<Draft>, ManageError>, Vec<Usage>);

/// The same of a log that is only read.
pub(super) fn drafted(
    log: &Log,
    aim: &Aim,
    asked: Option<Span>,
    summarizer: &mut dyn Summarizer,
) -> Result<Drafted, ManageError> {
    let Some(mut pass) = forced(log, aim)? else {
        return Ok((Ok(None), Vec::new()));
    };
    let hand = Hand::Imagines {
        log,
        state: log.state().clone(),
    };
    let found = match asked {
        None => pass.covered(&hand)?,
        Some(span) => {
            let cover = steer::cover(log.state(), span, log)?;
            Some((cover, cover.span.to().next()))
        }
    };
    let Some((cover, tail)) = found else {
        return Ok((Ok(None), Vec::new()));
    };
    let draft = pass.draft(&hand, cover, tail, summarizer);
    Ok((draft, pass.spent))
}

/// Takes out of a summary what it claims of the user and nobody said.
fn said(summary: &str, hand: &Hand<'_>, folded: &Folded) -> Result<Checked, LogError> {
    let (log, state) = (hand.log(), hand.state());
    let mut claims = Claims::new(summary);
    if claims.any() {
        let mut text = String::new();
        let mut typist = Typist::default();
        let mut against = |source: Source, bytes: &[u8]| {
            if let (Some(seq), Ok(message)) = (source.seq(), Message::parse(bytes)) {
                text.clear();
                match message.role() {
                    Role::Assistant => {
                        typist.reply();
                        spoken(&message, &mut text);
                        claims.assistant(&text);
                    }
                    _ => {
                        user_words(&mut typist, &message, &mut text);
                        claims.user(Some(seq.get()), &text);
                    }
                }
            }
            Ok(())
        };
        // Requests are found by the index, each with what stands before it; words beside tool results only by looking.
        plan::requests(state, log, |seq| {
            let before = seq.prev().unwrap_or(seq);
            let span = Span::new(before, seq).unwrap_or(Span::one(seq));
            log.each_message(span, &mut against)
        })?;
        for run in &folded.runs {
            log.each_message(*run, &mut against)?;
        }
    }
    Ok(claims.finish())
}

/// A pass that is due because a person asks for it.
fn forced<'a>(log: &Log, aim: &'a Aim) -> Result<Option<Pass<'a>>, ManageError> {
    Ok(match Pass::begin(log, aim, true)? {
        Begun::Go(pass) => Some(pass),
        Begun::Stop(_) => None,
    })
}

/// Tokens that leave the view, as counted, when a cover is folded.
pub(super) fn leaves(hand: &Hand<'_>, cover: &Cover) -> Result<u64, LogError> {
    let before = View::of(hand.state().shown(), hand.log())?.tokens();
    Ok(before.saturating_sub(view_without(hand, cover)?))
}

/// Tokens of the view, as counted, if a cover were folded behind nothing at all.
fn view_without(hand: &Hand<'_>, cover: &Cover) -> Result<u64, LogError> {
    let mut state = hand.state().clone();
    let event = steer::folded(Cause::Summary, cover, 0);
    state.event(&event, None, 0, hand.log())?;
    Ok(View::of(state.shown(), hand.log())?.tokens())
}

/// Keeps the messages that stay in a file of their own while the summary is written.
fn set_aside(log: &Log, tail: Seq) -> Result<Aside, LogError> {
    let mut kept = log.aside(Working::Kept)?;
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
