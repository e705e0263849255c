//! A client that keeps its own transcript, and a provider that checks every rule.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use infold_testkit::{Model, Script, Seen, Server, Step};
use infold_wire::{Delivery, Message, Reply, ReplyReader, Wire, quote};
use serde_json::{Value, json};

use crate::blocks::{Block, TOOL, numbered, reply};
use crate::front::{Answer, Proxy, Setup, place};

/// A fact that is only in a hidden message, as a search finds it.
pub const FACT: &str = "= 15029";

/// A word that no other row of the table has, nor a part of it.
pub fn word(number: u32) -> String {
    let mut rest = number * 48_271 + 4_000_000;
    let mut letters = Vec::new();
    while rest > 0 {
        letters.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
    }
    letters.into_iter().collect()
}

/// A proxy that folds early, and its provider.
pub struct Office {
    pub provider: Server,
    pub proxy: Proxy,
    steps: Arc<Mutex<VecDeque<Step>>>,
    /// The number of rounds so far: each has its own ids.
    rounds: AtomicUsize,
}

impl Office {
    pub fn new() -> Office {
        Office::with(Model::picky(), "serve:\n  recall_tool: true\n")
    }

    /// An office whose provider speaks this API, whatever the client speaks.
    pub fn translating(api: &str) -> Office {
        let model = Model {
            alternate: false,
            ..Model::default()
        };
        Office::to(model, "serve:\n  recall_tool: true\n", &format!("{api}+"))
    }

    pub fn with(model: Model, config: &str) -> Office {
        Office::to(model, config, "")
    }

    /// An office whose provider speaks another API if `api` names one, such as `openai+`.
    pub fn to(model: Model, config: &str, api: &str) -> Office {
        let steps: Arc<Mutex<VecDeque<Step>>> = Arc::default();
        let next = Arc::clone(&steps);
        let script = Script::decide(move |_| {
            let step = next.lock().expect("steps").pop_front();
            step.unwrap_or_else(|| Step::say("As you say."))
        });
        let provider = Server::start(script.model(model));
        let mut setup = Setup::to(&format!("{api}{}", provider.url()));
        setup.config = config.to_owned();
        setup.window = Some("16000");
        Office {
            proxy: setup.start(),
            provider,
            steps,
            rounds: AtomicUsize::default(),
        }
    }

    /// Restarts with another configuration.
    pub fn restart(&mut self, config: &str) {
        let mut setup = Setup::to(&self.provider.url());
        setup.config = config.to_owned();
        setup.window = Some("16000");
        let directory = self.proxy.directory();
        self.proxy.finish();
        self.proxy = setup.start_in(directory);
    }

    /// The provider does this next.
    pub fn next(&self, steps: impl IntoIterator<Item = Step>) {
        self.steps.lock().expect("steps").extend(steps);
    }

    /// The provider says these rounds next.
    pub fn say(&self, wire: Wire, rounds: &[Vec<Block>]) {
        let steps = rounds.iter().enumerate().map(|(at, round)| {
            let number = self.rounds.fetch_add(1, Relaxed);
            Step::exact(Reply {
                id: Some(format!("resp_{number}")),
                ..reply(wire, at, &numbered(number, round))
            })
        });
        self.next(steps);
    }

    /// Returns the requests for replies so far.
    pub fn calls(&self) -> Vec<Seen> {
        let requests = self.provider.requests().into_iter();
        requests.filter(|seen| seen.wire().is_some()).collect()
    }

    /// Checks that no request was refused.
    pub fn is_accepted(&self) {
        let refusals = self.provider.take_refusals();
        let reasons: Vec<&String> = refusals.iter().map(|refusal| &refusal.reason).collect();
        let last = refusals.last().map(|refusal| refusal.request.text());
        assert!(
            refusals.is_empty(),
            "{reasons:?}\n{}",
            last.unwrap_or_default()
        );
    }
}

/// A client with a conversation.
pub struct Client<'o> {
    pub office: &'o Office,
    pub wire: Wire,
    pub stream: bool,
    pub messages: Vec<Value>,
    /// Further members of its requests.
    pub members: Value,
    pub task: Option<String>,
}

impl<'o> Client<'o> {
    /// A client whose conversation begins with a table that no summary can hold, and is long.
    pub fn new(office: &'o Office, wire: Wire, stream: bool, name: &str) -> Client<'o> {
        let row = |number: u32| format!("{} = {}", word(number), 7_000 + number * 37);
        let table: Vec<String> = (0..300).map(row).collect();
        let mut client = Client {
            office,
            wire,
            stream,
            messages: Vec::new(),
            members: json!({}),
            task: None,
        };
        client.ask(&format!("Let us talk about {name}."));
        client.answer("Gladly.");
        client.ask(&format!("These are the settings:\n{}", table.join("\n")));
        client.answer("I have read them.");
        for turn in 0..36 {
            client.ask(&format!(
                "Question {turn}: {}",
                "tell me more about it ".repeat(14)
            ));
            client.answer(&format!(
                "Answer {turn}: {}",
                "there is a lot to say ".repeat(40)
            ));
        }
        client.ask("So what is it?");
        client
    }

    pub fn ask(&mut self, text: &str) {
        self.messages.push(match self.wire {
            Wire::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            _ => json!({"role": "user", "content": text}),
        });
    }

    fn answer(&mut self, text: &str) {
        self.messages.push(match self.wire {
            Wire::Gemini => json!({"role": "model", "parts": [{"text": text}]}),
            _ => json!({"role": "assistant", "content": text}),
        });
    }

    /// Returns its present request.
    pub fn body(&self) -> Vec<u8> {
        let mut body = self.members.clone();
        let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
        let function =
            json!({"name": TOOL, "description": "Runs a command.", "parameters": schema});
        let tools = match self.wire {
            Wire::Chat | Wire::Ollama => json!([{"type": "function", "function": function}]),
            Wire::Responses => {
                json!([{"type": "function", "name": TOOL, "parameters": schema, "strict": false}])
            }
            Wire::Anthropic => json!([{"name": TOOL, "input_schema": schema}]),
            Wire::Gemini => json!([{"functionDeclarations": [function]}]),
        };
        let list = infold_wire::envelope::list_name(self.wire);
        if body.get("tools").is_none() {
            body["tools"] = tools;
        }
        if body["tools"].is_null() {
            body.as_object_mut().expect("an object").remove("tools");
        }
        body[list] = self.messages.clone().into();
        match self.wire {
            Wire::Gemini => {}
            Wire::Chat => {
                body["model"] = "m".into();
                body["stream"] = self.stream.into();
                if self.stream {
                    body["stream_options"] = json!({"include_usage": true});
                }
            }
            Wire::Responses => {
                body["model"] = "m".into();
                body["stream"] = self.stream.into();
                if body.get("store").is_none() {
                    body["store"] = false.into();
                }
            }
            Wire::Anthropic => {
                body["model"] = "m".into();
                body["stream"] = self.stream.into();
                body["max_tokens"] = 500.into();
            }
            Wire::Ollama => {
                body["model"] = "m".into();
                body["stream"] = self.stream.into();
            }
        }
        body.to_string().into_bytes()
    }

    /// Sends its request.
    pub fn post(&self) -> Answer {
        let (path, headers) = place(self.wire, self.stream);
        self.office.proxy.post(path, headers, &self.body())
    }

    /// Sends its request, and adds the reply to its transcript, with results of its own tool.
    pub fn turn(&mut self) -> Reply {
        let answer = self.post();
        if answer.status != 200 {
            let last = self.office.provider.last_call().expect("a call").messages();
            let last: Vec<&String> = last.iter().rev().take(8).rev().collect();
            panic!("{} {}\n{last:#?}", self.wire, answer.text());
        }
        assert!(answer.whole, "{} {}", self.wire, answer.text());
        let text = answer.text();
        assert!(!text.contains("search_history"), "{} {text}", self.wire);
        let task = answer.header("x-infold-task").map(str::to_owned);
        assert!(
            self.task.is_none() || self.task == task,
            "{}: it is one task",
            self.wire
        );
        self.task = task;
        let reply = read(self.wire, self.stream, &answer.body);
        self.take(&reply);
        reply
    }

    fn take(&mut self, reply: &Reply) {
        for message in &reply.messages {
            self.messages
                .push(serde_json::from_slice(message).expect("JSON"));
        }
        let calls = reply
            .messages
            .iter()
            .flat_map(|bytes| Message::read(bytes).expect("a message").calls());
        let results: Vec<Value> = calls
            .map(|call| {
                let (id, name) = (call.id.unwrap_or_default(), call.name.unwrap_or_default());
                let text = format!("ran {}", quote(&id));
                match self.wire {
                    Wire::Chat => json!({"role": "tool", "tool_call_id": id, "content": text}),
                    Wire::Ollama => json!({"role": "tool", "tool_name": name, "content": text}),
                    Wire::Responses => {
                        json!({"type": "function_call_output", "call_id": id, "output": text})
                    }
                    Wire::Anthropic => {
                        json!({"type": "tool_result", "tool_use_id": id, "content": text})
                    }
                    Wire::Gemini => {
                        json!({"functionResponse": {"name": name, "response": {"output": text}}})
                    }
                }
            })
            .collect();
        match self.wire {
            _ if results.is_empty() => self.ask("And then?"),
            Wire::Anthropic => self
                .messages
                .push(json!({"role": "user", "content": results})),
            Wire::Gemini => self
                .messages
                .push(json!({"role": "user", "parts": results})),
            _ => self.messages.extend(results),
        }
    }
}

pub fn read(wire: Wire, stream: bool, bytes: &[u8]) -> Reply {
    let delivery = if stream {
        Delivery::Stream
    } else {
        Delivery::Whole
    };
    let mut reader = ReplyReader::new(wire, delivery);
    let read = reader.push(bytes, &mut |_| {});
    let reply = read.and_then(|()| reader.finish());
    reply.unwrap_or_else(|error| panic!("{wire}: {error}: {}", String::from_utf8_lossy(bytes)))
}
