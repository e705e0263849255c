//! Messages in the form of another wire: the content that is kept, and the counts of losses.

#[path = "convert/heard.rs"]
mod heard;
#[path = "convert/talk.rs"]
mod talk;

use std::collections::BTreeMap;

use heard::heard;
use infold_wire::{Converter, Message, Wire};
use proptest::prelude::*;
use talk::{Turn, expected, marks, mixed, talk, written};

/// Converts messages, and returns the losses.
fn converted(messages: &[Vec<u8>], to: Wire) -> (Vec<Vec<u8>>, BTreeMap<&'static str, u64>) {
    let mut converter = Converter::new(to);
    let mut out = Vec::new();
    for message in messages {
        let pushed = converter.push(message, &mut |bytes| out.push(bytes.to_vec()));
        pushed.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(message)));
    }
    converter.finish(&mut |bytes| out.push(bytes.to_vec()));
    (out, converter.losses().clone())
}

fn shown(messages: &[Vec<u8>]) -> Vec<String> {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    messages.iter().map(text).collect()
}

/// Converts texts and shows them as texts.
fn texts(messages: &[&str], to: Wire) -> (Vec<String>, BTreeMap<&'static str, u64>) {
    let bytes: Vec<Vec<u8>> = messages
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .collect();
    let (out, lost) = converted(&bytes, to);
    (shown(&out), lost)
}

fn is_native(message: &[u8], wire: Wire) -> bool {
    let message = Message::parse(message).expect("a message");
    message.wires().has(wire)
        || wire.has_separate_system_prompt() && message.role() == infold_log::Role::System
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Texts, calls, ids, results, images and their order survive the way there and back.
    #[test]
    fn there_and_back_everything_is_said_again(turns in talk()) {
        for from in Wire::ALL {
            let start = written(&turns, from);
            prop_assert_eq!(heard(&start, from), expected(&turns, marks(from)));
            for to in Wire::ALL {
                let kept = expected(&turns, marks(from) && marks(to));
                let (there, _) = converted(&start, to);
                if from == to && !to.has_separate_system_prompt() {
                    prop_assert_eq!(shown(&there), shown(&start));
                }
                prop_assert_eq!(&heard(&there, to), &kept, "{} to {}", from, to);
                for message in &there {
                    prop_assert!(is_native(message, to), "{to}: {}", String::from_utf8_lossy(message));
                }
                let (back, _) = converted(&there, from);
                prop_assert_eq!(&heard(&back, from), &kept, "{} to {} and back", from, to);
            }
        }
    }

    /// A conversation that went from wire to wire is put into the form of any one.
    #[test]
    fn many_wires_become_one(turns in talk(), wires in proptest::collection::vec(0..5usize, 20)) {
        let mut turns = turns;
        for turn in &mut turns {
            if let Turn::Output { calls, .. } = turn {
                for call in calls {
                    // Each wire would show it elsewhere.
                    (call.failed, call.image) = (false, None);
                }
            }
        }
        let mut wires = wires.into_iter().cycle();
        let start = mixed(&turns, &mut || Wire::ALL[wires.next().expect("a cycle")]);
        for to in Wire::ALL {
            let (out, _) = converted(&start, to);
            prop_assert_eq!(heard(&out, to), expected(&turns, false), "to {}: {:?}", to, shown(&start));
            for message in &out {
                prop_assert!(is_native(message, to), "{to}: {}", String::from_utf8_lossy(message));
            }
        }
    }

    /// A converted message is native to its wire, so converting it again changes nothing.
    #[test]
    fn converting_twice_is_converting_once(turns in talk()) {
        let turns: Vec<Turn> = turns.into_iter().filter(|turn| !matches!(turn, Turn::System(_))).collect();
        for (from, to) in Wire::ALL.into_iter().flat_map(|from| Wire::ALL.map(|to| (from, to))) {
            let (once, _) = converted(&written(&turns, from), to);
            let (twice, lost) = converted(&once, to);
            prop_assert_eq!(shown(&once), shown(&twice));
            prop_assert!(lost.is_empty());
        }
    }
}

/// Everything that some wire cannot take, on the wire that can.
fn peculiar(wire: Wire) -> Vec<&'static str> {
    match wire {
        Wire::Chat => vec![
            r#"{"role":"developer","content":"be brief"}"#,
            r#"{"role":"user","name":"ann","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"https://x.example/a.png"}},{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}"#,
            r#"{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[{"id":"functions.ls:0","type":"function","function":{"name":"ls","arguments":"not JSON"}}]}"#,
            r#"{"role":"tool","tool_call_id":"functions.ls:0","content":"a.rs"}"#,
            r#"{"role":"tool","tool_call_id":"gone","content":"late"}"#,
            r#"{"role":"system","content":"be briefer"}"#,
            r#"{"role":"assistant","content":""}"#,
            r#"{"role":"assistant","content":null,"refusal":"no"}"#,
        ],
        Wire::Responses => vec![
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"go"},{"type":"input_file","file_id":"f"}]}"#,
            r#"{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"xx"}"#,
            r#"{"type":"web_search_call","id":"ws","status":"completed"}"#,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so","annotations":[{"type":"url_citation","url":"https://x.example"}]}]}"#,
            r#"{"type":"function_call","call_id":"c1","name":"shot","arguments":"{}"}"#,
            r#"{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"data:image/png;base64,iVBOR"}]}"#,
        ],
        Wire::Anthropic => vec![
            r#"{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"read me"}}]}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"xx"},{"type":"tool_use","id":"t1","name":"shot","input":{}},{"type":"tool_use","id":"t2","name":"rm","input":{}}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBOR"}}]},{"type":"tool_result","tool_use_id":"t2","content":"denied","is_error":true}]}"#,
            r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"text","text":"found","citations":[{"type":"web_search_result_location","url":"https://x.example"}]}]}"#,
        ],
        Wire::Gemini => vec![
            r#"{"role":"user","parts":[{"text":"see"},{"inlineData":{"mimeType":"audio/wav","data":"AAAA"}},{"inlineData":{"mimeType":"application/pdf","data":"AAAA"}},{"fileData":{"fileUri":"https://x.example/a.png"}}]}"#,
            r#"{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"AA"},{"functionCall":{"name":"rm","args":{}},"thoughtSignature":"BB"},{"functionCall":{"name":"rm","args":{}}}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"name":"rm","response":{"error":"denied"}}},{"functionResponse":{"name":"rm","response":{"files":2}}}]}"#,
            r#"{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"text":"drawn"},{"inlineData":{"mimeType":"image/png","data":"iVBOR"}}]}"#,
        ],
        Wire::Ollama => vec![
            r#"{"role":"system","content":"be brief"}"#,
            r#"{"role":"user","content":"","images":["iVBOR"]}"#,
            r#"{"role":"assistant","content":"","thinking":"hm","tool_calls":[{"function":{"name":"ls","arguments":{"n":1e400}}},{"function":{"name":"ls","arguments":{}}}]}"#,
            r#"{"role":"tool","tool_name":"ls","content":"a"}"#,
            r#"{"role":"tool","tool_name":"ls","content":"b"}"#,
        ],
    }
}

#[test]
fn what_each_pair_of_wires_loses_is_said() {
    let mut table = String::new();
    for from in Wire::ALL {
        for to in Wire::ALL {
            let (out, lost) = texts(&peculiar(from), to);
            table += &format!("{from} to {to}\n");
            for (what, times) in lost {
                table += &format!("  {times} × {what}\n");
            }
            for message in out {
                assert!(is_native(message.as_bytes(), to), "{to}: {message}");
                table += &format!("    {message}\n");
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn results_of_one_output_are_one_message_where_they_must_be() {
    let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]}"#;
    let one =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}"#;
    let other = r#"{"role":"tool","tool_call_id":"b","content":"2"}"#;
    let merged = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"}]},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"2"}]}]}"#;
    let (out, _) = texts(
        &[call, one, other, r#"{"role":"user","content":"go on"}"#],
        Wire::Anthropic,
    );
    assert_eq!(out, [call, merged, r#"{"role":"user","content":"go on"}"#]);
    // A native result of a call whose id had to change answers the new one.
    let dotted = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a.b","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
    let native =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a.b","content":"1"}]}"#;
    let (out, _) = texts(&[dotted, native], Wire::Anthropic);
    assert!(!out[1].contains("a.b") && out[1].contains(r#""tool_use_id":"a_b_"#));
    // Alone it stays as it came, even if another was waited for.
    let (out, lost) = texts(
        &[call, one, r#"{"role":"user","content":"go on"}"#],
        Wire::Anthropic,
    );
    assert_eq!(out, [call, one, r#"{"role":"user","content":"go on"}"#]);
    assert!(lost.is_empty());
}

#[test]
fn items_of_one_output_are_one_message() {
    let items = [
        r#"{"type":"reasoning","summary":[]}"#,
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"both"}]}"#,
        r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}"#,
        r#"{"type":"function_call","call_id":"b","name":"g","arguments":"{\"x\":1.50}"}"#,
        r#"{"type":"function_call_output","call_id":"b","output":"2"}"#,
        r#"{"type":"function_call_output","call_id":"a","output":"1"}"#,
    ];
    let (out, _) = texts(&items, Wire::Chat);
    assert_eq!(
        out,
        [
            r#"{"role":"assistant","content":"both","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{\"x\":1.50}"}}]}"#,
            r#"{"role":"tool","content":"2","tool_call_id":"b"}"#,
            r#"{"role":"tool","content":"1","tool_call_id":"a"}"#,
        ]
    );
    // Reasoning alone says nothing elsewhere.
    let (out, lost) = texts(&items[..1], Wire::Anthropic);
    assert!(out.is_empty());
    assert_eq!(lost.len(), 1);
}

#[test]
fn an_output_of_reasoning_alone_is_still_an_output() {
    let alone = [
        r#"{"role":"assistant","content":null,"reasoning_content":"hm"}"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}"#,
        r#"{"role":"assistant","content":[{"type":"redacted_thinking","data":"s"}]}"#,
    ];
    for (message, to) in alone.iter().flat_map(|one| Wire::ALL.map(|to| (one, to))) {
        let (out, lost) = texts(&[message], to);
        assert!(
            out.len() == 1 && out[0].contains("(empty)"),
            "{to}: {out:?}"
        );
        assert!(is_native(out[0].as_bytes(), to), "{to}: {out:?}");
        assert_eq!(lost.len(), 2, "{to}: {lost:?}");
    }
    let cut = r#"{"role":"assistant","content":[{"type":"text","text":"so"},{"type":"thinking","thinking":"hm","signature":"s"}]}"#;
    let (out, _) = texts(&[cut], Wire::Anthropic);
    assert_eq!(
        out,
        [r#"{"role":"assistant","content":[{"type":"text","text":"so"}]}"#]
    );
    // Items without text are left out if they cannot be sent.
    let cut = r#"{"id":"rs","type":"reasoning","summary":[],"encrypted_content":"x","status":"incomplete"}"#;
    let bare = r#"{"id":"rs","type":"reasoning","summary":[]}"#;
    let call = r#"{"type":"function_call","call_id":"c","name":"ls","arguments":"{}"}"#;
    let (out, lost) = texts(&[cut, bare, call], Wire::Responses);
    assert_eq!(out, [call]);
    let words = "reasoning without its content or what followed it, left out";
    assert_eq!(lost, BTreeMap::from([(words, 2)]));
}

#[test]
fn ids_are_unique_and_of_letters_where_that_is_asked() {
    let call = |id: &str| {
        format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}},{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
        )
    };
    let result = |id: &str, text: &str| {
        format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"{text}"}}"#)
    };
    let talk = [
        call("f"),
        result("f", "1"),
        result("f", "2"),
        call("f"),
        result("f", "3"),
        result("f", "4"),
        call("a.b:0"),
        result("a.b:0", "5"),
        result("a.b:0", "6"),
        call("\\ud83d"),
        result("\\ud83d", "7"),
        result("\\ud83d", "8"),
        call(&"long".repeat(100)),
        result(&"long".repeat(100), "9"),
        result(&"long".repeat(100), "10"),
    ];
    let talk: Vec<&str> = talk.iter().map(String::as_str).collect();
    for to in [Wire::Anthropic, Wire::Responses] {
        let (out, _) = texts(&talk, to);
        let bytes: Vec<Vec<u8>> = out.iter().map(|text| text.clone().into_bytes()).collect();
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for said in heard(&bytes, to) {
            match said {
                talk::Said::Call(id, ..) => calls.push(id),
                talk::Said::Result(id, text, _) => results.push((id, text)),
                other => panic!("{other:?}"),
            }
        }
        for (at, id) in calls.iter().enumerate() {
            assert!(!calls[..at].contains(id), "{id} twice");
            assert!(
                id.len() <= 400
                    && (to != Wire::Anthropic
                        || id
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))),
                "{id}"
            );
            assert_eq!(results[at], (id.clone(), (at + 1).to_string()));
        }
        assert_eq!(texts(&talk, to).0, out, "the same every time");
    }
}

#[test]
fn hostile_messages_are_carried_whole() {
    // Half a character, in a text and in arguments that are a text.
    let half = r#"{"role":"assistant","content":"\ud83d","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":\"\ud83d\",\"n\":123456789012345678901234567890.10}"}}]}"#;
    let (out, _) = texts(&[half], Wire::Anthropic);
    assert_eq!(
        out,
        [
            r#"{"role":"assistant","content":[{"type":"text","text":"\ud83d"},{"type":"tool_use","id":"c","name":"f","input":{"a":"\ud83d","n":123456789012345678901234567890.10}}]}"#
        ]
    );
    // Arguments that are no JSON come back as they were.
    let broken = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}"#;
    for to in [Wire::Anthropic, Wire::Gemini, Wire::Ollama, Wire::Responses] {
        let (there, _) = texts(&[broken], to);
        let there: Vec<&str> = there.iter().map(String::as_str).collect();
        assert_eq!(texts(&there, Wire::Chat).0, [broken], "{to}");
    }
    // Calls and results without any id or name are paired in order.
    let nameless = [
        r#"{"role":"assistant","content":"","tool_calls":[{"function":{"name":"a","arguments":{}}},{"function":{"name":"b","arguments":{}}}]}"#,
        r#"{"role":"tool","content":"1"}"#,
        r#"{"role":"tool","content":"2"}"#,
    ];
    let (out, _) = texts(&nameless, Wire::Gemini);
    assert_eq!(
        out[1],
        r#"{"role":"user","parts":[{"functionResponse":{"id":"call_1","name":"a","response":{"output":"1"}}},{"functionResponse":{"id":"call_2","name":"b","response":{"output":"2"}}}]}"#
    );
    // Content that is entirely empty.
    for empty in [
        r#"{"role":"user","content":[]}"#,
        r#"{"role":"user","content":" "}"#,
        r#"{"role":"assistant","content":null}"#,
    ] {
        let (out, lost) = texts(&[empty], Wire::Anthropic);
        assert!(out[0].contains("(empty)"), "{out:?}");
        assert_eq!(lost.len(), 1);
    }
}

#[test]
fn a_round_of_many_results_is_converted_whole() {
    const MANY: usize = 10_000;
    for from in [Wire::Chat, Wire::Responses] {
        let call = |at: usize| talk::Call {
            name: format!("tool{}", at % 7),
            arguments: Default::default(),
            result: format!("result {at}"),
            failed: false,
            image: None,
        };
        let turns = [Turn::Output {
            text: None,
            calls: (0..MANY).map(call).collect(),
        }];
        let start = written(&turns, from);
        for to in Wire::ALL {
            let (there, _) = converted(&start, to);
            assert!(
                heard(&there, to) == expected(&turns, false),
                "{from} to {to}"
            );
        }
    }
}
