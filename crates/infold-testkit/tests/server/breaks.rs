//! How replies come late, broken or not at all.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::http::{Got, get, post};
use infold_testkit::{Faults, Script, Server, Step, Tally};

const CHAT: &str = "/v1/chat/completions";
const TURN: &str = r#"{"model":"m","messages":[{"role":"user","content":"Hi"}],"stream":true}"#;
const TEXT: &str = "A sentence that is cut into a good number of pieces.";

fn stream(step: Step) -> Got {
    post(&Server::start(Script::steps([step])), CHAT, TURN)
}

fn whole(step: Step) -> Got {
    let body = TURN.replace("true", "false");
    post(&Server::start(Script::steps([step])), CHAT, &body)
}

#[test]
fn a_cut_stream_does_not_end_as_a_whole_one_does() {
    let say = || Step::say(TEXT);
    let all = stream(say());
    assert!(all.whole && all.body.ends_with("data: [DONE]\n\n"));
    let three = stream(say().cut_after_events(3));
    assert!(!three.whole);
    assert_eq!(three.body.matches("data: ").count(), 3);
    let bytes = stream(say().cut_after_bytes(100));
    assert!(!bytes.whole);
    assert_eq!(bytes.body, all.body[..100]);
    let body = whole(say().cut_after_bytes(20));
    assert!(!body.whole && body.body.len() == 20, "{body:?}");
    assert_eq!(stream(Step::hang_up()).status, 0);
    assert_eq!(stream(Step::hang_up().reset()).status, 0);
}

#[test]
fn a_reset_is_a_reset_and_a_close_is_a_close() {
    for (step, reset) in [
        (Step::say(TEXT).cut_after_events(2), false),
        (Step::say(TEXT).cut_after_events(2).reset(), true),
    ] {
        let server = Server::start(Script::steps([step]));
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{TURN}",
            TURN.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let ended = stream.read_to_end(&mut Vec::new());
        let kind = ended.err().map(|error| error.kind());
        assert_eq!(kind, reset.then_some(ErrorKind::ConnectionReset));
    }
}

#[test]
fn a_malformed_event_is_one_event_and_the_stream_goes_on() {
    let got = stream(Step::say(TEXT).malformed_at(2));
    assert!(got.whole && got.body.ends_with("data: [DONE]\n\n"));
    let bad = got.body.split("\n\n").filter(|event| {
        let data = event.trim_start_matches("data: ");
        !data.is_empty() && data != "[DONE]" && infold_wire::Json::parse(data.as_bytes()).is_err()
    });
    assert_eq!(bad.count(), 1);
    let got = whole(Step::say(TEXT).malformed_at(0));
    assert!(got.whole && infold_wire::Json::parse(got.body.as_bytes()).is_err());
}

#[test]
fn slow_replies_are_slow_and_whole() {
    let start = Instant::now();
    let got = stream(Step::say(TEXT).after(Duration::from_millis(30)));
    assert!(got.whole && start.elapsed() >= Duration::from_millis(30));
    let start = Instant::now();
    let events = stream(Step::say(TEXT).pausing(Duration::from_millis(5)));
    assert!(start.elapsed() >= Duration::from_millis(5 * 4));
    let bytes = stream(Step::say(TEXT).slowly(40, Duration::from_millis(1)));
    assert_eq!((got.body, bytes.whole), (bytes.body, true));
    assert!(events.whole);
    assert!(stream(Step::empty()).whole);
}

#[test]
fn a_server_that_never_answers_still_answers_others_and_stops() {
    let server = Server::start(Script::steps([Step::never()]));
    let mut waiting = TcpStream::connect(server.address()).unwrap();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{TURN}",
        TURN.len()
    );
    waiting.write_all(head.as_bytes()).unwrap();
    while server.count() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(get(&server, "/v1/models").status, 200);
    drop(server);
    assert_eq!(waiting.read(&mut [0; 1]).unwrap_or(0), 0);
}

#[test]
fn a_client_that_goes_away_is_recorded_and_uses_up_no_step() {
    let server = Server::start(Script::steps([Step::say("for another")]));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let start = format!("POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: 999\r\n\r\n{TURN}");
    stream.write_all(start.as_bytes()).unwrap();
    drop(stream);
    while server.count() == 0 {
        std::thread::yield_now();
    }
    let seen = server.last().unwrap();
    assert!(seen.cut && seen.len == TURN.len() as u64, "{seen:?}");
    assert_eq!(server.left(), 1);
}

/// Sends 200 requests with this seed, and returns the status of each and whether its body was whole.
fn run(seed: u64) -> (Vec<(u16, bool)>, Tally) {
    let faults = Faults {
        seed,
        disconnect: 0.1,
        busy: 0.1,
        server_error: 0.1,
        slow: 0.05,
        malformed: 0.05,
        empty: 0.05,
    };
    let server = Server::start(Script::new().faults(faults));
    let met = (0..200).map(|_| post(&server, CHAT, TURN));
    let met = met.map(|got| (got.status, got.whole)).collect();
    (met, server.faults())
}

#[test]
fn faults_repeat_by_their_seed_and_are_counted() {
    let (met, tally) = run(7);
    assert_eq!((met.clone(), tally), run(7));
    assert_ne!(met, run(8).0);
    let Tally {
        fine,
        disconnect,
        busy,
        server_error,
        slow,
        malformed,
        empty,
    } = tally;
    let all = [fine, disconnect, busy, server_error, slow, malformed, empty];
    assert_eq!(all.iter().sum::<u64>(), 200);
    assert!(all.iter().all(|kind| *kind > 2), "{tally:?}");
    let count = |statuses: &[u16]| {
        met.iter()
            .filter(|(status, _)| statuses.contains(status))
            .count()
    };
    assert_eq!(count(&[429, 503]) as u64, busy);
    assert_eq!(count(&[500, 502]) as u64, server_error);
    // Every reply is longer than the latest cut.
    let cut = met.iter().filter(|(_, whole)| !whole).count() as u64;
    assert_eq!(cut, disconnect);
}

#[test]
fn a_request_that_meets_a_fault_leaves_the_script_where_it_was() {
    let faults = Faults {
        seed: 1,
        disconnect: 0.5,
        busy: 0.3,
        ..Faults::default()
    };
    let texts = ["first", "second", "third"];
    let server = Server::start(Script::steps(texts.map(Step::say)).faults(faults));
    let mut heard = Vec::new();
    while server.left() > 0 {
        let got = post(&server, CHAT, TURN);
        if got.status == 200 && got.whole {
            heard.push(got.body);
        }
    }
    assert_eq!(heard.len(), 3);
    for (body, text) in heard.iter().zip(texts) {
        assert!(body.contains(text), "{body}");
    }
}
