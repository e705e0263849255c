//! Replies as the services themselves send them, in shapes that the scripted server has not.

use infold_testkit::Step;
use infold_wire::Wire;
use serde_json::{Value, json};

use crate::replies::Scripted;

/// Returns the replies of a wire, each streamed and unstreamed.
pub fn recorded(wire: Wire) -> Vec<Scripted> {
    match wire {
        Wire::Chat => vec![interleaved(), counts_beside()],
        Wire::Responses => vec![searched()],
        Wire::Anthropic => vec![served(), late_counts()],
        Wire::Gemini => vec![signed_end()],
        Wire::Ollama => vec![numbered()],
    }
}

/// Server-sent events; a name is that of the type, if there is one.
fn events(data: &[Value], named: bool, end: &str) -> Step {
    let mut out = String::new();
    for data in data {
        if named {
            out += &format!("event: {}{end}", data["type"].as_str().unwrap_or_default());
        }
        out += &format!("data: {data}{end}{end}");
    }
    // Small reads, so that events and characters are cut anywhere.
    let pause = std::time::Duration::ZERO;
    Step::error(200, out).slowly(7, pause)
}

fn scripted(name: &'static str, streamed: Step, whole: &Value) -> Scripted {
    Scripted::raw(name, streamed, Step::error(200, whole.to_string()))
}

/// Two calls whose arguments come in turn, and members that mean nothing.
fn interleaved() -> Scripted {
    let usage = json!({"prompt_tokens": 90, "completion_tokens": 12, "total_tokens": 102, "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0}});
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "service_tier": "default", "system_fingerprint": "fp",
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}], "usage": null, "obfuscation": "x7"})
    };
    let call = |index: u32, rest: Value| {
        let mut call = json!({"index": index});
        for (name, value) in rest.as_object().into_iter().flatten() {
            call[name] = value.clone();
        }
        chunk(json!({"tool_calls": [call]}), Value::Null)
    };
    let given = |index: u32, piece: &str| call(index, json!({"function": {"arguments": piece}}));
    let stream = [
        chunk(
            json!({"role": "assistant", "content": null, "refusal": null}),
            Value::Null,
        ),
        call(
            0,
            json!({"id": "call_x", "type": "function", "function": {"name": "read", "arguments": ""}}),
        ),
        given(0, "{\"path\":"),
        call(
            1,
            json!({"id": "call_y", "type": "function", "function": {"name": "who", "arguments": ""}}),
        ),
        given(1, "{\"deep\":{\"a\":"),
        given(0, "\"ü🚀"),
        given(1, "[1,"),
        given(0, ".rs\"}"),
        given(1, "2]}}"),
        chunk(json!({}), json!("tool_calls")),
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}),
    ];
    let calls = json!([
        {"id": "call_x", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"ü🚀.rs\"}"}},
        {"id": "call_y", "type": "function", "function": {"name": "who", "arguments": "{\"deep\":{\"a\":[1,2]}}"}},
    ]);
    let message = json!({"role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": calls});
    let whole = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "tool_calls"}], "usage": usage});
    scripted("interleaved", events(&stream, false, "\r\n"), &whole)
}

/// Counts beside the last choice, and no mark at the end.
fn counts_beside() -> Scripted {
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7});
    let chunk = |delta: Value, finish: Value, usage: &Value| {
        json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": usage})
    };
    let stream = [
        chunk(
            json!({"role": "assistant", "content": "", "reasoning_content": "Hm "}),
            Value::Null,
            &Value::Null,
        ),
        chunk(
            json!({"reasoning_content": "🤔"}),
            Value::Null,
            &Value::Null,
        ),
        chunk(json!({"content": "Ja"}), Value::Null, &Value::Null),
        chunk(json!({"content": ""}), json!("length"), &usage),
    ];
    let message = json!({"role": "assistant", "content": "Ja", "reasoning_content": "Hm 🤔"});
    let whole = json!({"id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "length"}], "usage": usage});
    scripted("counts-beside", events(&stream, false, "\n"), &whole)
}

/// A tool of the service's own between reasoning and text.
fn searched() -> Scripted {
    let reasoning = json!({"id": "rs_1", "type": "reasoning", "summary": [], "content": [], "encrypted_content": "c2VhbGVk", "status": "completed"});
    let search = json!({"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "ü"}});
    let part = json!({"type": "output_text", "text": "Ja 🚀", "annotations": [], "logprobs": []});
    let said = json!({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "phase": "final_answer", "content": [part]});
    let response = |status: &str, output: Value, usage: Value| {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "status": status, "error": null, "incomplete_details": null, "instructions": null,
            "metadata": {}, "model": "m", "output": output, "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": usage})
    };
    let usage = json!({"input_tokens": 50, "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 0}, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 59});
    let whole = response("completed", json!([reasoning, search, said]), usage);
    let open = response("in_progress", json!([]), Value::Null);
    let mut empty = said.clone();
    empty["status"] = json!("in_progress");
    empty["content"] = json!([]);
    let item = |kind: &str, at: u32, item: &Value| json!({"type": format!("response.output_item.{kind}"), "output_index": at, "item": item});
    let text = |kind: &str, rest: (&str, Value)| {
        let mut event = json!({"type": format!("response.{kind}"), "item_id": "msg_1", "output_index": 2, "content_index": 0, "logprobs": []});
        event[rest.0] = rest.1;
        event
    };
    let mut stream = vec![
        json!({"type": "response.created", "response": open}),
        item("added", 0, &reasoning),
        item("done", 0, &reasoning),
        item("added", 1, &search),
        json!({"type": "response.web_search_call.in_progress", "output_index": 1, "item_id": "ws_1"}),
        json!({"type": "response.web_search_call.completed", "output_index": 1, "item_id": "ws_1"}),
        item("done", 1, &search),
        item("added", 2, &empty),
        text(
            "content_part.added",
            (
                "part",
                json!({"type": "output_text", "text": "", "annotations": [], "logprobs": []}),
            ),
        ),
        text("output_text.delta", ("delta", json!("Ja "))),
        text("output_text.delta", ("delta", json!("🚀"))),
        text("output_text.done", ("text", json!("Ja 🚀"))),
        text("content_part.done", ("part", part)),
        item("done", 2, &said),
        json!({"type": "response.completed", "response": whole}),
    ];
    for (at, event) in stream.iter_mut().enumerate() {
        event["sequence_number"] = json!(at);
    }
    scripted("searched", events(&stream, true, "\n"), &whole)
}

fn begun(usage: Value) -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage}})
}

/// A tool of the service's own and its result, with thoughts between; pings anywhere.
fn served() -> Scripted {
    let usage = json!({"input_tokens": 7, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 20, "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 0}, "output_tokens": 25, "service_tier": "standard"});
    let found = json!({"type": "web_search_result", "title": "Ü", "url": "http://localhost/", "encrypted_content": "ZQ==", "page_age": null});
    let result =
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [found]});
    let start = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u32| json!({"type": "content_block_stop", "index": index});
    let thinking = |text: &str| json!({"type": "thinking_delta", "thinking": text});
    let input = |json: &str| json!({"type": "input_json_delta", "partial_json": json});
    let ping = json!({"type": "ping"});
    let stream = [
        begun(
            json!({"input_tokens": 7, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 20, "output_tokens": 1}),
        ),
        ping.clone(),
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, thinking("Hm 🤔")),
        ping.clone(),
        delta(0, thinking(" so")),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(
            1,
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}),
        ),
        delta(1, input("")),
        delta(1, input("{\"query\": \"")),
        delta(1, input("ü\"}")),
        stop(1),
        start(2, result.clone()),
        stop(2),
        start(3, json!({"type": "text", "text": ""})),
        delta(3, json!({"type": "text_delta", "text": "Ja "})),
        delta(3, json!({"type": "text_delta", "text": "🚀"})),
        stop(3),
        start(
            4,
            json!({"type": "tool_use", "id": "toolu_1", "name": "who", "input": {}}),
        ),
        stop(4),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 25}}),
        json!({"type": "message_stop"}),
    ];
    let content = json!([
        {"type": "thinking", "thinking": "Hm 🤔 so", "signature": "c2ln"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "ü"}},
        result,
        {"type": "text", "text": "Ja 🚀"},
        {"type": "tool_use", "id": "toolu_1", "name": "who", "input": {}},
    ]);
    let whole = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": "tool_use", "stop_sequence": null, "usage": usage});
    scripted("served", events(&stream, true, "\n"), &whole)
}

/// The input tokens are reported only at the end, and a stop sequence ends the reply.
fn late_counts() -> Scripted {
    let usage = json!({"input_tokens": 11, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 5, "output_tokens": 3});
    let stream = [
        begun(json!({"input_tokens": 0, "output_tokens": 0})),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Ja"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "."}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let whole = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "Ja"}],
        "stop_reason": "stop_sequence", "stop_sequence": ".", "usage": usage});
    scripted("late-counts", events(&stream, true, "\r\n"), &whole)
}

/// A signature on an empty text at the very end.
fn signed_end() -> Scripted {
    let usage = json!({"promptTokenCount": 70, "cachedContentTokenCount": 60, "candidatesTokenCount": 4, "thoughtsTokenCount": 6, "totalTokenCount": 80, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 70}]});
    let chunk = |parts: Value, finish: Option<&str>| {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r"})
    };
    let thought = |text: &str| json!({"text": text, "thought": true});
    let end = json!({"text": "", "thoughtSignature": "c2lnbmVk"});
    let stream = [
        chunk(json!([thought("Hm ")]), None),
        chunk(json!([thought("🤔"), {"text": "Ja "}]), None),
        chunk(
            json!([{"text": "🚀"}, {"functionCall": {"name": "who", "args": {}}}]),
            None,
        ),
        chunk(json!([end]), Some("STOP")),
    ];
    let parts = json!([thought("Hm 🤔"), {"text": "Ja 🚀"}, {"functionCall": {"name": "who", "args": {}}}, end]);
    scripted(
        "signed-end",
        events(&stream, false, "\r\n"),
        &chunk(parts, Some("STOP")),
    )
}

/// Calls with ids and places, before the text ends.
fn numbered() -> Scripted {
    let line = |message: Value, rest: Value| {
        let mut line = json!({"model": "m", "created_at": "2026-01-02T03:04:05.123456789Z", "message": message, "done": false});
        for (name, value) in rest.as_object().into_iter().flatten() {
            line[name] = value.clone();
        }
        line
    };
    let call = |at: u32, name: &str, given: Value| json!({"id": format!("call_{at}"), "function": {"index": at, "name": name, "arguments": given}});
    let (read, who) = (
        call(0, "read", json!({"path": "ü🚀", "deep": {"a": [1, null]}})),
        call(1, "who", json!({})),
    );
    let done = json!({"done": true, "done_reason": "stop", "total_duration": 9, "load_duration": 1, "prompt_eval_count": 33, "prompt_eval_duration": 2, "eval_count": 8, "eval_duration": 3});
    let stream = [
        line(
            json!({"role": "assistant", "content": "", "thinking": "Hm "}),
            json!({}),
        ),
        line(
            json!({"role": "assistant", "content": "", "thinking": "🤔"}),
            json!({}),
        ),
        line(
            json!({"role": "assistant", "content": "", "tool_calls": [read]}),
            json!({}),
        ),
        line(json!({"role": "assistant", "content": "Ja "}), json!({})),
        line(
            json!({"role": "assistant", "content": "", "tool_calls": [who]}),
            json!({}),
        ),
        line(json!({"role": "assistant", "content": "🚀"}), done.clone()),
    ];
    let stream: String = stream.iter().map(|line| format!("{line}\n")).collect();
    let streamed = Step::error(200, stream).slowly(7, std::time::Duration::ZERO);
    let message = json!({"role": "assistant", "content": "Ja 🚀", "thinking": "Hm 🤔", "tool_calls": [read, who]});
    scripted("numbered", streamed, &line(message, done))
}
