//! A parsed request: the places of its messages, its parameters, and the digests by which its conversation is found.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use infold_store::Key;
use infold_wire::Wire;
use infold_wire::digest::{self, Digest};
use infold_wire::envelope::{Envelope, EnvelopeParser, is_prompt};
use infold_wire::request_options::RequestOptions;

use crate::request_cache::DigestCache;
use crate::request_cache::{KnownPrefix, ParsedPrefix};
use crate::route::is_valid_name;
use crate::{ConversationError, ConversationName, IncomingBody, ModelCall};

/// A request that was parsed.
#[derive(Debug)]
pub(crate) struct ParsedRequest {
    /// The places of all members in the body.
    pub envelope: Envelope,
    /// The parameters of the request.
    pub params: Arc<RequestOptions>,
    /// A hash of all bytes outside of the conversation's messages, with a key of this process.
    pub frame: u128,
    /// The name of the provider.
    pub provider: String,
    pub model: String,
    pub wire: Wire,
    /// The reply streams.
    pub stream: bool,
    /// The name of the conversation, if it has one.
    pub name: Option<ConversationName>,
    /// The only message of a request that has a plain text instead of messages.
    text: Option<Vec<u8>>,
    /// The messages that have content, in order.
    pub messages: Vec<RequestMessage>,
    /// The chain digest after all of them.
    pub chain: Digest,
    /// The parsed prefix with which the next request may begin.
    prefix: Option<ParsedPrefix>,
}

/// A message of a request that has content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestMessage {
    /// The message's place in the request; for several pieces of one output, that of the last. Pieces that the client
    /// sent as one message have the same place.
    pub index: usize,
    pub digest: Digest,
    /// The key under which the conversation up to this message is indexed.
    pub key: Key,
    /// The model wrote it.
    pub is_reply: bool,
}

/// Adjacent messages that may be pieces of one model output. They are joined once, where the run ends.
struct PieceRun {
    from: usize,
    /// The number of them that have content.
    count: usize,
    /// The last that has, and its own digest.
    last: Option<(usize, Digest)>,
}

/// The messages that have content, with the keys of the conversation up to each.
struct MessageChain {
    messages: Vec<RequestMessage>,
    chain: Digest,
    is_answered: bool,
    opening_salt: Digest,
}

impl MessageChain {
    /// Begins with the messages of a known prefix. Keys before the first reply depend on more than the messages.
    fn new(opening_salt: Digest, known: Option<&KnownPrefix>, count: usize) -> MessageChain {
        let mut messages: Vec<RequestMessage> = Vec::with_capacity(count);
        messages.extend(known.into_iter().flat_map(KnownPrefix::messages));
        let mut chain = digest::empty_chain();
        let mut unanswered = messages.iter_mut();
        let is_answered = unanswered.any(|message| {
            chain = digest::chain_digest(chain, message.digest);
            if !message.is_reply {
                message.key = conversation_key(chain, false, opening_salt);
            }
            message.is_reply
        });
        if let Some(last) = messages.last().filter(|_| is_answered) {
            chain = last.key;
        }
        MessageChain {
            messages,
            chain,
            is_answered,
            opening_salt,
        }
    }

    fn add(&mut self, index: usize, digest: Digest, is_reply: bool) {
        self.is_answered |= is_reply;
        self.chain = digest::chain_digest(self.chain, digest);
        self.messages.push(RequestMessage {
            index,
            digest,
            key: conversation_key(self.chain, self.is_answered, self.opening_salt),
            is_reply,
        });
    }
}

impl ParsedRequest {
    /// Reads a request. A prefix that an earlier request had is not parsed again.
    pub fn read(
        call: &ModelCall,
        digests: &DigestCache,
    ) -> Result<ParsedRequest, ConversationError> {
        let body = match &call.body {
            IncomingBody::InMemory(bytes) => bytes,
            IncomingBody::Spooled { .. } => return ParsedRequest::read_from(call, digests, None),
        };
        let prefixes = &digests.prefixes;
        let blocks = prefixes.block_hashes(call.wire, body);
        let known = prefixes.find(body, &blocks);
        let mut parsed = ParsedRequest::read_from(call, digests, known.as_ref())?;
        if let Some(prefix) = parsed.prefix.take() {
            prefixes.add(body, &blocks, prefix);
        }
        Ok(parsed)
    }

    /// Reads a request from the end of a known prefix, or all of it.
    fn read_from(
        call: &ModelCall,
        digests: &DigestCache,
        known: Option<&KnownPrefix>,
    ) -> Result<ParsedRequest, ConversationError> {
        let parser = known.and_then(KnownPrefix::parser);
        let mut parser = parser.unwrap_or_else(|| EnvelopeParser::new(call.wire));
        parse_rest(call, &mut parser)?;
        let behind = parser.after_message(parser.message_count());
        let envelope = parser
            .finish()
            .map_err(|error| ConversationError::Request(error.to_string()))?;
        let frame = frame_hash(call, &envelope, digests)?;
        let params = digests.options(frame, || {
            let mut member = |name: &str| {
                let (_, range) = envelope.members.iter().find(|(known, _)| known == name)?;
                Some(call.body.part(range).ok()?.into_owned())
            };
            RequestOptions::read(call.wire, &mut member)
        });
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
            frame,
            provider: call.provider.name.clone(),
            model: model.unwrap_or_default(),
            wire: call.wire,
            stream: call.stream.unwrap_or(params.stream),
            name: name.map(|name| digests.stored_name(name)),
            messages: Vec::new(),
            chain: digest::empty_chain(),
            prefix: None,
            envelope,
            params,
        };
        request.digest_messages(call, digests, known, behind)?;
        Ok(request)
    }

    /// Digests the messages behind a known prefix, and derives the key of the conversation up to each of them. Records
    /// the prefix with which the next request may begin.
    fn digest_messages(
        &mut self,
        call: &ModelCall,
        digests: &DigestCache,
        known: Option<&KnownPrefix>,
        behind: Option<EnvelopeParser>,
    ) -> Result<(), ConversationError> {
        let mut chain = MessageChain::new(self.opening_salt(), known, self.message_count());
        let known_count = known.map_or(0, KnownPrefix::message_count);
        let mut has_pieces = known.is_some_and(KnownPrefix::has_pieces);
        let mut run: Option<PieceRun> = None;
        for index in self.envelope.leading.max(known_count)..self.message_count() {
            let bytes = self.message(call, index)?;
            let message = digests
                .digest(&bytes)
                .map_err(|error| unreadable(index, &error))?;
            drop(bytes);
            if message.is_piece {
                has_pieces = true;
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
                chain.add(last, digest, true);
            }
            if let Some(digest) = message.digest {
                chain.add(index, digest, message.is_reply);
            }
        }
        // The next request may have more pieces of an output that this one ends with.
        self.prefix = behind.filter(|_| run.is_none()).map(|parser| ParsedPrefix {
            parser,
            messages: chain.messages.clone(),
            has_pieces,
        });
        if let Some((last, digest)) = self.join_run(call, digests, run)? {
            chain.add(last, digest, true);
        }
        (self.messages, self.chain) = (chain.messages, chain.chain);
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

    /// Replaces the digests of the messages, and derives the keys again. Several adjacent ones may be parts of one
    /// message of the request.
    pub fn replace_messages(&mut self, messages: &[RequestMessage]) {
        let mut chain = MessageChain::new(self.opening_salt(), None, messages.len());
        for message in messages {
            chain.add(message.index, message.digest, message.is_reply);
        }
        (self.messages, self.chain) = (chain.messages, chain.chain);
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

    fn opening_salt(&self) -> Digest {
        opening_salt(self.name.as_ref(), &self.model, &self.params.tool_names)
    }

    /// Returns the places of instructions and tools, whose tokens count beside the messages.
    pub fn frame_ranges(&self) -> impl Iterator<Item = &Range<u64>> {
        let members = self.envelope.members.iter();
        let members = members.filter(|(name, _)| is_prompt(name) || name == "tools");
        let leading = &self.envelope.messages[..self.envelope.leading];
        members.map(|(_, range)| range).chain(leading)
    }
}

fn unreadable(index: usize, error: &infold_wire::MessageError) -> ConversationError {
    ConversationError::Request(format!("message {} of the request: {error}", index + 1))
}

/// Returns the salt that distinguishes conversations with the same first messages.
///
/// Many conversations begin alike, and a client that asks for a title sends the same words: until the model has answered,
/// the model, its tools and the name are part of the key.
pub(crate) fn opening_salt(
    name: Option<&ConversationName>,
    model: &str,
    tool_names: &[String],
) -> Digest {
    // By its digest: a name may be redacted before the model answers.
    let name = name.map(|name| name.redacted().key());
    let tools = tool_names.iter().map(String::as_str);
    let words = [name.as_deref().unwrap_or_default(), model];
    words
        .into_iter()
        .chain(tools)
        .fold(digest::empty_chain(), |salt, word| {
            digest::chain_digest(salt, bytes_digest(word.as_bytes()))
        })
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

/// Returns a hash of all bytes of a request but those of the conversation's messages.
fn frame_hash(
    call: &ModelCall,
    envelope: &Envelope,
    digests: &DigestCache,
) -> Result<u128, ConversationError> {
    let leading = &envelope.messages[..envelope.leading];
    let leading = match (leading.first(), leading.last()) {
        (Some(first), Some(last)) => first.start..last.end,
        _ => 0..0,
    };
    let list = &envelope.list;
    let ranges = [0..list.start, leading, list.end..call.body.len()];
    let parts: Vec<Cow<'_, [u8]>> = ranges
        .iter()
        .map(|range| call.body.part(range))
        .collect::<Result<_, _>>()?;
    let wire = [call.wire as u8];
    let parts = parts.iter().map(|part| &**part);
    Ok(digests.prefixes.hasher.hash_parts(parts.chain([&wire[..]])))
}

/// Parses a body from where the parser is.
fn parse_rest(call: &ModelCall, parser: &mut EnvelopeParser) -> Result<(), ConversationError> {
    /// The bytes of a spooled body that are read at once.
    const READ_BYTES: u64 = 1 << 20;
    while parser.offset() < call.body.len() {
        let end = match &call.body {
            IncomingBody::InMemory(bytes) => bytes.len() as u64,
            IncomingBody::Spooled { len, .. } => (*len).min(parser.offset() + READ_BYTES),
        };
        let part = call.body.part(&(parser.offset()..end))?;
        parser
            .push(&part)
            .map_err(|error| ConversationError::Request(error.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
