//! Adds the layered state of a task to the requests that the proxy forwards.
//!
//! The part that seldom changes follows the system prompt, so that prompt caches keep it. The part that changes is appended to
//! the last message, and recorded as an event of the view. If a request has no place for a text after the system prompt, the
//! last message gets both parts.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use infold::layers::{
    ContextError, ContextRequest, RequestContext, request_context, show_changing, shows_context,
};
use infold_log::{Role, Size, StateChanges};
use infold_store::Log;
use infold_wire::request::{append_to_system, system_members};
use infold_wire::tokens::{Encoding, count, text_message};
use infold_wire::{Json, Message, Wire, append_system_text, render_text};
use serde_json::json;

use super::{Blocking, ConversationError, Core};
use crate::open_task::OpenTask;
use crate::parsed_request::ParsedRequest;
use crate::pool::TaskLease;
use crate::{ModelCall, OutgoingBody};

/// A cache entry: the documents of a task's state, and the inputs from which they were built.
#[derive(Debug)]
pub(crate) struct BuiltContext {
    changes: StateChanges,
    max_tokens: u64,
    context: Arc<RequestContext>,
}

/// The texts about the state of a task that one request contains.
#[derive(Clone, Debug, Default)]
pub(crate) struct InjectedContext {
    /// The change that puts the stable text after the system prompt.
    system: Option<SystemEdit>,
    /// The text to append to the last message.
    end: Option<String>,
    system_tokens: u64,
    end_tokens: u64,
}

/// A change of a request that puts a text after its system prompt.
#[derive(Clone, Debug)]
enum SystemEdit {
    /// A new value for a top-level member. `range` is the position of its old value; none if the client did not send it.
    Member {
        name: &'static str,
        range: Option<Range<u64>>,
        value: Bytes,
    },
    /// Bytes that replace `range` in the list of messages. An empty range inserts them.
    Message { range: Range<u64>, bytes: Bytes },
}

impl InjectedContext {
    /// Applies the change of the system prompt to a request. The end of the last message is not changed here.
    pub fn apply(&self, parsed: &ParsedRequest, outgoing: OutgoingBody) -> OutgoingBody {
        match self.system.clone() {
            None => outgoing,
            Some(SystemEdit::Message { range, bytes }) => outgoing.replace(range, bytes),
            Some(SystemEdit::Member { name, range, value }) => match range {
                Some(range) => outgoing.replace(range, value),
                None => outgoing.add_member(&parsed.envelope, name, &value),
            },
        }
    }

    /// Returns the name and new value of the top-level member that changes; none if a message changes instead.
    pub fn member(&self) -> Option<(&'static str, &[u8])> {
        match &self.system {
            Some(SystemEdit::Member { name, value, .. }) => Some((name, value)),
            Some(SystemEdit::Message { .. }) | None => None,
        }
    }

    /// Returns the size that the text after the system prompt adds to the request.
    pub fn system_size(&self) -> Size {
        let bytes = match &self.system {
            None => 0,
            Some(SystemEdit::Member { value, range, .. }) => {
                let before = range.as_ref().map_or(0, |range| range.end - range.start);
                (value.len() as u64).saturating_sub(before)
            }
            Some(SystemEdit::Message { range, bytes }) => {
                (bytes.len() as u64).saturating_sub(range.end - range.start)
            }
        };
        Size {
            tokens: self.system_tokens,
            bytes,
        }
    }

    /// Returns the tokens of the text that is appended to the last message.
    pub fn end_tokens(&self) -> u64 {
        self.end_tokens
    }

    /// Returns the tokens of both texts.
    pub fn tokens(&self) -> u64 {
        self.system_tokens + self.end_tokens
    }
}

impl Core {
    /// Returns the texts about the state of its task that a request shall contain. The inner option is `None` if there are
    /// none. The outer one is `None` if `blocking` is forbidden, because building them reads the log; call again on a thread
    /// that may block.
    ///
    /// A request never fails because of the texts: an error is reported, and the request is sent without them.
    pub fn inject_context(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        open: &mut OpenTask,
        window: u64,
        blocking: Blocking,
    ) -> Option<Option<InjectedContext>> {
        let config = &self.config.layers;
        let shown = open.log().state().shown();
        let has_state = shown.state_changes().last.is_some();
        if !config.inject.value || !has_state && !shows_context(shown) {
            return Some(None);
        }
        if blocking == Blocking::Forbidden {
            return None;
        }
        let max_tokens = config.max_tokens(window);
        let changes = shown.state_changes();
        let known = open.context.as_ref();
        let known = known.filter(|it| it.changes == *changes && it.max_tokens == max_tokens);
        let context = match known {
            Some(known) => Ok(Arc::clone(&known.context)),
            None => self.build_context(open.log(), max_tokens).map(Arc::new),
        };
        let injected = context.and_then(|context| {
            open.context = Some(BuiltContext {
                changes: open.log().state().shown().state_changes().clone(),
                max_tokens,
                context: Arc::clone(&context),
            });
            InjectedContext::new(call, parsed, &context)
        });
        match injected {
            Ok(injected) => Some(Some(injected)),
            Err(error) => {
                self.metrics.failed("layers");
                tracing::warn!(task = %open.id, %error, "the state of a task is not shown");
                let details = json!({ "error": error.to_string() });
                self.publish(open.id, "layers", details.to_string());
                Some(None)
            }
        }
    }

    /// Builds the documents of the state in force. The time in them is that of the last change of the state, not the current
    /// time: as long as nothing changes the state, all requests repeat the same bytes, and prompt caches keep them.
    fn build_context(
        &self,
        log: &Log,
        max_tokens: u64,
    ) -> Result<RequestContext, ConversationError> {
        let last = log.state().shown().state_changes().last;
        let now = match last {
            Some(last) => log.event(last)?.ts,
            None => 0,
        };
        let request = ContextRequest {
            max_tokens,
            now,
            config: &self.config.layers,
        };
        let built = request_context(log, &request).map_err(|error| match error {
            ContextError::Log(error) => error.into(),
            ContextError::Build(error) => {
                ConversationError::Internal(format!("`layers.max_tokens`: {error}"))
            }
        })?;
        Ok(built.unwrap_or_default())
    }

    /// Returns the texts for a request that cannot be recorded, from a log that is only read. The caller applies only the change
    /// of the system prompt, because a text in the last message must be recorded.
    pub fn inject_unrecorded(
        &self,
        call: &ModelCall,
        parsed: &ParsedRequest,
        log: &Log,
        window: u64,
    ) -> Result<Option<InjectedContext>, ConversationError> {
        let config = &self.config.layers;
        if !config.inject.value || log.state().shown().state_changes().last.is_none() {
            return Ok(None);
        }
        let context = self.build_context(log, config.max_tokens(window))?;
        InjectedContext::new(call, parsed, &context).map(Some)
    }

    /// Records the text at the end of the last message, unless the view contains it already. The view then appends it.
    ///
    /// If it cannot be recorded, the error is reported and the request is sent without it.
    pub fn show_context(&self, open: &mut TaskLease, context: &InjectedContext) {
        match show_changing(&mut open.writer, context.end.as_deref()) {
            Ok(None) => {}
            Ok(Some(event)) => {
                open.wrote();
                let details = json!({ "event": event.get(), "tokens": context.end_tokens });
                self.publish(open.id, "layers", details.to_string());
            }
            Err(error) => self.pool.report(&error.into()),
        }
    }
}

impl InjectedContext {
    fn new(
        call: &ModelCall,
        parsed: &ParsedRequest,
        context: &RequestContext,
    ) -> Result<InjectedContext, ConversationError> {
        let stable = context.stable.as_deref();
        let system = match stable {
            Some(text) => system_edit(call, parsed, text)?,
            None => None,
        };
        // A stable text that the request has no place for goes to the end with the rest.
        let end = match (stable, &system) {
            (Some(_), None) => &context.whole,
            _ => &context.changing,
        };
        let shown = stable.filter(|_| system.is_some());
        Ok(InjectedContext {
            system,
            system_tokens: shown.map_or(0, |text| count(Encoding::O200k, text)),
            end_tokens: end.as_deref().map_or(0, text_message),
            end: end.clone(),
        })
    }
}

/// Returns the change that puts a text after the system prompt of a request; none if the request has no place for it.
fn system_edit(
    call: &ModelCall,
    parsed: &ParsedRequest,
    text: &str,
) -> Result<Option<SystemEdit>, ConversationError> {
    let envelope = &parsed.envelope;
    let is_among_messages = match call.wire {
        Wire::Chat | Wire::Ollama => true,
        // A provider that stores the conversation repeats its messages, and so a text among them, in later requests. It never
        // stores the instructions.
        Wire::Responses => envelope.leading > 0 && !is_stored(call, parsed)?,
        Wire::Anthropic => false,
        // Cached content includes the system prompt, and a request that uses it must not have another one.
        Wire::Gemini if is_set(call, parsed, &["cachedContent", "cached_content"])? => {
            return Ok(None);
        }
        Wire::Gemini => false,
    };
    if is_among_messages {
        return system_message_edit(call, parsed, text).map(Some);
    }
    let names = system_members(call.wire);
    let sent = names.iter().find(|name| envelope.member(name).is_some());
    let Some(name) = sent.or(names.first()) else {
        return Ok(None);
    };
    let range = envelope.member(name);
    let value = match &range {
        Some(range) => Some(call.body.part(range)?),
        None => None,
    };
    let value = append_to_system(call.wire, value.as_deref(), text);
    Ok(value.map(|value| SystemEdit::Member {
        name,
        range,
        value: value.into(),
    }))
}

/// Returns the change that appends a text to the last of the leading system messages. If that message cannot be extended, or
/// if there is none, the change adds a system message after it, or before all messages.
fn system_message_edit(
    call: &ModelCall,
    parsed: &ParsedRequest,
    text: &str,
) -> Result<SystemEdit, ConversationError> {
    let envelope = &parsed.envelope;
    let leading = &envelope.messages[..envelope.leading];
    let message = render_text(call.wire, Role::System, text);
    let Some(last) = leading.last() else {
        let start = envelope.list.start + 1;
        return Ok(SystemEdit::Message {
            range: start..start,
            bytes: [&message[..], b","].concat().into(),
        });
    };
    let body = call.body.part(last)?;
    let longer = match Message::read(&body) {
        Ok(read) => append_system_text(&read, text),
        Err(_) => None,
    };
    Ok(match longer {
        Some(bytes) => SystemEdit::Message {
            range: last.clone(),
            bytes: bytes.into(),
        },
        None => SystemEdit::Message {
            range: last.end..last.end,
            bytes: [b",", &message[..]].concat().into(),
        },
    })
}

/// Says whether the provider stores the conversation of a Responses request, which is the default, or has stored its
/// beginning.
fn is_stored(call: &ModelCall, parsed: &ParsedRequest) -> Result<bool, ConversationError> {
    let Some(range) = parsed.envelope.member("store") else {
        return Ok(true);
    };
    let stores = &*call.body.part(&range)? != b"false";
    Ok(stores || parsed.params.previous.is_some())
}

/// Says whether a request has one of these members with a value other than `null`.
fn is_set(
    call: &ModelCall,
    parsed: &ParsedRequest,
    names: &[&str],
) -> Result<bool, ConversationError> {
    for name in names {
        if let Some(range) = parsed.envelope.member(name) {
            let value = call.body.part(&range)?;
            let json = Json::parse(&value).ok();
            if json.is_some_and(|json| !json.is_null()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
