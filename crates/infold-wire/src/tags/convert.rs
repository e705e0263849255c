//! From tags to the folds they stand for, and back.

use std::collections::{BTreeSet, HashMap};

use infold_log::{Cause, Seq, Span};

use super::{Fold, TagId, Tagged};

/// A tagged array taken apart: the conversation, and the folds over it.
#[derive(Clone, Debug, Default)]
pub struct FromTags {
    /// The messages in order, their seqs counted from one, without tags.
    pub messages: Vec<Tagged>,
    /// The folds, in the order in which they were made.
    pub folds: Vec<TagFold>,
}

/// A fold that tags stand for.
#[derive(Clone, Debug)]
pub struct TagFold {
    /// The id its tags carry.
    pub id: TagId,
    /// Condensed or truncated.
    pub cause: Cause,
    /// The messages it covers, with whole folds made before it; rounds are the engine's to widen.
    ///
    /// None if nothing carries its tag, or if it is a marker over messages that earlier
    /// folds hide already: as an event it would hide a summary for nothing.
    pub covers: Option<Span>,
    /// The fold that covers this one, by its place in the list; it was made later.
    pub inside: Option<usize>,
    /// What stands in for the messages, without the tags it got itself.
    pub stand_in: Tagged,
    place: Option<Place>,
}

/// Where the parts of a fold were in an array.
#[derive(Clone, Debug, Default)]
struct Place {
    /// The stand-in: behind so many messages, and its place among those that are, too.
    after: u64,
    at: usize,
    /// What carries its tag: as the only or the first one, and as the second.
    first: Carriers,
    second: Carriers,
}

/// Entries that carry the tag of a fold.
#[derive(Clone, Debug, Default)]
struct Carriers {
    messages: Vec<Span>,
    /// The folds whose stand-ins carry it.
    folds: Vec<usize>,
}

impl TagFold {
    /// Makes a fold over `covers`, to be written as tags.
    pub fn new(id: TagId, cause: Cause, covers: Span, stand_in: Tagged) -> TagFold {
        TagFold {
            id,
            cause,
            covers: Some(covers),
            inside: None,
            stand_in,
            place: None,
        }
    }
}

/// Takes a tagged array apart.
///
/// Stand-ins become folds, everything else is a message. Nothing is lost, whatever the
/// array looks like. Where its tags are not the work of condensing and truncating:
///
/// - A tag that points to nothing hides nothing and is taken off.
/// - A stand-in without an id, or with the id of an earlier one, is a message.
/// - An entry flagged as both is a summary; tags with its marker's id point to nothing.
/// - A fold covers the messages from the first that carries its tag to the last.
/// - Of folds that would lie in each other, the one whose stand-in comes first is the inner one.
pub fn from_tags(array: &[Tagged]) -> FromTags {
    let sorted = Sorted::of(array);
    let mut folds: Vec<TagFold> = sorted.folds(array);
    let mut active = Vec::new();
    for at in 0..folds.len() {
        cover(&mut folds, at, &mut active);
    }
    let is_message = |at: &usize| matches!(sorted.entries[*at], Entry::Message(_));
    let messages = (0..array.len()).filter(is_message);
    FromTags {
        messages: messages.map(|at| bare(&array[at])).collect(),
        folds,
    }
}

/// Puts folds back into a conversation as tags.
///
/// What [`from_tags`] took apart comes back as it was, stand-ins in their places; a tag
/// that was not at the end of its message is there now. A fold from elsewhere tags all it
/// covers that has no tag of its kind yet, inner stand-ins too, and stands behind that.
pub fn to_tags(messages: &[Tagged], folds: &[TagFold]) -> Vec<Tagged> {
    let mut messages = messages.to_vec();
    let mut stand_ins: Vec<Tagged> = folds.iter().map(|fold| fold.stand_in.clone()).collect();
    let known = || {
        folds
            .iter()
            .filter_map(|fold| Some((fold, fold.place.as_ref()?)))
    };
    for (fold, place) in known() {
        place.first.tag(fold, &mut messages, &mut stand_ins);
    }
    for (fold, place) in known() {
        place.second.tag(fold, &mut messages, &mut stand_ins);
    }
    let mut places = Vec::new();
    for (at, fold) in folds.iter().enumerate() {
        let place = fold.place.clone().unwrap_or_else(|| {
            let place = Place::anew(at, folds, &messages, &stand_ins);
            place.first.tag(fold, &mut messages, &mut stand_ins);
            place
        });
        places.push((place.after, place.at, at));
    }
    places.sort_unstable();
    merge(messages, &stand_ins, &places)
}

impl Carriers {
    fn tag(&self, fold: &TagFold, messages: &mut [Tagged], stand_ins: &mut [Tagged]) {
        let kind = Fold::from(fold.cause);
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
fn merge(
    messages: Vec<Tagged>,
    stand_ins: &[Tagged],
    places: &[(u64, usize, usize)],
) -> Vec<Tagged> {
    let mut array = Vec::with_capacity(messages.len() + stand_ins.len());
    let mut places = places.iter().peekable();
    for (message, before) in messages.into_iter().zip(0..) {
        while let Some((_, _, at)) = places.next_if(|(after, ..)| *after <= before) {
            array.push(stand_ins[*at].clone());
        }
        array.push(message);
    }
    array.extend(places.map(|(_, _, at)| stand_ins[*at].clone()));
    array
}

impl Place {
    fn first_message(&self) -> Option<Seq> {
        let first = |carriers: &Carriers| carriers.messages.first().map(|run| run.from());
        let firsts = [first(&self.first), first(&self.second)];
        firsts.into_iter().flatten().min()
    }

    /// Where a fold from elsewhere goes.
    fn anew(at: usize, folds: &[TagFold], messages: &[Tagged], stand_ins: &[Tagged]) -> Place {
        let fold = &folds[at];
        let kind = Fold::from(fold.cause);
        let Some(span) = fold.covers else {
            return Place::default();
        };
        let mut place = Place {
            after: span.to().get(),
            at,
            ..Place::default()
        };
        let tagged = |seq: &Seq| match messages.get(index(*seq)) {
            Some(message) => message.parent(kind).is_some(),
            None => true,
        };
        for seq in span.seqs().filter(|seq| !tagged(seq)) {
            join(&mut place.first.messages, seq);
        }
        let inner = |inner: &usize| {
            let covers = folds[*inner].covers;
            let within = covers.is_some_and(|inner| inner.meet(span) == Some(inner));
            within && stand_ins[*inner].parent(kind).is_none()
        };
        place.first.folds = (0..at).filter(inner).collect();
        place
    }
}

/// What an entry of an array is.
#[derive(Clone, Copy)]
enum Entry {
    Message(Seq),
    /// Number so many of the stand-ins, in the order of the array.
    StandIn(usize),
}

/// An array whose stand-ins have been told from its messages.
struct Sorted {
    entries: Vec<Entry>,
    /// The stand-ins: kind and place in the array.
    found: Vec<(Fold, usize)>,
    by_id: HashMap<(bool, TagId), usize>,
    /// Where the folds were, and which must have been made before which.
    places: Vec<Place>,
    earlier: BTreeSet<(usize, usize)>,
}

impl Sorted {
    fn of(array: &[Tagged]) -> Sorted {
        let mut sorted = Sorted {
            entries: Vec::with_capacity(array.len()),
            found: Vec::new(),
            by_id: HashMap::new(),
            places: Vec::new(),
            earlier: BTreeSet::new(),
        };
        let mut next = Seq::FIRST;
        for (at, message) in array.iter().enumerate() {
            let entry = match sorted.stand_in(message) {
                Some((kind, id)) => sorted.found(kind, id, at, next),
                None => {
                    let seq = next;
                    next = next.next();
                    Entry::Message(seq)
                }
            };
            sorted.entries.push(entry);
        }
        for (at, message) in array.iter().enumerate() {
            sorted.tags(sorted.entries[at], message);
        }
        let windows = sorted.compare_windows();
        sorted.compare_kinds(array, Fold::Summary, &windows);
        let summaries = sorted.of_kind(Fold::Summary);
        sorted.compare_kinds(array, Fold::Window, &summaries);
        sorted
    }

    /// The fold that an entry stands for, unless an earlier one does.
    fn stand_in(&self, message: &Tagged) -> Option<(Fold, TagId)> {
        let stands = |kind: Fold| Some((kind, message.stands_for(kind)?.clone()));
        let (kind, id) = Fold::ALL.into_iter().find_map(stands)?;
        let key = (kind == Fold::Window, id);
        let new = !self.by_id.contains_key(&key);
        new.then_some((kind, key.1))
    }

    fn found(&mut self, kind: Fold, id: TagId, at: usize, next: Seq) -> Entry {
        let number = self.found.len();
        self.by_id.insert((kind == Fold::Window, id), number);
        self.found.push((kind, at));
        self.places.push(Place {
            after: next.get() - 1,
            at,
            ..Place::default()
        });
        Entry::StandIn(number)
    }

    /// Notes which folds hide an entry.
    fn tags(&mut self, entry: Entry, message: &Tagged) {
        let tags = message.tags().into_iter();
        let folds: Vec<usize> = tags.filter_map(|kind| self.parent(message, kind)).collect();
        if let [first, second] = folds[..] {
            self.earlier.insert((first, second));
        }
        for (fold, nth) in folds.into_iter().zip(0..) {
            let place = &mut self.places[fold];
            let carriers = match nth {
                0 => &mut place.first,
                _ => &mut place.second,
            };
            match entry {
                Entry::Message(seq) => join(&mut carriers.messages, seq),
                Entry::StandIn(inner) if inner != fold => {
                    carriers.folds.push(inner);
                    self.earlier.insert((inner, fold));
                }
                Entry::StandIn(_) => {}
            }
        }
    }

    /// Compares truncations, and returns them in their order.
    ///
    /// Each hides the oldest of what the ones before it left. One that hides stand-ins
    /// only came when all messages before its marker were hidden.
    fn compare_windows(&mut self) -> Vec<usize> {
        let windows = self.of_kind(Fold::Window);
        let first = |window: usize| self.places[window].first_message();
        let starts: BTreeSet<Seq> = windows.iter().filter_map(|at| first(*at)).collect();
        let mut order: Vec<(Option<Seq>, bool, usize)> = Vec::new();
        for window in windows {
            let marker = Seq::new(self.places[window].after);
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
    /// A fold hides every stand-in of the other kind before its own that none of its own
    /// kind hides yet. So if it hides one less, that one was not yet there.
    fn compare_kinds(&mut self, array: &[Tagged], kind: Fold, others: &[usize]) {
        for number in self.of_kind(kind) {
            let behind = |other: &&usize| **other > number;
            let hidden_by = self.parent(&array[self.found[number].1], kind.other());
            match hidden_by.map(|fold| others.iter().position(|other| *other == fold)) {
                None => {
                    let all = others.iter().filter(behind);
                    self.earlier.extend(all.map(|other| (*other, number)));
                }
                Some(Some(until)) => {
                    let last = others[..until].iter().rev().find(behind);
                    self.earlier.extend(last.map(|other| (*other, number)));
                }
                Some(None) => {}
            }
        }
    }

    fn of_kind(&self, wanted: Fold) -> Vec<usize> {
        let found = self.found.iter().enumerate();
        let found = found.filter(|(_, (kind, _))| *kind == wanted);
        found.map(|(number, _)| number).collect()
    }

    /// The fold of this kind that hides an entry.
    fn parent(&self, message: &Tagged, kind: Fold) -> Option<usize> {
        let id = message.parent(kind)?.clone();
        self.by_id.get(&(kind == Fold::Window, id)).copied()
    }

    /// The stand-ins in the order in which their folds were made.
    fn order(&self) -> Vec<usize> {
        let mut blocked = vec![0; self.found.len()];
        for (_, later) in &self.earlier {
            blocked[*later] += 1;
        }
        let mut left: BTreeSet<usize> = (0..self.found.len()).collect();
        let ready = left.iter().copied().filter(|fold| blocked[*fold] == 0);
        let mut ready: BTreeSet<usize> = ready.collect();
        let mut order = Vec::new();
        // With nothing ready, folds lie in each other; any order will do, so the first goes.
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

    /// The folds in the order in which they were made, as far as tags tell.
    fn folds(&self, array: &[Tagged]) -> Vec<TagFold> {
        let order = self.order();
        let mut rank = vec![0; order.len()];
        for (at, fold) in order.iter().enumerate() {
            rank[*fold] = at;
        }
        let fold = |(at, number): (usize, &usize)| {
            let (kind, found) = self.found[*number];
            let mut place = self.places[*number].clone();
            for carriers in [&mut place.first, &mut place.second] {
                let folds = &mut carriers.folds;
                folds.iter_mut().for_each(|fold| *fold = rank[*fold]);
                folds.retain(|inner| *inner < at);
            }
            let id = array[found].stands_for(kind);
            TagFold {
                id: id.expect("it was found by its id").clone(),
                cause: kind.into(),
                covers: None,
                inside: None,
                stand_in: bare(&array[found]),
                place: Some(place),
            }
        };
        order.iter().enumerate().map(fold).collect()
    }
}

/// Works out what fold `at` covers, given the outermost of those made before it.
fn cover(folds: &mut [TagFold], at: usize, active: &mut Vec<(Span, usize)>) {
    let Some(place) = &folds[at].place else {
        return;
    };
    let carriers = [&place.first, &place.second];
    let over = |fold: usize| carriers.iter().any(|all| all.folds.contains(&fold));
    let inner = active.iter().filter(|(_, fold)| over(*fold));
    let mut spans: Vec<Span> = inner.map(|(span, _)| *span).collect();
    let runs = || carriers.iter().flat_map(|all| &all.messages);
    let idle = spans.is_empty() && runs().all(|run| is_hidden(*run, active));
    if idle && folds[at].cause == Cause::Window {
        return;
    }
    spans.extend(runs());
    let Some(span) = hull(spans) else { return };
    let touched = |(inner, _): &(Span, usize)| inner.meet(span).is_some();
    let (taken, rest): (Vec<_>, Vec<_>) = active.drain(..).partition(touched);
    *active = rest;
    let whole = hull(taken.iter().map(|(span, _)| *span).chain([span]));
    folds[at].covers = whole;
    active.extend(whole.map(|span| (span, at)));
    for (_, inner) in taken {
        folds[inner].inside = Some(at);
    }
}

/// Says whether folds cover all of a run.
fn is_hidden(run: Span, active: &[(Span, usize)]) -> bool {
    let mut next = run.from();
    while next <= run.to() {
        let Some((span, _)) = active.iter().find(|(span, _)| span.holds(next)) else {
            return false;
        };
        next = span.to().next();
    }
    true
}

/// The span from the first message of some spans to the last.
fn hull(spans: impl IntoIterator<Item = Span>) -> Option<Span> {
    spans.into_iter().reduce(|a, b| {
        Span::new(a.from().min(b.from()), a.to().max(b.to())).expect("it holds both spans")
    })
}

/// A message without its tags.
fn bare(message: &Tagged) -> Tagged {
    let mut bare = message.clone();
    for fold in message.tags() {
        bare.untag(fold);
    }
    bare
}

fn join(runs: &mut Vec<Span>, seq: Seq) {
    match runs.last_mut() {
        Some(last) if last.to().next() == seq => {
            *last = Span::new(last.from(), seq).expect("a run grows at its end");
        }
        _ => runs.push(Span::one(seq)),
    }
}

/// Where the message `seq` is in a list of all.
fn index(seq: Seq) -> usize {
    usize::try_from(seq.get() - 1).unwrap_or(usize::MAX)
}
