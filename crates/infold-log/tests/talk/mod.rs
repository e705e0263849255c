//! A conversation that remembers what it heard, and the moves that can be made in it.

pub mod moves;
pub mod lines;

use infold_log::steer::{self, Side, Target};
use infold_log::{
    Call, Cause, Event, EventId, Facts, Fold, Hides, Item, Link, Memory, Past, Pin, Pinned, Place,
    Point, Recall, Role, Rounds, Seq, Shown, Span, View,
};
use moves::{Carrier, Move, Moves, Says, Step, Where};

/// A log, the facts of its messages, and what was shown after each of its entries.
#[derive(Clone, Default)]
pub struct Talk {
    pub log: Memory,
    pub facts: Vec<Facts>,
    pub moments: Vec<Moment>,
    clock: u64,
}

/// The visible part of the log right after an entry.
#[derive(Clone)]
pub struct Moment {
    pub entry: Entry,
    pub time: u64,
    pub shown: Shown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Message(Seq),
    Event(EventId),
}

impl Talk {
    /// Plays moves on an empty log; those that are refused are skipped.
    pub fn of(moves: &Moves) -> Talk {
        let mut talk = Talk::default();
        moves.0.iter().for_each(|next| talk.play(next));
        talk
    }

    pub fn play(&mut self, next: &Move) {
        match next {
            Move::Say(says) => {
                self.say(*says);
            }
            Move::Step(step) => {
                self.step(*step);
            }
            Move::Pass(steps) => {
                self.pass(steps);
            }
        }
    }

    /// Takes steps that count as one.
    pub fn pass(&mut self, steps: &[Step]) -> Vec<EventId> {
        let mut first = None;
        let mut taken = Vec::new();
        for step in steps {
            if let Some(event) = self.plan(*step) {
                let id = self.event(&event, first);
                first = first.or(Some(id));
                taken.push(id);
            }
        }
        taken
    }

    /// Takes a step, unless it is refused.
    pub fn step(&mut self, step: Step) -> Option<EventId> {
        let event = self.plan(step)?;
        Some(self.event(&event, None))
    }

    pub fn event(&mut self, event: &Event, pass: Option<EventId>) -> EventId {
        self.tick();
        let id = self.log.event(event, pass, self.clock);
        self.remember(Entry::Event(id));
        id
    }

    pub fn say(&mut self, says: Says) -> Seq {
        self.hear(self.facts_of(says))
    }

    pub fn hear(&mut self, facts: Facts) -> Seq {
        self.tick();
        let seq = self.log.message(&facts, self.clock);
        self.facts.push(facts);
        self.remember(Entry::Message(seq));
        seq
    }

    pub fn shown(&self) -> &Shown {
        self.log.state().shown()
    }

    pub fn view(&self) -> View {
        let Ok(view) = View::of(self.shown(), &self.log);
        view
    }

    pub fn at(&self) -> Point {
        self.log.state().at()
    }

    /// The messages of the path, folds read through.
    pub fn path(&self) -> Vec<Seq> {
        self.shown()
            .path()
            .into_iter()
            .flat_map(Span::seqs)
            .collect()
    }

    pub fn round(&self, seq: Seq) -> Seq {
        let Ok(record) = self.log.record(seq);
        record.round
    }

    /// The messages that no fold covers.
    pub fn uncovered(&self) -> Vec<Seq> {
        let open = |seq: &Seq| self.shown().place(*seq) == Place::Open;
        self.path().into_iter().filter(open).collect()
    }

    /// Every fold that can be opened now.
    pub fn active(&self) -> Vec<EventId> {
        let folds = self.shown().items().iter().filter_map(|item| match item {
            Item::Fold(fold) => Some(fold.id),
            Item::Run(_) => None,
        });
        let masks = self.shown().all_masks().map(|(_, _, mask)| mask.id);
        folds.chain(masks).collect()
    }

    /// Returns the event of a step; none if it is refused.
    pub fn plan(&self, step: Step) -> Option<Event> {
        let (state, log) = (self.log.state(), &self.log);
        match step {
            Step::Fold(cause, from, to) => {
                let (from, to) = (self.any_seq(from)?, self.any_seq(to)?);
                let span = Span::new(from.min(to), from.max(to))?;
                let cover = steer::cover(state, span, log).ok()?;
                Some(steer::folded(cause, &cover, 3))
            }
            Step::Truncate(percent) => {
                let cover = steer::oldest(state, f64::from(percent) / 100.0, log).ok()?;
                Some(steer::folded(Cause::Window, &cover, 2))
            }
            Step::Mask(at, part) => {
                let seq = self.any_seq(at)?;
                steer::mask(state, (seq, part), log).ok()?;
                let hides = Hides::Part {
                    seq,
                    part,
                    tokens: 4,
                };
                Some(Event::Fold(Fold { hides, tokens: 1 }))
            }
            Step::Unfold(at) => steer::unfold(state, pick(&self.active(), at)?, log).ok(),
            Step::UnfoldAny(at) => steer::unfold(state, self.any_event(at)?, log).ok(),
            Step::Rewind(side, to, at) => {
                steer::rewind(state, side, self.target(to, at)?, log).ok()
            }
            Step::Undo => Some(steer::undo::<()>(state).ok()?.0),
            Step::Redo => Some(steer::redo(state, log).ok()?.0),
            Step::Pin(at) => steer::pin(state, self.any_seq(at)?, log).ok(),
            Step::Unpin(at) => steer::unpin(state, Pinned::Message(self.any_seq(at)?), log).ok(),
            Step::Note => Some(Event::Pin(Pin::Note { tokens: 5 })),
            Step::Unnote(at) => {
                let notes: Vec<EventId> = self.shown().notes().map(|(id, _)| id).collect();
                steer::unpin(state, Pinned::Note(pick(&notes, at)?), log).ok()
            }
            // Look-ups, which quote no message.
            Step::Recall(source) if source % 4 == 0 => Some(Event::Recall(Recall {
                at: self.shown().open_end()?,
                source: None,
                tokens: 6,
            })),
            // A text of the layered state, which quotes none either.
            Step::Recall(source) if source % 4 == 1 => Some(Event::Recall(Recall {
                at: self.shown().open_end()?,
                source: self.shown().open_end(),
                tokens: 6,
            })),
            Step::Recall(source) => {
                let hidden = |seq: &Seq| self.shown().is_hidden(*seq);
                let hidden: Vec<Seq> = self.path().into_iter().filter(hidden).collect();
                let (at, source) = (self.shown().open_end()?, pick(&hidden, source)?);
                let recall = Recall {
                    at,
                    source: Some(source),
                    tokens: 6,
                };
                (source < at).then_some(Event::Recall(recall))
            }
            Step::State(is_step) => Some(Event::State { is_step }),
            Step::Fact => Some(Event::Fact),
        }
    }

    /// The place in the log that an index stands for.
    pub fn target(&self, to: Where, at: u16) -> Option<Target> {
        let moment = pick(&(0..self.moments.len()).collect::<Vec<_>>(), at);
        Some(match to {
            Where::Message => Target::Message(self.any_seq(at)?.get()),
            Where::Event => Target::Event(self.any_event(at)?.get()),
            Where::Time => Target::Time(self.moments[moment?].time),
        })
    }

    /// Returns the visible part of the log at a target, as recorded by the test.
    pub fn remembered(&self, side: Side, target: Target) -> Shown {
        let wanted = |entry: Entry| match (target, entry) {
            (Target::Message(seq), Entry::Message(entry)) => seq == entry.get(),
            (Target::Event(event), Entry::Event(entry)) => event == entry.get(),
            _ => false,
        };
        let count = match (target, side) {
            (Target::Time(time), Side::To) => self.moments.partition_point(|m| m.time <= time),
            (Target::Time(time), Side::Before) => self.moments.partition_point(|m| m.time < time),
            (_, side) => {
                let at = self.moments.iter().position(|moment| wanted(moment.entry));
                at.expect("the target is an entry") + usize::from(side == Side::To)
            }
        };
        match count.checked_sub(1) {
            Some(at) => self.moments[at].shown.clone(),
            None => Shown::default(),
        }
    }

    pub fn any_seq(&self, at: u16) -> Option<Seq> {
        let count = self.at().seq;
        Seq::new(u64::from(at).checked_rem(count)? + 1)
    }

    pub fn any_event(&self, at: u16) -> Option<EventId> {
        let count = self.at().event;
        EventId::new(u64::from(at).checked_rem(count)? + 1)
    }

    /// The calls that wait at the end of what is shown.
    pub fn waiting(&self) -> Vec<Call> {
        let mut rounds = Rounds::default();
        for seq in self.path() {
            rounds.add(seq, self.facts_at(seq), None);
        }
        rounds.waiting().cloned().collect::<Vec<_>>()
    }

    pub fn facts_at(&self, seq: Seq) -> &Facts {
        &self.facts[seq.get() as usize - 1]
    }

    fn facts_of(&self, says: Says) -> Facts {
        match says {
            Says::System => facts(Role::System),
            Says::Request => facts(Role::User),
            Says::Empty(role) => Facts {
                empty: true,
                ..facts(role)
            },
            Says::Reply(count, ids) => Facts {
                calls: ids.into_iter().take(count).map(call).collect(),
                reasoning: count == 2,
                ..facts(Role::Assistant)
            },
            Says::Item(count, ids) => Facts {
                item: true,
                ..self.facts_of(Says::Reply(count, ids))
            },
            Says::Answer(carrier, count) => {
                let mut waiting = self.waiting();
                waiting.reverse();
                waiting.truncate(count);
                results(carrier, waiting)
            }
            Says::Mixed(id) => {
                let mut answers = self.waiting();
                answers.truncate(1);
                answers.push(call(id));
                results(Carrier::User, answers)
            }
            Says::Stray(carrier, id) => results(carrier, vec![call(id)]),
            Says::Linked(role, kind, id, calls) => Facts {
                role,
                links: vec![Link {
                    id: format!("u{id}"),
                    kind,
                }],
                ..self.facts_of(Says::Reply(calls, [id, id + 1, id]))
            },
        }
    }

    /// Entries are one millisecond apart, or none: every third shares its time with the one before.
    fn tick(&mut self) {
        self.clock += u64::from(!self.moments.len().is_multiple_of(3));
    }

    fn remember(&mut self, entry: Entry) {
        self.moments.push(Moment {
            entry,
            time: self.clock,
            shown: self.shown().clone(),
        });
    }
}

pub fn facts(role: Role) -> Facts {
    Facts {
        role,
        calls: Vec::new(),
        answers: Vec::new(),
        links: Vec::new(),
        reasoning: false,
        empty: false,
        item: false,
        tokens: 10,
        bytes: 40,
    }
}

/// A message that brings results; plain words of the user if there are none.
fn results(carrier: Carrier, mut answers: Vec<Call>) -> Facts {
    let role = match carrier {
        _ if answers.is_empty() => Role::User,
        Carrier::Tool => Role::Tool,
        Carrier::User => Role::User,
    };
    if role == Role::Tool {
        answers.truncate(1);
    }
    Facts {
        answers,
        ..facts(role)
    }
}

/// One of a few calls, so that ids come back; the last has only a name.
fn call(id: u8) -> Call {
    Call {
        id: (id < 5).then(|| format!("c{id}")),
        name: (id >= 4).then(|| "ls".to_owned()),
    }
}

fn pick<T: Copy>(from: &[T], at: u16) -> Option<T> {
    let at = usize::from(at).checked_rem(from.len())?;
    Some(from[at])
}
