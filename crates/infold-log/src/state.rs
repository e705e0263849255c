//! The state of a log after its last entry.

use crate::{Event, EventId, Fold, Hides, Mark, Mask, Past, Pin, Pinned, Point, Seq, Shown, Span};

/// The state of a log after its last entry: the visible messages, and the steps that can be undone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    at: Point,
    shown: Shown,
    step: Option<EventId>,
    undone: Option<EventId>,
}

impl State {
    /// Returns the state at a point, from the view there and the mark of the last event before it.
    pub fn resume(at: Point, mark: Option<Mark>, shown: Shown) -> State {
        State {
            at,
            shown,
            step: mark.and_then(|mark| mark.step),
            undone: mark.and_then(|mark| mark.undone),
        }
    }

    /// Returns the point of the last entry.
    pub fn at(&self) -> Point {
        self.at
    }

    /// Returns the visible messages and folds.
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Returns the newest step that was not undone.
    pub fn step(&self) -> Option<EventId> {
        self.step
    }

    /// Returns the newest undo that can be redone; none if a message was appended since.
    pub fn undone<P: Past>(&self, past: &P) -> Result<Option<EventId>, P::Error> {
        let Some(undo) = self.undone else {
            return Ok(None);
        };
        let mark = past.mark(undo)?;
        Ok(Some(undo).filter(|_| mark.after == self.at.seq))
    }

    /// Returns the seq of the next message.
    pub fn next_seq(&self) -> Seq {
        Seq::new(self.at.seq + 1).expect("one more than a count is not zero")
    }

    /// Returns the last appended message.
    pub fn last_seq(&self) -> Option<Seq> {
        Seq::new(self.at.seq)
    }

    /// Returns the id of the next event.
    pub fn next_event(&self) -> EventId {
        EventId::new(self.at.event + 1).expect("one more than a count is not zero")
    }

    /// Returns the last appended event.
    pub fn last_event(&self) -> Option<EventId> {
        EventId::new(self.at.event)
    }

    /// Appends the message `seq`, which is the next one.
    pub fn message(&mut self, seq: Seq) {
        debug_assert_eq!(seq, self.next_seq());
        self.at.seq = seq.get();
        self.shown.append(seq);
    }

    /// Appends the messages up to `seq`, if any.
    pub fn messages_up_to(&mut self, seq: u64) {
        self.shown.append_up_to(self.at.seq, seq);
        self.at.seq = self.at.seq.max(seq);
    }

    /// Appends an event, part of the manage pass that began with `pass` or on its own.
    ///
    /// An event that does not apply to this state changes nothing; the planners never write such an event.
    pub fn event<P: Past>(
        &mut self,
        event: &Event,
        pass: Option<EventId>,
        time: u64,
        past: &P,
    ) -> Result<Mark, P::Error> {
        let id = self.next_event();
        match event {
            Event::Undo => self.undo(id, past)?,
            Event::Redo => self.redo(past)?,
            event => {
                self.apply(id, event, past)?;
                if event.is_step() {
                    // A pass is one step: undoing it restores the state before its first event.
                    self.step = pass.filter(|first| self.step == Some(*first)).or(Some(id));
                    self.undone = None;
                } else if matches!(event, Event::State { .. }) {
                    // Redoing would drop the change, as it would hide a message.
                    self.undone = None;
                }
            }
        }
        self.at.event = id.get();
        Ok(Mark {
            after: self.at.seq,
            time,
            step: self.step,
            undone: self.undone,
            rewinds: matches!(event, Event::Rewind(_)),
        })
    }

    fn apply<P: Past>(&mut self, id: EventId, event: &Event, past: &P) -> Result<(), P::Error> {
        let Point {
            seq: last,
            event: at,
        } = self.at;
        let shown = &mut self.shown;
        match *event {
            Event::Rewind(to) if to.seq > last || to.event > at => {}
            Event::Rewind(to) => *shown = past.shown(to)?,
            Event::Fold(Fold { hides, tokens }) => match hides {
                Hides::Rounds(cause, span) => shown.fold(id, cause, span, tokens),
                Hides::Part {
                    seq,
                    part,
                    tokens: hides,
                } => {
                    let mask = Mask { id, hides, tokens };
                    shown.masks.entry((seq, part)).or_insert(mask);
                }
            },
            Event::Unfold(fold) if shown.outermost(fold).is_some() => {
                let inner = past.shown(before(fold, past)?)?;
                shown.unfold(fold, &inner);
            }
            Event::Unfold(mask) => shown.unmask(mask),
            Event::Pin(Pin::Message(seq)) if seq.get() > last => {}
            Event::Pin(Pin::Message(seq)) => {
                shown.pins.insert(seq);
            }
            Event::Pin(Pin::Note { tokens }) => {
                shown.notes.insert(id, tokens);
            }
            Event::Unpin(Pinned::Message(seq)) => {
                shown.pins.remove(&seq);
            }
            Event::Unpin(Pinned::Note(note)) => {
                shown.notes.remove(&note);
            }
            Event::Recall(recall) if shown.open_end() == Some(recall.at) => {
                shown.recall(id, recall);
            }
            Event::State { .. } => shown.changes.last = Some(id),
            Event::Undo | Event::Redo | Event::Recall(_) | Event::Fact => {}
        }
        Ok(())
    }

    fn undo<P: Past>(&mut self, id: EventId, past: &P) -> Result<(), P::Error> {
        let Some(step) = self.step else {
            return Ok(());
        };
        let mark = past.mark(step)?;
        let mut shown = past.shown(before(step, past)?)?;
        if !mark.rewinds {
            // Messages appended since stay shown. No fold covers them: every step after
            // this one has been undone already.
            for run in self.shown.path() {
                let since = Seq::new(mark.after + 1).and_then(|from| Span::new(from, run.to()));
                if let Some(new) = since.and_then(|since| since.meet(run)) {
                    shown.append_run(new);
                }
            }
            // Excerpts recalled since stay as well, unless the messages that they quote are visible again.
            for ((_, id), recall) in &self.shown.recalls {
                if *id > step {
                    shown.recall(*id, *recall);
                }
            }
        }
        if !mark.rewinds {
            let then = Point {
                seq: mark.after,
                event: step.get(),
            };
            let changed = past.shown(then)?.changes.last == Some(step);
            shown.changes = self
                .shown
                .changes
                .without(changed.then_some(step), shown.changes);
        }
        self.undone = Some(id);
        self.shown = shown;
        self.step = match step.prev() {
            Some(previous) => past.mark(previous)?.step,
            None => None,
        };
        Ok(())
    }

    fn redo<P: Past>(&mut self, past: &P) -> Result<(), P::Error> {
        let Some(undo) = self.undone(past)? else {
            return Ok(());
        };
        let previous = undo.prev().expect("an undo follows the step it undid");
        let mark = past.mark(previous)?;
        self.shown = past.shown(before(undo, past)?)?;
        self.step = mark.step;
        self.undone = mark.undone;
        Ok(())
    }
}

/// Returns the point right before an event.
pub fn before<P: Past>(event: EventId, past: &P) -> Result<Point, P::Error> {
    Ok(Point {
        seq: past.mark(event)?.after,
        event: event.get() - 1,
    })
}
