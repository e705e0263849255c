//! Updates a log in memory, and its sidecars, after lines were appended to its files.

use infold_log::{Cause, Event, Past as _, Point, Record, Rounds, Shown, before, round_members};
use infold_wire::Wires;

use super::line::LinePlace;
use crate::entry::{Base, EventEntry, MessageEntry, Spent};
use crate::event::{EventLine, Purpose, What};
use crate::{Log, LogError};

/// A snapshot of the state is due after this many events at least. To find a state, the events after the snapshot
/// before it are applied.
const MIN_EVENTS_BETWEEN_SNAPSHOTS: u64 = 32;

/// The most references from a state to an earlier equal one that are followed to a stored state.
const MAX_HOPS: usize = 4;

impl Log {
    /// Removes the records of the sidecars after their last valid one.
    pub(crate) fn trim(&mut self) -> Result<(), LogError> {
        self.states.trim()?;
        self.entries.trim()?;
        self.marks.trim()
    }

    /// Writes the sidecars.
    pub(crate) fn flush(&mut self) -> Result<(), LogError> {
        self.lineage.save(&self.dir)?;
        self.states.flush()?;
        self.entries.flush()?;
        self.marks.flush()
    }

    /// Updates the sidecar and the state after lines were appended to `messages.jsonl`.
    pub(crate) fn took_messages(&mut self, added: &[MessageEntry], rounds: Rounds) {
        for entry in added {
            self.entries.push(*entry);
            self.state.message(self.state.next_seq());
        }
        self.rounds = Some(rounds);
    }

    /// Updates the sidecars and the state after a line was appended to `events.jsonl`.
    pub(crate) fn took_event(
        &mut self,
        line: &EventLine,
        place: LinePlace,
    ) -> Result<(), LogError> {
        let event = line.event();
        let back_to = self.back_to(&line.what)?;
        let mut state = self.state.clone();
        let mark = state.event(&event, line.pass, line.ts, &*self)?;
        let last = self.last_own_event()?;
        let snapshot = last.map_or(self.base.event, |last| last.snapshot);
        let base = self.base_of(line, back_to, state.shown(), snapshot)?;
        let has_snapshot = matches!(base, Base::Snapshot { .. });
        // These change nothing that is shown so far. An excerpt adds to the end of the view only, as a message does.
        let is_fact = matches!(event, Event::Fact | Event::Recall(_) | Event::State { .. });
        let is_summary = matches!(&line.what, What::Fold(fold) if fold.cause == Cause::Summary);
        let is_tool = matches!(&line.what, What::Tool(_));
        self.marks.push(EventEntry {
            offset: place.offset,
            len: place.len,
            sum: place.sum,
            mark,
            base,
            snapshot: if has_snapshot {
                line.id.get()
            } else {
                snapshot
            },
            change: if is_fact {
                last.map_or(0, |last| last.change)
            } else {
                line.id.get()
            },
            summaries: last.map_or(0, |last| last.summaries) + u64::from(is_summary),
            tools: last.map_or(0, |last| last.tools) + u64::from(is_tool),
            spent: spent(last.map_or(Spent::default(), |last| last.spent), &line.what),
            report: match &line.what {
                What::Usage(usage) if usage.purpose == Purpose::Reply => line.id.get(),
                _ => last.map_or(0, |last| last.report),
            },
            keyed: match &line.what {
                What::Append(_) => line.id.get(),
                _ => last.map_or(0, |last| last.keyed),
            },
            files: match &line.what {
                What::Checkpoint(_) | What::Restore(_) => line.id.get(),
                _ => last.map_or(0, |last| last.files),
            },
        });
        if !is_fact {
            self.rounds = None;
        }
        if let What::Usage(usage) = &line.what
            && usage.purpose == Purpose::Reply
        {
            *self.reported.borrow_mut() = Some((line.id, usage.clone(), line.after));
        }
        self.state = state;
        Ok(())
    }

    /// Decides how the view after an event is found later: by an earlier event with the same view, by a snapshot, or by
    /// applying the event to the view before it. The newest snapshot so far is that of the event `snapshot`.
    fn base_of(
        &mut self,
        line: &EventLine,
        back_to: Option<Point>,
        shown: &Shown,
        snapshot: u64,
    ) -> Result<Base, LogError> {
        let interval = (shown.nodes() / 4).max(MIN_EVENTS_BETWEEN_SNAPSHOTS);
        let is_due = line.id.get() - snapshot >= interval;
        if let Some(point) = back_to.filter(|_| !is_due)
            && let Some(same) = self.same_as(point, &line.what, shown)?
        {
            return Ok(Base::Same(same));
        }
        let is_kept = match &line.what {
            // Applying one of these looks up an earlier state, which may look up another.
            What::Undo(_) | What::Redo(_) | What::Rewind(_) => true,
            What::Unfold(fold) => self.state.shown().outermost(*fold).is_some(),
            // Opening the fork then opens no ancestor.
            What::Fork { .. } => true,
            _ => false,
        };
        if is_kept || is_due {
            Ok(self.states.push(line.id.get(), shown))
        } else {
            Ok(Base::Before)
        }
    }

    /// Takes out the state of the last round, by which the next message is assigned to a round.
    ///
    /// [`Log::took_messages`] puts it back. If nothing is appended, it is derived from the messages again next time.
    pub(crate) fn take_rounds(&mut self) -> Result<Rounds, LogError> {
        if let Some(rounds) = self.rounds.take() {
            return Ok(rounds);
        }
        let mut rounds = Rounds::default();
        let Some(last) = self.state.shown().open_end() else {
            return Ok(rounds);
        };
        let record = self.record(last)?;
        if record.waiting > 0 || record.item || record.unended {
            let path = self.state.shown().path();
            let tied = Some(record.tied).filter(|tied| *tied < record.round);
            for seq in round_members(record.round, path.into_iter(), self)? {
                let bytes = self.message(seq)?;
                rounds.add(seq, &self.parsed(seq, &bytes)?.facts(), tied);
            }
            let change = self.last_change()?;
            // Undoing a rewind hides the messages since, so an output may continue after one.
            let step_since = change > 0 && {
                let mark = self.marks.get(change)?.mark;
                mark.after >= last.get() && !mark.rewinds
            };
            if step_since || last.get() <= self.base.seq {
                rounds.end_output();
            }
        }
        Ok(rounds)
    }

    /// Returns the earlier point whose state an event may bring back.
    fn back_to(&self, what: &What) -> Result<Option<Point>, LogError> {
        let Point { seq, event } = self.state.at();
        let point = match what {
            What::Rewind(point) => Some(*point),
            What::Redo(_) => match self.state.undone(self)? {
                Some(undo) => Some(before(undo, self)?),
                None => None,
            },
            What::Undo(_) => match self.state.step() {
                Some(step) if self.mark(step)?.rewinds => Some(before(step, self)?),
                Some(step) => Some(Point {
                    seq,
                    event: step.get() - 1,
                }),
                None => None,
            },
            What::Unfold(fold) => Some(Point {
                seq,
                event: fold.get() - 1,
            }),
            _ => None,
        };
        Ok(point.filter(|point| point.seq <= seq && point.event <= event))
    }

    /// Returns the point with the same view as that after an event, if it is an earlier one.
    fn same_as(&self, point: Point, what: &What, shown: &Shown) -> Result<Option<Point>, LogError> {
        let Some(near) = self.near(point)? else {
            return Ok(None);
        };
        // Going back is exact. What is undone or opened may have been followed by other steps.
        let is_exact = near == point && matches!(what, What::Rewind(_) | What::Redo(_));
        Ok(Some(near).filter(|_| is_exact || self.shown(near).is_ok_and(|same| same == *shown)))
    }

    /// Returns the point that a point refers to, if it is found in a few hops.
    ///
    /// Without the limit, chains of references would be followed all the way back, in hops that add up over
    /// thousands of rewinds.
    fn near(&self, point: Point) -> Result<Option<Point>, LogError> {
        let mut point = point;
        let own = self.base.event + 1;
        while point.event >= own {
            let entry = self.marks.get(point.event)?;
            let Base::Same(earlier) = entry.base else {
                break;
            };
            point = match (
                point.seq == entry.mark.after,
                earlier.seq == entry.mark.after,
            ) {
                (true, _) => earlier,
                (false, true) => Point {
                    event: earlier.event,
                    ..point
                },
                // Later messages follow another message than in that state.
                (false, false) => return Ok(None),
            };
        }
        let mut target = point;
        for _ in 0..MAX_HOPS {
            let mut kept = Base::Before;
            for event in (own..=target.event).rev() {
                kept = self.marks.get(event)?.base;
                if kept != Base::Before {
                    break;
                }
            }
            match kept {
                Base::Same(earlier) => target = earlier,
                Base::Before | Base::Snapshot { .. } => return Ok(Some(point)),
            }
        }
        Ok(None)
    }
}

/// Returns the usage totals after an event.
fn spent(before: Spent, what: &What) -> Spent {
    match what {
        What::Usage(usage) => Spent {
            calls: before.calls + 1,
            tokens: before.tokens.saturating_add(usage.tokens),
            cached: before.cached.saturating_add(usage.cached),
            cost: before.cost.saturating_add(usage.cost),
        },
        _ => before,
    }
}

/// Makes the entry of a line in the sidecar. The message is the part of the line before the byte `cut`.
pub(crate) fn message_entry(
    place: LinePlace,
    cut: usize,
    record: Record,
    wires: Wires,
) -> MessageEntry {
    MessageEntry {
        offset: place.offset,
        len: place.len,
        cut: u32::try_from(cut).unwrap_or(u32::MAX),
        sum: place.sum,
        record,
        wires,
    }
}
