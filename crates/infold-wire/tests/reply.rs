//! Replies of every wire: streamed or whole, split anywhere, cut anywhere.

use infold_wire::reply::stream::{EventSplitter, StreamEvent};
use infold_wire::{
    Delivery, Json, Reply, ReplyDelta, ReplyError, ReplyReader, StopReason, TokenUsage, Wire,
};
use proptest::prelude::*;

type Read = (Vec<ReplyDelta>, Result<Reply, ReplyError>);

/// Reads bytes that come in these pieces.
fn read<'a>(wire: Wire, form: Delivery, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let (mut reader, mut heard) = (ReplyReader::new(wire, form), Vec::new());
    for piece in pieces {
        if let Err(error) = reader.push(piece, &mut |delta| heard.push(delta)) {
            assert_eq!(reader.finish().as_ref(), Err(&error));
            return (heard, Err(error));
        }
    }
    (heard, reader.finish())
}

fn stream(wire: Wire, text: &str) -> Result<Reply, ReplyError> {
    read(wire, Delivery::Stream, [text.as_bytes()]).1
}

/// Returns the only message of a stream of chat chunks with these deltas.
fn chat(deltas: &[&str]) -> String {
    let mut text: String = deltas
        .iter()
        .map(|delta| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n"))
        .collect();
    text += "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    message(&stream(Wire::Chat, &text).expect("a reply"))
}

fn message(reply: &Reply) -> String {
    let texts = reply.messages.iter();
    let texts = texts.map(|text| String::from_utf8(text.clone()).expect("UTF-8"));
    texts.collect::<Vec<_>>().join("\n")
}

/// The messages without the white space between tokens, which a provider may choose.
fn values(reply: &Reply) -> Vec<serde_json::Value> {
    let value = |text: &Vec<u8>| serde_json::from_slice(text).expect("JSON");
    reply.messages.iter().map(value).collect()
}

struct Fixture {
    name: &'static str,
    wire: Wire,
    stream: &'static [u8],
    whole: Option<&'static [u8]>,
}

fn fixtures() -> Vec<Fixture> {
    macro_rules! fixture {
        ($name:literal, $stream:literal) => {
            Fixture {
                name: $name,
                wire: $name
                    .split('-')
                    .next()
                    .expect("a wire")
                    .parse()
                    .expect("a wire"),
                stream: include_bytes!(concat!("replies/", $name, ".", $stream)),
                whole: None,
            }
        };
        ($name:literal, $stream:literal, whole) => {
            Fixture {
                whole: Some(include_bytes!(concat!("replies/", $name, ".json"))),
                ..fixture!($name, $stream)
            }
        };
    }
    vec![
        fixture!("chat-text", "sse", whole),
        fixture!("chat-tools", "sse", whole),
        fixture!("chat-reasoning", "sse", whole),
        fixture!("chat-openrouter", "sse", whole),
        fixture!("chat-refusal", "sse", whole),
        fixture!("chat-length", "sse", whole),
        fixture!("chat-error", "sse", whole),
        fixture!("responses-text", "sse", whole),
        fixture!("responses-tools", "sse", whole),
        fixture!("responses-refusal", "sse", whole),
        fixture!("responses-length", "sse", whole),
        fixture!("responses-failed", "sse", whole),
        fixture!("responses-error", "sse"),
        fixture!("anthropic-text", "sse", whole),
        fixture!("anthropic-tools", "sse", whole),
        fixture!("anthropic-search", "sse", whole),
        fixture!("anthropic-refusal", "sse", whole),
        fixture!("anthropic-length", "sse", whole),
        fixture!("anthropic-error", "sse", whole),
        fixture!("gemini-text", "sse", whole),
        fixture!("gemini-array", "jsonl", whole),
        fixture!("gemini-tools", "sse", whole),
        fixture!("gemini-length", "sse", whole),
        fixture!("gemini-safety", "sse", whole),
        fixture!("gemini-blocked", "sse", whole),
        fixture!("gemini-error", "sse", whole),
        fixture!("ollama-text", "jsonl", whole),
        fixture!("ollama-tools", "jsonl", whole),
        fixture!("ollama-length", "jsonl", whole),
        fixture!("ollama-error", "jsonl", whole),
    ]
}

/// Returns the deltas joined by kind: text, reasoning, calls.
fn heard(deltas: &[ReplyDelta]) -> [String; 3] {
    let mut said = [const { String::new() }; 3];
    for delta in deltas {
        match delta {
            ReplyDelta::Text(text) => said[0] += text,
            ReplyDelta::Reasoning(text) => said[1] += text,
            ReplyDelta::Call(name) => said[2] += &format!(" {name}:"),
            ReplyDelta::Arguments(text) => said[2] += text,
        }
    }
    said
}

fn told((deltas, result): &Read) -> String {
    let [text, reasoning, calls] = heard(deltas);
    let mut out = format!("heard {text:?} {reasoning:?} {calls:?}\n");
    match result {
        Ok(reply) => {
            let Reply {
                stop, usage, model, ..
            } = reply;
            out += &message(reply);
            out += &format!("\n{stop:?}, {}", model.as_deref().unwrap_or("no model"));
            if let Some(usage) = usage {
                let TokenUsage {
                    input,
                    cache_read,
                    cache_write,
                    output,
                    reasoning,
                } = usage;
                out += &format!(
                    ", {input} + {cache_read} read + {cache_write} written -> {output} ({reasoning} reasoning)"
                );
            }
        }
        Err(error) => out += &error.to_string(),
    }
    out + "\n\n"
}

#[test]
fn each_wire_is_read_as_its_provider_streams_it() {
    for wire in Wire::ALL {
        let mut all = String::new();
        for fixture in fixtures().into_iter().filter(|it| it.wire == wire) {
            let read = read(wire, Delivery::Stream, [fixture.stream]);
            all += &format!("{}\n{}", fixture.name, told(&read));
        }
        insta::assert_snapshot!(wire.name(), all.trim_end());
    }
}

#[test]
fn a_reply_is_the_same_streamed_and_whole() {
    for fixture in fixtures() {
        let Some(whole) = fixture.whole else { continue };
        let wire = fixture.wire;
        let (streamed_deltas, streamed) = read(wire, Delivery::Stream, [fixture.stream]);
        // A server may answer in the other form than the requested one.
        for form in [Delivery::Whole, Delivery::Stream] {
            let (deltas, read) = read(wire, form, [whole]);
            match (&streamed, &read) {
                (Ok(one), Ok(other)) => {
                    assert_eq!(values(one), values(other), "{}", fixture.name);
                    let rest = |reply: &Reply| {
                        let messages = Vec::new();
                        Reply {
                            messages,
                            ..reply.clone()
                        }
                    };
                    assert_eq!(rest(one), rest(other), "{}", fixture.name);
                    let said = |deltas| heard(deltas).map(|text: String| text.replace("\n\n", ""));
                    let (said, streamed) = (said(&deltas), said(&streamed_deltas));
                    assert_eq!(said[..2], streamed[..2], "{}", fixture.name);
                }
                (Err(ReplyError::Failed { .. }), Err(ReplyError::Failed { .. })) => {}
                other => panic!("{}: {other:?}", fixture.name),
            }
        }
        assert_eq!(read(wire, Delivery::Whole, [fixture.stream]).1, streamed);
    }
}

#[test]
fn what_is_recorded_is_one_line_of_json() {
    for fixture in fixtures() {
        for (form, bytes) in [
            (Delivery::Stream, Some(fixture.stream)),
            (Delivery::Whole, fixture.whole),
        ] {
            let Some(Ok(reply)) = bytes.map(|bytes| read(fixture.wire, form, [bytes]).1) else {
                continue;
            };
            for message in reply.messages {
                Json::parse(&message).expect("JSON");
                assert!(!message.contains(&b'\n'), "{}", fixture.name);
            }
        }
    }
}

#[test]
fn bytes_may_come_one_by_one() {
    for fixture in fixtures() {
        for (form, bytes) in [
            (Delivery::Stream, Some(fixture.stream)),
            (Delivery::Whole, fixture.whole),
        ] {
            let Some(bytes) = bytes else { continue };
            let at_once = read(fixture.wire, form, [bytes]);
            assert_eq!(read(fixture.wire, form, bytes.chunks(1)), at_once);
        }
    }
}

#[test]
fn what_is_cut_off_is_no_reply() {
    for fixture in fixtures() {
        for (form, bytes) in [
            (Delivery::Stream, Some(fixture.stream)),
            (Delivery::Whole, fixture.whole),
        ] {
            let Some(bytes) = bytes else { continue };
            let whole = read(fixture.wire, form, [bytes]).1;
            for end in 0..bytes.len() {
                let at = format!("{} cut at {end}", fixture.name);
                match (read(fixture.wire, form, [&bytes[..end]]).1, &whole) {
                    // The end marker has arrived; only counts may be missing.
                    (Ok(reply), Ok(whole)) => {
                        assert_eq!(reply.messages, whole.messages, "{at}");
                        assert_eq!(reply.stop, whole.stop, "{at}");
                        assert!(end * 10 > bytes.len(), "{at}");
                    }
                    (Err(ReplyError::Empty), _) => assert!(end < 120, "{at}"),
                    (Err(ReplyError::Cut { bytes }), _) => assert_eq!(bytes, end as u64, "{at}"),
                    // The text of an error may be cut.
                    (Err(ReplyError::Failed { body }), Err(ReplyError::Failed { body: whole })) => {
                        assert!(whole.starts_with(&body), "{at}");
                    }
                    other => panic!("{at}: {other:?}"),
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// With any splits of the bytes, the deltas and the reply are the same.
    #[test]
    fn any_split_gives_the_same(which in any::<prop::sample::Index>(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let fixtures = fixtures();
        let fixture = &fixtures[which.index(fixtures.len())];
        let bytes = fixture.stream;
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(read(fixture.wire, Delivery::Stream, pieces), read(fixture.wire, Delivery::Stream, [bytes]));
    }

    /// If bytes are broken, the reader fails or continues; and its result is JSON.
    #[test]
    fn broken_bytes_are_no_harm(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), with in prop::collection::vec(any::<u8>(), 0..4), wire in 0..5_usize) {
        let fixtures = fixtures();
        let fixture = &fixtures[which.index(fixtures.len())];
        let mut bytes = fixture.stream.to_vec();
        let at = at.index(bytes.len());
        bytes.splice(at..(at + 2).min(bytes.len()), with);
        for wire in [fixture.wire, Wire::ALL[wire]] {
            let (at_once, split) = (read(wire, Delivery::Stream, [&bytes[..]]), read(wire, Delivery::Stream, bytes.chunks(7)));
            if let Ok(reply) = &at_once.1 {
                for message in &reply.messages {
                    prop_assert!(Json::parse(message).is_ok());
                }
            }
            prop_assert_eq!(at_once, split);
        }
    }
}

#[test]
fn tool_calls_are_put_together_whatever_the_server_leaves_out() {
    let call = |id: &str, name: &str, arguments: &str| {
        format!(
            r#"{{"id":"{id}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}"#
        )
    };
    let (one, two) = (call("a", "ls", "{}"), call("b", "cat", "[1]"));
    let both = format!(r#"{{"role":"assistant","content":null,"tool_calls":[{one},{two}]}}"#);
    let cases: [(&str, &[&str]); 7] = [
        (
            "whole calls without an index",
            &[&format!(r#"{{"tool_calls":[{one},{two}]}}"#)],
        ),
        (
            "no index, pieces with an id first",
            &[
                r#"{"tool_calls":[{"id":"a","function":{"name":"ls"}}]}"#,
                r#"{"tool_calls":[{"function":{"arguments":"{}"}}]}"#,
                r#"{"tool_calls":[{"id":"b","function":{"name":"cat","arguments":"["}}]}"#,
                r#"{"tool_calls":[{"id":"","function":{"name":"","arguments":"1]"}}]}"#,
            ],
        ),
        (
            "id and name repeated",
            &[
                r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"ls","arguments":"{"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"ls","arguments":"}"}}]}"#,
                r#"{"tool_calls":[{"id":"b","function":{"name":"cat","arguments":"[1"}}]}"#,
                r#"{"tool_calls":[{"id":"b","function":{"name":"cat","arguments":"]"}}]}"#,
            ],
        ),
        (
            "a new id for each piece",
            &[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"x","function":{"arguments":"{}"}}]}"#,
                r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"cat","arguments":"[1]"}}]}"#,
            ],
        ),
        (
            "the same index for all",
            &[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"ls","arguments":"{}"}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"cat","arguments":"[1]"}}]}"#,
            ],
        ),
        (
            "interleaved, the later first",
            &[
                r#"{"content":"","tool_calls":[{"index":7,"id":"b","function":{"name":"cat"}},{"index":2,"id":"a","function":{"name":"ls"}}]}"#,
                r#"{"tool_calls":[{"index":7,"function":{"arguments":"[1"}},{"index":2,"function":{"arguments":"{"}}]}"#,
                r#"{"tool_calls":[{"index":2,"function":{"arguments":"}"}},{"index":7,"function":{"arguments":"]"}}]}"#,
            ],
        ),
        (
            "arguments that are no text, a name in pieces",
            &[
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"l","arguments":null}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"name":"s","arguments":{}}}]}"#,
                r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"cat","arguments":[1]}}]}"#,
            ],
        ),
    ];
    for (what, deltas) in cases {
        assert_eq!(chat(deltas), both, "{what}");
    }
}

#[test]
fn a_reply_of_reasoning_alone_can_be_sent_back() {
    let said = |delta: &str| chat(&[delta]);
    assert_eq!(
        said(r#"{"role":"assistant","content":null,"reasoning_content":"hm"}"#),
        r#"{"role":"assistant","content":"","reasoning_content":"hm"}"#
    );
    assert_eq!(
        said(r#"{"content":"","reasoning":"hm","refusal":"no"}"#),
        r#"{"role":"assistant","content":null,"refusal":"no","reasoning":"hm"}"#
    );
    // No item follows the reasoning, so its status becomes `incomplete`.
    let body = r#"{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"id":"m","type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]},{"id":"rs","type":"reasoning","summary":[],"encrypted_content":"x","status":null}]}"#;
    let (_, reply) = read(Wire::Responses, Delivery::Whole, [body.as_bytes()]);
    let messages = reply.expect("a reply").messages;
    assert!(!String::from_utf8_lossy(&messages[0]).contains("incomplete"));
    assert_eq!(
        String::from_utf8_lossy(&messages[1]),
        r#"{"id":"rs","type":"reasoning","summary":[],"encrypted_content":"x","status":"incomplete"}"#
    );
}

#[test]
fn half_a_character_waits_for_its_other_half() {
    let text = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\ude80 \\\\\\\\ud83d\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\n",
    );
    let (deltas, reply) = read(Wire::Chat, Delivery::Stream, [text.as_bytes()]);
    let texts = ["a", "🚀 \\\\ud83d", "\u{fffd}b"];
    assert_eq!(deltas, texts.map(|text| ReplyDelta::Text(text.to_owned())));
    assert_eq!(
        message(&reply.unwrap()),
        r#"{"role":"assistant","content":"a\ud83d\ude80 \\\\ud83d\ud83db"}"#
    );
}

#[test]
fn arguments_of_anthropic_calls_are_kept_as_they_were_streamed() {
    let input = |pieces: &[&str]| {
        let mut text = concat!(
            "data: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[]}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}}\n\n"
        )
        .to_owned();
        for piece in pieces {
            text += &format!(
                "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":{piece}}}}}\n\n"
            );
        }
        text += "data: {\"type\":\"message_stop\"}\n\n";
        let message = message(&stream(Wire::Anthropic, &text).expect("a reply"));
        let input = message.split_once("\"input\":").expect("input").1;
        input.strip_suffix("}]}").expect("an end").to_owned()
    };
    assert_eq!(input(&[]), "{}");
    assert_eq!(input(&[r#""""#]), "{}");
    assert_eq!(
        input(&[r#""{\"a\": ""#, r#""1.0, \"a\":2}""#]),
        r#"{"a": 1.0, "a":2}"#
    );
    // Halves of characters, escaped in the arguments or in the event.
    assert_eq!(
        input(&[r#""{\"a\":\"\\ud83d""#, r#""\\ude80\"}""#]),
        r#"{"a":"\ud83d\ude80"}"#
    );
    assert_eq!(
        input(&[r#""{\"a\":\"\ud83d""#, r#""\ude80\"}""#]),
        r#"{"a":"🚀"}"#
    );
    assert_eq!(input(&[r#""{\"a\":\"\ud83d\"}""#]), r#"{"a":"\ud83d"}"#);
    // The length allowed was reached within them.
    assert_eq!(input(&[r#""{\"a\":""#]), r#"{"_arguments":"{\"a\":"}"#);
}

#[test]
fn a_compaction_block_is_kept_as_it_grew() {
    let text = concat!(
        "data: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":9}}}\n\n",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"compaction\",\"content\":null}}\n\n",
        "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"compaction_delta\",\"content\":\"so far\",\"encrypted_content\":\"x\"}}\n\n",
        "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"pause_turn\"},\"usage\":{\"output_tokens\":5,\"output_tokens_details\":{\"thinking_tokens\":3}}}\n\n",
    );
    let reply = stream(Wire::Anthropic, text).unwrap();
    let expected = r#"{"role":"assistant","content":[{"type":"compaction","content":"so far","encrypted_content":"x"}]}"#;
    assert_eq!(message(&reply), expected);
    assert_eq!(reply.stop, StopReason::Other("pause_turn".to_owned()));
    let usage = reply.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.reasoning), (9, 5, 3));
}

#[test]
fn errors_are_known_in_every_shape() {
    let failed = [
        "{\"error\":{\"message\":\"no\"}}",
        "data: {\"error\":\"no\"}\n\n",
        "event: error\ndata: no\n\n",
        "event: error\ndata: {\"message\":\"no\"}\n\n",
        "data: {\"object\":\"error\",\"message\":\"no\"}\n\n",
        "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
        "[{\"error\":{\"code\":400}}]",
        // The event has no blank line at its end.
        "data: {\"error\":\"no\"}",
    ];
    for wire in Wire::ALL {
        for text in failed {
            let read = stream(wire, text);
            assert!(
                matches!(read, Err(ReplyError::Failed { .. })),
                "{wire} {text}: {read:?}"
            );
        }
    }
}

#[test]
fn what_is_no_reply_is_told_apart() {
    let kind = |wire, form, text: &str| match read(wire, form, [text.as_bytes()]).1 {
        Ok(_) => "a reply",
        Err(ReplyError::Empty) => "empty",
        Err(ReplyError::Cut { .. }) => "cut",
        Err(ReplyError::Foreign { start }) => {
            assert!(start.chars().count() < 320, "{start}");
            "foreign"
        }
        Err(ReplyError::Malformed { reason }) => {
            assert!(reason.chars().count() < 320, "{reason}");
            "malformed"
        }
        Err(_) => "failed",
    };
    let long = format!("data: {{{}\n\n", "é".repeat(1000));
    let cases = [
        ("", "empty"),
        ("\n \r\n", "empty"),
        (": ping\n\n: ping\n\n", "empty"),
        ("data: [DONE]\n\n", "empty"),
        ("data:\n\n", "empty"),
        ("<html><body>Bad gateway</body></html>\n", "foreign"),
        ("upstream connect error", "foreign"),
        (": ping\n\nupstream connect error\n", "malformed"),
        ("event: x\nupstream connect error\n", "malformed"),
        ("da", "cut"),
        ("event: x", "cut"),
        ("data: {\"cho", "cut"),
        ("{\"cho", "cut"),
        ("data: {\"cho\n\n", "malformed"),
        ("data: 7\n\n", "malformed"),
        ("data: {\"a\":\"\u{1}\"}\n\n", "malformed"),
        (&long, "malformed"),
        ("{\"detail\":\"Not Found\"}", "malformed"),
        ("{\"detail\":\"Not Found\"} oh", "malformed"),
    ];
    for wire in Wire::ALL {
        for form in [Delivery::Stream, Delivery::Whole] {
            for (text, expected) in cases {
                assert_eq!(kind(wire, form, text), expected, "{wire} {text}");
            }
        }
    }
    let bad = read(Wire::Chat, Delivery::Stream, [&b"data: \xff\n\n"[..]]).1;
    assert!(matches!(bad, Err(ReplyError::Malformed { .. })));
}

#[test]
fn only_the_reply_itself_is_progress() {
    let mut reader = ReplyReader::new(Wire::Anthropic, Delivery::Stream);
    let mut after = |bytes: &str| {
        let pushed = reader.push(bytes.as_bytes(), &mut |_| {});
        pushed.expect("a stream");
        reader.progress()
    };
    for nothing in [
        "\r\n",
        ": keep-alive\n\n",
        ": kee",
        "p\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "data: {\"type\":\"keepalive\"}\n\n",
    ] {
        assert_eq!(after(nothing), 0, "{nothing}");
    }
    let begun = after("event: message_start\ndata: {\"type\":\"message_start\"");
    let more = after(",\"message\":{}}");
    let whole = after("\n\n");
    assert!(0 < begun && begun < more && 0 < whole);
    assert_eq!(after("event: ping\ndata: {\"type\": \"ping\"}\n\n"), whole);
    // A body is one event, and may take its time.
    let mut body = ReplyReader::new(Wire::Chat, Delivery::Whole);
    for (piece, progress) in [("\n\n", 0), ("{\"id\":", 8), ("1", 9)] {
        body.push(piece.as_bytes(), &mut |_| {}).expect("a body");
        assert_eq!(body.progress(), progress);
    }
}

#[test]
fn a_chat_is_complete_when_its_finish_or_its_end_came() {
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"\"}]}\n\n";
    let other = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\n\n";
    let finish = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let usage = "data: {\"choices\":null,\"usage\":{\"prompt_tokens\":5}}\n\n";
    let cut = stream(Wire::Chat, &format!("{said}{other}{usage}"));
    assert!(matches!(cut, Err(ReplyError::Cut { .. })));
    for end in [
        finish,
        "data: [DONE]",
        &format!("{finish}{usage}data: [DON"),
    ] {
        let reply = stream(Wire::Chat, &format!("{said}{other}{end}")).unwrap();
        assert_eq!(message(&reply), r#"{"role":"assistant","content":"a"}"#);
        assert_eq!(reply.stop, StopReason::End);
    }
}

#[test]
fn counts_of_any_kind_are_no_harm() {
    let used = |wire, usage: &str| {
        let text = match wire {
            Wire::Chat => {
                format!(r#"{{"choices":[{{"message":{{"content":"a"}}}}],"usage":{usage}}}"#)
            }
            Wire::Responses => format!(
                r#"{{"object":"response","status":"completed","output":[],"usage":{usage}}}"#
            ),
            Wire::Anthropic => format!(
                r#"{{"type":"message","content":[],"stop_reason":"end_turn","usage":{usage}}}"#
            ),
            Wire::Gemini => {
                format!(r#"{{"candidates":[{{"finishReason":"STOP"}}],"usageMetadata":{usage}}}"#)
            }
            Wire::Ollama => format!(r#"{{"done":true,{}"#, &usage[1..]),
        };
        let usage = stream(wire, &text).expect("a reply").usage.expect("usage");
        // None of the sums may overflow.
        (usage.total() >= usage.sent())
            .then_some(usage)
            .expect("sums")
    };
    for number in [
        "-5",
        "1e999",
        "-1e999",
        "1.5",
        "99999999999999999999",
        "null",
        "\"7\"",
        "{}",
    ] {
        let fields = [
            "prompt_tokens",
            "completion_tokens",
            "total_tokens",
            "prompt_cache_hit_tokens",
            "input_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
            "output_tokens",
            "promptTokenCount",
            "cachedContentTokenCount",
            "candidatesTokenCount",
            "thoughtsTokenCount",
            "prompt_eval_count",
            "eval_count",
        ];
        let fields = fields
            .map(|field| format!("\"{field}\":{number}"))
            .join(",");
        for wire in Wire::ALL {
            used(wire, &format!("{{{fields}}}"));
        }
    }
    // Reasoning beside the reply, derived from the total.
    let apart = used(
        Wire::Chat,
        r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":35,"completion_tokens_details":{"reasoning_tokens":20}}"#,
    );
    assert_eq!((apart.output, apart.reasoning), (25, 20));
    // More from the cache than was sent.
    let odd = used(Wire::Chat, r#"{"prompt_tokens":10,"cached_tokens":50}"#);
    assert_eq!((odd.input, odd.cache_read), (0, 10));
}

#[test]
fn responses_without_items_at_their_end_have_those_that_were_done() {
    let item = r#"{"type":"message", "role":"assistant","content":[]}"#;
    let done = format!(
        "data: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{item}}}\n\n"
    );
    let end = "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n";
    let reply = stream(Wire::Responses, &format!("{done}{end}")).unwrap();
    assert_eq!(message(&reply), item);
    let delta = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n";
    let lost = stream(Wire::Responses, &format!("{delta}{end}"));
    assert!(
        matches!(lost, Err(ReplyError::Malformed { .. })),
        "{lost:?}"
    );
}

#[test]
fn time_is_linear_when_bytes_come_one_by_one() {
    let delta = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let one = delta(&"x\\n".repeat(1 << 20));
    let many = delta("é").repeat(60_000);
    let calls: String = (0..30_000)
        .map(|index| format!("data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"c{index}\",\"function\":{{\"name\":\"f\"}}}}]}}}}]}}\n\n"))
        .collect();
    let start = std::time::Instant::now();
    for text in [one, many, calls] {
        let text = text + "data: [DONE]\n\n";
        read(Wire::Chat, Delivery::Stream, text.as_bytes().chunks(1))
            .1
            .expect("a reply");
    }
    // A quadratic reader would take hours.
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn a_stream_can_be_looked_at_without_being_read() {
    let (mut events, mut names) = (EventSplitter::default(), Vec::new());
    let bytes = include_bytes!("replies/anthropic-text.sse");
    let mut take = |event: StreamEvent<'_>| {
        names.push(String::from_utf8_lossy(event.name).into_owned());
        Ok(())
    };
    events.push(bytes, &mut take).unwrap();
    assert_eq!(names.first().map(String::as_str), Some("message_start"));
    assert_eq!(names.last().map(String::as_str), Some("message_stop"));
}
