//! A client that holds a conversation on one of the wires.

use std::time::{Duration, Instant};

use infold_wire::{Delivery, ReplyReader, Wire, quote};
use uuid::Uuid;

use crate::http::{self, Answer};
use crate::words;

/// A conversation, as its client has it.
pub struct Talk {
    pub wire: Wire,
    pub stream: bool,
    /// The name of the conversation, if it has one.
    pub name: Option<String>,
    pub model: String,
    /// The messages, in the form of the wire.
    pub history: Vec<Vec<u8>>,
    /// The task that the server named last.
    pub task: Option<Uuid>,
    /// The number of requests that had to be repeated.
    pub again: usize,
}

impl Talk {
    pub fn new(wire: Wire, stream: bool) -> Talk {
        Talk {
            wire,
            stream,
            name: None,
            model: "scripted".to_owned(),
            history: Vec::new(),
            task: None,
            again: 0,
        }
    }

    /// Appends a user message for the next request.
    pub fn say(&mut self, text: &str) {
        let text = quote(text);
        let message = match self.wire {
            Wire::Gemini => format!(r#"{{"role":"user","parts":[{{"text":{text}}}]}}"#),
            _ => format!(r#"{{"role":"user","content":{text}}}"#),
        };
        self.history.push(message.into_bytes());
    }

    pub fn path(&self) -> String {
        match (self.wire, self.stream) {
            (Wire::Chat, _) => "/v1/chat/completions".to_owned(),
            (Wire::Responses, _) => "/v1/responses".to_owned(),
            (Wire::Anthropic, _) => "/v1/messages".to_owned(),
            (Wire::Ollama, _) => "/api/chat".to_owned(),
            (Wire::Gemini, false) => format!("/v1beta/models/{}:generateContent", self.model),
            (Wire::Gemini, true) => format!(
                "/v1beta/models/{}:streamGenerateContent?alt=sse",
                self.model
            ),
        }
    }

    /// Returns the next request.
    pub fn body(&self) -> Vec<u8> {
        let list = self.history.join(&b","[..]);
        let list = String::from_utf8(list).expect("JSON is UTF-8");
        let (model, stream) = (quote(&self.model), self.stream);
        let body = match self.wire {
            Wire::Chat | Wire::Ollama => {
                format!(r#"{{"model":{model},"stream":{stream},"messages":[{list}]}}"#)
            }
            Wire::Responses => {
                format!(r#"{{"model":{model},"stream":{stream},"store":false,"input":[{list}]}}"#)
            }
            Wire::Anthropic => format!(
                r#"{{"model":{model},"max_tokens":1000,"stream":{stream},"messages":[{list}]}}"#
            ),
            Wire::Gemini => format!(r#"{{"contents":[{list}]}}"#),
        };
        body.into_bytes()
    }

    /// Sends the request once, without processing the answer.
    pub fn ask(&self, port: u16) -> std::io::Result<Answer> {
        self.ask_with(port, &self.body())
    }

    /// Asks with a body of one's own.
    pub fn ask_with(&self, port: u16, body: &[u8]) -> std::io::Result<Answer> {
        let mut headers = vec![("anthropic-version", "2023-06-01")];
        headers.extend(self.name.as_ref().map(|name| ("x-infold-task", &**name)));
        http::post(port, &self.path(), &headers, body)
    }

    /// Adds an answer to the history, if it is complete; returns its text.
    pub fn hear(&mut self, answer: &Answer) -> Option<String> {
        if answer.status != 200 || !answer.whole {
            return None;
        }
        let form = if self.stream {
            Delivery::Stream
        } else {
            Delivery::Whole
        };
        let mut reader = ReplyReader::new(self.wire, form);
        reader.push(&answer.body, &mut |_| {}).ok()?;
        let reply = reader.finish().ok()?;
        let said: Vec<String> = reply.messages.iter().map(|bytes| words(bytes)).collect();
        self.history.extend(reply.messages);
        let task = answer.header("x-infold-task");
        self.task = task.map(|task| task.parse().expect("an id"));
        Some(said.join("\n"))
    }

    /// Asks until a whole answer has come, as clients do; returns its words.
    pub fn insist(&mut self, port: u16) -> String {
        let begin = Instant::now();
        loop {
            let answer = self.ask(port);
            if let Ok(answer) = &answer
                && let Some(said) = self.hear(answer)
            {
                return said;
            }
            let late = begin.elapsed() > Duration::from_secs(60);
            assert!(!late, "{:?} is never answered: {answer:?}", self.wire);
            self.again += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Says something, and has it answered at once.
    pub fn turn(&mut self, port: u16, text: &str) -> String {
        self.say(text);
        let answer = self.ask(port).expect("an answer");
        let said = self.hear(&answer);
        said.unwrap_or_else(|| panic!("{:?}: {}: {}", self.wire, answer.status, answer.text()))
    }

    /// Returns the texts of the client's history.
    pub fn said(&self) -> Vec<String> {
        self.history.iter().map(|bytes| words(bytes)).collect()
    }

    /// Returns the task; there is one after the first recorded answer.
    pub fn task(&self) -> Uuid {
        self.task.expect("it was told")
    }
}
