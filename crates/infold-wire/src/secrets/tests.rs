//! Tests of the removal of secrets.

use super::*;

fn key() -> String {
    ["AKIA", "QYLPMN5H", "HHFPZAM2"].concat()
}

const MARKER: &str = "[redacted:aws-access-token]";

#[track_caller]
fn redacts(json: &str, expected: &str) {
    let json = json.replace("KEY", &key());
    let expected = expected.replace("MARKER", MARKER);
    let once = without_secrets(json.as_bytes()).unwrap_or(json.into_bytes());
    assert_eq!(String::from_utf8_lossy(&once), expected);
    assert_eq!(
        without_secrets(&once),
        None,
        "it is redacted once and for all"
    );
}

#[test]
fn every_string_is_looked_at_and_the_rest_stays_as_it_is() {
    redacts(
        r#"{ "a" : ["x KEY y", 1.0, {"KEY":"\u00e9\/ KEY \ud83d\ude00 KEY"}] }"#,
        r#"{ "a" : ["x MARKER y", 1.0, {"MARKER":"\u00e9\/ MARKER \ud83d\ude00 MARKER"}] }"#,
    );
}

#[test]
fn no_escape_hides_a_secret() {
    let escaped: String = key().bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    redacts(
        &format!(r#"{{"a":"\n{escaped}\t\ud800"}}"#),
        r#"{"a":"\nMARKER\t\ud800"}"#,
    );
}

#[test]
fn arguments_are_json_within_a_string() {
    redacts(
        r#"{"arguments":"{\"command\":\"echo\\nKEY\"}"}"#,
        r#"{"arguments":"{\"command\":\"echo\\nMARKER\"}"}"#,
    );
}

#[test]
fn the_name_of_a_member_counts() {
    let value = ["0f3b1c", "9e8d7a", "6b5c4d", "3e2f1a", "0b9c8d", "7e"].concat();
    let json = format!(r#"{{"adobe_client_id":"{value}"}}"#);
    assert_eq!(
        without_secrets(json.as_bytes()).as_deref(),
        Some(&br#"{"adobe_client_id":"[redacted:adobe-client-id]"}"#[..])
    );
    let other = format!(r#"{{"commit":"{value}"}}"#);
    assert_eq!(without_secrets(other.as_bytes()), None);
}

#[test]
fn signed_thinking_goes_whole() {
    redacts(
        r#"[{"type":"thinking","thinking":"KEY","signature":"c2ln"}, {"type":"text","text":"KEY"}]"#,
        r#"[{"type":"text","text":"MARKER"}]"#,
    );
    redacts(
        r#"[{"type":"thinking","thinking":"KEY","signature":"c2ln"}]"#,
        r#"[{"type":"text","text":"MARKER"}]"#,
    );
    redacts(
        r#"[{"text":"KEY","thought":true,"thoughtSignature":"c2ln"}]"#,
        r#"[{"text":"MARKER"}]"#,
    );
    redacts(
        r#"[{"type":"thinking","thinking":"fine","signature":"c2ln"},"KEY"]"#,
        r#"[{"type":"thinking","thinking":"fine","signature":"c2ln"},"MARKER"]"#,
    );
}

#[test]
fn what_is_found_is_shown_by_its_beginning_alone() {
    let json = format!(r#"{{"a":"{}"}}"#, key());
    let shown = FoundSecret {
        rule: "aws-access-token",
        start: "AKIA".to_owned(),
        chars: 20,
    };
    assert_eq!(find_secrets(json.as_bytes()), std::slice::from_ref(&shown));
    assert_eq!(find_secrets(key().as_bytes()), [shown]);
}

#[test]
fn pictures_are_not_looked_into() {
    let data = format!("/{}/", key()).repeat(60);
    assert_eq!(without_secrets(quote(&data).as_bytes()), None);
    let url = format!("data:image/png;base64,{data}");
    assert_eq!(without_secrets(quote(&url).as_bytes()), None);
    assert!(without_secrets(quote(&format!("{data} ")).as_bytes()).is_some());
}

#[test]
fn a_piece_of_json_and_plain_text_are_looked_at_too() {
    let text = format!(r#"[{{"a":"\n{}"}}, {{"b": and {} "#, key(), key());
    let expected = format!(r#"[{{"a":"\n{MARKER}"}}, {{"b": and {MARKER} "#);
    let redacted = fragment_without_secrets(text.as_bytes());
    assert_eq!(redacted.as_deref(), Some(expected.as_bytes()));
    assert_eq!(find_secrets(text.as_bytes()).len(), 2);
}

#[test]
fn what_is_no_json_is_left_alone() {
    assert_eq!(without_secrets(b"\xff"), None);
    assert_eq!(without_secrets(key().as_bytes()), None);
}

#[test]
fn a_secret_that_two_texts_share_is_found() {
    let (start, end) = (&key()[..7], &key()[7..]);
    let blocks =
        format!(r#"[{{"text":"it is \u0021 {start}"}},{{"text":"{end} \n"}},{{"text":"."}}]"#);
    redacts(
        &blocks,
        r#"[{"text":"it is \u0021 MARKER"},{"text":" \n"},{"text":"."}]"#,
    );
    let letters: Vec<String> = key()
        .chars()
        .map(|c| format!(r#"{{"text":"{c}"}}"#))
        .collect();
    let single = without_secrets(format!("[{}]", letters.join(",")).as_bytes());
    let single = String::from_utf8(single.expect("it is found")).expect("it is a text");
    assert!(
        single.starts_with(&format!(r#"[{{"text":"{MARKER}"}},{{"text":""}},"#)),
        "{single}"
    );
    let piece = |text: &str| format!(r#"{{"role":"model","parts":[{{"text":"{text}"}}]}}"#);
    let (one, other) = (piece(start), piece(end));
    let both = joined_without_secrets(&[one.as_bytes(), other.as_bytes()]);
    assert_eq!(both, [piece(MARKER).into_bytes(), piece("").into_bytes()]);
}

#[test]
fn a_string_that_is_cut_is_looked_at_decoded() {
    for end in ["", " ", " \\", " \\u00", " \\ud83d\\u"] {
        let text = format!(r#"{{"content":"cut \n{}{end}"#, key());
        let expected = format!(r#"{{"content":"cut \n{MARKER}{end}"#);
        let redacted = fragment_without_secrets(text.as_bytes()).unwrap_or_default();
        assert_eq!(String::from_utf8_lossy(&redacted), expected);
        assert_eq!(find_secrets(text.as_bytes()).len(), 1);
    }
}

#[test]
fn json_that_is_a_part_of_a_text_hides_no_secret() {
    let hidden = format!("\\u0041{}", &key()[1..]);
    let mut inner = format!(r#"it said {{"key":"{hidden}"}}, fine"#);
    let mut expected = format!(r#"it said {{"key":"{MARKER}"}}, fine"#);
    // A text, a text in a text, and one in that.
    for _ in 0..3 {
        let (json, without) = (quote(&inner), quote(&expected));
        redacts(
            &format!(r#"{{"a":{json}}}"#),
            &format!(r#"{{"a":{without}}}"#),
        );
        assert_eq!(find_secrets(json.as_bytes()).len(), 1, "{json}");
        let fragment = fragment_without_secrets(format!("{{ {json} ").as_bytes());
        let fragment = String::from_utf8(fragment.expect("it is found")).expect("a text");
        assert_eq!(fragment, format!("{{ {without} "));
        assert_eq!(text_without_secrets(&inner).as_deref(), Some(&*expected));
        inner = format!("log: {json}.");
        expected = format!("log: {without}.");
    }
}
