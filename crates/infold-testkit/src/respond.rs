//! Computes the response to a request.

use infold_wire::{Json, Reply, TokenUsage, Wire};

use crate::count::{Cache, Counted};
use crate::faults::RequestFault;
use crate::reply_request::{AddressTarget, ReplyRequest, target};
use crate::send::{Outgoing, Sent};
use crate::step::{Pace, StepAction};
use crate::{Refusal, Script, Seen, Step, Tally, check, dialect, embed, list, model};

/// Answers requests, one after the other.
#[derive(Debug)]
pub(crate) struct Responder {
    pub script: Script,
    pub tally: Tally,
    pub refusals: Vec<Refusal>,
    cache: Cache,
    /// The model that Ollama has loaded, and its window.
    loaded: Option<(String, u64)>,
}

/// The response and its pace; none if there is never one.
pub(crate) struct ScriptedResponse {
    pub outgoing: Option<Outgoing>,
    pub pace: Pace,
}

impl From<Outgoing> for ScriptedResponse {
    fn from(outgoing: Outgoing) -> ScriptedResponse {
        ScriptedResponse {
            outgoing: Some(outgoing),
            pace: Pace::default(),
        }
    }
}

impl Responder {
    pub fn new(script: Script) -> Responder {
        Responder {
            script,
            tally: Tally::default(),
            refusals: Vec::new(),
            cache: Cache::default(),
            loaded: None,
        }
    }

    /// Answers a request; `body` is missing if it is too large to be understood.
    pub fn answer(&mut self, seen: &Seen, body: Option<&[u8]>) -> ScriptedResponse {
        let target = target(&seen.method, &seen.path);
        let wire = match target {
            AddressTarget::Reply(wire)
            | AddressTarget::Count(wire)
            | AddressTarget::Embeddings(wire) => wire,
            AddressTarget::Models(Wire::Chat) if seen.header("anthropic-version").is_some() => {
                Wire::Anthropic
            }
            // Google's own client asks at the address that OpenAI's uses.
            AddressTarget::Models(Wire::Chat) if seen.header("x-goog-api-key").is_some() => {
                Wire::Gemini
            }
            AddressTarget::Models(wire) => wire,
            AddressTarget::Generate
            | AddressTarget::Show
            | AddressTarget::Loaded
            | AddressTarget::Version => Wire::Ollama,
            AddressTarget::Alive => return text(200, "infold-testkit is running\n").into(),
            AddressTarget::Unknown => {
                let message = format!("Invalid URL ({} {})", seen.method, seen.path);
                let wrong = dialect::BadRequest::new(message, "", "");
                return dialect::error(Wire::Chat, 404, "invalid_request_error", &wrong).into();
            }
        };
        if let Err(refused) = check::key(wire, &self.script.model, seen) {
            return refused.into();
        }
        match target {
            AddressTarget::Models(_) => list::models(wire, &self.script.model).into(),
            AddressTarget::Embeddings(_) => {
                let json = body.and_then(|body| Json::parse(body).ok());
                let answer = json.and_then(|json| embed::embeddings(wire, json));
                let wrong = || dialect::BadRequest::new("'input' is missing".to_owned(), "", "");
                answer
                    .unwrap_or_else(|| dialect::invalid(wire, &wrong()))
                    .into()
            }
            AddressTarget::Show => list::show(&self.script.model).into(),
            AddressTarget::Loaded => list::loaded(self.loaded.as_ref()).into(),
            AddressTarget::Version => {
                dialect::json(200, r#"{"version":"0.12.0"}"#.to_owned()).into()
            }
            _ => self.work(seen, wire, body, target),
        }
    }

    /// Counts a request, or replies to it.
    fn work(
        &mut self,
        seen: &Seen,
        wire: Wire,
        body: Option<&[u8]>,
        target: AddressTarget,
    ) -> ScriptedResponse {
        let json = match body.map(Json::parse).transpose() {
            Ok(json) => json,
            Err(error) => return dialect::invalid(wire, &check::unreadable(wire, &error)).into(),
        };
        if matches!(target, AddressTarget::Count(_)) {
            let inner = json.and_then(|json| json.get("generateContentRequest"));
            let counted = inner.or(json).map(|json| Counted::of(wire, json));
            let tokens = counted.map_or(seen.len / 4, |counted| counted.total());
            return list::counted(wire, tokens).into();
        }
        let asked = ReplyRequest::of(seen, wire, json);
        let model = &self.script.model;
        let known = model.names.is_empty() || model.names.contains(&asked.model);
        if !known {
            return dialect::no_model(wire, &asked.model).into();
        }
        if let Some(json) = json
            && let Err(wrong) = check::request(model, seen, &asked, json)
        {
            let response = dialect::invalid(wire, &wrong).into();
            self.refusals.push(Refusal {
                request: seen.clone(),
                reason: wrong.message,
            });
            return response;
        }
        if wire == Wire::Ollama {
            let wanted = json.and_then(|json| json.get("options")?.get("num_ctx")?.number());
            let wanted = wanted.map(|wanted| wanted as u64);
            let window = wanted.or(model.window).unwrap_or(list::OLLAMAS_OWN);
            self.loaded = Some((asked.model.clone(), window));
        }
        let counted = match json {
            Some(json) => Counted::of(wire, json),
            None => Counted::guessed(seen.len),
        };
        self.reply(seen, &asked, json, counted, target)
    }

    fn reply(
        &mut self,
        seen: &Seen,
        asked: &ReplyRequest,
        json: Option<Json<'_>>,
        mut counted: Counted,
        target: AddressTarget,
    ) -> ScriptedResponse {
        let mut dropped = 0;
        if let Some(window) = self.script.model.window {
            if let Some(refused) = dialect::too_long(asked, &counted, window) {
                return refused.into();
            }
            let sent = counted.total();
            counted.drop_front(window);
            dropped = sent - counted.total();
        }
        let faults = self.script.faults.as_ref();
        let fault = faults.and_then(|it| it.roll(seen.number, asked.wire, &mut self.tally));
        let step = match fault {
            None => self.script.next(seen, false),
            Some(RequestFault::Refused(refused)) => return refused.into(),
            Some(RequestFault::Harmed(harm)) => harm(self.script.next(seen, true)),
            Some(RequestFault::Slow(slow)) => slow(self.script.next(seen, false)),
        };
        let Step { what, pace } = step;
        let usage = self.cache.meet(asked.wire, &counted);
        let answer = match what {
            StepAction::Never => {
                let outgoing = None;
                return ScriptedResponse { outgoing, pace };
            }
            StepAction::Raw(raw) => {
                let body = Sent::Whole(raw.body);
                let (status, headers) = (raw.status, raw.headers);
                let outgoing = Some(Outgoing {
                    status,
                    headers,
                    body,
                });
                return ScriptedResponse { outgoing, pace };
            }
            StepAction::Exact(reply) => Ok(reply),
            StepAction::Answer(answer) => Err(answer),
            StepAction::Model => Err(model::echo(asked, json, usage.sent())),
        };
        let reply = answer.unwrap_or_else(|answer| {
            let (output, reasoning) = answer.tokens();
            let usage = TokenUsage {
                output,
                reasoning,
                ..usage
            };
            answer.reply(asked.wire, seen.number, &asked.model, usage)
        });
        let size = pace.piece.unwrap_or(self.script.model.piece);
        let mut outgoing = written(seen, asked, reply, size, target == AddressTarget::Generate);
        if dropped > 0 {
            // Ollama does not say so; a test can know.
            let header = ("x-testkit-dropped".to_owned(), dropped.to_string());
            outgoing.headers.push(header);
        }
        let outgoing = Some(outgoing);
        ScriptedResponse { outgoing, pace }
    }
}

/// A reply as it is sent.
fn written(
    seen: &Seen,
    asked: &ReplyRequest,
    mut reply: Reply,
    size: usize,
    bare: bool,
) -> Outgoing {
    let wire = asked.wire;
    let kind = match (wire, asked.stream) {
        (_, false) => "application/json",
        (Wire::Ollama, true) => "application/x-ndjson",
        (Wire::Gemini, true) if asked.array => "application/json",
        (_, true) => "text/event-stream; charset=utf-8",
    };
    let body = if asked.stream {
        if wire == Wire::Chat && !asked.usage {
            reply.usage = None;
        }
        let mut events = infold_translate::stream_reply(wire, &reply, size);
        if bare {
            events = events.iter().map(|line| prompted(line)).collect();
        }
        if asked.array {
            events = array(events);
        }
        Sent::Events(events)
    } else {
        let whole = infold_translate::write_reply(wire, &reply);
        Sent::Whole(if bare { prompted(&whole) } else { whole })
    };
    let mut headers = vec![("content-type".to_owned(), kind.to_owned())];
    let id = match wire {
        Wire::Chat | Wire::Responses => Some("x-request-id"),
        Wire::Anthropic => Some("request-id"),
        Wire::Gemini | Wire::Ollama => None,
    };
    headers.extend(id.map(|name| (name.to_owned(), format!("req_{}", seen.number))));
    let status = 200;
    Outgoing {
        status,
        headers,
        body,
    }
}

/// A line of Ollama's chat as its oldest form has it: the text alone.
fn prompted(line: &[u8]) -> Vec<u8> {
    let Ok(json) = Json::parse(line) else {
        return line.to_vec();
    };
    let text = |json: Json<'_>| String::from_utf8_lossy(json.bytes()).into_owned();
    let members = json.members().map(|(name, value)| {
        if name.is("message") {
            let said = value.get("content").map_or("\"\"".to_owned(), text);
            let thought = value.get("thinking").map(text);
            let thought = thought.map(|it| format!(r#","thinking":{it}"#));
            format!(r#""response":{said}{}"#, thought.unwrap_or_default())
        } else {
            format!("{}:{}", text(name), text(value))
        }
    });
    let members: Vec<_> = members.collect();
    let end = if line.ends_with(b"\n") { "\n" } else { "" };
    format!("{{{}}}{end}", members.join(",")).into_bytes()
}

/// Events as the elements of one array, which is how Gemini streams if not asked otherwise.
fn array(events: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let last = events.len().saturating_sub(1);
    let element = |(at, event): (usize, Vec<u8>)| {
        let start = if at == 0 { "[" } else { ",\r\n" };
        let end = if at == last { "]" } else { "" };
        let event = String::from_utf8_lossy(&event);
        let data = event.trim_end().trim_start_matches("data: ");
        format!("{start}{data}{end}").into_bytes()
    };
    events.into_iter().enumerate().map(element).collect()
}

fn text(status: u16, text: &str) -> Outgoing {
    Outgoing {
        status,
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: Sent::Whole(text.as_bytes().to_vec()),
    }
}
