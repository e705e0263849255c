//! Copies of messages, and messages that are no copies.

use infold::redact::RedactionRequest;
use infold_wire::Wire;
use serde_json::{Value, json};

use crate::office::{Office, assistant, user};
use crate::said::{
    SECRET, Said, all_files, body, converse, is_kept, message, messages, output, pattern, redact,
    send, whole,
};

/// A call and its result between a question and an answer.
pub fn deployment(question: &str, args: Value, result: Said) -> Vec<Said> {
    vec![
        Said::User(question.to_owned()),
        Said::Call(args),
        result,
        Said::Model("I deployed it, all is well".to_owned()),
        Said::User("go on".to_owned()),
        Said::Model("gone on".to_owned()),
    ]
}

/// Redacts a conversation on a wire, and sends it again on another with other ids, with its first question and with another; returns the
/// cases in which the secret came back.
fn leaks(
    pairs: &[(Wire, Wire)],
    (args, result): (&Value, &Said),
    what: &RedactionRequest,
) -> Vec<String> {
    let mut leaks = Vec::new();
    for (from, to) in pairs.iter().copied() {
        let mut office = Office::new(100_000);
        let said = deployment("please deploy it", args.clone(), result.clone());
        let task = converse(&office, from, "call_1", &said);
        redact(&office, task, what);
        for question in ["please deploy it", "deploy it at once"] {
            let mut again = deployment(question, args.clone(), result.clone());
            again.push(Said::User("and now?".to_owned()));
            let again = messages(to, "call_9", &again);
            let reply = message(to, "", &Said::Model("so".to_owned()));
            send(&office, to, &body(to, &again), reply);
            if is_kept(&office) {
                leaks.push(format!("{from} to {to}, {question}"));
                break;
            }
            // A restart takes longer than all the rest.
            if from == to {
                office.restart_without_index();
            }
        }
    }
    leaks
}

/// Returns each wire with the next one, and with the one after that.
fn neighbours() -> Vec<(Wire, Wire)> {
    let pairs = (0..Wire::ALL.len()).flat_map(|from| {
        let next = |by: usize| Wire::ALL[(from + by) % Wire::ALL.len()];
        [(next(0), next(0)), (next(0), next(1)), (next(0), next(2))]
    });
    pairs.collect()
}

/// Gemini, whose results are objects, and each other wire.
fn with_gemini() -> Vec<(Wire, Wire)> {
    let others = Wire::ALL.into_iter().filter(|wire| *wire != Wire::Gemini);
    let pairs = others.flat_map(|other| [(Wire::Gemini, other), (other, Wire::Gemini)]);
    pairs.collect()
}

#[test]
fn calls_with_other_ids_stay_redacted_on_every_wire() {
    let args = json!({"command": format!("deploy é --key '{SECRET}' \"now\""), "n": 3, "deep": {"list": ["a", SECRET]}});
    for what in [pattern(SECRET), pattern(".*hunter2.*"), whole("2")] {
        let leaks = leaks(&neighbours(), (&args, &output("fine")), &what);
        assert_eq!(leaks, Vec::<String>::new(), "{:?}", what.pattern);
    }
}

#[test]
fn results_with_other_ids_stay_redacted_on_every_wire() {
    let result = output(&format!("the key\nis {SECRET}"));
    for what in [pattern(SECRET), whole("3")] {
        let leaks = leaks(&neighbours(), (&json!({"n": 1}), &result), &what);
        assert_eq!(leaks, Vec::<String>::new(), "{:?}", what.pattern);
    }
}

#[test]
fn results_that_are_objects_stay_redacted_on_every_wire() {
    let object = json!({"user": "bob", "key": SECRET, "n": 1});
    let spanning = Some("key.*hunter2.*user");
    let said = json!({"content": [{"type": "text", "text": format!("say {SECRET}")}]});
    let named = json!({SECRET: "as a name"});
    let objects = [
        (object.clone(), object.clone(), spanning),
        (object.clone(), json!({"output": object}), spanning),
        (
            object.clone(),
            json!({"result": object.to_string()}),
            spanning,
        ),
        (said.clone(), said, None),
        (named.clone(), named, None),
    ];
    for (text, object, spanning) in objects {
        let result = Said::Output(text.to_string(), object);
        for what in [
            Some(pattern(SECRET)),
            spanning.map(pattern),
            Some(whole("3")),
        ] {
            let Some(what) = what else { continue };
            let leaks = leaks(&with_gemini(), (&json!({"n": 1}), &result), &what);
            assert_eq!(leaks, Vec::<String>::new(), "{text} {:?}", what.pattern);
        }
    }
}

#[test]
fn arguments_that_a_pattern_took_whole_stay_redacted_on_every_wire() {
    let args = json!({"a": "bob", "command": format!("deploy {SECRET} now"), "n": 3});
    for spanning in ["bob.*hunter2.*3", "\"a\".*hunter2[a-z]*"] {
        let leaks = leaks(&neighbours(), (&args, &output("fine")), &pattern(spanning));
        assert_eq!(leaks, Vec::<String>::new(), "{spanning}");
    }
}

/// Short messages that are redacted are not taken from other conversations that have the same neighbours.
#[test]
fn everyday_messages_of_other_conversations_stay() {
    let cases = [
        ("ok", "Done.", whole("3")),
        ("yes", "Shall I go on?", whole("3")),
        ("yes", "Shall I go on?", pattern("^yes$")),
        ("continue please", "Sure?", whole("3")),
        ("option 2", "Which one of them?", pattern("option 2")),
    ];
    for (short, before, what) in cases {
        for wire in Wire::ALL {
            let office = Office::new(100_000);
            let said = |first: &str, last: &str| {
                vec![
                    Said::User(first.to_owned()),
                    Said::Model(before.to_owned()),
                    Said::User(short.to_owned()),
                    Said::Model(last.to_owned()),
                ]
            };
            let task = converse(
                &office,
                wire,
                "",
                &said("about apples and trees", "here we are"),
            );
            redact(&office, task, &what);
            let other = said("about ships and harbours", "something else entirely");
            let other = converse(&office, wire, "", &other);
            let files = all_files(
                &office
                    .conversations
                    .contexts()
                    .root()
                    .join("running")
                    .join(other.to_string()),
            );
            assert!(
                files.contains(short) && !files.contains("[redacted"),
                "{wire} {short}"
            );
        }
    }
}

/// In a fork, the same short answer to another question is no copy.
#[test]
fn a_short_answer_in_a_fork_stays() {
    let office = Office::new(100_000);
    let said = |second: &str| {
        [
            user("go?"),
            assistant(second),
            user("ok"),
            assistant("went"),
            user("further?"),
            assistant("and then?"),
            user("ok"),
        ]
    };
    office.turn(&said("where to?")[..1], "where to?", None);
    office.turn(&said("where to?")[..3], "went", None);
    let task = office.turn(&said("where to?")[..5], "and then?", None);
    redact(&office, task, &whole("3"));
    let mut fork = said("where?").to_vec();
    fork.extend([assistant("there"), user("thanks")]);
    let fork = office.turn(&fork, "welcome", None);
    assert_ne!(fork, task);
    let holds = office.holds(fork);
    assert_eq!(
        (holds[2].starts_with("[redacted"), &*holds[6]),
        (true, "ok")
    );
}

#[test]
fn texts_that_a_client_joined_split_or_broke_otherwise_stay_redacted() {
    let first = format!("first part says {SECRET} to you");
    let second = "second part is harmless";
    let text = |text: &str| json!({"type": "text", "text": text});
    let two = json!([text(&first), text(second)]);
    let lines = |by: &str| json!([&first, second, "third line"].join(by));
    let cases = [
        (two.clone(), json!(format!("{first}{second}"))),
        (two.clone(), json!(format!("{first}\n{second}"))),
        (two.clone(), json!(format!("{first}\n\n{second}"))),
        (two.clone(), json!([text(&first)])),
        (
            two.clone(),
            json!([
                text(&format!("{first}\r\n")),
                text(second),
                text("a reminder")
            ]),
        ),
        (
            json!([text(&format!("{first}\n")), text(second)]),
            json!(format!("{first} {second}\n")),
        ),
        (json!(first), json!([text("a reminder"), text(&first)])),
        (lines("\n"), lines("\r\n")),
        (lines("\r\n"), lines("\n")),
        (
            lines("\n"),
            json!([text(&first), text("second part is harmless\nthird line")]),
        ),
    ];
    for (at, (before, after)) in cases.iter().enumerate() {
        for what in [pattern(SECRET), pattern(".*hunter2.*"), whole("3")] {
            // Edits of the form only, of the answer before it, and of the first question.
            for edited in [None, Some(1), Some(0)] {
                let office = Office::new(100_000);
                let said = [
                    user("what is it?"),
                    assistant("tell me"),
                    json!({"role": "user", "content": before}),
                ];
                office.turn(&said[..1], "tell me", None);
                let task = office.turn(&said, "I see, thank you", None);
                redact(&office, task, &what);
                let mut again = said.to_vec();
                again[2]["content"] = after.clone();
                if let Some(edited) = edited {
                    again[edited]["content"] = json!("something else");
                }
                again.extend([assistant("I see, thank you"), user("go on")]);
                office.turn(&again, "gone on", None);
                assert!(!is_kept(&office), "{at} {:?} {edited:?}", what.pattern);
                if after.to_string().contains("third line") && what.pattern.is_some() {
                    let files = all_files(office.conversations.contexts().root());
                    assert!(files.contains("third line"), "{at}");
                }
            }
        }
    }
}
