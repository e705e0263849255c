//! The writer of a task: appends messages and steps, and keeps derived files up to date.

mod error;
mod steps;
mod files;
mod rollback;

use std::borrow::Cow;
use std::path::Path;

use infold_log::{EventId, Record, Role, Span};
use infold_wire::{Message, tokens};

use crate::current::Current;
use crate::derived::{Derived, check_record};
use crate::dirs::TaskDirs;
use crate::event::{EventLine, Failure, Usage, What};
use crate::file::Access;
use crate::frame::Frames;
use crate::lock::{Claim, Lock, Taken};
use crate::log::{Ahead, LinePlace, message_entry};
use crate::push_journal::{self, Ends, PushJournal};
use crate::repair::{self, Repair};
use crate::stored::{self, Marks, Original};
use crate::unsynced::NamesSynced;
use crate::{Log, LogError, time, tool_use};
pub use error::{AppendError, OpenError, ToolError};
pub use files::Restoration;
pub use steps::{Trigger, stand_in_tokens};

/// When writes are synced to the disk.
///
/// Whatever the setting, an acknowledged write survives the end of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Before each write is acknowledged.
    Always,
    /// At the end of a turn, and before any step.
    #[default]
    Turn,
    /// When the system sees fit.
    Never,
}

/// The most bytes that one message may have.
pub const MAX_MESSAGE: usize = 64 << 20;

/// How large a buffer is kept between appends.
const MAX_KEPT_BUFFER_BYTES: usize = 64 << 10;

/// A task opened for writing. There is one at a time.
#[derive(Debug)]
pub struct Writer {
    log: Log,
    current: Current,
    pub(crate) durability: Durability,
    clock: u64,
    /// The clock moves with the times of messages alone: a transcript is replayed.
    pub(crate) replays: bool,
    /// The clock as text.
    stamp: String,
    /// Lines on their way to the log.
    buffer: Vec<u8>,
    /// The pass that steps belong to.
    pass: Option<EventId>,
    /// The frames of the task; none until they are used.
    pub(crate) frames: Option<Frames>,
    /// Whether it would be found again after a power cut.
    pub(crate) names_synced: NamesSynced,
    closed: bool,
    /// Whether a file derived from events could not be updated.
    is_derived_behind: bool,
    /// Whether a push is under way: derived files wait for its end.
    is_pushing: bool,
    /// A push that failed and could not be taken back yet.
    abandoned: Option<(Ends, Option<PushJournal>)>,
    /// Something that failed could not be taken back, and may be in the log.
    is_unsure: bool,
    /// The tool that readers of new stubs can open hidden messages with.
    recall_tool: Option<String>,
    lock: Lock,
}

impl Writer {
    /// Opens a task for writing and repairs the leftovers of a crash.
    pub fn open(
        dir: &Path,
        durability: Durability,
        dirs: &TaskDirs,
    ) -> Result<(Writer, Vec<Repair>), OpenError> {
        Writer::open_at(dir, durability, dirs, None)
    }

    /// As [`Writer::open`], for one who answers requests at an address.
    pub(crate) fn open_at(
        dir: &Path,
        durability: Durability,
        dirs: &TaskDirs,
        address: Option<&str>,
    ) -> Result<(Writer, Vec<Repair>), OpenError> {
        let (mut lock, left) = match Lock::take(dir, address)? {
            Taken::Ours(lock, left) => (lock, left),
            Taken::Held(holder) => return Err(OpenError::Held { holder }),
        };
        let mut repairs: Vec<Repair> = left.iter().cloned().map(Repair::StaleLock).collect();
        if let Some(bytes) = push_journal::withdraw(dir)? {
            repairs.push(Repair::Withdrawn { bytes });
        }
        let (mut log, tail) = Log::open(dir, Access::Write, dirs)?;
        repairs.extend(repair::tail(&mut log, &tail)?);
        let mut current = Current::open(dir);
        repairs.extend(repair::derived(&log, &mut current, left.is_some())?);
        let clock = log.last_time()?;
        lock.in_order(true);
        let writer = Writer {
            clock,
            replays: false,
            stamp: String::new(),
            buffer: Vec::new(),
            pass: None,
            frames: None,
            // A process that syncs its writes synced these when it created the task.
            names_synced: NamesSynced::new(durability != Durability::Never),
            log,
            current,
            durability,
            closed: false,
            is_derived_behind: false,
            is_pushing: false,
            abandoned: None,
            is_unsure: false,
            recall_tool: None,
            lock,
        };
        Ok((writer, repairs))
    }

    /// The log behind it.
    pub fn log(&self) -> &Log {
        &self.log
    }

    pub(crate) fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    /// Returns whether `current.jsonl` shows all of the log. What could not be written at its time is
    /// written with the next step or by the next writer.
    pub fn has_current_view(&self) -> bool {
        self.current.is_intact() && self.current.at() == Some(self.log.state().at())
    }

    /// Appends messages, all or none, and returns their seqs; none for no messages.
    ///
    /// Each costs one parse and two small writes, however long the log is.
    pub fn append<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> Result<Option<Span>, AppendError> {
        self.append_said_at(messages, &[])
    }

    /// As [`Writer::append`], with the time at which each was said, as far as that is known; one without has
    /// the time of the one before it.
    ///
    /// A time before that of the last message counts as that one, and a time in the future as now.
    pub fn append_said_at<M: AsRef<[u8]>>(
        &mut self,
        messages: &[M],
        times: &[Option<u64>],
    ) -> Result<Option<Span>, AppendError> {
        if !self.log.redacts {
            return self.append_as_is(messages, times, &[]);
        }
        let redacted: Vec<Cow<'_, [u8]>> = messages
            .iter()
            .map(|message| self.log.without_secrets(message.as_ref()))
            .collect();
        self.append_as_is(&redacted, times, &[])
    }

    pub(crate) fn append_as_is<M: AsRef<[u8]>>(
        &mut self,
        messages: &[M],
        times: &[Option<u64>],
        originals: &[Option<Original>],
    ) -> Result<Option<Span>, AppendError> {
        self.prepare()?;
        let now = time::now();
        match times.iter().flatten().next() {
            None => {
                self.now();
            }
            Some(first) if self.clock == 0 => self.advance(now.min(*first)),
            Some(_) => {}
        }
        let mut rounds = self.log.take_rounds()?;
        let mut sums = self.log.sums()?;
        let mut seq = self.log.state().next_seq();
        let (first, base) = (seq, self.log.messages.len());
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        let mut added = Vec::with_capacity(messages.len());
        let mut ends_turn = false;
        for (index, text) in messages.iter().enumerate() {
            let text = text.as_ref();
            if text.len() > MAX_MESSAGE {
                let bytes = text.len();
                return Err(AppendError::TooLarge { index, bytes });
            }
            let message =
                Message::read(text).map_err(|reason| AppendError::NotAMessage { index, reason })?;
            if let Some(Some(said)) = times.get(index) {
                self.advance(now.min(*said));
            }
            let mut facts = message.facts();
            let start = bytes.len();
            let size = stored::size(message.bytes());
            facts.bytes = size as u64;
            facts.tokens = tokens::message(&message);
            let marks = Marks {
                seq,
                stamp: &self.stamp,
                tokens: facts.tokens,
                role: (!message.has_role()).then_some(facts.role),
                redacted: originals.get(index).copied().flatten(),
            };
            let cut = stored::write(message.bytes(), marks, &mut bytes);
            let ahead = Ahead {
                log: &self.log,
                messages: &messages[..index],
                added: &added,
            };
            let tied = ahead.tied(&rounds, &facts)?;
            if tied.is_none()
                && let Some(fold) = ahead.hidden_by(&rounds, &facts)?
            {
                // Ends, because there is one fold less each time.
                self.step(What::Unfold(fold))?;
                return self.append_as_is(messages, times, originals);
            }
            let placement = rounds.add(seq, &facts, tied);
            let record = Record::following(sums, &facts, placement, self.clock);
            sums = record.sums;
            ends_turn |= facts.role == Role::Assistant && placement.waiting == 0;
            let place = LinePlace::of(base + start as u64, &bytes[start..]);
            added.push(message_entry(place, cut, record, message.wires()));
            seq = seq.next();
        }
        self.log.messages.append(&bytes)?;
        let synced = match self.durability {
            Durability::Always => self.log.messages.sync(),
            Durability::Turn if ends_turn => self.log.messages.sync(),
            Durability::Turn | Durability::Never => Ok(()),
        };
        if let Err(error) = synced {
            self.is_unsure |= !self.log.messages.take_back(base);
            return Err(error.after(!self.is_unsure).into());
        }
        let last = seq.prev().and_then(|last| Span::new(first, last));
        self.log.took_messages(&added, rounds);
        // A buffer that grew for one large message is not kept.
        bytes.truncate(0);
        bytes.shrink_to(MAX_KEPT_BUFFER_BYTES);
        self.buffer = bytes;
        if ends_turn && self.durability != Durability::Never && !self.is_pushing {
            // The view is derived: a failed update is made up for later.
            let _ = self.current.follow(&self.log);
        }
        Ok(last)
    }

    /// Records that a tool was run; returns the record's number.
    pub fn tool(&mut self, record: &[u8]) -> Result<u64, ToolError> {
        let record = check_record(record)?;
        self.step(What::Tool(record))?;
        Ok(self.log.counts()?.1)
    }

    /// Records the tools whose results these messages bring, as far as their calls are known; returns how many
    /// there are.
    pub fn record_tools(&mut self, messages: Span) -> Result<usize, LogError> {
        let first = self.log.state().next_event();
        let count = self.enter_tools(messages)?;
        if count > 0 {
            self.sync_log()?;
            self.follow_events(first);
        }
        Ok(count)
    }

    /// As [`Writer::record_tools`], without syncing and without updating derived files.
    pub(crate) fn enter_tools(&mut self, messages: Span) -> Result<usize, LogError> {
        let records = tool_use::records(&self.log, messages)?;
        let (ts, count) = (self.now(), records.len());
        for record in records {
            self.enter(What::Tool(record), ts, false)?;
        }
        Ok(count)
    }

    /// Brings the files that follow from single events up to date, from this event on.
    pub(crate) fn follow_events(&mut self, first: EventId) {
        for derived in Derived::ALL {
            // These files are derived: the next writer makes up for a failed update.
            let done = derived.follow_from(&self.log, first, self.current.written(derived));
            self.is_derived_behind |= done.is_err();
        }
    }

    /// Records the usage that a provider reported for the last request and its reply, which is the last
    /// message.
    pub fn usage(&mut self, usage: Usage) -> Result<EventId, LogError> {
        self.step(What::Usage(usage))
    }

    /// Records that a provider was called and no reply came of it.
    pub fn failure(&mut self, failure: Failure) -> Result<EventId, LogError> {
        self.step(What::Failure(failure))
    }

    /// Updates all derived files, and syncs the log.
    ///
    /// Derived files that cannot be written now are updated later.
    pub fn sync(&mut self) -> Result<(), LogError> {
        if self.durability != Durability::Never {
            return self.force();
        }
        self.prepare()?;
        self.follow();
        Ok(())
    }

    /// As [`Writer::sync`], whatever the durability.
    pub fn force(&mut self) -> Result<(), LogError> {
        self.prepare()?;
        self.force_log()?;
        self.follow();
        Ok(())
    }

    /// Brings the log onto the disk.
    fn force_log(&mut self) -> Result<(), LogError> {
        self.log.messages.sync()?;
        self.log.events.sync()?;
        self.sync_frames()?;
        self.names_synced.force(self.log.dir())
    }

    /// Syncs the log if the durability requires it.
    pub(crate) fn sync_log(&mut self) -> Result<(), LogError> {
        match self.durability {
            Durability::Never => Ok(()),
            Durability::Always | Durability::Turn => self.force_log(),
        }
    }

    /// Makes sure that writing is still ours alone, and that nothing half done is left in the log.
    pub(crate) fn prepare(&mut self) -> Result<(), LogError> {
        self.lock.check()?;
        self.retry_roll_back()
    }

    /// Returns the claim that shows whether this writer is still the only one.
    pub fn claim(&self) -> &Claim {
        self.lock.claim()
    }

    /// Writes the index, so that readers of the log do not have to derive it.
    pub fn save_index(&mut self) -> Result<(), LogError> {
        self.log.flush()
    }

    pub(crate) fn sync_frames(&mut self) -> Result<(), LogError> {
        self.frames.as_mut().map_or(Ok(()), Frames::sync)
    }

    /// Updates everything that is derived from the whole log, as far as possible now.
    pub(crate) fn follow(&mut self) {
        let _ = self.log.flush();
        let _ = self.current.follow(&self.log);
    }

    /// Drops the writer without closing the task properly; the lock file shows that.
    pub(crate) fn abandon(mut self) {
        self.lock.in_order(false);
    }

    /// Brings everything up to date for the last time; only the lock is still held.
    pub(crate) fn close(&mut self) -> Result<(), LogError> {
        self.closed = true;
        self.settle_derived();
        self.sync()
    }

    /// Rewrites the files derived from events that could not be updated. If that is still not possible, the lock file
    /// shows that the next writer has to, as after a crash.
    fn settle_derived(&mut self) {
        if !self.is_derived_behind {
            return;
        }
        for derived in Derived::ALL {
            if derived.is_current(&self.log).is_ok_and(|current| current) {
                continue;
            }
            match derived.rewrite(&self.log) {
                Ok(written) => *self.current.written(derived) = Some(written),
                Err(_) => self.lock.in_order(false),
            }
        }
    }

    /// Appends an event and updates the files derived from it.
    pub(crate) fn step(&mut self, what: What) -> Result<EventId, LogError> {
        let ts = self.now();
        self.step_at(what, ts)
    }

    /// The same, as of a time that is not before that of the last entry.
    pub(crate) fn step_at(&mut self, what: What, ts: u64) -> Result<EventId, LogError> {
        self.prepare()?;
        if self.durability != Durability::Never {
            // Messages, and the frames around them, are synced before an event that follows them.
            let synced = self.log.messages.sync().and_then(|()| self.sync_frames());
            synced.map_err(|error| error.after(!self.is_unsure))?;
        }
        let line = self.enter(what, ts, self.durability != Durability::Never)?;
        // From here on all is derived: on a full disk it waits, and the step stands.
        for derived in Derived::ALL {
            let done = derived.follow(&self.log, &line, self.current.written(derived));
            self.is_derived_behind |= done.is_err();
        }
        if self.durability != Durability::Never && !self.is_pushing {
            self.follow();
        }
        Ok(line.id)
    }

    /// Appends an event and nothing that follows from it.
    fn enter(&mut self, what: What, ts: u64, sync: bool) -> Result<EventLine, LogError> {
        let (line, bytes) = self.next_line(what, ts, 0)?;
        let offset = self.log.events.append(&bytes)?;
        let synced = if sync { self.log.events.sync() } else { Ok(()) };
        let place = LinePlace::of(offset, &bytes);
        let taken = synced.and_then(|()| self.log.took_event(&line, place));
        if let Err(error) = taken {
            // Otherwise the next event would follow it with the same number.
            self.is_unsure |= !self.log.events.take_back(offset);
            return Err(error.after(!self.is_unsure));
        }
        Ok(line)
    }

    /// Encodes the line of an event that will follow so many others that are not in the log yet.
    fn next_line(&self, what: What, ts: u64, ahead: u64) -> Result<(EventLine, Vec<u8>), LogError> {
        let at = self.log.state().at();
        let id = EventId::new(at.event + 1 + ahead).expect("one more than a count is not zero");
        self.log.event_without_secrets(EventLine {
            id,
            ts,
            after: at.seq,
            pass: self.pass,
            what,
        })
    }

    /// The time of the next entry.
    pub(crate) fn now(&mut self) -> u64 {
        if !self.replays || self.clock == 0 {
            self.set_clock(time::following(self.clock));
        }
        self.clock
    }

    /// Moves the clock forward to a time.
    fn advance(&mut self, time: u64) {
        self.set_clock(self.clock.max(time));
    }

    fn set_clock(&mut self, time: u64) {
        if time != self.clock || self.stamp.is_empty() {
            self.clock = time;
            self.stamp = time::iso(time);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.closed {
            // The next writer makes up for failed updates.
            let _ = self.close();
        }
        if self.lock.check().is_ok() {
            let _ = self.log.renew_damaged_sidecars();
        }
    }
}
