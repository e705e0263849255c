//! Requests that a picky server refuses, rule by rule, beside similar ones that it accepts.

use infold_testkit::{Conversation, Model, Script, Server, Step, refusal, seal};
use infold_wire::Wire;
use serde_json::{Value, json};

use crate::http::post;

const WIRES: [Wire; 5] = [
    Wire::Chat,
    Wire::Responses,
    Wire::Anthropic,
    Wire::Gemini,
    Wire::Ollama,
];

/// Returns the error for these messages, if there is one.
fn said(model: &Model, wire: Wire, messages: &Value) -> Option<String> {
    let (path, body) = match wire {
        Wire::Chat => (
            "/v1/chat/completions",
            json!({"model": "m", "messages": messages}),
        ),
        Wire::Responses => ("/v1/responses", json!({"model": "m", "input": messages})),
        Wire::Anthropic => (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 9, "messages": messages}),
        ),
        Wire::Gemini => (
            "/v1beta/models/gemini-3-pro:generateContent",
            json!({"contents": messages}),
        ),
        Wire::Ollama => ("/api/chat", json!({"model": "m", "messages": messages})),
    };
    refusal(model, path, body.to_string().as_bytes())
}

/// Checks that the first is taken, and that each of the others is refused with these words.
fn check(wire: Wire, right: &Value, wrong: &[(&str, Value)]) {
    let model = Model::picky();
    assert_eq!(said(&model, wire, right), None, "{right}");
    for (words, messages) in wrong {
        let found = said(&model, wire, messages).unwrap_or_default();
        assert!(found.contains(words), "{messages}: {found:?}");
    }
}

/// The same messages, with one of them changed.
fn with(messages: &Value, at: usize, change: impl FnOnce(&mut Value)) -> Value {
    let mut messages = messages.clone();
    change(&mut messages[at]);
    messages
}

/// The same messages without this one.
fn without(messages: &Value, at: usize) -> Value {
    let mut list = messages.as_array().expect("a list").clone();
    list.remove(at);
    Value::Array(list)
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(blocks: Value) -> Value {
    json!({"role": "assistant", "content": blocks})
}

fn results(ids: &[&str]) -> Value {
    let block = |id: &&str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    json!({"role": "user", "content": ids.iter().map(block).collect::<Vec<_>>()})
}

#[test]
fn anthropic_calls_are_answered_first_and_once() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "n", "input": {}});
    let right = json!([
        user("a"),
        assistant(json!([call("t1"), call("t2")])),
        results(&["t1", "t2"])
    ]);
    check(
        Wire::Anthropic,
        &right,
        &[
            (
                "`tool_use` ids were found without `tool_result` blocks",
                with(&right, 2, |it| *it = results(&["t1"])),
            ),
            (
                "unexpected `tool_use_id`",
                with(&right, 2, |it| *it = results(&["t1", "t2", "t2"])),
            ),
            (
                "unexpected `tool_use_id`",
                with(&right, 2, |it| *it = results(&["t1", "t2", "t3"])),
            ),
            (
                "immediately after: t1",
                with(&right, 2, |it| {
                    let text = json!({"type": "text", "text": "so"});
                    it["content"]
                        .as_array_mut()
                        .expect("blocks")
                        .insert(0, text);
                }),
            ),
            (
                "ids must be unique",
                json!([
                    user("a"),
                    assistant(json!([call("t1"), call("t1")])),
                    results(&["t1"])
                ]),
            ),
            (
                "String should match pattern",
                json!([
                    user("a"),
                    assistant(json!([call("a b")])),
                    results(&["a b"])
                ]),
            ),
            (
                "Input should be a valid dictionary",
                with(&right, 1, |it| it["content"][0]["input"] = json!("{}")),
            ),
            (
                "content cannot be empty if `is_error` is true",
                with(&right, 2, |it| {
                    it["content"][0] =
                        json!({"type": "tool_result", "tool_use_id": "t1", "is_error": true});
                }),
            ),
        ],
    );
}

#[test]
fn anthropic_server_tools_report_in_this_or_a_later_assistant_message() {
    let used = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let text = json!({"type": "text", "text": "so"});
    let same = json!([user("a"), assistant(json!([used, found, text])), user("b")]);
    let missing = "`web_search` tool use with id `s1` was found without a corresponding `web_search_tool_result` block";
    let orphan = "unexpected `tool_use_id` found in `web_search_tool_result` blocks: s1";
    check(
        Wire::Anthropic,
        &same,
        &[
            (
                missing,
                with(&same, 1, |it| it["content"] = json!([used, text])),
            ),
            (
                orphan,
                with(&same, 1, |it| it["content"] = json!([found, text])),
            ),
            (
                orphan,
                with(&same, 1, |it| it["content"] = json!([used, found, found])),
            ),
            (
                "unexpected `tool_use_id` found in `web_fetch_tool_result`",
                with(&same, 1, |it| {
                    it["content"][1]["type"] = json!("web_fetch_tool_result")
                }),
            ),
            (
                "unexpected `tool_use_id` found in `mcp_tool_result`",
                with(&same, 1, |it| {
                    it["content"][1]["type"] = json!("mcp_tool_result")
                }),
            ),
        ],
    );
    // Paused: what was begun may end the request, and ends in the next message.
    let paused = json!([user("a"), assistant(json!([used]))]);
    check(Wire::Anthropic, &paused, &[]);
    let resumed = json!([
        user("a"),
        assistant(json!([used])),
        assistant(json!([found, text])),
        user("b")
    ]);
    check(
        Wire::Anthropic,
        &resumed,
        &[
            (missing, without(&resumed, 2)),
            (orphan, without(&resumed, 1)),
        ],
    );
    // It goes on while the client runs a tool of its own.
    let call = json!({"type": "tool_use", "id": "t1", "name": "n", "input": {}});
    let mixed = json!([
        user("a"),
        assistant(json!([used, call])),
        results(&["t1"]),
        assistant(json!([found, text])),
        user("b")
    ]);
    check(
        Wire::Anthropic,
        &mixed,
        &[
            (missing, with(&mixed, 3, |it| it["content"] = json!([text]))),
            (orphan, json!([user("a"), user("so"), mixed[3], user("b")])),
        ],
    );
}

#[test]
fn anthropic_code_that_calls_tools_is_answered_with_results_alone() {
    let used =
        json!({"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}});
    let call = json!({"type": "tool_use", "id": "t1", "name": "n", "input": {}, "caller": {"type": "code_execution_20250825", "tool_id": "s1"}});
    let done = json!({"type": "code_execution_tool_result", "tool_use_id": "s1", "content": {}});
    let right = json!([
        user("a"),
        assistant(json!([used, call])),
        results(&["t1"]),
        assistant(json!([done])),
        user("b")
    ]);
    check(
        Wire::Anthropic,
        &right,
        &[
            (
                "must contain only `tool_result` blocks",
                with(&right, 2, |it| {
                    let text = json!({"type": "text", "text": "so"});
                    it["content"].as_array_mut().expect("blocks").push(text);
                }),
            ),
            (
                "no `server_tool_use` block with id `s1`",
                with(&right, 1, |it| it["content"] = json!([call])),
            ),
        ],
    );
}

#[test]
fn anthropic_tools_of_other_servers_and_new_kinds_are_pairs_too() {
    for (used, found) in [
        ("mcp_tool_use", "mcp_tool_result"),
        ("robot_tool_use", "robot_tool_result"),
    ] {
        let start = json!({"type": used, "id": "m1", "name": "n", "input": {}});
        let end = json!({"type": found, "tool_use_id": "m1", "content": "x"});
        let right = json!([user("a"), assistant(json!([start, end])), user("b")]);
        check(
            Wire::Anthropic,
            &right,
            &[
                (
                    "unexpected `tool_use_id`",
                    with(&right, 1, |it| it["content"] = json!([end])),
                ),
                (
                    "Field required",
                    with(&right, 1, |it| {
                        it["content"][1] = json!({"type": found, "tool_use_id": "m1"})
                    }),
                ),
            ],
        );
    }
    // A new kind may take its time, but not for ever.
    let start = json!({"type": "robot_tool_use", "id": "m1", "name": "n", "input": {}});
    let text = json!({"type": "text", "text": "so"});
    let mut list = vec![user("a"), assistant(json!([start])), user("b")];
    check(Wire::Anthropic, &json!(list), &[]);
    for _ in 0..4 {
        list.extend([assistant(json!([text])), user("b")]);
    }
    check(
        Wire::Anthropic,
        &json!([user("a")]),
        &[("without a corresponding `robot_tool_result`", json!(list))],
    );
}

#[test]
fn anthropic_thoughts_are_unchanged_and_come_first() {
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": seal("hm")});
    let hidden = json!({"type": "redacted_thinking", "data": format!("h.{}", seal("h"))});
    let call = json!({"type": "tool_use", "id": "t1", "name": "n", "input": {}});
    let right = json!([
        user("a"),
        assistant(json!([thought, hidden, call])),
        results(&["t1"])
    ]);
    check(
        Wire::Anthropic,
        &right,
        &[
            (
                "Invalid `signature` in `thinking` block",
                with(&right, 1, |it| it["content"][0]["thinking"] = json!("hm.")),
            ),
            (
                "Invalid `data` in `redacted_thinking` block",
                with(&right, 1, |it| it["content"][1]["data"] = json!("h.x")),
            ),
            (
                "thinking.cache_control: Extra inputs",
                with(&right, 1, |it| {
                    it["content"][0]["cache_control"] = json!({"type": "ephemeral"})
                }),
            ),
        ],
    );
    let ask = |messages: &Value| {
        let body = json!({"model": "m", "max_tokens": 9, "thinking": {"type": "enabled"}, "messages": messages});
        refusal(&Model::picky(), "/v1/messages", body.to_string().as_bytes())
    };
    assert_eq!(ask(&right), None);
    let late = with(&right, 1, |it| it["content"] = json!([call]));
    let found = ask(&late).unwrap_or_default();
    assert!(
        found.contains("Expected `thinking` or `redacted_thinking`, but found `tool_use`"),
        "{found}"
    );
}

#[test]
fn anthropic_messages_have_their_places_and_nothing_beside() {
    let right =
        json!([user("a"), {"role": "system", "content": "s"}, assistant(json!("b")), user("c")]);
    let mark = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    check(
        Wire::Anthropic,
        &right,
        &[
            (
                "a `system` message must immediately follow",
                without(&right, 2),
            ),
            (
                "does not support assistant message prefill",
                without(&right, 3),
            ),
            (
                "messages.0.seq: Extra inputs",
                with(&right, 0, |it| it["seq"] = json!(1)),
            ),
            (
                "messages.3.tokens: Extra inputs",
                with(&right, 3, |it| it["tokens"] = json!(1)),
            ),
            (
                "non-whitespace",
                with(&right, 3, |it| it["content"] = json!(" ")),
            ),
            (
                "non-whitespace",
                with(&right, 2, |it| {
                    it["content"] = json!([{"type": "text", "text": " "}])
                }),
            ),
            (
                "Input tag 'audio'",
                with(&right, 3, |it| it["content"] = json!([{"type": "audio"}])),
            ),
            (
                "Input tag 'image'",
                with(&right, 2, |it| it["content"] = json!([{"type": "image"}])),
            ),
            (
                "image.source: Field required",
                with(&right, 3, |it| it["content"] = json!([{"type": "image"}])),
            ),
            (
                "A maximum of 4 blocks with cache_control",
                with(&right, 3, |it| {
                    it["content"] = json!([mark, mark, mark, mark, mark])
                }),
            ),
        ],
    );
}

#[test]
fn chat_calls_are_answered_by_the_next_messages() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "n", "arguments": "{}"}});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    let calls =
        json!({"role": "assistant", "content": null, "tool_calls": [call("c1"), call("c2")]});
    let right = json!([user("a"), calls, result("c1"), result("c2"), user("b")]);
    let long = "c".repeat(41);
    check(
        Wire::Chat,
        &right,
        &[
            ("did not have response messages: c2", without(&right, 3)),
            (
                "must be a response to a preceeding message",
                without(&right, 1),
            ),
            (
                "must be a response to a preceeding message",
                with(&right, 3, |it| *it = result("c1")),
            ),
            (
                "did not have response messages",
                json!([user("a"), calls, result("c1"), user("b"), result("c2")]),
            ),
            (
                "Duplicate value for 'tool_call_id' of 'c1'",
                with(&without(&right, 3), 1, |it| {
                    it["tool_calls"][1]["id"] = json!("c1")
                }),
            ),
            (
                "maximum length 40",
                json!([user("a"), {"role": "assistant", "content": null, "tool_calls": [call(&long)]}, result(&long)]),
            ),
            (
                "Expected an array with minimum length 1",
                with(&json!([user("a"), assistant(json!("b"))]), 1, |it| {
                    it["tool_calls"] = json!([])
                }),
            ),
            (
                "Invalid value: 'robot'",
                with(&right, 1, |it| it["tool_calls"][0]["type"] = json!("robot")),
            ),
            (
                "expected a string, but got",
                with(&right, 1, |it| {
                    it["tool_calls"][0]["function"]["arguments"] = json!({})
                }),
            ),
            (
                "does not match pattern",
                with(&right, 1, |it| {
                    it["tool_calls"][0]["function"]["name"] = json!("a b")
                }),
            ),
            (
                "Unknown parameter: 'messages[0].timestamp'",
                with(&right, 0, |it| it["timestamp"] = json!("x")),
            ),
            (
                "Invalid value: 'image_url'",
                with(&right, 2, |it| {
                    it["content"] = json!([{"type": "image_url"}])
                }),
            ),
            (
                "empty array",
                with(&right, 4, |it| it["content"] = json!([])),
            ),
        ],
    );
}

#[test]
fn templates_want_roles_to_alternate() {
    let model = Model {
        alternate: true,
        ..Model::picky()
    };
    let system = json!({"role": "system", "content": "s"});
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": "x"});
    let right = json!([
        system,
        user("a"),
        calls,
        result,
        assistant(json!("b")),
        user("c")
    ]);
    assert_eq!(said(&model, Wire::Chat, &right), None);
    let found = said(&model, Wire::Chat, &json!([user("a"), user("b")]));
    assert!(found.is_some_and(|it| it.contains("roles must alternate")));
    let found = said(
        &model,
        Wire::Chat,
        &json!([user("a"), assistant(json!("b")), system, user("c")]),
    );
    assert!(found.is_some_and(|it| it.contains("System message must be at the beginning")));
    let call = json!({"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "x"});
    let right = json!([
        user("a"),
        assistant(json!("b")),
        call,
        output,
        assistant(json!("c")),
        user("d")
    ]);
    assert_eq!(said(&model, Wire::Responses, &right), None);
    let found = said(&model, Wire::Responses, &without(&right, 4));
    assert!(found.is_some_and(|it| it.contains("roles must alternate")));
    let text = |role: &str| json!({"role": role, "parts": [{"text": "a"}]});
    assert_eq!(
        said(
            &model,
            Wire::Gemini,
            &json!([text("user"), text("model"), text("user")])
        ),
        None
    );
    let found = said(&model, Wire::Gemini, &json!([text("user"), text("user")]));
    assert!(found.is_some_and(|it| it.contains("alternate between user and model")));
}

#[test]
fn responses_calls_have_outputs_of_their_kind() {
    for (call, output) in [
        ("function_call", "function_call_output"),
        ("custom_tool_call", "custom_tool_call_output"),
        ("local_shell_call", "local_shell_call_output"),
        ("shell_call", "shell_call_output"),
        ("computer_call", "computer_call_output"),
        ("apply_patch_call", "apply_patch_call_output"),
        ("tool_search_call", "tool_search_output"),
        ("robot_call", "robot_call_output"),
    ] {
        let long = "c".repeat(65);
        let calls = json!({"type": call, "call_id": "c1"});
        let answers = json!({"type": output, "call_id": "c1", "output": "x"});
        let right = json!([user("a"), calls, answers, user("b")]);
        let mut wrong = vec![
            ("No tool call found", without(&right, 1)),
            (
                "No tool call found",
                with(&right, 2, |it| it["call_id"] = json!("c2")),
            ),
            ("Duplicate", json!([user("a"), calls, answers, answers])),
            (
                "Duplicate",
                json!([user("a"), calls, answers, calls, answers]),
            ),
            (
                "maximum length 64",
                json!([{"type": call, "call_id": long}, {"type": output, "call_id": long, "output": "x"}]),
            ),
        ];
        if call != "robot_call" {
            wrong.push(("No tool output found", without(&right, 2)));
            wrong.push(("No tool output found", json!([user("a"), calls])));
            wrong.push((
                "No tool output found",
                json!([user("a"), calls, user("b"), answers]),
            ));
        }
        if call != "function_call" {
            wrong.push((
                "No tool",
                with(&right, 2, |it| it["type"] = json!("function_call_output")),
            ));
        }
        check(Wire::Responses, &right, &wrong);
    }
    let mut list = vec![user("a"), json!({"type": "robot_call", "call_id": "c1"})];
    check(Wire::Responses, &json!(list), &[]);
    list.extend((0..30).map(|_| user("b")));
    let right = json!([user("a")]);
    check(
        Wire::Responses,
        &right,
        &[("No tool output found for robot call c1", json!(list))],
    );
}

#[test]
fn responses_reasoning_and_what_it_led_to_stay_together() {
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal("rs_1")});
    let call = json!({"type": "function_call", "id": "fc_1-rs_1", "call_id": "c1", "name": "n", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c1", "output": "x"});
    let right = json!([user("a"), thought, call, output]);
    check(
        Wire::Responses,
        &right,
        &[
            (
                "'fc_1-rs_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'",
                without(&right, 1),
            ),
            (
                "'rs_1' of type 'reasoning' was provided without its required following item",
                json!([user("a"), thought]),
            ),
            (
                "without its required following item",
                json!([user("a"), thought, user("so"), call, output]),
            ),
            (
                "could not be verified",
                with(&right, 1, |it| it["encrypted_content"] = json!("x")),
            ),
            (
                "Duplicate item found with id rs_1",
                json!([user("a"), thought, call, output, thought]),
            ),
            (
                "begins with 'fc'",
                with(&right, 2, |it| it["id"] = json!("x-rs_1")),
            ),
            (
                "Unknown parameter: 'input[0].seq'",
                with(&right, 0, |it| it["seq"] = json!(1)),
            ),
            (
                "Invalid value: 'dream'",
                with(&right, 0, |it| *it = json!({"type": "dream"})),
            ),
            (
                "Invalid value: 'output_text'",
                with(&right, 0, |it| {
                    it["content"] = json!([{"type": "output_text", "text": "a"}])
                }),
            ),
            (
                "Invalid value: 'input_text'",
                with(&right, 0, |it| {
                    *it = assistant(json!([{"type": "input_text", "text": "a"}]))
                }),
            ),
        ],
    );
}

#[test]
fn responses_approvals_come_between_request_and_call() {
    let request = json!({"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "d", "name": "n", "arguments": "{}"});
    let answer = |approve: bool| json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": approve});
    let call = json!({"type": "mcp_call", "id": "mcp_1", "approval_request_id": "mcpr_1", "name": "n", "arguments": "{}"});
    let right = json!([user("a"), request, answer(true), call, user("b")]);
    check(
        Wire::Responses,
        &right,
        &[
            (
                "MCP approval requests do not have an approval: mcpr_1",
                json!([user("a"), request, user("b")]),
            ),
            (
                "No MCP approval request found with id mcpr_1",
                without(&right, 1),
            ),
            ("was not approved", without(&right, 2)),
            ("was not approved", json!([user("a"), call, user("b")])),
            (
                "was not approved",
                with(&right, 2, |it| *it = answer(false)),
            ),
            (
                "Duplicate MCP approval response",
                json!([user("a"), request, answer(true), answer(true)]),
            ),
        ],
    );
    check(
        Wire::Responses,
        &json!([user("a"), request, answer(false), user("b")]),
        &[],
    );
}

#[test]
fn gemini_calls_are_answered_by_name_and_id_with_their_signatures() {
    let text = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    let call = json!({"id": "f1", "name": "n", "args": {}});
    let model = json!({"role": "model", "parts": [{"functionCall": call, "thoughtSignature": seal(&call.to_string())}]});
    let result = json!({"role": "user", "parts": [{"functionResponse": {"id": "f1", "name": "n", "response": {}}}]});
    let right = json!([text("user", "a"), model, result]);
    check(
        Wire::Gemini,
        &right,
        &[
            (
                "has the id and the name of a function call",
                with(&right, 2, |it| {
                    it["parts"][0]["functionResponse"]["name"] = json!("m")
                }),
            ),
            (
                "has the id and the name of a function call",
                with(&right, 2, |it| {
                    it["parts"][0]["functionResponse"]["id"] = json!("f2")
                }),
            ),
            (
                "number of function response parts",
                with(&right, 2, |it| *it = text("user", "b")),
            ),
            (
                "comes immediately after a function call turn",
                without(&right, 1),
            ),
            (
                "missing a thought_signature",
                with(&right, 1, |it| {
                    it["parts"][0] = json!({"functionCall": call})
                }),
            ),
            (
                "Corrupted thought signature",
                with(&right, 1, |it| {
                    it["parts"][0]["thoughtSignature"] = json!("x")
                }),
            ),
            (
                "Unknown name \"seq\" at 'contents[0]'",
                with(&right, 0, |it| it["seq"] = json!(1)),
            ),
            (
                "Unknown name \"tokens\" at 'contents[0].parts[0]'",
                with(&right, 0, |it| it["parts"][0]["tokens"] = json!(1)),
            ),
            (
                "oneof field 'data'",
                with(&right, 0, |it| it["parts"][0] = json!({"thought": true})),
            ),
            (
                "empty text parameter",
                with(&right, 0, |it| it["parts"][0]["text"] = json!("")),
            ),
            (
                "begin with a user role",
                json!([text("model", "a"), text("user", "b")]),
            ),
            (
                "ends with a user role",
                json!([text("user", "a"), text("model", "b")]),
            ),
        ],
    );
}

#[test]
fn gemini_tools_of_the_server_have_their_responses() {
    let text = json!({"role": "user", "parts": [{"text": "a"}]});
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
    let ran = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}});
    let model = |parts: Value| json!({"role": "model", "parts": parts});
    let right = json!([text, model(json!([code, ran])), text]);
    let after = "code execution result comes immediately after executable code";
    check(
        Wire::Gemini,
        &right,
        &[
            (after, with(&right, 1, |it| *it = model(json!([code])))),
            (after, with(&right, 1, |it| *it = model(json!([ran])))),
        ],
    );
    for (call, response) in [("toolCall", "toolResponse"), ("robotCall", "robotResponse")] {
        let (call, response) = (json!({call: {"id": "s1"}}), json!({response: {"id": "s1"}}));
        let right = json!([text, model(json!([call, response])), text]);
        check(
            Wire::Gemini,
            &right,
            &[
                (
                    "comes after its",
                    with(&right, 1, |it| *it = model(json!([response]))),
                ),
                (
                    "ids of",
                    with(&right, 1, |it| *it = model(json!([call, call]))),
                ),
            ],
        );
    }
    let lost = json!([text, model(json!([{"toolCall": {"id": "s1"}}])), text]);
    check(Wire::Gemini, &right, &[("call has its response", lost)]);
}

#[test]
fn templates_of_ollama_want_results_behind_their_calls() {
    let call = |name: &str| json!({"function": {"name": name, "arguments": {}}});
    let result = |name: &str| json!({"role": "tool", "tool_name": name, "content": "x"});
    let right = json!([user("a"), {"role": "assistant", "content": "", "tool_calls": [call("n"), call("m")]}, result("m"), result("n"), user("b")]);
    check(
        Wire::Ollama,
        &right,
        &[
            ("must be followed by its tool message", without(&right, 3)),
            ("must follow the call", without(&right, 1)),
            (
                "must follow the call",
                with(&right, 3, |it| *it = result("m")),
            ),
            (
                "unknown field \"seq\"",
                with(&right, 0, |it| it["seq"] = json!(1)),
            ),
            (
                "must say something",
                with(&right, 0, |it| it["content"] = json!("")),
            ),
            (
                "cannot unmarshal array",
                with(&right, 0, |it| it["content"] = json!([])),
            ),
        ],
    );
}

#[test]
fn a_server_is_picky_only_if_it_is_told_to_be() {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"a","seq":1}]}"#;
    let usual = Server::start(Script::steps([Step::say("yes")]));
    assert_eq!(post(&usual, "/v1/chat/completions", body).status, 200);
    let picky = Server::start(Script::steps([Step::say("yes")]).model(Model::picky()));
    assert_eq!(post(&picky, "/v1/chat/completions", body).status, 400);
    assert_eq!(picky.left(), 1);
    let refusals = picky.take_refusals();
    assert_eq!(refusals[0].reason, "Unknown parameter: 'messages[0].seq'.");
    assert_eq!(refusals[0].request.text(), body);
    assert!(picky.take_refusals().is_empty());
}

#[test]
fn what_is_made_up_is_taken() {
    for wire in WIRES {
        for seed in 0..30 {
            let models = ["gemini-2.5-pro", "gemini-3-pro", "claude-opus-5-5"];
            let model = models[seed as usize % 3];
            let mut conversation = Conversation::new(wire, seed, model);
            let mut provider = Model::picky();
            if seed % 4 == 0 {
                conversation = conversation.alternating();
                provider.alternate = true;
            }
            for turn in 0..40 {
                let exchange = conversation.ask();
                let found = refusal(&provider, &exchange.path, &exchange.body);
                let body = String::from_utf8_lossy(&exchange.body);
                assert_eq!(found, None, "{wire} {seed} {turn} {body}");
                conversation.hear();
            }
        }
    }
}

#[test]
fn what_is_made_up_is_the_same_for_the_same_seed() {
    for wire in WIRES {
        let [mut one, mut other] = [1, 1].map(|seed| Conversation::new(wire, seed, "m"));
        let mut another = Conversation::new(wire, 2, "m");
        for _ in 0..20 {
            let (exchange, twin) = (one.ask(), other.ask());
            assert_eq!(exchange.body, twin.body);
            assert_eq!(exchange.reply, twin.reply);
            assert_ne!(exchange.body, another.ask().body);
            one.hear();
            other.hear();
            another.hear();
        }
    }
}
