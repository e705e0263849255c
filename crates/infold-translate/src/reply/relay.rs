//! Translates a reply of one wire into another while it is streamed.
//!
//! Text is sent as it arrives. Calls, and text behind the first one, follow when the reply is complete: only then are
//! their ids and positions known. Adjacent texts become one. Reasoning is sent if it needs no signature (chat, Gemini,
//! Ollama); on the other wires the provider would refuse it when it is sent back, so only a ping is sent.
//!
//! ```
//! use infold_translate::ReplyRelay;
//! use infold_wire::{Delivery, ReplyDelta, ReplyReader, Reply, Wire};
//!
//! let mut relay = ReplyRelay::new(Wire::Anthropic, "m", "1");
//! let mut sent = relay.delta(&ReplyDelta::Text("good ".to_owned()));
//! sent.extend(relay.delta(&ReplyDelta::Text("morning".to_owned())));
//! let message = br#"{"role":"assistant","content":"good morning"}"#.to_vec();
//! sent.extend(relay.finish(&Reply { messages: vec![message], ..Reply::default() }));
//!
//! let mut reader = ReplyReader::new(Wire::Anthropic, Delivery::Stream);
//! reader.push(&sent, &mut |_| {})?;
//! let translated = r#"{"role":"assistant","content":[{"type":"text","text":"good morning"}]}"#;
//! assert_eq!(reader.finish()?.messages, [translated.as_bytes()]);
//! # Ok::<(), infold_wire::ReplyError>(())
//! ```

use std::collections::BTreeSet;

use infold_wire::call_ids;
use infold_wire::neutral::{self, NeutralBlock, NeutralMessage};
use infold_wire::{Json, Message, Reply, ReplyDelta, StopReason, TokenUsage, Wire, quote};

use super::responses::ResponseEvents;
use super::{ReplyData, anthropic, chat, event, gemini, ollama, responses, stop_name};

/// Translates a reply of any wire into one wire, as it comes.
#[derive(Clone, Debug)]
pub struct ReplyRelay {
    to: Wire,
    model: String,
    id: String,
    /// Whether usage is sent in a separate chunk on chat.
    usage_apart: bool,
    /// Whether any event was sent.
    has_begun: bool,
    /// The text that was sent, up to the first call.
    sent_text: String,
    /// Whether a call has begun, so that text is held back.
    has_call: bool,
    /// Whether text was sent.
    has_text: bool,
    has_reasoning: bool,
    /// The text of the block or item that is open.
    open_text: Option<String>,
    /// The index of the current block or item.
    index: usize,
    calls: usize,
    /// The items that are done, on Responses.
    items: Vec<String>,
    events: ResponseEvents,
    lost: BTreeSet<&'static str>,
}

impl ReplyRelay {
    /// Starts a translation; `model` is the client's name of the model, and `id`, letters and
    /// digits, is unique to this reply.
    pub fn new(to: Wire, model: &str, id: &str) -> ReplyRelay {
        ReplyRelay {
            to,
            model: quote(model),
            id: id.to_owned(),
            usage_apart: false,
            has_begun: false,
            sent_text: String::new(),
            has_call: false,
            has_text: false,
            has_reasoning: false,
            open_text: None,
            index: 0,
            calls: 0,
            items: Vec::new(),
            events: ResponseEvents::default(),
            lost: BTreeSet::new(),
        }
    }

    /// Sends usage in a separate chunk at the end of a chat, as for clients that ask for it.
    pub fn with_usage_apart(mut self, apart: bool) -> ReplyRelay {
        self.usage_apart = apart;
        self
    }

    /// Translates a delta of the reply into events, often none.
    pub fn delta(&mut self, delta: &ReplyDelta) -> Vec<u8> {
        let mut out = String::new();
        match delta {
            ReplyDelta::Call(_) => self.has_call = true,
            ReplyDelta::Text(text) if !self.has_call && !text.is_empty() => {
                self.begin(&mut out);
                self.sent_text.push_str(text);
                self.send_text(&quote(text), &mut out);
            }
            ReplyDelta::Reasoning(text) if !self.has_call && !text.is_empty() => {
                self.begin(&mut out);
                self.has_reasoning = true;
                self.send_reasoning(&quote(text), &mut out);
            }
            _ => {}
        }
        out.into_bytes()
    }

    /// Translates the rest of the reply, given as a whole on its own wire.
    pub fn finish(&mut self, reply: &Reply) -> Vec<u8> {
        let mut out = String::new();
        self.begin(&mut out);
        let parsed: Vec<Message<'_>> = reply
            .messages
            .iter()
            .filter_map(|bytes| Message::parse(bytes).ok())
            .collect();
        let sent_text = std::mem::take(&mut self.sent_text);
        let mut sent = sent_text.as_str();
        // The rest of a text that was sent continues it; a new text is separate.
        let mut continues = !sent.is_empty();
        for block in parsed
            .iter()
            .flat_map(|message| NeutralMessage::of(message).blocks)
        {
            match block {
                block if block.is_empty() => {}
                NeutralBlock::Text(text) => {
                    let left = unsent_text(&text, &mut sent);
                    if left == "\"\"" {
                        continue;
                    }
                    if !continues {
                        self.separate_text(&mut out);
                    }
                    self.send_text(&left, &mut out);
                    continues = false;
                }
                NeutralBlock::Thinking(text, _) => {
                    if !self.has_reasoning && text != "\"\"" {
                        self.send_reasoning(&text, &mut out);
                    }
                }
                NeutralBlock::Call(id, name, input) => {
                    sent = "";
                    continues = false;
                    let id = self.call_id(&id);
                    self.send_call(&NeutralBlock::Call(id.into(), name, input), &mut out);
                }
                NeutralBlock::Image(..) | NeutralBlock::Link(_) if self.to == Wire::Gemini => {
                    let mut part = String::new();
                    neutral::gemini::put_part(&block, &mut part);
                    self.send_gemini_part(&part, &mut out);
                }
                NeutralBlock::Image(..) | NeutralBlock::Link(_) => {
                    self.lost.insert("an image of the model");
                }
                NeutralBlock::Result { .. } | NeutralBlock::Other(_) => {
                    self.lost.insert("blocks that only its provider has");
                }
            }
        }
        self.send_end(reply, &mut out);
        out.into_bytes()
    }

    /// Returns the number of the next event, on the wire that has them numbered; none if nothing was sent yet.
    pub fn next_sequence(&self) -> Option<u64> {
        self.has_begun.then(|| self.events.next_number())
    }

    /// Returns the contents that could not be translated.
    pub fn lost(&self) -> &BTreeSet<&'static str> {
        &self.lost
    }

    fn reply_data<'a>(&self, stop: &'a StopReason, usage: Option<TokenUsage>) -> ReplyData<'a> {
        ReplyData {
            messages: Vec::new(),
            stop,
            usage,
            model: self.model.clone(),
            id: self.id.clone(),
        }
    }

    fn begin(&mut self, out: &mut String) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let data = self.reply_data(&StopReason::End, None);
        match self.to {
            Wire::Chat => {
                let first = r#"{"role":"assistant","content":""}"#;
                out.push_str(&chat::chunk(&data, first, "null"));
            }
            Wire::Anthropic => {
                let stop = r#""stop_reason":null,"stop_sequence":null"#;
                let open = anthropic::message(&data, "[]", stop, TokenUsage::default());
                let open = format!(r#""message":{open}"#);
                out.push_str(&anthropic::event("message_start", &open));
                out.push_str(&anthropic::event("ping", ""));
            }
            Wire::Responses => {
                let open = responses::response(&data, "in_progress", "null", "[]", None);
                let open = format!(r#","response":{open}"#);
                self.events.push("response.created", &open);
                self.events.push("response.in_progress", &open);
                self.flush(out);
            }
            Wire::Gemini | Wire::Ollama => {}
        }
    }

    /// Sends some text, a JSON string.
    fn send_text(&mut self, text: &str, out: &mut String) {
        self.has_text = true;
        let data = self.reply_data(&StopReason::End, None);
        match self.to {
            Wire::Chat => {
                let delta = format!(r#"{{"content":{text}}}"#);
                out.push_str(&chat::chunk(&data, &delta, "null"));
            }
            Wire::Gemini => self.send_gemini_part(&format!(r#"{{"text":{text}}}"#), out),
            Wire::Ollama => {
                self.send_ollama_message(&format!(r#""content":{text}"#), out);
            }
            Wire::Anthropic => {
                if self.open_text.is_none() {
                    self.open_text = Some(String::new());
                    self.send_block_start(r#"{"type":"text","text":""}"#, out);
                }
                let delta = format!(r#"{{"type":"text_delta","text":{text}}}"#);
                self.send_block_delta(&delta, out);
            }
            Wire::Responses => {
                let within = self.item_position();
                if self.open_text.is_none() {
                    let item = self.open_item("in_progress", "[]");
                    let place = format!(r#","output_index":{},"item":{item}"#, self.index);
                    self.events.push("response.output_item.added", &place);
                    let part = format!(r#"{within},"part":{}"#, output_text("\"\""));
                    self.events.push("response.content_part.added", &part);
                }
                let said = self.open_text.get_or_insert_default();
                said.push_str(&text[1..text.len() - 1]);
                let delta = format!(r#"{within},"delta":{text},"logprobs":[]"#);
                self.events.push("response.output_text.delta", &delta);
                self.flush(out);
            }
        }
    }

    /// Separates the next text from the one before.
    fn separate_text(&mut self, out: &mut String) {
        match self.to {
            Wire::Anthropic | Wire::Responses => self.close_text("completed", out),
            // These wires have one text only.
            Wire::Chat | Wire::Ollama if self.has_text => self.send_text("\"\\n\"", out),
            _ => {}
        }
    }

    /// Sends some reasoning, or a ping.
    fn send_reasoning(&mut self, text: &str, out: &mut String) {
        let data = self.reply_data(&StopReason::End, None);
        match self.to {
            Wire::Chat => {
                let delta = format!(r#"{{"reasoning_content":{text}}}"#);
                out.push_str(&chat::chunk(&data, &delta, "null"));
            }
            Wire::Gemini => {
                self.send_gemini_part(&format!(r#"{{"text":{text},"thought":true}}"#), out)
            }
            Wire::Ollama => {
                let members = format!(r#""content":"","thinking":{text}"#);
                self.send_ollama_message(&members, out);
            }
            Wire::Anthropic => out.push_str(&anthropic::event("ping", "")),
            Wire::Responses => out.push_str(": reasoning\n\n"),
        }
        if matches!(self.to, Wire::Anthropic | Wire::Responses) {
            self.lost.insert("reasoning");
        }
    }

    fn send_call(&mut self, call: &NeutralBlock<'_>, out: &mut String) {
        let NeutralBlock::Call(id, name, input) = call else {
            return;
        };
        self.close_text("completed", out);
        let index = self.calls;
        self.calls += 1;
        let mut whole = String::new();
        match self.to {
            Wire::Chat => {
                neutral::chat::put_call(id, name, input, &mut whole);
                let data = self.reply_data(&StopReason::End, None);
                let call = Json::checked(whole.as_bytes());
                for piece in chat::call_deltas(index, call, usize::MAX) {
                    let delta = format!(r#"{{"tool_calls":[{piece}]}}"#);
                    out.push_str(&chat::chunk(&data, &delta, "null"));
                }
            }
            Wire::Anthropic => {
                NeutralBlock::Call(id.as_ref().into(), name.as_ref().into(), "{}".into())
                    .write_anthropic(&mut whole);
                self.send_block_start(&whole, out);
                let input = quote(input);
                let delta = format!(r#"{{"type":"input_json_delta","partial_json":{input}}}"#);
                self.send_block_delta(&delta, out);
                self.send_block_stop(out);
                self.index += 1;
            }
            Wire::Gemini => {
                neutral::gemini::put_part(call, &mut whole);
                if index == 0 {
                    whole.pop();
                    whole += &format!(
                        r#","thoughtSignature":{}}}"#,
                        neutral::gemini::PLACEHOLDER_SIGNATURE
                    );
                }
                self.send_gemini_part(&whole, out);
            }
            Wire::Ollama => {
                let call = format!(r#""id":{id},"function":{{"name":{name},"arguments":{input}}}"#);
                let members = format!(r#""content":"","tool_calls":[{{{call}}}]"#);
                self.send_ollama_message(&members, out);
            }
            Wire::Responses => {
                whole = neutral::responses::write_call(id, name, input);
                let own = format!(
                    r#"{{"id":"fc_{}_{}","status":"completed","#,
                    self.id, self.index
                );
                let item = format!("{own}{}", &whole[1..]);
                let json = Json::checked(item.as_bytes());
                self.events.push_item(self.index, json, usize::MAX);
                self.flush(out);
                self.items.push(item);
                self.index += 1;
            }
        }
    }

    /// Ends the text that is open, if there is one.
    fn close_text(&mut self, status: &str, out: &mut String) {
        let within = self.item_position();
        let Some(said) = self.open_text.take() else {
            return;
        };
        match self.to {
            Wire::Anthropic => {
                self.send_block_stop(out);
            }
            Wire::Responses => {
                let text = format!("\"{said}\"");
                let part = output_text(&text);
                let done = format!(r#"{within},"text":{text},"logprobs":[]"#);
                self.events.push("response.output_text.done", &done);
                let done = format!(r#"{within},"part":{part}"#);
                self.events.push("response.content_part.done", &done);
                let item = self.open_item(status, &format!("[{part}]"));
                let done = format!(r#","output_index":{},"item":{item}"#, self.index);
                self.events.push("response.output_item.done", &done);
                self.flush(out);
                self.items.push(item);
            }
            _ => {}
        }
        self.index += 1;
    }

    fn send_end(&mut self, reply: &Reply, out: &mut String) {
        // A reply with calls waits for their results, whatever its own stop reason. A provider's own word for it means
        // nothing to a client of another.
        let stop = match &reply.stop {
            StopReason::End | StopReason::Other(_) if self.calls > 0 => &StopReason::Calls,
            StopReason::Other(_) => &StopReason::End,
            stop => stop,
        };
        let data = self.reply_data(stop, reply.usage);
        let (status, why) = responses::status(stop);
        self.close_text(status, out);
        match self.to {
            Wire::Chat => {
                let word = stop_name(stop, chat::STOPS);
                let head = chat::head(&data);
                let usage = data.usage.map(chat::usage_json);
                if usage.is_none() || self.usage_apart {
                    out.push_str(&chat::chunk(&data, "{}", &word));
                }
                if let Some(usage) = usage {
                    // Clients that did not ask for usage accept it beside a choice.
                    let choice = if self.usage_apart {
                        String::new()
                    } else {
                        chat::choice("{}", &word)
                    };
                    let last = format!(r#"{{{head},"choices":[{choice}],"usage":{usage}}}"#);
                    out.push_str(&event(&last));
                }
                out.push_str(&event("[DONE]"));
            }
            Wire::Anthropic => {
                let usage = anthropic::usage_json(reply.usage.unwrap_or_default());
                let stop = anthropic::stop(stop);
                let end = format!(r#""delta":{{{stop}}},"usage":{usage}"#);
                out.push_str(&anthropic::event("message_delta", &end));
                out.push_str(&anthropic::event("message_stop", ""));
            }
            Wire::Gemini => {
                let word = stop_name(stop, gemini::STOPS);
                let last = gemini::response(&data, r#"[{"text":""}]"#, Some(&word), reply.usage);
                out.push_str(&event(&last));
            }
            Wire::Ollama => {
                let last = ollama::line(&data, ollama::EMPTY_MESSAGE, &ollama::done_members(&data));
                neutral::push_all(out, &[&last, "\n"]);
            }
            Wire::Responses => {
                let output = format!("[{}]", self.items.join(","));
                let whole = responses::response(&data, status, &why, &output, reply.usage);
                let ending = match status {
                    "completed" => "response.completed",
                    _ => "response.incomplete",
                };
                self.events.push(ending, &format!(r#","response":{whole}"#));
                self.flush(out);
            }
        }
    }

    fn send_block_start(&self, block: &str, out: &mut String) {
        let start = format!(r#""index":{},"content_block":{block}"#, self.index);
        out.push_str(&anthropic::event("content_block_start", &start));
    }

    fn send_block_delta(&self, delta: &str, out: &mut String) {
        let delta = format!(r#""index":{},"delta":{delta}"#, self.index);
        out.push_str(&anthropic::event("content_block_delta", &delta));
    }

    fn send_block_stop(&self, out: &mut String) {
        let stop = format!(r#""index":{}"#, self.index);
        out.push_str(&anthropic::event("content_block_stop", &stop));
    }

    /// Sends a chunk of Gemini's with this part.
    fn send_gemini_part(&mut self, part: &str, out: &mut String) {
        let data = self.reply_data(&StopReason::End, None);
        let parts = format!("[{part}]");
        out.push_str(&event(&gemini::response(&data, &parts, None, None)));
    }

    /// Sends a line of Ollama's with these members of its message.
    fn send_ollama_message(&mut self, members: &str, out: &mut String) {
        let data = self.reply_data(&StopReason::End, None);
        let message = format!(r#"{{"role":"assistant",{members}}}"#);
        neutral::push_all(
            out,
            &[&ollama::line(&data, &message, r#""done":false"#), "\n"],
        );
    }

    /// Returns the message that is open, on Responses.
    fn open_item(&self, status: &str, content: &str) -> String {
        let (id, at) = (&self.id, self.index);
        format!(
            r#"{{"id":"msg_{id}_{at}","type":"message","status":"{status}","role":"assistant","content":{content}}}"#
        )
    }

    fn item_position(&self) -> String {
        let (id, at) = (&self.id, self.index);
        format!(r#","item_id":"msg_{id}_{at}","output_index":{at},"content_index":0"#)
    }

    fn flush(&mut self, out: &mut String) {
        self.events
            .take()
            .iter()
            .for_each(|event| out.push_str(event));
    }

    /// Returns the id of a call, or a unique one if it has none.
    fn call_id(&self, given: &str) -> String {
        let text = Json::checked(given.as_bytes()).text().unwrap_or_default();
        match &*text {
            "" => format!("\"call_{}_{}\"", self.id, self.calls),
            text if call_ids::is_accepted(self.to, text) => given.to_owned(),
            text => call_ids::hashed_id(text, given.as_bytes()),
        }
    }
}

/// Returns a text of a message, on Responses.
fn output_text(text: &str) -> String {
    format!(r#"{{"type":"output_text","text":{text},"annotations":[],"logprobs":[]}}"#)
}

/// Returns the part of a text that was not sent, a JSON string, and removes the rest from `sent`.
fn unsent_text(text: &str, sent: &mut &str) -> String {
    if sent.is_empty() {
        return text.to_owned();
    }
    let whole = Json::checked(text.as_bytes()).text().unwrap_or_default();
    if let Some(rest) = sent.strip_prefix(&*whole) {
        *sent = rest;
        return "\"\"".to_owned();
    }
    match whole.strip_prefix(*sent) {
        Some(rest) => {
            *sent = "";
            quote(rest)
        }
        // The part was sent in another order.
        None => "\"\"".to_owned(),
    }
}
