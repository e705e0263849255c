//! Puts right that a fork continues a task from a point which that task has lost.

use std::path::Path;

use infold_log::{EventId, Past as _, Point, Seq};
use infold_wire::Wire;
use uuid::Uuid;

use crate::file::{self, Access};
use crate::lengthen::note_of_loss;
use crate::log::{lists_ancestor, remove_sidecar};
use crate::mend::{MAX_GONE_LINES, fork_event, mended_events, mended_messages};
use crate::{Contexts, EventLine, Log, LogError, Metadata, TaskError, What};

impl Contexts {
    /// Makes sure that the point exists from which a task continues `lost`, its parent. Returns a description
    /// of the repair; none if that task is not its parent, or too much is lost to be plausible.
    ///
    /// A parent that ends too early is lengthened. If a parent was written to since, its new entries replaced
    /// the lost ones and do not belong to the fork: the fork then begins at the last remaining point of the
    /// part that it continued.
    pub(crate) fn restore_fork_point(
        &self,
        id: Uuid,
        dir: &Path,
        lost: &str,
    ) -> Result<Option<String>, TaskError> {
        let Some(fork) = fork_event(dir)? else {
            return Ok(None);
        };
        let What::Fork { task, at } = &fork.what else {
            return Ok(None);
        };
        let Some(parent) = task.parse().ok().filter(|_| task == lost) else {
            return Ok(None);
        };
        if let Some(parent_dir) = self.place(parent) {
            let (log, _) = Log::open(&parent_dir, Access::Rederive, &self.dirs())?;
            let left = last_point_until(&log, *at, fork.ts)?;
            if left != log.state().at() {
                let holder = log.holder_of(left)?.unwrap_or((parent, left));
                return self.move_fork_point(id, dir, &fork, holder);
            }
        }
        let wire = Metadata::read(dir).map_or(Wire::Chat, |metadata| metadata.form());
        let said = self.lengthen(parent, *at, wire)?;
        Ok(said.map(|said| format!("task {parent}: {said}")))
    }

    /// Makes a fork begin at an earlier point, with notes and events that change nothing from there to where it began.
    fn move_fork_point(
        &self,
        id: Uuid,
        dir: &Path,
        fork: &EventLine,
        (parent, to): (Uuid, Point),
    ) -> Result<Option<String>, TaskError> {
        let lost = fork.after.saturating_sub(to.seq);
        let lost_events = (fork.id.get() - 1).saturating_sub(to.event);
        let is_lost = lost > 0 || lost_events > 0;
        if !is_lost || lost.max(lost_events) > MAX_GONE_LINES {
            return Ok(None);
        }
        let first = EventLine {
            id: EventId::new(to.event + 1).expect("one more than a count is not zero"),
            after: to.seq,
            what: What::Fork {
                task: parent.to_string(),
                at: to,
            },
            ..fork.clone()
        };
        let mut locks = vec![self.locked(id, dir)?];
        let mut changed = vec![dir.to_owned()];
        // Tasks that continue this one have the list of all their ancestors beside their logs.
        for task in self.tasks()? {
            if let Some(later) = self.place(task).filter(|dir| lists_ancestor(dir, id)) {
                locks.push(self.locked(task, &later)?);
                changed.push(later);
            }
        }
        let (messages, events) = (dir.join("messages.jsonl"), dir.join("events.jsonl"));
        let asides = [file::copy_aside(&messages)?, file::copy_aside(&events)?];
        let [aside, aside_events] = asides.map(|aside| aside.display().to_string());
        let note = |seq| {
            if seq <= fork.after {
                note_of_loss(seq)
            } else {
                format!("[message {seq} was damaged on disk; what is left of it is in {aside}]")
            }
        };
        let mended = mended_messages(dir, to.seq + 1, fork.after, &note)?;
        // Messages come first: should this be cut short, the first event still names the point that is lost, and all is
        // done again.
        file::replace(&messages, &mended.bytes)?;
        for dir in &changed {
            remove_sidecar(dir)?;
        }
        let mended = mended_events(dir, Some(first), fork.id.get())?;
        file::replace(&events, &mended.bytes)?;
        file::sync_dir(dir)?;
        drop(locks);
        Ok(Some(format!(
            "task {parent} lost {lost} messages and {lost_events} events that this one continues, and was written to since: this one continues it from message {} on, with notes for lost messages; what lost events did is undone; the files as they were are {aside} and {aside_events}",
            to.seq
        )))
    }
}

/// The last point of a log, not after another one, all entries up to which were made by a time.
fn last_point_until(log: &Log, at: Point, time: u64) -> Result<Point, LogError> {
    let end = log.state().at();
    let (mut seq, mut event) = (at.seq.min(end.seq), at.event.min(end.event));
    while let Some(last) = Seq::new(seq) {
        if log.record(last)?.time <= time {
            break;
        }
        seq -= 1;
    }
    while let Some(last) = EventId::new(event) {
        let mark = log.mark(last)?;
        if mark.time <= time && mark.after <= seq {
            break;
        }
        event -= 1;
    }
    Ok(Point { seq, event })
}
