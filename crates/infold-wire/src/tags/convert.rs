//! Converts tags to the folds that they represent, and back.

use std::collections::{BTreeSet, HashMap};

use infold_log::{Cause, Seq, Span};

use super::{TagId, TagKind, Tagged};

/// A tagged array as its conversation and the folds over it.
#[derive(Clone, Debug, Default)]
pub struct UntaggedHistory {
    /// The messages in order, their seqs counted from one, without tags.
    pub messages: Vec<Tagged>,
    /// The folds, in the order in which they were made.
    pub folds: Vec<TagFold>,
}

/// A fold that tags represent.
#[derive(Clone, Debug)]
pub struct TagFold {
    /// The id its tags carry.
    pub id: TagId,
    /// Condensed or truncated.
    pub cause: Cause,
    /// The covered messages, with whole folds made before it; the engine widens the range to rounds.
    ///
    /// `None` if no message carries its tag, or if it is a marker over messages that earlier folds hide already: as an
    /// event it would hide a summary without need.
    pub covers: Option<Span>,
    /// The index in the list of the fold that covers this one; it was made later.
    pub inside: Option<usize>,
    /// The stand-in for the covered messages, without its own tags.
    pub stand_in: Tagged,
    layout: Option<FoldLayout>,
}

/// The positions of a fold's stand-in and tags in an array.
#[derive(Clone, Debug, Default)]
struct FoldLayout {
    /// The number of messages before the stand-in.
    after: u64,
    /// The position of the stand-in among those after the same message.
    at: usize,
    /// The entries that carry its tag as their only or first one.
    first: TagCarriers,
    /// The entries that carry its tag as their second one.
    second: TagCarriers,
}

/// Entries that carry the tag of a fold.
#[derive(Clone, Debug, Default)]
struct TagCarriers {
    messages: Vec<Span>,
    /// The folds whose stand-ins carry it.
    folds: Vec<usize>,
}

impl TagFold {
    /// Returns a fold over `covers`, to be written as tags.
    pub fn new(id: TagId, cause: Cause, covers: Span, stand_in: Tagged) -> TagFold {
        TagFold {
            id,
            cause,
            covers: Some(covers),
            inside: None,
            stand_in,
            layout: None,
        }
    }
}

/// Splits a tagged array into its messages and its folds.
///
/// Stand-ins become folds, everything else is a message. Nothing is lost in any array. If its tags are not those of
/// condensing and truncating:
///
/// - A tag without a stand-in hides nothing and is removed.
/// - A stand-in without an id, or with the id of an earlier one, is a message.
/// - An entry flagged as both is a summary; tags with its marker's id have no stand-in.
/// - A fold covers the messages from the first that carries its tag to the last.
/// - Of folds that would be nested, the one whose stand-in comes first is the inner one.
pub fn from_tags(array: &[Tagged]) -> UntaggedHistory {
    let sorted = TaggedArray::of(array);
    let mut folds = sorted.folds();
    let mut outermost = Vec::new();
    for at in 0..folds.len() {
        set_cover(&mut folds, at, &mut outermost);
    }
    let entries = array.iter().zip(&sorted.entries);
    let messages = entries.filter(|(_, entry)| matches!(entry, ArrayEntry::Message(_)));
    UntaggedHistory {
        messages: messages.map(|(message, _)| message.untagged()).collect(),
        folds,
    }
}

/// Writes folds into a conversation as tags.
///
/// Restores the result of [`from_tags`], with stand-ins in their places; only a tag that was not at the end of its
/// message moves there. A fold from another source tags all covered messages that have no tag of its kind yet, inner
/// stand-ins too, and its stand-in is put behind them.
pub fn to_tags(messages: &[Tagged], folds: &[TagFold]) -> Vec<Tagged> {
    let mut messages = messages.to_vec();
    let mut stand_ins: Vec<Tagged> = folds.iter().map(|fold| fold.stand_in.clone()).collect();
    for is_first in [true, false] {
        for fold in folds {
            if let Some(layout) = &fold.layout {
                let carriers = if is_first {
                    &layout.first
                } else {
                    &layout.second
                };
                carriers.tag(fold, &mut messages, &mut stand_ins);
            }
        }
    }
    let mut places = Vec::new();
    for (number, fold) in folds.iter().enumerate() {
        let layout = fold.layout.clone().unwrap_or_else(|| {
            let layout = FoldLayout::plan(number, folds, &messages, &stand_ins);
            layout.first.tag(fold, &mut messages, &mut stand_ins);
            layout
        });
        places.push((layout.after, layout.at, number));
    }
    places.sort_unstable();
    merge_stand_ins(messages, &stand_ins, &places)
}

impl TagCarriers {
    fn tag(&self, fold: &TagFold, messages: &mut [Tagged], stand_ins: &mut [Tagged]) {
        let kind = TagKind::from(fold.cause);
        for seq in self.messages.iter().copied().flat_map(Span::seqs) {
            if let Some(message) = messages.get_mut(index(seq)) {
                message.tag(kind, &fold.id);
            }
        }
        for inner in &self.folds {
            if let Some(stand_in) = stand_ins.get_mut(*inner) {
                stand_in.tag(kind, &fold.id);
            }
        }
    }
}

/// Puts stand-ins between the messages; each place ends with the number of its stand-in.
fn merge_stand_ins(
    messages: Vec<Tagged>,
    stand_ins: &[Tagged],
    places: &[(u64, usize, usize)],
) -> Vec<Tagged> {
    let mut array = Vec::with_capacity(messages.len() + stand_ins.len());
    let mut places = places.iter().peekable();
    for (message, before) in messages.into_iter().zip(0..) {
        while let Some((.., number)) = places.next_if(|(after, ..)| *after <= before) {
            array.push(stand_ins[*number].clone());
        }
        array.push(message);
    }
    array.extend(places.map(|(.., number)| stand_ins[*number].clone()));
    array
}

impl FoldLayout {
    fn first_message(&self) -> Option<Seq> {
        let runs = [&self.first, &self.second].map(|carriers| carriers.messages.first());
        runs.into_iter().flatten().map(|run| run.from()).min()
    }

    /// Returns the layout of a fold that was in no array yet.
    fn plan(
        number: usize,
        folds: &[TagFold],
        messages: &[Tagged],
        stand_ins: &[Tagged],
    ) -> FoldLayout {
        let kind = TagKind::from(folds[number].cause);
        let Some(span) = folds[number].covers else {
            return FoldLayout::default();
        };
        let mut first = TagCarriers::default();
        for seq in span.seqs() {
            let message = messages.get(index(seq));
            if message.is_some_and(|message| message.parent(kind).is_none()) {
                push_seq(&mut first.messages, seq);
            }
        }
        first.folds.extend((0..number).filter(|inner| {
            let covers = folds[*inner].covers;
            let is_within = covers.is_some_and(|inner| inner.meet(span) == Some(inner));
            is_within && stand_ins[*inner].parent(kind).is_none()
        }));
        FoldLayout {
            after: span.to().get(),
            at: number,
            first,
            second: TagCarriers::default(),
        }
    }
}

/// An entry of an array.
#[derive(Clone, Copy)]
enum ArrayEntry {
    Message(Seq),
    /// A stand-in, with its number among all stand-ins.
    StandIn(usize),
}

/// An array whose stand-ins are numbered, with the order in which their folds were made.
struct TaggedArray<'a> {
    array: &'a [Tagged],
    entries: Vec<ArrayEntry>,
    /// The stand-ins: kind and position in the array.
    stand_ins: Vec<(TagKind, usize)>,
    numbers: [HashMap<&'a TagId, usize>; 2],
    layouts: Vec<FoldLayout>,
    /// Pairs of stand-ins: the fold of the first was made before that of the second.
    earlier: BTreeSet<(usize, usize)>,
}

impl<'a> TaggedArray<'a> {
    fn of(array: &'a [Tagged]) -> TaggedArray<'a> {
        let mut sorted = TaggedArray {
            array,
            entries: Vec::with_capacity(array.len()),
            stand_ins: Vec::new(),
            numbers: [HashMap::new(), HashMap::new()],
            layouts: Vec::new(),
            earlier: BTreeSet::new(),
        };
        let mut next = Seq::FIRST;
        for (at, message) in array.iter().enumerate() {
            let entry = sorted.add_stand_in(message, at, next).unwrap_or_else(|| {
                let seq = next;
                next = next.next();
                ArrayEntry::Message(seq)
            });
            sorted.entries.push(entry);
        }
        for (at, message) in array.iter().enumerate() {
            sorted.add_tags(sorted.entries[at], message);
        }
        let windows = sorted.compare_windows();
        sorted.compare_kinds(TagKind::Summary, &windows);
        let summaries = sorted.of_kind(TagKind::Summary);
        sorted.compare_kinds(TagKind::Window, &summaries);
        sorted
    }

    /// Numbers the fold of an entry, unless an earlier entry represents it.
    fn add_stand_in(&mut self, message: &'a Tagged, at: usize, next: Seq) -> Option<ArrayEntry> {
        let stands = |kind: TagKind| Some((kind, message.stands_for(kind)?));
        let (kind, id) = TagKind::ALL.into_iter().find_map(stands)?;
        let number = self.stand_ins.len();
        let numbers = &mut self.numbers[kind as usize];
        if numbers.contains_key(id) {
            return None;
        }
        numbers.insert(id, number);
        self.stand_ins.push((kind, at));
        let after = next.get() - 1;
        self.layouts.push(FoldLayout {
            after,
            at,
            ..FoldLayout::default()
        });
        Some(ArrayEntry::StandIn(number))
    }

    /// Records which folds hide an entry.
    fn add_tags(&mut self, entry: ArrayEntry, message: &Tagged) {
        let tags = message.tags().into_iter();
        let folds: Vec<usize> = tags.filter_map(|kind| self.parent(message, kind)).collect();
        if let [first, second] = folds[..] {
            self.earlier.insert((first, second));
        }
        for (nth, fold) in folds.into_iter().enumerate() {
            let layout = &mut self.layouts[fold];
            let carriers = if nth == 0 {
                &mut layout.first
            } else {
                &mut layout.second
            };
            match entry {
                ArrayEntry::Message(seq) => push_seq(&mut carriers.messages, seq),
                ArrayEntry::StandIn(inner) if inner != fold => {
                    carriers.folds.push(inner);
                    self.earlier.insert((inner, fold));
                }
                ArrayEntry::StandIn(_) => {}
            }
        }
    }

    /// Compares truncations, and returns them in their order.
    ///
    /// Each hides the oldest messages that the ones before it left. One that hides only stand-ins was made when all
    /// messages before its marker were hidden.
    fn compare_windows(&mut self) -> Vec<usize> {
        let windows = self.of_kind(TagKind::Window);
        let first = |window: usize| self.layouts[window].first_message();
        let starts: BTreeSet<Seq> = windows.iter().filter_map(|at| first(*at)).collect();
        let mut order: Vec<(Option<Seq>, bool, usize)> = Vec::new();
        for window in windows {
            let marker = Seq::new(self.layouts[window].after);
            let last = marker.and_then(|marker| starts.range(..=marker).next_back().copied());
            let own = first(window);
            order.push((own.or(last), own.is_none(), window));
        }
        order.sort_unstable();
        let order: Vec<usize> = order.into_iter().map(|(.., window)| window).collect();
        let pairs = order.windows(2).map(|pair| (pair[0], pair[1]));
        self.earlier.extend(pairs);
        order
    }

    /// Compares folds of one kind with those of the other, whose order is given.
    ///
    /// A fold hides every stand-in of the other kind before its own that no fold of its own kind hides yet. So a
    /// stand-in that it does not hide did not exist yet.
    fn compare_kinds(&mut self, kind: TagKind, others: &[usize]) {
        for number in self.of_kind(kind) {
            let is_behind = |other: &&usize| **other > number;
            let hidden_by = self.parent(&self.array[self.stand_ins[number].1], kind.other());
            match hidden_by.map(|fold| others.iter().position(|other| *other == fold)) {
                None => {
                    let all = others.iter().filter(is_behind);
                    self.earlier.extend(all.map(|other| (*other, number)));
                }
                Some(Some(until)) => {
                    let last = others[..until].iter().rev().find(is_behind);
                    self.earlier.extend(last.map(|other| (*other, number)));
                }
                Some(None) => {}
            }
        }
    }

    fn of_kind(&self, wanted: TagKind) -> Vec<usize> {
        let numbers = 0..self.stand_ins.len();
        numbers
            .filter(|number| self.stand_ins[*number].0 == wanted)
            .collect()
    }

    /// Returns the fold of this kind that hides an entry.
    fn parent(&self, message: &Tagged, kind: TagKind) -> Option<usize> {
        self.numbers[kind as usize]
            .get(message.parent(kind)?)
            .copied()
    }

    /// Returns the stand-ins in the order in which their folds were made.
    fn order(&self) -> Vec<usize> {
        let mut blocked = vec![0; self.stand_ins.len()];
        for (_, later) in &self.earlier {
            blocked[*later] += 1;
        }
        let mut left: BTreeSet<usize> = (0..self.stand_ins.len()).collect();
        let ready = left.iter().copied().filter(|fold| blocked[*fold] == 0);
        let mut ready: BTreeSet<usize> = ready.collect();
        let mut order = Vec::new();
        // If none is ready, folds lie in each other: any order will do, so the first is next.
        while let Some(fold) = ready.pop_first().or_else(|| left.first().copied()) {
            left.remove(&fold);
            order.push(fold);
            for (_, later) in self.earlier.range((fold, 0)..(fold + 1, 0)) {
                blocked[*later] -= 1;
                if blocked[*later] == 0 && left.contains(later) {
                    ready.insert(*later);
                }
            }
        }
        order
    }

    /// Returns the folds in the order in which they were made, without their covered ranges.
    fn folds(&self) -> Vec<TagFold> {
        let order = self.order();
        let mut rank = vec![0; order.len()];
        for (at, number) in order.iter().enumerate() {
            rank[*number] = at;
        }
        let fold = |(at, number): (usize, &usize)| {
            let (kind, found) = self.stand_ins[*number];
            let mut layout = self.layouts[*number].clone();
            for carriers in [&mut layout.first, &mut layout.second] {
                let folds = &mut carriers.folds;
                folds.iter_mut().for_each(|fold| *fold = rank[*fold]);
                folds.retain(|inner| *inner < at);
            }
            let id = self.array[found].stands_for(kind);
            TagFold {
                id: id.expect("it was found by its id").clone(),
                cause: kind.into(),
                covers: None,
                inside: None,
                stand_in: self.array[found].untagged(),
                layout: Some(layout),
            }
        };
        order.iter().enumerate().map(fold).collect()
    }
}

/// Computes the range that fold `at` covers, given the outermost of those made before it.
fn set_cover(folds: &mut [TagFold], at: usize, outermost: &mut Vec<(Span, usize)>) {
    let Some(layout) = &folds[at].layout else {
        return;
    };
    let carriers = [&layout.first, &layout.second];
    let is_inner = |fold: usize| carriers.iter().any(|all| all.folds.contains(&fold));
    let inner = outermost.iter().filter(|(_, fold)| is_inner(*fold));
    let mut spans: Vec<Span> = inner.map(|(span, _)| *span).collect();
    let runs = || carriers.iter().flat_map(|all| &all.messages);
    let hides_nothing = spans.is_empty() && runs().all(|run| is_hidden(*run, outermost));
    if hides_nothing && folds[at].cause == Cause::Window {
        return;
    }
    spans.extend(runs());
    let Some(span) = hull(spans) else { return };
    let touches = |(inner, _): &(Span, usize)| inner.meet(span).is_some();
    let (inner, rest): (Vec<_>, Vec<_>) = outermost.drain(..).partition(touches);
    *outermost = rest;
    let whole = hull(inner.iter().map(|(span, _)| *span).chain([span]));
    folds[at].covers = whole;
    outermost.extend(whole.map(|span| (span, at)));
    for (_, inner) in inner {
        folds[inner].inside = Some(at);
    }
}

/// Says whether folds cover all of a run.
fn is_hidden(run: Span, folds: &[(Span, usize)]) -> bool {
    let mut next = run.from();
    while next <= run.to() {
        let Some((span, _)) = folds.iter().find(|(span, _)| span.holds(next)) else {
            return false;
        };
        next = span.to().next();
    }
    true
}

/// Returns the span from the first message of some spans to the last.
fn hull(spans: impl IntoIterator<Item = Span>) -> Option<Span> {
    spans.into_iter().reduce(|a, b| {
        Span::new(a.from().min(b.from()), a.to().max(b.to())).expect("it holds both spans")
    })
}

/// Adds a seq to the last run that it continues, or as a new run.
fn push_seq(runs: &mut Vec<Span>, seq: Seq) {
    match runs.last_mut() {
        Some(last) if last.to().next() == seq => {
            *last = Span::new(last.from(), seq).expect("a run grows at its end");
        }
        _ => runs.push(Span::one(seq)),
    }
}

/// Returns the index of the message `seq` in a list of all.
fn index(seq: Seq) -> usize {
    usize::try_from(seq.get() - 1).unwrap_or(usize::MAX)
}
