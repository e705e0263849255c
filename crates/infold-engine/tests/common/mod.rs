//! Conversations to fold, and their views.
#![allow(dead_code)]

use std::sync::OnceLock;
use std::time::Duration;

use infold::config::Provider;
use infold::models::Prices;
use infold::profile::{Origin, Setting};
use infold::summarizer::Extractive;
use infold::{Aim, Connection, Connector, Hooks, ManageOutcome, Scratch, Strategy, manage};
use infold_log::{Budget, Limits, View};
use infold_provider::{Client, RetryPolicy};
use infold_testkit::Server;
use infold_wire::{Message, append_plain_text};
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub fn task() -> Scratch {
    Scratch::new().expect("room for a task")
}

pub fn push(task: &mut Scratch, message: String) {
    task.push(message.into_bytes()).expect("a good message");
    task.writer().expect("it is appended");
}

pub fn say(task: &mut Scratch, role: &str, text: &str) {
    push(task, format!(r#"{{"role":"{role}","content":"{text}"}}"#));
}

/// A call and its result.
pub fn call(task: &mut Scratch, at: usize, result: &str) {
    push(
        task,
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"read_file","arguments":"{{\"path\":\"src/part.rs\"}}"}}}}]}}"#
        ),
    );
    push(
        task,
        format!(r#"{{"role":"tool","tool_call_id":"c{at}","content":"{result}"}}"#),
    );
}

/// Turns without tools, of `size` words each way.
pub fn chat(turns: usize, size: usize) -> Scratch {
    let mut task = task();
    for at in 0..turns {
        let text = words(size, at);
        say(&mut task, "user", &format!("request {at} {text}"));
        say(&mut task, "assistant", &format!("reply {at} {text}"));
    }
    task
}

/// A request, calls with results of these numbers of words, a reply.
pub fn tools(results: &[usize]) -> Scratch {
    let mut task = task();
    say(&mut task, "user", "look around");
    for (at, size) in results.iter().enumerate() {
        call(&mut task, at, &words(*size, at));
    }
    say(&mut task, "assistant", "looked");
    task
}

pub fn words(count: usize, salt: usize) -> String {
    let words = [
        "alpha", "river", "stone", "seven", "green", "apple", "house", "table",
    ];
    let picked = (0..count).map(|at| words[(at + salt) % words.len()]);
    picked.collect::<Vec<_>>().join(" ")
}

pub fn budget(window: u64, bytes: Option<u64>) -> Budget {
    let limits = Limits {
        window,
        threshold: Some(75.0),
        bytes,
        ..Limits::default()
    };
    Budget::new(limits).expect("a window with room")
}

pub fn budget_at(window: u64, threshold: f64) -> Budget {
    let limits = Limits {
        window,
        threshold: Some(threshold),
        ..Limits::default()
    };
    Budget::new(limits).expect("a window with room")
}

pub fn aim(window: u64) -> Aim {
    Aim::new(budget(window, None), Strategy::default())
}

pub fn managed(task: &mut Scratch, aim: &Aim) -> ManageOutcome {
    let writer = task.writer().expect("a task");
    manage(writer, aim, &mut Extractive, &Hooks::default()).expect("it fits")
}

pub fn size(task: &Scratch) -> u64 {
    let log = task.log();
    View::of(log.state().shown(), log).expect("a log").tokens()
}

/// Returns the texts of the view.
pub fn shown(task: &Scratch) -> Vec<String> {
    seen(task, |message| {
        let mut text = String::new();
        append_plain_text(message, &mut text);
        text
    })
}

/// Returns the roles of the view.
pub fn roles(task: &Scratch) -> Vec<String> {
    seen(task, |message| message.role().to_string())
}

fn seen(task: &Scratch, see: impl Fn(&Message<'_>) -> String) -> Vec<String> {
    let log = task.log();
    let view = View::of(log.state().shown(), log).expect("a log");
    let mut seen = Vec::new();
    log.render(&view, &mut |_, bytes| {
        seen.push(see(&Message::parse(bytes).expect("a message")));
        Ok(())
    })
    .expect("a view");
    seen
}

pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("threads"))
}

/// A connection to a server that speaks an API.
pub fn connected(server: &Server, api: &str, stop: watch::Receiver<bool>) -> Connection {
    let patience = RetryPolicy {
        attempts: 2,
        first_wait: Duration::from_millis(5),
        ..RetryPolicy::default()
    };
    let set = |text: &str| Setting::new(text.to_owned(), Origin::Default);
    let provider = Provider {
        name: "test".to_owned(),
        api: set(api),
        model: None,
        context_length: None,
        api_key: None,
        base_url: Some(set(&server.url())),
        max_tokens: None,
    };
    let client = Client::new(patience).expect("a client");
    let board = Connector::new(client, runtime().handle().clone(), stop);
    let mut connection = board.connect(&provider, "writer").expect("an address");
    connection.prices = Some(Prices {
        input: 2.0,
        cached: 1.0,
        write: 3.0,
        output: 10.0,
    });
    connection
}
