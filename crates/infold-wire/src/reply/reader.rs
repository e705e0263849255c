//! Reads a reply as its bytes come, on any wire.

use super::growing_json::OnDelta;
use super::stream::{EventSplitter, StreamEvent};
use super::{Reply, ReplyDelta, ReplyError, anthropic, chat, gemini, ollama, responses};
use crate::{Json, JsonKind, Wire};

/// The maximum size of one reply.
pub const MAX_REPLY_BYTES: u64 = 512 << 20;

/// The delivery of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// A stream of events.
    Stream,
    /// One body.
    Whole,
}

/// Reads a reply as its bytes arrive, with any splits.
///
/// The form of a reply is detected by its bytes: a server may answer a request for a stream with one body, and the
/// other way round.
#[derive(Debug)]
pub struct ReplyReader {
    delivery: Delivery,
    events: EventSplitter,
    builder: ReplyBuilder,
    bytes: u64,
    /// Whether an event with JSON arrived.
    has_event: bool,
    /// Bytes of the events that are part of the reply.
    event_bytes: u64,
    failed: Option<ReplyError>,
}

/// Builds a reply from its events.
#[derive(Debug)]
enum ReplyBuilder {
    Chat(Box<chat::ChatBuilder>),
    Responses(Box<responses::ResponsesBuilder>),
    Anthropic(Box<anthropic::AnthropicBuilder>),
    Gemini(Box<gemini::GeminiBuilder>),
    Ollama(Box<ollama::OllamaBuilder>),
}

/// The part that is missing at the end of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingPart {
    /// The complete reply.
    Everything,
    /// The mark of a complete reply.
    End,
}

impl ReplyReader {
    /// Starts to read a reply.
    pub fn new(wire: Wire, delivery: Delivery) -> ReplyReader {
        ReplyReader {
            delivery,
            events: EventSplitter::default(),
            builder: match wire {
                Wire::Chat => ReplyBuilder::Chat(Box::default()),
                Wire::Responses => ReplyBuilder::Responses(Box::default()),
                Wire::Anthropic => ReplyBuilder::Anthropic(Box::default()),
                Wire::Gemini => ReplyBuilder::Gemini(Box::default()),
                Wire::Ollama => ReplyBuilder::Ollama(Box::default()),
            },
            bytes: 0,
            has_event: false,
            event_bytes: 0,
            failed: None,
        }
    }

    /// Reads the next bytes, and reports their deltas. After an error it reads no more.
    pub fn push(
        &mut self,
        bytes: &[u8],
        on_delta: &mut dyn FnMut(ReplyDelta),
    ) -> Result<(), ReplyError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        self.bytes += bytes.len() as u64;
        let read = if self.bytes > MAX_REPLY_BYTES {
            let most = MAX_REPLY_BYTES;
            Err(ReplyError::TooLarge { most })
        } else {
            self.events.push(bytes, &mut |event| {
                if self.builder.push(event, on_delta)? {
                    self.has_event = true;
                    if !is_ping(event) {
                        self.event_bytes += event.data.len() as u64;
                    }
                }
                Ok(())
            })
        };
        self.failed = read.as_ref().err().cloned();
        read
    }

    /// Returns how many bytes of the reply came, zero before it begins.
    ///
    /// Comments, pings and blank lines, which only keep the connection open, do not count.
    pub fn progress(&self) -> u64 {
        if self.events.is_json() {
            self.bytes
        } else {
            self.event_bytes + self.events.pending_bytes()
        }
    }

    /// Returns whether the end marker of the reply arrived, though bytes may follow.
    ///
    /// A stream without such a marker is complete when it ends.
    pub fn is_complete(&self) -> bool {
        let is_complete = self.is_whole_body() || self.builder.is_complete();
        self.failed.is_none() && !self.events.is_open() && is_complete
    }

    /// Returns whether the reply is an unstreamed body, which is complete when it closes.
    fn is_whole_body(&self) -> bool {
        self.delivery == Delivery::Whole && self.events.is_json() && self.has_event
    }

    /// Returns whether any part of an answer came, or its end.
    ///
    /// The announcement of a response does not count: it may fail.
    pub fn is_begun(&self) -> bool {
        match &self.builder {
            ReplyBuilder::Responses(responses) => responses.is_begun(),
            _ => self.has_event,
        }
    }

    /// Returns the reply, if it is complete.
    pub fn finish(mut self) -> Result<Reply, ReplyError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let open = self.events.is_open();
        if let Some(event) = self.events.rest() {
            match self.builder.push(event, &mut |_| {}) {
                Ok(is_json) => self.has_event |= is_json,
                // The event is cut off; the ones before show whether that matters.
                Err(ReplyError::Malformed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let (bytes, is_whole) = (self.bytes, self.is_whole_body());
        match self.builder.finish(is_whole)? {
            Ok(reply) => Ok(reply),
            Err(MissingPart::End) => Err(ReplyError::Cut { bytes }),
            Err(MissingPart::Everything) => Err(match self.events.unknown_line() {
                Some(line) if self.events.is_foreign() => ReplyError::Foreign {
                    start: excerpt(line),
                },
                Some(line) => ReplyError::Malformed {
                    reason: format!("a stream of events does not begin with `{}`", excerpt(line)),
                },
                None if self.has_event && self.events.is_json() => ReplyError::Malformed {
                    reason: "its JSON is not a reply".to_owned(),
                },
                None if self.has_event || open => ReplyError::Cut { bytes },
                None => ReplyError::Empty,
            }),
        }
    }
}

impl ReplyBuilder {
    /// Reads an event; returns whether it was JSON.
    fn push(
        &mut self,
        event: StreamEvent<'_>,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<bool, ReplyError> {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Ok(false);
        }
        if data == b"[DONE]" {
            if let ReplyBuilder::Chat(chat) = self {
                chat.mark_done();
            }
            return Ok(false);
        }
        let body = || ReplyError::Failed {
            body: data.to_vec(),
        };
        let json = match Json::parse(data) {
            Ok(json) if json.kind() == JsonKind::Object => json,
            _ if event.name == b"error" => return Err(body()),
            Ok(_) => return Err(malformed("an event is not a JSON object", data)),
            Err(error) => return Err(malformed(&error.to_string(), data)),
        };
        if event.name == b"error" || reports_error(json) {
            return Err(body());
        }
        match self {
            ReplyBuilder::Chat(chat) => chat.push(json, on_delta),
            ReplyBuilder::Responses(responses) => responses.push(event.name, json, on_delta)?,
            ReplyBuilder::Anthropic(anthropic) => anthropic.push(event.name, json, on_delta),
            ReplyBuilder::Gemini(gemini) => gemini.push(json, on_delta),
            ReplyBuilder::Ollama(ollama) => ollama.push(json, on_delta),
        }
        Ok(true)
    }

    fn is_complete(&self) -> bool {
        match self {
            ReplyBuilder::Chat(chat) => chat.is_complete(),
            ReplyBuilder::Responses(responses) => responses.is_complete(),
            ReplyBuilder::Anthropic(anthropic) => anthropic.is_complete(),
            ReplyBuilder::Gemini(gemini) => gemini.is_complete(),
            ReplyBuilder::Ollama(ollama) => ollama.is_complete(),
        }
    }

    /// Returns the reply, if it is complete by itself or by `is_whole`.
    fn finish(self, is_whole: bool) -> Result<Result<Reply, MissingPart>, ReplyError> {
        Ok(match self {
            ReplyBuilder::Chat(chat) => chat.finish(is_whole),
            ReplyBuilder::Responses(responses) => return responses.finish(),
            ReplyBuilder::Anthropic(anthropic) => anthropic.finish(),
            ReplyBuilder::Gemini(gemini) => gemini.finish(is_whole),
            ReplyBuilder::Ollama(ollama) => ollama.finish(is_whole),
        })
    }
}

/// Returns whether an event only keeps the connection open.
fn is_ping(event: StreamEvent<'_>) -> bool {
    const MAX_PING_BYTES: usize = 200;
    let is_ping = |name: &[u8]| matches!(name, b"ping" | b"keepalive" | b"heartbeat");
    let data = event.data.trim_ascii();
    let kind = || Json::checked(data).get("type").map(Json::name);
    is_ping(event.name) || data.len() < MAX_PING_BYTES && kind().is_some_and(|kind| is_ping(&kind))
}

/// Returns whether an object is an error, in any of the shapes of providers and gateways.
fn reports_error(json: Json<'_>) -> bool {
    let [error, kind, object] = json.pick(["error", "type", "object"]);
    let is_error = |json: Option<Json<'_>>| json.is_some_and(|json| json.is("error"));
    let is_set = |json: Json<'_>| !matches!(json.bytes(), b"null" | b"false" | b"\"\"" | b"{}");
    error.is_some_and(is_set) || is_error(kind) || is_error(object)
}

fn malformed(what: &str, data: &[u8]) -> ReplyError {
    ReplyError::Malformed {
        reason: format!("{what}, in `{}`", excerpt(data)),
    }
}

/// Returns the start of some bytes.
fn excerpt(data: &[u8]) -> String {
    // A character has four bytes at most.
    let start = String::from_utf8_lossy(&data[..data.len().min(800)]);
    let mut chars = start.chars();
    let mut out: String = chars.by_ref().take(199).collect();
    if chars.next().is_some() || data.len() > 800 {
        out.push('…');
    }
    out
}
