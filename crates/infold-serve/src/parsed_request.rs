//! A request as far as it is read: where its messages stand, what it asks for, and the digests by which its conversation is found.

use std::borrow::Cow;
use std::ops::Range;

use infold_store::Key;
use infold_wire::Wire;
use infold_wire::digest::{self, Digest};
use infold_wire::envelope::Envelope;
use infold_wire::request_options::RequestOptions;

use crate::digest_cache::DigestCache;
use crate::route::is_valid_name;
use crate::{ConversationError, ConversationName, ModelCall};

/// A request that was parsed.
#[derive(Debug)]
pub(crate) struct ParsedRequest {
    /// Where everything stands in the body.
    pub envelope: Envelope,
    /// The parameters of the request.
    pub params: RequestOptions,
    /// The name of the provider.
    pub provider: String,
    pub model: String,
    pub wire: Wire,
    /// The reply streams.
    pub stream: bool,
    /// The name of the conversation, if it has one.
    pub name: Option<ConversationName>,
    /// The one message of a request that has a plain text instead of messages.
    text: Option<Vec<u8>>,
    /// The messages that have content, in order.
    pub messages: Vec<RequestMessage>,
    /// The chain digest after all of them.
    pub chain: Digest,
}

/// A message of a request that has content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestMessage {
    /// Its place in the request; of several pieces of one output, that of the last.
    pub index: usize,
    pub digest: Digest,
    /// The key under which the conversation up to it is indexed.
    pub key: Key,
    /// The model wrote it.
    pub is_reply: bool,
}

/// Messages in a row that may be pieces of one output of the model. They are joined once, where the row ends.
struct PieceRun {
    from: usize,
    /// How many of them have content.
    count: usize,
    /// The last that has, and its own digest.
    last: Option<(usize, Digest)>,
}

impl ParsedRequest {
    /// Reads a request.
    pub fn read(
        call: &ModelCall,
        digests: &DigestCache,
    ) -> Result<ParsedRequest, ConversationError> {
        let envelope = split(call)?;
        let mut member = |name: &str| {
            let mut found = envelope.members.iter().rev();
            let (_, range) = found.find(|(known, _)| known == name)?;
            Some(call.body.part(range).ok()?.into_owned())
        };
        let params = RequestOptions::read(call.wire, &mut member);
        let model = call.model.clone().or_else(|| params.model.clone());
        let name = call.name.clone().or_else(|| {
            let session = params.session.clone();
            session
                .filter(|name| is_valid_name(name))
                .map(ConversationName::Session)
        });
        let text = if envelope.is_text {
            Some(user_message(&call.body.part(&envelope.list)?))
        } else {
            None
        };
        let mut request = ParsedRequest {
            text,
            provider: call.provider.name.clone(),
            model: model.unwrap_or_default(),
            wire: call.wire,
            stream: call.stream.unwrap_or(params.stream),
            name: name.map(|name| digests.stored_name(name)),
            messages: Vec::new(),
            chain: digest::empty_chain(),
            envelope,
            params,
        };
        request.digest_messages(call, digests)?;
        Ok(request)
    }

    /// Digests the messages, and derives the key of the conversation up to each of them.
    fn digest_messages(
        &mut self,
        call: &ModelCall,
        digests: &DigestCache,
    ) -> Result<(), ConversationError> {
        let salt = self.opening_salt();
        let mut is_answered = false;
        let mut messages: Vec<RequestMessage> = Vec::with_capacity(self.message_count());
        let mut chain = self.chain;
        let mut add = |index: usize, digest: Digest, is_reply: bool| {
            is_answered |= is_reply;
            chain = digest::chain_digest(chain, digest);
            messages.push(RequestMessage {
                index,
                digest,
                key: conversation_key(chain, is_answered, salt),
                is_reply,
            });
        };
        let mut run: Option<PieceRun> = None;
        for index in self.envelope.leading..self.message_count() {
            let bytes = self.message(call, index)?;
            let message = digests
                .digest(&bytes)
                .map_err(|error| unreadable(index, &error))?;
            drop(bytes);
            if message.is_piece {
                let run = run.get_or_insert(PieceRun {
                    from: index,
                    count: 0,
                    last: None,
                });
                if let Some(digest) = message.digest {
                    run.count += 1;
                    run.last = Some((index, digest));
                }
                continue;
            }
            if let Some((last, digest)) = self.join_run(call, digests, run.take())? {
                add(last, digest, true);
            }
            if let Some(digest) = message.digest {
                add(index, digest, message.is_reply);
            }
        }
        if let Some((last, digest)) = self.join_run(call, digests, run)? {
            add(last, digest, true);
        }
        (self.messages, self.chain) = (messages, chain);
        Ok(())
    }

    /// Returns the digest of a run of pieces, and the last of them that has content.
    fn join_run(
        &self,
        call: &ModelCall,
        digests: &DigestCache,
        run: Option<PieceRun>,
    ) -> Result<Option<(usize, Digest)>, ConversationError> {
        let Some((from, count, (last, digest))) =
            run.and_then(|run| Some((run.from, run.count, run.last?)))
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
        let joined = digests.join(&pieces);
        let joined = joined.map_err(|error| unreadable(from, &error))?;
        Ok(Some((last, joined.unwrap_or(digest))))
    }

    /// Derives the keys anew for a conversation that continues messages with these digests.
    pub fn continue_from(&mut self, before: impl Iterator<Item = Digest>) {
        self.chain = before.fold(digest::empty_chain(), digest::chain_digest);
        for message in &mut self.messages {
            self.chain = digest::chain_digest(self.chain, message.digest);
            message.key = self.chain;
        }
    }

    /// Returns the keys of the conversation up to each message.
    pub fn keys(&self) -> Vec<Key> {
        self.messages.iter().map(|message| message.key).collect()
    }

    /// Returns how many messages the request has, with content or not.
    pub fn message_count(&self) -> usize {
        match self.text {
            Some(_) => 1,
            None => self.envelope.messages.len(),
        }
    }

    /// Says whether the request has a plain text instead of messages.
    pub fn is_text(&self) -> bool {
        self.text.is_some()
    }

    /// Returns the bytes of a message.
    pub fn message<'a>(
        &'a self,
        call: &'a ModelCall,
        index: usize,
    ) -> Result<Cow<'a, [u8]>, ConversationError> {
        match (&self.text, self.envelope.messages.get(index)) {
            (Some(text), _) => Ok(Cow::Borrowed(text)),
            (None, Some(range)) => Ok(call.body.part(range)?),
            (None, None) => Err(ConversationError::Internal(format!(
                "there is no message {index}"
            ))),
        }
    }

    /// Returns what tells conversations apart that begin with the same words.
    ///
    /// Many conversations begin alike, and a client that asks for a title sends the same words: until the model has answered,
    /// the model, its tools and the name are part of the key.
    fn opening_salt(&self) -> Digest {
        // By its digest: a name may be redacted before the model answers.
        let name = self.name.as_ref().map(|name| name.redacted().key());
        let tools = self.params.tool_names.iter().map(String::as_str);
        let words = [name.as_deref().unwrap_or_default(), &self.model];
        words
            .into_iter()
            .chain(tools)
            .fold(digest::empty_chain(), |salt, word| {
                digest::chain_digest(salt, bytes_digest(word.as_bytes()))
            })
    }

    /// Returns where instructions and tools stand, whose tokens count beside the messages.
    pub fn frame_ranges(&self) -> impl Iterator<Item = &Range<u64>> {
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

fn unreadable(index: usize, error: &infold_wire::MessageError) -> ConversationError {
    ConversationError::Request(format!("message {} of the request: {error}", index + 1))
}

/// Returns the key under which a conversation is indexed.
pub(crate) fn conversation_key(chain: Digest, is_answered: bool, opening_salt: Digest) -> Key {
    if is_answered {
        chain
    } else {
        digest::chain_digest(chain, opening_salt)
    }
}

/// Returns a digest of bytes.
pub(crate) fn bytes_digest(bytes: &[u8]) -> Digest {
    let hash = blake3::hash(bytes);
    let mut digest = Digest::default();
    digest.copy_from_slice(&hash.as_bytes()[..16]);
    digest
}

/// Returns a user message whose content is this JSON string.
fn user_message(text: &[u8]) -> Vec<u8> {
    [br#"{"role":"user","content":"#, text, b"}"].concat()
}

fn split(call: &ModelCall) -> Result<Envelope, ConversationError> {
    use infold_wire::envelope::EnvelopeParser;
    /// How much of a spooled body is read at once.
    const READ_BYTES: u64 = 1 << 20;
    let mut splitter = EnvelopeParser::new(call.wire);
    let mut at = 0;
    while at < call.body.len() {
        let end = match &call.body {
            crate::IncomingBody::InMemory(bytes) => bytes.len() as u64,
            crate::IncomingBody::Spooled { len, .. } => (*len).min(at + READ_BYTES),
        };
        let part = call.body.part(&(at..end))?;
        splitter
            .push(&part)
            .map_err(|error| ConversationError::Request(error.to_string()))?;
        at = end;
    }
    splitter
        .finish()
        .map_err(|error| ConversationError::Request(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use infold_wire::Wire;

    use super::*;
    use crate::IncomingBody;

    fn call(pieces: usize) -> ModelCall {
        let content =
            |at: usize| format!(r#"{{"role":"model","parts":[{{"text":"piece {at}"}}]}}"#);
        let pieces: Vec<String> = (0..pieces).map(content).collect();
        let user = r#"{"role":"user","parts":[{"text":"hi"}]}"#;
        let body = format!(r#"{{"contents":[{user},{},{user}]}}"#, pieces.join(","));
        let set = |value: &str| {
            infold::profile::Setting::new(value.to_owned(), infold::profile::Origin::Default)
        };
        ModelCall {
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
            body: IncomingBody::InMemory(body.into()),
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
                let request = ParsedRequest::read(&call, &DigestCache::default());
                assert_eq!(request.expect("it can be read").messages.len(), 3);
            }
            spent() - began
        };
        let (few, many) = (took(500, 50), took(5_000, 5));
        let most = 4 * few + Duration::from_millis(20);
        assert!(many < most, "{few:?}, then {many:?}");
    }
}
