//! Replays a session message by message under one strategy, and measures each request.

use std::collections::{BTreeSet, HashMap, HashSet};

use infold_log::{EventId, Role, Seq, View};
use infold_store::{Log, LogError, StepError};
use infold_wire::Message;
use infold_wire::tool_action::MessageText;

use crate::content::Needs;
use crate::measure::{Measure, Scores};
use crate::previous_request::PreviousRequest;
use crate::visibility::{TermVisibility, shown_summaries};
use crate::{ParsedSession, RecordedSession};
use infold::models::Prices;
use infold::recall::{MentionLookup, recall_references, scanned_mentions};
use infold::summarizer::Extractive;
use infold::{Aim, FloorTooLarge, Hooks, ManageError, Scratch, ScratchError, manage};

/// The result of replaying a session under one strategy.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// The requests that fit.
    pub requests: Vec<ReplayedRequest>,
    /// The terms that messages used after they were folded away, and those that a visible stand-in held then.
    pub scores: Scores,
    /// The number of references among them that reading hidden messages back from the log found.
    pub reached: u64,
    /// The references of replies to earlier messages, and whether the request before contained them in any form.
    pub used_again: Needs,
    /// The references of the user's words and the model's calls to earlier messages, and whether a statement about them
    /// was in the following request.
    pub content: Needs,
    /// The same for messages with so many names that they contain a document.
    pub documents: Needs,
    /// The excerpts of hidden messages that were recalled.
    pub recalled_excerpts: u64,
    /// Their tokens.
    pub recalled_tokens: u64,
    /// Requests that did not fit: they were not sent, and their replies not measured.
    pub unfit: Vec<UnfitRequest>,
    /// The summaries that were shown, in order.
    pub points: Vec<FoldPoint>,
}

/// One request, as it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReplayedRequest {
    /// The tokens of the view.
    pub tokens: u64,
    /// The tokens that repeat the start of the request before, byte for byte.
    pub cached: u64,
    /// The tokens of the reply.
    pub output: u64,
    /// The tokens of all messages before it: those of the unfolded request.
    pub unfolded: u64,
    /// The bytes of the view.
    pub bytes: u64,
    /// The bytes that repeat the start of the request before.
    pub cached_bytes: u64,
    /// The number of folds made just before.
    pub folds: u64,
    /// Whether the request does not repeat the whole one before it, so that a prompt cache breaks here.
    pub breaks: bool,
    /// Its cost, in dollars.
    pub cost: f64,
}

/// A request that did not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfitRequest {
    /// The message that replies to it, counted from one.
    pub before: u64,
    /// The floor that is too large.
    pub reason: FloorTooLarge,
}

/// A summary, and the terms that were wanted of the messages it covers while it was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoldPoint {
    /// Its text.
    pub summary: String,
    /// The number of messages when it was written.
    pub at: usize,
    /// The messages it covers, counted from zero.
    pub covers: Vec<usize>,
    /// The terms that were wanted, each once.
    pub(super) wanted: BTreeSet<u32>,
}

/// The reason that a session could not be replayed to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The conversation could not be written to disk.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// A step of folding was refused.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The log could not be read back.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Replays a session message by message, and folds before each request by the settings in `aim`.
///
/// A request that does not fit, for example because its last round alone is too large, is left out; the
/// next one may fit again. `on_message` is called after each message.
pub fn replay(
    session: &RecordedSession,
    parsed: &ParsedSession,
    aim: &Aim,
    prices: Option<Prices>,
    on_message: &mut dyn FnMut(),
) -> Result<Replay, ReplayError> {
    let mut run = ReplayRun {
        aim,
        prices,
        parsed,
        task: Scratch::new()?,
        visibility: TermVisibility::new(parsed),
        previous: PreviousRequest::default(),
        active: Vec::new(),
        read_back: HashMap::new(),
        mentions: Box::new(scanned_mentions()),
        out: Replay::default(),
    };
    for (place, bytes) in session.messages.iter().enumerate() {
        let is_reply = parsed.messages[place].role == Role::Assistant && place > 0;
        let is_sent = is_reply && run.send_request(place)?;
        if is_sent || !is_reply {
            run.score_terms()?;
        }
        if is_sent {
            run.out.used_again.add(run.visibility.count_used_again());
            let (content, is_document) = run.visibility.count_content();
            let sum = if is_document {
                &mut run.out.documents
            } else {
                &mut run.out.content
            };
            sum.add(content);
        }
        run.task.push(bytes.clone())?;
        run.visibility.append();
        if is_sent {
            run.add_reply(place)?;
        }
        on_message();
    }
    Ok(run.out)
}

struct ReplayRun<'a> {
    aim: &'a Aim,
    prices: Option<Prices>,
    parsed: &'a ParsedSession,
    task: Scratch,
    visibility: TermVisibility<'a>,
    previous: PreviousRequest,
    active: Vec<ActiveSummary>,
    /// The terms of messages that were read back from the log.
    read_back: HashMap<usize, Vec<u32>>,
    mentions: Box<MentionLookup<'static>>,
    out: Replay,
}

impl ReplayRun<'_> {
    /// Folds, and measures the request; returns false if it does not fit.
    fn send_request(&mut self, place: usize) -> Result<bool, ReplayError> {
        let writer = self.task.writer()?;
        let event = writer.log().state().at().event;
        let managed = manage(writer, self.aim, &mut Extractive, &Hooks::default());
        if let (Ok(outcome), Some(limits)) = (&managed, self.aim.recall) {
            let limits = limits.within(self.aim, outcome.after.tokens);
            let recalled = recall_references(writer, limits, &mut *self.mentions);
            let recalled = recalled.map_err(ScratchError::from)?;
            self.out.recalled_excerpts += recalled.len() as u64;
            self.out.recalled_tokens += recalled.iter().map(|one| one.tokens).sum::<u64>();
        }
        let log = self.task.log();
        let view = View::of(log.state().shown(), log)?;
        // A pass that fails may still have folded something.
        if log.state().at().event > event {
            self.visibility.update(&view, log)?;
            self.active = find_active(&view, log, place, &self.active, &mut self.out.points)?;
        }
        let outcome = match managed {
            Ok(outcome) => outcome,
            Err(ManageError::Floor { floor }) => {
                self.out.unfit.push(UnfitRequest {
                    before: place as u64 + 1,
                    reason: *floor,
                });
                return Ok(false);
            }
            Err(ManageError::Cancelled) => unreachable!("the built-in summarizer calls no model"),
            Err(ManageError::Step(error)) => return Err(error.into()),
            Err(ManageError::Log(error)) => return Err(error.into()),
        };
        let before = self.previous.len();
        let same = self.previous.replace(&view, log)?;
        let scaled = |tokens: u64| (tokens as f64 * self.aim.factor).ceil() as u64;
        self.out.requests.push(ReplayedRequest {
            tokens: scaled(view.tokens()),
            cached: scaled(same.tokens),
            output: 0,
            unfolded: scaled(log.sums()?.tokens),
            bytes: self.previous.len(),
            cached_bytes: same.bytes,
            folds: outcome.folds().count() as u64,
            breaks: same.bytes < before,
            cost: outcome.cost,
        });
        Ok(true)
    }

    /// Scores the terms that the next message uses.
    fn score_terms(&mut self) -> Result<(), LogError> {
        let wanted: Vec<u32> = self.visibility.wanted().collect();
        for term in wanted {
            let measure = self.parsed.vocabulary.measure(term);
            let counts = &mut self.out.scores[measure];
            counts.wanted += 1;
            counts.kept += u64::from(self.visibility.is_kept(term));
            let hidden: Vec<usize> = self.visibility.hidden_in(term).collect();
            for summary in &self.active {
                if hidden
                    .iter()
                    .any(|message| summary.covers.contains(message))
                {
                    self.out.points[summary.point].wanted.insert(term);
                }
            }
            if measure == Measure::References {
                for message in hidden {
                    if self.is_read_back(message, term)? {
                        self.out.reached += 1;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a hidden message back from the log, and says whether the term is in it.
    fn is_read_back(&mut self, message: usize, term: u32) -> Result<bool, LogError> {
        if !self.read_back.contains_key(&message) {
            let found = match Seq::new(message as u64 + 1) {
                Some(seq) => find_terms(&self.task.log().message(seq)?, self.parsed),
                None => Vec::new(),
            };
            self.read_back.insert(message, found);
        }
        Ok(self.read_back[&message].binary_search(&term).is_ok())
    }

    /// Adds the reply to the last request, and the cost of both.
    fn add_reply(&mut self, place: usize) -> Result<(), ReplayError> {
        let log = self.task.writer()?.log();
        let sums = log.sums()?.tokens;
        let before = match Seq::new(place as u64) {
            Some(seq) => infold_log::Past::record(log, seq)?.sums.tokens,
            None => 0,
        };
        if let Some(request) = self.out.requests.last_mut() {
            request.output = ((sums - before) as f64 * self.aim.factor).ceil() as u64;
            request.cost += self.prices.map_or(0.0, |prices| request.price(prices));
        }
        Ok(())
    }
}

impl Replay {
    /// Adds the replay of another session.
    pub fn add(&mut self, other: Replay) {
        self.requests.extend(other.requests);
        self.unfit.extend(other.unfit);
        self.scores.add(other.scores);
        self.reached += other.reached;
        self.used_again.add(other.used_again);
        self.content.add(other.content);
        self.documents.add(other.documents);
        self.recalled_excerpts += other.recalled_excerpts;
        self.recalled_tokens += other.recalled_tokens;
    }
}

impl ReplayedRequest {
    /// Returns its cost: the unchanged start is read from the provider's cache, the rest is written to it.
    fn price(&self, prices: Prices) -> f64 {
        let fresh = (self.tokens - self.cached) as f64;
        let sum = self.cached as f64 * prices.cached
            + fresh * prices.write
            + self.output as f64 * prices.output;
        sum / 1e6
    }
}

fn find_terms(bytes: &[u8], parsed: &ParsedSession) -> Vec<u32> {
    let Ok(message) = Message::parse(bytes) else {
        return Vec::new();
    };
    let words = MessageText::of(&message);
    let mut texts: Vec<&str> = vec![&words.text, &words.arguments];
    texts.extend(words.results.iter().map(|(_, text)| &**text));
    parsed.vocabulary.find(&texts.join("\n"))
}

/// A summary that is shown.
#[derive(Clone)]
struct ActiveSummary {
    fold: EventId,
    /// Its index among the points.
    point: usize,
    covers: HashSet<usize>,
}

/// Returns the summaries that are shown now; a new one is a new point.
fn find_active(
    view: &View,
    log: &Log,
    at: usize,
    before: &[ActiveSummary],
    points: &mut Vec<FoldPoint>,
) -> Result<Vec<ActiveSummary>, LogError> {
    let mut active = Vec::new();
    for summary in shown_summaries(view, log)? {
        let known = before.iter().find(|known| known.fold == summary.id);
        active.push(known.cloned().unwrap_or_else(|| {
            let covers = summary.covers.iter().copied().collect();
            points.push(FoldPoint {
                summary: summary.text,
                at,
                covers: summary.covers,
                wanted: BTreeSet::new(),
            });
            ActiveSummary {
                fold: summary.id,
                point: points.len() - 1,
                covers,
            }
        }));
    }
    Ok(active)
}
