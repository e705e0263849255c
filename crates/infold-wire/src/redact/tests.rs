//! Tests of redaction.

use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::{Json, Message};

const MARKER: &str = "[redacted e7]";

fn hits(word: &str) -> impl FnMut(&str) -> Vec<Range<usize>> {
    move |text| {
        let found = text.match_indices(word);
        found.map(|(at, hit)| at..at + hit.len()).collect()
    }
}

fn replaced(message: &str, word: &str) -> String {
    let redacted = redact_matches(message.as_bytes(), MARKER, &mut hits(word)).unwrap();
    String::from_utf8(redacted.bytes.expect("something is found")).unwrap()
}

/// Messages of every wire with the secret in every possible place.
const MESSAGES: [&str; 25] = [
    r#"{"role":"user","content":"it is SECRET"}"#,
    r#"{"role":"user","name":"SECRET","content":[{"type":"text","text":"SECRET"},{"type":"image_url","image_url":{"url":"data:image/png;base64,SECRET"}}]}"#,
    r#"{"role":"assistant","content":null,"reasoning_content":"SECRET","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"path\":\"SECRET\"}"}}]}"#,
    r#"{"role":"assistant","content":null,"refusal":"SECRET"}"#,
    r#"{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.encrypted","data":"SECRET"}]}"#,
    r#"{"role":"tool","tool_call_id":"c1","content":"SECRET"}"#,
    r#"{"role":"function","name":"ls","content":"SECRET"}"#,
    r#"{"role":"assistant","content":"","function_call":{"name":"ls","arguments":"SECRET"}}"#,
    r#"{"role":"assistant","content":[{"type":"thinking","thinking":"SECRET","signature":"c2ln"},{"type":"text","text":"SECRET"},{"type":"tool_use","id":"t1","name":"ls","input":{"SECRET":"a","b":["SECRET"]}}]}"#,
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"SECRET"},{"type":"image","source":{"data":"SECRET"}}]},{"type":"text","text":"go on"}]}"#,
    r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"SECRET"}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","title":"SECRET","encrypted_content":"Zz"}]}]}"#,
    r#"{"role":"assistant","content":[{"type":"new_block","id":"n_1","parent_id":"p_1","payload":"SECRET"}]}"#,
    r#"{"role":"user","parts":[{"text":"SECRET"},{"inlineData":{"mimeType":"image/png","data":"SECRET"}}]}"#,
    r#"{"role":"model","parts":[{"text":"SECRET","thought":true},{"functionCall":{"id":"f1","name":"ls","args":{"a":"SECRET"}},"thoughtSignature":"Zz"},{"executableCode":{"language":"PYTHON","code":"SECRET"}}]}"#,
    r#"{"role":"user","parts":[{"functionResponse":{"id":"f1","name":"ls","response":{"output":"SECRET"}}}]}"#,
    r#"{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"SECRET","annotations":[]}]}"#,
    r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"SECRET"}],"encrypted_content":"Zz"}"#,
    r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"ls","arguments":"{\"a\":\"SECRET\"}"}"#,
    r#"{"type":"function_call_output","call_id":"c1","output":"SECRET"}"#,
    r#"{"type":"local_shell_call","id":"l_1","call_id":"c1","action":{"type":"exec","command":["echo","SECRET"],"env":{}}}"#,
    r#"{"type":"mcp_call","id":"m_1","approval_request_id":"a","name":"f","server_label":"l","arguments":"{\"a\":\"SECRET\"}","output":"SECRET"}"#,
    r#"{"type":"local_shell_call","id":"l_1","call_id":"c1","action":{"type":"exec","command":["env"],"env":{"SECRET":"1"}}}"#,
    r#"{"type":"file_search_call","id":"f_1","status":"completed","queries":["SECRET"],"results":[{"file_id":"f","text":"SECRET","score":0.5,"attributes":{"SECRET":2}}]}"#,
    r#"{"type":"new_call","id":"n_1","payload":{"SECRET":[{"SECRET":1}]},"SECRET":true}"#,
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","caller":{"type":"code_execution_20250825","tool_id":"s1","SECRET":"SECRET"},"input":{}}]}"#,
];

/// The values that other messages are paired with it by.
fn pairs(message: &[u8]) -> impl PartialEq + std::fmt::Debug {
    let message = Message::read(message).unwrap();
    let facts = message.facts();
    let parts = message.parts().len();
    let role = (facts.role, facts.item, message.form());
    (role, facts.calls, facts.answers, facts.links, parts)
}

#[test]
fn nothing_of_a_message_is_left_but_what_it_is_paired_by() {
    for message in MESSAGES {
        let whole = redact_message(message.as_bytes(), MARKER).unwrap();
        let text = String::from_utf8_lossy(&whole);
        assert!(!text.contains("SECRET"), "{text}");
        assert!(text.contains(MARKER), "{text}");
        assert!(!text.contains("Zz") && !text.contains("c2ln"), "{text}");
        assert!(Message::parse(&whole).is_ok(), "{text}");
        assert_eq!(pairs(&whole), pairs(message.as_bytes()), "{message}");
        let again = redact_message(&whole, MARKER).unwrap();
        assert_eq!(pairs(&again), pairs(&whole), "{text}");
    }
}

#[test]
fn matches_are_replaced_in_every_text_of_every_wire() {
    for message in MESSAGES {
        // A name identifies the speaker or the called tool.
        let message = message.replace(r#""name":"SECRET""#, r#""name":"ann""#);
        let text = replaced(&message, "SECRET");
        assert!(!text.contains("SECRET"), "{text}");
        assert!(text.contains(MARKER), "{text}");
        assert!(Message::parse(text.as_bytes()).is_ok(), "{text}");
        assert_eq!(pairs(text.as_bytes()), pairs(message.as_bytes()));
    }
}

#[test]
fn reasoning_with_a_match_goes_whole_and_so_do_signatures() {
    let thought = replaced(MESSAGES[8], "SECRET");
    assert!(!thought.contains("thinking") && !thought.contains("c2ln"));
    let part = replaced(MESSAGES[13], "SECRET");
    assert!(!part.contains("\"thought\""), "{part}");
    assert!(!part.contains("Zz"), "{part}");
    let item = replaced(MESSAGES[16], "SECRET");
    assert!(!item.contains("encrypted_content"), "{item}");
    let kept = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"SECRET"}]}"#;
    assert!(replaced(kept, "SECRET").contains(r#""thinking":"hm","signature":"c2ln""#));
}

#[test]
fn escapes_do_not_hide_a_match_and_the_rest_keeps_its_bytes() {
    let message =
        r#"{ "role":"user", "content":"a\ud83d\u00e9 \u0053ECRE\u0054\n\/ \ud83d\ude80 SECRET" }"#;
    assert_eq!(
        replaced(message, "SECRET"),
        r#"{ "role":"user", "content":"a\ud83d\u00e9 [redacted e7]\n\/ \ud83d\ude80 [redacted e7]" }"#
    );
}

#[test]
fn a_match_is_found_inside_json_that_stands_in_a_text() {
    let message =
        r#"{"role":"tool","tool_call_id":"c","content":"{\"password\":\"a\\\"b\",\"n\":1}"}"#;
    let text = replaced(message, "a\"b");
    assert_eq!(
        text,
        r#"{"role":"tool","tool_call_id":"c","content":"{\"password\":\"[redacted e7]\",\"n\":1}"}"#
    );
}

#[test]
fn a_match_is_found_in_escaped_json_that_is_a_part_of_a_text() {
    let message = r#"{"role":"tool","tool_call_id":"c","content":"$ cat f\n{\"a\":\"p\\\"q\",\"b\":\"{\\\"c\\\":\\\"p\\\\\\\"q\\\"}\"}\ndone"}"#;
    assert_eq!(
        replaced(message, "p\"q"),
        r#"{"role":"tool","tool_call_id":"c","content":"$ cat f\n{\"a\":\"[redacted e7]\",\"b\":\"{\\\"c\\\":\\\"[redacted e7]\\\"}\"}\ndone"}"#
    );
    let unicode = r#"{"role":"user","content":"log: {\"k\":\"\\u0053ECRET\"} end"}"#;
    assert_eq!(
        replaced(unicode, "SECRET"),
        r#"{"role":"user","content":"log: {\"k\":\"[redacted e7]\"} end"}"#
    );
    // The depth of nesting does not matter.
    let mut nested = r#"sword"fish"#.to_owned();
    for _ in 0..10 {
        nested = format!(r#"{{"a":{}}}"#, crate::quote(&nested));
    }
    let deep = format!(
        r#"{{"role":"user","content":{}}}"#,
        crate::quote(&format!("INFO {nested}"))
    );
    assert!(!replaced(&deep, "sword\"fish").contains("sword"));
}

#[test]
fn names_and_numbers_of_members_that_no_provider_documents_are_content() {
    let message =
        r#"{"role":"user","content":"x","card":4111,"extra":{"k4111":[4111,true],"my_id":"4111"}}"#;
    let redacted = redact_matches(message.as_bytes(), MARKER, &mut hits("4111")).unwrap();
    assert_eq!((redacted.matches, redacted.left), (3, 1));
    assert_eq!(
        String::from_utf8(redacted.bytes.unwrap()).unwrap(),
        r#"{"role":"user","content":"x","card":"[redacted e7]","extra":{"k[redacted e7]":["[redacted e7]",true],"my_id":"4111"}}"#
    );
    let counted = r#"{"role":"assistant","content":[{"type":"text","text":"x","citations":[{"start_index":4111}]}]}"#;
    let redacted = redact_matches(counted.as_bytes(), MARKER, &mut hits("4111")).unwrap();
    assert_eq!((redacted.bytes, redacted.left), (None, 1));
}

#[test]
fn an_item_keeps_the_members_that_its_provider_wants() {
    let whole = |item: &str| {
        let whole = redact_message(item.as_bytes(), MARKER).unwrap();
        String::from_utf8(whole).unwrap()
    };
    assert_eq!(
        whole(
            r#"{"type":"local_shell_call","id":"l","call_id":"c","action":{"type":"exec","command":["x"],"env":{"K":"1"},"timeout_ms":9}}"#
        ),
        r#"{"type":"local_shell_call","id":"l","call_id":"c","action":{"type":"exec","command":["[redacted e7]"],"env":{"redacted":"[redacted e7]"},"timeout_ms":0}}"#
    );
    assert_eq!(
        whole(
            r#"{"type":"shell_call","id":"s","call_id":"c","environment":{"type":"container_reference","container_id":"k","K":1},"action":{"commands":["x"],"max_output_length":9}}"#
        ),
        r#"{"type":"shell_call","id":"s","call_id":"c","environment":{"type":"container_reference","container_id":"k"},"action":{"commands":["[redacted e7]"],"max_output_length":0}}"#
    );
    assert_eq!(
        whole(r#"{"type":"new_call","id":"n","payload":{"K":1}}"#),
        r#"{"type":"new_call","id":"n","redacted":"[redacted e7]"}"#
    );
}

#[test]
fn a_record_keeps_what_its_transcript_is_read_by() {
    let record = r#"{"type":"user","uuid":"u-4111","parentUuid":null,"isSidechain":true,"timestamp":"4111-01-01T00:00:00Z","cwd":"/4111","k4111":4111,"message":"@","toolUseResult":{"type":"4111","n":4111}}"#;
    let redacted = redact_record(record.as_bytes(), b"\"@\"", MARKER, &mut hits("4111")).unwrap();
    assert_eq!((redacted.matches, redacted.left), (5, 2));
    assert_eq!(
        String::from_utf8(redacted.bytes.unwrap()).unwrap(),
        r#"{"type":"user","uuid":"u-4111","parentUuid":null,"isSidechain":true,"timestamp":"4111-01-01T00:00:00Z","cwd":"/[redacted e7]","k[redacted e7]":"[redacted e7]","message":"@","toolUseResult":{"type":"[redacted e7]","n":"[redacted e7]"}}"#
    );
    let any = |text: &str| (0..text.len()).map(|at| at..at + 1).collect();
    let redacted = redact_record(record.as_bytes(), b"\"@\"", "R", &mut { any }).unwrap();
    let bytes = redacted.bytes.unwrap();
    let json = Json::parse(&bytes).unwrap();
    assert!(json.get("message").unwrap().is("@"));
    assert!(json.get("isSidechain").unwrap().is_true());
}

#[test]
fn a_match_from_a_name_into_its_value_takes_the_value() {
    let message = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"pin": 48231,"a":"x","b":true}},{"type":"text","text":"x"}]}"#;
    let of = |word| replaced(message, word);
    assert!(of("pin\": 482").contains(r#""input":{"pin": "[redacted e7]","a":"x","b":true}"#));
    assert!(of("\"a\":\"x\"").contains(r#"{"pin": 48231,"a":"[redacted e7]","b":true}"#));
    assert!(of("b\":t").contains(r#""a":"x","b":"[redacted e7]"}"#));
    // Names that providers document are no content.
    let redacted = redact_matches(message.as_bytes(), MARKER, &mut hits("text\":\"x")).unwrap();
    assert_eq!(redacted, RedactedMatches::default());
}

#[test]
fn what_messages_are_paired_by_is_left_and_counted() {
    let message = br#"{"role":"tool","tool_call_id":"call_9","content":"call_9 is done"}"#;
    let redacted = redact_matches(message, MARKER, &mut hits("call_9")).unwrap();
    assert_eq!((redacted.matches, redacted.left), (1, 1));
    assert_eq!(
        redacted.bytes.unwrap(),
        br#"{"role":"tool","tool_call_id":"call_9","content":"[redacted e7] is done"}"#
    );
}

#[test]
fn without_a_match_there_are_no_new_bytes() {
    for message in MESSAGES {
        let redacted = redact_matches(message.as_bytes(), MARKER, &mut hits("nowhere")).unwrap();
        assert_eq!(redacted, RedactedMatches::default());
    }
}

#[test]
fn a_fragment_is_searched_however_often_it_is_escaped() {
    let find = |text: &str| redact_fragment(text, "R", &mut hits("a\"b\n"));
    assert_eq!(find("x a\"b\n y").unwrap(), "x R y");
    assert_eq!(find(r#"{"k":"x a\"b\n y"#).unwrap(), r#"{"k":"x R y"#);
    assert_eq!(
        find(r#"{"k":"{\"j\":\"\u0061\\\"b\\n"#).unwrap(),
        r#"{"k":"{\"j\":\"R"#
    );
    assert_eq!(find(r#"C:\users\q \u12"#), None);
}

proptest! {
    #[test]
    fn a_text_without_its_matches_is_what_string_replacement_makes_of_it(
        text in "[abx\"\\\\\n/é🚀]{0,24}", word in "[abé🚀]{1,2}"
    ) {
        let quoted = crate::quote(&text);
        let redacted = redact_json(quoted.as_bytes(), "R", &mut hits(&word)).unwrap();
        let bytes = redacted.bytes.unwrap_or(quoted.clone().into_bytes());
        let said = Json::parse(&bytes).unwrap().text().unwrap().into_owned();
        prop_assert_eq!(said, text.replace(&word, "R"));
    }
}

#[test]
fn media_with_a_match_go_whole_on_every_wire() {
    let text = r#"{"type":"text","text":"[redacted e7]"}"#;
    let item = r#"{"type":"input_text","text":"[redacted e7]"}"#;
    let cases = [
        (
            r#"{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORSECRETw0K","detail":"low"}}]}"#,
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"look"}},{text}]}}"#),
        ),
        (
            r#"{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"UklGRSECRET","format":"wav"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBSECRET"}}]}"#,
            format!(r#"{{"role":"user","content":[{text},{text}]}}"#),
        ),
        (
            r#"{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORSECRETw0K"}},{"type":"document","title":"a","source":{"type":"base64","media_type":"application/pdf","data":"JVBSECRET"}},{"type":"image","source":{"type":"url","url":"https://example.com/SECRET.png"}}]}"#,
            format!(r#"{{"role":"user","content":[{text},{text},{text}]}}"#),
        ),
        (
            r#"{"role":"user","content":[{"type":"document","title":"SECRET","source":{"type":"text","media_type":"text/plain","data":"it is SECRET"}}]}"#,
            r#"{"role":"user","content":[{"type":"document","title":"[redacted e7]","source":{"type":"text","media_type":"text/plain","data":"it is [redacted e7]"}}]}"#.to_owned(),
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"here"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVSECRET"}}]}]}"#,
            format!(r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":[{{"type":"text","text":"here"}},{text}]}}]}}"#),
        ),
        (
            r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,iVSECRET","detail":"auto"},{"type":"input_file","filename":"SECRET.pdf","file_data":"JVBE"}]}"#,
            format!(r#"{{"type":"message","role":"user","content":[{item},{{"type":"input_file","filename":"[redacted e7].pdf","file_data":"JVBE"}}]}}"#),
        ),
        (
            r#"{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"data:image/png;base64,iVSECRET"}]}"#,
            format!(r#"{{"type":"function_call_output","call_id":"c1","output":[{item}]}}"#),
        ),
        (
            r#"{"role":"user","parts":[{"text":"look"},{"inlineData":{"mimeType":"image/png","data":"iVSECRET"}},{"fileData":{"mimeType":"text/plain","fileUri":"gs://SECRET"}}]}"#,
            r#"{"role":"user","parts":[{"text":"look"},{"text":"[redacted e7]"},{"text":"[redacted e7]"}]}"#.to_owned(),
        ),
        (
            r#"{"role":"user","parts":[{"functionResponse":{"id":"f1","name":"ls","response":{"output":"fine"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVSECRET"}},{"inlineData":{"mimeType":"image/png","data":"iVB"}}]}}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"id":"f1","name":"ls","response":{"output":"fine"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVB"}}]}}]}"#.to_owned(),
        ),
        (
            r#"{"role":"user","content":"look","images":["iVSECRET","iVB"]}"#,
            r#"{"role":"user","content":"look\n[redacted e7]","images":["iVB"]}"#.to_owned(),
        ),
        (
            r#"{"role":"user","content":"","images":["iVSECRET"]}"#,
            r#"{"role":"user","content":"[redacted e7]","images":[]}"#.to_owned(),
        ),
    ];
    for (message, expected) in cases {
        assert_eq!(replaced(message, "SECRET"), expected, "{message}");
        let other = replaced(message, "SECRET").into_bytes();
        assert_eq!(pairs(&other), pairs(message.as_bytes()), "{message}");
    }
    // Arguments of tools may have any members.
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"get","input":{"type":"image","url":"https://SECRET/"}}]}"#;
    assert_eq!(
        replaced(call, "SECRET"),
        call.replace("SECRET", MARKER),
        "a tool's own members"
    );
}

#[test]
fn items_that_must_have_an_image_keep_one() {
    let drawn =
        r#"{"type":"image_generation_call","id":"ig_1","status":"completed","result":"iVSECRET"}"#;
    let shot = r#"{"type":"computer_call_output","call_id":"c1","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,iVSECRET"}}"#;
    for message in [drawn, shot] {
        let whole = redact_message(message.as_bytes(), MARKER).unwrap();
        for redacted in [
            replaced(message, "SECRET"),
            String::from_utf8(whole).unwrap(),
        ] {
            assert!(
                redacted.contains("iVBORw0KGgo") && redacted.len() > 100,
                "{redacted}"
            );
            assert_eq!(pairs(redacted.as_bytes()), pairs(message.as_bytes()));
        }
    }
}

/// Arguments of a call on every wire that has them, before and after.
const SPANNED: [(&str, &str); 6] = [
    (
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"user\":\"me\",\"key\":\"SECRET\"}"}}]}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"redacted\":\"[redacted e7]\"}"}}]}"#,
    ),
    (
        r#"{"type":"function_call","call_id":"c1","name":"ls","arguments":"{\"user\":\"me\",\"key\":\"SECRET\"}"}"#,
        r#"{"type":"function_call","call_id":"c1","name":"ls","arguments":"{\"redacted\":\"[redacted e7]\"}"}"#,
    ),
    (
        r#"{"role":"assistant","content":"","tool_calls":[{"function":{"name":"ls","arguments":{"user":"me","key":"SECRET"}}}]}"#,
        r#"{"role":"assistant","content":"","tool_calls":[{"function":{"name":"ls","arguments":{"redacted":"[redacted e7]"}}}]}"#,
    ),
    (
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":{"user":"me","key":"SECRET"}}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":{"redacted":"[redacted e7]"}}]}"#,
    ),
    (
        r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"user":"me","key":"SECRET"}}}]}"#,
        r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"redacted":"[redacted e7]"}}}]}"#,
    ),
    (
        r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"user":"me","key":"SECRET"}}}]}"#,
        r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"redacted":"[redacted e7]"}}}]}"#,
    ),
];

#[test]
fn arguments_with_a_match_that_spans_their_values_go_whole_and_stay_json() {
    for (before, after) in SPANNED {
        for pattern in [r#""me","key":"SECRET""#, r#"me","key":"SEC"#] {
            assert_eq!(replaced(before, pattern), after);
        }
        // From a name into its value, the value goes.
        let value = replaced(before, r#""key":"SECRET"#);
        assert!(!value.contains("SECRET"), "{value}");
        // Again nothing is found.
        let mut found = hits(r#""redacted":"#);
        let again = redact_matches(after.as_bytes(), MARKER, &mut found).unwrap();
        assert_eq!(again.bytes, None, "{after}");
    }
    let record = br#"{"user":"me","key":"SECRET"}"#;
    let redacted = redact_data(record, MARKER, &mut hits(r#""me","key":"SECRET""#)).unwrap();
    assert_eq!(redacted.bytes.unwrap(), br#"{"redacted":"[redacted e7]"}"#);
}

/// Gemini takes no call without a signature, and no signature that is not of its content.
#[test]
fn a_call_with_a_match_gets_a_signature_that_is_of_any_content() {
    let call = r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"a":"SECRET"}},"thoughtSignature":"Zz"},{"text":"SECRET","thoughtSignature":"Yy"}]}"#;
    assert_eq!(
        replaced(call, "SECRET"),
        r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"a":"[redacted e7]"}},"thoughtSignature":"skip_thought_signature_validator"},{"text":"[redacted e7]"}]}"#
    );
    let call = r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","extra_content":{"google":{"thought_signature":"Zz"}},"function":{"name":"ls","arguments":"{\"a\":\"SECRET\"}"}}]}"#;
    assert_eq!(
        replaced(call, "SECRET"),
        r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}},"function":{"name":"ls","arguments":"{\"a\":\"[redacted e7]\"}"}}]}"#
    );
}

/// The signature of a thought is on a later part.
#[test]
fn signatures_behind_a_redacted_thought_go_with_it() {
    let parts = r#"[{"text":"before","thoughtSignature":"Aa"},{"text":"SECRET","thought":true},{"text":"so","thoughtSignature":"Yy"},{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"Zz"},{"text":"more"}]"#;
    let content = format!(r#"{{"role":"model","parts":{parts}}}"#);
    assert_eq!(
        replaced(&content, "SECRET"),
        r#"{"role":"model","parts":[{"text":"before","thoughtSignature":"Aa"},{"text":"[redacted e7]"},{"text":"so"},{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"text":"more"}]}"#
    );
    // Of another part that loses something, only its own.
    let text = replaced(&content, "more");
    assert!(
        text.contains("Aa") && text.contains("Yy") && text.contains("Zz"),
        "{text}"
    );
}

/// Matches everything of a text that holds the word, as `.*SECRET.*` does.
fn whole_lines(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.contains("SECRET") {
            found.push(start..start + line.trim_end_matches('\n').len());
        }
        start += line.len();
    }
    found
}

#[test]
fn a_match_beyond_arguments_leaves_them_json() {
    let calls = [
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"path\":\"a SECRET b\",\"n\":1}"}}]}"#,
        r#"{"role":"assistant","content":"","function_call":{"name":"ls","arguments":"{\"path\":\"a SECRET b\"}"}}"#,
        r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"ls","arguments":"{\"path\":\"a SECRET b\",\"n\":1}"}"#,
        r#"{"type":"mcp_call","id":"m_1","name":"f","server_label":"l","arguments":"{\"a\":\"SECRET\"}","output":"x"}"#,
        r#"{"role":"assistant","content":"","tool_calls":[{"function":{"name":"ls","arguments":{"path":"SECRET"}}}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"ls","input":{"path":"SECRET"}}]}"#,
        r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"path":"SECRET"}}}]}"#,
    ];
    for call in calls {
        let quoted = |text: &str| {
            let at = text
                .find("\"arguments\":")
                .filter(|_| text.contains("SECRET"));
            Vec::from_iter(at.map(|at| at..text.len()))
        };
        for find in [&whole_lines as &dyn Fn(&str) -> Vec<Range<usize>>, &quoted] {
            let redacted = redact_matches(call.as_bytes(), MARKER, &mut |text| find(text));
            let Some(bytes) = redacted.unwrap().bytes else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("SECRET"), "{text}");
            assert!(Message::parse(&bytes).is_ok(), "{text}");
            let function = text.find("\"arguments\":").map(|at| &text[at + 12..]);
            let arguments = function.filter(|rest| rest.starts_with('"'));
            let Some(arguments) = arguments else { continue };
            assert!(arguments.starts_with("\"{\\\""), "{text}");
        }
    }
}
