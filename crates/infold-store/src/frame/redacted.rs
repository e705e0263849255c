//! Redacted parts of frames, which are not recorded again when clients continue to send them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use infold_wire::envelope::{is_about_tools, is_prompt};
use infold_wire::redact::{FindMatches, RedactedMatches, redact_data, redact_json};
use infold_wire::{Json, JsonError, JsonKind};

use super::{NAME, each};
use crate::event::{Extent, each_redaction};
use crate::file::{Access, Growing};
use crate::log::continued_by;
use crate::redacted_values::RedactedValues;
use crate::{Log, LogError, RedactedDigests, redact};

/// Redacted members by the fingerprints of their originals.
pub(super) type RedactedMembers = BTreeMap<Fingerprint, Vec<u8>>;

/// A digest of a member's name and value that outlives the process.
pub(super) type Fingerprint = String;

/// Returns the fingerprint of a member.
pub(crate) fn fingerprint(name: &str, value: &[u8]) -> Fingerprint {
    let mut hasher = blake3::Hasher::new();
    hasher.update(name.as_bytes()).update(&[0]).update(value);
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Replaces matches in a member of a frame. In prompts and tools, ids, types and names stay, as in messages.
pub(crate) fn redact_member(
    name: &str,
    value: &[u8],
    marker: &str,
    find: &mut FindMatches<'_>,
) -> Result<RedactedMatches, JsonError> {
    let is_object = matches!(
        Json::parse(value)?.kind(),
        JsonKind::Object | JsonKind::Array
    );
    if is_object && !has_names(name) {
        redact_data(value, marker, find)
    } else {
        redact_json(value, marker, find)
    }
}

/// Returns whether a member names tools, or holds messages.
pub(crate) fn has_names(name: &str) -> bool {
    is_prompt(name) || is_about_tools(name)
}

/// The redacted members and texts of a task and of those that it continues.
#[derive(Debug, Default)]
pub(super) struct FrameRedactions {
    members: RedactedMembers,
    /// The texts of each redaction, its extent and its marker.
    values: Vec<(Extent, String, RedactedValues)>,
    /// The digests of what was redacted in other tasks, whose frames may contain the same texts.
    elsewhere: Option<Arc<RedactedDigests>>,
    /// The members of the last frame as they came, and their redacted form.
    last: BTreeMap<String, (Fingerprint, Option<Vec<u8>>)>,
}

/// The marker in a frame for a text that was redacted in another task, whose events this one does not have.
const MARKER_OF_OTHERS: &str = "[redacted]";

impl FrameRedactions {
    /// Sets the redactions in the frames of all tasks.
    pub fn set_elsewhere(&mut self, elsewhere: Option<&Arc<RedactedDigests>>) {
        let elsewhere = elsewhere.filter(|elsewhere| elsewhere.knows_prompts());
        let is_same = match (&self.elsewhere, elsewhere) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        if !is_same {
            self.elsewhere = elsewhere.cloned();
            self.last.clear();
        }
    }

    /// Replaces a member by its redacted form, if it has one; returns the fingerprint of one that was redacted as it is.
    pub fn apply(&mut self, name: &str, value: &mut Cow<'_, [u8]>) -> Option<Fingerprint> {
        if self.members.is_empty() && self.values.is_empty() && self.elsewhere.is_none() {
            return None;
        }
        let original = fingerprint(name, value);
        if let Some(kept) = self.members.get(&original) {
            *value = Cow::Owned(kept.clone());
            return Some(original);
        }
        let last = self.last.get(name).filter(|(last, _)| *last == original);
        let redacted = match last {
            Some((_, redacted)) => redacted.clone(),
            None => {
                let redacted = self.without_values(name, value);
                let last = (original, redacted.clone());
                self.last.insert(name.to_owned(), last);
                redacted
            }
        };
        if let Some(redacted) = redacted {
            *value = Cow::Owned(redacted);
        }
        None
    }

    fn without_values(&self, name: &str, value: &[u8]) -> Option<Vec<u8>> {
        let mut redacted: Option<Vec<u8>> = None;
        for (extent, marker, values) in &self.values {
            // The model distinguishes conversations that begin alike, and it is no text of a message.
            if *extent == Extent::Whole && name == "model" {
                continue;
            }
            let now = redacted.as_deref().unwrap_or(value);
            let new = redact_member(name, now, marker, &mut |text| values.find(text));
            redacted = new.ok().and_then(|new| new.bytes).or(redacted);
        }
        if let Some(elsewhere) = &self.elsewhere {
            let now = redacted.as_deref().unwrap_or(value);
            let mut find = |text: &str| elsewhere.find_of_prompts(text);
            let new = redact_member(name, now, MARKER_OF_OTHERS, &mut find);
            redacted = new.ok().and_then(|new| new.bytes).or(redacted);
        }
        redacted
    }

    /// Adds the texts that the events of a log say were redacted.
    fn add_values(&mut self, events: &Growing) -> Result<(), LogError> {
        each_redaction(events, |id, redact| {
            if !redact.values.is_empty() {
                let values = redact.values.into_iter().collect();
                let marker = redact::marker(id.get());
                self.values.push((redact.extent, marker, values));
            }
        })
    }
}

impl Log {
    /// Returns the redactions in the frames of this task and of those that it continues; `members` are those of
    /// its own frames, if there are any.
    pub(super) fn frame_redactions(
        &self,
        mut members: Option<RedactedMembers>,
    ) -> Result<FrameRedactions, LogError> {
        /// The most ancestors that are read: clients no longer send the texts of earlier ones.
        const MAX_DEPTH: usize = 32;
        let mut redactions = FrameRedactions::default();
        redactions.add_values(&self.events)?;
        let mut parent = self.parent().and_then(|(task, _)| task.parse().ok());
        for _ in 0..MAX_DEPTH {
            let Some(dir) = parent.and_then(|task| self.dirs().find(task)) else {
                break;
            };
            redactions.add_values(&Growing::open(dir.join("events.jsonl"), Access::Read)?)?;
            if members.is_none() {
                let file = Growing::open(dir.join(NAME), Access::Read)?;
                if file.len() > 0 {
                    let members = members.insert(RedactedMembers::new());
                    each(&file, |line| members.extend(line.redacted()))?;
                }
            }
            parent = continued_by(&dir)?.map(|(task, _)| task);
        }
        redactions.members = members.unwrap_or_default();
        Ok(redactions)
    }
}
