//! A conversations without a server around it.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use infold::config::Provider;
use infold::profile::{Origin, Setting};
use infold::{Config, Connector};
use infold_log::steer::{Side, Target, locate};
use infold_log::{Past as _, Shown};
use infold_provider::{Client, RetryPolicy};
use infold_serve::{
    ConversationName, Conversations, Exchange, IncomingBody, ModelCall, OutgoingBody, OutgoingPart,
};
use infold_store::{Contexts, Durability, Log};
use infold_wire::{Reply, StopReason, Wire};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use uuid::Uuid;

/// Conversations with everything that they need.
pub struct Office {
    pub conversations: Conversations,
    dir: tempfile::TempDir,
    provider: Arc<Provider>,
    runtime: Runtime,
    summarizer: String,
    _stop: watch::Sender<bool>,
}

fn provider(window: u64) -> Provider {
    let set = |value: &str| Setting::new(value.to_owned(), Origin::Default);
    Provider {
        name: "scripted".to_owned(),
        api: set("openai"),
        model: None,
        context_length: Some(Setting::new(window, Origin::Default)),
        api_key: None,
        // Nothing listens on this port.
        base_url: Some(set("http://127.0.0.1:9/v1")),
        max_tokens: None,
    }
}

fn conversations(
    runtime: &Runtime,
    dir: &Path,
    summarizer: &str,
) -> (Conversations, watch::Sender<bool>) {
    let (sender, stop) = watch::channel(false);
    let client = Client::new(RetryPolicy::default()).expect("a client can be made");
    let board = Connector::new(client, runtime.handle().clone(), stop);
    let contexts = Contexts::new(dir, Durability::Never);
    let contexts = contexts.keeping().expect("a registry can be opened");
    let mut config = Config::default();
    config.summarizer.name = Setting::call(summarizer.to_owned());
    let config = Arc::new(config);
    let conversations = Conversations::new(contexts, config, board);
    (
        conversations.expect("a conversations can be opened"),
        sender,
    )
}

impl Office {
    pub fn new(window: u64) -> Office {
        Office::writing(window, "extractive")
    }

    /// An office with another summarizer.
    pub fn writing(window: u64, summarizer: &str) -> Office {
        let dir = tempfile::tempdir().expect("a directory can be made");
        let runtime = Runtime::new().expect("a runtime can be made");
        let (conversations, stop) = conversations(&runtime, dir.path(), summarizer);
        Office {
            conversations,
            dir,
            provider: Arc::new(provider(window)),
            runtime,
            summarizer: summarizer.to_owned(),
            _stop: stop,
        }
    }

    /// Ends the server, and starts another one.
    pub fn restart(&mut self) {
        self.conversations.close();
        let (conversations, stop) = conversations(&self.runtime, self.dir.path(), &self.summarizer);
        self.conversations = conversations;
        self._stop = stop;
    }

    /// Restarts with a change to its files in between, while no process has them open.
    pub fn restart_after(&mut self, change: impl FnOnce(&Path)) {
        self.conversations.close();
        let elsewhere = tempfile::tempdir().expect("a directory can be made");
        (self.conversations, self._stop) =
            conversations(&self.runtime, elsewhere.path(), &self.summarizer);
        change(self.dir.path());
        (self.conversations, self._stop) =
            conversations(&self.runtime, self.dir.path(), &self.summarizer);
    }

    /// Restarts without the index of conversations.
    pub fn restart_without_index(&mut self) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(self.dir.path().join(format!("chains.db{suffix}")));
        }
        self.restart();
    }

    pub fn call(&self, wire: Wire, body: &Value, name: Option<ConversationName>) -> ModelCall {
        // The provider speaks its clients' wire.
        let mut provider = Provider::clone(&self.provider);
        provider.api.value = infold::config::SERVED_APIS[wire as usize].to_owned();
        ModelCall {
            wire,
            model: (wire == Wire::Gemini).then(|| "m".to_owned()),
            stream: None,
            long_context: false,
            agent: None,
            name,
            provider: Arc::new(provider),
            body: IncomingBody::InMemory(Bytes::from(body.to_string())),
        }
    }

    /// Sends a request on the chat wire; returns the exchange and the body for the provider.
    pub fn ask(&self, messages: &[Value], name: Option<ConversationName>) -> (Exchange, Value) {
        let body = json!({"model": "m", "messages": messages});
        let call = self.call(Wire::Chat, &body, name);
        let taken = self.conversations.accept(&call).expect("it is taken");
        let sent = bytes(&call.body, &taken.outgoing);
        let sent = serde_json::from_slice(&sent).expect("what is sent is JSON");
        (taken.exchange, sent)
    }

    /// Asks, and the model answers; returns the task.
    pub fn turn(&self, messages: &[Value], answer: &str, name: Option<ConversationName>) -> Uuid {
        let (mut exchange, _) = self.ask(messages, name);
        exchange.record(reply(answer)).expect("it is recorded");
        exchange.task()
    }

    /// Returns all messages of a task, folded or not.
    pub fn holds(&self, task: Uuid) -> Vec<String> {
        let log = self
            .conversations
            .contexts()
            .read(task)
            .expect("it can be read");
        texts(&log, log.state().shown())
    }

    /// Returns all messages of a task, and of its state after each message.
    pub fn held(&self, task: Uuid) -> Vec<Vec<String>> {
        let log = self
            .conversations
            .contexts()
            .read(task)
            .expect("it can be read");
        let mut held = vec![texts(&log, log.state().shown())];
        for seq in 1..=log.state().at().seq {
            let target = Target::Message(seq);
            let point = locate(log.state(), Side::To, target, &log).expect("it is there");
            held.push(texts(&log, &log.shown(point).expect("it can be read")));
        }
        held
    }

    /// Returns the messages that a task shows, by their first words.
    pub fn shows(&self, task: Uuid) -> Vec<String> {
        let log = self
            .conversations
            .contexts()
            .read(task)
            .expect("it can be read");
        let view = infold_log::View::of(log.state().shown(), &log).expect("it has a view");
        let lines = log.rendered(&view).expect("it can be shown");
        let lines = String::from_utf8(lines).expect("it is a text");
        let text = |line: &str| {
            let json: Value = serde_json::from_str(line).expect("it is JSON");
            json["content"].as_str().unwrap_or_default().to_owned()
        };
        lines.lines().map(text).collect()
    }

    pub fn tasks(&self) -> usize {
        self.conversations
            .contexts()
            .tasks()
            .expect("they can be listed")
            .len()
    }
}

fn texts(log: &Log, shown: &Shown) -> Vec<String> {
    let mut texts = Vec::new();
    for run in shown.path() {
        log.each_message(run, &mut |_, bytes| {
            let json: Value = serde_json::from_slice(bytes).expect("it is JSON");
            texts.push(json["content"].as_str().unwrap_or_default().to_owned());
            Ok(())
        })
        .expect("it can be read");
    }
    texts
}

pub fn bytes(body: &IncomingBody, outgoing: &OutgoingBody) -> Vec<u8> {
    let mut all = Vec::new();
    for piece in outgoing.parts() {
        match piece {
            OutgoingPart::Client(range) => {
                all.extend_from_slice(&body.part(range).expect("it is there"))
            }
            OutgoingPart::Inserted(bytes) => all.extend_from_slice(bytes),
        }
    }
    all
}

pub fn reply(text: &str) -> Reply {
    Reply {
        messages: vec![assistant(text).to_string().into_bytes()],
        stop: StopReason::End,
        usage: None,
        model: None,
        id: None,
    }
}

pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

pub fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}
