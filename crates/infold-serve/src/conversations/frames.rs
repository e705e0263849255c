//! Frames: all of a request but its messages. Their tokens are counted once, and a changed frame is recorded.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;

use infold_log::Size;
use infold_store::is_prompt;
use infold_wire::digest::{self, Digest};
use infold_wire::request::blank_credentials;
use infold_wire::tokens::{Encoding, count};
use uuid::Uuid;

use super::{ConversationError, Core};
use crate::parsed_request::{ParsedRequest, bytes_digest};
use crate::pool::TaskLease;
use crate::{ModelCall, locked};

/// What is known of frames: clients send the same ones each time.
#[derive(Default)]
pub(super) struct FrameCache {
    /// The tokens of instructions and tools, by a digest of their bytes.
    tokens: Mutex<HashMap<Digest, u64>>,
    /// The digest of the frame that was last recorded, by task.
    recorded: Mutex<HashMap<Uuid, Digest>>,
}

const MAX_CACHED_FRAMES: usize = 4096;

impl FrameCache {
    fn count_tokens(&self, bytes: &[u8]) -> u64 {
        let key = bytes_digest(bytes);
        if let Some(tokens) = locked(&self.tokens).get(&key) {
            return *tokens;
        }
        let tokens = count(Encoding::O200k, &String::from_utf8_lossy(bytes));
        insert_bounded(&self.tokens, key, tokens);
        tokens
    }
}

fn insert_bounded<K: std::hash::Hash + Eq, V>(map: &Mutex<HashMap<K, V>>, key: K, value: V) {
    let mut map = locked(map);
    if map.len() >= MAX_CACHED_FRAMES {
        map.clear();
    }
    map.insert(key, value);
}

impl Core {
    /// Returns the size of a request's frame.
    pub fn frame_size(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
    ) -> Result<Size, ConversationError> {
        let mut size = Size::default();
        for range in parsed.frame_ranges() {
            size.tokens += self.frames.count_tokens(&call.body.part(range)?);
        }
        let messages = parsed
            .envelope
            .messages
            .iter()
            .skip(parsed.envelope.leading);
        let messages: u64 = messages.map(|range| range.end - range.start).sum();
        size.bytes = call.body.len() - messages;
        Ok(size)
    }

    /// Records the frame of a request if it changed; credentials are blanked.
    pub fn record_frame(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        open: &mut TaskLease,
    ) -> Result<(), ConversationError> {
        let mut members = Vec::new();
        for (name, range) in &parsed.envelope.members {
            members.push((name.as_str(), call.body.part(range)?));
        }
        let leading = &parsed.envelope.messages[..parsed.envelope.leading];
        if let (Some(first), Some(last)) = (leading.first(), leading.last()) {
            let bytes = call.body.part(&(first.start..last.end))?;
            let list = [b"[", &*bytes, b"]"].concat();
            members.push(("messages", Cow::Owned(list)));
        }
        let digest = members
            .iter()
            .fold(digest::empty_chain(), |digest, (name, bytes)| {
                let digest = digest::chain_digest(digest, bytes_digest(name.as_bytes()));
                digest::chain_digest(digest, bytes_digest(bytes))
            });
        if locked(&self.frames.recorded).get(&open.id) == Some(&digest) {
            return Ok(());
        }
        for (name, bytes) in &mut members {
            // What is said to the model is recorded as it is.
            if !is_prompt(name.as_bytes()) {
                // The name counts too: a member of the request itself may be a credential.
                let name = infold_wire::quote(name);
                let whole =
                    blank_credentials(&format!("{{{name}:{}}}", String::from_utf8_lossy(bytes)));
                let value = whole.get(name.len() + 2..whole.len() - 1).unwrap_or("null");
                *bytes = Cow::Owned(value.to_owned().into_bytes());
            }
        }
        let members: Vec<(&str, &[u8])> = members.iter().map(|(name, it)| (*name, &**it)).collect();
        open.writer.frame(call.wire, &members)?;
        open.wrote();
        insert_bounded(&self.frames.recorded, open.id, digest);
        Ok(())
    }
}
