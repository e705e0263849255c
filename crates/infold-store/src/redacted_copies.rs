//! Recognises copies of redacted messages among those that a client sends: they are recorded as redacted, whatever the client changed
//! before them.

mod sent;

use std::collections::{BTreeMap, BTreeSet};

use infold_log::{EventId, Seq, Span};
use infold_wire::MessageError;
use infold_wire::digest::{self, Digest};
use infold_wire::redact::{redact_matches, redact_message, visit_texts};
use uuid::Uuid;

use crate::event::{Extent, RedactLine, each_redaction};
use crate::redacted_digests::{EventKey, MAX_CONTENTS, RedactedDigests, content_digest};
use crate::redacted_values::{RedactedValue, RedactedValues};
use crate::stored::Original;
use crate::{AppendError, Contexts, Log, LogError, TaskError, What, Writer, redact};
use sent::{SentMessages, mark_following_pieces};

/// Nobody says this much again by chance.
const MIN_DISTINCT_BYTES: usize = 24;

/// Fewer conversations begin with the same words by chance if there are so many.
const MIN_OPENING_BYTES: usize = 12;

/// How far a message is looked for that has content, before or behind another.
const MAX_NEIGHBOUR_DISTANCE: u64 = 4;

/// Messages on their way to a log, of which some are copies of redacted ones.
#[derive(Debug)]
pub struct RedactedCopies {
    /// The messages as they are recorded.
    messages: Vec<Vec<u8>>,
    /// The digest of the original of each that is redacted, or a piece behind one that is.
    originals: Vec<Option<Original>>,
    /// The places of those that are redacted.
    copies: Vec<usize>,
    extent: Extent,
    values: Vec<RedactedValue>,
    contents: Vec<Digest>,
}

impl RedactedCopies {
    /// Returns the event that says so, if the first message is this one.
    fn event_from(&self, first: Seq) -> RedactLine {
        let copies = self.copies.iter().filter_map(|at| {
            let seq = Seq::new(first.get() + *at as u64)?;
            Some((seq, self.originals[*at]?))
        });
        RedactLine {
            extent: self.extent,
            messages: copies.collect(),
            texts: 0,
            names: Vec::new(),
            values: self.values.clone(),
            contents: self.contents.clone(),
        }
    }
}

impl Contexts {
    /// Finds copies of redacted messages among those that are to be appended to a log; none if there are none.
    ///
    /// A message counts as a copy if it is the same as one that lost the matches of a search; if the message before or behind it is
    /// the same, too, or both conversations begin with it; or, in a task that shares messages with the redacted one, if an answer follows it or it is long. So what
    /// somebody says anew stays. In such tasks, the texts of redacted messages are recognised in messages of another form.
    pub fn redacted_copies(
        &self,
        log: &Log,
        digests: &RedactedDigests,
        messages: &[impl AsRef<[u8]>],
    ) -> Result<Option<RedactedCopies>, TaskError> {
        let messages: Vec<Vec<u8>> = messages
            .iter()
            .map(|message| log.without_secrets(message.as_ref()).into_owned())
            .collect();
        let sent = SentMessages::read(messages);
        let sent = sent.map_err(|error| LogError::damaged(log.dir(), 0, error.to_string()))?;
        let mut search = CopySearch {
            contexts: self,
            log,
            digests,
            sent: &sent,
            events: BTreeMap::new(),
        };
        search.load_events()?;
        if search.events.is_empty() {
            return Ok(None);
        }
        search.drop_known_copies()?;
        search.run()
    }

    /// Returns the task in which a conversation began, as far as the tasks before it can be read.
    fn first_ancestor(&self, task: Uuid) -> Uuid {
        let mut line = vec![task];
        let mut last = task;
        while let Ok(log) = self.read(last)
            && let Some(parent) = log.parent().and_then(|(task, _)| task.parse().ok())
            && !line.contains(&parent)
            && self.place(parent).is_some()
        {
            line.push(parent);
            last = parent;
        }
        last
    }
}

impl Writer {
    /// Appends messages of which some are copies of redacted ones, and the event that says so.
    pub fn append_copies(&mut self, copies: RedactedCopies) -> Result<Option<Span>, AppendError> {
        let span = self.append_as_is(&copies.messages, &[], &copies.originals)?;
        if let Some(span) = span {
            self.step(What::Redact(copies.event_from(span.from())))?;
            // What the event says of texts counts for the next frame.
            self.sync_frames()?;
            self.frames = None;
        }
        Ok(span)
    }
}

/// A redaction of which the client may have sent copies.
struct CandidateEvent {
    log: Log,
    line: RedactLine,
    /// Its task shares messages with the one that is written to.
    is_related: bool,
    /// Some of its messages may be copied: those that the log has already are known as such.
    copies: Vec<(Seq, Original)>,
    is_found: bool,
}

struct CopySearch<'a> {
    contexts: &'a Contexts,
    log: &'a Log,
    digests: &'a RedactedDigests,
    sent: &'a SentMessages,
    events: BTreeMap<EventKey, CandidateEvent>,
}

impl CopySearch<'_> {
    /// Reads the events that know a message or a text of what was sent.
    fn load_events(&mut self) -> Result<(), TaskError> {
        let mut keys = BTreeSet::new();
        for (body, digest) in self.sent.bodies.iter().zip(&self.sent.digests) {
            keys.extend(digest.iter().flat_map(|digest| self.digests.of(digest)));
            let visited = visit_texts(body, &mut |text| {
                let content = content_digest(text);
                keys.extend(content.iter().flat_map(|digest| self.digests.of(digest)));
            });
            visited.map_err(|error| LogError::damaged(self.log.dir(), 0, error.to_string()))?;
        }
        let mut ancestor = None;
        for (task, event) in keys {
            // Rows are hints: the task may be gone.
            let Ok(log) = self.contexts.read(task) else {
                continue;
            };
            let Ok(What::Redact(line)) = log.event(event).map(|event| event.what) else {
                continue;
            };
            let own = *ancestor.get_or_insert_with(|| self.own_ancestor());
            let candidate = CandidateEvent {
                is_related: own == Some(self.contexts.first_ancestor(task)),
                copies: line.messages.clone(),
                is_found: false,
                log,
                line,
            };
            self.events.insert((task, event), candidate);
        }
        Ok(())
    }

    fn own_ancestor(&self) -> Option<Uuid> {
        let own = self.log.dir().file_name().and_then(|name| name.to_str());
        let own = own.and_then(|name| name.parse().ok());
        own.map(|own| self.contexts.first_ancestor(own))
    }

    /// Leaves out the messages that the log shows as redacted already: what comes behind them is no copy.
    fn drop_known_copies(&mut self) -> Result<(), TaskError> {
        let path = self.log.state().shown().path();
        let is_shown = |seq: Seq| path.iter().any(|run| run.holds(seq));
        let mut own = BTreeSet::new();
        each_redaction(&self.log.events, |_, redact| {
            let shown = redact
                .messages
                .into_iter()
                .filter(|(seq, _)| is_shown(*seq));
            own.extend(shown.map(|(_, digest)| digest));
        })?;
        for event in self.events.values_mut() {
            let mut copies = Vec::new();
            for (seq, digest) in &event.copies {
                let is_here = is_shown(*seq) && self.log.redacted(*seq)? == Some(*digest);
                if !is_here && !own.contains(digest) {
                    copies.push((*seq, *digest));
                }
            }
            event.copies = copies;
        }
        self.events.retain(|_, event| !event.copies.is_empty());
        Ok(())
    }

    fn run(mut self) -> Result<Option<RedactedCopies>, TaskError> {
        let marker = redact::marker(self.log.state().next_event().get());
        let mut messages = self.sent.bodies.clone();
        let mut originals = vec![None; messages.len()];
        let damaged = |error: MessageError| LogError::damaged(self.log.dir(), 0, error.to_string());
        for (at, original) in self.sent.digests.iter().enumerate() {
            let Some((key, seq)) = self.original_of(at)? else {
                continue;
            };
            let Some(event) = self.events.get_mut(&key) else {
                continue;
            };
            event.is_found = true;
            let redacted = event.redacted(&messages[at], (key.1, seq), &marker);
            messages[at] = redacted.map_err(damaged)?;
            originals[at] = Some(*original);
        }
        for at in 0..messages.len() {
            if originals[at].is_some() {
                continue;
            }
            let texts = self.texts_of_redacted(at);
            if texts.is_empty() {
                continue;
            }
            let mut find = |text: &str| {
                let is_gone = content_digest(text).is_some_and(|digest| texts.contains(&digest));
                Vec::from_iter(is_gone.then_some(0..text.len()))
            };
            let redacted = redact_matches(&messages[at], &marker, &mut find).map_err(damaged)?;
            if let Some(bytes) = redacted.bytes {
                messages[at] = bytes;
                originals[at] = Some(self.sent.digests[at]);
            }
        }
        let copies = (0..messages.len()).filter(|at| originals[*at].is_some());
        let copies: Vec<usize> = copies.collect();
        if copies.is_empty() {
            return Ok(None);
        }
        mark_following_pieces(&messages, &self.sent.digests, &mut originals).map_err(damaged)?;
        let found = self.events.values().filter(|event| event.is_found);
        let found: Vec<&CandidateEvent> = found.collect();
        let is_whole = found.iter().any(|event| event.line.extent == Extent::Whole);
        let contents = found.iter().flat_map(|event| event.line.contents.iter());
        let contents: BTreeSet<Digest> = contents.copied().collect();
        let mut values: Vec<RedactedValue> = Vec::new();
        for value in found.iter().flat_map(|event| &event.line.values) {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        Ok(Some(RedactedCopies {
            extent: if is_whole {
                Extent::Whole
            } else {
                Extent::Matches
            },
            contents: contents.into_iter().take(MAX_CONTENTS).collect(),
            messages,
            originals,
            copies,
            values,
        }))
    }

    /// Returns the redacted message that one is a copy of.
    fn original_of(&self, at: usize) -> Result<Option<(EventKey, Seq)>, TaskError> {
        let Some(digest) = self.sent.digests[at] else {
            return Ok(None);
        };
        for (key, event) in &self.events {
            let same = event.copies.iter();
            for (seq, _) in same.filter(|(_, original)| *original == Some(digest)) {
                let is_old = at < self.sent.answered;
                let is_copy = event.line.extent == Extent::Matches
                    || event.is_related
                        && (is_old || self.sent.text_bytes(at) >= MIN_DISTINCT_BYTES)
                    || self.has_same_neighbour(at, event, *seq)?;
                if is_copy {
                    return Ok(Some((*key, *seq)));
                }
            }
        }
        Ok(None)
    }

    /// Says whether the message before one, or the one behind it, is the same as in the log in which it was redacted.
    fn has_same_neighbour(
        &self,
        at: usize,
        event: &CandidateEvent,
        seq: Seq,
    ) -> Result<bool, TaskError> {
        let last = event.log.state().at().seq;
        let before = seq.get().saturating_sub(MAX_NEIGHBOUR_DISTANCE)..seq.get();
        let before: Vec<u64> = before.rev().collect();
        let behind = seq.get() + 1..=last.min(seq.get() + MAX_NEIGHBOUR_DISTANCE);
        let behind: Vec<u64> = behind.collect();
        let sent_before = self.sent.digests[..at].iter().rev().flatten().next();
        let sent_before = match sent_before {
            Some(digest) => Some(*digest),
            None => self.last_digest()?,
        };
        let sent_behind = self.sent.digests[at + 1..].iter().flatten().next();
        // Damage in another task does not keep this one from being recorded.
        let kept = |seqs: Vec<u64>| first_digest(&event.log, seqs).unwrap_or_default();
        let (kept_before, kept_behind) = (kept(before), kept(behind));
        let is_same = |sent: Option<Digest>, kept: Option<Digest>| sent.is_some() && sent == kept;
        let is_opening = sent_before.is_none() && kept_before.is_none();
        Ok(is_same(sent_before, kept_before)
            || is_same(sent_behind.copied(), kept_behind)
            || is_opening && self.sent.text_bytes(at) >= MIN_OPENING_BYTES)
    }

    /// Returns the digest of the last message that the log shows.
    fn last_digest(&self) -> Result<Option<Digest>, LogError> {
        let Some(last) = self.log.state().shown().last() else {
            return Ok(None);
        };
        let from = last.get().saturating_sub(MAX_NEIGHBOUR_DISTANCE);
        first_digest(self.log, (from..=last.get()).rev())
    }

    /// Returns the digests of redacted texts that may stand in a message in another form.
    fn texts_of_redacted(&mut self, at: usize) -> BTreeSet<Digest> {
        let is_old = at < self.sent.answered;
        let mut texts = BTreeSet::new();
        let events = self.events.values_mut();
        for event in events.filter(|event| event.is_related || event.is_found) {
            let mut found = Vec::new();
            let _ = visit_texts(&self.sent.bodies[at], &mut |text| {
                let is_meant = is_old || text.len() >= MIN_DISTINCT_BYTES;
                let digest = content_digest(text).filter(|_| is_meant);
                found.extend(digest.filter(|digest| event.line.contents.contains(digest)));
            });
            event.is_found |= !found.is_empty();
            texts.extend(found);
        }
        texts
    }
}

impl CandidateEvent {
    /// Returns what is recorded of a copy of a redacted message.
    fn redacted(
        &self,
        body: &[u8],
        (event, seq): (EventId, Seq),
        marker: &str,
    ) -> Result<Vec<u8>, MessageError> {
        if self.line.extent == Extent::Matches {
            let values: RedactedValues = self.line.values.iter().cloned().collect();
            let without = |marker: &str| {
                let redacted = redact_matches(body, marker, &mut |text| values.find(text));
                redacted.map(|redacted| redacted.bytes)
            };
            // Texts that are too short are not known: what is left must be what was left then.
            let then = self.log.message(seq).ok();
            let then = then.and_then(|then| digest::message_digest(&then).ok());
            let again = without(&redact::marker(event.get()))?;
            let again = again
                .map(|again| digest::message_digest(&again))
                .transpose()?;
            if again.is_some()
                && again == then
                && let Some(redacted) = without(marker)?
            {
                return Ok(redacted);
            }
        }
        redact_message(body, marker)
    }
}

/// Returns the digest of the first of these messages that has content.
fn first_digest(
    log: &Log,
    seqs: impl IntoIterator<Item = u64>,
) -> Result<Option<Digest>, LogError> {
    for seq in seqs.into_iter().filter_map(Seq::new) {
        let digest = match log.redacted(seq)? {
            Some(digest) => digest,
            None => {
                let message = log.message(seq)?;
                digest::message_digest(&log.without_secrets(&message)).unwrap_or_default()
            }
        };
        if digest.is_some() {
            return Ok(digest);
        }
    }
    Ok(None)
}
