//! Looks up messages, events and their index entries by number, in the log and in those of tasks that it
//! continues.

use std::fs;
use std::io;

use infold_log::steer::{self, Side, Target};
use infold_log::{EventId, Point, Seq, Shown, Span};
use infold_wire::Wire;

use super::line::{self, Group};
use crate::entry::{Base, EventEntry, MessageEntry};
use crate::event::{EventLine, What, each_redaction};
use crate::file::Access;
use crate::redacted_digests::TaskRedactions;
use crate::redacted_name::{name_digest, split_key};
use crate::stored::Original;
use crate::{Log, LogError};

/// Where the state after an event is found.
pub(super) enum StateSource {
    /// Nothing: the event is applied to the state before it.
    Before,
    /// The view equals that at an earlier point.
    Same(Point),
    /// The view state itself.
    Shown(Shown),
}

impl Log {
    /// Returns a message as it came.
    pub fn message(&self, seq: Seq) -> Result<Vec<u8>, LogError> {
        match self.ancestor_of(seq.get(), |point| point.seq)? {
            Some(held) => self.lineage.with(held, |one| one.message(seq)),
            None => self.ask_own(
                || line::read_message(&self.messages, seq, &self.entries.get(seq.get())?),
                |log| log.message(seq),
            ),
        }
    }

    /// Returns the digest of the original content of a redacted message, none if that was empty; and none at
    /// all if the message is unchanged.
    pub fn redacted(&self, seq: Seq) -> Result<Option<Original>, LogError> {
        match self.ancestor_of(seq.get(), |point| point.seq)? {
            Some(held) => self.lineage.with(held, |one| one.redacted(seq)),
            None => self.ask_own(
                || line::read_original(&self.messages, seq, &self.entries.get(seq.get())?),
                |log| log.redacted(seq),
            ),
        }
    }

    /// Returns an event.
    pub fn event(&self, id: EventId) -> Result<EventLine, LogError> {
        match self.ancestor_of(id.get(), |point| point.event)? {
            Some(held) => self.lineage.with(held, |one| one.event(id)),
            None => self.ask_own(
                || line::read_event(&self.events, id, &self.marks.get(id.get())?),
                |log| log.event(id),
            ),
        }
    }

    /// Returns the target that is meant by one which names a reply: right after the look-ups that it was made with, if there are
    /// any. They belong to it, and are recorded behind it.
    pub fn with_lookups(&self, side: Side, target: Target) -> Result<Target, LogError> {
        let (Target::Message(seq), Side::To) = (target, side) else {
            return Ok(target);
        };
        let Ok(point) = steer::locate(self.state(), side, target, self) else {
            return Ok(target);
        };
        let next = EventId::new(point.event + 1).filter(|_| point.event < self.state().at().event);
        Ok(match next.map(|next| self.event(next)).transpose()? {
            Some(EventLine {
                id,
                after,
                what: What::Lookup(lookup),
                ..
            }) if after == seq && lookup.span.to().get() == seq => Target::Event(id.get()),
            _ => target,
        })
    }

    /// Returns the names of its conversation that were redacted, as the conversation index has them since. All of the log's own
    /// events are read.
    pub fn redacted_names(&self) -> Result<Vec<String>, LogError> {
        let mut names = Vec::new();
        each_redaction(&self.events, |_, redact| names.extend(redact.names))?;
        Ok(names)
    }

    /// Returns the digests by which copies of this task's redacted texts are recognised, and those of redacted
    /// names and keys of pushes, each with its event. All of the log's own events are read.
    pub fn redactions(&self) -> Result<TaskRedactions, LogError> {
        let mut all = TaskRedactions::default();
        each_redaction(&self.events, |id, redact| {
            let messages = redact.messages.iter().filter_map(|(_, digest)| *digest);
            let forms = redact.forms.iter();
            let contents = forms.clone().flat_map(|forms| forms.contents.iter());
            let contents = contents.chain(&redact.contents).copied();
            let names = redact.names.iter().filter_map(|name| split_key(name));
            let names = names.filter_map(|(_, name)| name_digest(name));
            let digests = messages.chain(contents).chain(names);
            all.digests.extend(digests.map(|digest| (digest, id)));
            let lines = forms.flat_map(|forms| forms.lines.iter().cloned());
            all.lines.extend(lines.map(|line| (line, id)));
            let values = redact.values.into_iter().filter(|value| value.is_of_prompt);
            all.of_prompts.extend(values.map(|value| (value, id)));
        })?;
        let mut last = self.last_keyed_push()?;
        while let Some(id) = last.filter(|id| id.get() >= self.own().event) {
            let What::Append(append) = self.event(id)?.what else {
                break;
            };
            let key = name_digest(&append.key);
            all.digests.extend(key.map(|digest| (digest, id)));
            last = append.previous.filter(|previous| *previous < id);
        }
        Ok(all)
    }

    /// Returns whether messages can be sent on a wire exactly as they are.
    ///
    /// Only the index is read.
    pub fn is_native(&self, span: Span, wire: Wire) -> Result<bool, LogError> {
        for seq in span.seqs() {
            if !self.entry(seq)?.wires.has(wire) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Messages that stand together, from one on up to another at most.
    pub(crate) fn group(&self, from: Seq, to: Seq) -> Result<Group, LogError> {
        match self.ancestor_of(from.get(), |point| point.seq)? {
            Some(held) => {
                let end = self.lineage.link(held)?.map_or(0, |link| link.end.seq);
                let to = Seq::new(end).map_or(from, |end| to.min(end));
                self.lineage.with(held, |one| one.group(from, to))
            }
            None => self.ask_own(
                || Group::read(&self.messages, from, to, |seq| self.entries.get(seq.get())),
                |log| log.group(from, to),
            ),
        }
    }

    /// Where the line of a message ends in the file that holds it, and its checksum.
    pub(crate) fn line_end(&self, seq: Seq) -> Result<(u64, u32), LogError> {
        let entry = self.entry(seq)?;
        Ok((entry.offset + u64::from(entry.len), entry.sum))
    }

    /// Returns the index entry of a message.
    pub(super) fn entry(&self, seq: Seq) -> Result<MessageEntry, LogError> {
        match self.ancestor_of(seq.get(), |point| point.seq)? {
            Some(held) => self.lineage.with(held, |one| one.entry(seq.get())),
            None => self.ask_own(|| self.entries.get(seq.get()), |log| log.entry(seq)),
        }
    }

    /// Returns the index entry of an event.
    pub(super) fn event_entry(&self, id: EventId) -> Result<EventEntry, LogError> {
        match self.ancestor_of(id.get(), |point| point.event)? {
            Some(held) => self.lineage.with(held, |one| one.mark(id.get())),
            None => self.ask_own(|| self.marks.get(id.get()), |log| log.event_entry(id)),
        }
    }

    /// Returns the last message before an event, and the stored part of the state after it.
    pub(super) fn kept(&self, event: u64) -> Result<(u64, StateSource), LogError> {
        match self.ancestor_of(event, |point| point.event)? {
            Some(held) => self.lineage.with(held, |one| one.kept(event)),
            None => self.ask_own(|| self.own_kept(event), |log| log.kept(event)),
        }
    }

    fn own_kept(&self, event: u64) -> Result<(u64, StateSource), LogError> {
        let entry = self.marks.get(event)?;
        let kept = match entry.base {
            Base::Before => StateSource::Before,
            Base::Same(point) => StateSource::Same(point),
            Base::Snapshot { offset, len } => {
                StateSource::Shown(self.states.get(event, offset, len)?)
            }
        };
        Ok((entry.mark.after, kept))
    }

    /// The ancestor that holds a message or an event; none if it is the log's own.
    pub(super) fn ancestor_of(
        &self,
        number: u64,
        of: fn(Point) -> u64,
    ) -> Result<Option<usize>, LogError> {
        if number > of(self.base) {
            return Ok(None);
        }
        self.lineage.holder(number, of).map(Some)
    }

    /// Asks the log's own sidecars, and, where a record of theirs is damaged, those that are derived then.
    fn ask_own<T>(
        &self,
        ask: impl Fn() -> Result<T, LogError>,
        again: impl Fn(&Log) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        match ask() {
            Err(error) if error.is_of_sidecar() && self.is_caught_up => again(self.rederived()?),
            asked => asked,
        }
    }

    /// The same log as it is without trusting a sidecar. It is read once.
    fn rederived(&self) -> Result<&Log, LogError> {
        if self.rederived.get().is_none() {
            let dirs = self.lineage.dirs.clone();
            let (log, _) = Log::open(&self.dir, Access::Rederive, &dirs)?;
            let _ = self.rederived.set(Box::new(log));
        }
        Ok(self.rederived.get().expect("it was set above"))
    }

    /// Rewrites the sidecars if one of them turned out to be damaged in its middle. Only a writer may call
    /// this.
    pub(crate) fn renew_damaged_sidecars(&self) -> Result<(), LogError> {
        if self.rederived.get().is_none() {
            return Ok(());
        }
        for name in ["messages.idx", "events.idx", "states.idx"] {
            let path = self.dir.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(LogError::io(&path, "removed", error));
                }
                _ => {}
            }
        }
        let (mut log, _) = Log::open(&self.dir, Access::Write, &self.lineage.dirs)?;
        log.flush()
    }
}
