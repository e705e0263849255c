//! Caches of parsed requests, so that the next ones are not parsed again: prefixes, messages, options.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use infold_wire::digest::Digest;
use infold_wire::envelope::EnvelopeParser;
use infold_wire::request_options::RequestOptions;
use infold_wire::{MessageError, Wire, secrets};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::ConversationName;
use crate::message_digest::{MessageDigest, join_pieces};
use crate::parsed_request::RequestMessage;

/// Digests of messages that were seen lately, by a hash of their bytes.
///
/// A client sends its whole history with every request, so almost all messages of a request were seen before.
#[derive(Debug)]
pub(crate) struct DigestCache {
    /// Secrets are replaced before a message is digested, as they are before it is stored.
    redacts: bool,
    digests: Cache<u128, MessageDigest>,
    /// The options of requests, by a hash of all but their messages.
    options: Cache<u128, Arc<RequestOptions>>,
    /// Beginnings of requests whose messages need not be looked at one by one.
    pub prefixes: PrefixCache,
}

const MAX_CACHED_DIGESTS: usize = 64 << 10;

const MAX_CACHED_OPTIONS: usize = 1024;

impl DigestCache {
    pub fn new(redacts: bool) -> DigestCache {
        DigestCache {
            redacts,
            digests: Cache::new(MAX_CACHED_DIGESTS),
            options: Cache::new(MAX_CACHED_OPTIONS),
            prefixes: PrefixCache::default(),
        }
    }

    /// Returns the options of a request, which `read` reads unless one with the same frame came before.
    pub fn options(
        &self,
        frame: u128,
        read: impl FnOnce() -> RequestOptions,
    ) -> Arc<RequestOptions> {
        if let Some(options) = self.options.get(&frame) {
            return options;
        }
        let options = Arc::new(read());
        self.options.insert(frame, Arc::clone(&options));
        options
    }

    /// Returns a message in the form in which it is stored.
    fn stored_form<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let redacted = self
            .redacts
            .then(|| secrets::without_secrets(bytes))
            .flatten();
        redacted.map_or(Cow::Borrowed(bytes), Cow::Owned)
    }

    /// Returns a name in the form in which it is stored.
    pub fn stored_name(&self, name: ConversationName) -> ConversationName {
        if self.redacts && secrets::text_without_secrets(name.text()).is_some() {
            name.redacted()
        } else {
            name
        }
    }

    /// Returns the digest of pieces of output together.
    pub fn join(&self, pieces: &[&[u8]]) -> Result<Option<Digest>, MessageError> {
        join_pieces(pieces, self.redacts)
    }

    /// Returns the digest of a message.
    pub fn digest(&self, bytes: &[u8]) -> Result<MessageDigest, MessageError> {
        let key = self.prefixes.hasher.hash(bytes);
        if let Some(digest) = self.digests.get(&key) {
            return Ok(digest);
        }
        let digest = MessageDigest::of(&self.stored_form(bytes))?;
        self.digests.insert(key, digest);
        Ok(digest)
    }
}

/// A cache of prefixes of recent requests.
///
/// A client sends its whole history with every request, so up to the last message of one request the next one has the
/// same bytes. A keyed hash proves it: it is computed block by block, and a prefix is looked up by the hash at the end
/// of its last whole block. The bytes between that and its own end are hashed once more.
#[derive(Debug)]
pub(crate) struct PrefixCache {
    pub hasher: KeyedHasher,
    known: Cache<u128, KnownPrefix, PrefixWeight>,
}

/// A beginning that was parsed before: it ends behind a message.
#[derive(Clone, Debug)]
pub(crate) struct KnownPrefix {
    end: usize,
    /// The hash of the bytes behind its last whole block.
    rest: u128,
    /// The number of its messages, with content or not.
    count: usize,
    parsed: Arc<ParsedPrefix>,
}

/// The parsed part of a request, up to its last message.
#[derive(Debug)]
pub(crate) struct ParsedPrefix {
    /// The parser's state behind the last message.
    pub parser: EnvelopeParser,
    /// The messages that have content.
    pub messages: Vec<RequestMessage>,
    /// Some message may be one of several pieces of one model output.
    pub has_pieces: bool,
}

/// A hash with a random key, so that clients can neither predict nor forge it.
#[derive(Debug)]
pub(crate) struct KeyedHasher {
    /// Two independent 64-bit hashes form one of 128 bits.
    keys: [(u64, SharedSeed); 2],
}

/// A running hash of the bytes written so far.
struct HashStream<'k>([FoldHasher<'k>; 2]);

#[derive(Clone, Debug)]
struct PrefixWeight;

/// The bytes that are hashed at a time. A shorter prefix is not worth caching.
const BLOCK_BYTES: usize = 4 << 10;

/// A second beginning ends at least this many messages before the last: some clients mark the end of a request for the provider's cache,
/// and move the marks with every request.
const MOVING_MESSAGES: usize = 4;

/// The approximate memory limit of the cache in bytes.
const MAX_CACHE_BYTES: u64 = 16 << 20;

impl Default for KeyedHasher {
    fn default() -> KeyedHasher {
        // The standard library's keys come from the system's random numbers.
        let key = |_| std::hash::RandomState::new().hash_one(0);
        KeyedHasher {
            keys: std::array::from_fn(|at| (key(at), SharedSeed::from_u64(key(at)))),
        }
    }
}

impl KeyedHasher {
    pub fn hash(&self, bytes: &[u8]) -> u128 {
        let mut stream = self.stream();
        stream.write(bytes);
        stream.value()
    }

    /// Returns the hash of several byte strings, which depends on where each ends.
    pub fn hash_parts<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
        let mut stream = self.stream();
        for part in parts {
            stream.write(part);
            stream.write(&part.len().to_le_bytes());
        }
        stream.value()
    }

    fn stream(&self) -> HashStream<'_> {
        let keys = self.keys.each_ref();
        HashStream(keys.map(|(key, seed)| FoldHasher::with_seed(*key, seed)))
    }
}

impl HashStream<'_> {
    fn write(&mut self, bytes: &[u8]) {
        for hasher in &mut self.0 {
            hasher.write(bytes);
        }
    }

    fn value(&self) -> u128 {
        let [one, other] = &self.0;
        u128::from(one.finish()) << 64 | u128::from(other.finish())
    }
}

impl Weighter<u128, KnownPrefix> for PrefixWeight {
    fn weight(&self, _: &u128, prefix: &KnownPrefix) -> u64 {
        const FIXED_BYTES: usize = 512;
        const BYTES_PER_MESSAGE: usize = 64;
        (FIXED_BYTES + prefix.count * BYTES_PER_MESSAGE) as u64
    }
}

impl Default for PrefixCache {
    fn default() -> PrefixCache {
        const USUAL_BYTES: u64 = 4 << 10;
        let count = (MAX_CACHE_BYTES / USUAL_BYTES) as usize;
        PrefixCache {
            hasher: KeyedHasher::default(),
            known: Cache::with_weighter(count, MAX_CACHE_BYTES, PrefixWeight),
        }
    }
}

impl PrefixCache {
    /// Returns the hash of a body up to the end of each whole block.
    pub fn block_hashes(&self, wire: Wire, body: &[u8]) -> Vec<u128> {
        let mut stream = self.hasher.stream();
        stream.write(&[wire as u8]);
        let blocks = body.chunks_exact(BLOCK_BYTES);
        let after = |block| {
            stream.write(block);
            stream.value()
        };
        blocks.map(after).collect()
    }

    /// Returns the longest known prefix of a body.
    pub fn find(&self, body: &[u8], block_hashes: &[u128]) -> Option<KnownPrefix> {
        let mut blocks = block_hashes.iter().enumerate().rev();
        blocks.find_map(|(at, hash)| {
            let prefix = self.known.get(hash)?;
            let rest = body.get((at + 1) * BLOCK_BYTES..prefix.end)?;
            (self.hasher.hash(rest) == prefix.rest).then_some(prefix)
        })
    }

    /// Caches the parsed prefix of a body.
    pub fn add(&self, body: &[u8], block_hashes: &[u128], parsed: ParsedPrefix) {
        let count = parsed.parser.message_count();
        let parsed = Arc::new(parsed);
        let end_of = |count: usize| parsed.parser.message_end(count).unwrap_or(0) as usize;
        let last_block = end_of(count) / BLOCK_BYTES;
        // Two prefixes that end in the same block would have the same key. A run of pieces may continue behind an
        // earlier message.
        let mut earlier = (1..=count.saturating_sub(MOVING_MESSAGES)).rev();
        let earlier = earlier.find(|count| end_of(*count) / BLOCK_BYTES < last_block);
        let earlier = earlier.filter(|_| !parsed.has_pieces);
        for count in earlier.into_iter().chain([count]) {
            let end = end_of(count);
            let blocks = end / BLOCK_BYTES;
            // A prefix that ends in a number could continue with more digits in another body; an object has its own
            // end.
            let is_object = end > 0 && body.get(end - 1) == Some(&b'}');
            let hash = blocks.checked_sub(1).and_then(|at| block_hashes.get(at));
            if let (Some(hash), true) = (hash, is_object) {
                let prefix = KnownPrefix {
                    end,
                    rest: self.hasher.hash(&body[blocks * BLOCK_BYTES..end]),
                    count,
                    parsed: Arc::clone(&parsed),
                };
                self.known.insert(*hash, prefix);
            }
        }
    }
}

impl KnownPrefix {
    /// Returns the parser behind the beginning.
    pub fn parser(&self) -> Option<EnvelopeParser> {
        self.parsed.parser.after_message(self.count)
    }

    /// Returns how many messages it has, with content or not.
    pub fn message_count(&self) -> usize {
        self.count
    }

    /// Returns those of its messages that have content.
    pub fn messages(&self) -> impl Iterator<Item = &RequestMessage> {
        let all = self.parsed.messages.iter();
        all.take_while(|message| message.index < self.count)
    }

    /// Says whether some message may be one of several pieces of output.
    pub fn has_pieces(&self) -> bool {
        self.parsed.has_pieces
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns the CPU time of this thread: other processes share the machine.
    fn spent() -> Duration {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or(0))
    }

    #[test]
    fn a_message_is_looked_through_for_secrets_once() {
        let cache = DigestCache::new(true);
        let text = "the key to the house, ".repeat(400_000);
        let message = format!(r#"{{"role":"user","content":"{text}"}}"#);
        let took = || {
            let began = spent();
            let digest = cache.digest(message.as_bytes()).expect("it is a message");
            (digest, spent() - began)
        };
        let (first, again) = (took(), took());
        assert_eq!(first.0, again.0);
        assert!(again.1 * 4 < first.1, "{:?}, then {:?}", first.1, again.1);
    }
}
