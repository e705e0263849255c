//! The bundled session is the output of its generator, and has the properties of a real session.

#[path = "../examples/session/story/mod.rs"]
mod story;

use std::collections::HashSet;

use serde_json::Value;

const BUNDLED: &str = include_str!("../../../examples/long-session.jsonl");

#[test]
fn bundled_session_is_what_the_generator_prints() {
    let printed = story::session();
    let differs = printed
        .lines()
        .zip(BUNDLED.lines())
        .position(|(new, old)| new != old);
    assert!(
        printed == BUNDLED,
        "line {:?} differs; `cargo run -p infold-cli --example session > examples/long-session.jsonl`",
        differs.map(|n| n + 1),
    );
}

/// Each call has its result in the next message, except for the interrupted one.
#[test]
fn one_call_is_without_a_result() {
    let messages: Vec<Value> = BUNDLED
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut missing = 0;
    for (n, message) in messages.iter().enumerate() {
        let results = messages.get(n + 1).map(|next| ids(next, "tool_use_id"));
        let results = results.unwrap_or_default();
        let calls = ids(message, "id");
        missing += calls.iter().filter(|call| !results.contains(*call)).count();
    }
    assert_eq!(missing, 1);
}

/// The ids of this name in the blocks of a message.
fn ids<'a>(message: &'a Value, name: &str) -> HashSet<&'a str> {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block[name].as_str()).collect()
}
