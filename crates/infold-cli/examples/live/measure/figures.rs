//! The figures of one session, or of all.

use serde_json::{Value, json};

use super::proxy::Folds;
use super::terms::{Recall, Share};

/// The figures measured at one window.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Messages of the session.
    pub messages: u64,
    /// Requests that the client sent.
    pub requests: u64,
    /// Requests that the upstream refused as too long; the proxy may have sent another one instead.
    pub refused: u64,
    /// Requests that the client got no reply to.
    pub failed: u64,
    /// The folds of the proxy.
    pub folds: Folds,
    /// Requests that do not begin with all of the request before.
    pub breaks: u64,
    /// The references of next messages to messages that were hidden from the model, and those of them that stand-ins
    /// held.
    pub recall: Recall,
    /// Share of the window that each request filled that something was folded for.
    pub after_folds: Vec<f64>,
    /// The same for the last request; of several sessions, one each.
    pub at_end: Vec<f64>,
    /// The tokens that were sent.
    pub tokens: u64,
    /// The tokens in a prompt cache.
    pub cached: u64,
    /// The tokens of replies.
    pub output: u64,
    /// The cost of all this in dollars.
    pub cost: f64,
    /// Tokens of the same requests as the client wrote them.
    pub unfolded: u64,
    /// The figures of `infold gain` for the same requests.
    pub gain: Gain,
    /// The proxy's estimate for each request, relative to the upstream's count.
    pub estimates: Vec<f64>,
    /// The references in view at some points: live, and folded in one go.
    pub points: Vec<Point>,
}

/// The figures of `infold gain` for a session, or for all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gain {
    /// Tokens sent.
    pub sent: u64,
    /// The part of them in the cache.
    pub cached: u64,
    /// Their cost in dollars.
    pub cost: f64,
    /// Tokens of the same requests unfolded.
    pub unfolded: u64,
}

/// The references in view at one point of a session.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// The position in the session.
    pub percent: u64,
    /// Of the request that the proxy sent.
    pub live: InView,
    /// For the history up to there folded once; of several sessions, only those where it fits.
    pub one_go: InView,
}

/// The references needed later that a request shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InView {
    /// The number of requests in this sum.
    pub requests: u64,
    /// Their tokens, without system prompt and tools.
    pub tokens: u64,
    /// Tokens of all that is not of the session: summaries, markers, stubs, excerpts.
    pub stand_in_tokens: u64,
    /// The references that the rest of the session needs, and those of them that are shown unchanged or in a stand-in.
    pub there: Recall,
    /// The needed references that are not shown unchanged, and those of them in stand-ins.
    pub recall: Recall,
    /// The newest typed requests that fit a quarter of the window, and those of them that are shown completely.
    pub verbatim: Share,
}

impl Figures {
    /// Adds another session.
    pub fn add(&mut self, other: &Figures) {
        self.messages += other.messages;
        self.requests += other.requests;
        self.refused += other.refused;
        self.failed += other.failed;
        self.folds.add(other.folds);
        self.breaks += other.breaks;
        self.recall.add(other.recall);
        self.after_folds.extend(&other.after_folds);
        self.at_end.extend(&other.at_end);
        self.tokens += other.tokens;
        self.cached += other.cached;
        self.output += other.output;
        self.cost += other.cost;
        self.unfolded += other.unfolded;
        self.gain.sent += other.gain.sent;
        self.gain.cached += other.gain.cached;
        self.gain.cost += other.gain.cost;
        self.gain.unfolded += other.gain.unfolded;
        self.estimates.extend(&other.estimates);
        for point in &other.points {
            match self
                .points
                .iter_mut()
                .find(|known| known.percent == point.percent)
            {
                Some(known) => {
                    known.live.add(point.live);
                    known.one_go.add(point.one_go);
                }
                None => self.points.push(point.clone()),
            }
        }
    }

    /// Returns all figures as one object.
    pub fn json(&self) -> Value {
        json!({
            "messages": self.messages,
            "requests": self.requests,
            "refused": self.refused,
            "failed": self.failed,
            "tasks": self.folds.tasks,
            "passes": self.folds.passes,
            "summaries": self.folds.summaries,
            "windows": self.folds.windows,
            "masks": self.folds.masks,
            "prefix_breaks": self.breaks,
            "references": share(self.recall.references),
            "words": share(self.recall.words),
            "fill_after_folds": {"mean": mean(&self.after_folds), "min": least(&self.after_folds)},
            "fill_at_end": mean(&self.at_end),
            "tokens": self.tokens,
            "cached": self.cached,
            "output": self.output,
            "cost": self.cost,
            "unfolded": self.unfolded,
            "gain": {
                "sent": self.gain.sent, "cached": self.gain.cached, "cost": self.gain.cost, "unfolded": self.gain.unfolded,
            },
            "estimate": mean(&self.estimates),
            "points": self.points.iter().map(Point::json).collect::<Vec<_>>(),
        })
    }
}

impl Point {
    fn json(&self) -> Value {
        json!({"percent": self.percent, "live": self.live.json(), "one_go": self.one_go.json()})
    }
}

impl InView {
    fn add(&mut self, other: InView) {
        self.requests += other.requests;
        self.tokens += other.tokens;
        self.stand_in_tokens += other.stand_in_tokens;
        self.there.add(other.there);
        self.recall.add(other.recall);
        self.verbatim.add(other.verbatim);
    }

    fn json(&self) -> Value {
        json!({
            "requests": self.requests,
            "tokens": self.tokens,
            "stand_in_tokens": self.stand_in_tokens,
            "references_in_view": share(self.there.references),
            "words_in_view": share(self.there.words),
            "references": share(self.recall.references),
            "words": share(self.recall.words),
            "typed_verbatim": share(self.verbatim),
        })
    }
}

fn share(share: Share) -> Value {
    json!({"kept": share.kept, "wanted": share.wanted})
}

/// The mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The least; none of nothing.
pub fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}
