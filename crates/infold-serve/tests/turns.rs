//! Conversations through the proxy, turn after turn.

mod front;

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use front::{Proxy, Setup, connect, head, place};
use infold_testkit::{Gate, Model, Script, Seen, Server, Step};
use infold_wire::{Delivery, ReplyReader, Wire};

/// A client that sends its whole history.
struct Talk<'p> {
    proxy: &'p Proxy,
    wire: Wire,
    said: Vec<String>,
}

impl Talk<'_> {
    fn body(&self, stream: bool) -> String {
        let said = self.said.join(",");
        match self.wire {
            Wire::Chat | Wire::Ollama => {
                format!("{{\"model\":\"m\",\"stream\":{stream},\"messages\":[{said}]}}")
            }
            Wire::Anthropic => {
                format!(
                    "{{\"model\":\"m\",\"max_tokens\":50,\"stream\":{stream},\"messages\":[{said}]}}"
                )
            }
            Wire::Responses => {
                format!("{{\"model\":\"m\",\"stream\":{stream},\"input\":[{said}]}}")
            }
            Wire::Gemini => format!("{{\"contents\":[{said}]}}"),
        }
    }

    /// Sends a message, and continues as soon as the reply is complete, whatever bytes follow it.
    fn turn(&mut self, text: &str, stream: bool) -> Result<String, String> {
        self.said.push(match self.wire {
            Wire::Gemini => format!("{{\"role\":\"user\",\"parts\":[{{\"text\":\"{text}\"}}]}}"),
            _ => format!("{{\"role\":\"user\",\"content\":\"{text}\"}}"),
        });
        let body = self.body(stream);
        let (path, headers) = place(self.wire, stream);
        let mut connection = connect(self.proxy.address);
        let head = head(self.proxy.address, path, headers, body.len());
        let sent = connection.write_all(format!("{head}{body}").as_bytes());
        sent.map_err(|error| error.to_string())?;
        let form = if stream {
            Delivery::Stream
        } else {
            Delivery::Whole
        };
        let mut read = Vec::new();
        let mut some = [0; 4096];
        loop {
            let count = connection
                .read(&mut some)
                .map_err(|error| error.to_string())?;
            read.extend_from_slice(&some[..count]);
            let answer = front::Answer::parse(&read);
            let mut reader = ReplyReader::new(self.wire, form);
            let heard = reader.push(&answer.body, &mut |_| {});
            if heard.is_ok() && reader.is_complete() && answer.status == 200 {
                let reply = reader.finish().map_err(|error| error.to_string())?;
                let messages = reply.messages.into_iter();
                let messages = messages.map(|message| String::from_utf8(message).expect("UTF-8"));
                self.said.extend(messages);
                let task = answer.header("x-infold-task").unwrap_or_default();
                return Ok(task.to_owned());
            }
            if count == 0 {
                return Err(format!("{}: {}", answer.status, answer.text()));
            }
        }
    }
}

#[test]
fn the_next_request_finds_the_reply_recorded() {
    let server =
        Server::start(Script::new().otherwise(|seen| Step::say(format!("reply {}", seen.number))));
    let proxy = Proxy::to(&server.url());
    for wire in Wire::ALL {
        for stream in [true, false] {
            let said = Vec::new();
            let mut talk = Talk {
                proxy: &proxy,
                wire,
                said,
            };
            let first = talk
                .turn(&format!("first of {wire} {stream}"), stream)
                .expect("a reply");
            assert!(!first.is_empty());
            for number in 0..15 {
                let task = talk.turn(&format!("number {number}"), stream);
                assert_eq!(task.as_ref(), Ok(&first), "{wire} {stream} {number}");
            }
        }
    }
}

#[test]
fn what_stands_around_the_messages_can_be_read_as_it_came() {
    let server = Server::start(Script::new());
    let proxy = Proxy::to(&server.url());
    let ask = |warmth: &str, said: &str| {
        let tools =
            r#"[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]"#;
        let system = r#"{"role":"system","content":"be \u0062rief"}"#;
        let body = format!(
            r#"{{"model":"m","temperature":{warmth},"tools":{tools},"messages":[{system},{said}]}}"#
        );
        let answer = proxy.post("/v1/chat/completions", "", body.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer
            .header("x-infold-task")
            .unwrap_or_default()
            .to_owned()
    };
    let hello = r#"{"role":"user","content":"hello"}"#;
    let task = ask("0.50", hello);
    // A repeated frame is not recorded again.
    assert_eq!(ask("0.50", hello), task);
    assert_eq!(ask("1e0", hello), task);
    let answer = proxy.ask(&format!(
        "GET /infold/api/tasks/{task}/frames HTTP/1.1\nhost: 127.0.0.1:PORT"
    ));
    let text = answer.text();
    let frames: Vec<&str> = text.matches(r#"{"frame":"#).collect();
    assert_eq!((answer.status, frames.len()), (200, 2), "{text}");
    for part in [
        r#""wire":"chat""#,
        r#""temperature":0.50,"#,
        r#""temperature":1e0,"#,
        r#""messages":[{"role":"system","content":"be \u0062rief"}]"#,
        r#""name":"look""#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    infold_wire::Json::parse(text.as_bytes()).expect("it is JSON");
    let nobody = "GET /infold/api/tasks/ffff/frames HTTP/1.1\nhost: 127.0.0.1:PORT";
    assert_eq!(proxy.ask(nobody).status, 404);
}

#[test]
fn the_last_event_waits_until_the_reply_is_recorded() {
    let lenient = Model {
        strict: false,
        ..Model::default()
    };
    for wire in Wire::ALL {
        let gate = Gate::closed();
        let rest = gate.clone();
        // On Responses two announcements are held back until the next event.
        let events = if wire == Wire::Responses { 3 } else { 1 };
        let script = move |_: &Seen| Step::say("one two").in_pieces(4).gated(events, &rest);
        let script = Script::new().model(lenient.clone()).otherwise(script);
        let server = Server::start(script);
        let proxy = Proxy::to(&server.url());
        let (path, headers) = place(wire, true);
        // A request that was answered before would be held back.
        let said = front::request(wire, true, &format!("hi on {wire}"));
        let said = String::from_utf8(said).expect("UTF-8");
        let mut connection = connect(proxy.address);
        let head = head(proxy.address, path, headers, said.len());
        let sent = connection.write_all(format!("{head}{said}").as_bytes());
        sent.expect("it is taken");
        let mut read = vec![0; 16 << 10];
        let count = connection.read(&mut read).expect("it begins");
        read.truncate(count);
        // The task stays leased until well after the last event was sent.
        let task = front::Answer::parse(&read);
        let task = task.header("x-infold-task").and_then(|id| id.parse().ok());
        let (conversations, task) = (proxy.conversations.clone(), task.expect("a task"));
        let is_free = Arc::new(AtomicBool::new(false));
        let (freed, is_busy) = (Arc::clone(&is_free), Arc::new(Barrier::new(2)));
        let busy = Arc::clone(&is_busy);
        let sleeps = move || {
            conversations.with(task, |_| {
                busy.wait();
                std::thread::sleep(Duration::from_millis(500));
                freed.store(true, Ordering::SeqCst);
            })
        };
        std::thread::spawn(move || sleeps().expect("a task"));
        is_busy.wait();
        gate.open();
        let complete = |read: &[u8]| {
            let mut reader = ReplyReader::new(wire, Delivery::Stream);
            let heard = reader.push(&front::Answer::parse(read).body, &mut |_| {});
            heard.is_ok() && reader.is_complete()
        };
        let mut some = [0; 4096];
        while !complete(&read) {
            let count = connection.read(&mut some).expect("it goes on");
            assert!(count > 0, "{wire}: {}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&some[..count]);
        }
        assert!(is_free.load(Ordering::SeqCst), "{wire}");
    }
}

#[test]
fn a_conversation_goes_on_where_its_model_would_refuse_it() {
    for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic, Wire::Gemini] {
        for stream in [true, false] {
            let server = Server::start(Script::new().model(Model {
                // A request of today need not take turns.
                alternate: false,
                ..Model::window(1500)
            }));
            // The model is assumed to have a far larger window, and the proxy learns the real one.
            let proxy = Proxy::to(&server.url());
            let said = Vec::new();
            let mut talk = Talk {
                proxy: &proxy,
                wire,
                said,
            };
            let mut tasks = Vec::new();
            for number in 0..25 {
                let text = format!(
                    "turn {number}: {}",
                    "some more words to fill it ".repeat(15)
                );
                let task = talk.turn(&text, stream);
                let task =
                    task.unwrap_or_else(|error| panic!("{wire} {stream} turn {number}: {error}"));
                tasks.push(task);
            }
            tasks.dedup();
            assert_eq!(tasks.len(), 1, "{wire} {stream}: one conversation");
            let largest = server
                .requests()
                .iter()
                .filter(|seen| seen.wire().is_some())
                .map(|seen| seen.len)
                .max();
            assert!(
                largest.is_some_and(|largest| largest < 40_000),
                "{largest:?}"
            );
        }
    }
}

#[test]
fn a_conversation_goes_on_through_another_server() {
    let server = Server::start(Script::new().otherwise(|_| Step::say("well")));
    let directory = Arc::new(tempfile::tempdir().expect("a directory"));
    let start = || Setup::to(&server.url()).start_in(Arc::clone(&directory));
    let (first, second) = (start(), start());
    let mut talk = Talk {
        proxy: &first,
        wire: Wire::Chat,
        said: Vec::new(),
    };
    let task = talk.turn("hi", true).expect("a reply");
    assert!(!task.is_empty());
    for proxy in [&second, &first, &second] {
        talk.proxy = proxy;
        // A proxy that could not get the task would have passed the request on unrecorded.
        assert_eq!(talk.turn("and now?", true).as_ref(), Ok(&task));
    }
}

#[test]
fn what_a_provider_reports_is_told_as_it_comes() {
    let server = Server::start(Script::new());
    let proxy = Proxy::to(&server.url());
    let mut events = connect(proxy.address);
    let ask = format!(
        "GET /infold/api/events HTTP/1.1\r\nhost: {}\r\n\r\n",
        proxy.address
    );
    events.write_all(ask.as_bytes()).expect("sent");
    let mut heard = String::new();
    let mut hear = |until: &str| {
        let mut some = [0; 4096];
        while !heard.contains(until) {
            let count = events.read(&mut some).expect("events come");
            assert!(count > 0, "it ended: {heard}");
            heard.push_str(&String::from_utf8_lossy(&some[..count]));
        }
        heard.clone()
    };
    hear(": infold");
    let mut talk = Talk {
        proxy: &proxy,
        wire: Wire::Chat,
        said: Vec::new(),
    };
    talk.turn("hi", false).expect("a reply");
    let heard = hear("output_tokens");
    assert!(heard.contains("event: usage\n"), "{heard}");
    assert!(heard.contains(r#""model":"m""#), "{heard}");
}

#[test]
fn a_client_that_leaves_is_counted_once() {
    let slow = Step::say("word ".repeat(500)).gated(4, &Gate::closed());
    let server = Server::start(Script::steps([Step::never(), slow]));
    let proxy = Proxy::to(&server.url());
    let counted = || {
        let metrics = proxy
            .ask("GET /metrics HTTP/1.1\nhost: localhost:PORT")
            .text();
        let line = |name: &str| {
            let mut lines = metrics.lines();
            let value = lines.find_map(|line| line.strip_prefix(&format!("{name} ")));
            value.map(str::to_owned).unwrap_or_default()
        };
        // This one is under way too.
        let alone = line("infold_requests_in_flight") == "1";
        alone.then(|| line("infold_client_disconnects_total"))
    };
    // One client disconnects before there is an answer, the other in the middle of it.
    for (before, left) in [(true, "1"), (false, "2")] {
        let body = format!(
            r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{left}"}}]}}"#
        );
        let mut stream = connect(proxy.address);
        let (path, headers) = place(Wire::Chat, true);
        let head = head(proxy.address, path, headers, body.len());
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .expect("sent");
        let until = Instant::now() + Duration::from_secs(60);
        while server.count() < left.parse().expect("a number") && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !before {
            stream.read_exact(&mut [0; 64]).expect("it begins");
        }
        drop(stream);
        let count = loop {
            assert!(Instant::now() < until, "it is still under way");
            match counted() {
                Some(count) => break count,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        assert_eq!(count, left);
    }
}

#[test]
fn a_request_that_is_not_folded_is_as_long_after_as_before() {
    // The provider counts far more tokens than we do.
    let reported = infold_wire::TokenUsage {
        input: 5_000,
        output: 7,
        ..infold_wire::TokenUsage::default()
    };
    let script = Script::new().otherwise(move |_| {
        Step::answer(infold_testkit::Answer {
            text: Some("well".to_owned()),
            usage: Some(reported),
            ..infold_testkit::Answer::default()
        })
    });
    let server = Server::start(script);
    let proxy = Proxy::to(&server.url());
    let mut messages = Vec::new();
    for turn in 0..4 {
        messages.push(format!("{{\"role\":\"user\",\"content\":\"turn {turn}\"}}"));
        let body = format!("{{\"model\":\"m\",\"messages\":[{}]}}", messages.join(","));
        let answer = proxy.post("/v1/chat/completions", "", body.as_bytes());
        assert_eq!(
            answer.header("x-infold-folds"),
            Some("0"),
            "{}",
            answer.head
        );
        let before = answer.header("x-infold-tokens-before");
        assert_eq!(
            before,
            answer.header("x-infold-tokens-after"),
            "turn {turn}"
        );
        messages.push("{\"role\":\"assistant\",\"content\":\"well\"}".to_owned());
    }
}

#[test]
fn a_reply_is_announced_with_the_task_that_gets_it() {
    for stream in [false, true] {
        let mut number = 0;
        let script = Script::new().otherwise(move |_| {
            number += 1;
            // The second is the same again, the third begins like it.
            let text = ["well, yes", "well, yes", "well, no", "other"][(number - 1) % 4];
            Step::say(text).in_pieces(3)
        });
        let server = Server::start(script);
        let proxy = Proxy::to(&server.url());
        let (path, headers) = place(Wire::Chat, stream);
        let body = front::request(Wire::Chat, stream, "hi");
        let mut tasks = Vec::new();
        for expected in ["well, yes", "well, yes", "well, no", "other"] {
            let answer = proxy.post(path, headers, &body);
            assert_eq!(answer.status, 200, "{}", answer.text());
            let task = answer.header("x-infold-task").expect("a task").to_owned();
            let id = task.parse().expect("an id");
            let log = proxy
                .conversations
                .contexts()
                .read(id)
                .expect("it is there");
            let last = log.state().last_seq().expect("a message");
            let said = String::from_utf8(log.message(last).expect("it is there"));
            let said = said.expect("UTF-8");
            assert!(said.contains(expected), "{stream}: {expected} in {said}");
            tasks.push(task);
        }
        tasks.dedup();
        assert_eq!(tasks.len(), 1, "none of them was gone on with");
    }
}
