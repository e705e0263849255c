//! Counts equal those of the reference, for any chunks and for hostile texts.

use std::time::Duration;

use infold_wire::tokens::{
    Counter, Encoding, Estimator, count, message, message_by, part, text_message,
};
use infold_wire::{Json, Message, quote};
use proptest::prelude::*;

const ENCODINGS: [(Encoding, &str); 2] = [(Encoding::O200k, "o200k"), (Encoding::Cl100k, "cl100k")];

/// Counts recorded with the reference; `INFOLD_COUNTS` names a file with more of them.
#[test]
fn counts_are_those_of_the_reference() {
    let recorded = match std::env::var_os("INFOLD_COUNTS") {
        Some(file) => std::fs::read(file).unwrap(),
        None => include_bytes!("tokens/counts.jsonl").to_vec(),
    };
    let lines = recorded.split(|byte| *byte == b'\n');
    for line in lines.filter(|line| !line.is_empty()) {
        let case = Json::parse(line).unwrap();
        let text = case.get("text").unwrap().text().unwrap();
        for (encoding, name) in ENCODINGS {
            let expected = case.get(name).unwrap().number().unwrap();
            assert_eq!(count(encoding, &text) as f64, expected, "{name}: {text:?}");
        }
    }
}

/// Returns the count of a text that arrives in chunks of these numbers of characters.
fn streamed(encoding: Encoding, text: &str, chunks: &[usize]) -> u64 {
    let mut counter = Counter::new(encoding);
    let mut rest = text;
    for chars in chunks {
        let end = rest
            .char_indices()
            .nth(*chars)
            .map_or(rest.len(), |(at, _)| at);
        counter.push(&rest[..end]);
        rest = &rest[end..];
    }
    counter.push(rest);
    counter.finish()
}

/// Texts of all classes that the splitters distinguish, long enough to be split while they stream.
fn any_text() -> impl Strategy<Value = String> {
    let bits = prop::sample::select(vec![
        "a", "B", "é", "Ǆ", "ʰ", "中", "\u{301}", "7", "٣", " ", "  ", "\n", "\r", "\u{3000}", "'",
        "'s", "'Ll", "ſ", "/", "!", "😀", "the ", "Word", "{\"a\":",
    ]);
    let run = (bits, 1..40usize).prop_map(|(bit, times)| bit.repeat(times));
    let long = (run.clone(), 1..3000usize)
        .prop_map(|(run, times)| run.repeat(times.min(20_000 / run.len())));
    prop::collection::vec(prop_oneof![9 => run, 1 => long], 0..12).prop_map(|runs| runs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A text counts the same in any chunks.
    #[test]
    fn streaming_counts_the_whole(
        text in any_text(),
        chunks in prop::collection::vec(0..9000usize, 0..12),
    ) {
        for (encoding, _) in ENCODINGS {
            let whole = count(encoding, &text);
            prop_assert_eq!(streamed(encoding, &text, &chunks), whole);
            prop_assert_eq!(streamed(encoding, &text, &vec![1; 300]), whole);
        }
    }

    /// A JSON string counts like its text, with any escapes.
    #[test]
    fn json_counts_as_the_text_it_says(text in any_text()) {
        let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        for string in [quote(&text), format!("\"{escaped}\"")] {
            let mut counter = Counter::new(Encoding::O200k);
            counter.push_json(Json::parse(string.as_bytes()).unwrap());
            prop_assert_eq!(counter.finish(), count(Encoding::O200k, &text));
        }
    }
}

/// Eight times as much does not take much more than eight times as long.
#[test]
fn hostile_texts_take_linear_time() {
    let texts = [
        "a",
        " ",
        "\n",
        "=",
        "中",
        "\u{301}A",
        "中A",
        "a'",
        " \u{3000}",
    ];
    count(Encoding::O200k, "");
    for text in texts {
        let time = |length: usize| {
            let text = text.repeat(length / text.len());
            let start = spent();
            count(Encoding::O200k, &text);
            spent() - start
        };
        let (short, long) = (time(30_000), time(240_000));
        // Were it quadratic, it would be 64 times as long.
        let most = short * 24 + Duration::from_millis(150);
        assert!(long < most, "{text:?}: {short:?}, then {long:?}");
    }
}

/// Returns the CPU time of this thread: other processes share the machine.
fn spent() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

fn weighed(text: &str) -> u64 {
    message(&Message::parse(text.as_bytes()).expect("a message"))
}

#[test]
fn each_kind_of_content_has_its_rule() {
    let text = |text| count(Encoding::O200k, text);
    assert_eq!(weighed(r#"{"role":"user","content":"hello world"}"#), 4 + 2);
    assert_eq!(
        weighed(r#"{"role":"user","content":"hello world"}"#),
        text_message("hello world")
    );
    let call = text("Tool: ls\nArguments: ");
    let chat = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{\"a\": 1}"}}]}"#;
    assert_eq!(weighed(chat), 4 + call + text(r#"{"a": 1}"#));
    let blocks = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"ls","input":{"a": "\u4e2d\n"}}]}"#;
    assert_eq!(weighed(blocks), 4 + call + text("{\"a\":\"中\\n\"}"));
    let result = r#"{"role":"tool","tool_call_id":"c","content":"done"}"#;
    assert_eq!(
        weighed(result),
        4 + text("Tool Result (c)\n") + text("done")
    );
    let link = r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}"#;
    assert_eq!(weighed(link), 4 + 300);
    let data = "A".repeat(10_000);
    let image = format!(
        r#"{{"role":"user","content":[{{"type":"image","source":{{"type":"base64","data":"{data}"}}}}]}}"#
    );
    assert_eq!(weighed(&image), 4 + 100);
    let document = image.replace("\"image\"", "\"document\"");
    assert!((4 + 100..4 + 130).contains(&weighed(&document)));
    let thought = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hello world","signature":"c2ln"}]}"#;
    assert_eq!(weighed(thought), 4 + 2);
    let unknown = r#"{"role":"user","content":[{"type":"new","x":"hello"}]}"#;
    assert_eq!(weighed(unknown), 4 + text(r#"{"type":"new","x":"hello"}"#));
}

#[test]
fn parts_add_up_to_no_more_than_the_message() {
    let text = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"one two"},{"type":"image","source":{"type":"base64","data":"AAAA"}}]},{"type":"text","text":"three"},{"type":"image","source":{"type":"url"}}]}"#;
    let parsed = Message::parse(text.as_bytes()).unwrap();
    let parts: Vec<u64> = parsed
        .parts()
        .iter()
        .map(|found| part(&parsed, &found.range))
        .collect();
    assert_eq!(parts, [2 + 2, 1, 300]);
    let label = count(Encoding::O200k, "Tool Result (t)\n");
    assert_eq!(parts.iter().sum::<u64>() + label + 4, message(&parsed));
}

#[test]
fn guesses_are_what_they_say() {
    let parsed = Message::parse(r#"{"role":"user","content":"abcdefgh中"}"#.as_bytes()).unwrap();
    assert_eq!(message_by(Estimator::Chars, &parsed), 4 + 3);
    assert_eq!(message_by(Estimator::Bytes, &parsed), 4 + 2);
}
