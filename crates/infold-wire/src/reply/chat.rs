//! Chat completions: deltas of one message, and tool calls by their index.

use std::collections::HashMap;

use super::reader::Missing;
use super::text::{Hear, Text, array, changed, count, object, raw, word};
use super::{Delta, Reply, Reported, Stop};
use crate::{Json, Kind, quote};

/// Puts the chunks of a chat completion together.
#[derive(Debug, Default)]
pub struct Chat {
    content: Text,
    /// Content that is a list of parts.
    parts: Pieces,
    refusal: Text,
    reasoning_content: Text,
    reasoning: Text,
    reasoning_details: Pieces,
    annotations: Vec<String>,
    images: Vec<String>,
    audio: Audio,
    calls: Calls,
    /// The one call of the form before tools.
    function: Option<Call>,
    /// Something was said by choice 0.
    begun: bool,
    /// A message came as one.
    whole: bool,
    finish: Option<String>,
    /// `[DONE]` came.
    done: bool,
    usage: Option<Reported>,
    model: Option<String>,
}

impl Chat {
    /// Takes a chunk, or a whole completion.
    pub fn take(&mut self, json: Json<'_>, hear: &mut Hear<'_>) {
        if self.done {
            return;
        }
        let [model, choices, usage, groq] = json.pick(["model", "choices", "usage", "x_groq"]);
        self.model = word(model).or_else(|| self.model.take());
        let choice = choices.into_iter().flat_map(Json::elements).find(|choice| {
            let index = choice.get("index").and_then(Json::number);
            index.is_none_or(|index| index == 0.0)
        });
        let mut elsewhere = groq.and_then(|groq| groq.get("usage"));
        if let Some(choice) = choice {
            let keys = ["delta", "message", "finish_reason", "usage"];
            let [delta, message, finish, usage] = choice.pick(keys);
            self.begun = true;
            self.whole |= message.is_some_and(|message| message.kind() == Kind::Object);
            for (key, value) in delta.or(message).into_iter().flat_map(Json::members) {
                self.member(&key.name(), value, hear);
            }
            self.finish = word(finish).or_else(|| self.finish.take());
            elsewhere = usage.or(elsewhere);
        }
        let usage = usage.filter(|usage| usage.kind() == Kind::Object);
        let elsewhere = elsewhere.filter(|usage| usage.kind() == Kind::Object);
        self.usage = usage.or(elsewhere).map(reported).or(self.usage);
    }

    /// Takes the mark behind the last chunk.
    pub fn done(&mut self) {
        self.done = true;
    }

    /// Nothing of it is to come.
    pub fn is_complete(&self) -> bool {
        self.begun && self.done
    }

    fn member(&mut self, name: &[u8], value: Json<'_>, hear: &mut Hear<'_>) {
        match name {
            b"content" if value.kind() == Kind::Array => {
                for part in value.elements() {
                    self.parts.push(part, hear, Delta::Text);
                }
            }
            b"content" => self.content.hear(value, hear, Delta::Text),
            b"refusal" => self.refusal.hear(value, hear, Delta::Text),
            b"reasoning_content" => self.reasoning_content.hear(value, hear, Delta::Reasoning),
            // Some servers say the same under both names.
            b"reasoning" if self.reasoning_content.is_given() => self.reasoning.push(value),
            b"reasoning" => self.reasoning.hear(value, hear, Delta::Reasoning),
            b"reasoning_details" => {
                let silent = &mut |_| {};
                for piece in value.elements() {
                    self.reasoning_details.push(piece, silent, Delta::Reasoning);
                }
            }
            b"annotations" => self.annotations.extend(value.elements().map(raw)),
            b"images" => self.images.extend(value.elements().map(raw)),
            b"audio" => self.audio.take(value, hear),
            b"tool_calls" => value
                .elements()
                .for_each(|call| self.calls.take(call, hear)),
            b"function_call" if value.kind() == Kind::Object => {
                let call = self.function.get_or_insert_default();
                call.function(value, hear, true);
            }
            _ => {}
        }
    }

    /// Returns the reply, if it is complete.
    pub fn end(self, closed: bool) -> Result<Reply, Missing> {
        if !self.begun {
            return Err(Missing::Everything);
        }
        if self.finish.is_none() && !self.done && !self.whole && !closed {
            return Err(Missing::End);
        }
        Ok(Reply {
            messages: self.message().into_iter().collect(),
            stop: self.stop(),
            usage: self.usage,
            model: self.model,
            id: None,
        })
    }

    fn stop(&self) -> Stop {
        let calls = !self.calls.made.is_empty() || self.function.is_some();
        match self.finish.as_deref() {
            Some("length" | "model_length") => Stop::Length,
            Some("content_filter" | "sensitive") => Stop::Declined,
            Some("tool_calls" | "function_call") => Stop::Calls,
            // Some servers say `stop` whatever it is.
            None | Some("stop") if calls => Stop::Calls,
            None | Some("stop") if !self.refusal.is_empty() => Stop::Declined,
            None | Some("stop") => Stop::End,
            Some(other) => Stop::Other(other.to_owned()),
        }
    }

    /// The message as it would have come in one piece.
    fn message(&self) -> Option<Vec<u8>> {
        let parts = array(&self.parts.written());
        let calls = array(&self.calls.written());
        let said = [
            ("refusal", self.refusal.some()),
            ("reasoning_content", self.reasoning_content.some()),
            ("reasoning", self.reasoning.some()),
            (
                "reasoning_details",
                array(&self.reasoning_details.written()),
            ),
            ("annotations", array(&self.annotations)),
            ("images", array(&self.images)),
            ("audio", self.audio.written()),
            ("function_call", self.function.as_ref().map(Call::called)),
            ("tool_calls", calls),
        ];
        let has = |name: &str| {
            said.iter()
                .any(|(key, value)| *key == name && value.is_some())
        };
        let content = parts.or_else(|| self.content.some());
        let given = content.is_some() || self.content.is_given();
        if !given && said.iter().all(|(_, value)| value.is_none()) {
            return None;
        }
        // Sent back, it may be null only beside what stands for an answer; reasoning does not.
        let answers = ["refusal", "audio", "function_call", "tool_calls"];
        let nothing = match answers.into_iter().any(has) {
            true => "null",
            false => "\"\"",
        };
        let mut members = vec![
            ("role", Some("\"assistant\"".to_owned())),
            ("content", content.or_else(|| Some(nothing.to_owned()))),
        ];
        members.extend(said);
        Some(object(&members).into_bytes())
    }
}

/// What was sent includes what came from a cache.
fn reported(usage: Json<'_>) -> Reported {
    let keys = [
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
        "prompt_cache_hit_tokens",
        "cached_tokens",
    ];
    let [sent, output, total, sent_of, output_of, hit, cached] = usage.pick(keys);
    fn of<'a>(details: Option<Json<'a>>, name: &str) -> Option<Json<'a>> {
        details.and_then(|details| details.get(name))
    }
    let sent = count(sent);
    let read = of(sent_of, "cached_tokens").or(hit).or(cached);
    let cache_read = count(read).min(sent);
    let cache_write = count(of(sent_of, "cache_write_tokens")).min(sent - cache_read);
    let (output, reasoning) = (count(output), count(of(output_of, "reasoning_tokens")));
    // Some count reasoning beside the reply; then only the total has both.
    let apart = count(total) >= sent + output + reasoning;
    let output = output + if apart { reasoning } else { 0 };
    Reported {
        input: sent - cache_read - cache_write,
        cache_read,
        cache_write,
        output,
        reasoning: reasoning.min(output),
    }
}

/// Tool calls as they grow.
#[derive(Debug, Default)]
struct Calls {
    made: Vec<Call>,
    /// Which call an index means now.
    by_index: HashMap<u64, usize>,
    by_id: HashMap<Vec<u8>, usize>,
}

#[derive(Debug, Default)]
struct Call {
    index: u64,
    /// As JSON strings, like all that follows.
    id: Option<String>,
    kind: Option<String>,
    name: Text,
    arguments: Text,
    /// It is a custom tool's, which takes a text.
    custom: bool,
    /// What some gateways want back: signatures of reasoning.
    extra: Option<String>,
}

impl Calls {
    fn take(&mut self, json: Json<'_>, hear: &mut Hear<'_>) {
        let keys = ["index", "id", "type", "function", "custom", "extra_content"];
        let [index, id, kind, function, custom, extra] = json.pick(keys);
        let index = index.filter(|index| index.kind() == Kind::Number);
        let index = index.map(|index| count(Some(index)));
        let string = |json: Json<'_>| json.kind() == Kind::String && json.bytes() != b"\"\"";
        let id = id.filter(|id| string(*id));
        let inner = function.or(custom).unwrap_or(json);
        let named = inner.get("name").is_some_and(string);
        let at = self.find(index, id, named);
        let last = at + 1 == self.made.len();
        let call = &mut self.made[at];
        call.custom |= custom.is_some_and(|custom| !custom.is_null());
        call.id = call.id.take().or_else(|| id.map(raw));
        call.kind = call
            .kind
            .take()
            .or_else(|| kind.filter(|kind| string(*kind)).map(raw));
        call.extra = extra
            .filter(|extra| !extra.is_null())
            .map(raw)
            .or(call.extra.take());
        call.function(inner, hear, last);
    }

    /// Finds the call that a piece belongs to, or begins one.
    fn find(&mut self, index: Option<u64>, id: Option<Json<'_>>, named: bool) -> usize {
        let known = id.and_then(|id| self.by_id.get(id.bytes()).copied());
        let last = self.made.len().checked_sub(1);
        let at = match index {
            Some(index) => self.by_index.get(&index).copied().filter(|at| {
                // Some servers number all calls alike: another id with a name is another call.
                let other = id.is_some() && self.made[*at].id.is_some() && known != Some(*at);
                !(other && named)
            }),
            None if id.is_some() => known,
            None => last.filter(|_| !named),
        };
        let at = at.unwrap_or_else(|| {
            self.made.push(Call {
                index: index.unwrap_or(self.made.len() as u64),
                ..Call::default()
            });
            self.made.len() - 1
        });
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        if let Some(id) = id {
            self.by_id.entry(id.bytes().to_vec()).or_insert(at);
        }
        at
    }

    fn written(&self) -> Vec<String> {
        let mut calls: Vec<&Call> = self.made.iter().collect();
        calls.sort_by_key(|call| call.index);
        calls.into_iter().map(Call::written).collect()
    }
}

impl Call {
    /// Takes the name and the arguments; tells of them if the call is the one told of last.
    fn function(&mut self, json: Json<'_>, hear: &mut Hear<'_>, last: bool) {
        let [name, arguments, input] = json.pick(["name", "arguments", "input"]);
        // A name may be repeated, and may come in pieces.
        if let Some(name) = name
            && !self.name.is(name)
        {
            self.name.hear(name, hear, Delta::Call);
        }
        let Some(given) = arguments.or(input).filter(|given| !given.is_null()) else {
            return;
        };
        match given.kind() {
            Kind::String => self.arguments.push(given),
            // Some servers send an object where its text belongs.
            _ => self.arguments.push_raw(&quote(&raw(given))),
        }
        if last {
            self.arguments.tell(hear, Delta::Arguments);
        }
    }

    fn called(&self) -> String {
        let given = if self.custom { "input" } else { "arguments" };
        object(&[
            ("name", Some(self.name.raw())),
            (given, Some(self.arguments.raw())),
        ])
    }

    fn written(&self) -> String {
        let kind = if self.custom { "custom" } else { "function" };
        let named = || Some(format!("\"{kind}\""));
        object(&[
            ("id", self.id.clone()),
            ("type", self.kind.clone().or_else(named)),
            (kind, Some(self.called())),
            ("extra_content", self.extra.clone()),
        ])
    }
}

/// A list of objects that comes in pieces: a piece with a text may continue the last one.
#[derive(Debug, Default)]
struct Pieces(Vec<Piece>);

#[derive(Debug)]
struct Piece {
    /// Its first piece.
    start: String,
    /// What it is, and which.
    like: [Option<String>; 2],
    text: Text,
    summary: Text,
    signature: Option<String>,
}

impl Pieces {
    fn push(&mut self, json: Json<'_>, hear: &mut Hear<'_>, delta: fn(String) -> Delta) {
        let keys = ["type", "index", "text", "summary", "signature"];
        let [kind, index, text, summary, signature] = json.pick(keys);
        let like = [kind.map(raw), index.map(raw)];
        let signature = signature.filter(|signature| !signature.is_null()).map(raw);
        let grows = text.or(summary).is_some() || signature.is_some();
        let last = self.0.last_mut();
        let last = last.filter(|last| grows && last.like == like && last.signature.is_none());
        if last.is_none() {
            self.0.push(Piece {
                start: raw(json),
                like,
                text: Text::default(),
                summary: Text::default(),
                signature: None,
            });
        }
        let Some(last) = self.0.last_mut() else {
            return;
        };
        if let Some(text) = text {
            last.text.hear(text, hear, delta);
        }
        if let Some(summary) = summary {
            last.summary.push(summary);
        }
        last.signature = signature;
    }

    fn written(&self) -> Vec<String> {
        let written = |piece: &Piece| {
            let start = Json::checked(piece.start.as_bytes());
            let mut changes = Vec::new();
            for (name, text) in [("text", &piece.text), ("summary", &piece.summary)] {
                if text.is_given() {
                    changes.push((name, Some(text.raw())));
                }
            }
            if piece.signature.is_some() {
                changes.push(("signature", piece.signature.clone()));
            }
            changed(start, &changes)
        };
        self.0.iter().map(written).collect()
    }
}

/// A spoken reply.
#[derive(Debug, Default)]
struct Audio {
    id: Option<String>,
    data: Text,
    expires: Option<String>,
    transcript: Text,
}

impl Audio {
    fn take(&mut self, json: Json<'_>, hear: &mut Hear<'_>) {
        let [id, data, expires, transcript] = json.pick(["id", "data", "expires_at", "transcript"]);
        self.id = self.id.take().or_else(|| id.map(raw));
        self.expires = expires.map(raw).or_else(|| self.expires.take());
        if let Some(data) = data {
            self.data.push(data);
        }
        if let Some(transcript) = transcript {
            self.transcript.hear(transcript, hear, Delta::Text);
        }
    }

    fn written(&self) -> Option<String> {
        self.id.as_ref()?;
        Some(object(&[
            ("id", self.id.clone()),
            ("data", self.data.some()),
            ("expires_at", self.expires.clone()),
            ("transcript", self.transcript.some()),
        ]))
    }
}
