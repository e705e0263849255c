//! Decides which messages a pass of `manage` folds: sizes and choices, computed from records alone.

use std::collections::BTreeMap;

use crate::budget::share;
use crate::floor::{first_above, sums_before};
use crate::steer::{self, Cover, Refused};
use crate::unit::{last_unit, pinned_rounds};
use crate::view::round_members;
use crate::{Cause, EventId, Floor, Item, Past, Seq, Size, Span, State, Sums, View};

/// The sizes of the parts that cannot be folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FloorSize {
    /// The system prompt.
    pub system: Size,
    /// The first request.
    pub request: Size,
    /// Notes that every view carries.
    pub notes: Size,
    /// Pinned rounds.
    pub pins: Size,
    /// The last round.
    pub last: Size,
}

impl FloorSize {
    /// Measures the floor of the view.
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
        for round in pinned_rounds(shown, past)? {
            kept.insert(round, round_members(round, path.iter().copied(), past)?);
        }
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
                    for (_, _, mask) in shown.masks(Span::one(seq)) {
                        whole.tokens = whole.tokens.saturating_sub(mask.hides) + mask.tokens;
                        // How many bytes are left is not on record: no more is claimed than is sure.
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

    /// All of it.
    pub fn total(&self) -> Size {
        let mut total = self.fixed();
        add(&mut total, self.last);
        total
    }

    /// All but the last round, which is folded when it is the last no more.
    pub fn fixed(&self) -> Size {
        let mut fixed = Size::default();
        for part in [self.system, self.request, self.notes, self.pins] {
            add(&mut fixed, part);
        }
        fixed
    }

    /// Its parts by name.
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

/// Returns the size of messages as they came.
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

/// Visits the user's requests in the visible messages, those under folds included, in order.
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
    /// A number of messages, widened to rounds.
    Messages(u64),
    /// A number of rounds.
    Rounds(u64),
    /// A share of the visible bytes; the tail starts at a request.
    Share(f64),
    /// A number of tokens, and a minimum of messages that counts as long as they take at most twice the tokens.
    Tokens(u64, u64),
}

/// Returns the first message of the tail that stays: at least the last round, and as much of the amount in
/// `keep` as `room` allows.
///
/// None if the view is empty or has only stand-ins.
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
    rounds_back(state, past, |round| {
        let with = Size {
            tokens: kept.tokens + round.size.tokens,
            bytes: kept.bytes + round.size.bytes,
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
        messages += round.messages;
        rounds += 1;
        tail = Some(round.start);
        if round.request {
            request = Some(round.start);
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

/// The first message of the last round that is shown, and of what is tied to it.
pub fn last_round<P: Past>(state: &State, past: &P) -> Result<Option<Seq>, P::Error> {
    last_unit(state.shown(), past)
}

fn shown_bytes<P: Past>(state: &State, past: &P) -> Result<u64, P::Error> {
    let mut bytes = 0;
    for item in state.shown().items() {
        if let Item::Run(run) = item {
            bytes += weigh(*run, past)?.bytes;
        }
    }
    Ok(bytes)
}

/// A round that is shown, or several that are tied together.
struct Round {
    start: Seq,
    size: Size,
    messages: u64,
    /// Whether it is a request of the user.
    request: bool,
}

/// Visits the rounds at the end of the view, the last one first, up to the newest fold or until the visitor
/// returns `false`.
fn rounds_back<P: Past>(
    state: &State,
    past: &P,
    mut more: impl FnMut(Round) -> bool,
) -> Result<(), P::Error> {
    // A round that a rewind cut in two lies in two runs, and one that is tied to an earlier one moves with it.
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
            let request = messages == 1 && after.requests > before.requests;
            if !more(Round {
                start: round,
                size,
                messages,
                request,
            }) {
                return Ok(());
            }
        }
    }
    // The rounds that these are tied to are hidden by a fold.
    if let (Some(start), (size, messages)) = (start, later) {
        more(Round {
            start,
            size,
            messages,
            request: false,
        });
    }
    Ok(())
}

/// Returns the cover for condensing everything before `tail`; none if it has nothing new.
pub fn before_tail<P: Past>(
    state: &State,
    tail: Seq,
    past: &P,
) -> Result<Option<Cover>, Refused<P::Error>> {
    let cover = up_to(state, tail, past)?;
    // A stand-in alone says all there is to say already.
    Ok(cover.filter(|cover| {
        state.shown().items().iter().any(|item| match item {
            Item::Run(run) => run.meet(cover.span).is_some(),
            Item::Fold(_) => false,
        })
    }))
}

/// Returns the cover of a fold over everything before `tail`.
fn up_to<P: Past>(state: &State, tail: Seq, past: &P) -> Result<Option<Cover>, Refused<P::Error>> {
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

/// Works out what to hide so that `fits` says the view does: the oldest rounds, half of
/// those visible, then half of the rest, and so on, summaries last. None of these covers
/// holds another; nothing is hidden that would not make the view smaller, or fit.
///
/// Ends, because every turn hides a round or a stand-in that was visible.
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
            Err(Refused::Nothing { .. }) => rest(&imagined, past)?,
            found => Some(found?),
        };
        let Some(cover) = next.filter(|next| covers.iter().all(|found| found.span != next.span))
        else {
            break;
        };
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

/// Everything between the floor and the last round, summaries too.
fn rest<P: Past>(state: &State, past: &P) -> Result<Option<Cover>, Refused<P::Error>> {
    match last_round(state, past)? {
        Some(last) => up_to(state, last, past),
        None => Ok(None),
    }
}

/// A part of a message that could be shown as a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maskable {
    /// The message.
    pub seq: Seq,
    /// Which of its parts.
    pub part: u32,
    /// Whether it is an image, which is masked for its bytes.
    pub image: bool,
    /// Its size.
    pub size: Size,
    /// A hash of its contents: equal parts have equal ones.
    pub same: u64,
}

/// The limits of masking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masking {
    /// The newest tool output up to so many tokens is not masked.
    pub safe: u64,
    /// The least tokens that must be gained to change the view.
    pub least: u64,
    /// The approximate tokens of a stub.
    pub stub: u64,
    /// The size that has to be freed.
    pub need: Size,
}

/// Chooses what to mask, oldest first, repeats before all else, and no more than is needed.
///
/// None if too little would be gained.
pub fn choose(parts: &[Maskable], masking: Masking) -> Option<Vec<Maskable>> {
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
        let short = gained.tokens < masking.need.tokens;
        let large = gained.bytes < masking.need.bytes;
        let worth = part.size.tokens > 2 * masking.stub || part.image && large;
        if worth && (short || large) {
            gained.tokens += part.size.tokens.saturating_sub(masking.stub);
            gained.bytes += part.size.bytes;
            chosen.push(part);
        }
    }
    let enough = gained.tokens >= masking.least || gained.bytes >= masking.need.bytes.max(1);
    chosen.sort_unstable_by_key(|part| (part.seq, part.part));
    (enough && !chosen.is_empty()).then_some(chosen)
}

/// Says whether a step was taken back: it is not among those that are in force.
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
