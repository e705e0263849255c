//! The proxy forwards requests and replies byte for byte.

mod front;

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use front::{Answer, Proxy, Setup, head, packed, place, post, request};
use infold_testkit::{Gate, Model, Script, Server, Step, hash};
use infold_translate::{stream_reply, write_reply};
use infold_wire::{Reply, Wire};

/// A model that does not check its requests: some of them are odd on purpose.
fn lenient() -> Script {
    Script::new().model(Model {
        strict: false,
        ..Model::default()
    })
}

#[test]
fn bodies_go_through_byte_for_byte_on_every_wire() {
    let server = Server::start(lenient());
    let proxy = Proxy::to(&server.url());
    for wire in Wire::ALL {
        for (stream, size) in [(true, 10), (false, 10), (true, 70_000), (false, 3 << 20)] {
            let body = request(wire, stream, &"words, ".repeat(size / 7));
            let (path, headers) = place(wire, stream);
            let answer = proxy.post(path, headers, &body);
            assert_eq!(answer.status, 200, "{wire} {size}: {}", answer.text());
            let seen = server.last().expect("it was asked");
            assert_eq!(
                (seen.len, seen.hash),
                (body.len() as u64, hash(&body)),
                "{wire} {size}"
            );
            let length = body.len().to_string();
            assert_eq!(seen.header("content-length"), Some(length.as_str()));
            assert_eq!(seen.header("transfer-encoding"), None);
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            assert_eq!((seen.path.as_str(), seen.query.as_str()), (path, query));
        }
    }
}

#[test]
fn replies_come_back_byte_for_byte_on_every_wire() {
    for wire in Wire::ALL {
        for stream in [true, false] {
            let script = || lenient().otherwise(|_| Step::think("hmm", "é🚀 said ".repeat(50)));
            let (direct, behind) = (Server::start(script()), Server::start(script()));
            let proxy = Proxy::to(&behind.url());
            let (path, headers) = place(wire, stream);
            let body = request(wire, stream, "hello");
            let expected = post(direct.address(), path, headers, &body);
            let answer = proxy.post(path, headers, &body);
            assert_eq!(answer.status, expected.status, "{wire}");
            assert!(answer.whole && expected.whole, "{wire} {stream}");
            assert!(answer.body == expected.body, "{wire} {stream}");
            for name in ["content-type", "content-length", "transfer-encoding"] {
                assert_eq!(answer.header(name), expected.header(name), "{wire}");
            }
        }
    }
}

#[test]
fn headers_go_on_unless_they_are_about_one_connection_or_ours() {
    let server = Server::start(lenient());
    let proxy = Proxy::to(&server.url());
    let headers = "anthropic-beta: one\r\nx-first: 1\r\nanthropic-beta: two\r\nauthorization: Bearer sk-client-key-123\r\n\
        accept-encoding: gzip, br\r\nconnection: x-hop, keep-alive\r\nx-hop: no\r\nkeep-alive: timeout=5\r\nte: trailers\r\n\
        proxy-authorization: Basic no\r\nproxy-connection: close\r\nupgrade: h2c\r\nx-infold-task: mine\r\nx-infold-more: no\r\nuser-agent: me/1\r\n";
    let body = request(Wire::Chat, false, "hello");
    let answer = proxy.post("/v1/chat/completions", headers, &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = server.last().expect("it was asked");
    let named = |name: &str| -> Vec<&str> {
        let all = seen.headers.iter().filter(|(key, _)| key == name);
        all.map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(named("anthropic-beta"), ["one", "two"]);
    assert_eq!(named("authorization"), ["Bearer sk-client-key-123"]);
    assert_eq!(named("user-agent"), ["me/1"]);
    assert_eq!(named("accept-encoding"), ["identity"]);
    assert_eq!(named("host"), [server.address().to_string()]);
    for gone in [
        "x-hop",
        "keep-alive",
        "te",
        "proxy-authorization",
        "proxy-connection",
        "upgrade",
        "x-infold-task",
        "x-infold-more",
        "connection",
    ] {
        assert_eq!(named(gone), [""; 0], "{gone}");
    }
    let place = |name: &str| seen.headers.iter().position(|(key, _)| key == name);
    assert!(place("anthropic-beta") < place("x-first") && place("x-first") < place("user-agent"));
}

#[test]
fn headers_come_back_unless_they_are_about_one_connection() {
    let step = Step::error(200, "{\"data\":[]}")
        .header("x-request-id", "7")
        .header("set-cookie", "a=1")
        .header("set-cookie", "b=2")
        .header("connection", "x-hop")
        .header("x-hop", "no")
        .header("access-control-allow-origin", "*")
        .header("alt-svc", "h3=\":443\"")
        .header("x-infold-task", "forged");
    let server = Server::start(Script::new().otherwise(move |_| step.clone()));
    let proxy = Proxy::to(&server.url());
    let answer = proxy.post("/v1/chat/completions", "", &request(Wire::Chat, false, "x"));
    assert_eq!(answer.header("x-request-id"), Some("7"));
    assert_eq!(answer.head.matches("set-cookie").count(), 2);
    for gone in ["x-hop", "access-control-allow-origin", "alt-svc"] {
        assert_eq!(answer.header(gone), None, "{gone}");
    }
    assert_ne!(answer.header("x-infold-task"), Some("forged"));
}

#[test]
fn a_websocket_is_refused_so_that_the_client_falls_back_at_once() {
    let server = Server::start(lenient());
    let proxy = Proxy::to(&server.url());
    for path in ["/v1/responses", "/t/mine/v1/responses", "/v1/realtime"] {
        let answer = proxy.ask(&format!(
            "GET {path} HTTP/1.1\nhost: 127.0.0.1:PORT\nupgrade: WebSocket\nsec-websocket-version: 13\nsec-websocket-key: fbpjrD6GCtACFO1WAZANfw=="
        ));
        assert_eq!(answer.status, 426, "{path}: {}", answer.text());
        assert_eq!(answer.header("upgrade"), Some("HTTP/1.1"), "{path}");
        assert!(
            answer.whole && answer.text().contains("plain HTTP"),
            "{path}"
        );
    }
    assert_eq!(server.count(), 0);
    let answer = proxy.post(
        "/v1/responses",
        "",
        &request(Wire::Responses, false, "hello"),
    );
    assert_eq!(answer.status, 200);
}

#[test]
fn a_packed_request_is_recorded_and_goes_on_packed() {
    let server = Server::start(lenient());
    for (coding, body) in packed(&request(Wire::Chat, false, "hello there")) {
        let proxy = Proxy::to(&server.url());
        let header = format!("content-encoding: {coding}\r\n");
        proxy.post("/v1/chat/completions", &header, &body);
        let seen = server.last().expect("it was asked");
        assert_eq!(seen.hash, hash(&body), "{coding}");
        assert_eq!(seen.header("content-encoding"), Some(coding));
        assert!(proxy.kept().contains("hello there"), "{coding}");
    }
}

#[test]
fn a_packed_reply_comes_back_packed_and_is_recorded_where_it_can_be_read() {
    let reply = Reply {
        messages: vec![br#"{"role":"assistant","content":"so it is packed"}"#.to_vec()],
        ..Reply::default()
    };
    for stream in [false, true] {
        let (kind, plain) = if stream {
            (
                "text/event-stream",
                stream_reply(Wire::Chat, &reply, 4).concat(),
            )
        } else {
            ("application/json", write_reply(Wire::Chat, &reply))
        };
        for (coding, body) in packed(&plain) {
            let step = Step::error(200, body.clone())
                .header("content-type", kind)
                .header("content-encoding", coding);
            let server = Server::start(lenient().otherwise(move |_| step.clone()));
            let mut proxy = Proxy::to(&server.url());
            let asked = request(Wire::Chat, stream, "x");
            let answer = proxy.post("/v1/chat/completions", "", &asked);
            assert_eq!(answer.header("content-encoding"), Some(coding));
            assert_eq!((answer.status, answer.body), (200, body), "{coding}");
            proxy.finish();
            // Zstd is decoded at its end, which is too late for a body that is only forwarded.
            let is_recorded = proxy.kept().contains("so it is packed");
            assert_eq!(is_recorded, coding != "zstd", "{coding} {stream}");
        }
    }
}

#[test]
fn a_packed_error_is_understood_and_comes_back_packed() {
    let error = br#"{"error":{"message":"no such model: m","type":"invalid_request_error"}}"#;
    for (coding, body) in packed(error) {
        let step = Step::error(404, body.clone()).header("content-encoding", coding);
        let server = Server::start(lenient().otherwise(move |_| step.clone()));
        let mut proxy = Proxy::to(&server.url());
        let answer = proxy.post("/v1/chat/completions", "", &request(Wire::Chat, false, "x"));
        assert_eq!((answer.status, answer.body), (404, body), "{coding}");
        // The proxy writes its pending records when it ends.
        proxy.finish();
        assert!(proxy.kept().contains("no such model: m"), "{coding}");
    }
}

#[test]
fn calls_are_recognised_behind_the_prefixes_of_gateways() {
    let server = Server::start(lenient());
    let proxy = Proxy::to(&server.url());
    for (wire, path) in [
        (Wire::Chat, "/openai/v1/chat/completions"),
        (Wire::Chat, "/api/v1/chat/completions"),
        (
            Wire::Chat,
            "/openai/deployments/gpt-4o/chat/completions?api-version=2025-04-01-preview",
        ),
        (Wire::Chat, "/v1beta/openai/chat/completions"),
        (Wire::Chat, "/compatible-mode/v1/chat/completions"),
        (Wire::Chat, "/inference/v1/chat/completions"),
        (Wire::Chat, "/api/chat/completions"),
        (Wire::Responses, "/openai/v1/responses"),
        (Wire::Responses, "/openai/responses?api-version=preview"),
        (Wire::Anthropic, "/anthropic/v1/messages"),
        (Wire::Anthropic, "/some/prefix/v1/messages?beta=true"),
        (
            Wire::Gemini,
            "/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent",
        ),
    ] {
        for task in ["", "/t/mine"] {
            let (_, headers) = place(wire, false);
            let body = request(wire, false, path);
            let answer = proxy.post(&format!("{task}{path}"), headers, &body);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            assert!(answer.header("x-infold-task").is_some(), "{task}{path}");
            let seen = server.last().expect("it was asked");
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            assert_eq!((seen.path.as_str(), seen.query.as_str()), (path, query));
        }
    }
    // A message of a thread is no call of a model.
    let threads = "/v1/threads/thread_1/messages";
    let answer = proxy.post(threads, "", br#"{"role":"user","content":"hi"}"#);
    assert_eq!(answer.header("x-infold-task"), None);
    assert_eq!(server.last().expect("asked").path, threads);
}

#[test]
fn a_client_may_have_the_whole_path_of_the_base_in_its_own() {
    let server = Server::start(lenient());
    let proxy = Proxy::to(&format!("{}/api/v1", server.url()));
    for path in ["/api/v1/chat/completions", "/v1/chat/completions"] {
        let answer = proxy.post(path, "", &request(Wire::Chat, false, path));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let seen = server.last().expect("it was asked");
        assert_eq!(seen.path, "/api/v1/chat/completions");
    }
}

#[test]
fn our_key_is_sent_where_the_client_has_none() {
    let server = Server::start(lenient());
    let base = server.url();
    let config = format!(
        "llm:\n  openai:\n    base_url: {base}\n    api_key: ${{KEY}}\n  anthropic:\n    base_url: {base}\n    api_key: ${{KEY}}\n  gemini:\n    base_url: {base}\n    api_key: ${{KEY}}\n"
    );
    let proxy = Setup {
        config,
        upstreams: Vec::new(),
        ..Setup::to("")
    }
    .start();
    let sent = |wire: Wire, headers: &str| {
        let (path, usual) = place(wire, false);
        let answer = proxy.post(
            path,
            &format!("{usual}{headers}"),
            &request(wire, false, "hi"),
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        let seen = server.last().expect("it was asked");
        let keys = ["authorization", "x-api-key", "x-goog-api-key"];
        let found = keys
            .into_iter()
            .filter_map(|name| Some(format!("{name}: {}", seen.header(name)?)));
        found.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(sent(Wire::Chat, ""), "authorization: Bearer sk-our-own-key");
    assert_eq!(
        sent(Wire::Chat, "authorization: Bearer x\r\n"),
        "authorization: Bearer sk-our-own-key"
    );
    assert_eq!(
        sent(Wire::Chat, "authorization: Bearer sk-of-the-client\r\n"),
        "authorization: Bearer sk-of-the-client"
    );
    assert_eq!(sent(Wire::Anthropic, ""), "x-api-key: sk-our-own-key");
    assert_eq!(
        sent(
            Wire::Anthropic,
            "authorization: Bearer sk-not-needed-no\r\n"
        ),
        "authorization: Bearer sk-not-needed-no"
    );
    assert_eq!(
        sent(Wire::Anthropic, "authorization: Bearer dummy\r\n"),
        "x-api-key: sk-our-own-key"
    );
    assert_eq!(
        sent(Wire::Gemini, "x-goog-api-key: x\r\n"),
        "x-goog-api-key: sk-our-own-key"
    );
}

#[test]
fn bases_are_found_with_and_without_a_version_on_both_sides() {
    let server = Server::start(lenient());
    for base in [
        server.url(),
        format!("{}/v1", server.url()),
        format!("{}/v1/", server.url()),
    ] {
        let proxy = Proxy::to(&base);
        let body = request(Wire::Chat, false, "hi");
        for path in [
            "/v1/chat/completions",
            "/chat/completions",
            "/v1/v1/chat/completions",
            "//v1//chat/completions",
            "/t/my%20task/v1/chat/completions",
            "/t/x/chat/completions",
        ] {
            assert_eq!(proxy.post(path, "", &body).status, 200, "{base} {path}");
            assert_eq!(
                server.last().expect("asked").path,
                "/v1/chat/completions",
                "{base} {path}"
            );
        }
        for version in ["v1", "v1beta"] {
            let path = format!("/{version}/models/g:generateContent");
            assert_eq!(
                proxy
                    .post(&path, "", &request(Wire::Gemini, false, "hi"))
                    .status,
                200
            );
            assert_eq!(server.last().expect("asked").path, path, "{base}");
        }
        assert_eq!(
            proxy
                .post("/t/x/api/chat", "", &request(Wire::Ollama, false, "hi"))
                .status,
            200
        );
        assert_eq!(server.last().expect("asked").path, "/api/chat", "{base}");
    }
}

#[test]
fn a_base_may_have_another_version_and_a_query() {
    let server = Server::start(Script::new().otherwise(|_| Step::error(200, "{}")));
    let proxy = Proxy::to(&format!("{}/api/paas/v4?api-version=7", server.url()));
    proxy.post(
        "/v1/chat/completions?x=1",
        "",
        &request(Wire::Chat, false, "hi"),
    );
    let seen = server.last().expect("asked");
    assert_eq!(
        (seen.path.as_str(), seen.query.as_str()),
        ("/api/paas/v4/chat/completions", "api-version=7&x=1")
    );
}

#[test]
fn everything_else_is_passed_to_whom_it_is_for() {
    let apis = ["openai", "responses", "anthropic", "gemini", "ollama"];
    let servers = apis.map(|_| Server::start(lenient()));
    let upstreams = apis.iter().zip(&servers);
    let upstreams = upstreams.map(|(api, server)| format!("{api}={}", server.url()));
    let proxy = Setup {
        upstreams: upstreams.collect(),
        ..Setup::to("")
    }
    .start();
    for (api, line) in [
        ("openai", "GET /v1/models"),
        ("anthropic", "GET /v1/models\nanthropic-version: 2023-06-01"),
        ("anthropic", "GET /v1/models\nx-api-key: k"),
        ("gemini", "GET /v1/models\nx-goog-api-key: k"),
        ("gemini", "GET /v1beta/models?pageSize=9"),
        ("openai", "GET /v1/models/some%2Fmodel"),
        ("responses", "DELETE /v1/responses/resp_1"),
        ("anthropic", "GET /v1/messages/batches"),
        ("ollama", "GET /api/tags"),
        ("ollama", "GET /api/version"),
        (
            "anthropic",
            "POST /api/event_logging/batch\nanthropic-version: 1",
        ),
        ("openai", "GET /v1/files"),
        ("anthropic", "POST /v1/messages/count_tokens"),
        ("gemini", "POST /v1/models/g:countTokens"),
        ("ollama", "POST /api/generate"),
        ("ollama", "POST /api/show"),
        ("openai", "POST /v1/embeddings"),
    ] {
        let (first, more) = line.split_once('\n').unwrap_or((line, "x-more: no"));
        let lines = format!("{first} HTTP/1.1\nhost: localhost:PORT\ncontent-length: 0\n{more}");
        let counts = || servers.each_ref().map(Server::count);
        let before = counts();
        proxy.ask(&lines);
        let asked = apis.iter().zip(before).zip(counts());
        let asked = asked.filter(|((_, before), after)| before != after);
        let asked: Vec<&str> = asked.map(|((api, _), _)| *api).collect();
        assert_eq!(asked, [api], "{line}");
        let at = apis.iter().position(|one| *one == api);
        let seen = servers[at.expect("it is one of them")]
            .last()
            .expect("asked");
        let target = format!("{} {}?{}", seen.method, seen.path, seen.query);
        assert_eq!(target.trim_end_matches('?'), first);
    }
}

#[test]
fn the_root_says_that_somebody_is_there() {
    let proxy = Proxy::to("http://127.0.0.1:9");
    for line in [
        "GET / HTTP/1.1",
        "HEAD / HTTP/1.1",
        "GET /t/x/ HTTP/1.1",
        "HEAD /t/x HTTP/1.1",
    ] {
        let answer = proxy.ask(&format!("{line}\nhost: localhost:PORT"));
        assert_eq!(answer.status, 200, "{line}");
        assert_eq!(answer.body.is_empty(), line.starts_with("HEAD"), "{line}");
    }
}

#[test]
fn the_first_bytes_are_not_kept_waiting() {
    let check = |wire: Wire| {
        // On Responses two announcements are held back until the next event.
        let events = if wire == Wire::Responses { 3 } else { 1 };
        let gate = Gate::closed();
        let rest = gate.clone();
        let server = Server::start(lenient().otherwise(move |_| {
            Step::say("one two three four")
                .in_pieces(4)
                .gated(events, &rest)
        }));
        let proxy = Proxy::to(&server.url());
        let body = request(wire, true, "hi");
        let (path, headers) = place(wire, true);
        let mut stream = proxy.connect();
        stream
            .write_all(head(proxy.address, path, headers, body.len()).as_bytes())
            .expect("sent");
        stream.write_all(&body).expect("sent");
        let mut some = [0; 4096];
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).contains("\r\n\r\n") || !read.ends_with(b"\r\n") {
            let count = stream.read(&mut some).expect("it begins");
            read.extend_from_slice(&some[..count]);
        }
        gate.open();
        stream.read_to_end(&mut read).expect("it ends");
        assert!(Answer::parse(&read).whole, "{wire}");
    };
    std::thread::scope(|scope| {
        for wire in Wire::ALL {
            let check = &check;
            scope.spawn(move || check(wire));
        }
    });
}

#[test]
fn two_hundred_streams_run_side_by_side() {
    let gate = Gate::closed();
    let rest = gate.clone();
    let server = Server::start(lenient().otherwise(move |_| {
        Step::say("one two three four five six")
            .in_pieces(4)
            .gated(2, &rest)
    }));
    let proxy = Proxy::to(&server.url());
    std::thread::scope(|scope| {
        for number in 0..200 {
            let proxy = &proxy;
            scope.spawn(move || {
                let body = request(Wire::Chat, true, &format!("number {number}"));
                let answer = proxy.post("/v1/chat/completions", "", &body);
                assert_eq!((answer.status, answer.whole), (200, true));
                assert!(answer.text().ends_with("data: [DONE]\n\n"));
            });
        }
        // No stream ends before the last one has begun.
        let until = Instant::now() + Duration::from_secs(60);
        while server.count() < 200 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let begun = server.count();
        gate.open();
        assert_eq!(begun, 200);
    });
}

#[test]
fn a_connection_is_used_again() {
    let server = Server::start(lenient());
    let proxy = Proxy::to(&server.url());
    let mut stream = proxy.connect();
    let body = request(Wire::Chat, false, "hi");
    for _ in 0..3 {
        let head = head(proxy.address, "/v1/chat/completions", "", body.len());
        let head = head.replace("connection: close\r\n", "");
        stream
            .write_all(&[head.as_bytes(), &body].concat())
            .expect("sent");
        let mut read = Vec::new();
        let mut some = [0; 4096];
        while !Answer::parse(&read).whole {
            let count = stream.read(&mut some).expect("an answer");
            assert!(count > 0);
            read.extend_from_slice(&some[..count]);
        }
    }
    assert_eq!(server.count(), 3);
}

#[test]
fn what_is_ours_is_found_behind_a_name_too() {
    let server = Server::start(Script::new());
    let proxy = Proxy::to(&server.url());
    for path in [
        "/healthz",
        "//healthz",
        "/t/mine/healthz",
        "/t/mine/metrics",
        "/t/mine/infold/api/tasks?limit=1",
    ] {
        let answer = proxy.ask(&format!("GET {path} HTTP/1.1\nhost: localhost:PORT"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert_eq!(server.count(), 0);
}
