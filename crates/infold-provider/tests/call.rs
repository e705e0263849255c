//! Calls, against servers on loopback that behave like providers.

mod server;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use infold_provider::{
    CallError, CallEvent, CallReply, Client, Endpoint, ListedModel, RequestBody, RetryPolicy,
    Secret,
};
use infold_wire::provider_error::{ProviderError, RefusalCause};
use infold_wire::{Json, ReplyDelta};
use server::{Act, Server, hash_of};

const HASTE: RetryPolicy = RetryPolicy {
    deadline: Duration::from_secs(120),
    attempts: 4,
    first_wait: Duration::from_millis(4),
    longest_wait: Duration::from_millis(20),
    idle: Duration::from_secs(60),
};

/// A whole answer with these headers.
fn answer(status: u16, headers: &str, body: &str) -> Act {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n");
    Act::Say(vec![format!("{head}{headers}\r\n{body}")], Duration::ZERO)
}

/// A stream of chat chunks, ended or cut.
fn stream(words: &[&str], end: &str) -> Vec<String> {
    let mut pieces = vec![STREAM_HEAD.to_owned()];
    pieces.extend(words.iter().map(|word| {
        format!("data: {{\"id\":\"c\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n")
    }));
    pieces.push(end.to_owned());
    pieces
}

const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";
const END: &str = "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn said(words: &[&str]) -> Act {
    Act::Say(stream(words, END), Duration::ZERO)
}

struct Outcome {
    result: Result<CallReply, CallError>,
    heard: String,
    waits: Vec<Duration>,
    took: Duration,
}

impl Outcome {
    fn trouble(&self) -> &ProviderError {
        &self.error().trouble
    }

    fn error(&self) -> &CallError {
        self.result.as_ref().expect_err("an error")
    }

    fn text(&self) -> String {
        let called = self.result.as_ref().expect("a reply");
        let message = Json::parse(&called.reply.messages[0]).expect("a message");
        let content = message.get("content").and_then(Json::text);
        content.expect("a text").into_owned()
    }
}

async fn send(server: &Server, patience: RetryPolicy) -> Outcome {
    let to = Endpoint::new("test", "openai", Some(&server.url), None).expect("an endpoint");
    call(&to, RequestBody::Bytes(b"{}".to_vec()), true, patience).await
}

async fn call(
    to: &Endpoint,
    body: RequestBody<'_>,
    stream: bool,
    patience: RetryPolicy,
) -> Outcome {
    let client = Client::new(patience).expect("a client");
    let (mut heard, mut waits) = (String::new(), Vec::new());
    let start = Instant::now();
    let result = client
        .send(to, "m", body, stream, &mut |event| match event {
            CallEvent::Delta(ReplyDelta::Text(text)) => heard.push_str(&text),
            CallEvent::Delta(_) | CallEvent::Sent { .. } => {}
            CallEvent::Retrying { wait, attempt, .. } => {
                heard.push_str(&format!("<{attempt}>"));
                waits.push(wait);
            }
            CallEvent::Discarded => heard.push_str("<again>"),
        })
        .await;
    let took = start.elapsed();
    Outcome {
        result,
        heard,
        waits,
        took,
    }
}

fn unexplained(status: u16) -> ProviderError {
    ProviderError::Unexplained { status }
}

#[tokio::test]
async fn a_reply_is_heard_and_returned() {
    let server = Server::new(vec![said(&["Hello", " you"])]).await;
    let outcome = send(&server, HASTE).await;
    assert_eq!(outcome.heard, "Hello you");
    assert_eq!(outcome.text(), "Hello you");
    assert_eq!(outcome.result.unwrap().requests, 1);
    let head = &server.seen()[0].head;
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1\r\n"),
        "{head}"
    );
    assert!(head.contains("user-agent: infold/"), "{head}");
    assert!(
        head.contains("content-type: application/json\r\n"),
        "{head}"
    );
    assert!(!head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn a_file_is_sent_as_it_is_with_its_length() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("request.json");
    for size in [0usize, 1, (512 << 10) - 1, 512 << 10, (3 << 20) + 17] {
        let bytes: Vec<u8> = (0..size).map(|at| ((at * at) >> 7) as u8).collect();
        std::fs::write(&path, bytes).unwrap();
        let busy = answer(503, "", "");
        let server = Server::new(vec![busy, said(&["ok"])]).await;
        let to = Endpoint::new("test", "openai", Some(&server.url), None).unwrap();
        let outcome = call(&to, RequestBody::File(&path), true, HASTE).await;
        assert_eq!(outcome.text(), "ok");
        // Again from the start, each time.
        for seen in server.seen() {
            assert_eq!((seen.bytes, seen.hash), (size as u64, hash_of(&path)));
            let length = format!("content-length: {size}\r\n");
            assert!(size == 0 || seen.head.contains(&length), "{}", seen.head);
            assert!(!seen.head.contains("transfer-encoding"), "{}", seen.head);
        }
        assert_eq!(server.seen().len(), 2);
    }
}

#[tokio::test]
async fn each_api_has_its_own_headers() {
    for (api, lines) in [
        ("openai", &["authorization: bearer k-1\r\n"][..]),
        ("responses", &["authorization: bearer k-1\r\n"]),
        (
            "anthropic",
            &["x-api-key: k-1\r\n", "anthropic-version: 2023-06-01\r\n"],
        ),
        ("gemini", &["x-goog-api-key: k-1\r\n"]),
        ("ollama", &["authorization: bearer k-1\r\n"]),
    ] {
        let server = Server::new(vec![answer(401, "", "")]).await;
        let key = Some(Secret::new(" k-1\n".to_owned()));
        let to = Endpoint::new("test", api, Some(&server.url), key).unwrap();
        let outcome = call(&to, RequestBody::Bytes(Vec::new()), true, HASTE).await;
        assert_eq!(
            outcome.trouble(),
            &ProviderError::Refused(RefusalCause::Key)
        );
        let head = &server.seen()[0].head;
        assert!(lines.iter().all(|line| head.contains(line)), "{head}");
        assert_eq!(head.matches("k-1").count(), 1, "{head}");
    }
}

#[tokio::test]
async fn a_busy_provider_is_asked_again() {
    let busy = answer(503, "", "{\"error\":{\"message\":\"Loading model\"}}");
    let acts = vec![busy.clone(), answer(429, "", ""), busy, said(&["ok"])];
    let server = Server::new(acts).await;
    let outcome = send(&server, HASTE).await;
    assert_eq!(outcome.heard, "<1><2><3>ok");
    assert_eq!(outcome.result.unwrap().requests, 4);
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn nobody_is_asked_more_often_than_patience_allows() {
    let server = Server::new(vec![answer(529, "", "")]).await;
    let outcome = send(&server, HASTE).await;
    assert_eq!(outcome.trouble(), &ProviderError::Busy { after: None });
    assert_eq!((outcome.error().requests, server.seen().len()), (4, 4));
    assert_eq!(outcome.waits.len(), 3);
}

#[tokio::test]
async fn what_a_person_must_change_is_said_at_once() {
    for (status, body, trouble) in [
        (400, "", unexplained(400)),
        (413, "", unexplained(413)),
        (401, "", ProviderError::Refused(RefusalCause::Key)),
        (400, "roles must alternate", ProviderError::AlternateRoles),
        (400, "no", ProviderError::Refused(RefusalCause::Request)),
    ] {
        let server = Server::new(vec![answer(status, "", body)]).await;
        let outcome = send(&server, HASTE).await;
        assert_eq!(outcome.trouble(), &trouble);
        assert_eq!((outcome.error().requests, server.seen().len()), (1, 1));
        assert_eq!(outcome.error().status, Some(status));
    }
}

#[tokio::test]
async fn a_provider_says_how_long_to_wait() {
    let acts = vec![answer(429, "retry-after-ms: 250\r\n", ""), said(&["ok"])];
    let outcome = send(&Server::new(acts).await, HASTE).await;
    assert_eq!(outcome.text(), "ok");
    assert!(
        outcome.took >= Duration::from_millis(250),
        "{:?}",
        outcome.took
    );
}

#[tokio::test]
async fn a_wait_that_is_longer_than_all_patience_is_not_begun() {
    // The second one is further away than any clock goes.
    for seconds in [3600, 10_000_000_000_000_000_000] {
        let header = format!("retry-after: {seconds}\r\n");
        let server = Server::new(vec![answer(429, &header, "")]).await;
        let outcome = send(&server, HASTE).await;
        let after = Some(Duration::from_secs(seconds));
        assert_eq!(outcome.trouble(), &ProviderError::Busy { after });
        assert_eq!((outcome.heard.as_str(), server.seen().len()), ("", 1));
    }
}

#[tokio::test]
async fn a_silent_provider_is_left_at_the_deadline() {
    let patience = RetryPolicy {
        deadline: Duration::from_millis(300),
        ..HASTE
    };
    for act in [Act::Hang(Vec::new(), Duration::ZERO), Act::Deaf] {
        let server = Server::new(vec![act]).await;
        let outcome = send(&server, patience).await;
        assert_eq!(outcome.trouble(), &ProviderError::Broken);
        assert_eq!(outcome.error().requests, 1);
        assert!(outcome.took >= patience.deadline, "{:?}", outcome.took);
    }
}

#[tokio::test]
async fn a_model_may_think_longer_than_a_reply_may_pause() {
    let idle = Duration::from_millis(100);
    let mut pieces = stream(&["ok"], "");
    pieces.insert(0, String::new());
    let server = Server::new(vec![Act::Hang(pieces, Duration::from_millis(200))]).await;
    // Two pauses before the first word; the one behind it is too long.
    let outcome = send(
        &server,
        RetryPolicy {
            idle,
            attempts: 1,
            ..HASTE
        },
    )
    .await;
    assert_eq!(outcome.heard, "ok<again>");
    assert_eq!(outcome.trouble(), &ProviderError::Broken);
    assert!(
        outcome.error().text.contains("was silent for 0.1 s"),
        "{}",
        outcome.error()
    );
}

#[tokio::test]
async fn what_only_keeps_a_connection_open_does_so_until_the_deadline() {
    let patience = RetryPolicy {
        deadline: Duration::from_secs(6),
        idle: Duration::from_secs(2),
        attempts: 1,
        ..HASTE
    };
    let pause = Duration::from_millis(200);
    let comments = |start: Vec<String>, times: usize, end: &str| {
        let mut pieces = start;
        pieces.extend(std::iter::repeat_n(": processing\n\n".to_owned(), times));
        pieces.push(end.to_owned());
        Act::Say(pieces, pause)
    };
    let check = async |start: Vec<String>| {
        let server = Server::new(vec![comments(start.clone(), 100, END)]).await;
        let outcome = send(&server, patience).await;
        assert_eq!(outcome.trouble(), &ProviderError::Broken);
        assert!(
            outcome.error().text.contains("was silent"),
            "{}",
            outcome.error()
        );
        let least = patience.deadline - pause;
        assert!(outcome.took >= least, "{:?}", outcome.took);
        // Longer than nothing at all may come, and in time.
        let end = stream(&["lo"], END)[1..].concat();
        let server = Server::new(vec![comments(start, 12, &end)]).await;
        assert!(send(&server, patience).await.text().ends_with("lo"));
    };
    // Before the reply begins, and within it.
    tokio::join!(check(stream(&[], "")), check(stream(&["Hel"], "")));
}

#[tokio::test]
async fn a_reply_that_breaks_is_asked_for_again_and_does_not_count() {
    let cut = Act::Say(stream(&["Hel"], ""), Duration::ZERO);
    let garbage = Act::Say(
        stream(&["Hi"], "data: {\"choices\":[{]}\n\n"),
        Duration::ZERO,
    );
    let chunked = STREAM_HEAD.replace(
        "text/event-stream",
        "text/event-stream\r\ntransfer-encoding: chunked",
    );
    let torn = Act::Say(vec![chunked, "4\r\nda".to_owned()], Duration::ZERO);
    let server = Server::new(vec![cut, garbage, torn, said(&["Hello"])]).await;
    let outcome = send(&server, HASTE).await;
    assert_eq!(outcome.heard, "Hel<again><1>Hi<again><2><3>Hello");
    assert_eq!(outcome.text(), "Hello");
    assert_eq!(outcome.result.unwrap().requests, 4);
}

#[tokio::test]
async fn an_error_within_a_stream_is_sorted_like_any_other() {
    let failed = |body: &str| {
        Act::Say(
            stream(&["Hel"], &format!("data: {body}\n\n")),
            Duration::ZERO,
        )
    };
    let busy = failed(r#"{"error":{"message":"Overloaded","code":503}}"#);
    let long = failed(
        r#"{"error":{"message":"request (9 tokens) exceeds the available context size (7 tokens)","type":"exceed_context_size_error"}}"#,
    );
    let server = Server::new(vec![busy, long]).await;
    let outcome = send(&server, HASTE).await;
    assert_eq!(outcome.heard, "Hel<again><1>Hel<again>");
    let (tokens, limit) = (Some(9), Some(7));
    assert_eq!(outcome.trouble(), &ProviderError::TooLong { tokens, limit });
}

#[tokio::test]
async fn a_complete_reply_counts_however_the_connection_ends() {
    let head = STREAM_HEAD.replace("\r\n\r\n", "\r\ncontent-length: 99999\r\n\r\n");
    let mut pieces = stream(&["ok"], END);
    pieces[0] = head;
    let server = Server::new(vec![Act::Say(pieces, Duration::ZERO)]).await;
    let outcome = send(&server, HASTE).await;
    assert_eq!((outcome.text().as_str(), server.seen().len()), ("ok", 1));
}

#[tokio::test]
async fn an_empty_stream_is_an_error_and_two_mean_too_long() {
    let empty = || Act::Say(vec![STREAM_HEAD.to_owned()], Duration::ZERO);
    let once = send(&Server::new(vec![empty(), said(&["ok"])]).await, HASTE).await;
    assert_eq!(once.text(), "ok");
    let between = vec![empty(), answer(503, "", ""), empty(), said(&["ok"])];
    assert_eq!(send(&Server::new(between).await, HASTE).await.text(), "ok");
    let server = Server::new(vec![empty()]).await;
    let twice = send(&server, HASTE).await;
    assert_eq!(twice.trouble(), &unexplained(200));
    assert_eq!(server.seen().len(), 2);
    // Only for streams, and only on the wire of the known server.
    let to = Endpoint::new("test", "openai", Some(&server.url), None).unwrap();
    let whole = call(&to, RequestBody::Bytes(Vec::new()), false, HASTE).await;
    assert_eq!(whole.trouble(), &ProviderError::Broken);
    let to = Endpoint::new("test", "anthropic", Some(&server.url), None).unwrap();
    let other = call(&to, RequestBody::Bytes(Vec::new()), true, HASTE).await;
    assert_eq!(other.trouble(), &ProviderError::Broken);
}

#[tokio::test]
async fn no_key_is_repeated() {
    let canary = "canary-7f3e9a51";
    let body = format!(
        "{{\"error\":{{\"message\":\"Incorrect API key {canary} (sk-proj-abcdefgh, {canary})\"}}}}"
    );
    let places = [
        (answer(401, "", &body), 401),
        (
            answer(
                302,
                &format!("location: http://u:{canary}@127.0.0.1/x?key={canary}\r\n"),
                "",
            ),
            302,
        ),
        (
            Act::Say(stream(&[], &format!("data: {body}\n\n")), Duration::ZERO),
            200,
        ),
        (
            Act::Say(stream(&[], &format!("data: {canary}\n\n")), Duration::ZERO),
            200,
        ),
    ];
    for (act, status) in places {
        let server = Server::new(vec![act]).await;
        let base = server
            .url
            .replace("http://", &format!("http://me:{canary}@"))
            + &format!("/v1?token={canary}");
        let key = Secret::new(canary.to_owned());
        let to = Endpoint::new("mine", "openai", Some(&base), Some(key)).unwrap();
        let outcome = call(&to, RequestBody::Bytes(Vec::new()), true, HASTE).await;
        let error = outcome.error();
        assert_eq!(error.status, Some(status));
        let texts = format!("{error} {error:?} {to:?} {}", to.url("m", true));
        assert!(!texts.contains(canary), "{texts}");
        assert!(!texts.contains("abcdefgh"), "{texts}");
        let place = format!("mine ({}/v1/chat/completions)", server.url);
        assert!(error.text.starts_with(&place), "{error}");
        assert!(server.seen()[0].head.contains(&format!("?token={canary}")));
    }
}

#[tokio::test]
async fn nothing_is_sent_on_to_another_address() {
    let other = Server::new(vec![said(&["no"])]).await;
    let location = format!("location: {}/v1/chat/completions\r\n", other.url);
    for status in [301, 302, 307, 308] {
        let server = Server::new(vec![answer(status, &location, "")]).await;
        let outcome = send(&server, HASTE).await;
        assert_eq!(
            outcome.trouble(),
            &ProviderError::Refused(RefusalCause::Address)
        );
        let moved = format!("it moved to {}/v1/chat/completions", other.url);
        assert!(outcome.error().text.contains(&moved), "{}", outcome.error());
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn an_answer_before_the_request_is_all_sent_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("request.json");
    std::fs::File::create(&path)
        .unwrap()
        .set_len(20 << 20)
        .unwrap();
    let text = "HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    for act in [Act::Early(text.to_owned()), Act::Rude(text.to_owned())] {
        let is_rude = matches!(act, Act::Rude(_));
        let server = Server::new(vec![act]).await;
        let to = Endpoint::new("test", "openai", Some(&server.url), None).unwrap();
        let outcome = call(&to, RequestBody::File(&path), true, HASTE).await;
        // A server that closes without having read everything resets the connection, and the reset may overtake the
        // answer.
        let is_overtaken = is_rude && *outcome.trouble() == ProviderError::Broken;
        let is_heard = *outcome.trouble() == unexplained(413);
        assert!(is_heard || is_overtaken, "{}", outcome.error());
    }
}

#[tokio::test]
async fn a_provider_that_stops_reading_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("request.json");
    std::fs::File::create(&path)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    let server = Server::new(vec![Act::Deaf]).await;
    let to = Endpoint::new("test", "openai", Some(&server.url), None).unwrap();
    let idle = Duration::from_millis(200);
    let outcome = call(
        &to,
        RequestBody::File(&path),
        true,
        RetryPolicy {
            idle,
            attempts: 1,
            ..HASTE
        },
    )
    .await;
    assert_eq!(outcome.trouble(), &ProviderError::Broken);
    assert!(
        outcome.error().text.contains("stopped reading"),
        "{}",
        outcome.error()
    );
}

#[tokio::test]
async fn a_call_that_is_dropped_ends() {
    let server = Server::new(vec![Act::Hang(stream(&["Hel"], ""), Duration::ZERO)]).await;
    let until = async |holds: &dyn Fn() -> bool| {
        for _ in 0..3000 {
            if holds() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    };
    let is_asked = || server.seen().first().is_some_and(|seen| seen.hash != 0);
    tokio::select! {
        _ = send(&server, HASTE) => panic!("there is no end to it"),
        asked = until(&is_asked) => assert!(asked),
    }
    let is_left = || server.seen()[0].left;
    assert!(until(&is_left).await, "the connection stayed open");
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address() {
    let to = Endpoint::new("local", "ollama", Some("http://127.0.0.1:1"), None).unwrap();
    let outcome = call(&to, RequestBody::Bytes(Vec::new()), true, HASTE).await;
    assert_eq!(outcome.trouble(), &ProviderError::Broken);
    let text = &outcome.error().text;
    assert!(
        text.starts_with("local (http://127.0.0.1:1/api/chat) cannot be reached: "),
        "{text}"
    );
    assert!(text.contains("refused"), "{text}");
    assert_eq!(outcome.error().requests, 4);
}

#[tokio::test]
async fn a_request_that_is_not_there_is_not_sent() {
    let server = Server::new(vec![said(&["no"])]).await;
    let to = Endpoint::new("test", "openai", Some(&server.url), None).unwrap();
    let outcome = call(
        &to,
        RequestBody::File(Path::new("/nowhere/request.json")),
        true,
        HASTE,
    )
    .await;
    assert_eq!(
        outcome.trouble(),
        &ProviderError::Refused(RefusalCause::Request)
    );
    assert!(
        outcome.error().text.contains("/nowhere/request.json"),
        "{}",
        outcome.error()
    );
    assert_eq!((outcome.error().requests, server.seen().len()), (0, 0));
}

#[tokio::test]
async fn a_page_for_people_is_no_reply() {
    let page = "<!doctype html><html><body>Welcome</body></html>";
    let typed = answer(200, "content-type: text/html\r\n", page);
    for (act, words) in [
        (typed, "answered with a web page"),
        (answer(200, "", page), "answered with a web page"),
        (
            answer(200, "", "It works!\n"),
            "answers, but not as this API: it begins `It works!`",
        ),
    ] {
        let server = Server::new(vec![act]).await;
        let outcome = send(&server, HASTE).await;
        assert_eq!(
            outcome.trouble(),
            &ProviderError::Refused(RefusalCause::Address)
        );
        assert!(outcome.error().text.ends_with(words), "{}", outcome.error());
        assert_eq!(server.seen().len(), 1);
    }
    // A reply that begins as a stream and breaks may be whole the next time.
    let broken = Act::Say(stream(&[], ": ping\n\nupstream gone\n"), Duration::ZERO);
    let server = Server::new(vec![broken, said(&["ok"])]).await;
    assert_eq!(send(&server, HASTE).await.text(), "ok");
}

/// Runs one test of this file again, with a proxy in the environment that is not there.
#[test]
fn what_is_on_this_machine_is_reached_without_a_proxy() {
    let again = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_reply_is_heard_and_returned"])
        .envs(["http_proxy", "HTTP_PROXY", "ALL_PROXY"].map(|name| (name, "http://127.0.0.1:1")))
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    assert!(
        again.status.success(),
        "{}",
        String::from_utf8_lossy(&again.stdout)
    );
}

/// Every known error has the same meaning over a connection as in a body.
#[tokio::test]
async fn every_known_error_comes_through() {
    let text = include_str!("../../infold-wire/tests/troubles.jsonl");
    for line in text.lines() {
        let row = Json::parse(line.as_bytes()).unwrap();
        let get = |key| row.get(key).and_then(Json::text).unwrap();
        let status = row.get("status").and_then(Json::number).unwrap() as u16;
        if status == 200 {
            continue;
        }
        let mut lines = String::new();
        for (name, value) in row.get("headers").unwrap().members() {
            lines += &format!("{}: {}\r\n", name.text().unwrap(), value.text().unwrap());
        }
        let server = Server::new(vec![answer(status, &lines, &get("body"))]).await;
        let outcome = send(
            &server,
            RetryPolicy {
                attempts: 1,
                ..HASTE
            },
        )
        .await;
        let expected = get("expect").split(' ').next().unwrap().replace('_', "");
        let got = format!("{:?}", outcome.trouble()).to_lowercase();
        assert!(got.starts_with(&expected), "{}: {got}", get("name"));
        let asked = get("expect")
            .strip_prefix("busy ")
            .map(|ms| ms.parse().unwrap());
        if let Some(asked) = asked {
            let after = Some(Duration::from_millis(asked));
            assert_eq!(outcome.trouble(), &ProviderError::Busy { after });
        }
    }
}

#[tokio::test]
async fn models_are_listed() {
    let list = r#"{"data":[{"id":"a","meta":{"n_ctx":1024}},{"id":"b"}]}"#;
    let a = ListedModel {
        name: "a".to_owned(),
        window: Some(1024),
    };
    let client = Client::new(HASTE).unwrap();
    let server = Server::new(vec![answer(200, "", list)]).await;
    let to = Endpoint::new("test", "openai", Some(&server.url), None).unwrap();
    assert_eq!(client.models(&to).await.unwrap()[0], a);
    assert!(server.seen()[0].head.starts_with("get /v1/models http"));
    // LM Studio's own list, and the common one where that is not there.
    let unexpected = r#"{"error":"Unexpected endpoint or method. (GET /api/v0/models)"}"#;
    let invalid = r#"{"error":{"message":"Invalid URL (GET /api/v0/models)"}}"#;
    for none in [
        answer(200, "", unexpected),
        answer(404, "", invalid),
        answer(404, "", r#"{"error":"the model api has no such path"}"#),
        answer(405, "", ""),
    ] {
        let server = Server::new(vec![none, answer(200, "", list)]).await;
        let to = Endpoint::new("test", "lmstudio", Some(&server.url), None).unwrap();
        assert_eq!(client.models(&to).await.unwrap()[0], a);
        assert!(server.seen()[0].head.starts_with("get /api/v0/models http"));
    }
    // One request; the error is reported.
    let server = Server::new(vec![answer(503, "", "")]).await;
    let to = Endpoint::new("test", "ollama", Some(&server.url), None).unwrap();
    let error = client.models(&to).await.unwrap_err();
    assert_eq!(error.trouble, ProviderError::Busy { after: None });
    assert_eq!(server.seen().len(), 1);
    assert!(server.seen()[0].head.starts_with("get /api/tags http"));
}
