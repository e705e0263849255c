//! Providers get the client's own bytes, and above the threshold as many of them as possible.

use std::io::Write as _;
use std::process::{Command, Stdio};

use infold_testkit::{Model, Script, Server, hash};
use infold_wire::Wire;
use serde_json::Value;

use crate::House;
use crate::http;
use crate::talk::Talk;

/// A text as some clients write it: escapes, half of a pair, a slash that need not be escaped.
const ODD: &str = r#""caf\u00e9 \ud83d\ude00 \ud800 \/ \u0000 tab\tend é 😀""#;

/// A provider that accepts any request.
fn lenient() -> Server {
    let strict = false;
    let model = Model::default();
    Server::start(Script::new().model(Model { strict, ..model }))
}

/// A provider that joins adjacent messages of one role, as all do by now.
fn modern() -> Server {
    let alternate = false;
    let model = Model::default();
    Server::start(Script::new().model(Model { alternate, ..model }))
}

/// The same request in unusual forms.
fn forms(wire: Wire, more: &str) -> Vec<String> {
    let (list, message) = match wire {
        Wire::Gemini => (
            "contents",
            format!(r#"{{ "parts":[ {{"text" : {ODD}}} ] , "role" : "user"}}"#),
        ),
        Wire::Responses => (
            "input",
            format!(r#"{{"content" :{ODD}, "role":"user" , "type":"message"}}"#),
        ),
        _ => (
            "messages",
            format!(r#"{{"content" :{ODD}, "role":"user"}}"#),
        ),
    };
    let plain = r#""model":"scripted","max_tokens":100,"stream":false"#;
    vec![
        format!(r#"{{{plain},"{list}":[{message}{more}]}}"#),
        // Unusual white space and numbers, and the list in front.
        format!(
            "\r\n {{\t\"{list}\" : [ \n{message}{more}\t] ,\"temperature\":1.0,\"seed\":1e2,\"top_p\":0.10,\n{plain}, \"nothing\" : null , \"empty\":[ ] }}\n\n"
        ),
        // Repeated members, names with escapes, unknown members.
        format!(
            r#"{{{plain},"\u0061bc":{{"b":1,"a":[1.0,-0,1E+2]}},"max_tokens":100,"{list}":[{message}{more}],"ü":"\ud800","x":1,"x":2}}"#
        ),
    ]
}

#[test]
fn odd_bodies_pass_as_they_are() {
    let server = lenient();
    let mut count = 0;
    for wire in Wire::ALL {
        for number in 0..forms(wire, "").len() {
            let house = House::open(&server);
            let mut talk = Talk::new(wire, false);
            let mut more = String::new();
            for turn in 0..3 {
                let body = &forms(wire, &more)[number];
                let answer = talk
                    .ask_with(house.port, body.as_bytes())
                    .expect("an answer");
                let last = server.last_call().expect("it was asked");
                let about = format!("{wire:?}, form {number}, turn {turn}");
                assert_eq!(last.body.as_deref(), Some(body.as_bytes()), "{about}");
                assert_eq!(answer.status, 200, "{about}: {}", answer.text());
                let task = talk.task;
                talk.hear(&answer).expect("a reply");
                assert!(task.is_none() || talk.task == task, "{about}");
                talk.say("\u{1f600} go on\t");
                let said: Vec<String> = talk.history.iter().map(|it| odd(it)).collect();
                more = format!(" ,\n{}", said.join(" , "));
                count += 1;
            }
            assert_eq!(house.counted("infold_failures_total"), 0);
            assert_eq!(house.length(talk.task()), 6);
        }
    }
    println!("{count} odd bodies passed as they were");
}

/// A message with its members in another order, and some space.
fn odd(message: &[u8]) -> String {
    let text = String::from_utf8(message.to_vec()).expect("JSON is UTF-8");
    format!("  {text}\r\n")
}

#[test]
fn large_and_packed_bodies_pass_as_they_are() {
    let server = lenient();
    // The window has room for all of it.
    let house = House::with(&server, 50_000_000);
    for wire in Wire::ALL {
        let mut talk = Talk::new(wire, false);
        talk.say(&format!(
            "on {wire:?} {}",
            "a long story, é, ".repeat(300_000)
        ));
        let body = talk.body();
        assert!(body.len() > 5_000_000);
        let answer = talk.ask(house.port).expect("an answer");
        let last = server.last_call().expect("it was asked");
        assert_eq!(
            (last.len, last.hash),
            (body.len() as u64, hash(&body)),
            "{wire:?}"
        );
        assert_eq!(answer.status, 200, "{}", answer.text());
        talk.hear(&answer).expect("a reply");
        assert_eq!(house.said(talk.task()).len(), 2, "{wire:?}");
    }
    let tasks = house.tasks().len();
    for wire in Wire::ALL {
        let mut talk = Talk::new(wire, false);
        talk.say(&format!("packed, on {wire:?}"));
        let packed = gzip(&talk.body());
        let headers = [
            ("content-encoding", "gzip"),
            ("anthropic-version", "2023-06-01"),
        ];
        http::post(house.port, &talk.path(), &headers, &packed).expect("an answer");
        let last = server.last_call().expect("it was asked");
        assert_eq!(
            (last.len, last.hash),
            (packed.len() as u64, hash(&packed)),
            "{wire:?}"
        );
        assert_eq!(last.header("content-encoding"), Some("gzip"), "{wire:?}");
    }
    // The messages were recorded, though this provider cannot read them.
    assert_eq!(house.tasks().len(), tasks + Wire::ALL.len());
    assert_eq!(house.counted("infold_failures_total"), 0);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut command = Command::new("gzip");
    command
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("gzip runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(bytes).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends").stdout
}

#[test]
fn between_folds_each_request_begins_with_the_one_before() {
    let server = modern();
    let house = House::with(&server, 4_000);
    for wire in Wire::ALL {
        let mut talk = Talk::new(wire, true);
        let (mut before, mut folds): (Vec<u8>, u64) = (Vec::new(), 0);
        let (mut kept, mut made, mut shorter) = (0, 0, 0);
        for turn in 0..40 {
            let more = "what do you say? ".repeat(12);
            talk.say(&format!("question {turn} on {wire:?}: {more}"));
            let body = talk.body();
            let answer = talk.ask(house.port).expect("an answer");
            talk.hear(&answer).expect("a reply");
            let sent = server
                .last_call()
                .and_then(|seen| seen.body)
                .expect("a body");
            let now = house.counted("infold_folds_total");
            let same = common(&before, &sent);
            if turn > 0 && now == folds {
                // But for the end of the list and of the body.
                assert_eq!(same, before.len() - 2, "{wire:?}, turn {turn}");
                kept += 1;
            } else if turn > 0 {
                let first = talk.history[0].len();
                assert!(
                    same > first,
                    "{wire:?}, turn {turn}: only {same} bytes are the same"
                );
                made += 1;
            }
            assert_eq!(common(&body, &sent) == body.len(), sent == body);
            shorter += usize::from(sent.len() < body.len());
            (before, folds) = (sent, now);
        }
        println!(
            "{wire:?}: {shorter} of 40 folded, {made} folds, {kept} began with the one before"
        );
        assert!(made > 0 && made < 10 && shorter > 10, "{wire:?}");
        house.is_well(talk.task());
    }
    assert_eq!(house.tasks().len(), Wire::ALL.len());
}

/// Returns the number of bytes that two bodies have in common at the start.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

#[test]
fn there_are_never_more_cache_markers_than_the_client_set() {
    const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
    let server = modern();
    let house = House::with(&server, 4_000);
    let mut talk = Talk::new(Wire::Anthropic, true);
    let (mut folded, mut most) = (0, 0);
    for turn in 0..30 {
        talk.say(&format!(
            "question {turn}: {}",
            "what do you say? ".repeat(15)
        ));
        let count = talk.history.len();
        // On the system prompt, the first message, and the last two of the user's: all there may be.
        let message = |(at, bytes): (usize, &Vec<u8>)| {
            let json: Value = serde_json::from_slice(bytes).expect("JSON");
            let marked = at == 0 || at + 1 == count || at + 3 == count;
            match (&json["content"], marked) {
                (Value::String(text), true) => format!(
                    r#"{{"role":"user","content":[{{"type":"text","text":{}{MARK}}}]}}"#,
                    Value::from(text.as_str())
                ),
                _ => String::from_utf8_lossy(bytes).into_owned(),
            }
        };
        let list: Vec<String> = talk.history.iter().enumerate().map(message).collect();
        let body = format!(
            r#"{{"model":"scripted","max_tokens":200,"stream":true,"system":[{{"type":"text","text":"be kind"{MARK}}}],"messages":[{}]}}"#,
            list.join(",")
        );
        let answer = talk
            .ask_with(house.port, body.as_bytes())
            .expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
        talk.hear(&answer).expect("a reply");
        let sent = server.last_call().expect("it was asked").text();
        let marks = |text: &str| text.matches("cache_control").count();
        let (theirs, ours) = (marks(&body), marks(&sent));
        assert!(
            ours <= theirs && ours <= 4,
            "turn {turn}: {theirs} became {ours}"
        );
        most = most.max(ours);
        folded += usize::from(sent.len() < body.len());
    }
    println!("{folded} of 30 folded, {most} markers at most");
    assert!(folded > 5 && most == 4);
    assert_eq!(house.tasks().len(), 1);
}
