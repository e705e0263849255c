//! Tests of digests.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn of(message: &str) -> Option<Digest> {
    message_digest(message.as_bytes()).unwrap_or_else(|error| panic!("{error}: {message}"))
}

/// Checks that all messages have the same digest, and one at all.
fn alike(messages: &[&str]) {
    let first = of(messages[0]);
    assert!(first.is_some(), "{}", messages[0]);
    for message in messages {
        assert_eq!(of(message), first, "{message}");
    }
}

/// Checks that no two messages have the same digest.
fn all_differ(messages: &[&str]) {
    let seen: HashSet<_> = messages.iter().map(|message| of(message)).collect();
    assert_eq!(seen.len(), messages.len());
}

#[test]
fn a_reply_is_the_same_when_its_client_sends_it_back() {
    // Anthropic: as recorded, and as sent back with a marker, without reasoning, in another order.
    alike(&[
        r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I look.","citations":null},{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"t1","name":"ls","input":{"path":".","depth":2.0}}],"stop_reason":"tool_use"}"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"I look.\n"},{"type":"tool_use","input":{ "depth":2, "path":"\u002e"},"name":"ls","id":"t1","cache_control":{"type":"ephemeral"}}]}"#,
    ]);
    // Chat.
    alike(&[
        r#"{"role":"assistant","content":null,"refusal":null,"annotations":[],"reasoning_content":"hm","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1, \"b\":[]}"}}]}"#,
        r#"{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"arguments":"{\"b\":[],\"a\":1}","name":"f"}}]}"#,
        r#"{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"arguments":"{\"b\":[],\"a\":1}","name":"f"}}]}"#,
    ]);
    // Responses.
    alike(&[
        r#"{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"done","annotations":[],"logprobs":[]}]}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#,
        r#"{"role":"assistant","content":"done"}"#,
    ]);
    alike(&[
        r#"{"type":"function_call","id":"fc_1","status":"completed","call_id":"c","name":"f","arguments":"{}"}"#,
        r#"{"type":"function_call","call_id":"c","name":"f","arguments":""}"#,
    ]);
    alike(&[
        r#"{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}"#,
        r#"{"type":"web_search_call","action":{"query":"q","type":"search"}}"#,
    ]);
    // Gemini.
    alike(&[
        r#"{"role":"model","parts":[{"text":"hm","thought":true},{"text":"so "},{"text":"it is"},{"functionCall":{"id":"x","name":"f","args":{"a":1}},"thoughtSignature":"s"}]}"#,
        r#"{"role":"model","parts":[{"text":"so it is"},{"functionCall":{"name":"f","args":{"a":1}}}]}"#,
    ]);
    alike(&[
        r#"{"role":"user","parts":[{"functionResponse":{"id":"x","name":"f","response":{"a":1,"b":"c"}}}]}"#,
        r#"{"parts":[{"functionResponse":{"name":"f","response":{ "b":"c", "a":1 }}}],"role":"function"}"#,
    ]);
}

#[test]
fn what_a_tool_gave_back_is_the_same_as_a_text_and_as_a_block() {
    alike(&[
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"out\n"}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":false,"content":[{"type":"text","text":"out"}],"cache_control":{"type":"ephemeral"}}]}"#,
        r#"{"role":"tool","tool_call_id":"t","name":"ls","content":"out"}"#,
        r#"{"type":"function_call_output","id":"fco_1","call_id":"t","output":"out"}"#,
    ]);
    alike(&[
        r#"{"role":"user","content":[{"type":"document","title":"t","source":{"type":"content","content":[{"type":"text","text":"x","cache_control":{}}]}}]}"#,
        r#"{"role":"user","content":[{"type":"document","source":{"content":[{"text":"x","type":"text"}],"type":"content"},"title":"t","citations":{"enabled":true},"cache_control":{"type":"ephemeral"}}]}"#,
    ]);
}

#[test]
fn what_says_nothing_that_comes_back_has_no_digest() {
    for message in [
        r#"{"role":"user","content":" \n"}"#,
        r#"{"role":"user","content":[]}"#,
        r#"{"role":"assistant","content":null}"#,
        r#"{"role":"assistant","content":"","reasoning_content":"hm"}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"}]}"#,
        r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}"#,
        r#"{"role":"model","parts":[{"text":"","thoughtSignature":"s"}]}"#,
    ] {
        assert_eq!(of(message), None, "{message}");
    }
    assert!(message_digest(b"{}").is_err());
}

#[test]
fn what_differs_in_what_it_says_differs() {
    all_differ(&[
        r#"{"role":"user","content":"a b"}"#,
        r#"{"role":"user","content":"a  b"}"#,
        r#"{"role":"user","content":"ab"}"#,
        r#"{"role":"assistant","content":"ab"}"#,
        r#"{"role":"system","content":"ab"}"#,
        r#"{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"ab"}}]}"#,
        r#"{"role":"user","content":[{"type":"image","source":{"type":"url","url":"ab"}}]}"#,
        r#"{"role":"tool","tool_call_id":"t","content":""}"#,
        r#"{"role":"tool","tool_call_id":"t","content":"ab"}"#,
        r#"{"role":"tool","tool_call_id":"tab","content":""}"#,
        r#"{"role":"tool","tool_name":"ls","content":"ab"}"#,
        r#"{"role":"tool","tool_name":"cat","content":"ab"}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ab","is_error":true}]}"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"},{"type":"text","text":"ab"}]}"#,
        r#"{"role":"user","content":[{"type":"text","text":"ab"},{"type":"tool_result","tool_use_id":"t"}]}"#,
        r#"{"type":"item_reference","id":"a"}"#,
        r#"{"type":"item_reference","id":"b"}"#,
    ]);
    let call = |input: &str| {
        let block = format!(r#"{{"type":"tool_use","id":"i","name":"n","input":{input}}}"#);
        of(&format!(r#"{{"role":"assistant","content":[{block}]}}"#))
    };
    let inputs = [
        r#"{}"#,
        r#"{"a":1}"#,
        r#"{"a":2}"#,
        r#"{"a":1.5}"#,
        r#"{"a":-1}"#,
        r#"{"a":-12345678901234567890}"#,
        r#"{"a":-12345678901234567891}"#,
        r#"{"a":"1"}"#,
        r#"{"a":[1]}"#,
        r#"{"a":[[1]]}"#,
        r#"{"a":[],"b":1}"#,
        r#"{"a":{"b":1}}"#,
        r#"{"a":null}"#,
        r#"{"a":" 1"}"#,
        r#"{"cache_control":1}"#,
    ];
    let seen: HashSet<_> = inputs.iter().map(|input| call(input)).collect();
    assert_eq!(seen.len(), inputs.len());
    // Of duplicates the last one counts.
    assert_eq!(call(r#"{"a":2,"\u0061":1}"#), call(r#"{"a":1}"#));
}

#[test]
fn chains_tell_orders_apart() {
    let (one, other) = ([1; 16], [2; 16]);
    let two = |one, other| chain_digest(chain_digest(empty_chain(), one), other);
    assert_ne!(two(one, other), two(other, one));
    assert_ne!(chain_digest(empty_chain(), one), one);
}

#[test]
fn hostile_nesting_takes_its_time_and_no_more() {
    let deep = format!("{}1{}", r#"{"a":["#.repeat(20_000), "]}".repeat(20_000));
    let message = format!(
        r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"i","name":"n","input":{deep}}}]}}"#
    );
    let _ = message_digest(message.as_bytes());
}

/// A value written with its members in any order and white space anywhere.
fn written(value: &Value, seed: &mut u64, out: &mut String) {
    let mut roll = |most: usize| {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*seed >> 33) as usize % most.max(1)
    };
    let space = ["", " ", "\n  "][roll(3)];
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            let turn = roll(members.len());
            members.rotate_left(turn);
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(&format!("{space}{}{space}:", crate::quote(name)));
                written(value, seed, out);
            }
            out.push('}');
        }
        Value::Array(all) => {
            out.push('[');
            for (at, value) in all.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                written(value, seed, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
    out.push_str(space);
}

fn any_arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-cé\n\"]{0,6}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-d]", value, 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Anthropic blocks that say something.
fn any_blocks() -> impl Strategy<Value = Vec<Value>> {
    let text = "[a-c\n é🚀\\\\\"]{0,12}x";
    let block = prop_oneof![
        text.prop_map(|text| json!({"type":"text","text":text})),
        ("[a-z]{3}", any_arguments())
            .prop_map(|(id, input)| json!({"type":"tool_use","id":id,"name":"n","input":input})),
        ("[a-z]{3}", text)
            .prop_map(|(id, text)| json!({"type":"tool_result","tool_use_id":id,"content":text})),
        text.prop_map(|text| json!({"type":"strange","say":{"it":text}})),
    ];
    prop::collection::vec(block, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A message has the same digest in every client's notation.
    #[test]
    fn every_hand_writes_the_same(
        blocks in any_blocks(),
        seed in any::<u64>(),
        mark in any::<prop::sample::Index>(),
        thought in any::<prop::sample::Index>(),
    ) {
        let message = json!({"role":"assistant","content":blocks});
        let first = of(&message.to_string());
        prop_assert!(first.is_some());
        let mut out = String::new();
        written(&message, &mut { seed }, &mut out);
        prop_assert_eq!(of(&out), first);
        let mut other = blocks.clone();
        other[mark.index(blocks.len())]["cache_control"] = json!({"type":"ephemeral"});
        let thinking = json!({"type":"thinking","thinking":"hm","signature":"s"});
        other.insert(thought.index(blocks.len() + 1), thinking);
        let other = json!({"role":"assistant","id":"msg","content":other});
        prop_assert_eq!(of(&other.to_string()), first);
        let again: Value = serde_json::from_str(&out).unwrap();
        prop_assert_eq!(of(&serde_json::to_string_pretty(&again).unwrap()), first);
    }

    /// A text is the same as a block, and white space around it does not count.
    #[test]
    fn a_text_is_a_block(text in "[a-c\n é🚀\\\\\"]{0,40}x", space in "[ \n\t]{0,9}", cut in any::<prop::sample::Index>()) {
        let first = of(&json!({"role":"user","content":text}).to_string());
        let around = format!("{space}{text}{space}");
        let block = json!({"role":"user","content":[{"type":"text","text":around}]});
        prop_assert_eq!(of(&block.to_string()), first);
        let at = (0..=cut.index(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let parts = [&text[..at], &text[at..]];
        let parts = parts.map(|text| json!({"type":"text","text":text}));
        let both = json!({"role":"user","content":parts});
        prop_assert_eq!(of(&both.to_string()), first);
    }

    /// Every change of the content changes the digest.
    #[test]
    fn every_change_shows(blocks in any_blocks(), which in any::<prop::sample::Index>(), more in "[a-z]") {
        let first = of(&json!({"role":"user","content":blocks}).to_string());
        let mut other = blocks.clone();
        let block = &mut other[which.index(blocks.len())];
        for place in ["/text", "/id", "/tool_use_id", "/say/it"] {
            if let Some(Value::String(text)) = block.pointer_mut(place) {
                text.push_str(&more);
            }
        }
        let changed = of(&json!({"role":"user","content":other}).to_string());
        prop_assert_ne!(changed, first);
        let spoken = of(&json!({"role":"assistant","content":blocks}).to_string());
        prop_assert_ne!(spoken, first);
        let mut fewer = blocks.clone();
        fewer.remove(which.index(blocks.len()));
        if !fewer.is_empty() {
            prop_assert_ne!(of(&json!({"role":"user","content":fewer}).to_string()), first);
        }
    }

    /// Arguments that differ make calls that differ.
    #[test]
    fn arguments_are_told_apart(one in any_arguments(), other in any_arguments()) {
        let call = |arguments: &Value| {
            let function = json!({"name":"f","arguments":arguments.to_string()});
            of(&json!({"role":"assistant","tool_calls":[{"id":"c","function":function}]}).to_string())
        };
        prop_assert_eq!(call(&one) == call(&other), one == other);
    }
}

#[test]
fn ten_times_as_many_results_take_about_ten_times_as_long() {
    /// Returns the CPU time of this thread: other processes share the machine.
    fn spent() -> Duration {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or(0))
    }

    let message = |results: usize| {
        let part = |at: usize| {
            format!(r#"{{"functionResponse":{{"name":"ls","response":{{"output":"file {at}"}}}}}}"#)
        };
        let parts: Vec<String> = (0..results).map(part).collect();
        format!(r#"{{"role":"user","parts":[{}]}}"#, parts.join(","))
    };
    let took = |results: usize, times: usize| {
        let message = message(results);
        let began = spent();
        for _ in 0..times {
            message_digest(message.as_bytes()).unwrap();
        }
        spent() - began
    };
    let (few, many) = (took(3_000, 100), took(30_000, 10));
    assert!(
        many < 4 * few + Duration::from_millis(20),
        "{few:?}, then {many:?}"
    );
}
