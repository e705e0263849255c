//! Conversations through the proxy, turn after turn.

mod front;

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use front::{Proxy, Setup, connect, head, place};
use infold_testkit::{Model, Script, Seen, Server, Step};
use infold_wire::{Delivery, Reader, Wire};

/// A client that keeps all that was said, as clients do.
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

    /// Says something, and goes on as soon as the reply is there, whatever may follow it.
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
            let mut reader = Reader::new(self.wire, form);
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
fn the_last_event_waits_until_the_reply_is_recorded() {
    let pause = Duration::from_millis(50);
    let lenient = Model {
        strict: false,
        ..Model::default()
    };
    let script = move |_: &Seen| Step::say("one two").in_pieces(4).pausing(pause);
    let server = Server::start(Script::new().model(lenient).otherwise(script));
    let setup = Setup::to(&server.url());
    let proxy = Setup {
        threads: 1,
        ..setup
    }
    .start();
    for wire in Wire::ALL {
        let (path, headers) = place(wire, true);
        let said = front::request(wire, true, "hi");
        let said = String::from_utf8(said).expect("UTF-8");
        let mut connection = connect(proxy.address);
        let head = head(proxy.address, path, headers, said.len());
        let sent = connection.write_all(format!("{head}{said}").as_bytes());
        sent.expect("it is taken");
        let mut read = vec![0; 16 << 10];
        let count = connection.read(&mut read).expect("it begins");
        read.truncate(count);
        // Whoever would record it is busy.
        let (busy, began) = (Duration::from_millis(900), Instant::now());
        proxy
            .handle
            .spawn_blocking(move || std::thread::sleep(busy));
        let complete = |read: &[u8]| {
            let mut reader = Reader::new(wire, Delivery::Stream);
            let heard = reader.push(&front::Answer::parse(read).body, &mut |_| {});
            heard.is_ok() && reader.is_complete()
        };
        let mut some = [0; 4096];
        while !complete(&read) {
            let count = connection.read(&mut some).expect("it goes on");
            assert!(count > 0, "{wire}: {}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&some[..count]);
        }
        assert!(began.elapsed() >= busy, "{wire}: {:?}", began.elapsed());
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
            // It is believed to have a far larger window, and learns better.
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
