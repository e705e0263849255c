//! Providers that are down, slow, broken or refuse: the client gets their errors, and the task continues.

use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use infold_testkit::{Script, Seen, Server, Step};
use infold_wire::Wire;
use serde_json::Value;

use crate::talk::Talk;
use crate::{House, http, until};

/// Conversations on all wires, streamed and not, each after one turn.
fn begun(house: &House) -> Vec<Talk> {
    let each = Wire::ALL
        .into_iter()
        .flat_map(|wire| [(wire, false), (wire, true)]);
    each.map(|(wire, stream)| {
        let mut talk = Talk::new(wire, stream);
        talk.turn(
            house.port,
            &format!("hello on {wire:?}, streamed: {stream}"),
        );
        talk
    })
    .collect()
}

/// Checks that a task has the messages of its client, except those without an answer.
fn holds(house: &House, talk: &Talk) {
    assert_eq!(house.said(talk.task()), talk.said(), "{:?}", talk.wire);
}

/// Checks that the next try continues the same task.
fn goes_on(house: &House, talk: &mut Talk) {
    let task = talk.task();
    talk.insist(house.port);
    assert_eq!(talk.task(), task, "{:?}", talk.wire);
    holds(house, talk);
    house.is_well(task);
}

#[test]
fn errors_come_through_to_the_byte() {
    let server = Server::start(Script::new());
    let house = House::open(&server);
    let errors: [(u16, &[u8]); 6] = [
        (
            429,
            br#"{"error" : {"message":"slow down, caf\u00e9","type":"requests"},"x":1.0}"#,
        ),
        (500, b"{\"error\":{\"message\":\"oops\"}}\n"),
        (
            529,
            br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        ),
        (502, b"<html><body>Bad Gateway</body></html>"),
        (503, b""),
        (
            400,
            br#"{"error":{"message":"max_tokens is too large: 100000","code":null}}"#,
        ),
    ];
    let mut seen = 0;
    for mut talk in begun(&house) {
        let task = talk.task();
        talk.say("and now?");
        for (status, body) in errors {
            let step = Step::error(status, body).header("retry-after", "7");
            server.then(
                step.header("x-request-id", "req-1")
                    .header("set-cookie", "a=b"),
            );
            let answer = talk.ask(house.port).expect("an answer");
            assert_eq!(
                (answer.status, &*answer.body),
                (status, body),
                "{:?}",
                talk.wire
            );
            assert_eq!(answer.header("retry-after"), Some("7"));
            assert_eq!(answer.header("x-request-id"), Some("req-1"));
            assert!(answer.whole);
            seen += 1;
        }
        let failures = house.failed(task, errors.len());
        assert_eq!(failures.len(), errors.len(), "{failures:?}");
        assert!(
            failures[0].contains("429") && failures[0].contains("slow down"),
            "{failures:?}"
        );
        holds(&house, &talk);
        goes_on(&house, &mut talk);
    }
    // The command lists them too.
    let task = house.tasks()[0].to_string();
    let lines = house.ok(&["log", &task]);
    let told = lines.iter().map(Value::to_string);
    let told: Vec<String> = told
        .filter(|line| line.contains("the provider answered"))
        .collect();
    assert_eq!(told.len(), errors.len(), "{lines:?}");
    println!("{seen} errors came through as they were");
}

#[test]
fn who_gives_no_answer_is_told_of_in_the_clients_words() {
    // A request on a connection that was used before comes twice.
    let does = Arc::new(Mutex::new(Step::model()));
    let step = Arc::clone(&does);
    let decide = move |_: &Seen| step.lock().expect("no panic").clone();
    let mut server = Server::start(Script::decide(decide));
    let house = House::open(&server);
    let mut talks = begun(&house);
    let place = server.address().port();
    for talk in &mut talks {
        talk.say("are you there?");
        for step in [Step::hang_up(), Step::hang_up().reset()] {
            *does.lock().expect("no panic") = step;
            says_unreachable(talk, &house);
        }
    }
    drop(server);
    for talk in &talks {
        says_unreachable(talk, &house);
        let failures = house.failed(talk.task(), 3);
        assert!(
            failures
                .iter()
                .all(|why| why.contains("could not be reached")),
            "{failures:?}"
        );
        holds(&house, talk);
    }
    server = Server::start_on(place, Script::new()).expect("the same port");
    for talk in &mut talks {
        goes_on(&house, talk);
    }
    // On a busy machine there is also another request for the model's window.
    let all = server.requests();
    let calls = all.iter().filter(|seen| seen.wire().is_some());
    assert_eq!(calls.count(), talks.len());
    assert_eq!(house.tasks().len(), talks.len());
}

fn says_unreachable(talk: &Talk, house: &House) {
    let answer = talk.ask(house.port).expect("an answer");
    assert_eq!(answer.status, 502, "{}", answer.text());
    let body: Value = serde_json::from_slice(&answer.body).expect("JSON");
    let text = match talk.wire {
        Wire::Ollama => &body["error"],
        Wire::Anthropic => {
            assert_eq!(body["type"], "error");
            &body["error"]["message"]
        }
        Wire::Gemini => {
            assert_eq!(body["error"]["code"], 502);
            &body["error"]["message"]
        }
        Wire::Chat | Wire::Responses => &body["error"]["message"],
    };
    let text = text.as_str().expect("a text");
    assert!(text.contains("gives no answer"), "{text}");
}

/// A reply in bytes, as the provider would send it.
fn sample(server: &Server, talk: &Talk) -> Vec<u8> {
    let answer = talk.ask(server.address().port()).expect("an answer");
    assert_eq!(answer.status, 200);
    answer.body
}

/// Ways to spoil a reply.
fn spoilt(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let half = bytes.len() / 2;
    let mut binary = bytes.to_vec();
    binary[half..half + 8].copy_from_slice(b"\xff\xfe\0\x01}}]]");
    let mut gap = bytes.to_vec();
    let brace = gap
        .windows(2)
        .rposition(|pair| pair == b"{\"")
        .expect("an object");
    gap.remove(brace + 1);
    vec![
        ("half of it", bytes[..half].to_vec()),
        ("with bytes that are no text", binary),
        ("with a hole", gap),
        ("no JSON at all", b"upstream connect error\n".to_vec()),
        ("nothing but space", b"\n\n".to_vec()),
    ]
}

#[test]
fn what_is_malformed_passes_and_is_not_kept() {
    let server = Server::start(Script::new());
    let house = House::open(&server);
    let mut spoils = 0;
    for mut talk in begun(&house) {
        let task = talk.task();
        talk.say("tell me more");
        let (before, mut count) = (talk.said(), 0);
        for (what, bytes) in spoilt(&sample(&server, &talk)) {
            server.then(Step::error(200, bytes.clone()));
            let answer = talk.ask(house.port).expect("an answer");
            let (wire, stream) = (talk.wire, talk.stream);
            assert_eq!(answer.status, 200, "{what}");
            assert!(
                answer.whole && answer.body == bytes,
                "{wire:?} {stream}: {what}"
            );
            spoils += 1;
            count += 1;
            house.failed(task, count);
            assert_eq!(house.said(task), before, "{wire:?} {stream}: {what}");
        }
        goes_on(&house, &mut talk);
        let failures = house.failures(task);
        assert_eq!(failures.len(), 5, "{:?}: {failures:?}", talk.wire);
    }
    println!("{spoils} malformed replies passed and were not kept");
}

#[test]
fn what_is_cut_breaks_for_the_client_too() {
    let server = Server::start(Script::new());
    let house = House::open(&server);
    for mut talk in begun(&house) {
        let task = talk.task();
        talk.say("go on, at length");
        let whole = sample(&server, &talk);
        let mut cuts = 0;
        for share in [1, whole.len() / 3, whole.len() - 4] {
            for reset in [false, true] {
                let step = Step::error(200, whole.clone()).slowly(64, Duration::from_millis(1));
                let step = step.cut_after_bytes(share);
                server.then(if reset { step.reset() } else { step });
                let what = format!("{:?}, streamed: {}, {share}", talk.wire, talk.stream);
                // The client gets only the beginning, and the answer does not look complete.
                let answer = talk.ask(house.port).expect("a beginning");
                cuts += 1;
                let cut = answer.status == 502 || !answer.whole && whole.starts_with(&answer.body);
                assert!(cut, "{what}: {answer:?}");
                let failures = house.failed(task, cuts);
                assert_eq!(failures.len(), cuts, "{what}: {failures:?}");
                assert_eq!(house.said(task), talk.said(), "{what}");
            }
        }
        goes_on(&house, &mut talk);
    }
}

#[test]
fn slow_replies_are_whole_and_empty_ones_are_not_kept() {
    let server = Server::start(Script::new());
    let house = House::open(&server);
    for mut talk in begun(&house) {
        let task = talk.task();
        server.then(Step::say("one thing at a time").slowly(7, Duration::from_millis(1)));
        let said = talk.turn(house.port, "slowly, please");
        assert_eq!(said, "one thing at a time");
        holds(&house, &talk);
        talk.say("and then?");
        // An empty stream of chat is requested once more before it counts.
        let retried = talk.wire == Wire::Chat && talk.stream;
        server.then(Step::empty());
        let answer = talk.ask(house.port).expect("an answer");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.body.is_empty(), !retried, "{:?}", talk.wire);
        if retried {
            talk.hear(&answer).expect("a reply");
        } else {
            let failures = house.failed(task, 1);
            assert!(failures[0].contains("empty"), "{failures:?}");
            goes_on(&house, &mut talk);
        }
        holds(&house, &talk);
    }
}

#[test]
fn who_waits_in_vain_may_leave_and_ask_again() {
    let server = Server::start(Script::new());
    let house = House::open(&server);
    for mut talk in begun(&house) {
        let task = talk.task();
        talk.say("hello?");
        server.then(Step::never());
        let asked = server.count();
        let headers = [("anthropic-version", "2023-06-01")];
        let stream = http::send(house.port, &talk.path(), &headers, &talk.body());
        until("the provider is asked", || server.count() > asked);
        drop(stream);
        let failures = house.failed(task, 1);
        assert_eq!(failures, ["the client went away"]);
        if !talk.stream {
            // An unstreamed reply is forwarded once it is complete.
            goes_on(&house, &mut talk);
            continue;
        }
        // And again, in the middle of a reply.
        let step = Step::say("a word ".repeat(400)).slowly(40, Duration::from_millis(5));
        server.then(step);
        let stream = http::send(house.port, &talk.path(), &headers, &talk.body());
        let mut some = [0; 64];
        let mut stream = stream.expect("it is asked");
        stream.read_exact(&mut some).expect("the beginning");
        drop(stream);
        let failures = house.failed(task, 2);
        assert_eq!(failures[1], "the client went away");
        goes_on(&house, &mut talk);
    }
}
