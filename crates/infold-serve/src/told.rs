use std::borrow::Cow;
use std::ops::Range;

use infold_store::Key;
use infold_wire::Wire;
use infold_wire::envelope::Envelope;
use infold_wire::normal::{self, Digest};
use infold_wire::params::Params;

use crate::route::fits;
use crate::seen::Seen;
use crate::{Call, DeskError, Name};

/// What a request tells of its conversation.
#[derive(Debug)]
pub(crate) struct Told {
    /// Where everything stands in the body.
    pub envelope: Envelope,
    /// What it asks for.
    pub params: Params,
    /// The provider that is asked, its model, and the wire.
    pub provider: String,
    pub model: String,
    pub wire: Wire,
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

/// Messages in a row that may be pieces of one thing the model said. They are put together once, where the row ends.
struct Pieces {
    from: usize,
    /// How many of them say anything.
    count: usize,
    /// The last that does, and what it says alone.
    last: Option<(usize, Digest)>,
}

impl Pieces {
    fn from(from: usize) -> Pieces {
        Pieces {
            from,
            count: 0,
            last: None,
        }
    }
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
            let session = params.session.clone();
            session.filter(|name| fits(name)).map(Name::Session)
        });
        let name = name.map(|name| seen.kept_name(name));
        let text = match envelope.is_text {
            true => Some(user(&call.body.part(&envelope.list)?)),
            false => None,
        };
        let mut told = Told {
            text,
            provider: call.provider.name.clone(),
            model: model.unwrap_or_default(),
            wire: call.wire,
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
        let mut chain = self.chain;
        let mut say = |index: usize, digest: Digest, is_reply: bool| {
            answered |= is_reply;
            chain = normal::chain(chain, digest);
            let key = key(chain, answered, salt);
            all.push(Said {
                index,
                digest,
                key,
                is_reply,
            });
        };
        let mut pieces: Option<Pieces> = None;
        for index in self.envelope.leading..self.messages() {
            let bytes = self.message(call, index)?;
            let sight = seen.look(&bytes).map_err(|error| unread(index, &error))?;
            drop(bytes);
            if sight.is_piece {
                let pieces = pieces.get_or_insert(Pieces::from(index));
                if let Some(digest) = sight.digest {
                    pieces.count += 1;
                    pieces.last = Some((index, digest));
                }
                continue;
            }
            if let Some((last, digest)) = self.joined(call, seen, pieces.take())? {
                say(last, digest, true);
            }
            if let Some(digest) = sight.digest {
                say(index, digest, sight.is_reply);
            }
        }
        if let Some((last, digest)) = self.joined(call, seen, pieces)? {
            say(last, digest, true);
        }
        (self.said, self.chain) = (all, chain);
        Ok(())
    }

    /// What pieces say together, and the last of them that says anything.
    fn joined(
        &self,
        call: &Call,
        seen: &Seen,
        pieces: Option<Pieces>,
    ) -> Result<Option<(usize, Digest)>, DeskError> {
        let Some((from, count, (last, digest))) =
            pieces.and_then(|pieces| Some((pieces.from, pieces.count, pieces.last?)))
        else {
            return Ok(None);
        };
        if count == 1 {
            return Ok(Some((last, digest)));
        }
        let bytes: Vec<Cow<'_, [u8]>> = (from..=last)
            .map(|index| self.message(call, index))
            .collect::<Result<_, _>>()?;
        let pieces: Vec<&[u8]> = bytes.iter().map(|piece| &**piece).collect();
        let joined = seen.joined(&pieces);
        let joined = joined.map_err(|error| unread(from, &error))?;
        Ok(Some((last, joined.unwrap_or(digest))))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use infold_wire::Wire;

    use super::*;
    use crate::Body;

    fn call(pieces: usize) -> Call {
        let content =
            |at: usize| format!(r#"{{"role":"model","parts":[{{"text":"piece {at}"}}]}}"#);
        let pieces: Vec<String> = (0..pieces).map(content).collect();
        let user = r#"{"role":"user","parts":[{"text":"hi"}]}"#;
        let body = format!(r#"{{"contents":[{user},{},{user}]}}"#, pieces.join(","));
        let set = |value: &str| {
            infold::profile::Set::new(value.to_owned(), infold::profile::Origin::Default)
        };
        Call {
            wire: Wire::Gemini,
            model: Some("m".to_owned()),
            stream: None,
            long_context: false,
            agent: None,
            name: None,
            provider: Arc::new(infold::config::Provider {
                name: "scripted".to_owned(),
                api: set("gemini"),
                model: None,
                context_length: None,
                api_key: None,
                base_url: None,
                max_tokens: None,
            }),
            body: Body::Held(body.into()),
        }
    }

    /// How long this thread has been running: others share the machine.
    fn spent() -> Duration {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or(0))
    }

    #[test]
    fn ten_times_as_many_pieces_take_about_ten_times_as_long() {
        let took = |pieces: usize, times: usize| {
            let call = call(pieces);
            let began = spent();
            for _ in 0..times {
                let told = Told::read(&call, &Seen::default()).expect("it can be read");
                assert_eq!(told.said.len(), 3);
            }
            spent() - began
        };
        let (few, many) = (took(500, 50), took(5_000, 5));
        let most = 4 * few + Duration::from_millis(20);
        assert!(many < most, "{few:?}, then {many:?}");
    }
}
