//! Replies in odd forms under a judge: no refused call reaches the client, and every call is judged separately.

use std::sync::Arc;

use infold_wire::lookup::{CallJudge, HeldCalls, ReplyFilter, RoundOutcome, write_follow_up};
use infold_wire::{Delivery, Json, StopReason, Wire};

/// Allows `Read` with a path, and nothing else.
fn held() -> HeldCalls {
    let judge: CallJudge = Arc::new(|name, arguments| {
        let text = arguments.map(|it| String::from_utf8_lossy(it.bytes()).into_owned());
        let is_allowed = name == "Read" && text.is_some_and(|text| text.contains("path"));
        (!is_allowed).then(|| "no".to_owned())
    });
    HeldCalls::new(None, Some(judge))
}

fn whole(wire: Wire, body: &str) -> (String, RoundOutcome) {
    let mut filter = ReplyFilter::new(wire, Delivery::Whole, held());
    filter.push_body(body.as_bytes());
    let outcome = filter.end_round();
    let body = filter.last_body(body.as_bytes());
    (String::from_utf8(body).expect("text"), outcome)
}

fn stream(wire: Wire, events: &[String]) -> (String, RoundOutcome) {
    let mut filter = ReplyFilter::new(wire, Delivery::Stream, held());
    let mut out = Vec::new();
    for event in events {
        out.extend(filter.push(event.as_bytes()));
    }
    let outcome = filter.end_round();
    out.extend(filter.finish());
    (String::from_utf8(out).expect("text"), outcome)
}

fn data(json: &str) -> String {
    format!("data: {json}\n\n")
}

fn chunk(delta: &str, finish: &str) -> String {
    data(&format!(
        r#"{{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#
    ))
}

/// Returns a chat stream with these calls, each in a separate chunk.
fn chat_stream(calls: &[&str]) -> Vec<String> {
    let calls = calls.iter();
    let calls = calls.map(|call| chunk(&format!(r#"{{"tool_calls":[{call}]}}"#), "null"));
    let start = chunk(r#"{"role":"assistant","content":""}"#, "null");
    let end = [
        chunk("{}", r#""tool_calls""#),
        "data: [DONE]\n\n".to_owned(),
    ];
    [start].into_iter().chain(calls).chain(end).collect()
}

fn chat_body(calls: &str) -> String {
    format!(
        r#"{{"id":"c","choices":[{{"index":0,"message":{{"role":"assistant","content":null,"tool_calls":{calls}}},"finish_reason":"tool_calls"}}]}}"#
    )
}

const READ: &str = r#""function":{"name":"Read","arguments":"{\"path\":\"a.rs\"}"}"#;
const DEPLOY: &str = r#""function":{"name":"deploy","arguments":"{\"to\":\"SECRET\"}"}"#;
const BASH: &str = r#""function":{"name":"Bash","arguments":"{\"command\":\"SECRET\"}"}"#;

#[test]
fn calls_of_a_chat_with_one_id_are_judged_each_by_itself() {
    for (first, second, others) in [
        (DEPLOY, BASH, 0),
        (BASH, BASH, 0),
        (READ, BASH, 1),
        (BASH, READ, 1),
    ] {
        for (ids, indexes) in [
            ([r#""id":"a","#; 2], [""; 2]),
            ([""; 2], [""; 2]),
            ([r#""id":"","#; 2], [""; 2]),
            ([r#""id":"a","#; 2], [r#""index":0,"#, r#""index":1,"#]),
            ([r#""id":"a","#, r#""id":"b","#], [r#""index":0,"#; 2]),
            ([""; 2], [r#""index":0,"#; 2]),
            ([r#""id":"a","#; 2], [r#""index":0,"#; 2]),
        ] {
            let call = |at: usize, what: &str| {
                format!(r#"{{{}{}"type":"function",{what}}}"#, ids[at], indexes[at])
            };
            let (one, two) = (call(0, first), call(1, second));
            for (out, outcome) in [
                whole(Wire::Chat, &chat_body(&format!("[{one},{two}]"))),
                stream(Wire::Chat, &chat_stream(&[&one, &two])),
            ] {
                assert!(!out.contains("SECRET"), "{one} {two}: {out}");
                assert_eq!(out.matches("a.rs").count(), others, "{one} {two}: {out}");
                let calls = &outcome.calls;
                assert_eq!(
                    (calls.held.len(), calls.others),
                    (2 - others, others),
                    "{one} {two}"
                );
                let stop = if others > 0 {
                    "tool_calls"
                } else {
                    r#""stop""#
                };
                let stop = format!(r#""finish_reason":"{}""#, stop.trim_matches('"'));
                assert!(out.contains(&stop), "{one} {two}: {out}");
                // The ids of the refused calls are distinct.
                let mut ids: Vec<&str> = calls
                    .held
                    .iter()
                    .filter_map(|call| call.id.as_deref())
                    .collect();
                let count = ids.len();
                ids.dedup();
                assert_eq!((count, ids.len()), (2 - others, 2 - others), "{one} {two}");
                assert!(ids.iter().all(|id| !id.is_empty()));
            }
        }
    }
}

#[test]
fn arguments_in_pieces_are_one_call_though_id_and_name_are_repeated() {
    for index in [r#""index":0,"#, ""] {
        let piece = |text: &str| {
            format!(
                r#"{{{index}"id":"a","type":"function","function":{{"name":"Read","arguments":"{text}"}}}}"#
            )
        };
        let pieces = [piece(r#"{\"path\":"#), piece(r#"\"a.rs\"}"#)];
        let (out, outcome) = stream(Wire::Chat, &chat_stream(&[&pieces[0], &pieces[1]]));
        assert_eq!(
            (outcome.calls.held.len(), outcome.calls.others),
            (0, 1),
            "{out}"
        );
        assert!(out.contains("a.rs"), "{out}");
    }
}

#[test]
fn blocks_of_anthropic_with_one_id_or_none_are_judged_each_by_itself() {
    for id in [r#""id":"t","#, r#""id":"","#, ""] {
        let read = format!(r#"{{"type":"tool_use",{id}"name":"Read","input":{{"path":"a.rs"}}}}"#);
        let bash =
            format!(r#"{{"type":"tool_use",{id}"name":"Bash","input":{{"command":"SECRET"}}}}"#);
        for blocks in [[&read, &bash], [&bash, &read]] {
            let body = format!(
                r#"{{"id":"m","type":"message","role":"assistant","content":[{},{}],"stop_reason":"tool_use"}}"#,
                blocks[0], blocks[1]
            );
            let mut events = vec![data(
                r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}"#,
            )];
            for (at, block) in blocks.iter().enumerate() {
                let input = if block.contains("Read") {
                    r#"{\"path\":\"a.rs\"}"#
                } else {
                    r#"{\"command\":\"SECRET\"}"#
                };
                let (start, _) = block.split_once(r#""input":"#).expect("input");
                events.push(data(&format!(
                    r#"{{"type":"content_block_start","index":{at},"content_block":{start}"input":{{}}}}}}"#
                )));
                events.push(data(&format!(
                    r#"{{"type":"content_block_delta","index":{at},"delta":{{"type":"input_json_delta","partial_json":"{input}"}}}}"#
                )));
                events.push(data(&format!(
                    r#"{{"type":"content_block_stop","index":{at}}}"#
                )));
            }
            events.push(data(
                r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
            ));
            events.push(data(r#"{"type":"message_stop"}"#));
            for (out, outcome) in [
                whole(Wire::Anthropic, &body),
                stream(Wire::Anthropic, &events),
            ] {
                assert!(!out.contains("SECRET") && !out.contains("Bash"), "{out}");
                assert!(
                    out.contains("a.rs") && out.contains(r#""tool_use""#),
                    "{out}"
                );
                let held = &outcome.calls.held;
                assert_eq!((held.len(), outcome.calls.others), (1, 1), "{out}");
                assert!(
                    held[0]
                        .id
                        .as_deref()
                        .is_some_and(|id| !id.is_empty() && id != "t")
                );
            }
        }
    }
}

#[test]
fn a_refused_block_whose_input_is_no_object_is_sent_back_with_one() {
    for input in [r#""rm""#, "null", "[]"] {
        let body = format!(
            r#"{{"id":"m","type":"message","role":"assistant","content":[{{"type":"tool_use","id":"t","name":"Bash","input":{input}}}],"stop_reason":"tool_use"}}"#
        );
        let (_, outcome) = whole(Wire::Anthropic, &body);
        let messages = outcome.reply.expect("a reply").messages.concat();
        let messages = String::from_utf8(messages).expect("text");
        assert!(messages.contains(r#""input":{}"#), "{messages}");
    }
}

fn item(kind: &str, more: &str) -> String {
    format!(r#"{{"id":"i_{kind}","type":"{kind}",{more}}}"#)
}

fn response_stream(items: &[String], output: &str) -> Vec<String> {
    let mut events = vec![data(
        r#"{"type":"response.created","response":{"id":"r","output":[]}}"#,
    )];
    for (at, item) in items.iter().enumerate() {
        for kind in ["added", "done"] {
            events.push(data(&format!(
                r#"{{"type":"response.output_item.{kind}","output_index":{at},"item":{item}}}"#
            )));
        }
    }
    events.push(data(&format!(
        r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":{output}}}}}"#
    )));
    events
}

#[test]
fn items_that_the_end_of_a_response_does_not_repeat_are_judged() {
    let text = item(
        "message",
        r#""role":"assistant","content":[{"type":"output_text","text":"So."}]"#,
    );
    let bash = item(
        "function_call",
        r#""call_id":"c","name":"Bash","arguments":"{\"command\":\"SECRET\"}""#,
    );
    for output in [
        format!("[{text}]"),
        "[]".to_owned(),
        "null".to_owned(),
        format!("[{text},{bash}]"),
    ] {
        let events = response_stream(&[text.clone(), bash.clone()], &output);
        let (out, outcome) = stream(Wire::Responses, &events);
        assert!(
            !out.contains("SECRET") && out.contains("So."),
            "{output}: {out}"
        );
        assert_eq!(outcome.calls.held.len(), 1, "{output}");
        assert!(outcome.waits_for_lookups(), "{output}");
    }
}

#[test]
fn items_with_one_id_or_none_are_judged_each_by_itself() {
    for id in [r#""call_id":"c","#, r#""call_id":"","#, ""] {
        let bash = format!(
            r#"{{"type":"function_call",{id}"name":"Bash","arguments":"{{\"command\":\"SECRET\"}}"}}"#
        );
        let read = format!(
            r#"{{"type":"function_call",{id}"name":"Read","arguments":"{{\"path\":\"a.rs\"}}"}}"#
        );
        for items in [[bash.clone(), read.clone()], [read, bash]] {
            let output = format!("[{}]", items.join(","));
            let body = format!(
                r#"{{"id":"r","object":"response","status":"completed","output":{output}}}"#
            );
            for (out, outcome) in [
                whole(Wire::Responses, &body),
                stream(Wire::Responses, &response_stream(&items, &output)),
            ] {
                assert!(!out.contains("SECRET") && out.contains("a.rs"), "{out}");
                assert_eq!(
                    (outcome.calls.held.len(), outcome.calls.others),
                    (1, 1),
                    "{out}"
                );
            }
        }
    }
}

#[test]
fn items_of_unknown_types_and_requests_for_approval_are_judged() {
    let new = item("brandnew_call", r#""call_id":"c","action":{"do":"SECRET"}"#);
    let approval = item(
        "mcp_approval_request",
        r#""server_label":"x","name":"tool","arguments":"SECRET""#,
    );
    for item in [new, approval] {
        let output = format!("[{item}]");
        let body =
            format!(r#"{{"id":"r","object":"response","status":"completed","output":{output}}}"#);
        for (out, outcome) in [
            whole(Wire::Responses, &body),
            stream(Wire::Responses, &response_stream(&[item], &output)),
        ] {
            assert!(!out.contains("SECRET"), "{out}");
            assert!(outcome.waits_for_lookups(), "{out}");
        }
    }
    // A call that the provider has run is not held back.
    let hosted = item(
        "web_search_call",
        r#""status":"completed","action":{"query":"q"}"#,
    );
    let output = format!("[{hosted}]");
    let (out, outcome) = stream(Wire::Responses, &response_stream(&[hosted], &output));
    assert!(
        out.contains("web_search_call") && outcome.calls.held.is_empty(),
        "{out}"
    );
}

#[test]
fn calls_in_other_choices_and_places_of_a_chat_do_not_pass() {
    let call = format!(r#"{{"id":"a","type":"function",{BASH}}}"#);
    let said =
        |calls: &str| format!(r#"{{"role":"assistant","content":"So.","tool_calls":{calls}}}"#);
    let second = |name: &str| {
        format!(
            r#"{{"id":"c","choices":[{{"index":0,"{name}":{{"role":"assistant","content":"So."}},"finish_reason":"stop"}},{{"index":1,"{name}":{},"finish_reason":"tool_calls"}}]}}"#,
            said(&format!("[{call}]"))
        )
    };
    let alone = format!(
        r#"{{"id":"c","choices":[{{"index":1,"delta":{},"finish_reason":"tool_calls"}}]}}"#,
        said(&format!("[{call}]"))
    );
    let message = |calls: &str| {
        format!(
            r#"{{"id":"c","choices":[{{"index":0,"message":{},"finish_reason":"stop"}}]}}"#,
            said(calls)
        )
    };
    let flat = r#"[{"id":"a","type":"function","name":"Bash","arguments":"SECRET"}]"#;
    let both = format!(
        r#"{{"id":"c","choices":[{{"index":0,"delta":{{"content":"So."}},"message":{},"finish_reason":"stop"}}]}}"#,
        said(&format!("[{call}]"))
    );
    let end = "data: [DONE]\n\n".to_owned();
    let begin = chunk(r#"{"role":"assistant","content":"So."}"#, "null");
    for event in [
        second("delta"),
        alone,
        message(&format!("[{call}]")),
        message(&call),
        message(flat),
        both.clone(),
    ] {
        let events = [
            begin.clone(),
            data(&event),
            chunk("{}", r#""stop""#),
            end.clone(),
        ];
        let (out, _) = stream(Wire::Chat, &events);
        assert!(
            !out.contains("SECRET") && out.contains("So."),
            "{event}: {out}"
        );
    }
    for body in [
        second("message"),
        message(&format!("[{call}]")),
        message(&call),
        message(flat),
        both,
    ] {
        let (out, _) = whole(Wire::Chat, &body);
        assert!(
            !out.contains("SECRET") && out.contains("So."),
            "{body}: {out}"
        );
    }
    let late = chunk(&format!(r#"{{"tool_calls":[{call}]}}"#), r#""tool_calls""#);
    let (out, _) = stream(Wire::Chat, &[begin, chunk("{}", r#""stop""#), end, late]);
    assert!(!out.contains("SECRET"), "{out}");
}

#[test]
fn calls_of_gemini_are_judged_in_either_spelling() {
    let body = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"So."},{"function_call":{"name":"Bash","args":{"command":"SECRET"}}}]},"finishReason":"STOP","index":0}],"usageMetadata":{"totalTokenCount":1}}"#;
    for (out, outcome) in [
        whole(Wire::Gemini, body),
        stream(Wire::Gemini, &[data(body)]),
    ] {
        assert!(!out.contains("SECRET"), "{out}");
        assert_eq!(
            outcome.reply.as_ref().map(|reply| reply.stop.clone()),
            Ok(StopReason::Calls)
        );
        assert!(outcome.waits_for_lookups(), "{out}");
    }
}

#[test]
fn a_follow_up_of_an_input_that_is_a_text_has_it_as_a_message() {
    let added = [
        br#"{"type":"function_call","call_id":"c","name":"Bash","arguments":"{}"}"#.to_vec(),
        br#"{"type":"function_call_output","call_id":"c","output":"no"}"#.to_vec(),
    ];
    let written = |body: &str| {
        let body = write_follow_up(Wire::Responses, body.as_bytes(), &added, None);
        String::from_utf8(body.expect("a body")).expect("text")
    };
    let body = written(r#"{"model":"m","input":"hello \"you\"","stream":true}"#);
    let json = Json::parse(body.as_bytes()).expect("JSON");
    let items: Vec<Json<'_>> = json.get("input").expect("input").elements().collect();
    assert_eq!(items.len(), 3, "{body}");
    assert_eq!(
        items[0].bytes(),
        br#"{"type":"message","role":"user","content":"hello \"you\""}"#
    );
    let body = written(r#"{"model":"m","previous_response_id":"r"}"#);
    let json = Json::parse(body.as_bytes()).expect("JSON");
    assert_eq!(
        json.get("input").expect("input").elements().count(),
        2,
        "{body}"
    );
    // The provider stores the messages of a conversation, calls included.
    let body = written(
        r#"{"model":"m","conversation":"conv_1","input":[{"role":"user","content":"hi"}]}"#,
    );
    let json = Json::parse(body.as_bytes()).expect("JSON");
    let items: Vec<Json<'_>> = json.get("input").expect("input").elements().collect();
    assert_eq!(items.len(), 1, "{body}");
    assert_eq!(items[0].bytes(), &added[1][..]);
}
