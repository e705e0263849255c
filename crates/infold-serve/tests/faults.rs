//! A client whose provider fails sees the provider's own failure, and no other.

mod front;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use front::{Answer, Proxy, Setup, head, place, post, request};
use infold_serve::ServerLimits;
use infold_testkit::{Gate, Model, Script, Server, Step};
use infold_wire::provider_error::classify;
use infold_wire::{Json, ProviderError, Wire};

fn lenient() -> Script {
    Script::new().model(Model {
        strict: false,
        ..Model::default()
    })
}

#[test]
fn a_provider_that_is_down_is_a_bad_gateway_in_the_words_of_the_wire() {
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("bound");
    let proxy = Proxy::to(&format!("http://{free}"));
    for wire in Wire::ALL {
        let (path, headers) = place(wire, true);
        let answer = proxy.post(path, headers, &request(wire, true, "hi"));
        assert_eq!(answer.status, 502, "{wire}");
        let body = Json::parse(&answer.body).expect("JSON");
        assert!(body.get("error").is_some(), "{wire}: {}", answer.text());
        assert!(
            matches!(
                classify(502, None, &answer.body),
                ProviderError::Busy { .. }
            ),
            "{wire}"
        );
    }
}

#[test]
fn a_provider_that_hangs_up_is_a_bad_gateway() {
    let server = Server::start(lenient().otherwise(|_| Step::hang_up()));
    let proxy = Proxy::to(&server.url());
    let answer = proxy.post(
        "/v1/messages",
        "anthropic-version: 1\r\n",
        &request(Wire::Anthropic, true, "hi"),
    );
    assert_eq!((answer.status, answer.whole), (502, true));
}

#[test]
fn a_slow_provider_is_waited_for() {
    let slow = Duration::from_millis(800);
    let server = Server::start(lenient().otherwise(move |_| Step::say("at last").after(slow)));
    let proxy = Proxy::to(&server.url());
    for wire in Wire::ALL {
        let (path, headers) = place(wire, false);
        let answer = proxy.post(path, headers, &request(wire, false, "hi"));
        assert_eq!((answer.status, answer.whole), (200, true), "{wire}");
        assert!(answer.text().contains("at last"));
    }
}

#[test]
fn a_silent_provider_is_given_up() {
    let start = |step: Step| {
        let server = Server::start(lenient().otherwise(move |_| step.clone()));
        let mut setup = Setup::to(&server.url());
        setup.limits.silence = Some(Duration::from_secs(2));
        (setup.start(), server)
    };
    let (never, _server) = start(Step::never());
    let (once, _other) = start(Step::say("one two three four").gated(1, &Gate::closed()));
    let check = |wire: Wire| {
        let (path, headers) = place(wire, true);
        // No bytes arrive at all, so the proxy can still send an error.
        let answer = never.post(path, headers, &request(wire, true, "hi"));
        assert_eq!((answer.status, answer.whole), (504, true), "{wire}");
        let text = answer.text();
        assert!(text.contains("silent for too long"), "{wire}: {text}");
        let busy = classify(504, None, &answer.body);
        assert!(matches!(busy, ProviderError::Busy { .. }), "{wire}");
        // A reply that stops coming is cut off; one that had only been announced was held back.
        let answer = once.post(path, headers, &request(wire, true, "hi"));
        let expected = match wire {
            Wire::Responses => (504, true),
            _ => (200, false),
        };
        let text = answer.text();
        assert_eq!((answer.status, answer.whole), expected, "{wire}: {text}");
    };
    std::thread::scope(|scope| {
        for wire in Wire::ALL {
            scope.spawn(move || check(wire));
        }
    });
}

#[test]
fn errors_come_back_as_they_are() {
    for (name, wire) in [
        ("openai/rate-limit", Wire::Chat),
        ("anthropic/overloaded", Wire::Anthropic),
        ("gemini/key", Wire::Gemini),
    ] {
        let script = || lenient().otherwise(move |_| Step::named(name).header("retry-after", "7"));
        let (direct, behind) = (Server::start(script()), Server::start(script()));
        let proxy = Proxy::to(&behind.url());
        let (path, headers) = place(wire, true);
        let body = request(wire, true, "hi");
        let expected = post(direct.address(), path, headers, &body);
        let answer = proxy.post(path, headers, &body);
        assert_eq!(answer.status, expected.status, "{name}");
        assert_eq!(answer.text(), expected.text(), "{name}");
        let wait = "retry-after";
        assert_eq!(answer.header(wait), expected.header(wait));
        assert!(answer.header(wait).is_some());
        assert_eq!(behind.count(), 1, "{name}: a client tries again by itself");
    }
}

#[test]
fn a_stream_that_breaks_breaks_for_the_client_too() {
    for wire in Wire::ALL {
        let script = || {
            lenient().otherwise(|_| {
                let step = Step::say("one two three four five six").in_pieces(4);
                step.cut_after_events(4)
            })
        };
        let (direct, behind) = (Server::start(script()), Server::start(script()));
        let proxy = Proxy::to(&behind.url());
        let (path, headers) = place(wire, true);
        let body = request(wire, true, "hi");
        let expected = post(direct.address(), path, headers, &body);
        assert!(!expected.whole);
        // All bytes before the break are forwarded, however soon it follows; only ids differ.
        for _ in 0..10 {
            let answer = proxy.post(path, headers, &body);
            assert_eq!((answer.status, answer.whole), (200, false), "{wire}");
            let lines = |answer: &Answer| answer.text().lines().count();
            assert_eq!(
                lines(&answer),
                lines(&expected),
                "{wire}: {}",
                answer.text()
            );
        }
    }
}

/// An upstream that sends a whole reply at once, and closes the connection without its end marker.
fn hangs_up(reply: &'static [u8]) -> std::net::SocketAddr {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut asked = Vec::new();
            let mut bytes = [0; 4096];
            // The request ends with its body, which is JSON.
            while !asked.ends_with(b"}") {
                match client.read(&mut bytes) {
                    Ok(read) if read > 0 => asked.extend_from_slice(&bytes[..read]),
                    _ => break,
                }
            }
            let _ = client.write_all(reply);
        }
    });
    address
}

#[test]
fn all_that_came_before_a_break_goes_on() {
    let event = |text: &str| {
        let event = format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"role\":\"assistant\",\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
        );
        format!("{:x}\r\n{event}\r\n", event.len())
    };
    let events: String = (0..40).map(|at| event(&format!("word {at} "))).collect();
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let reply = (head.to_owned() + &events).leak().as_bytes();
    let proxy = Proxy::to(&format!("http://{}", hangs_up(reply)));
    let (path, headers) = place(Wire::Chat, true);
    for turn in 0..60 {
        let body = request(Wire::Chat, true, &format!("hi {turn}"));
        let answer = proxy.post(path, headers, &body);
        assert_eq!((answer.status, answer.whole), (200, false));
        let events = answer.text().matches("data: ").count();
        assert_eq!(events, 40, "request {turn}");
    }
}

#[test]
fn a_body_that_is_cut_short_is_not_made_whole() {
    let server =
        Server::start(lenient().otherwise(|_| Step::say("one two three").cut_after_bytes(60)));
    let proxy = Proxy::to(&server.url());
    let answer = proxy.post(
        "/v1/chat/completions",
        "",
        &request(Wire::Chat, false, "hi"),
    );
    // No bytes were forwarded before the break, so the proxy can send an error.
    assert!(
        answer.status == 502 || !answer.whole,
        "{} {}",
        answer.status,
        answer.text()
    );
}

#[test]
fn what_is_malformed_goes_through_as_it_is() {
    for wire in Wire::ALL {
        let script = || {
            lenient().otherwise(|_| Step::say("one two three four").in_pieces(4).malformed_at(2))
        };
        let (direct, behind) = (Server::start(script()), Server::start(script()));
        let proxy = Proxy::to(&behind.url());
        let (path, headers) = place(wire, true);
        let body = request(wire, true, "hi");
        let expected = post(direct.address(), path, headers, &body);
        let answer = proxy.post(path, headers, &body);
        assert_eq!(
            (answer.status, answer.whole),
            (expected.status, expected.whole),
            "{wire}"
        );
        assert_eq!(answer.text(), expected.text(), "{wire}");
    }
    for odd in ["<html>a page</html>", "", "{\"unheard\":\"of\"}", "data: x"] {
        let server = Server::start(lenient().otherwise(move |_| Step::error(200, odd)));
        let proxy = Proxy::to(&server.url());
        let answer = proxy.post(
            "/v1/messages",
            "anthropic-version: 1\r\n",
            &request(Wire::Anthropic, true, "hi"),
        );
        assert_eq!(
            (answer.status, answer.text().as_str(), answer.whole),
            (200, odd, true)
        );
    }
}

#[test]
fn what_is_no_request_of_ours_goes_through_as_it_is() {
    let (direct, behind) = (Server::start(lenient()), Server::start(lenient()));
    let proxy = Proxy::to(&behind.url());
    for body in [
        "",
        "{",
        "[]",
        "null",
        "\u{0}\u{1}",
        "{\"messages\":7}",
        "{\"model\":\"m\",\"messages\":[]}",
    ] {
        for wire in Wire::ALL {
            let (path, headers) = place(wire, false);
            let expected = post(direct.address(), path, headers, body.as_bytes());
            let answer = proxy.post(path, headers, body.as_bytes());
            assert_eq!(answer.status, expected.status, "{wire} {body:?}");
            assert_eq!(answer.text(), expected.text(), "{wire} {body:?}");
            assert_eq!(behind.last().expect("asked").text(), body);
        }
    }
}

#[test]
fn a_client_that_leaves_takes_its_request_with_it() {
    for begun in [true, false] {
        let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
        let proxy = Proxy::to(&format!("http://{}", upstream.local_addr().expect("bound")));
        let body = request(Wire::Chat, true, "hi");
        let mut client = proxy.connect();
        let head = head(proxy.address, "/v1/chat/completions", "", body.len());
        client
            .write_all(&[head.as_bytes(), &body].concat())
            .expect("sent");
        let (mut asked, _) = upstream.accept().expect("it is asked");
        asked
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a limit");
        let mut some = [0; 4096];
        let mut read = 0;
        while read < body.len() {
            read += asked.read(&mut some).expect("the request");
        }
        if begun {
            let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
            let chunk = format!("{:x}\r\n{event}\r\n", event.len());
            let reply = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{chunk}"
            );
            asked.write_all(reply.as_bytes()).expect("taken");
            assert!(client.read(&mut some).expect("it begins") > 0);
        }
        drop(client);
        // The connection is closed or reset, and not only silent.
        let ended = loop {
            match asked.read(&mut some) {
                Ok(1..) => {}
                ended => break ended,
            }
        };
        let is_silent = ended.is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(!is_silent, "begun: {begun}");
    }
}

#[test]
fn a_stream_that_is_too_long_is_told_of_in_the_words_of_the_wire() {
    let model = Model {
        strict: false,
        ..Model::window(40)
    };
    let server = Server::start(Script::new().model(model));
    let proxy = Proxy::to(&server.url());
    for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic, Wire::Gemini] {
        for stream in [true, false] {
            let (path, headers) = place(wire, stream);
            let answer = proxy.post(
                path,
                headers,
                &request(wire, stream, &"many words ".repeat(100)),
            );
            let text = answer.text();
            let body = match text.find("response.failed") {
                Some(at) => {
                    let data = text[at..].split_once("data: ").expect("an event").1;
                    let event = Json::parse(data.trim().as_bytes()).expect("JSON");
                    event
                        .get("response")
                        .and_then(|it| it.get("error"))
                        .expect("an error")
                        .bytes()
                        .to_vec()
                }
                None => answer.body.clone(),
            };
            assert!(
                matches!(
                    classify(answer.status, None, &body),
                    ProviderError::TooLong { .. }
                ),
                "{wire} {stream}: {text}"
            );
        }
    }
}

#[test]
fn an_empty_stream_near_the_window_is_asked_for_again_and_then_too_long() {
    let server = Server::start(
        lenient().otherwise(|_| Step::empty().header("content-type", "text/event-stream")),
    );
    let proxy = front::Setup {
        window: Some("1000"),
        ..front::Setup::to(&server.url())
    }
    .start();
    let long = request(Wire::Chat, true, &"many words ".repeat(250));
    let answer = proxy.post("/v1/chat/completions", "", &long);
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert!(
        answer.text().contains("context_length_exceeded"),
        "{}",
        answer.text()
    );
    assert!(server.count() >= 2);
    // Once may be an accident.
    let server = Server::start(
        Script::steps([
            Step::empty().header("content-type", "text/event-stream"),
            Step::say("well"),
        ])
        .model(Model {
            strict: false,
            ..Model::default()
        }),
    );
    let proxy = Proxy::to(&server.url());
    let answer = proxy.post("/v1/chat/completions", "", &request(Wire::Chat, true, "hi"));
    assert!(
        answer.status == 200 && answer.text().contains("well"),
        "{}",
        answer.text()
    );
}

#[test]
fn replies_under_way_end_before_the_server_does() {
    let pause = Duration::from_millis(100);
    let server = Server::start(
        lenient().otherwise(move |_| Step::say("one two three four").in_pieces(4).pausing(pause)),
    );
    let mut proxy = Proxy::to(&server.url());
    let body = request(Wire::Chat, true, "hi");
    let mut stream = proxy.connect();
    let head = head(proxy.address, "/v1/chat/completions", "", body.len());
    stream
        .write_all(&[head.as_bytes(), &body].concat())
        .expect("sent");
    let mut read = vec![0; 4096];
    let count = stream.read(&mut read).expect("it begins");
    read.truncate(count);
    proxy.stop();
    stream.read_to_end(&mut read).expect("it ends");
    let answer = Answer::parse(&read);
    assert!(
        answer.whole && answer.text().ends_with("data: [DONE]\n\n"),
        "{}",
        answer.text()
    );
    let address = proxy.address;
    drop(proxy);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_reply_that_never_ends_does_not_keep_the_server() {
    let server = Server::start(lenient().otherwise(|_| Step::never()));
    let limits = ServerLimits {
        grace: Duration::from_millis(200),
        ..ServerLimits::default()
    };
    let mut proxy = Setup {
        limits,
        ..Setup::to(&server.url())
    }
    .start();
    let body = request(Wire::Chat, true, "hi");
    let mut stream = proxy.connect();
    let head = head(proxy.address, "/v1/chat/completions", "", body.len());
    stream
        .write_all(&[head.as_bytes(), &body].concat())
        .expect("sent");
    let until = Instant::now() + Duration::from_secs(60);
    while server.count() == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    // This comes back, for the reply does not.
    proxy.stop();
    drop(proxy);
}
