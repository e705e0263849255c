//! Read access to the log behind a state.

use std::convert::Infallible;

use crate::{
    Event, EventId, Facts, Mark, Point, Record, Rounds, Seq, Shown, Span, State, Sums,
    goes_with_previous, reach, tied_to,
};

/// Read access to the log behind a state.
///
/// Two logs implement it: [`Memory`] here, for callers that hold a conversation in memory, and the store's,
/// which reads its index.
pub trait Past {
    /// Why the log could not be read.
    type Error;

    /// Returns the record of a message. The message exists.
    fn record(&self, seq: Seq) -> Result<Record, Self::Error>;

    /// Returns the mark of an event. The event exists.
    fn mark(&self, event: EventId) -> Result<Mark, Self::Error>;

    /// Returns the visible messages and folds at a point, which is not in the future.
    fn shown(&self, point: Point) -> Result<Shown, Self::Error>;
}

/// A log held in memory, without contents.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    state: State,
    rounds: Rounds,
    /// The state of `rounds` after each message.
    rounds_after: Vec<Rounds>,
    /// The ids that each message holds.
    ids: Vec<Vec<String>>,
    records: Vec<Record>,
    marks: Vec<Mark>,
    shown: Vec<Shown>,
}

impl Memory {
    /// Appends a message.
    pub fn message(&mut self, facts: &Facts, time: u64) -> Seq {
        let seq = self.state.next_seq();
        let tied = self.tied(seq, facts);
        let placement = self.rounds.add(seq, facts, tied);
        let sums = self
            .records
            .last()
            .map_or(Sums::default(), |last| last.sums);
        self.records
            .push(Record::following(sums, facts, placement, time));
        self.rounds_after.push(self.rounds.clone());
        self.ids.push(ids_of(facts));
        self.state.message(seq);
        seq
    }

    /// Returns the earlier round that the next message is tied to.
    fn tied(&self, seq: Seq, facts: &Facts) -> Option<Seq> {
        let wanted = self.rounds.unresolved(facts);
        let follows = goes_with_previous(facts);
        if wanted.is_empty() && !follows {
            return None;
        }
        let Ok(reach) = reach(self.state.shown(), self);
        if follows {
            let last = reach.last().map(|span| span.to());
            let last = last.filter(|last| Some(*last) == self.state.shown().last());
            let Ok(tied) = tied_to(seq, last.as_slice(), self);
            return tied;
        }
        let holds = |seq: &Seq| {
            let mut ids = self.ids[seq.get() as usize - 1].iter();
            ids.any(|id| wanted.contains(&&**id))
        };
        let holders: Vec<Seq> = reach
            .into_iter()
            .flat_map(Span::seqs)
            .filter(holds)
            .collect();
        let Ok(tied) = tied_to(seq, &holders, self);
        tied
    }

    /// Appends an event that belongs to the manage pass `pass`, or stands alone.
    pub fn event(&mut self, event: &Event, pass: Option<EventId>, time: u64) -> EventId {
        let mut state = self.state.clone();
        let Ok(mark) = state.event(event, pass, time, self);
        let id = state.last_event().expect("an event was just applied");
        if !matches!(event, Event::Fact | Event::State { .. }) {
            self.rounds = match state.shown().open_end() {
                Some(seq) => self.rounds_after[seq.get() as usize - 1].clone(),
                None => Rounds::default(),
            };
            // Undoing a rewind hides the messages since, so an output may continue after one.
            if !mark.rewinds {
                self.rounds.end_output();
            }
        }
        self.shown.push(state.shown().clone());
        self.marks.push(mark);
        self.state = state;
        id
    }

    /// Returns the state after the last entry.
    pub fn state(&self) -> &State {
        &self.state
    }
}

fn ids_of(facts: &Facts) -> Vec<String> {
    let calls = facts.calls.iter().chain(&facts.answers);
    let calls = calls.filter_map(|call| call.id.clone());
    calls
        .chain(facts.links.iter().map(|link| link.id.clone()))
        .collect()
}

impl Past for Memory {
    type Error = Infallible;

    fn record(&self, seq: Seq) -> Result<Record, Infallible> {
        Ok(self.records[seq.get() as usize - 1])
    }

    fn mark(&self, event: EventId) -> Result<Mark, Infallible> {
        Ok(self.marks[event.get() as usize - 1])
    }

    fn shown(&self, point: Point) -> Result<Shown, Infallible> {
        let (mut shown, after) = match point.event.checked_sub(1) {
            Some(at) => (
                self.shown[at as usize].clone(),
                self.marks[at as usize].after,
            ),
            None => (Shown::default(), 0),
        };
        shown.append_up_to(after, point.seq);
        Ok(shown)
    }
}
