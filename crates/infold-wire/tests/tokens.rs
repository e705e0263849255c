//! Counts are those of the reference, however the text arrives and however hostile it is.

use infold_wire::tokens::{Counter, Encoding, count};
use infold_wire::{Json, quote};
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

/// The count of a text that arrives in chunks of so many characters.
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

/// Texts of what the splitters tell apart, long enough to be cut while they stream.
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
    #![proptest_config(ProptestConfig::with_cases(200))]

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

    /// A JSON string counts as the text it says, however it is escaped.
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
