//! Tests of parsed requests.

use std::time::Duration;

use infold::profile::{Origin, Setting};
use infold_wire::envelope::list_name;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

fn call(wire: Wire, body: Vec<u8>) -> ModelCall {
    let set = |value: &str| Setting::new(value.to_owned(), Origin::Default);
    ModelCall {
        wire,
        model: None,
        stream: None,
        long_context: false,
        agent: None,
        name: None,
        provider: Arc::new(infold::config::Provider {
            name: "scripted".to_owned(),
            api: set("any"),
            model: None,
            context_length: None,
            api_key: None,
            base_url: None,
            max_tokens: None,
        }),
        body: IncomingBody::InMemory(body.into()),
    }
}

fn pieces(count: usize) -> ModelCall {
    let content = |at: usize| format!(r#"{{"role":"model","parts":[{{"text":"piece {at}"}}]}}"#);
    let pieces: Vec<String> = (0..count).map(content).collect();
    let user = r#"{"role":"user","parts":[{"text":"hi"}]}"#;
    let body = format!(r#"{{"contents":[{user},{},{user}]}}"#, pieces.join(","));
    call(Wire::Gemini, body.into_bytes())
}

/// Returns the CPU time of this thread: other processes share the machine.
fn spent() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[test]
fn ten_times_as_many_pieces_take_about_ten_times_as_long() {
    let took = |count: usize, times: usize| {
        let call = pieces(count);
        let began = spent();
        for _ in 0..times {
            let request = ParsedRequest::read(&call, &DigestCache::new(false));
            assert_eq!(request.expect("it can be read").messages.len(), 3);
        }
        spent() - began
    };
    let (few, many) = (took(500, 50), took(5_000, 5));
    let most = 4 * few + Duration::from_millis(20);
    assert!(many < most, "{few:?}, then {many:?}");
}

/// A message of a conversation, as its wire has it; its role is cut from a short list.
fn message(wire: Wire, role: usize, text: &str, mark: bool) -> String {
    let mark = if mark {
        r#","cache_control":{"type":"ephemeral"}"#
    } else {
        ""
    };
    match (wire, role) {
        (Wire::Gemini, 0 | 3) => format!(r#"{{"role":"user","parts":[{{"text":"{text}"}}]}}"#),
        (Wire::Gemini, _) => format!(r#"{{"role":"model","parts":[{{"text":"{text}"}}]}}"#),
        (Wire::Responses, 1) => format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"{text}"}}]}}"#
        ),
        (Wire::Responses, 2) => {
            format!(r#"{{"type":"function_call_output","call_id":"c","output":"{text}"}}"#)
        }
        (Wire::Anthropic, 0 | 2) => {
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"{mark}}}]}}"#)
        }
        (_, 1) => format!(r#"{{"role":"assistant","content":"{text}"}}"#),
        (Wire::Chat | Wire::Ollama, 3) => format!(r#"{{"role":"system","content":"{text}"}}"#),
        _ => format!(r#"{{"role":"user","content":"{text}"}}"#),
    }
}

/// A body with these messages; members stand before the list and behind it.
fn body(wire: Wire, messages: &[(usize, String)], mark: usize, members: usize) -> Vec<u8> {
    let number = messages.len();
    let messages: Vec<String> = messages
        .iter()
        .enumerate()
        .map(|(at, (role, text))| message(wire, *role, text, at + mark == number))
        .collect();
    let before = [
        "\"model\":\"m\",",
        "",
        "\"model\" : \"m\",\"tools\":[{\"name\":\"t\"}], ",
    ];
    let behind = ["", ",\"stream\":true", ",\"model\":\"n\",\"max_tokens\":7"];
    let name = list_name(wire);
    let (before, behind) = (before[members % 3], behind[members / 3 % 3]);
    format!(r#"{{{before}"{name}":[{}]{behind}}}"#, messages.join(", ")).into_bytes()
}

/// Returns the parsed request as text, or the error.
fn parsed(call: &ModelCall, digests: &DigestCache) -> String {
    match ParsedRequest::read(call, digests) {
        Ok(it) => format!(
            "{:?} {:?} {:?} {} {} {:?} {:?} {:?}",
            it.envelope, it.params, it.name, it.model, it.stream, it.text, it.messages, it.chain
        ),
        Err(error) => error.to_string(),
    }
}

fn any_messages(most: usize) -> impl Strategy<Value = Vec<(usize, String)>> {
    let text = (0_usize..2_500, "[a-z ]{0,8}").prop_map(|(pad, text)| {
        let pad = "words that fill some space and more of them ".repeat(pad / 40);
        format!("{text}{pad}")
    });
    prop::collection::vec((0_usize..4, text), 1..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each request is parsed as if it were the first, whatever came before: grown, cut, with moved cache marks, with
    /// other members, and with a byte changed anywhere.
    #[test]
    fn a_known_beginning_changes_nothing(
        wire in prop::sample::select(&Wire::ALL[..]),
        first in any_messages(12),
        steps in prop::collection::vec(
            (any_messages(4), 0_usize..5, 0_usize..9, any::<Index>(), any::<Option<(Index, u8)>>()),
            1..8,
        ),
    ) {
        let digests = DigestCache::new(false);
        let mut messages = first;
        for (new, mark, members, cut, changed) in steps {
            if mark == 4 {
                messages.truncate(cut.index(messages.len()) + 1);
            }
            messages.extend(new);
            let mut bytes = body(wire, &messages, mark, members);
            let call_as_is = call(wire, bytes.clone());
            prop_assert_eq!(parsed(&call_as_is, &digests), parsed(&call_as_is, &DigestCache::new(false)));
            if let Some((at, byte)) = changed {
                let at = at.index(bytes.len());
                bytes[at] = byte;
                let call = call(wire, bytes);
                prop_assert_eq!(parsed(&call, &digests), parsed(&call, &DigestCache::new(false)));
            }
        }
    }
}

#[test]
fn only_what_follows_a_known_beginning_is_parsed() {
    let digests = DigestCache::new(false);
    for wire in Wire::ALL {
        let say = |at: usize| (at % 2, format!("{at} {}", "said before ".repeat(60)));
        let mut messages: Vec<(usize, String)> = (0..31).map(say).collect();
        let known = |messages: &[(usize, String)], mark: usize| {
            let call = call(wire, body(wire, messages, mark, 3));
            let IncomingBody::InMemory(bytes) = &call.body else {
                panic!("it is in memory");
            };
            let blocks = digests.prefixes.block_hashes(wire, bytes);
            let known = digests.prefixes.find(bytes, &blocks);
            parsed(&call, &digests);
            known.map_or(0, |known| known.message_count())
        };
        assert_eq!(known(&messages, 1), 0, "{wire}");
        assert_eq!(known(&messages, 1), 31, "{wire}");
        messages.extend((31..33).map(say));
        // A cache mark that moved from the last message is removed from those before it.
        let expected = if wire == Wire::Anthropic {
            20..28
        } else {
            31..32
        };
        let known_then = known(&messages, 1);
        assert!(expected.contains(&known_then), "{wire}: {known_then}");
        messages[3].1.push('!');
        assert_eq!(known(&messages, 1), 0, "{wire}");
    }
}
