use super::stream::{Event, Events};
use super::text::Hear;
use super::{Delta, Reply, ReplyError, anthropic, chat, gemini, ollama, responses};
use crate::{Json, Kind, Wire};

/// The most bytes of one reply.
pub const MOST_REPLY: u64 = 512 << 20;

/// How a reply was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Piece by piece.
    Stream,
    /// As one body.
    Whole,
}

/// Reads a reply as its bytes come, split anywhere.
///
/// Which form a reply has is seen from its bytes: a server that was asked for a stream may
/// answer with one body, and the other way round.
#[derive(Debug)]
pub struct Reader {
    form: Delivery,
    events: Events,
    build: Build,
    bytes: u64,
    /// An event came that is JSON.
    heard: bool,
    /// Bytes of the events that are part of the reply.
    said: u64,
    failed: Option<ReplyError>,
}

/// What puts the pieces of a reply together.
#[derive(Debug)]
enum Build {
    Chat(Box<chat::Chat>),
    Responses(Box<responses::Responses>),
    Anthropic(Box<anthropic::Anthropic>),
    Gemini(Box<gemini::Gemini>),
    Ollama(Box<ollama::Ollama>),
}

/// What is missing at the end of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// All of it.
    Everything,
    /// The mark that it is complete.
    End,
}

impl Reader {
    /// Begins to read.
    pub fn new(wire: Wire, form: Delivery) -> Reader {
        Reader {
            form,
            events: Events::default(),
            build: match wire {
                Wire::Chat => Build::Chat(Box::default()),
                Wire::Responses => Build::Responses(Box::default()),
                Wire::Anthropic => Build::Anthropic(Box::default()),
                Wire::Gemini => Build::Gemini(Box::default()),
                Wire::Ollama => Build::Ollama(Box::default()),
            },
            bytes: 0,
            heard: false,
            said: 0,
            failed: None,
        }
    }

    /// Takes the next bytes, and tells what they say. After an error nothing more is read.
    pub fn push(&mut self, bytes: &[u8], hear: &mut dyn FnMut(Delta)) -> Result<(), ReplyError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        self.bytes += bytes.len() as u64;
        let (build, heard, said) = (&mut self.build, &mut self.heard, &mut self.said);
        let read = match self.bytes > MOST_REPLY {
            true => Err(ReplyError::TooLarge { most: MOST_REPLY }),
            false => self.events.push(bytes, &mut |event| {
                if build.event(event, hear)? {
                    *heard = true;
                    *said += if is_ping(event) {
                        0
                    } else {
                        event.data.len() as u64
                    };
                }
                Ok(())
            }),
        };
        self.failed = read.as_ref().err().cloned();
        read
    }

    /// How far the reply has come, zero before it begins.
    ///
    /// What only keeps the connection open does not move it: comments, pings, blank lines.
    pub fn progress(&self) -> u64 {
        match self.events.is_json() {
            true => self.bytes,
            false => self.said + self.events.waiting(),
        }
    }

    /// Says whether all of the reply is there, though bytes may follow: the mark of its end came.
    ///
    /// A stream without such a mark is complete when it ends.
    pub fn is_complete(&self) -> bool {
        let closed = self.form == Delivery::Whole && self.events.is_json() && self.heard;
        self.failed.is_none() && !self.events.is_open() && (closed || self.build.is_complete())
    }

    /// Says whether anything was said yet that belongs to an answer, or to the end of one.
    ///
    /// A response is announced before it is known whether there will be any.
    pub fn is_begun(&self) -> bool {
        match &self.build {
            Build::Responses(responses) => responses.is_begun(),
            _ => self.heard,
        }
    }

    /// Returns the reply, if it is complete.
    pub fn finish(mut self) -> Result<Reply, ReplyError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let open = self.events.is_open();
        if let Some(event) = self.events.rest() {
            match self.build.event(event, &mut |_| {}) {
                Ok(heard) => self.heard |= heard,
                // Cut within the event: what came before it says whether that matters.
                Err(ReplyError::Malformed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // A body is complete when it closes.
        let closed = self.form == Delivery::Whole && self.events.is_json() && self.heard;
        let bytes = self.bytes;
        match self.build.end(closed)? {
            Ok(reply) => Ok(reply),
            Err(Missing::End) => Err(ReplyError::Cut { bytes }),
            Err(Missing::Everything) => Err(match self.events.odd() {
                Some(line) if self.events.is_foreign() => ReplyError::Foreign {
                    start: excerpt(line),
                },
                Some(line) => ReplyError::Malformed {
                    reason: format!("no stream of events begins `{}`", excerpt(line)),
                },
                None if self.heard && self.events.is_json() => ReplyError::Malformed {
                    reason: "its JSON has nothing of a reply".to_owned(),
                },
                None if self.heard || open => ReplyError::Cut { bytes },
                None => ReplyError::Empty,
            }),
        }
    }
}

impl Build {
    /// Takes an event; says whether it was JSON.
    fn event(&mut self, event: Event<'_>, hear: &mut Hear<'_>) -> Result<bool, ReplyError> {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Ok(false);
        }
        if data == b"[DONE]" {
            if let Build::Chat(chat) = self {
                chat.done();
            }
            return Ok(false);
        }
        let body = || ReplyError::Failed {
            body: data.to_vec(),
        };
        let json = match Json::parse(data) {
            Ok(json) if json.kind() == Kind::Object => json,
            _ if event.name == b"error" => return Err(body()),
            Ok(_) => return Err(malformed("an event is no JSON object", data)),
            Err(error) => return Err(malformed(&error.to_string(), data)),
        };
        if event.name == b"error" || reports_error(json) {
            return Err(body());
        }
        match self {
            Build::Chat(chat) => chat.take(json, hear),
            Build::Responses(responses) => responses.take(event.name, json, hear)?,
            Build::Anthropic(anthropic) => anthropic.take(event.name, json, hear),
            Build::Gemini(gemini) => gemini.take(json, hear),
            Build::Ollama(ollama) => ollama.take(json, hear),
        }
        Ok(true)
    }

    fn is_complete(&self) -> bool {
        match self {
            Build::Chat(chat) => chat.is_complete(),
            Build::Responses(responses) => responses.is_complete(),
            Build::Anthropic(anthropic) => anthropic.is_complete(),
            Build::Gemini(gemini) => gemini.is_complete(),
            Build::Ollama(ollama) => ollama.is_complete(),
        }
    }

    /// Returns what there is, if it is complete, or `closed` says that it is.
    fn end(self, closed: bool) -> Result<Result<Reply, Missing>, ReplyError> {
        Ok(match self {
            Build::Chat(chat) => chat.end(closed),
            Build::Responses(responses) => return responses.end(),
            Build::Anthropic(anthropic) => anthropic.end(),
            Build::Gemini(gemini) => gemini.end(closed),
            Build::Ollama(ollama) => ollama.end(closed),
        })
    }
}

/// Says whether an event only keeps the connection open.
fn is_ping(event: Event<'_>) -> bool {
    /// No longer one is looked into.
    const SHORT: usize = 200;
    let known = |name: &[u8]| matches!(name, b"ping" | b"keepalive" | b"heartbeat");
    let data = event.data.trim_ascii();
    let kind = || Json::checked(data).get("type").map(Json::name);
    known(event.name) || data.len() < SHORT && kind().is_some_and(|kind| known(&kind))
}

/// Says whether an object is an error, in any of the shapes providers and gateways have.
fn reports_error(json: Json<'_>) -> bool {
    let [error, kind, object] = json.pick(["error", "type", "object"]);
    let is_error = |json: Option<Json<'_>>| json.is_some_and(|json| json.is("error"));
    let says = |json: Json<'_>| !matches!(json.bytes(), b"null" | b"false" | b"\"\"" | b"{}");
    error.is_some_and(says) || is_error(kind) || is_error(object)
}

fn malformed(what: &str, data: &[u8]) -> ReplyError {
    ReplyError::Malformed {
        reason: format!("{what}, in `{}`", excerpt(data)),
    }
}

/// The start of what came.
fn excerpt(data: &[u8]) -> String {
    // Four bytes a character at most.
    let start = String::from_utf8_lossy(&data[..data.len().min(800)]);
    let mut chars = start.chars();
    let mut out: String = chars.by_ref().take(199).collect();
    if chars.next().is_some() || data.len() > 800 {
        out.push('…');
    }
    out
}
