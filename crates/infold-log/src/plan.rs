//! Decides what a pass of `manage` folds: how much of the end of a conversation stays, and which rounds and parts of messages
//! are hidden.
//!
//! Everything here is computed from records, so that no message is read from disk. Nothing is changed: the caller turns the
//! result into events.

use std::collections::BTreeMap;

use crate::budget::share;
use crate::floor::{first_above, sums_before};
use crate::steer::{self, Cover, Refused};
use crate::unit::{last_unit, pinned_rounds};
use crate::view::round_members;
use crate::{Cause, EventId, Floor, Item, Past, Seq, Size, Span, State, Sums, View};

/// The sizes of the parts of a view that cannot be folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FloorSize {
    /// The system prompt.
    pub system: Size,
    /// The first request.
    pub request: Size,
    /// The notes that every view contains.
    pub notes: Size,
    /// Pinned rounds.
    pub pins: Size,
    /// The last round, with the rounds that it is tied to.
    pub last: Size,
}

impl FloorSize {
    /// Measures the parts of the view that cannot be folded.
    pub fn of<P: Past>(state: &State, past: &P) -> Result<FloorSize, P::Error> {
        let shown = state.shown();
        let floor = Floor::of(shown, past)?;
        let path = shown.path();
        let mut size = FloorSize::default();
        for seq in floor.seqs() {
            let part = if floor.request() == Some(*seq) {
                &mut size.request
            } else {
                &mut size.system
            };
            add(part, weigh(Span::one(*seq), past)?);
        }
        size.notes.tokens = shown.notes().map(|(_, tokens)| tokens).sum();
        let mut kept: BTreeMap<Seq, Vec<Seq>> = BTreeMap::new();
        let pinned = pinned_rounds(shown, past)?;
        for &round in &pinned {
            kept.insert(round, round_members(round, path.iter().copied(), past)?);
        }
        // The end of the view may be folded. Its last round then counts, too: it may still continue.
        let last = match (last_unit(shown, past)?, shown.last()) {
            (Some(start), _) => Some(start),
            (None, Some(tip)) => Some(past.record(tip)?.round),
            (None, None) => None,
        };
        if let Some(last) = last {
            kept.retain(|round, _| *round < last);
            let ends = path
                .iter()
                .filter_map(|run| Span::new(run.from().max(last), run.to()));
            kept.insert(last, ends.flat_map(Span::seqs).collect());
        }
        for (round, members) in kept {
            let part = if Some(round) == last {
                &mut size.last
            } else {
                &mut size.pins
            };
            for seq in members {
                if !floor.holds(seq) {
                    let mut whole = weigh(Span::one(seq), past)?;
                    // Pinned rounds are shown without masks.
                    let is_pinned = pinned.contains(&past.record(seq)?.round);
                    let masks = shown.masks(Span::one(seq)).filter(|_| !is_pinned);
                    for (_, _, mask) in masks {
                        whole.tokens = whole.tokens.saturating_sub(mask.hides) + mask.tokens;
                        // The records do not contain the bytes that a mask leaves: zero is a safe lower bound.
                        whole.bytes = 0;
                    }
                    for (_, recall) in shown.recalls(Span::one(seq)) {
                        whole.tokens += recall.tokens;
                    }
                    add(part, whole);
                }
            }
        }
        Ok(size)
    }

    /// Returns the size of all parts together.
    pub fn total(&self) -> Size {
        let mut total = self.fixed();
        add(&mut total, self.last);
        total
    }

    /// Returns the size without the last round, which can be folded as soon as another round follows it.
    pub fn fixed(&self) -> Size {
        let mut fixed = Size::default();
        for part in [self.system, self.request, self.notes, self.pins] {
            add(&mut fixed, part);
        }
        fixed
    }

    /// Returns the size of each part, with its name for error texts.
    pub fn parts(&self) -> [(&'static str, Size); 5] {
        [
            ("system prompt", self.system),
            ("first request", self.request),
            ("notes", self.notes),
            ("pinned rounds", self.pins),
            ("last round", self.last),
        ]
    }
}

fn add(part: &mut Size, more: Size) {
    part.tokens += more.tokens;
    part.bytes += more.bytes;
}

/// Returns the size of the messages of a span as they came, without masks and recalls.
pub fn weigh<P: Past>(span: Span, past: &P) -> Result<Size, P::Error> {
    let (before, after) = (
        sums_before(span.from(), past)?,
        past.record(span.to())?.sums,
    );
    Ok(difference(before, after))
}

fn difference(before: Sums, after: Sums) -> Size {
    Size {
        tokens: after.tokens - before.tokens,
        bytes: after.bytes - before.bytes,
    }
}

/// Visits the user's requests in order: those in view and those under folds, but not those that a rewind hid.
///
/// Takes time in the number of requests, not of messages.
pub fn requests<P: Past>(
    state: &State,
    past: &P,
    mut visit: impl FnMut(Seq) -> Result<(), P::Error>,
) -> Result<(), P::Error> {
    for run in state.shown().path() {
        let mut rest = Some(run);
        while let Some(span) = rest {
            let before = sums_before(span.from(), past)?.requests;
            let Some(found) = first_above(span, before, |sums| sums.requests, past)? else {
                break;
            };
            visit(found)?;
            rest = Span::new(found.next(), run.to());
        }
    }
    Ok(())
}

/// How much of the end of a conversation a fold leaves as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// A number of messages, rounded up to whole rounds.
    Messages(u64),
    /// A number of rounds.
    Rounds(u64),
    /// A share of the visible bytes. The part that stays starts at a request; it is only the last round if there is no
    /// request in that share.
    Share(f64),
    /// A number of tokens, and a minimum of messages, which stay even if they have up to twice as many tokens.
    Tokens(u64, u64),
}

/// Returns the first message of the tail, which is the part at the end that stays: at least the last round, and as much of
/// `keep` as fits into `room` tokens.
///
/// None if the view is empty or ends with a stand-in.
pub fn tail<P: Past>(
    state: &State,
    keep: Keep,
    room: u64,
    past: &P,
) -> Result<Option<Seq>, P::Error> {
    let mut tail: Option<Seq> = None;
    let mut request: Option<Seq> = None;
    let all: u64 = match keep {
        Keep::Share(_) => shown_bytes(state, past)?,
        Keep::Messages(_) | Keep::Rounds(_) | Keep::Tokens(..) => 0,
    };
    let mut kept = Size::default();
    let (mut messages, mut rounds) = (0, 0);
    visit_units_backwards(state, past, |unit| {
        let with = Size {
            tokens: kept.tokens + unit.size.tokens,
            bytes: kept.bytes + unit.size.bytes,
        };
        let wanted = match keep {
            Keep::Messages(count) => messages < count,
            Keep::Rounds(count) => rounds < count,
            Keep::Share(part) => with.bytes <= share(all, part),
            Keep::Tokens(most, count) => {
                with.tokens <= most || messages < count && with.tokens <= most.saturating_mul(2)
            }
        };
        if tail.is_some() && !(wanted && with.tokens <= room) {
            return false;
        }
        kept = with;
        messages += unit.messages;
        rounds += 1;
        tail = Some(unit.start);
        if unit.is_request {
            request = Some(unit.start);
        }
        true
    })?;
    Ok(match keep {
        Keep::Share(_) => request.or(match tail {
            Some(_) => last_round(state, past)?,
            None => None,
        }),
        Keep::Messages(_) | Keep::Rounds(_) | Keep::Tokens(..) => tail,
    })
}

/// Returns the first message of the last round, or of the earliest round that it is tied to. None if the view is empty or
/// ends with a stand-in.
pub fn last_round<P: Past>(state: &State, past: &P) -> Result<Option<Seq>, P::Error> {
    last_unit(state.shown(), past)
}

/// Returns the bytes of the messages that no fold covers.
fn shown_bytes<P: Past>(state: &State, past: &P) -> Result<u64, P::Error> {
    let mut bytes = 0;
    for item in state.shown().items() {
        if let Item::Run(run) = item {
            bytes += weigh(*run, past)?.bytes;
        }
    }
    Ok(bytes)
}

/// A visible round, or several that are tied to each other and so are folded together.
struct Unit {
    start: Seq,
    size: Size,
    messages: u64,
    /// Whether it is a single message that is a request of the user.
    is_request: bool,
}

/// Visits the rounds at the end of the view, those that are tied together at once, the last one first: up to the newest
/// fold, or until the visitor returns `false`.
fn visit_units_backwards<P: Past>(
    state: &State,
    past: &P,
    mut visit: impl FnMut(Unit) -> bool,
) -> Result<(), P::Error> {
    // The size and number of the messages read since the last visit. They wait for an earlier message of their round, which
    // lies in another run if a rewind hid messages in its middle, or for the round that they are tied to.
    let mut later = (Size::default(), 0);
    let mut tied: Option<Seq> = None;
    let mut start = None;
    for item in state.shown().items().iter().rev() {
        let Item::Run(run) = item else { break };
        let mut end = Some(run.to());
        while let Some(to) = end.filter(|to| *to >= run.from()) {
            let record = past.record(to)?;
            let round = record.round;
            tied = tied.into_iter().chain([record.tied]).min();
            let from = round.max(run.from());
            let span = Span::new(from, to).expect("a round starts no later than it ends");
            let (before, after) = (sums_before(from, past)?, past.record(to)?.sums);
            add(&mut later.0, difference(before, after));
            later.1 += span.count();
            end = from.prev();
            start = Some(from);
            for (_, _, mask) in state.shown().masks(span) {
                later.0.tokens = later.0.tokens.saturating_sub(mask.hides) + mask.tokens;
            }
            for (_, recall) in state.shown().recalls(span) {
                later.0.tokens += recall.tokens;
            }
            if tied.is_some_and(|tied| tied < from) {
                continue;
            }
            (start, tied) = (None, None);
            let (size, messages) = std::mem::take(&mut later);
            let is_request = messages == 1 && after.requests > before.requests;
            if !visit(Unit {
                start: round,
                size,
                messages,
                is_request,
            }) {
                return Ok(());
            }
        }
    }
    // A fold hides the rounds that the remaining ones are tied to.
    if let (Some(start), (size, messages)) = (start, later) {
        visit(Unit {
            start,
            size,
            messages,
            is_request: false,
        });
    }
    Ok(())
}

/// Returns the cover for condensing everything before `tail`; none if that contains no message outside of folds.
pub fn before_tail<P: Past>(
    state: &State,
    tail: Seq,
    past: &P,
) -> Result<Option<Cover>, Refused<P::Error>> {
    let cover = cover_before(state, tail, past)?;
    // A summary of stand-ins alone would add nothing to them.
    Ok(cover.filter(|cover| {
        state.shown().items().iter().any(|item| match item {
            Item::Run(run) => run.meet(cover.span).is_some(),
            Item::Fold(_) => false,
        })
    }))
}

/// Returns the cover of a fold over everything before `tail`, stand-ins included; none if nothing there can be folded.
fn cover_before<P: Past>(
    state: &State,
    tail: Seq,
    past: &P,
) -> Result<Option<Cover>, Refused<P::Error>> {
    let first = state.shown().items().first().map(|item| item.span().from());
    let span = first
        .zip(tail.prev())
        .and_then(|(from, to)| Span::new(from, to));
    let Some(span) = span else {
        return Ok(None);
    };
    match steer::cover(state, span, past) {
        Ok(cover) => Ok(Some(cover)),
        Err(Refused::Nothing { .. } | Refused::Elsewhere { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Returns the covers of the window folds after which `fits` accepts the view. `marker` is the size of a stand-in in tokens.
///
/// Each step hides the older half of the visible rounds, so few steps suffice; when no round is left to hide, everything up
/// to the last round becomes one fold, stand-ins included. No cover contains another. If the view cannot be made to fit, the
/// covers are returned only if they make it smaller.
///
/// The loop ends, because every step hides a round or a stand-in that was visible.
pub fn to_hide<P: Past>(
    state: &State,
    marker: u64,
    fits: impl Fn(&View) -> Result<bool, P::Error>,
    past: &P,
) -> Result<Vec<Cover>, Refused<P::Error>> {
    let before = View::of(state.shown(), past)?.tokens();
    let mut imagined = state.clone();
    let mut covers: Vec<Cover> = Vec::new();
    let mut fitted = false;
    while !fitted {
        let next = match steer::oldest(&imagined, 0.5, past) {
            Err(Refused::Nothing { .. }) => cover_before_last_round(&imagined, past)?,
            found => Some(found?),
        };
        let Some(cover) = next.filter(|next| covers.iter().all(|found| found.span != next.span))
        else {
            break;
        };
        // The new cover replaces those inside it.
        covers.retain(|found| found.span.meet(cover.span) != Some(found.span));
        covers.push(cover);
        let id = imagined.next_event();
        let event = steer::folded(Cause::Window, &cover, marker);
        imagined.event(&event, Some(id), 0, past)?;
        fitted = fits(&View::of(imagined.shown(), past)?)?;
    }
    let after = View::of(imagined.shown(), past)?.tokens();
    covers.retain(|_| fitted || after < before);
    Ok(covers)
}

/// Returns the cover of everything between the floor and the last round, summaries included.
fn cover_before_last_round<P: Past>(
    state: &State,
    past: &P,
) -> Result<Option<Cover>, Refused<P::Error>> {
    match last_round(state, past)? {
        Some(last) => cover_before(state, last, past),
        None => Ok(None),
    }
}

/// A part of a message that could be shown as a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maskable {
    /// The message.
    pub seq: Seq,
    /// The index of the part in the message.
    pub part: u32,
    /// Whether it is an image: images are masked to free bytes, even new or small ones.
    pub image: bool,
    /// Its size.
    pub size: Size,
    /// A hash of its contents, to find parts that repeat others.
    pub same: u64,
}

/// The limits of masking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masking {
    /// The newest parts, up to this many tokens together, are not masked. Exceptions are parts that a later one repeats, and
    /// images while bytes must be freed.
    pub safe: u64,
    /// The approximate tokens of a stub.
    pub stub: u64,
    /// The size that has to be freed for the view to fit.
    pub need: Size,
}

/// Chooses the parts to mask, and no more than is needed. `parts` are in the order of the log.
///
/// Parts that a later one repeats are chosen first, because the model loses nothing; then the oldest ones. Empty if no part is
/// worth a stub.
pub fn choose(parts: &[Maskable], masking: Masking) -> Vec<Maskable> {
    // The last occurrence of each content.
    let mut newest = std::collections::HashMap::new();
    for (at, part) in parts.iter().enumerate() {
        newest.insert(part.same, at);
    }
    let mut output = 0;
    let mut repeats = Vec::new();
    let mut old = Vec::new();
    for (at, part) in parts.iter().enumerate().rev() {
        output += part.size.tokens;
        if newest[&part.same] != at {
            repeats.push(*part);
        } else if output > masking.safe || part.image && masking.need.bytes > 0 {
            old.push(*part);
        }
    }
    let mut gained = Size::default();
    let mut chosen = Vec::new();
    for part in repeats.into_iter().rev().chain(old.into_iter().rev()) {
        let needs_tokens = gained.tokens < masking.need.tokens;
        let needs_bytes = gained.bytes < masking.need.bytes;
        let is_worth_it = part.size.tokens > 2 * masking.stub || part.image && needs_bytes;
        if is_worth_it && (needs_tokens || needs_bytes) {
            gained.tokens += part.size.tokens.saturating_sub(masking.stub);
            gained.bytes += part.size.bytes;
            chosen.push(part);
        }
    }
    chosen.sort_unstable_by_key(|part| (part.seq, part.part));
    chosen
}

/// Says whether a step was undone. The steps in force form a chain from the newest back; an undone step is not in it.
pub fn is_undone<P: Past>(state: &State, step: EventId, past: &P) -> Result<bool, P::Error> {
    let mut at = state.step();
    while let Some(found) = at.filter(|found| *found >= step) {
        if found == step {
            return Ok(false);
        }
        at = match found.prev() {
            Some(previous) => past.mark(previous)?.step,
            None => None,
        };
    }
    Ok(true)
}
