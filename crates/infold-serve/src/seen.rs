use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::Mutex;

use foldhash::quality::RandomState;
use infold_log::{Role, Seq};
use infold_store::{Log, LogError};
use infold_wire::normal::{self, Digest};
use infold_wire::{Message, MessageError, secrets};
use memchr::memmem;

use crate::Name;
use crate::desk::locked;

/// What a message comes to, as far as recognising it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    /// What it says; nothing, if no client would send it back.
    pub digest: Option<Digest>,
    /// The model said it.
    pub is_reply: bool,
    /// It is a system prompt, or part of one.
    pub is_system: bool,
    /// It may be one of several pieces of what the model said.
    pub is_piece: bool,
    /// What it says includes what the pieces before it said: one of them was redacted.
    pub is_joined: bool,
}

/// Messages that were looked at lately, by their bytes.
///
/// A client sends its whole history with every request, so almost all of a request was seen
/// before. Only a help: what is not here is worked out again.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What is recognised is what is kept: without its secrets, if those are replaced.
    redacts: bool,
    /// Two names make one that nobody meets by accident; their seeds differ in each process.
    names: [RandomState; 2],
    halves: Mutex<Halves>,
}

#[derive(Debug, Default)]
struct Halves {
    young: HashMap<u128, Sight, RandomState>,
    old: HashMap<u128, Sight, RandomState>,
}

/// Each half holds so many.
const MOST: usize = 32 << 10;

impl Sight {
    /// Looks at a message in the form in which it is kept.
    pub fn of(bytes: &[u8]) -> Result<Sight, MessageError> {
        let message = Message::read(bytes)?;
        let role = message.role();
        Ok(Sight {
            digest: normal::digest(bytes)?,
            is_reply: role == Role::Assistant,
            is_system: role == Role::System,
            is_piece: normal::is_piece(&message),
            is_joined: false,
        })
    }
}

/// What a message of a log comes to: the same as before if it was redacted since, so that it is known when it comes again.
pub(crate) fn of_stored(log: &Log, seq: Seq, bytes: &[u8]) -> Result<Sight, LogError> {
    // What was kept before secrets were replaced is recognised without them.
    let bytes = &*log.without_secrets(bytes);
    let sight = Sight::of(bytes).map_err(|error| damaged(log, &error))?;
    // What was redacted says so; of pieces also those that follow such a one are marked.
    if !sight.is_piece && memmem::find(bytes, b"[redacted e").is_none() {
        return Ok(sight);
    }
    Ok(match log.redacted(seq)? {
        Some(digest) => Sight {
            digest,
            is_joined: sight.is_piece,
            ..sight
        },
        None => sight,
    })
}

pub(crate) fn damaged(log: &Log, error: &MessageError) -> LogError {
    LogError::damaged(&log.dir().join("messages.jsonl"), 0, error.to_string())
}

impl Seen {
    pub fn new(redacts: bool) -> Seen {
        Seen {
            redacts,
            ..Seen::default()
        }
    }

    /// A message in the form in which it is kept.
    pub fn kept<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match self.redacts.then(|| secrets::redacted(bytes)).flatten() {
            Some(redacted) => Cow::Owned(redacted),
            None => Cow::Borrowed(bytes),
        }
    }

    /// What pieces say together.
    pub fn joined(&self, pieces: &[&[u8]]) -> Result<Option<Digest>, MessageError> {
        joined(pieces, self.redacts)
    }

    /// A name in the form in which it is kept.
    pub fn kept_name(&self, name: Name) -> Name {
        let redacted = |text: String| match self.redacts {
            true => secrets::redacted_text(&text).unwrap_or(text),
            false => text,
        };
        match name {
            Name::Given(text) => Name::Given(redacted(text)),
            Name::Session(text) => Name::Session(redacted(text)),
        }
    }

    /// Looks at a message.
    pub fn look(&self, bytes: &[u8]) -> Result<Sight, MessageError> {
        let [one, other] = &self.names;
        let name = u128::from(one.hash_one(bytes)) << 64 | u128::from(other.hash_one(bytes));
        if let Some(sight) = locked(&self.halves).get(name) {
            return Ok(sight);
        }
        let sight = Sight::of(&self.kept(bytes))?;
        locked(&self.halves).put(name, sight);
        Ok(sight)
    }
}

/// What pieces say together in the form in which they are kept.
pub(crate) fn joined(pieces: &[&[u8]], redacts: bool) -> Result<Option<Digest>, MessageError> {
    match redacts {
        true => {
            let kept = secrets::redacted_together(pieces);
            normal::joined(kept.iter().map(|piece| &**piece))
        }
        false => normal::joined(pieces.iter().copied()),
    }
}

impl Halves {
    fn get(&mut self, name: u128) -> Option<Sight> {
        if let Some(sight) = self.young.get(&name) {
            return Some(*sight);
        }
        let sight = *self.old.get(&name)?;
        self.put(name, sight);
        Some(sight)
    }

    fn put(&mut self, name: u128, sight: Sight) {
        if self.young.len() >= MOST {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(name, sight);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// How long this thread has been running: others share the machine.
    fn spent() -> Duration {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or(0))
    }

    #[test]
    fn a_message_is_looked_through_for_secrets_once() {
        let seen = Seen::new(true);
        let text = "the key to the house, ".repeat(400_000);
        let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
        let took = || {
            let began = spent();
            let sight = seen.look(message.as_bytes()).expect("it is a message");
            (sight, spent() - began)
        };
        let (first, again) = (took(), took());
        assert_eq!(first.0, again.0);
        assert!(again.1 * 4 < first.1, "{:?}, then {:?}", first.1, again.1);
    }
}
