//! Replaces secrets in messages, events and texts before a log writes them.

use std::borrow::Cow;

use infold_wire::{quote, secrets};

use crate::event::{EventLine, What};
use crate::{Log, LogError, redacted_name};

impl Log {
    /// Secrets are replaced before anything is written.
    pub fn redacts(&self) -> bool {
        self.redacts
    }

    /// Returns JSON in the form in which it is kept: as it is, or with its secrets replaced.
    pub fn without_secrets<'a>(&self, json: &'a [u8]) -> Cow<'a, [u8]> {
        self.unless_found(json, secrets::without_secrets)
    }

    /// The same of a text.
    pub(crate) fn text_without_secrets(&self, text: &str) -> String {
        let redacted = self.redacts.then(|| secrets::text_without_secrets(text));
        redacted.flatten().unwrap_or_else(|| text.to_owned())
    }

    /// The same of a name, which is given again: one with a secret is kept as its digest.
    pub(crate) fn name_without_secrets(&self, name: &str) -> String {
        if self.redacts && secrets::text_without_secrets(name).is_some() {
            redacted_name(name)
        } else {
            name.to_owned()
        }
    }

    /// The same of any text, such as a piece of a transcript.
    pub(crate) fn fragment_without_secrets<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        self.unless_found(text, secrets::fragment_without_secrets)
    }

    /// The same of the value of a member, whose name counts.
    pub(crate) fn member_without_secrets<'a>(&self, name: &str, value: &'a [u8]) -> Cow<'a, [u8]> {
        self.unless_found(value, |value| {
            let name = quote(name);
            let whole = [b"{", name.as_bytes(), b":", value, b"}"].concat();
            let redacted = secrets::without_secrets(&whole)?;
            // A name that is a secret itself is another matter.
            let value = redacted.strip_prefix([b"{", name.as_bytes(), b":"].concat().as_slice())?;
            Some(value.strip_suffix(b"}")?.to_vec())
        })
    }

    /// An event as it is kept, and its line.
    pub(crate) fn event_without_secrets(
        &self,
        line: EventLine,
    ) -> Result<(EventLine, Vec<u8>), LogError> {
        let bytes = line.encode();
        if !self.redacts {
            return Ok((line, bytes));
        }
        let Some(mut redacted) = secrets::without_secrets(&bytes) else {
            return Ok((line, bytes));
        };
        if let What::Lookup(lookup) = line.what {
            // The provider gets the bytes of a reply as they were from the client alone, who has it without its look-ups.
            let what = What::Lookup(lookup.emptied());
            let line = EventLine { what, ..line };
            let bytes = line.encode();
            return Ok((line, bytes));
        }
        if bytes.ends_with(b"\n") && !redacted.ends_with(b"\n") {
            redacted.push(b'\n');
        }
        let line = EventLine::decode(redacted.trim_ascii_end()).map_err(|reason| {
            let path = self.dir().join("events.jsonl");
            LogError::damaged(&path, 0, format!("an event without its secrets: {reason}"))
        })?;
        Ok((line, redacted))
    }

    fn unless_found<'a>(
        &self,
        bytes: &'a [u8],
        redact: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
    ) -> Cow<'a, [u8]> {
        match self.redacts.then(|| redact(bytes)).flatten() {
            Some(redacted) => Cow::Owned(redacted),
            None => Cow::Borrowed(bytes),
        }
    }
}
