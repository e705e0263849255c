//! Ollama chat: JSON lines, the last of which is `done`.

use super::reader::Missing;
use super::text::{Hear, Text, array, count, object, raw, word};
use super::{Delta, Reply, Reported, Stop};
use crate::Json;

/// Puts the lines of a reply together.
#[derive(Debug, Default)]
pub struct Ollama {
    content: Text,
    thinking: Text,
    images: Vec<String>,
    calls: Vec<String>,
    begun: bool,
    done: bool,
    reason: Option<String>,
    usage: Option<Reported>,
    model: Option<String>,
}

impl Ollama {
    /// Takes a line, or a whole reply.
    pub fn take(&mut self, json: Json<'_>, hear: &mut Hear<'_>) {
        let keys = [
            "model",
            "message",
            "done",
            "done_reason",
            "prompt_eval_count",
            "eval_count",
        ];
        let [model, message, done, reason, sent, output] = json.pick(keys);
        self.model = word(model).or_else(|| self.model.take());
        self.begun |= message.is_some();
        for (key, value) in message.into_iter().flat_map(Json::members) {
            match &*key.name() {
                b"content" => self.content.hear(value, hear, Delta::Text),
                b"thinking" => self.thinking.hear(value, hear, Delta::Reasoning),
                b"images" => self.images.extend(value.elements().map(raw)),
                b"tool_calls" => value.elements().for_each(|call| self.call(call, hear)),
                _ => {}
            }
        }
        self.done |= done.is_some_and(Json::is_true);
        self.reason = word(reason).or_else(|| self.reason.take());
        if sent.or(output).is_some() {
            self.usage = Some(Reported {
                input: count(sent),
                output: count(output),
                ..Reported::default()
            });
        }
    }

    /// Nothing of it is to come.
    pub fn is_complete(&self) -> bool {
        self.done
    }

    fn call(&mut self, call: Json<'_>, hear: &mut Hear<'_>) {
        let function = call.get("function").unwrap_or(call);
        let [name, arguments] = function.pick(["name", "arguments"]);
        hear(Delta::Call(word(name).unwrap_or_default()));
        hear(Delta::Arguments(arguments.map(raw).unwrap_or_default()));
        self.calls.push(raw(call));
    }

    /// Returns the reply, if it is complete.
    pub fn end(self, closed: bool) -> Result<Reply, Missing> {
        if !self.begun && !self.done {
            return Err(Missing::Everything);
        }
        if !self.done && !closed {
            return Err(Missing::End);
        }
        let stop = match self.reason.as_deref() {
            Some("length") => Stop::Length,
            None | Some("stop") if !self.calls.is_empty() => Stop::Calls,
            None | Some("stop") => Stop::End,
            Some(other) => Stop::Other(other.to_owned()),
        };
        let message = object(&[
            ("role", Some("\"assistant\"".to_owned())),
            ("content", Some(self.content.raw())),
            ("thinking", self.thinking.some()),
            ("images", array(&self.images)),
            ("tool_calls", array(&self.calls)),
        ]);
        Ok(Reply {
            messages: vec![message.into_bytes()],
            stop,
            usage: self.usage,
            model: self.model,
            id: None,
        })
    }
}
