//! Generates conversations on the Responses wire.

use infold_wire::StopReason;
use serde_json::{Value, json};

use super::{Conversation, NextStep, PICTURE, ScriptedCall, Shape};
use crate::seal;

impl Conversation {
    pub(super) fn responses_body(&mut self, stream: bool) -> Value {
        json!({
            "model": self.model, "max_output_tokens": self.max_tokens, "stream": stream, "store": false,
            "instructions": "You are a careful engineer.",
            "include": ["reasoning.encrypted_content"],
            "tools": [{"type": "function", "name": "read_file", "parameters": {"type": "object"}}],
            "input": self.history,
        })
    }

    pub(super) fn responses_client(&mut self) -> Vec<Value> {
        let mut said = Vec::new();
        if let NextStep::Results(mut calls, approvals) = self.state.pending.clone() {
            let interrupted = self.random.chance(4);
            // Tools that ran side by side end in any order.
            if self.random.chance(30) {
                calls.reverse();
            }
            for call in &calls {
                said.push(self.responses_output(call, interrupted));
            }
            for id in approvals {
                let approve = self.random.chance(60);
                if approve {
                    self.state.approved.push(id.clone());
                }
                said.push(json!({"type": "mcp_approval_response", "approval_request_id": id, "approve": approve}));
            }
            let percent = if interrupted { 100 } else { 8 };
            if !self.adds(percent) {
                return said;
            }
        }
        if self.adds(4) {
            said.push(json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": self.words()}]}));
        }
        let text = self.words();
        let picture = format!("data:image/png;base64,{PICTURE}");
        let content = match self.random.below(10) {
            0 => {
                json!([{"type": "input_text", "text": text}, {"type": "input_image", "image_url": picture, "detail": "auto"}])
            }
            1 => {
                json!([{"type": "input_text", "text": text}, {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,YWJj"}])
            }
            2..5 => json!(text),
            _ => json!([{"type": "input_text", "text": text}]),
        };
        said.push(if self.random.chance(50) {
            json!({"role": "user", "content": content})
        } else {
            json!({"type": "message", "role": "user", "content": content})
        });
        said
    }

    fn responses_output(&mut self, call: &ScriptedCall, interrupted: bool) -> Value {
        let id = &call.id;
        let text = if interrupted {
            "Interrupted by the user".to_owned()
        } else {
            self.output()
        };
        let picture = format!("data:image/png;base64,{PICTURE}");
        match call.kind {
            "custom_tool_call" => {
                json!({"type": "custom_tool_call_output", "call_id": id, "output": text})
            }
            "local_shell_call" => {
                json!({"type": "local_shell_call_output", "call_id": id, "output": text})
            }
            "shell_call" => {
                json!({"type": "shell_call_output", "call_id": id, "output": [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]})
            }
            "computer_call" => {
                json!({"type": "computer_call_output", "call_id": id, "output": {"type": "computer_screenshot", "image_url": picture}})
            }
            "apply_patch_call" => {
                json!({"type": "apply_patch_call_output", "call_id": id, "status": "completed", "output": text})
            }
            "tool_search_call" => {
                json!({"type": "tool_search_output", "call_id": id, "execution": "client", "status": "completed", "tools": []})
            }
            _ => json!({"type": "function_call_output", "call_id": id, "output": text}),
        }
    }

    pub(super) fn responses_model(&mut self) -> (Vec<Value>, StopReason) {
        let mut items = Vec::new();
        // The id of an output item names its reasoning.
        let mut because = String::new();
        if self.thinking {
            let id = self.id("rs");
            items.push(json!({"type": "reasoning", "id": id, "summary": [{"type": "summary_text", "text": self.words()}], "encrypted_content": seal(&id)}));
            because = format!("-{id}");
        }
        for id in std::mem::take(&mut self.state.approved) {
            items.push(json!({"type": "mcp_call", "id": self.id("mcp") + &because, "approval_request_id": id, "server_label": "docs", "name": "echo", "arguments": "{}", "output": self.output(), "error": null}));
        }
        let shape = self.shape();
        if shape == Shape::Plain || items.len() == 1 && self.random.chance(30) {
            items.push(self.responses_message(&because));
        }
        if let Some(id) = self.reports() {
            items
                .push(json!({"type": "robot_call_output", "call_id": id, "output": self.output()}));
        }
        match shape {
            Shape::Plain => {}
            Shape::Calls | Shape::Programmatic => {
                let calls = self.responses_calls(&mut items, &because);
                self.state.pending = NextStep::Results(calls, Vec::new());
            }
            Shape::Server | Shape::Paused => {
                for _ in 0..self.width() {
                    items.extend(self.responses_server_call(&because));
                }
                items.push(self.responses_message(&because));
            }
            Shape::Mixed => {
                let approvals = self.responses_approvals(&mut items, &because);
                let calls = if self.random.chance(50) {
                    self.responses_calls(&mut items, &because)
                } else {
                    Vec::new()
                };
                self.state.pending = NextStep::Results(calls, approvals);
            }
            Shape::Mcp => {
                items.push(json!({"type": "mcp_list_tools", "id": self.id("mcpl"), "server_label": "docs", "tools": []}));
                items.push(json!({"type": "mcp_call", "id": self.id("mcp") + &because, "server_label": "docs", "name": "echo", "arguments": "{}", "output": self.output(), "error": null}));
                items.push(self.responses_message(&because));
            }
            Shape::Background => {
                if let Some(id) = self.start_background("rbt") {
                    items.push(json!({"type": "robot_call", "id": self.id("rb") + &because, "call_id": id, "action": self.words()}));
                }
                items.push(self.responses_message(&because));
            }
        }
        // Reasoning is followed by an item of the model.
        if self.thinking
            && items
                .get(1)
                .is_none_or(|next| next["type"] == "robot_call_output")
        {
            let message = self.responses_message(&because);
            items.insert(1, message);
        }
        (items, StopReason::End)
    }

    fn responses_message(&mut self, because: &str) -> Value {
        let id = self.id("msg") + because;
        json!({"type": "message", "id": id, "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": self.words(), "annotations": []}]})
    }

    fn responses_approvals(&mut self, items: &mut Vec<Value>, because: &str) -> Vec<String> {
        let mut ids = Vec::new();
        for _ in 0..self.width() {
            let id = self.id("mcpr") + because;
            items.push(json!({"type": "mcp_approval_request", "id": id, "server_label": "docs", "name": "echo", "arguments": "{}"}));
            ids.push(id);
        }
        ids
    }

    fn responses_server_call(&mut self, because: &str) -> Vec<Value> {
        let single = match self.random.below(6) {
            0 => {
                json!({"type": "web_search_call", "id": self.id("ws") + because, "status": "completed", "action": {"type": "search", "query": self.words()}})
            }
            1 => {
                json!({"type": "file_search_call", "id": self.id("fs") + because, "status": "completed", "queries": [self.words()], "results": null})
            }
            2 => {
                json!({"type": "code_interpreter_call", "id": self.id("ci") + because, "status": "completed", "container_id": "cntr_1", "code": self.words(), "outputs": [{"type": "logs", "logs": self.output()}]})
            }
            3 => {
                json!({"type": "image_generation_call", "id": self.id("ig") + because, "status": "completed", "result": PICTURE})
            }
            // A shell of the server's own, and a search among the tools: their outputs are the model's items.
            4 => {
                let (id, call) = (self.id("sh") + because, self.id("call"));
                let output = json!({"type": "shell_call_output", "call_id": call, "output": [{"stdout": self.output(), "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]});
                return vec![
                    json!({"type": "shell_call", "id": id, "call_id": call, "status": "completed", "action": {"commands": [self.words()]}, "environment": {"type": "container_reference", "container_id": "cntr_1"}}),
                    output,
                ];
            }
            _ => {
                return vec![
                    json!({"type": "tool_search_call", "id": self.id("ts") + because, "call_id": null, "execution": "server", "status": "completed", "arguments": {"query": self.words()}}),
                    json!({"type": "tool_search_output", "id": self.id("tso"), "call_id": null, "execution": "server", "status": "completed", "tools": []}),
                ];
            }
        };
        vec![single]
    }

    fn responses_calls(&mut self, items: &mut Vec<Value>, because: &str) -> Vec<ScriptedCall> {
        let kinds = [
            "custom_tool_call",
            "local_shell_call",
            "shell_call",
            "computer_call",
            "apply_patch_call",
            "tool_search_call",
        ];
        let mut calls = Vec::new();
        for _ in 0..self.width() {
            let (id, name, text) = (self.id("call"), self.tool(), self.words());
            let kind = if self.random.chance(60) {
                "function_call"
            } else {
                kinds[self.random.below(6) as usize]
            };
            let item = |prefix: &str| format!("{prefix}_{}{because}", &id["call_".len()..]);
            items.push(match kind {
                "custom_tool_call" => json!({"type": kind, "id": item("ctc"), "call_id": id, "name": name, "input": text}),
                "local_shell_call" => json!({"type": kind, "id": item("lsh"), "call_id": id, "status": "completed", "action": {"type": "exec", "command": ["bash", "-lc", text], "env": {}}}),
                "shell_call" => json!({"type": kind, "id": item("sh"), "call_id": id, "status": "completed", "action": {"commands": [text], "timeout_ms": 1000, "max_output_length": 4096}}),
                "computer_call" => json!({"type": kind, "id": item("cu"), "call_id": id, "status": "completed", "action": {"type": "screenshot"}, "pending_safety_checks": []}),
                "apply_patch_call" => json!({"type": kind, "id": item("apc"), "call_id": id, "status": "completed", "operation": {"type": "update_file", "path": "a.rs", "diff": text}}),
                "tool_search_call" => json!({"type": kind, "id": item("ts"), "call_id": id, "execution": "client", "status": "completed", "arguments": {"query": text}}),
                _ => json!({"type": kind, "id": item("fc"), "call_id": id, "status": "completed", "name": name, "arguments": json!({"path": text}).to_string()}),
            });
            calls.push(ScriptedCall { id, name, kind });
        }
        calls
    }
}
