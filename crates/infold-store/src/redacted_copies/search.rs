//! The search for copies of redacted messages among those that a client sent.

use std::collections::{BTreeMap, BTreeSet};

use infold_log::Seq;
use infold_wire::MessageError;
use infold_wire::digest::Digest;
use infold_wire::redact::{
    FindMatches, message_parts, redact_matches, redact_message, visit_texts,
};
use uuid::Uuid;

use super::candidate::{CandidateEvent, MAX_NEIGHBOUR_DISTANCE, first_key};
use super::sent::{MessageKey, SentMessages, Weight, mark_following_pieces};
use super::{CopyForms, RedactedCopies};
use crate::event::{Extent, each_redaction};
use crate::redacted_digests::{
    EventKey, MIN_DISTINCT_BYTES, RedactedDigests, known_digests, structured,
};
use crate::redacted_values::{RedactedValue, apart};
use crate::stored::Original;
use crate::{Contexts, Log, LogError, TaskError, What, redact};

/// Shorter messages are everyday words, which many conversations have.
const MIN_SENTENCE_BYTES: usize = 12;

/// Looks for copies of redacted messages among those that a client sent.
pub struct CopySearch<'a> {
    contexts: &'a Contexts,
    log: &'a Log,
    sent: &'a SentMessages,
    events: BTreeMap<EventKey, CandidateEvent>,
}

/// The redacted messages that one message is a copy of; which of them is not known of earlier redactions.
type Sources = BTreeSet<(EventKey, Option<Seq>)>;

/// Parts of a message that occur in redacted messages in another form.
#[derive(Default)]
struct FoundForms {
    sources: Sources,
    /// Digests of texts, arguments and results.
    contents: BTreeSet<Digest>,
    /// The events of lines.
    lines: BTreeSet<EventKey>,
}

impl<'a> CopySearch<'a> {
    pub fn new(contexts: &'a Contexts, log: &'a Log, sent: &'a SentMessages) -> CopySearch<'a> {
        CopySearch {
            contexts,
            log,
            sent,
            events: BTreeMap::new(),
        }
    }

    /// Returns the messages, with copies among them in redacted form; none if there are no copies.
    pub fn run(mut self, digests: &RedactedDigests) -> Result<Option<RedactedCopies>, TaskError> {
        self.load_events(digests)?;
        if self.events.is_empty() {
            return Ok(None);
        }
        self.drop_known_copies()?;
        self.redact_copies()
    }

    /// Reads the events that contain the digest of a sent message or text.
    fn load_events(&mut self, digests: &RedactedDigests) -> Result<(), TaskError> {
        let mut keys = BTreeSet::new();
        for (body, digest) in self.sent.bodies.iter().zip(&self.sent.digests) {
            keys.extend(digest.iter().flat_map(|digest| digests.of(digest)));
            self.visit_contents(body, &mut |text| {
                digests.each_of_text(text, &mut |key| {
                    keys.insert(key);
                });
            })?;
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
            let is_related = own == Some(self.contexts.first_ancestor(task));
            let candidate = CandidateEvent::new(log, line, is_related);
            self.events.insert((task, event), candidate);
        }
        Ok(())
    }

    /// Calls `take` with the texts of a message, and with arguments and results as a whole.
    fn visit_contents(&self, body: &[u8], take: &mut dyn FnMut(&str)) -> Result<(), LogError> {
        let parts = visit_texts(body, take).and_then(|()| message_parts(body));
        let parts = parts.map_err(|error| self.damaged(&error))?;
        parts.iter().for_each(|part| take(part.text()));
        Ok(())
    }

    fn damaged(&self, error: &MessageError) -> LogError {
        LogError::damaged(self.log.dir(), 0, error.to_string())
    }

    fn own_ancestor(&self) -> Option<Uuid> {
        let own = self.log.dir().file_name().and_then(|name| name.to_str());
        let own = own.and_then(|name| name.parse().ok());
        own.map(|own| self.contexts.first_ancestor(own))
    }

    /// Removes the messages that the log has in redacted form already: later ones are no copies.
    fn drop_known_copies(&mut self) -> Result<(), TaskError> {
        let path = self.log.state().shown().path();
        let is_shown = |seq: Seq| path.iter().any(|run| run.holds(seq));
        let (mut own, mut own_contents) = (BTreeSet::new(), BTreeSet::new());
        each_redaction(&self.log.events, |_, redact| {
            let shown = redact.messages.into_iter();
            let shown = shown.filter(|(seq, _)| is_shown(*seq));
            own.extend(shown.map(|(_, digest)| digest));
            let shown = redact.forms.into_iter();
            let shown = shown.filter(|forms| is_shown(forms.seq));
            own_contents.extend(shown.flat_map(|forms| forms.contents));
        })?;
        let is_known = |seq: Seq, digest: Original, contents: &[Digest]| {
            is_shown(seq) && self.log.redacted(seq).is_ok_and(|now| now == Some(digest))
                || own.contains(&digest)
                || !contents.is_empty() && contents.iter().all(|it| own_contents.contains(it))
        };
        for event in self.events.values_mut() {
            event.keep_copies(is_known);
        }
        self.events.retain(|_, event| !event.copies.is_empty());
        Ok(())
    }

    fn redact_copies(mut self) -> Result<Option<RedactedCopies>, TaskError> {
        let marker = redact::marker(self.log.state().next_event().get());
        let mut messages = self.sent.bodies.clone();
        let mut sources = vec![Sources::new(); messages.len()];
        for at in 0..messages.len() {
            let Some((key, seq)) = self.original_of(at)? else {
                continue;
            };
            let Some(event) = self.events.get_mut(&key) else {
                continue;
            };
            event.is_found = true;
            let redacted = event.redacted(&messages[at], (key.1, seq), &marker);
            messages[at] = redacted.map_err(|error| self.damaged(&error))?;
            sources[at].insert((key, Some(seq)));
        }
        // A copy found in one message makes copies before it likely, so a second pass follows.
        for _ in 0..2 {
            for at in 0..messages.len() {
                if !sources[at].is_empty() {
                    continue;
                }
                let found = self.forms_in(at)?;
                if let Some(bytes) = self.without_forms(&messages[at], &found, &marker)? {
                    messages[at] = bytes;
                    for (key, _) in &found.sources {
                        let event = self.events.get_mut(key);
                        event.into_iter().for_each(|event| event.is_found = true);
                    }
                    sources[at] = found.sources;
                }
            }
        }
        let copies = (0..messages.len()).filter(|at| !sources[*at].is_empty());
        let copies: Vec<usize> = copies.collect();
        if copies.is_empty() {
            return Ok(None);
        }
        let mut originals = vec![None; messages.len()];
        for at in &copies {
            originals[*at] = Some(self.sent.digests[*at]);
        }
        let marked = mark_following_pieces(&messages, &self.sent.digests, &mut originals);
        marked.map_err(|error| self.damaged(&error))?;
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
            contents: contents.into_iter().collect(),
            forms: sources
                .iter()
                .map(|sources| self.forms_of(sources))
                .collect(),
            messages,
            originals,
            copies,
            values,
        }))
    }

    /// Returns the forms by which all of these messages are recognised.
    fn forms_of(&self, sources: &Sources) -> CopyForms {
        let mut all = CopyForms::default();
        for (key, seq) in sources {
            let event = self.events.get(key);
            let forms = event.zip(*seq).and_then(|(event, seq)| event.forms(seq));
            if let Some(forms) = forms {
                all.contents.extend(&forms.contents);
                all.lines.extend(forms.lines.iter().cloned());
            }
        }
        all
    }

    /// Returns the redacted message that one is a copy of.
    fn original_of(&self, at: usize) -> Result<Option<(EventKey, Seq)>, TaskError> {
        let Some(digest) = self.sent.digests[at] else {
            return Ok(None);
        };
        let weight = self.sent.weight(at);
        for (key, event) in &self.events {
            let same = event.copies.iter();
            for (seq, _) in same.filter(|(_, original)| *original == Some(digest)) {
                let is_copy = event.line.extent == Extent::Matches && weight.is_distinct
                    || self.is_copy(at, event, Some(*seq), weight)?;
                if is_copy {
                    return Ok(Some((*key, *seq)));
                }
            }
        }
        Ok(None)
    }

    /// Returns whether a match with a redacted message is a copy, not repeated by chance.
    fn is_copy(
        &self,
        at: usize,
        event: &CandidateEvent,
        seq: Option<Seq>,
        weight: Weight,
    ) -> Result<bool, TaskError> {
        let Weight { bytes, is_distinct } = weight;
        let is_old = self.sent.is_old(at);
        let is_long = is_distinct || bytes >= MIN_SENTENCE_BYTES;
        if event.is_expected() && is_long && (is_old || bytes >= MIN_DISTINCT_BYTES) {
            return Ok(true);
        }
        let Some(seq) = seq else {
            return Ok(false);
        };
        let beside = self.neighbours(at, event, seq)?;
        Ok(event.is_expected() && beside.sides > 0
            || beside.is_opening && bytes >= MIN_SENTENCE_BYTES
            || is_distinct && beside.sides > 0
            || bytes + beside.bytes >= MIN_DISTINCT_BYTES
                && (beside.sides > 1 || beside.sides > 0 && bytes >= MIN_SENTENCE_BYTES))
    }

    /// Compares the neighbours of a message with those of the redacted one.
    fn neighbours(
        &self,
        at: usize,
        event: &CandidateEvent,
        seq: Seq,
    ) -> Result<Neighbours, TaskError> {
        let (seq, last) = (seq.get(), event.log.state().at().seq);
        let before = event.key_of((seq.saturating_sub(MAX_NEIGHBOUR_DISTANCE)..seq).rev());
        let behind = event.key_of(seq + 1..=last.min(seq + MAX_NEIGHBOUR_DISTANCE));
        // Some APIs use several messages for one message of others.
        let mut own = event.key_of([seq]);
        own.digest = None;
        let sent_before = match self.sent.key_before(at) {
            Some(key) => key,
            None => self.last_key()?,
        };
        let sent_behind = self.sent.key_behind(at).unwrap_or_default();
        let mut sent_own = self.sent.key(at);
        sent_own.digest = None;
        sent_own
            .parts
            .retain(|(digest, _)| !event.contents.contains_key(digest));
        let shared = [
            sent_before.shared_bytes(&[&before, &own]),
            sent_behind.shared_bytes(&[&behind, &own]),
            sent_own.shared_bytes(&[&before, &own, &behind]),
        ];
        Ok(Neighbours {
            sides: shared.iter().flatten().count(),
            bytes: shared.iter().flatten().sum(),
            is_opening: sent_before.is_empty() && before.is_empty(),
        })
    }

    /// Returns the key of the last visible message of the log.
    fn last_key(&self) -> Result<MessageKey, LogError> {
        let Some(last) = self.log.state().shown().last() else {
            return Ok(MessageKey::default());
        };
        let from = last.get().saturating_sub(MAX_NEIGHBOUR_DISTANCE);
        first_key(self.log, (from..=last.get()).rev())
    }

    /// Returns the parts of a message that occur in redacted ones in another form.
    fn forms_in(&self, at: usize) -> Result<FoundForms, TaskError> {
        let mut contents: BTreeMap<(EventKey, Digest, Option<Seq>), Weight> = BTreeMap::new();
        let mut lines: BTreeSet<(EventKey, Seq)> = BTreeSet::new();
        self.visit_contents(&self.sent.bodies[at], &mut |text| {
            let digests: Vec<Digest> = known_digests(text).collect();
            for (key, event) in &self.events {
                for digest in &digests {
                    for seq in event.contents.get(digest).into_iter().flatten() {
                        contents.insert((*key, *digest, *seq), Weight::of(text));
                    }
                }
                event.lines.find(text, &mut |_, seq| {
                    lines.insert((*key, *seq));
                });
            }
        })?;
        let mut found = FoundForms::default();
        let is_old = self.sent.is_old(at);
        for ((key, digest, seq), weight) in contents {
            let event = &self.events[&key];
            let is_known = event.line.extent == Extent::Matches && is_old && weight.is_distinct;
            if is_known || self.is_copy(at, event, seq, weight)? {
                found.contents.insert(digest);
                found.sources.insert((key, seq));
            }
        }
        // A new message may repeat a line by chance, so only answered messages are searched for lines.
        for (key, seq) in lines.into_iter().filter(|_| is_old) {
            let event = &self.events[&key];
            if event.is_expected() || self.neighbours(at, event, seq)?.sides > 0 {
                found.lines.insert(key);
                found.sources.insert((key, Some(seq)));
            }
        }
        Ok(found)
    }

    /// Returns a message without the parts that were found in it; none if there are none.
    fn without_forms(
        &self,
        message: &[u8],
        found: &FoundForms,
        marker: &str,
    ) -> Result<Option<Vec<u8>>, LogError> {
        if found.sources.is_empty() {
            return Ok(None);
        }
        let is_gone =
            |text: &str| known_digests(text).any(|digest| found.contents.contains(&digest));
        // Objects first: without some of its texts one is no longer known.
        let mut find_object = |text: &str| {
            let is_gone = structured(text.trim()).is_some() && is_gone(text);
            Vec::from_iter(is_gone.then_some(0..text.len()))
        };
        let mut find_text = |text: &str| {
            if is_gone(text) {
                return Vec::from_iter(Some(0..text.len()));
            }
            let mut ranges = Vec::new();
            for event in found.lines.iter().filter_map(|key| self.events.get(key)) {
                event.lines.find(text, &mut |range, _| ranges.push(range));
            }
            apart(ranges)
        };
        let finds: [&mut FindMatches<'_>; 2] = [&mut find_object, &mut find_text];
        let mut changed: Option<Vec<u8>> = None;
        for find in finds {
            let now = changed.as_deref().unwrap_or(message);
            let redacted =
                redact_matches(now, marker, find).map_err(|error| self.damaged(&error))?;
            changed = redacted.bytes.or(changed);
        }
        // Several texts may be one text in another API.
        let parts = message_parts(changed.as_deref().unwrap_or(message));
        let parts = parts.map_err(|error| self.damaged(&error))?;
        if parts.iter().any(|part| is_gone(part.text())) {
            let whole = redact_message(message, marker).map_err(|error| self.damaged(&error))?;
            return Ok(Some(whole));
        }
        Ok(changed)
    }
}

/// Neighbours of a message that were also neighbours of a redacted one.
struct Neighbours {
    /// On how many sides: before it, behind it, or in the same message.
    sides: usize,
    bytes: usize,
    /// Both conversations begin with the message.
    is_opening: bool,
}
