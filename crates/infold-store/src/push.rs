//! A push: messages of any number are appended, all or none, and once for each key.

use infold_log::{EventId, Seq, Span};
use infold_wire::{Message, tool_use};

use crate::event::{AppendLine, What};
use crate::push_journal::{Ends, PushJournal};
use crate::redacted_name::redacted_name;
use crate::{AppendError, Durability, IncomingError, Log, LogError, Writer};

/// The most bytes that are appended at once; a larger push is split into pieces of about this size.
const BATCH_BYTES: usize = 4 << 20;

/// The most pushes with a key that are searched for one with the same key.
const MAX_KEYS_SEARCHED: usize = 1000;

/// The longest key that is taken.
const MAX_KEY_BYTES: usize = 255;

/// The idempotency key of a push: repeating the push appends nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushKey {
    name: String,
    digest: String,
}

impl PushKey {
    /// Takes a key for messages with this digest; none if it is empty, too long, or not printable.
    pub fn new(name: &str, digest: ContentDigest) -> Option<PushKey> {
        let is_key = !name.trim().is_empty()
            && name.len() <= MAX_KEY_BYTES
            && !name.chars().any(char::is_control);
        is_key.then(|| PushKey {
            name: name.to_owned(),
            digest: digest.hex(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn renamed(self, name: String) -> PushKey {
        PushKey { name, ..self }
    }
}

/// Tells the messages of one push from those of another.
#[derive(Clone, Debug, Default)]
pub struct ContentDigest(blake3::Hasher);

impl ContentDigest {
    /// Adds the next message.
    pub fn add(&mut self, message: &[u8]) {
        self.0.update(&(message.len() as u64).to_le_bytes());
        self.0.update(message);
    }

    fn hex(&self) -> String {
        self.0.finalize().to_hex()[..32].to_owned()
    }
}

/// Why a push was not done. Nothing of it was kept, unless the log says that it may have been.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The input does not hold messages.
    #[error(transparent)]
    Incoming(#[from] IncomingError),
    /// The log does not take them.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The key was given to other messages before.
    #[error("the key `{key}` was used for other messages, which are {span}")]
    OtherContent {
        /// The key.
        key: String,
        /// The messages appended with it.
        span: Span,
    },
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Where messages come from, one at a time.
pub type NextMessage<'a> = &'a mut dyn FnMut() -> Result<Option<Vec<u8>>, IncomingError>;

impl Writer {
    /// Appends all messages that come, or none, and returns their seqs. They are as durable as the task's setting says.
    ///
    /// If a push with the same key was done before, nothing is appended, and the seqs are those of that one.
    pub fn push(
        &mut self,
        key: Option<&PushKey>,
        next: NextMessage<'_>,
    ) -> Result<Option<Span>, PushError> {
        let key = &key.map(|key| PushKey {
            name: self.log().name_without_secrets(&key.name),
            digest: key.digest.clone(),
        });
        let key = key.as_ref();
        if let Some(done) = key.map(|key| self.log().pushed(key)).transpose()?.flatten() {
            return Ok(Some(done));
        }
        let first = batch(next)?;
        if first.is_empty() {
            return Ok(None);
        }
        let ends = self.prepare_push()?;
        // A single line needs no journal, because it is written or not.
        let several = first.len() > 1 || key.is_some() || brings_results(&first[0]);
        let pending = if several {
            Some(PushJournal::begin(
                self.log().dir(),
                ends,
                self.is_lasting(),
            )?)
        } else {
            None
        };
        self.begin_push();
        let first_event = self.log().state().next_event();
        let pushed = self.append_all(first, key, next);
        let pushed = pushed.and_then(|span| {
            self.sync_log()?;
            pending.as_ref().map_or(Ok(()), PushJournal::end)?;
            Ok(span)
        });
        self.end_push();
        match pushed {
            Ok(span) => {
                // All that is left is derived, and waits if it must.
                self.follow_events(first_event);
                self.follow();
                Ok(Some(span))
            }
            Err(error) => Err(self.give_up(ends, pending, error)),
        }
    }

    fn append_all(
        &mut self,
        first: Vec<Vec<u8>>,
        key: Option<&PushKey>,
        next: NextMessage<'_>,
    ) -> Result<Span, PushError> {
        let from = self.log().state().next_seq();
        let (mut messages, mut to) = (first, from);
        while !messages.is_empty() {
            if let Some(span) = self.append(&messages)? {
                self.enter_tools(span)?;
                to = span.to();
            }
            messages = batch(next)?;
        }
        let span = Span::new(from, to).unwrap_or(Span::one(from));
        if let Some(key) = key {
            let previous = self.log().last_keyed_push()?;
            self.step(What::Append(AppendLine {
                key: key.name.clone(),
                digest: key.digest.clone(),
                span,
                previous,
            }))?;
        }
        Ok(span)
    }

    /// Removes the appended lines. If that fails, the journal hides them from readers.
    fn give_up(&mut self, ends: Ends, pending: Option<PushJournal>, error: PushError) -> PushError {
        let is_hidden = pending.as_ref().is_some_and(PushJournal::is_hiding);
        let is_gone = self.roll_back(ends, pending) || is_hidden;
        match error {
            PushError::Log(error) | PushError::Append(AppendError::Log(error)) => {
                if is_gone {
                    error.without_doubt().into()
                } else {
                    error.after(false).into()
                }
            }
            error => error,
        }
    }

    fn is_lasting(&self) -> bool {
        self.durability != Durability::Never
    }
}

/// Returns whether a message brings results of tools, of which more is recorded than the message.
fn brings_results(message: &[u8]) -> bool {
    Message::parse(message).is_ok_and(|message| !tool_use::tool_results(&message).is_empty())
}

/// Reads the next messages, until there are enough; none at the end.
fn batch(next: NextMessage<'_>) -> Result<Vec<Vec<u8>>, PushError> {
    let (mut messages, mut size) = (Vec::new(), 0);
    while size < BATCH_BYTES {
        let Some(message) = next()? else {
            break;
        };
        size += message.len();
        messages.push(message);
    }
    Ok(messages)
}

impl Log {
    /// Returns the messages of an earlier push with the same key, if it is among the last ones.
    fn pushed(&self, key: &PushKey) -> Result<Option<Span>, PushError> {
        let mut at = self.last_keyed_push()?;
        let redacted = redacted_name(&key.name);
        for _ in 0..MAX_KEYS_SEARCHED {
            let Some(id) = at else { break };
            let What::Append(line) = self.event(id)?.what else {
                break;
            };
            if line.key == key.name || line.key == redacted {
                let span = line.span;
                return if line.digest == key.digest {
                    Ok(Some(span))
                } else {
                    Err(PushError::OtherContent {
                        key: line.key,
                        span,
                    })
                };
            }
            // Each event is older than the one before, even if a damaged line says otherwise.
            at = line.previous.filter(|previous| *previous < id);
        }
        Ok(None)
    }

    /// Where this log ends.
    pub(crate) fn ends(&self) -> Ends {
        let state = self.state();
        Ends {
            messages: self.messages.len(),
            events: self.events.len(),
            next_seq: Seq::get(state.next_seq()),
            next_event: EventId::get(state.next_event()),
        }
    }
}
