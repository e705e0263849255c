//! What stands around the conversation: instructions, tools, parameters.

use std::borrow::Cow;
use std::collections::HashMap;

use infold_log::Size;
use infold_store::is_prompt;
use infold_wire::normal::Digest;
use infold_wire::request::blanked;
use infold_wire::tokens::{Encoding, count};
use uuid::Uuid;

use super::{DeskError, Inner, locked};
use crate::Call;
use crate::told::{Told, name};

/// How many tokens instructions and tools have, by their bytes: clients send the same ones each time.
#[derive(Default)]
pub(super) struct Frames {
    tokens: HashMap<Digest, u64>,
    /// What was last kept for a task.
    kept: HashMap<Uuid, Digest>,
}

/// So many are kept in mind.
const MOST: usize = 4096;

impl Inner {
    /// How much stands beside the conversation.
    pub fn frame(&self, call: &Call, told: &Told) -> Result<Size, DeskError> {
        let mut size = Size::default();
        for range in told.beside() {
            let bytes = call.body.part(range)?;
            size.tokens += self.counted(&bytes);
        }
        let messages = told.envelope.messages.iter().skip(told.envelope.leading);
        let messages: u64 = messages.map(|range| range.end - range.start).sum();
        size.bytes = call.body.len() - messages;
        Ok(size)
    }

    fn counted(&self, bytes: &[u8]) -> u64 {
        let key = name(bytes);
        if let Some(tokens) = locked(&self.frames).tokens.get(&key) {
            return *tokens;
        }
        let tokens = count(Encoding::O200k, &String::from_utf8_lossy(bytes));
        let mut frames = locked(&self.frames);
        if frames.tokens.len() >= MOST {
            frames.tokens.clear();
        }
        frames.tokens.insert(key, tokens);
        tokens
    }

    /// Keeps what stands around the messages of a request, if it changed; credentials are blanked.
    pub fn keep_frame(&self, call: &Call, told: &Told, task: Uuid) -> Result<(), DeskError> {
        let mut members = Vec::new();
        for (name, range) in &told.envelope.members {
            members.push((name.as_str(), call.body.part(range)?));
        }
        let leading = &told.envelope.messages[..told.envelope.leading];
        if let (Some(first), Some(last)) = (leading.first(), leading.last()) {
            let bytes = call.body.part(&(first.start..last.end))?;
            let list = [b"[", &*bytes, b"]"].concat();
            members.push(("messages", Cow::Owned(list)));
        }
        let mut hash = infold_wire::normal::root();
        for (member, bytes) in &members {
            hash = infold_wire::normal::chain(hash, name(member.as_bytes()));
            hash = infold_wire::normal::chain(hash, name(bytes));
        }
        if locked(&self.frames).kept.get(&task) == Some(&hash) {
            return Ok(());
        }
        for (name, bytes) in &mut members {
            // What is said to the model is kept as it is.
            if !is_prompt(name.as_bytes()) {
                // The name counts too: a member of the request itself may be a credential.
                let name = infold_wire::quote(name);
                let whole = blanked(&format!("{{{name}:{}}}", String::from_utf8_lossy(bytes)));
                let value = whole.get(name.len() + 2..whole.len() - 1).unwrap_or("null");
                *bytes = Cow::Owned(value.to_owned().into_bytes());
            }
        }
        let borrowed: Vec<(&str, &[u8])> =
            members.iter().map(|(name, it)| (*name, &**it)).collect();
        let held = self.open(task)?;
        let mut held = locked(&held);
        held.writer.frame(call.wire, &borrowed)?;
        self.wrote(&mut held);
        drop(held);
        let mut frames = locked(&self.frames);
        if frames.kept.len() >= MOST {
            frames.kept.clear();
        }
        frames.kept.insert(task, hash);
        Ok(())
    }
}
