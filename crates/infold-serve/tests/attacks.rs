//! Requests that must be refused, and data that must not leave.

mod front;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use front::{Answer, Proxy, Setup, head, place, request};
use infold::Config;
use infold_provider::Secret;
use infold_serve::{Options, ServeError, ServerLimits, Upstreams};
use infold_testkit::{Script, Server, Step};
use infold_wire::{Json, Wire};

fn server() -> Server {
    Server::start(Script::new().otherwise(|_| Step::error(200, "{}")))
}

const TOKEN: &str = "a-token-that-is-long-enough";

#[test]
fn a_name_that_is_made_to_mean_this_machine_is_refused() {
    let (server, names) = (server(), vec!["box.lan".to_owned()]);
    let proxy = Setup {
        names,
        ..Setup::to(&server.url())
    }
    .start();
    let get = |host: &str| {
        proxy
            .ask(&format!("GET /v1/models HTTP/1.1\nhost: {host}"))
            .status
    };
    for ours in [
        "localhost:PORT",
        "LOCALHOST:PORT",
        "127.0.0.1:PORT",
        "[::1]:PORT",
        "127.9.9.9:PORT",
        "box.lan",
        "box.lan:80",
        "localhost.:PORT",
    ] {
        assert_eq!(get(ours), 200, "{ours}");
    }
    let asked = server.count();
    for evil in [
        "evil.example",
        "evil.example:PORT",
        "localhost",
        "localhost:1",
        "127.0.0.1.evil.example:PORT",
        "localhost:PORT@evil.example",
        "evil@localhost:PORT",
        "192.0.2.1:PORT",
        "0.0.0.0:PORT",
        "localhost.evil:PORT",
        "",
    ] {
        assert!(matches!(get(evil), 400 | 421), "{evil}: {}", get(evil));
    }
    let both = "GET /v1/models HTTP/1.1\nhost: localhost:PORT\nhost: evil.example";
    assert_eq!(proxy.ask(both).status, 400);
    assert_eq!(proxy.ask("GET /v1/models HTTP/1.1").status, 400);
    assert_eq!(server.count(), asked);
}

#[test]
fn pages_of_other_sites_are_refused() {
    let server = server();
    let proxy = Proxy::to(&server.url());
    let get = |header: &str| {
        let answer = proxy.ask(&format!(
            "GET /v1/models HTTP/1.1\nhost: localhost:PORT\n{header}"
        ));
        assert!(!answer.head.contains("access-control"), "{}", answer.head);
        answer.status
    };
    for fine in [
        "origin: http://localhost:PORT",
        "origin: http://127.0.0.1:PORT",
        "sec-fetch-site: same-origin",
        "sec-fetch-site: none",
    ] {
        assert_eq!(get(fine), 200, "{fine}");
    }
    let asked = server.count();
    for foreign in [
        "origin: https://evil.example",
        "origin: null",
        "origin: http://localhost:1",
        "origin: http://localhost",
        "origin: file://",
        "origin: http://localhost:PORT.evil.example",
        "origin: http://evil@localhost:PORT",
        "sec-fetch-site: cross-site",
        "sec-fetch-site: same-site",
        "origin: http://localhost:PORT\norigin: https://evil.example",
    ] {
        assert_eq!(get(foreign), 403, "{foreign}");
    }
    // The preflight request of a browser, before it sends the request of a page.
    let preflight = "OPTIONS /v1/messages HTTP/1.1\nhost: localhost:PORT\norigin: https://evil.example\naccess-control-request-method: POST";
    assert_eq!(proxy.ask(preflight).status, 403);
    assert_eq!(server.count(), asked);
}

#[test]
fn nothing_is_passed_on_to_other_places() {
    let (server, elsewhere) = (server(), server());
    let proxy = Proxy::to(&server.url());
    let to = elsewhere.address();
    for (line, status) in [
        (
            format!("GET http://{to}/v1/models HTTP/1.1\nhost: {to}"),
            421,
        ),
        (
            format!("GET http://{to}/v1/models HTTP/1.1\nhost: localhost:PORT"),
            421,
        ),
        (format!("CONNECT {to} HTTP/1.1\nhost: localhost:PORT"), 405),
        (
            "TRACE /v1/models HTTP/1.1\nhost: localhost:PORT".to_owned(),
            405,
        ),
        (
            "GET http://localhost:PORT/v1/models HTTP/1.1\nhost: localhost:PORT".to_owned(),
            200,
        ),
    ] {
        assert_eq!(proxy.ask(&line).status, status, "{line}");
    }
    assert_eq!((server.count(), elsewhere.count()), (1, 0));
}

#[test]
fn no_path_leads_out_of_where_the_provider_is() {
    let server = server();
    let proxy = Proxy::to(&format!("{}/safe/v1", server.url()));
    for path in [
        "/v1/../admin",
        "/v1/%2e%2e/admin",
        "/v1/%2E%2e/admin",
        "/v1/.%2e/admin",
        "/v1/..%2fadmin",
        "/v1/%2e%2e%2fadmin",
        "/v1/%252e%252e/admin",
        "/v1/./x",
        "/v1/x/..",
        "/v1/..\\admin",
        "/v1/..%5cadmin",
        "/v1/%00",
        "/v1/x%0d%0ahost:%20evil",
        "/t/../v1/models",
        "/t/x/../../admin",
        "/t/%2e%2e/v1/models",
    ] {
        let answer = proxy.ask(&format!("GET {path} HTTP/1.1\nhost: localhost:PORT"));
        assert_eq!(answer.status, 400, "{path}");
    }
    assert_eq!(server.count(), 0);
    for (path, found) in [
        ("//evil.example/v1/models", "/safe/evil.example/v1/models"),
        ("/v1//models", "/safe/v1/models"),
        ("/v1/models/a%2Fb", "/safe/v1/models/a%2Fb"),
        ("/v1/@evil.example/x", "/safe/v1/@evil.example/x"),
    ] {
        proxy.ask(&format!("GET {path} HTTP/1.1\nhost: localhost:PORT"));
        assert_eq!(server.last().expect("asked").path, found);
    }
}

#[test]
fn headers_cannot_be_smuggled_in() {
    let server = server();
    let proxy = Proxy::to(&server.url());
    for lines in [
        "GET /v1/models HTTP/1.1\nhost: localhost:PORT\nx-a: b\u{0}c",
        "GET /v1/models HTTP/1.1\nhost: localhost:PORT\nx a: b",
        "GET /v1/models HTTP/1.1\nhost: localhost:PORT\nx-a : b",
        "GET /v1/models HTTP/1.1 x\nhost: localhost:PORT",
        "POST /v1/models HTTP/1.1\nhost: localhost:PORT\ncontent-length: 5\ncontent-length: 6",
        "POST /v1/models HTTP/1.1\nhost: localhost:PORT\ncontent-length: +5",
        "POST /v1/models HTTP/1.1\nhost: localhost:PORT\ntransfer-encoding: chunked, gzip",
    ] {
        assert_eq!(proxy.ask(lines).status, 400, "{lines}");
    }
    let many = "x-many: 1\n".repeat(500);
    assert_eq!(
        proxy
            .ask(&format!(
                "GET /v1/models HTTP/1.1\nhost: localhost:PORT\n{}",
                many.trim_end()
            ))
            .status,
        431
    );
    let long = "x".repeat(100 << 10);
    assert_eq!(
        proxy
            .ask(&format!(
                "GET /v1/models HTTP/1.1\nhost: localhost:PORT\nx-long: {long}"
            ))
            .status,
        431
    );
    assert_eq!(server.count(), 0);
    // Two lengths that disagree: the one in the body counts, and nothing is left over for a second request.
    let port = proxy.address.port();
    let two = format!(
        "POST /v1/embeddings HTTP/1.1\r\nhost: localhost:{port}\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /v1/smuggled HTTP/1.1\r\nhost: localhost:{port}\r\n\r\n"
    );
    let mut stream = proxy.connect();
    stream.write_all(two.as_bytes()).expect("sent");
    stream
        .set_read_timeout(Some(Duration::from_millis(500)))
        .expect("a limit");
    let _ = stream.read_to_end(&mut Vec::new());
    let smuggled = server
        .requests()
        .iter()
        .any(|seen| seen.path.contains("smuggled") && seen.header("transfer-encoding").is_some());
    assert!(!smuggled);
    let name = proxy.ask("POST /v1/chat/completions HTTP/1.1\nhost: localhost:PORT\ncontent-length: 0\nx-infold-task: a%0d%0ab");
    assert_eq!(name.status, 400);
}

#[test]
fn a_body_is_as_large_as_it_may_be_and_no_larger() {
    let server = server();
    let limits = ServerLimits {
        body: 10_000,
        spool: 1_000,
        ..ServerLimits::default()
    };
    let proxy = Setup {
        limits,
        ..Setup::to(&server.url())
    }
    .start();
    for wire in Wire::ALL {
        let (path, headers) = place(wire, false);
        let answer = proxy.post(path, headers, &request(wire, false, &"x".repeat(20_000)));
        assert_eq!(answer.status, 413, "{wire}");
        let body = Json::parse(&answer.body).expect("JSON, in the words of the wire");
        assert!(body.get("error").is_some(), "{wire}");
        // A chunked body, without a declared length.
        let chunk = format!("2710\r\n{}\r\n", "x".repeat(10_000));
        let host = proxy.address;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\n{headers}transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        );
        assert_eq!(
            proxy
                .raw(format!("{head}{chunk}{chunk}0\r\n\r\n").as_bytes())
                .status,
            413,
            "{wire}"
        );
    }
    assert_eq!(server.count(), 0);
    proxy.post("/v1/embeddings", "", &[b'x'; 10_000]);
    let seen = server.last().expect("asked");
    assert_eq!((seen.len, seen.body), (10_000, Some(vec![b'x'; 10_000])));
}

#[test]
fn a_small_body_that_unpacks_to_a_large_one_does_no_harm() {
    let server = server();
    let limits = ServerLimits {
        body: 1 << 20,
        spool: 64 << 10,
        ..ServerLimits::default()
    };
    let proxy = Setup {
        limits,
        ..Setup::to(&server.url())
    }
    .start();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..200 {
        gzip.write_all(&[b' '; 1 << 20]).expect("memory");
    }
    // A frame with a window of 2 MiB, and 200 MiB of blocks that each repeat one byte.
    let mut zstd = b"\x28\xb5\x2f\xfd\x00\x58".to_vec();
    for at in (0..1600).rev() {
        let last = u32::from(at == 0);
        let header = 128 << 10 << 3 | 1 << 1 | last;
        zstd.extend(&header.to_le_bytes()[..3]);
        zstd.push(b' ');
    }
    // A frame with little in it that asks for a window of 128 MiB.
    let window = b"\x28\xb5\x2f\xfd\x00\x88\x09\x00\x00 ".to_vec();
    // 4 MiB of spaces.
    let brotli = b"\x9b\xff\xff\x3f\xf8\x25\x40\xe2\xb1\x40\x20\xf7\xfe\x07".to_vec();
    let gzip = gzip.finish().expect("memory");
    for (coding, bomb) in [
        ("gzip", gzip),
        ("zstd", zstd),
        ("zstd", window),
        ("br", brotli),
    ] {
        // The body is not read, and is passed on unchanged.
        let header = format!("content-encoding: {coding}\r\n");
        let answer = proxy.post("/v1/chat/completions", &header, &bomb);
        assert_eq!(answer.status, 400, "the provider does not unpack it");
        assert_eq!(server.last().expect("asked").len, bomb.len() as u64);
    }
    let metrics = proxy.ask("GET /metrics HTTP/1.1\nhost: localhost:PORT");
    let unread = r#"infold_failures_total{what="unpack"} 4"#;
    assert!(metrics.text().contains(unread), "{}", metrics.text());
}

#[test]
fn slow_bodies_and_slow_headers_are_given_up() {
    let server = server();
    // Long enough that a busy machine sends a request within it.
    let moment = Duration::from_secs(1);
    let limits = ServerLimits {
        body_idle: moment,
        header_time: moment,
        body_time: moment * 4,
        ..ServerLimits::default()
    };
    let proxy = Setup {
        limits,
        ..Setup::to(&server.url())
    }
    .start();
    let own = head(proxy.address, "/infold/api/tasks", "", 100);
    assert_eq!(proxy.raw(format!("{own}{{").as_bytes()).status, 408);
    let head = head(proxy.address, "/v1/messages", "", 100);
    assert_eq!(proxy.raw(format!("{head}{{").as_bytes()).status, 408);
    // A byte now and then is no way to stay.
    let mut stream = proxy.connect();
    stream.write_all(head.as_bytes()).expect("sent");
    let mut other = stream.try_clone().expect("a handle");
    let drip = std::thread::spawn(move || {
        while other.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read);
    assert_eq!(Answer::parse(&read).status, 408);
    drop(stream);
    drip.join().expect("it ends");
    let mut silent = proxy.connect();
    silent.write_all(b"GET / HT").expect("sent");
    silent
        .read_to_end(&mut Vec::new())
        .expect("it is closed before the client gives up");
    assert_eq!(server.count(), 0);
}

#[test]
fn a_redirect_is_neither_followed_nor_passed_on() {
    let elsewhere = server();
    let to = format!("{}/v1/take-the-key", elsewhere.url());
    for status in [301, 302, 303, 307, 308] {
        let step = Step::error(status, "gone").header("location", &to);
        let server = Server::start(Script::new().otherwise(move |_| step.clone()));
        let proxy = Proxy::to(&server.url());
        for wire in Wire::ALL {
            let (path, headers) = place(wire, false);
            let answer = proxy.post(path, headers, &request(wire, false, "hi"));
            assert_eq!(
                (answer.status, answer.header("location")),
                (502, None),
                "{wire} {status}"
            );
            assert!(!answer.text().contains("take-the-key"));
        }
    }
    assert_eq!(elsewhere.count(), 0);
}

#[test]
fn one_client_cannot_have_everything() {
    let server = Server::start(Script::new().otherwise(|_| Step::never()));
    let limits = ServerLimits {
        per_client: 3,
        grace: Duration::from_millis(100),
        ..ServerLimits::default()
    };
    let proxy = Setup {
        limits,
        ..Setup::to(&server.url())
    }
    .start();
    let body = request(Wire::Chat, false, "hi");
    let head = head(proxy.address, "/v1/chat/completions", "", body.len());
    let mut open: Vec<_> = (0..3).map(|_| proxy.connect()).collect();
    for stream in &mut open {
        stream
            .write_all(&[head.as_bytes(), &body].concat())
            .expect("sent");
    }
    let until = Instant::now() + Duration::from_secs(60);
    while server.count() < 3 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(
        proxy.ask("GET / HTTP/1.1\nhost: localhost:PORT").status,
        429
    );
    drop(open);
    while proxy.ask("GET / HTTP/1.1\nhost: localhost:PORT").status != 200 {
        assert!(Instant::now() < until, "those who left still count");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_address_that_others_reach_demands_a_token() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let bind = |ip: Ipv4Addr, token: Option<&str>| {
        let upstreams = Upstreams::new(&Config::default(), &[], None).expect("homes");
        let options = Options {
            address: SocketAddr::new(ip.into(), 0),
            token: token.map(|token| Secret::new(token.to_owned())),
            names: Vec::new(),
            upstreams,
            limits: ServerLimits::default(),
        };
        let conversations = |_: &str| unreachable!("it does not listen");
        let bound = runtime.block_on(infold_serve::Server::bind(options, conversations));
        bound.map(|_| ())
    };
    assert!(matches!(
        bind(Ipv4Addr::UNSPECIFIED, None),
        Err(ServeError::NoToken(_))
    ));
    assert!(matches!(
        bind(Ipv4Addr::LOCALHOST, Some("short")),
        Err(ServeError::ShortToken(_))
    ));
}

#[test]
fn a_token_is_wanted_and_goes_nowhere() {
    let server = server();
    let token = Some(TOKEN.to_owned());
    let proxy = Setup {
        token: token.clone(),
        ..Setup::to(&server.url())
    }
    .start();
    let get = |path: &str, header: &str| {
        proxy
            .ask(&format!(
                "GET {path} HTTP/1.1\nhost: localhost:PORT\n{header}"
            ))
            .status
    };
    for path in ["/v1/models", "/", "/infold/api/tasks", "/metrics"] {
        for wrong in [
            "x-a: b",
            "x-infold-token: no",
            "x-infold-token: a-token-that-is-long-enougH",
            "x-infold-token: ",
        ] {
            assert_eq!(get(path, wrong), 401, "{path} {wrong}");
        }
    }
    // No key is configured, so a client needs that header for its own.
    assert_eq!(
        get("/v1/models", &format!("authorization: Bearer {TOKEN}")),
        401
    );
    assert_eq!(get("/v1/models", &format!("x-infold-token: {TOKEN}")), 200);
    let config = format!(
        "llm:\n  openai:\n    base_url: {}\n    api_key: ${{KEY}}\n",
        server.url()
    );
    let keyed = Setup {
        token,
        config,
        upstreams: Vec::new(),
        ..Setup::to("")
    }
    .start();
    let line =
        format!("GET /v1/models HTTP/1.1\nhost: localhost:PORT\nauthorization: Bearer {TOKEN}");
    assert_eq!(keyed.ask(&line).status, 200);
    for seen in server.requests() {
        assert!(
            !seen.headers.iter().any(|(_, value)| value.contains(TOKEN)),
            "{:?}",
            seen.headers
        );
    }
    assert_eq!(
        server.last().expect("asked").header("authorization"),
        Some("Bearer sk-our-own-key")
    );
}

#[test]
fn keys_that_a_provider_repeats_are_not_kept() {
    let key = "a-key-of-the-clients-own";
    let said = format!(r#"{{"error":{{"message":"no more for {key} and sk-our-own-key"}}}}"#);
    // As an answer, in a stream, in a stream that had begun, and with an error status.
    let begun = r#"data: {"choices":[{"index":0,"delta":{"content":"well"}}]}"#;
    let answers = [
        (200, "application/json", said.clone()),
        (200, "text/event-stream", format!("data: {said}\n\n")),
        (
            200,
            "text/event-stream",
            format!("{begun}\n\ndata: {said}\n\n"),
        ),
        (500, "application/json", said),
    ];
    for (status, kind, body) in answers {
        let stream = kind != "application/json";
        let step = Step::error(status, body.clone()).header("content-type", kind);
        let server = Server::start(Script::new().otherwise(move |_| step.clone()));
        let proxy = Proxy::to(&server.url());
        let (path, _) = place(Wire::Chat, stream);
        let header = format!("authorization: bearer {key}\r\n");
        let answer = proxy.post(path, &header, &request(Wire::Chat, stream, "hi"));
        assert_eq!(answer.text(), body, "the client hears it as it is");
        let until = Instant::now() + Duration::from_secs(60);
        while !proxy.kept().contains("no more for") {
            assert!(
                Instant::now() < until,
                "{status} {kind}: nothing was recorded"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!proxy.kept().contains(key), "{status} {kind}");
    }
}
