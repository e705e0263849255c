//! Clients that repeatedly edit earlier messages, on a machine with few descriptors.

mod office;

use office::{Office, assistant, user};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::Value;

const DESCRIPTORS: u64 = 256;

/// Enough for both tests of this file, which run at the same time.
fn limit_descriptors() {
    let limit = Rlimit {
        current: Some(DESCRIPTORS),
        maximum: Some(DESCRIPTORS),
    };
    setrlimit(Resource::Nofile, limit).expect("a lower limit");
}

fn texts(said: &[Value]) -> Vec<&str> {
    let texts = said.iter().map(|message| message["content"].as_str());
    texts.map(|text| text.expect("a text")).collect()
}

#[test]
fn the_same_early_question_is_edited_again_and_again() {
    limit_descriptors();
    let office = Office::new(1_000_000);
    let mut said = vec![user("hello"), assistant("hi")];
    office.turn(&said[..1], "hi", None);
    let mut tasks = Vec::new();
    for number in 0..200 {
        said.truncate(2);
        for turn in 0..2 {
            said.push(user(&format!("question {number}, {turn}")));
            let answer = format!("answer {number}, {turn}");
            let task = office.turn(&said, &answer, None);
            said.push(assistant(&answer));
            tasks.push((task, said.clone()));
        }
    }
    for (task, said) in tasks.iter().skip(1).step_by(20) {
        assert_eq!(office.holds(*task), texts(said));
    }
    // The first question belongs to the existing conversation; each edit of it becomes a separate one.
    assert_eq!(office.tasks(), 200);
}

#[test]
fn each_question_is_edited_once_while_the_conversation_grows() {
    limit_descriptors();
    let mut office = Office::new(10_000_000);
    let mut said = Vec::new();
    let mut last = None;
    for number in 0..150 {
        for version in ["first", "second"] {
            said.truncate(2 * number);
            said.push(user(&format!("question {number}, {version} version")));
            // The model continues for two turns before the question is edited: then the branch is in use.
            let answer = format!("answer {number} to the {version}");
            last = Some(office.turn(&said, &answer, None));
            said.push(assistant(&answer));
            if version == "first" {
                let mut on = said.clone();
                on.push(user("go on"));
                office.turn(&on, "going on", None);
            }
        }
        if number % 50 == 49 {
            office.restart();
        }
    }
    let last = last.expect("a task");
    assert_eq!(office.holds(last), texts(&said));
    assert_eq!(office.tasks(), 151);
    let registry = office.conversations.contexts();
    let problems = registry.verify(last, None).expect("a verdict");
    assert!(problems.is_empty(), "{problems:?}");
}
