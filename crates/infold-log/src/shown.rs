//! The messages that are shown at one point of a log, and the folds over the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Cause, EventId, Recall, Seq, Span};

/// The visible part of a log at one point: its messages, and the folds over them.
///
/// It takes memory for runs of consecutive seqs, not for each message. Items are in order and disjoint. With each fold
/// replaced by the messages that it covers, the items are the *path*: the messages of this branch, in the order in
/// which they were appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub(crate) items: Vec<Item>,
    /// Masks, by the message and the number of its part.
    pub(crate) masks: BTreeMap<(Seq, u32), Mask>,
    /// Pinned messages, one of each pinned round.
    pub(crate) pins: BTreeSet<Seq>,
    /// The tokens of each note, by the event that added it.
    pub(crate) notes: BTreeMap<EventId, u64>,
    /// Excerpts, by the message that carries each and the event that added it.
    pub(crate) recalls: BTreeMap<(Seq, EventId), Recall>,
    pub(crate) changes: StateChanges,
}

/// The changes of the layered state that are in force: a chain of events, each of which names the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateChanges {
    /// The newest one.
    pub last: Option<EventId>,
    /// Changes of the chain that were undone while later ones stayed.
    pub undone: BTreeSet<EventId>,
}

impl StateChanges {
    /// Returns these changes without the change `step`, if there is one; `before` are those in force before `step`.
    pub(crate) fn without(&self, step: Option<EventId>, before: StateChanges) -> StateChanges {
        match step {
            Some(step) if self.last == Some(step) => before,
            Some(step) => {
                let mut changes = self.clone();
                changes.undone.insert(step);
                changes
            }
            None => self.clone(),
        }
    }
}

/// A run of messages, or a fold in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Messages shown one after another.
    Run(Span),
    /// Messages that a fold hides.
    Fold(Arc<Folded>),
}

/// An active fold over rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    /// The event that made it.
    pub id: EventId,
    /// Why it was made.
    pub cause: Cause,
    /// Tokens of its stand-in.
    pub tokens: u64,
    /// The messages it covers, at least one, those of inner folds included. The inner folds are not kept here:
    /// unfolding reads the state before this fold from the log.
    pub runs: Vec<Span>,
}

/// An active fold over one part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// The event that made it.
    pub id: EventId,
    /// Tokens of the part it hides.
    pub hides: u64,
    /// Tokens of its stub.
    pub tokens: u64,
}

/// Where a message is with respect to folds and branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this branch, and not covered by a fold.
    Open,
    /// Covered by a fold; this is the outermost one.
    Under(EventId),
    /// On another branch: a rewind hid it.
    Elsewhere,
}

impl Item {
    /// Returns the span from its first to its last message. Messages of other branches in between belong to it, too.
    pub fn span(&self) -> Span {
        match self {
            Item::Run(span) => *span,
            Item::Fold(fold) => fold.span(),
        }
    }
}

impl Folded {
    /// Returns the span from its first to its last message, of which it may not cover all.
    pub fn span(&self) -> Span {
        let first = self.runs.first().expect("a fold covers a message");
        let last = self.runs.last().expect("a fold covers a message");
        Span::new(first.from(), last.to()).expect("runs are in order")
    }

    /// Says whether it covers a message.
    pub fn covers(&self, seq: Seq) -> bool {
        let at = self.runs.partition_point(|run| run.to() < seq);
        self.runs.get(at).is_some_and(|run| run.holds(seq))
    }
}

impl Shown {
    /// Returns the items in order.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the messages whose rounds are pinned.
    pub fn pins(&self) -> impl Iterator<Item = Seq> {
        self.pins.iter().copied()
    }

    /// Returns the notes that every view shows, and their tokens.
    pub fn notes(&self) -> impl Iterator<Item = (EventId, u64)> {
        self.notes.iter().map(|(id, tokens)| (*id, *tokens))
    }

    /// Returns the changes of the layered state that are in force.
    pub fn state_changes(&self) -> &StateChanges {
        &self.changes
    }

    /// Returns the masks in force on messages of a span.
    pub fn masks(&self, span: Span) -> impl Iterator<Item = (Seq, u32, Mask)> {
        let range = (span.from(), 0)..=(span.to(), u32::MAX);
        self.masks
            .range(range)
            .map(|((seq, part), mask)| (*seq, *part, *mask))
    }

    /// Returns the number of entries of all collections, by which the size of a snapshot is estimated.
    pub fn nodes(&self) -> u64 {
        let item = |item: &Item| match item {
            Item::Run(_) => 1,
            Item::Fold(fold) => 1 + fold.runs.len(),
        };
        let items: usize = self.items.iter().map(item).sum();
        let rest = self.masks.len() + self.pins.len() + self.notes.len() + self.recalls.len();
        (items + rest + self.changes.undone.len()) as u64
    }

    /// Restores it from its stored parts: items, masks, pins, notes, recalled excerpts, changes of the layered state.
    pub fn restore(
        items: Vec<Item>,
        masks: impl IntoIterator<Item = (Seq, u32, Mask)>,
        pins: impl IntoIterator<Item = Seq>,
        notes: impl IntoIterator<Item = (EventId, u64)>,
        recalls: impl IntoIterator<Item = (EventId, Recall)>,
        changes: StateChanges,
    ) -> Shown {
        Shown {
            items,
            masks: masks
                .into_iter()
                .map(|(seq, part, mask)| ((seq, part), mask))
                .collect(),
            pins: pins.into_iter().collect(),
            notes: notes.into_iter().collect(),
            recalls: recalls
                .into_iter()
                .map(|(id, recall)| ((recall.at, id), recall))
                .collect(),
            changes,
        }
    }

    /// Returns the excerpts at the end of messages of a span.
    pub fn recalls(&self, span: Span) -> impl Iterator<Item = (EventId, Recall)> {
        let end = (span.to().next(), EventId::FIRST);
        self.recalls
            .range((span.from(), EventId::FIRST)..end)
            .map(|((_, id), recall)| (*id, *recall))
    }

    /// Returns all excerpts in view.
    pub fn all_recalls(&self) -> impl Iterator<Item = (EventId, Recall)> {
        self.recalls.iter().map(|((_, id), recall)| (*id, *recall))
    }

    /// Says whether a fold hides a message, or a mask a part of it.
    pub fn is_hidden(&self, seq: Seq) -> bool {
        match self.place(seq) {
            Place::Under(_) => true,
            Place::Open => self.masks(Span::one(seq)).next().is_some(),
            Place::Elsewhere => false,
        }
    }

    /// Returns all masks in force.
    pub fn all_masks(&self) -> impl Iterator<Item = (Seq, u32, Mask)> {
        self.masks
            .iter()
            .map(|((seq, part), mask)| (*seq, *part, *mask))
    }

    /// Returns the path of messages as runs, those that folds cover included.
    pub fn path(&self) -> Vec<Span> {
        let mut runs = Vec::new();
        for item in &self.items {
            match item {
                Item::Run(run) => join(&mut runs, *run),
                Item::Fold(fold) => fold.runs.iter().for_each(|run| join(&mut runs, *run)),
            }
        }
        runs
    }

    /// Returns the last message of the path.
    pub fn last(&self) -> Option<Seq> {
        self.items.last().map(|item| item.span().to())
    }

    /// Returns the last message, if no fold covers it: only then may its round continue.
    pub fn open_end(&self) -> Option<Seq> {
        match self.items.last()? {
            Item::Run(run) => Some(run.to()),
            Item::Fold(_) => None,
        }
    }

    /// Says where a message is.
    pub fn place(&self, seq: Seq) -> Place {
        let at = self.items.partition_point(|item| item.span().to() < seq);
        match self.items.get(at).filter(|item| item.span().holds(seq)) {
            Some(Item::Run(_)) => Place::Open,
            Some(Item::Fold(fold)) if fold.covers(seq) => Place::Under(fold.id),
            _ => Place::Elsewhere,
        }
    }

    /// Returns the outermost active fold with this id.
    pub fn outermost(&self, id: EventId) -> Option<&Folded> {
        self.items.iter().find_map(|item| match item {
            Item::Fold(fold) if fold.id == id => Some(&**fold),
            _ => None,
        })
    }

    /// Returns which part of which message the mask `id` hides.
    pub fn masked_by(&self, id: EventId) -> Option<(Seq, u32)> {
        let found = self.masks.iter().find(|(_, mask)| mask.id == id);
        found.map(|(place, _)| *place)
    }

    /// Shows one more message at the end.
    pub(crate) fn append(&mut self, seq: Seq) {
        self.append_up_to(seq.get() - 1, seq.get());
    }

    /// Shows the messages after `after` up to `to` at the end.
    ///
    /// They were appended with nothing between them, so they form one run.
    pub fn append_up_to(&mut self, after: u64, to: u64) {
        let span = Seq::new(after + 1)
            .zip(Seq::new(to))
            .and_then(|(from, to)| Span::new(from, to));
        if let Some(span) = span {
            self.append_run(span);
        }
    }

    /// Shows a run of messages at the end, as part of the last run if it continues it.
    pub(crate) fn append_run(&mut self, span: Span) {
        if let Some(Item::Run(last)) = self.items.last_mut()
            && last.to().next() == span.from()
        {
            *last = Span::new(last.from(), span.to()).expect("a run grows at its end");
            return;
        }
        self.items.push(Item::Run(span));
    }

    /// Folds the visible messages in `span`. Inner folds that it touches are included as a whole.
    pub(crate) fn fold(&mut self, id: EventId, cause: Cause, span: Span, tokens: u64) {
        let (mut before, mut runs, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for item in std::mem::take(&mut self.items) {
            match (item.span().meet(span), &item) {
                (None, _) if item.span().to() < span.from() => before.push(item),
                (None, _) => after.push(item),
                (Some(_), Item::Fold(fold)) => {
                    fold.runs.iter().for_each(|run| join(&mut runs, *run))
                }
                (Some(common), Item::Run(run)) => {
                    before.extend(run_item(Some(run.from()), common.from().prev()));
                    join(&mut runs, common);
                    after.extend(run_item(Some(common.to().next()), Some(run.to())));
                }
            }
        }
        self.items = before;
        if !runs.is_empty() {
            let fold = Folded {
                id,
                cause,
                tokens,
                runs,
            };
            self.masks.retain(|(seq, _), _| !fold.covers(*seq));
            self.recalls.retain(|(seq, _), _| !fold.covers(*seq));
            self.items.push(Item::Fold(Arc::new(fold)));
        }
        self.items.append(&mut after);
    }

    /// Opens the outermost fold `id`: the messages that it covers are shown as in `before`.
    pub(crate) fn unfold(&mut self, id: EventId, before: &Shown) {
        let Some(fold) = self.outermost(id).cloned() else {
            return;
        };
        let span = fold.span();
        let inner = before.items.iter().filter_map(|item| match item {
            Item::Run(run) => run.meet(span).map(Item::Run),
            Item::Fold(inner) => inner.span().meet(span).map(|_| item.clone()),
        });
        let inner: Vec<Item> = inner.collect();
        for item in std::mem::take(&mut self.items) {
            match item {
                Item::Fold(outer) if outer.id == id => {
                    inner.iter().for_each(|item| self.push(item.clone()));
                }
                item => self.push(item),
            }
        }
        let masks = before
            .masks
            .iter()
            .filter(|((seq, _), _)| fold.covers(*seq));
        self.masks
            .extend(masks.map(|(place, mask)| (*place, *mask)));
        let recalls = before
            .recalls
            .iter()
            .filter(|((seq, _), _)| fold.covers(*seq));
        self.recalls
            .extend(recalls.map(|(place, recall)| (*place, *recall)));
        self.drop_needless_recalls();
    }

    /// Removes a mask.
    pub(crate) fn unmask(&mut self, id: EventId) {
        self.masks.retain(|_, mask| mask.id != id);
        self.drop_needless_recalls();
    }

    /// Shows an excerpt of a hidden message at the end of a message that no fold covers.
    pub(crate) fn recall(&mut self, id: EventId, recall: Recall) {
        if self.is_recall_needed(&recall) {
            self.recalls.insert((recall.at, id), recall);
        }
    }

    /// Drops excerpts of messages that are shown again.
    fn drop_needless_recalls(&mut self) {
        let mut recalls = std::mem::take(&mut self.recalls);
        recalls.retain(|_, recall| self.is_recall_needed(recall));
        self.recalls = recalls;
    }

    /// Says whether an excerpt is shown: no fold covers the message that carries it, and the message that it quotes, if
    /// any, is an earlier one that is hidden.
    fn is_recall_needed(&self, recall: &Recall) -> bool {
        let is_hidden_before = |source: Seq| source < recall.at && self.is_hidden(source);
        self.place(recall.at) == Place::Open && recall.quoted().is_none_or(is_hidden_before)
    }

    /// Adds an item at the end; a run is joined to the last one if it continues it.
    fn push(&mut self, item: Item) {
        match item {
            Item::Run(span) => self.append_run(span),
            Item::Fold(_) => self.items.push(item),
        }
    }
}

/// Returns the run from one message to another; none if either is missing or the run is empty.
fn run_item(from: Option<Seq>, to: Option<Seq>) -> Option<Item> {
    Span::new(from?, to?).map(Item::Run)
}

/// Adds a run to a list of runs; joins it to the last one if it continues it.
fn join(runs: &mut Vec<Span>, run: Span) {
    match runs.last_mut() {
        Some(last) if last.to().next() == run.from() => {
            *last = Span::new(last.from(), run.to()).expect("runs are in order");
        }
        _ => runs.push(run),
    }
}
