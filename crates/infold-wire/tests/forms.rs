//! Messages of every wire: their facts, and the wires on which they can be sent unchanged.

use infold_log::{Call, Facts};
use infold_wire::tool_action::{MessageAction, message_actions};
use infold_wire::{Message, Wire, tokens};

/// Returns role, calls, answers (`id/name`), marks, and the wires that accept the message unchanged.
fn known(text: &str) -> String {
    let message = Message::parse(text.as_bytes()).expect(text);
    let facts: Facts = message.facts();
    let call = |call: &Call| {
        let word = |word: &Option<String>| word.clone().unwrap_or("-".to_owned());
        format!("{}/{}", word(&call.id), word(&call.name))
    };
    let list = |mark: &str, calls: &[Call]| match calls {
        [] => String::new(),
        calls => format!(
            " {mark}{}",
            calls.iter().map(call).collect::<Vec<_>>().join(",")
        ),
    };
    let marks = [
        (facts.reasoning, " reasons"),
        (facts.empty, " empty"),
        (facts.item, " item"),
    ];
    let marks = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| *mark);
    let wires = message.wires();
    let wires = Wire::ALL.into_iter().filter(|wire| wires.has(*wire));
    let wires: Vec<&str> = wires.map(Wire::name).collect();
    format!(
        "{}{}{}{} | {}",
        facts.role.wire_name(),
        list("calls ", &facts.calls),
        list("answers ", &facts.answers),
        marks.collect::<String>(),
        wires.join(" ")
    )
}

fn table(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(text, is)| (text, is, known(text)))
        .filter(|(_, is, found)| *is != found)
        .map(|(text, is, found)| format!("{text}\n  is    {found}\n  not   {is}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn plain_words_go_nearly_everywhere() {
    table(&[
        (
            r#"{"role":"user","content":"hi"}"#,
            "user | chat responses anthropic ollama",
        ),
        (
            r#"{"role":"assistant","content":"hi"}"#,
            "assistant | chat responses anthropic ollama",
        ),
        (
            r#"{"role":"system","content":"hi"}"#,
            "system | chat responses ollama",
        ),
        (
            r#"{"role":"developer","content":"hi"}"#,
            "system | chat responses",
        ),
        (
            r#"{"role":"user","content":" "}"#,
            "user empty | chat responses ollama",
        ),
        (
            r#"{"role":"user","content":"hi","name":"ann"}"#,
            "user | chat",
        ),
        (
            r#"{"role":"user","content":[{"type":"text","text":"hi"}]}"#,
            "user | chat anthropic",
        ),
        (r#"{"role":"user","content":[]}"#, "user empty | "),
    ]);
}

#[test]
fn chat() {
    table(&[
        (
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#,
            "assistant calls a/ls | chat",
        ),
        (
            r#"{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"sh","input":"x"}}]}"#,
            "assistant calls a/sh | chat",
        ),
        (
            r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#,
            "assistant calls -/f | chat",
        ),
        (
            r#"{"role":"assistant","content":"x","reasoning_content":"hm","refusal":null,"annotations":[]}"#,
            "assistant reasons | chat",
        ),
        (
            r#"{"role":"assistant","content":"x","tool_calls":[]}"#,
            "assistant | ollama",
        ),
        (
            r#"{"role":"assistant","content":"x","tool_calls":null}"#,
            "assistant | chat ollama",
        ),
        (
            r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"ls","arguments":"{}"}}]}"#,
            "assistant calls a/ls | ",
        ),
        (
            r#"{"role":"assistant","content":null}"#,
            "assistant empty | ",
        ),
        // Reasoning is no answer: it says nothing, and servers want a content beside it.
        (
            r#"{"role":"assistant","content":null,"reasoning_content":"hm"}"#,
            "assistant reasons empty | ",
        ),
        (
            r#"{"role":"assistant","reasoning":"hm","reasoning_details":[]}"#,
            "assistant reasons empty | ",
        ),
        (
            r#"{"role":"assistant","content":"","reasoning_content":"hm"}"#,
            "assistant reasons empty | chat",
        ),
        (
            r#"{"role":"assistant","content":null,"reasoning_content":"hm","refusal":"no"}"#,
            "assistant reasons | chat",
        ),
        (
            r#"{"role":"tool","tool_call_id":"a","content":"x"}"#,
            "tool answers a/- | chat",
        ),
        (
            r#"{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}"#,
            "tool answers a/- | chat",
        ),
        (
            r#"{"role":"function","name":"f","content":"x"}"#,
            "tool answers -/f | chat",
        ),
        (
            r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}},{"type":"input_audio","input_audio":{}}]}"#,
            "user | chat",
        ),
    ]);
}

#[test]
fn anthropic() {
    table(&[
        (
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"t","name":"ls","input":{}}]}"#,
            "assistant calls t/ls reasons | anthropic",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{}}],"is_error":true},{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}"#,
            "user answers t/- | anthropic",
        ),
        (
            r#"{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}}]}"#,
            "user | anthropic",
        ),
        // Without a signature, with an unknown member, and a reply with all of its envelope.
        (
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"x"}]}"#,
            "assistant reasons | ",
        ),
        // It may not end with reasoning.
        (
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}"#,
            "assistant reasons empty | ",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"redacted_thinking","data":"s"}]}"#,
            "assistant reasons | ",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x","ts":1}]}"#,
            "user answers t/- | ",
        ),
        (
            r#"{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}"#,
            "assistant | ",
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image_url","image_url":{}}]}]}"#,
            "user answers t/- | ",
        ),
    ]);
}

#[test]
fn gemini() {
    table(&[
        (
            r#"{"role":"user","parts":[{"text":"hi"}]}"#,
            "user | gemini",
        ),
        (r#"{"parts":[{"text":"hi"}]}"#, "user | gemini"),
        (
            r#"{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"name":"ls","args":{"name":"x"}},"thoughtSignature":"s"},{"function_call":{"id":"1","name":"cat","args":{}}}]}"#,
            "assistant calls -/ls,1/cat reasons | gemini",
        ),
        (
            r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"x"}}},{"function_response":{"id":"1","name":"cat","response":{}}},{"inlineData":{"mimeType":"image/png","data":"AA"}}]}"#,
            "user answers -/ls,1/cat | gemini",
        ),
        (
            r#"{"role":"model","parts":[{"text":"","thoughtSignature":"s"}]}"#,
            "assistant reasons | gemini",
        ),
        (
            r#"{"role":"user","parts":[{"file_data":{"file_uri":"gs://x"}}]}"#,
            "user | gemini",
        ),
        (
            r#"{"role":"function","parts":[{"functionResponse":{"name":"ls","response":{}}}]}"#,
            "user answers -/ls | ",
        ),
        (r#"{"role":"system","parts":[{"text":"x"}]}"#, "system | "),
        (r#"{"role":"user","parts":[]}"#, "user empty | "),
        (
            r#"{"role":"model","parts":[{"text":""}]}"#,
            "assistant empty | gemini",
        ),
        (
            r#"{"role":"user","parts":[{"type":"text","text":"x"}]}"#,
            "user | ",
        ),
    ]);
}

#[test]
fn responses() {
    table(&[
        (
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"data:"}]}"#,
            "user | responses",
        ),
        (
            r#"{"type":"message","role":"developer","content":"be kind"}"#,
            "system | responses",
        ),
        (
            r#"{"role":"user","content":[{"type":"input_text","text":"hi"}]}"#,
            "user | responses",
        ),
        (
            r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hi","annotations":[]}]}"#,
            "assistant item | responses",
        ),
        (
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":""}]}"#,
            "assistant empty item | responses",
        ),
        (
            r#"{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}"#,
            "assistant item | responses",
        ),
        (
            r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"x"}"#,
            "assistant reasons item | responses",
        ),
        (
            r#"{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":null}"#,
            "assistant reasons item | ",
        ),
        (
            r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"x","status":"incomplete"}"#,
            "assistant reasons item | ",
        ),
        (
            r#"{"type":"function_call","id":"fc_1","call_id":"a","name":"ls","arguments":"{}"}"#,
            "assistant calls a/ls item | responses",
        ),
        (
            r#"{"type":"custom_tool_call","call_id":"a","name":"sh","input":"x"}"#,
            "assistant calls a/sh item | responses",
        ),
        (
            r#"{"type":"local_shell_call","call_id":"a","action":{"type":"exec","command":["ls"]}}"#,
            "assistant calls a/local_shell item | responses",
        ),
        (
            r#"{"type":"shell_call","call_id":"a","action":{"commands":["ls"]}}"#,
            "assistant calls a/shell item | responses",
        ),
        (
            r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#,
            "assistant item | responses",
        ),
        (
            r#"{"type":"compaction","encrypted_content":"x"}"#,
            "assistant item | responses",
        ),
        (
            r#"{"type":"item_reference","id":"msg_1"}"#,
            "assistant item | responses",
        ),
        (
            r#"{"type":"function_call_output","call_id":"a","output":"x"}"#,
            "tool answers a/- | responses",
        ),
        (
            r#"{"type":"custom_tool_call_output","call_id":"a","output":[{"type":"input_text","text":"x"}]}"#,
            "tool answers a/- | responses",
        ),
        (
            r#"{"type":"local_shell_call_output","id":"ls_1","output":"x"}"#,
            "tool answers -/local_shell | responses",
        ),
        (
            r#"{"type":"mcp_approval_response","approval_request_id":"m","approve":true}"#,
            "user | responses",
        ),
        // The form of a stored line.
        (
            r#"{"type":"function_call_output","call_id":"a","output":"x","seq":1,"role":"tool"}"#,
            "tool answers a/- | responses",
        ),
    ]);
}

#[test]
fn ollama() {
    table(&[
        (
            r#"{"role":"assistant","content":"","thinking":"hm"}"#,
            "assistant reasons empty | ollama",
        ),
        (
            r#"{"role":"assistant","content":"","thinking":"hm","tool_calls":[{"function":{"name":"ls","arguments":{"path":"/"}}}]}"#,
            "assistant calls -/ls reasons | ollama",
        ),
        (
            r#"{"role":"tool","tool_name":"ls","content":"x"}"#,
            "tool answers -/ls | ollama",
        ),
        (
            r#"{"role":"tool","tool_name":"ls","tool_call_id":"a","content":"x"}"#,
            "tool answers a/ls | ollama",
        ),
        (
            r#"{"role":"user","content":"what is it","images":["AA"]}"#,
            "user | ollama",
        ),
        (
            r#"{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{}"}}]}"#,
            "assistant calls a/ls | chat",
        ),
    ]);
}

#[test]
fn what_is_no_message_on_any_wire_says_so() {
    let why = |text: &str| Message::parse(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(why(r#"{"type":"session","id":"x"}"#), "no \"role\"");
    assert_eq!(why(r#"{"type":"message","content":"x"}"#), "no \"role\"");
    assert_eq!(
        why(r#"{"role":"assistant","parts":[]}"#),
        "unknown role `assistant` (known: user, model, function, system)"
    );
    assert_eq!(
        why(r#"{"role":"user","parts":"x"}"#),
        "no \"content\" and no tool call"
    );
}

/// Returns the actions of a message, one word each.
fn done(text: &str) -> String {
    let message = Message::parse(text.as_bytes()).expect(text);
    let message_actions = message_actions(&message)
        .into_iter()
        .map(|deed| match deed {
            MessageAction::Text(text) => format!("says {text}"),
            MessageAction::Call(call) => {
                format!("{} {:?}", call.id.unwrap_or_default(), call.actions)
            }
            MessageAction::Result(given) => format!(
                "{} gave {} {:?}",
                given.id.unwrap_or_default(),
                given.text.trim(),
                given.failed
            ),
        });
    message_actions.collect::<Vec<_>>().join("; ")
}

#[test]
fn deeds_are_found_in_every_form() {
    let rows = [
        (
            r#"{"role":"model","parts":[{"text":"hm","thought":true},{"text":"look"},{"functionCall":{"id":"1","name":"read_file","args":{"path":"a.rs"}}}]}"#,
            r#"says look; 1 [Read("a.rs")]"#,
        ),
        (
            r#"{"role":"user","parts":[{"functionResponse":{"id":"1","name":"x","response":{"error":"no such file"}}},{"functionResponse":{"name":"x","response":{"n":1}}}]}"#,
            r#"1 gave no such file Some(true);  gave {"n":1} None"#,
        ),
        (
            r#"{"type":"function_call","call_id":"a","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"ls\"]}"}"#,
            r#"a [Run("ls")]"#,
        ),
        (
            r#"{"type":"local_shell_call","call_id":"a","action":{"type":"exec","command":["bash","-lc","ls"]}}"#,
            r#"a [Run("ls")]"#,
        ),
        (
            r#"{"type":"custom_tool_call","call_id":"a","name":"apply_patch","input":"*** Begin Patch\n*** Add File: b.rs\n"}"#,
            r#"a [Create("b.rs")]"#,
        ),
        (
            r#"{"type":"web_search_call","id":"w","action":{"type":"search","query":"rust"}}"#,
            r#"w [Search { what: "rust", path: None }]"#,
        ),
        (
            r#"{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"x"}]}"#,
            "a gave x None",
        ),
        (
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#,
            "says done",
        ),
        (
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}"#,
            "",
        ),
    ];
    for (text, does) in rows {
        assert_eq!(done(text), does, "{text}");
    }
}

#[test]
fn the_same_words_weigh_about_the_same_in_every_form() {
    let weigh = |text: &str| tokens::message(&Message::parse(text.as_bytes()).expect(text));
    let same = [
        vec![
            r#"{"role":"user","content":"look around"}"#,
            r#"{"role":"user","parts":[{"text":"look around"}]}"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"look around"}]}"#,
        ],
        vec![
            r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{\"path\":\"/\"}"}}]}"#,
            r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"path":"/"}},"thoughtSignature":"AAAAAAAAAAAAAAAAAAAAAAAA"}]}"#,
            r#"{"type":"function_call","call_id":"a","name":"ls","arguments":"{\"path\":\"/\"}"}"#,
        ],
        vec![
            r#"{"role":"tool","tool_call_id":"a","content":"some files"}"#,
            r#"{"type":"function_call_output","call_id":"a","output":"some files"}"#,
        ],
    ];
    for forms in same {
        let weights: Vec<u64> = forms.iter().map(|text| weigh(text)).collect();
        assert!(
            weights.windows(2).all(|pair| pair[0] == pair[1]),
            "{weights:?}"
        );
    }
    let data = "A".repeat(40_000);
    let image = format!(
        r#"{{"role":"user","parts":[{{"inlineData":{{"mimeType":"image/png","data":"{data}"}}}}]}}"#
    );
    assert_eq!(weigh(&image), 4 + 200);
    let hidden = format!(r#"{{"type":"reasoning","summary":[],"encrypted_content":"{data}"}}"#);
    assert!((7_000..8_000).contains(&weigh(&hidden)));
}

#[test]
fn a_part_weighs_no_more_than_its_message() {
    let texts = [
        r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"some files"}}},{"text":"and"},{"inlineData":{"mimeType":"image/png","data":"AA"}}]}"#,
        r#"{"type":"function_call_output","call_id":"a","output":"some files"}"#,
        r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:"},{"type":"input_text","text":"x"}]}"#,
    ];
    for text in texts {
        let message = Message::parse(text.as_bytes()).expect(text);
        let parts = message.parts();
        let parts = parts.iter().map(|part| tokens::part(&message, &part.range));
        let parts: Vec<u64> = parts.collect();
        assert!(parts.iter().all(|part| *part > 0), "{text}: {parts:?}");
        assert!(parts.iter().sum::<u64>() <= tokens::message(&message));
    }
}
