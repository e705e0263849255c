//! Replays a session message by message under one strategy, and measures each request.

use std::collections::{BTreeSet, HashMap, HashSet};

use infold_log::{EventId, Role, Seq, View};
use infold_store::{Log, LogError, StepError};
use infold_wire::Message;
use infold_wire::acts::Words;

use super::score::{Measure, Scores};
use super::sent::Sent;
use super::sight::{Sight, summaries};
use super::{Material, Session};
use infold::models::Prices;
use infold::summarizer::Extractive;
use infold::{Aim, Hooks, ManageError, Scratch, ScratchError, TooSmall, manage};

/// What a session came to under one strategy.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Each request.
    pub requests: Vec<Request>,
    /// Terms that messages used and that were folded away, and how many of them a stand-in in the view held then.
    pub scores: Scores,
    /// How many of the references among them were found by reading hidden messages back from the log.
    pub reached: u64,
    /// Requests that did not fit: they were not sent, and their replies not measured.
    pub unfit: Vec<Unfit>,
    /// The summaries that were shown, in order.
    pub points: Vec<Point>,
}

/// What was sent once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Request {
    /// The tokens of the view.
    pub tokens: u64,
    /// How many of them repeat the start of the request before, byte for byte.
    pub cached: u64,
    /// The tokens of the reply.
    pub output: u64,
    /// The bytes of the view.
    pub bytes: u64,
    /// How many of them repeat the start of the request before.
    pub cached_bytes: u64,
    /// How many folds were made just before.
    pub folds: u64,
    /// It does not repeat the whole of the request before it: a prompt cache breaks here.
    pub breaks: bool,
    /// What it costs, in dollars.
    pub cost: f64,
}

/// A request that did not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The message that answers it, counted from one.
    pub before: u64,
    /// Why.
    pub why: TooSmall,
}

/// A summary, and what was wanted of what it stands for while it was shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Its text.
    pub summary: String,
    /// How many messages there were when it was written.
    pub at: usize,
    /// The messages it stands for, counted from zero.
    pub covers: Vec<usize>,
    /// The terms that were wanted, each once.
    pub(super) wanted: BTreeSet<u32>,
}

/// Why a session could not be replayed to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// There is no room for the conversation on disk.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// A step of folding was refused.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The log could not be read back.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Replays a session message by message, and folds before each request as `aim` says.
///
/// A request that does not fit, because its last round alone is too large, say, is left out; the
/// next one may fit again.
///
/// `watch` is called for each message.
pub fn replay(
    session: &Session,
    material: &Material,
    aim: &Aim,
    prices: Option<Prices>,
    watch: &mut dyn FnMut(),
) -> Result<Replay, ReplayError> {
    let mut run = Run {
        aim,
        prices,
        material,
        task: Scratch::new()?,
        sight: Sight::new(material),
        sent: Sent::default(),
        active: Vec::new(),
        read_back: HashMap::new(),
        out: Replay::default(),
    };
    for (place, bytes) in session.messages.iter().enumerate() {
        let replies = material.messages[place].role == Role::Assistant && place > 0;
        let sent = replies && run.request(place)?;
        if sent || !replies {
            run.refer()?;
        }
        run.task.push(bytes.clone())?;
        run.sight.append();
        if sent {
            run.reply(place)?;
        }
        watch();
    }
    Ok(run.out)
}

struct Run<'a> {
    aim: &'a Aim,
    prices: Option<Prices>,
    material: &'a Material,
    task: Scratch,
    sight: Sight<'a>,
    sent: Sent,
    /// The summaries that are shown: which fold, and which point.
    active: Vec<(EventId, usize, HashSet<usize>)>,
    /// What messages hold that were read back from the log.
    read_back: HashMap<usize, Vec<u32>>,
    out: Replay,
}

impl Run<'_> {
    /// Folds, and weighs what is sent; false if it does not fit.
    fn request(&mut self, place: usize) -> Result<bool, ReplayError> {
        let writer = self.task.writer()?;
        let event = writer.log().state().at().event;
        let managed = manage(writer, self.aim, &mut Extractive, &Hooks::default());
        let log = self.task.log();
        let view = View::of(log.state().shown(), log)?;
        // A pass that fails may have folded something, too.
        if log.state().at().event > event {
            self.sight.look(&view, log)?;
            self.active = points(&view, log, place, &self.active, &mut self.out.points)?;
        }
        let outcome = match managed {
            Ok(outcome) => outcome,
            Err(ManageError::Floor { floor }) => {
                self.out.unfit.push(Unfit {
                    before: place as u64 + 1,
                    why: *floor,
                });
                return Ok(false);
            }
            Err(ManageError::Cancelled) => unreachable!("the built-in summarizer asks nobody"),
            Err(ManageError::Step(error)) => return Err(error.into()),
            Err(ManageError::Log(error)) => return Err(error.into()),
        };
        let before = self.sent.len();
        let same = self.sent.next(&view, log)?;
        let scaled = |tokens: u64| (tokens as f64 * self.aim.factor).ceil() as u64;
        self.out.requests.push(Request {
            tokens: scaled(view.tokens()),
            cached: scaled(same.tokens),
            output: 0,
            bytes: self.sent.len(),
            cached_bytes: same.bytes,
            folds: outcome.folds().count() as u64,
            breaks: same.bytes < before,
            cost: outcome.cost,
        });
        Ok(true)
    }

    /// Looks for what the next message uses.
    fn refer(&mut self) -> Result<(), LogError> {
        let wanted: Vec<u32> = self.sight.wanted().collect();
        for term in wanted {
            let measure = self.material.vocabulary.measure(term);
            let counts = &mut self.out.scores[measure];
            counts.wanted += 1;
            counts.kept += u64::from(self.sight.is_kept(term));
            let hidden: Vec<usize> = self.sight.hidden_in(term).collect();
            for (_, point, covers) in &self.active {
                if hidden.iter().any(|message| covers.contains(message)) {
                    self.out.points[*point].wanted.insert(term);
                }
            }
            if measure == Measure::References {
                self.reach(term, &hidden)?;
            }
        }
        Ok(())
    }

    /// Reads hidden messages back until a term is found in one.
    fn reach(&mut self, term: u32, hidden: &[usize]) -> Result<(), LogError> {
        for message in hidden {
            if self.is_read_back(*message, term)? {
                self.out.reached += 1;
                break;
            }
        }
        Ok(())
    }

    /// Reads a hidden message from the log, and says whether the term is in it.
    fn is_read_back(&mut self, message: usize, term: u32) -> Result<bool, LogError> {
        if !self.read_back.contains_key(&message) {
            let found = match Seq::new(message as u64 + 1) {
                Some(seq) => found_in(&self.task.log().message(seq)?, self.material),
                None => Vec::new(),
            };
            self.read_back.insert(message, found);
        }
        Ok(self.read_back[&message].binary_search(&term).is_ok())
    }

    /// Adds the reply to the last request, and what both cost.
    fn reply(&mut self, place: usize) -> Result<(), ReplayError> {
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
    /// Adds what another session came to.
    pub fn add(&mut self, other: Replay) {
        self.requests.extend(other.requests);
        self.unfit.extend(other.unfit);
        self.scores.add(other.scores);
        self.reached += other.reached;
    }
}

impl Request {
    /// What it costs: the unchanged start is read from the provider's cache, the rest is written to it.
    fn price(&self, prices: Prices) -> f64 {
        let fresh = (self.tokens - self.cached) as f64;
        let sum = self.cached as f64 * prices.cached
            + fresh * prices.write
            + self.output as f64 * prices.output;
        sum / 1e6
    }
}

fn found_in(bytes: &[u8], material: &Material) -> Vec<u32> {
    let Ok(message) = Message::parse(bytes) else {
        return Vec::new();
    };
    let words = Words::of(&message);
    let mut texts: Vec<&str> = vec![&words.said, &words.called];
    texts.extend(words.given.iter().map(|(_, text)| &**text));
    material.vocabulary.find(&texts.join("\n"))
}

/// Which summaries are shown now; a new one is a new point.
fn points(
    view: &View,
    log: &Log,
    at: usize,
    before: &[(EventId, usize, HashSet<usize>)],
    points: &mut Vec<Point>,
) -> Result<Vec<(EventId, usize, HashSet<usize>)>, LogError> {
    let mut active = Vec::new();
    for summary in summaries(view, log)? {
        let known = before.iter().find(|(id, ..)| *id == summary.id);
        active.push(match known {
            Some(known) => known.clone(),
            None => {
                let covers = summary.covers.iter().copied().collect();
                points.push(Point {
                    summary: summary.text,
                    at,
                    covers: summary.covers,
                    wanted: BTreeSet::new(),
                });
                (summary.id, points.len() - 1, covers)
            }
        });
    }
    Ok(active)
}
