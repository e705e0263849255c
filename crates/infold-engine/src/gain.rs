//! The savings of folding: the requests of a task, beside the same requests with nothing folded.
//!
//! Both sides are computed for the requests that were really made. The sent side is the usage that the provider
//! reported, with the cost of summaries, look-ups and discarded replies. The unfolded side is the same request with
//! every message of its conversation unchanged, counted as the provider counted the sent request.

use std::collections::{BTreeMap, HashMap};
use std::ops::AddAssign;

use infold_log::{EventId, Past as _, Role, Seq, Span, State, View};
use infold_store::{FoldLine, Log, LogError, Purpose, Trigger, Usage, What};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::models::Prices;

/// Tokens of requests, and the dollars that requests and replies cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spending {
    /// The tokens of the requests.
    pub tokens: u64,
    /// The part of them in the provider's cache.
    pub cached: u64,
    /// The cost in dollars of requests with a known cost.
    pub cost: f64,
}

/// The savings of folding over some requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gain {
    /// The requests that were answered.
    pub requests: u64,
    /// The tokens and cost of those requests, with summaries, look-ups and discarded replies.
    pub sent: Spending,
    /// The tokens and cost that they would have had unfolded.
    pub unfolded: Spending,
    /// Requests that unfolded would have been larger than the window of their model.
    pub overflows: u64,
    /// Requests without a recorded cost: free ones, and those of models without known prices.
    pub unpriced: u64,
    /// Summaries that replaced messages.
    pub summaries: u64,
    /// Ranges that were hidden without a summary.
    pub windows: u64,
    /// Parts of messages that became stubs.
    pub masks: u64,
}

/// The day, in UTC, and the model of requests.
pub type GainKey = (Date, String);

/// The known rates of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelRates {
    /// Its prices.
    pub prices: Option<Prices>,
    /// Its window in tokens.
    pub window: Option<u64>,
}

/// The times between which requests count, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// From then on.
    pub since: Option<u64>,
    /// Up to then.
    pub until: Option<u64>,
}

impl Gain {
    /// Returns the tokens that were not sent; negative if more were.
    pub fn tokens_saved(&self) -> i64 {
        self.unfolded.tokens as i64 - self.sent.tokens as i64
    }

    /// Returns the dollars that were not spent; negative if more were.
    pub fn cost_saved(&self) -> f64 {
        self.unfolded.cost - self.sent.cost
    }
}

impl AddAssign for Spending {
    fn add_assign(&mut self, other: Spending) {
        self.tokens += other.tokens;
        self.cached += other.cached;
        self.cost += other.cost;
    }
}

impl AddAssign for Gain {
    fn add_assign(&mut self, other: Gain) {
        self.requests += other.requests;
        self.sent += other.sent;
        self.unfolded += other.unfolded;
        self.overflows += other.overflows;
        self.unpriced += other.unpriced;
        self.summaries += other.summaries;
        self.windows += other.windows;
        self.masks += other.masks;
    }
}

impl Period {
    fn holds(self, time: u64) -> bool {
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time <= until)
    }
}

/// Sums up the savings of folding over the requests of a task, without those of tasks that it continues.
///
/// Reads all events of the task, but of the messages only the index.
pub fn task_gain(
    log: &Log,
    period: Period,
    facts: &dyn Fn(&str) -> ModelRates,
) -> Result<BTreeMap<GainKey, Gain>, LogError> {
    let base = log.own().event - 1;
    let mut walk = GainWalk::new(log, period, facts)?;
    let last = log.state().last_event().map_or(0, EventId::get);
    for number in base + 1..=last {
        let id = EventId::new(number).expect("counted from one");
        let line = log.event(id)?;
        walk.state.messages_up_to(line.after);
        match &line.what {
            What::Usage(usage) => walk.add_usage(usage, line.after, line.ts)?,
            What::Fold(fold) => walk.count_fold(fold, line.ts),
            What::Mask(_) => walk.count_mask(line.ts),
            _ => {}
        }
        walk.state.event(&line.event(), line.pass, line.ts, log)?;
    }
    Ok(walk.finish())
}

/// Goes through the events of a task.
struct GainWalk<'a> {
    log: &'a Log,
    period: Period,
    facts: &'a dyn Fn(&str) -> ModelRates,
    state: State,
    /// The reply that usage was last reported for.
    answered: Option<u64>,
    /// The messages that the last request would have shown unfolded.
    previous: Option<Vec<Span>>,
    /// The ratio of reported to counted tokens by model.
    factors: HashMap<String, ReportedFactor>,
    /// Folds that no request followed yet.
    pending: Gain,
    /// Whether the provider ever reported cached tokens.
    has_cache: bool,
    rows: BTreeMap<GainKey, GainRow>,
}

/// The sums of one day and model; the cost of unfolded requests with and without a cache of the provider.
#[derive(Default)]
struct GainRow {
    gain: Gain,
    unfolded_cached: u64,
    cost_with_cache: f64,
    cost_without_cache: f64,
}

/// The tokens of requests without folds. The sizes of stand-ins are estimates, those of messages are not.
#[derive(Default)]
struct ReportedFactor {
    /// The tokens that the provider reported.
    reported: u64,
    /// The tokens that were counted locally.
    counted: u64,
}

impl ReportedFactor {
    fn value(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.reported as f64 / self.counted as f64)
    }
}

/// One request unfolded, in the provider's tokens.
struct Unfolded {
    tokens: u64,
    cached: u64,
}

impl<'a> GainWalk<'a> {
    fn new(
        log: &'a Log,
        period: Period,
        facts: &'a dyn Fn(&str) -> ModelRates,
    ) -> Result<GainWalk<'a>, LogError> {
        let own = log.own();
        let base = infold_log::Point {
            seq: own.seq - 1,
            event: own.event - 1,
        };
        let mark = EventId::new(base.event)
            .map(|id| log.mark(id))
            .transpose()?;
        Ok(GainWalk {
            log,
            period,
            facts,
            state: State::resume(base, mark, log.shown(base)?),
            answered: None,
            previous: None,
            factors: HashMap::new(),
            pending: Gain::default(),
            has_cache: false,
            rows: BTreeMap::new(),
        })
    }

    fn count_fold(&mut self, fold: &FoldLine, time: u64) {
        // Folds in an imported transcript are not savings of this installation.
        if fold.trigger == Trigger::Import.name() || !self.period.holds(time) {
            return;
        }
        match fold.cause {
            infold_log::Cause::Summary => self.pending.summaries += 1,
            infold_log::Cause::Window => self.pending.windows += 1,
        }
    }

    fn count_mask(&mut self, time: u64) {
        self.pending.masks += u64::from(self.period.holds(time));
    }

    fn add_usage(&mut self, usage: &Usage, after: u64, time: u64) -> Result<(), LogError> {
        self.has_cache |= usage.cached > 0;
        // Further requests for the same reply are look-ups: unfolded there would have been none.
        let is_request = usage.purpose == Purpose::Reply && self.answered != Some(after);
        let unfolded = if is_request {
            self.answered = Some(after);
            Some(self.unfold(usage, after)?)
        } else {
            None
        };
        if !self.period.holds(time) {
            return Ok(());
        }
        let ModelRates { prices, window } = (self.facts)(&usage.model);
        let row = self
            .rows
            .entry((day(time), usage.model.clone()))
            .or_default();
        let tokens = usage.tokens.saturating_sub(usage.output);
        // A call without a recorded cost was free, or of a model without known prices: both sides leave it out.
        let prices = prices.filter(|_| usage.cost > 0);
        let is_priced = prices.is_some() || unfolded.is_none();
        row.gain.sent += Spending {
            tokens,
            cached: usage.cached,
            cost: if is_priced {
                usage.cost as f64 / 1e6
            } else {
                0.0
            },
        };
        let Some(unfolded) = unfolded else {
            return Ok(());
        };
        row.gain += std::mem::take(&mut self.pending);
        row.gain.requests += 1;
        row.gain.unfolded.tokens += unfolded.tokens;
        row.gain.overflows += u64::from(window.is_some_and(|window| unfolded.tokens > window));
        row.unfolded_cached += unfolded.cached;
        match prices {
            Some(prices) => {
                row.cost_with_cache += cost(prices, unfolded.tokens, unfolded.cached, usage.output);
                let plain =
                    unfolded.tokens as f64 * prices.input + usage.output as f64 * prices.output;
                row.cost_without_cache += plain / 1e6;
            }
            None => row.gain.unpriced += 1,
        }
        Ok(())
    }

    /// Computes the unfolded form of the request that a reply answers.
    fn unfold(&mut self, usage: &Usage, after: u64) -> Result<Unfolded, LogError> {
        let shown = self.state.shown();
        let mut path = shown.path();
        let all = self.tokens_of(&path)?;
        let view = View::of(shown, self.log)?.tokens();
        // A reply that was recorded beside the path is not part of the request.
        if shown.last().map(Seq::get) == Some(after) {
            self.take_reply_off(&mut path)?;
        }
        let history = self.tokens_of(&path)?;
        let reply = all - history;
        let unfolded = history + usage.frame;
        let counted = view.saturating_sub(reply) + usage.frame;
        let sent = usage.tokens.saturating_sub(usage.output);
        let is_whole = counted == unfolded;
        let factor = self.factors.entry(usage.model.clone()).or_default();
        if is_whole {
            factor.reported += sent;
            factor.counted += counted;
        }
        let factor = factor
            .value()
            .unwrap_or(sent as f64 / counted.max(1) as f64);
        let scaled = |tokens: u64| (tokens as f64 * factor).round() as u64;
        let cached = match &self.previous {
            Some(previous) => scaled(self.tokens_of(&common_start(previous, &path))? + usage.frame),
            None => 0,
        };
        self.previous = Some(path);
        let tokens = if is_whole { sent } else { scaled(unfolded) };
        Ok(Unfolded {
            tokens,
            cached: cached.min(tokens),
        })
    }

    /// Takes the messages of a reply off the end of the path.
    fn take_reply_off(&self, path: &mut Vec<Span>) -> Result<(), LogError> {
        while let Some(run) = path.pop() {
            let mut last = Some(run.to());
            while let Some(seq) = last.filter(|seq| *seq >= run.from()) {
                if self.log.record(seq)?.role != Role::Assistant {
                    path.extend(Span::new(run.from(), seq));
                    return Ok(());
                }
                last = seq.prev();
            }
        }
        Ok(())
    }

    fn tokens_of(&self, path: &[Span]) -> Result<u64, LogError> {
        let mut sum = 0;
        for run in path {
            let before = match run.from().prev() {
                Some(seq) => self.log.record(seq)?.sums.tokens,
                None => 0,
            };
            sum += self.log.record(run.to())?.sums.tokens - before;
        }
        Ok(sum)
    }

    fn finish(mut self) -> BTreeMap<GainKey, Gain> {
        if let Some(mut last) = self.rows.last_entry() {
            last.get_mut().gain += self.pending;
        }
        let has_cache = self.has_cache;
        let rows = self.rows.into_iter().map(|(key, row)| {
            let mut gain = row.gain;
            // A provider that caches nothing would not have cached more.
            (gain.unfolded.cached, gain.unfolded.cost) = if has_cache {
                (row.unfolded_cached, row.cost_with_cache)
            } else {
                (0, row.cost_without_cache)
            };
            (key, gain)
        });
        rows.collect()
    }
}

/// Returns the cost in dollars of a request and its reply; tokens outside of the cache are written to it.
fn cost(prices: Prices, tokens: u64, cached: u64, output: u64) -> f64 {
    let fresh = tokens.saturating_sub(cached) as f64;
    let sum = cached as f64 * prices.cached + fresh * prices.write + output as f64 * prices.output;
    sum / 1e6
}

/// Returns the day of a time, in UTC.
fn day(time: u64) -> Date {
    let time = i64::try_from(time).ok();
    let time = time.and_then(|time| Timestamp::from_millisecond(time).ok());
    time.unwrap_or_default().to_zoned(TimeZone::UTC).date()
}

/// Returns the messages that two paths begin with.
fn common_start(one: &[Span], other: &[Span]) -> Vec<Span> {
    let mut common = Vec::new();
    for (one, other) in one.iter().zip(other) {
        if one.from() != other.from() {
            break;
        }
        let to = one.to().min(other.to());
        common.extend(Span::new(one.from(), to));
        if one.to() != other.to() {
            break;
        }
    }
    common
}
