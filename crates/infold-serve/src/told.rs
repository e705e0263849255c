use std::borrow::Cow;
use std::ops::Range;

use infold_store::Key;
use infold_wire::envelope::Envelope;
use infold_wire::normal::{self, Digest};
use infold_wire::params::Params;

use crate::seen::Seen;
use crate::{Call, DeskError, Name};

/// What a request tells of its conversation.
#[derive(Debug)]
pub(crate) struct Told {
    /// Where everything stands in the body.
    pub envelope: Envelope,
    /// What it asks for.
    pub params: Params,
    /// The model.
    pub model: String,
    /// The reply streams.
    pub stream: bool,
    /// What the conversation is called, if it has a name.
    pub name: Option<Name>,
    /// The one message of a request that has a plain text instead of messages.
    pub text: Option<Vec<u8>>,
    /// The messages that say something, in order.
    pub said: Vec<Said>,
    /// The chain after all of them.
    pub chain: Digest,
}

/// A message that says something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    /// Which message of the request it is; of several that make up one, the last.
    pub index: usize,
    /// What it says.
    pub digest: Digest,
    /// What the conversation up to it is found by.
    pub key: Key,
    /// The model said it.
    pub is_reply: bool,
}

impl Told {
    /// Reads a request.
    pub fn read(call: &Call, seen: &Seen) -> Result<Told, DeskError> {
        let envelope = split(call)?;
        let mut member = |name: &str| {
            let mut found = envelope.members.iter().rev();
            let (_, range) = found.find(|(known, _)| known == name)?;
            Some(call.body.part(range).ok()?.into_owned())
        };
        let params = Params::read(call.wire, &mut member);
        let model = call.model.clone().or_else(|| params.model.clone());
        let name = call.name.clone().or_else(|| {
            let session = params.session.clone()?;
            Some(Name::Session(session))
        });
        let text = match envelope.is_text {
            true => Some(user(&call.body.part(&envelope.list)?)),
            false => None,
        };
        let mut told = Told {
            text,
            model: model.unwrap_or_default(),
            stream: call.stream.unwrap_or(params.stream),
            name,
            said: Vec::new(),
            chain: normal::root(),
            envelope,
            params,
        };
        told.listen(call, seen)?;
        Ok(told)
    }

    /// Looks at the messages, and names the conversation up to each of them.
    fn listen(&mut self, call: &Call, seen: &Seen) -> Result<(), DeskError> {
        let salt = self.salt();
        let mut answered = false;
        let mut all: Vec<Said> = Vec::with_capacity(self.messages());
        // The chain before the last of them, and where the pieces of what the model says begin.
        let (mut before, mut pieces) = (self.chain, None);
        for index in self.envelope.leading..self.messages() {
            let bytes = self.message(call, index)?;
            let sight = seen.look(&bytes).map_err(|error| unread(index, &error))?;
            drop(bytes);
            let begun = pieces.filter(|_| sight.is_piece);
            pieces = sight.is_piece.then(|| begun.unwrap_or(index));
            let Some(mut digest) = sight.digest else {
                continue;
            };
            let goes_on = begun.filter(|begun| all.last().is_some_and(|last| last.index >= *begun));
            if let Some(begun) = goes_on {
                digest = self.pieces(call, begun, index)?.unwrap_or(digest);
                all.pop();
            } else {
                before = self.chain;
            }
            answered |= sight.is_reply;
            self.chain = normal::chain(before, digest);
            all.push(Said {
                index,
                digest,
                key: key(self.chain, answered, salt),
                is_reply: sight.is_reply,
            });
        }
        self.said = all;
        Ok(())
    }

    /// What several messages say together.
    fn pieces(&self, call: &Call, from: usize, to: usize) -> Result<Option<Digest>, DeskError> {
        let pieces: Vec<Cow<'_, [u8]>> = (from..=to)
            .map(|index| self.message(call, index))
            .collect::<Result<_, _>>()?;
        let joined = normal::joined(pieces.iter().map(|piece| &**piece));
        joined.map_err(|error| unread(from, &error))
    }

    /// Names the conversation anew, as one that goes on from what these said.
    pub fn go_on_from(&mut self, before: impl Iterator<Item = Digest>) {
        self.chain = before.fold(normal::root(), normal::chain);
        for said in &mut self.said {
            self.chain = normal::chain(self.chain, said.digest);
            said.key = self.chain;
        }
    }

    /// How many messages the request has.
    pub fn messages(&self) -> usize {
        match self.text {
            Some(_) => 1,
            None => self.envelope.messages.len(),
        }
    }

    /// A message of the request.
    pub fn message<'a>(&'a self, call: &'a Call, index: usize) -> Result<Cow<'a, [u8]>, DeskError> {
        match (&self.text, self.envelope.messages.get(index)) {
            (Some(text), _) => Ok(Cow::Borrowed(text)),
            (None, Some(range)) => Ok(call.body.part(range)?),
            (None, None) => Err(DeskError::Own(format!("there is no message {index}"))),
        }
    }

    /// What tells openings apart that say the same.
    ///
    /// Many conversations begin alike, and a client that asks for a title sends the same words:
    /// until the model has said something, the model, its tools and the name count too.
    fn salt(&self) -> Digest {
        let mut salt = normal::root();
        let called = match &self.name {
            Some(Name::Given(name)) => format!("given {name}"),
            Some(Name::Session(name)) => format!("session {name}"),
            None => String::new(),
        };
        let tools = self.params.tool_names.iter().map(String::as_str);
        for word in [called.as_str(), &self.model].into_iter().chain(tools) {
            salt = normal::chain(salt, name(word.as_bytes()));
        }
        salt
    }

    /// Where instructions and tools stand, which count beside the conversation.
    pub fn beside(&self) -> impl Iterator<Item = &Range<u64>> {
        let counts = |name: &str| {
            matches!(
                name,
                "system" | "systemInstruction" | "system_instruction" | "instructions" | "tools"
            )
        };
        let members = self.envelope.members.iter();
        let members = members.filter(move |(name, _)| counts(name));
        let leading = &self.envelope.messages[..self.envelope.leading];
        members.map(|(_, range)| range).chain(leading)
    }
}

fn unread(index: usize, error: &infold_wire::MessageError) -> DeskError {
    DeskError::Request(format!("message {} of the request: {error}", index + 1))
}

/// What a conversation is found by.
pub(crate) fn key(chain: Digest, answered: bool, salt: Digest) -> Key {
    match answered {
        true => chain,
        false => normal::chain(chain, salt),
    }
}

/// A name for bytes.
pub(crate) fn name(bytes: &[u8]) -> Digest {
    let hash = blake3::hash(bytes);
    let mut name = Digest::default();
    name.copy_from_slice(&hash.as_bytes()[..16]);
    name
}

/// A text, which is a JSON string, as a message of the user's.
fn user(text: &[u8]) -> Vec<u8> {
    [br#"{"role":"user","content":"#, text, b"}"].concat()
}

fn split(call: &Call) -> Result<Envelope, DeskError> {
    use infold_wire::envelope::Splitter;
    /// How much of a body in a file is read at once.
    const PIECE: u64 = 1 << 20;
    let mut splitter = Splitter::new(call.wire);
    let mut at = 0;
    while at < call.body.len() {
        let end = match &call.body {
            crate::Body::Held(bytes) => bytes.len() as u64,
            crate::Body::Spooled { len, .. } => (*len).min(at + PIECE),
        };
        let part = call.body.part(&(at..end))?;
        splitter
            .push(&part)
            .map_err(|error| DeskError::Request(error.to_string()))?;
        at = end;
    }
    splitter
        .finish()
        .map_err(|error| DeskError::Request(error.to_string()))
}
