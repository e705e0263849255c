//! The scripted model: how it checks, how much it takes, its name.

use infold_wire::tokens::{Encoding, count};
use infold_wire::{Json, StopReason, Wire, append_words};

use crate::Answer;
use crate::reply_request::{ReplyRequest, listed};

/// The model behind the server: its checks, its window, its name.
#[derive(Clone, Debug)]
pub struct Model {
    /// The names of the models; if empty, any name is accepted.
    pub names: Vec<String>,
    /// The most tokens of a request and its reply; `None` if there is no limit.
    pub window: Option<u64>,
    /// The key that requests must have; `None` if they need none.
    pub key: Option<String>,
    /// Whether requests are checked as the wire's provider checks them.
    pub strict: bool,
    /// Whether every rule of the provider is checked: all kinds of pairs, signatures, ids, places.
    pub picky: bool,
    /// Whether roles must alternate: on Anthropic's wire, as they once had to; on a picky server also on chat and
    /// Responses, because templates require it, and on Gemini's.
    pub alternate: bool,
    /// How many characters a streamed piece has.
    pub piece: usize,
}

impl Default for Model {
    fn default() -> Model {
        Model {
            names: Vec::new(),
            window: None,
            key: None,
            strict: true,
            picky: false,
            alternate: true,
            piece: 12,
        }
    }
}

impl Model {
    /// Returns a model with a window of this many tokens.
    pub fn window(tokens: u64) -> Model {
        Model {
            window: Some(tokens),
            ..Model::default()
        }
    }

    /// Returns a model that checks every rule of its provider except that roles alternate.
    pub fn picky() -> Model {
        Model {
            picky: true,
            alternate: false,
            ..Model::default()
        }
    }
}

/// How much of what was said is repeated.
const REPEATED: usize = 200;

/// Repeats the last message, and reports the size of the request.
pub(crate) fn echo(asked: &ReplyRequest, body: Option<Json<'_>>, tokens: u64) -> Answer {
    let messages = body
        .map(|body| messages(asked.wire, body))
        .unwrap_or_default();
    let said = messages.last().map(|last| words(*last)).unwrap_or_default();
    let mut said: String = said.trim().chars().take(REPEATED).collect();
    if said.is_empty() {
        said.push('…');
    }
    let number = messages.len();
    let mut text = format!("You said: {said} ({number} messages, {tokens} tokens)");
    let mut stop = None;
    if let Some(most) = asked.most.filter(|most| *most > 0) {
        while count(Encoding::O200k, &text) > most && text.pop().is_some() {
            stop = Some(StopReason::Length);
        }
    }
    Answer {
        text: Some(text),
        stop,
        ..Answer::default()
    }
}

/// The messages of a request.
pub(crate) fn messages<'a>(wire: Wire, body: Json<'a>) -> Vec<Json<'a>> {
    match wire {
        Wire::Chat | Wire::Anthropic => listed(body, "messages"),
        Wire::Ollama => {
            let mut messages = listed(body, "messages");
            messages.extend(body.get("prompt"));
            messages
        }
        Wire::Responses => listed(body, "input"),
        Wire::Gemini => listed(body, "contents"),
    }
}

/// Returns the text of a message, or its results if it has none.
pub(crate) fn words(message: Json<'_>) -> String {
    if let Ok(message) = infold_wire::Message::parse(message.bytes()) {
        let mut out = String::new();
        append_words(&message, &mut out);
        if out.is_empty() {
            infold_wire::append_plain_text(&message, &mut out);
        }
        return out;
    }
    let text = |json: Json<'_>| json.text().map(|text| text.into_owned());
    if let Some(text) = text(message) {
        return text;
    }
    let lists = ["content", "parts", "output"];
    let lists = lists.iter().flat_map(|name| listed(message, name));
    let texts = lists.filter_map(|part| text(part).or_else(|| part.get("text").and_then(text)));
    texts.collect::<Vec<_>>().join("\n")
}
