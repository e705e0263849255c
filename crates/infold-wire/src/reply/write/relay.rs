//! A reply of one wire, told in the words of another as it comes.
//!
//! Text goes on as soon as it is there. Calls follow when the reply is whole, and so does what
//! the model says behind its first call: only then are their ids and their places known. Texts
//! with nothing between them become one. Reasoning is shown where it is nobody's business to
//! sign it (chat, Gemini, Ollama); elsewhere it would be refused by the provider whose form it
//! has, so that only a sign of life goes out for it.
//!
//! ```
//! use infold_wire::reply::relay::Relay;
//! use infold_wire::{Delivery, Delta, Reader, Reply, Wire};
//!
//! let mut relay = Relay::new(Wire::Anthropic, "m", "1");
//! let mut sent = relay.delta(&Delta::Text("good ".to_owned()));
//! sent.extend(relay.delta(&Delta::Text("morning".to_owned())));
//! let message = br#"{"role":"assistant","content":"good morning"}"#.to_vec();
//! sent.extend(relay.finish(&Reply { messages: vec![message], ..Reply::default() }));
//!
//! let mut reader = Reader::new(Wire::Anthropic, Delivery::Stream);
//! reader.push(&sent, &mut |_| {})?;
//! let told = r#"{"role":"assistant","content":[{"type":"text","text":"good morning"}]}"#;
//! assert_eq!(reader.finish()?.messages, [told.as_bytes()]);
//! # Ok::<(), infold_wire::ReplyError>(())
//! ```

use std::collections::BTreeSet;

use super::responses::Events;
use super::{Made, anthropic, chat, event, gemini, ollama, responses, stop_word};
use crate::convert::ids;
use crate::reply::{Delta, Reply, Stop};
use crate::said::{self, Block, Said};
use crate::{Json, Message, Reported, Wire, quote};

/// Tells a reply of any wire in the words of one, as it comes.
#[derive(Clone, Debug)]
pub struct Relay {
    to: Wire,
    model: String,
    id: String,
    /// On chat, usage comes by itself, as it does for those who ask for it.
    usage_apart: bool,
    /// Something went out.
    begun: bool,
    /// What was said so far, up to the first call.
    told: String,
    /// A call has begun: what follows waits.
    holds: bool,
    /// Some text went out.
    spoke: bool,
    reasoned: bool,
    /// Where texts grow by themselves, what the open one says.
    open: Option<String>,
    /// How many blocks or items there were.
    at: usize,
    calls: usize,
    /// On Responses: the items that are done, and what numbers events.
    items: Vec<String>,
    events: Events,
    lost: BTreeSet<&'static str>,
}

impl Relay {
    /// Tells on this wire; `model` is what the client takes the model to be, and `id`, letters and
    /// digits, tells this reply from all others.
    pub fn new(to: Wire, model: &str, id: &str) -> Relay {
        Relay {
            to,
            model: quote(model),
            id: id.to_owned(),
            usage_apart: false,
            begun: false,
            told: String::new(),
            holds: false,
            spoke: false,
            reasoned: false,
            open: None,
            at: 0,
            calls: 0,
            items: Vec::new(),
            events: Events::default(),
            lost: BTreeSet::new(),
        }
    }

    /// Sends usage by itself at the end of a chat: clients get it so who ask for it.
    pub fn with_usage_apart(mut self, apart: bool) -> Relay {
        self.usage_apart = apart;
        self
    }

    /// Takes a piece of the reply, and returns the events that tell it; often none.
    pub fn delta(&mut self, delta: &Delta) -> Vec<u8> {
        let mut out = String::new();
        match delta {
            Delta::Call(_) => self.holds = true,
            Delta::Text(text) if !self.holds && !text.is_empty() => {
                self.begin(&mut out);
                self.told.push_str(text);
                self.text(&quote(text), &mut out);
            }
            Delta::Reasoning(text) if !self.holds && !text.is_empty() => {
                self.begin(&mut out);
                self.reasoned = true;
                self.thought(&quote(text), &mut out);
            }
            _ => {}
        }
        out.into_bytes()
    }

    /// Takes the whole reply, in the form of its own wire, and returns what is left to tell of it.
    pub fn finish(&mut self, reply: &Reply) -> Vec<u8> {
        let mut out = String::new();
        self.begin(&mut out);
        let parsed: Vec<Message<'_>> = reply
            .messages
            .iter()
            .filter_map(|bytes| Message::parse(bytes).ok())
            .collect();
        let whole = std::mem::take(&mut self.told);
        let mut told = whole.as_str();
        // Whoever has said something goes on with it; what is said anew stands by itself.
        let mut goes_on = !told.is_empty();
        for block in parsed.iter().flat_map(|message| Said::of(message).blocks) {
            match block {
                block if block.is_empty() => {}
                Block::Text(text) => {
                    let left = left(&text, &mut told);
                    if left == "\"\"" {
                        continue;
                    }
                    if !goes_on {
                        self.part(&mut out);
                    }
                    self.text(&left, &mut out);
                    goes_on = false;
                }
                Block::Thinking(text, _) => {
                    if !self.reasoned && text != "\"\"" {
                        self.thought(&text, &mut out);
                    }
                }
                Block::Call(id, name, input) => {
                    told = "";
                    goes_on = false;
                    let id = self.call_id(&id);
                    self.call(&Block::Call(id.into(), name, input), &mut out);
                }
                Block::Image(..) | Block::Link(_) if self.to == Wire::Gemini => {
                    let mut part = String::new();
                    said::gemini::put_part(&block, &mut part);
                    self.gemini(&part, &mut out);
                }
                Block::Image(..) | Block::Link(_) => {
                    self.lost.insert("an image of the model's");
                }
                Block::Result { .. } | Block::Other(_) => {
                    self.lost.insert("what only its provider has in a reply");
                }
            }
        }
        self.end(reply, &mut out);
        out.into_bytes()
    }

    /// Says whether anything went out yet.
    pub fn is_begun(&self) -> bool {
        self.begun
    }

    /// What of the reply could not be told.
    pub fn lost(&self) -> &BTreeSet<&'static str> {
        &self.lost
    }

    fn made<'a>(&self, stop: &'a Stop, usage: Option<Reported>) -> Made<'a> {
        Made {
            messages: Vec::new(),
            stop,
            usage,
            model: self.model.clone(),
            id: self.id.clone(),
        }
    }

    fn begin(&mut self, out: &mut String) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let made = self.made(&Stop::End, None);
        match self.to {
            Wire::Chat => {
                let first = r#"{"role":"assistant","content":""}"#;
                out.push_str(&chat::chunk(&made, first, "null"));
            }
            Wire::Anthropic => {
                let stop = r#""stop_reason":null,"stop_sequence":null"#;
                let open = anthropic::message(&made, "[]", stop, Reported::default());
                let open = format!(r#""message":{open}"#);
                out.push_str(&anthropic::event("message_start", &open));
                out.push_str(&anthropic::event("ping", ""));
            }
            Wire::Responses => {
                let open = responses::response(&made, "in_progress", "null", "[]", None);
                let open = format!(r#","response":{open}"#);
                self.events.push("response.created", &open);
                self.events.push("response.in_progress", &open);
                self.flush(out);
            }
            Wire::Gemini | Wire::Ollama => {}
        }
    }

    /// Tells some text, a JSON string.
    fn text(&mut self, text: &str, out: &mut String) {
        self.spoke = true;
        let made = self.made(&Stop::End, None);
        match self.to {
            Wire::Chat => {
                out.push_str(&chat::chunk(
                    &made,
                    &format!(r#"{{"content":{text}}}"#),
                    "null",
                ));
            }
            Wire::Gemini => self.gemini(&format!(r#"{{"text":{text}}}"#), out),
            Wire::Ollama => {
                let said = format!(r#"{{"role":"assistant","content":{text}}}"#);
                self.line(&said, out);
            }
            Wire::Anthropic => {
                if self.open.is_none() {
                    self.open = Some(String::new());
                    let empty = r#"{"type":"text","text":""}"#;
                    let start = format!(r#""index":{},"content_block":{empty}"#, self.at);
                    out.push_str(&anthropic::event("content_block_start", &start));
                }
                let delta = format!(r#"{{"type":"text_delta","text":{text}}}"#);
                let delta = format!(r#""index":{},"delta":{delta}"#, self.at);
                out.push_str(&anthropic::event("content_block_delta", &delta));
            }
            Wire::Responses => {
                let within = self.within();
                if self.open.is_none() {
                    let item = self.item("in_progress", "[]");
                    let place = format!(r#","output_index":{},"item":{item}"#, self.at);
                    self.events.push("response.output_item.added", &place);
                    let part = format!(r#"{within},"part":{}"#, output_text("\"\""));
                    self.events.push("response.content_part.added", &part);
                }
                let said = self.open.get_or_insert_default();
                said.push_str(&text[1..text.len() - 1]);
                let delta = format!(r#"{within},"delta":{text},"logprobs":[]"#);
                self.events.push("response.output_text.delta", &delta);
                self.flush(out);
            }
        }
    }

    /// Keeps the text that follows apart from what was said.
    fn part(&mut self, out: &mut String) {
        match self.to {
            Wire::Anthropic | Wire::Responses => self.close("completed", out),
            // There is one text for all.
            Wire::Chat | Wire::Ollama if self.spoke => self.text("\"\\n\"", out),
            _ => {}
        }
    }

    /// Tells some reasoning, or that there is some.
    fn thought(&mut self, text: &str, out: &mut String) {
        let made = self.made(&Stop::End, None);
        match self.to {
            Wire::Chat => {
                let delta = format!(r#"{{"reasoning_content":{text}}}"#);
                out.push_str(&chat::chunk(&made, &delta, "null"));
            }
            Wire::Gemini => self.gemini(&format!(r#"{{"text":{text},"thought":true}}"#), out),
            Wire::Ollama => {
                let said = format!(r#"{{"role":"assistant","content":"","thinking":{text}}}"#);
                self.line(&said, out);
            }
            Wire::Anthropic => out.push_str(&anthropic::event("ping", "")),
            Wire::Responses => out.push_str(": reasoning\n\n"),
        }
        if matches!(self.to, Wire::Anthropic | Wire::Responses) {
            self.lost.insert("reasoning");
        }
    }

    fn call(&mut self, call: &Block<'_>, out: &mut String) {
        let Block::Call(id, name, input) = call else {
            return;
        };
        self.close("completed", out);
        let index = self.calls;
        self.calls += 1;
        let mut whole = String::new();
        match self.to {
            Wire::Chat => {
                said::chat::put_call(id, name, input, &mut whole);
                let made = self.made(&Stop::End, None);
                let call = Json::checked(whole.as_bytes());
                for piece in chat::call_deltas(index, call, usize::MAX) {
                    let delta = format!(r#"{{"tool_calls":[{piece}]}}"#);
                    out.push_str(&chat::chunk(&made, &delta, "null"));
                }
            }
            Wire::Anthropic => {
                Block::Call(id.as_ref().into(), name.as_ref().into(), "{}".into())
                    .anthropic(&mut whole);
                let start = format!(r#""index":{},"content_block":{whole}"#, self.at);
                out.push_str(&anthropic::event("content_block_start", &start));
                let input = quote(input);
                let delta = format!(r#"{{"type":"input_json_delta","partial_json":{input}}}"#);
                let delta = format!(r#""index":{},"delta":{delta}"#, self.at);
                out.push_str(&anthropic::event("content_block_delta", &delta));
                let stop = format!(r#""index":{}"#, self.at);
                out.push_str(&anthropic::event("content_block_stop", &stop));
                self.at += 1;
            }
            Wire::Gemini => {
                said::gemini::put_part(call, &mut whole);
                if index == 0 {
                    whole.pop();
                    said::put(
                        &mut whole,
                        &[",\"thoughtSignature\":", said::gemini::UNSIGNED, "}"],
                    );
                }
                self.gemini(&whole, out);
            }
            Wire::Ollama => {
                let start = [r#"{"id":"#, id, r#","function":{"name":"#, name];
                said::put(&mut whole, &start);
                said::put(&mut whole, &[r#","arguments":"#, input, "}}"]);
                let said = format!(r#"{{"role":"assistant","content":"","tool_calls":[{whole}]}}"#);
                self.line(&said, out);
            }
            Wire::Responses => {
                whole = said::responses::call(id, name, input);
                let own = format!(
                    r#"{{"id":"fc_{}_{}","status":"completed","#,
                    self.id, self.at
                );
                let item = format!("{own}{}", &whole[1..]);
                let json = Json::checked(item.as_bytes());
                self.events.item(self.at, json, usize::MAX);
                self.flush(out);
                self.items.push(item);
                self.at += 1;
            }
        }
    }

    /// Ends the text that is open, if one is.
    fn close(&mut self, status: &str, out: &mut String) {
        let within = self.within();
        let Some(said) = self.open.take() else {
            return;
        };
        match self.to {
            Wire::Anthropic => {
                let stop = format!(r#""index":{}"#, self.at);
                out.push_str(&anthropic::event("content_block_stop", &stop));
            }
            Wire::Responses => {
                let text = format!("\"{said}\"");
                let part = output_text(&text);
                let done = format!(r#"{within},"text":{text},"logprobs":[]"#);
                self.events.push("response.output_text.done", &done);
                let done = format!(r#"{within},"part":{part}"#);
                self.events.push("response.content_part.done", &done);
                let item = self.item(status, &format!("[{part}]"));
                let done = format!(r#","output_index":{},"item":{item}"#, self.at);
                self.events.push("response.output_item.done", &done);
                self.flush(out);
                self.items.push(item);
            }
            _ => {}
        }
        self.at += 1;
    }

    fn end(&mut self, reply: &Reply, out: &mut String) {
        // What a reply with calls waits for is their results, whatever it says of itself. A
        // provider's own word says nothing to a client of another.
        let stop = match &reply.stop {
            Stop::End | Stop::Other(_) if self.calls > 0 => &Stop::Calls,
            Stop::Other(_) => &Stop::End,
            stop => stop,
        };
        let made = self.made(stop, reply.usage);
        let (status, why) = responses::status(stop);
        self.close(status, out);
        match self.to {
            Wire::Chat => {
                let word = stop_word(stop, chat::STOPS);
                let usage = made.usage.map(chat::counts);
                match usage {
                    Some(usage) if self.usage_apart => {
                        out.push_str(&chat::chunk(&made, "{}", &word));
                        let last =
                            format!(r#"{{{},"choices":[],"usage":{usage}}}"#, chat::head(&made));
                        out.push_str(&event(&last));
                    }
                    // Beside a choice it surprises nobody who did not ask for it.
                    Some(usage) => {
                        let choice = format!(
                            r#"{{"index":0,"delta":{{}},"logprobs":null,"finish_reason":{word}}}"#
                        );
                        let head = chat::head(&made);
                        let last = format!(r#"{{{head},"choices":[{choice}],"usage":{usage}}}"#);
                        out.push_str(&event(&last));
                    }
                    None => out.push_str(&chat::chunk(&made, "{}", &word)),
                }
                out.push_str(&event("[DONE]"));
            }
            Wire::Anthropic => {
                let usage = anthropic::counts(reply.usage.unwrap_or_default());
                let stop = anthropic::stop(stop);
                let end = format!(r#""delta":{{{stop}}},"usage":{usage}"#);
                out.push_str(&anthropic::event("message_delta", &end));
                out.push_str(&anthropic::event("message_stop", ""));
            }
            Wire::Gemini => {
                let word = stop_word(stop, gemini::STOPS);
                let last = gemini::response(&made, r#"[{"text":""}]"#, Some(&word), reply.usage);
                out.push_str(&event(&last));
            }
            Wire::Ollama => {
                let last = ollama::line(&made, ollama::EMPTY, &ollama::done(&made));
                said::put(out, &[&last, "\n"]);
            }
            Wire::Responses => {
                let output = format!("[{}]", self.items.join(","));
                let whole = responses::response(&made, status, &why, &output, reply.usage);
                let ending = match status {
                    "completed" => "response.completed",
                    _ => "response.incomplete",
                };
                self.events.push(ending, &format!(r#","response":{whole}"#));
                self.flush(out);
            }
        }
    }

    /// A chunk of Gemini's with this part.
    fn gemini(&mut self, part: &str, out: &mut String) {
        let made = self.made(&Stop::End, None);
        out.push_str(&event(&gemini::response(
            &made,
            &format!("[{part}]"),
            None,
            None,
        )));
    }

    /// A line of Ollama's.
    fn line(&mut self, said: &str, out: &mut String) {
        let made = self.made(&Stop::End, None);
        out.push_str(&ollama::line(&made, said, r#""done":false"#));
        out.push('\n');
    }

    /// The message that is open, on Responses.
    fn item(&self, status: &str, content: &str) -> String {
        let (id, at) = (&self.id, self.at);
        format!(
            r#"{{"id":"msg_{id}_{at}","type":"message","status":"{status}","role":"assistant","content":{content}}}"#
        )
    }

    fn within(&self) -> String {
        let (id, at) = (&self.id, self.at);
        format!(r#","item_id":"msg_{id}_{at}","output_index":{at},"content_index":0"#)
    }

    fn flush(&mut self, out: &mut String) {
        self.events
            .take()
            .iter()
            .for_each(|event| out.push_str(event));
    }

    /// An id that no other call of any reply has, unless it was given one.
    fn call_id(&self, given: &str) -> String {
        let text = Json::checked(given.as_bytes()).text().unwrap_or_default();
        match &*text {
            "" => format!("\"call_{}_{}\"", self.id, self.calls),
            text if ids::fits(self.to, text) => given.to_owned(),
            text => ids::changed(text, given.as_bytes()),
        }
    }
}

/// A text of a message, on Responses.
fn output_text(text: &str) -> String {
    format!(r#"{{"type":"output_text","text":{text},"annotations":[],"logprobs":[]}}"#)
}

/// What of a text was not told, a JSON string; what was is taken from `told`.
fn left(text: &str, told: &mut &str) -> String {
    if told.is_empty() {
        return text.to_owned();
    }
    let whole = Json::checked(text.as_bytes()).text().unwrap_or_default();
    if let Some(rest) = told.strip_prefix(&*whole) {
        *told = rest;
        return "\"\"".to_owned();
    }
    match whole.strip_prefix(*told) {
        Some(rest) => {
            *told = "";
            quote(rest)
        }
        // It was told in another order, as far as that can be seen.
        None => "\"\"".to_owned(),
    }
}
