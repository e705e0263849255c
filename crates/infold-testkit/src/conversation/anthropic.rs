//! Generates conversations on Anthropic's wire.

use infold_wire::StopReason;
use serde_json::{Value, json};

use super::{Conversation, NextStep, PICTURE, ScriptedCall, Shape};
use crate::seal;

/// Tools of the server, with the type and the contents of their results.
const SERVER_TOOLS: [(&str, &str); 6] = [
    ("web_search", "web_search_tool_result"),
    ("web_fetch", "web_fetch_tool_result"),
    ("code_execution", "code_execution_tool_result"),
    ("bash_code_execution", "bash_code_execution_tool_result"),
    (
        "text_editor_code_execution",
        "text_editor_code_execution_tool_result",
    ),
    ("tool_search_tool_bm25", "tool_search_tool_result"),
];

impl Conversation {
    pub(super) fn anthropic_body(&mut self, stream: bool) -> Value {
        let mut messages = self.history.clone();
        // Clients mark the end of what they sent, and the end of what they sent before.
        let users = messages.iter_mut().rev();
        let users = users.filter(|message| message["role"] == "user");
        for message in users.take(2) {
            let blocks = message["content"].as_array_mut();
            if let Some(block) = blocks.and_then(|blocks| blocks.last_mut()) {
                block["cache_control"] = json!({"type": "ephemeral"});
            }
        }
        let mut body = json!({
            "model": self.model, "max_tokens": self.max_tokens, "stream": stream,
            "system": [{"type": "text", "text": "You are a careful engineer.", "cache_control": {"type": "ephemeral"}}],
            "tools": [{"name": "read_file", "description": "Reads a file.", "input_schema": {"type": "object"}}],
            "messages": messages,
        });
        if self.thinking {
            body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        }
        body
    }

    pub(super) fn anthropic_client(&mut self) -> Vec<Value> {
        let free = self.state.running.is_none();
        let content = match self.state.pending.clone() {
            NextStep::Resume => return Vec::new(),
            NextStep::User => self.anthropic_user(),
            NextStep::Results(calls, _) => {
                let interrupted = self.random.chance(4);
                let results = calls.into_iter();
                let mut blocks: Vec<_> = results
                    .map(|call| self.anthropic_result(&call, interrupted))
                    .collect();
                if free && (interrupted || self.random.chance(10)) {
                    blocks.push(json!({"type": "text", "text": self.words()}));
                }
                Value::Array(blocks)
            }
        };
        let mut said = vec![json!({"role": "user", "content": content})];
        if free && self.adds(4) {
            said.push(json!({"role": "system", "content": self.words()}));
        }
        said
    }

    fn anthropic_user(&mut self) -> Value {
        let text = self.words();
        let mut blocks = vec![json!({"type": "text", "text": text})];
        match self.random.below(10) {
            0 => blocks.push(anthropic_picture()),
            1 => blocks.push(json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": self.output()}, "title": "notes"})),
            2..6 => return json!(text),
            _ => {}
        }
        Value::Array(blocks)
    }

    fn anthropic_result(&mut self, call: &ScriptedCall, interrupted: bool) -> Value {
        if interrupted {
            return json!({"type": "tool_result", "tool_use_id": call.id, "is_error": true, "content": "Interrupted by the user"});
        }
        let content = match self.random.below(8) {
            0 => json!([{"type": "text", "text": self.output()}, anthropic_picture()]),
            1..4 => json!([{"type": "text", "text": self.output()}]),
            4 => return json!({"type": "tool_result", "tool_use_id": call.id}),
            _ => json!(self.output()),
        };
        json!({"type": "tool_result", "tool_use_id": call.id, "content": content})
    }

    pub(super) fn anthropic_model(&mut self) -> (Vec<Value>, StopReason) {
        let mut blocks = Vec::new();
        if self.thinking {
            blocks.push(self.anthropic_thought());
        }
        if let Some(id) = self.reports() {
            let content = self.output();
            blocks
                .push(json!({"type": "robot_tool_result", "tool_use_id": id, "content": content}));
        }
        // Code that calls tools may call more of them before it ends.
        let goes_on = self.state.programmatic && self.random.chance(50);
        if !goes_on && let Some((id, tool)) = self.state.running.take() {
            self.state.programmatic = false;
            blocks.push(self.anthropic_server_result(&id, tool));
        }
        let shape = if goes_on {
            Shape::Programmatic
        } else {
            self.shape()
        };
        if self.random.chance(50) || shape == Shape::Plain {
            blocks.push(json!({"type": "text", "text": self.words()}));
        }
        let mut stop = StopReason::End;
        match shape {
            Shape::Plain => {}
            Shape::Calls => {
                stop = StopReason::Calls;
                self.anthropic_calls(&mut blocks, None);
            }
            Shape::Server => {
                for _ in 0..self.width() {
                    let (id, tool) = self.anthropic_server_use(&mut blocks, None);
                    blocks.push(self.anthropic_server_result(&id, tool));
                }
                blocks.push(json!({"type": "text", "text": self.words()}));
            }
            Shape::Paused => {
                self.state.running = Some(self.anthropic_server_use(&mut blocks, None));
                self.state.pending = NextStep::Resume;
                stop = StopReason::Other("pause_turn".to_owned());
            }
            Shape::Mixed => {
                self.state.running = Some(self.anthropic_server_use(&mut blocks, Some(0)));
                self.anthropic_calls(&mut blocks, None);
                stop = StopReason::Calls;
            }
            Shape::Programmatic => {
                if !goes_on {
                    self.state.running = Some(self.anthropic_server_use(&mut blocks, Some(2)));
                    self.state.programmatic = true;
                }
                let caller = self.state.running.clone().map(|(id, _)| id);
                self.anthropic_calls(&mut blocks, caller);
                stop = StopReason::Calls;
            }
            Shape::Mcp => {
                for _ in 0..self.width() {
                    let (id, text) = (self.id("mcptoolu"), self.output());
                    blocks.push(json!({"type": "mcp_tool_use", "id": id, "name": "echo", "server_name": "docs", "input": {"q": self.words()}}));
                    blocks.push(json!({"type": "mcp_tool_result", "tool_use_id": id, "is_error": false, "content": [{"type": "text", "text": text}]}));
                }
                blocks.push(json!({"type": "text", "text": self.words()}));
            }
            Shape::Background => {
                if let Some(id) = self.start_background("rbt") {
                    blocks.push(json!({"type": "robot_tool_use", "id": id, "name": "arm", "input": {"move": self.words()}}));
                }
                blocks.push(json!({"type": "text", "text": self.words()}));
            }
        }
        (vec![json!({"role": "assistant", "content": blocks})], stop)
    }

    fn anthropic_thought(&mut self) -> Value {
        if self.random.chance(15) {
            let text = self.id("hidden");
            let signature = seal(&text);
            return json!({"type": "redacted_thinking", "data": format!("{text}.{signature}")});
        }
        let text = self.words();
        json!({"type": "thinking", "thinking": text, "signature": seal(&text)})
    }

    fn anthropic_calls(&mut self, blocks: &mut Vec<Value>, caller: Option<String>) {
        let mut calls = Vec::new();
        for _ in 0..self.width() {
            let (id, name) = (self.id("toolu"), self.tool());
            let mut block = json!({"type": "tool_use", "id": id, "name": name, "input": {"path": self.words()}});
            if let Some(caller) = &caller {
                block["caller"] = json!({"type": "code_execution_20250825", "tool_id": caller});
            }
            blocks.push(block);
            let kind = "";
            calls.push(ScriptedCall { id, name, kind });
        }
        self.state.pending = NextStep::Results(calls, Vec::new());
    }

    fn anthropic_server_use(
        &mut self,
        blocks: &mut Vec<Value>,
        which: Option<usize>,
    ) -> (String, &'static str) {
        let which = which.unwrap_or_else(|| self.random.below(SERVER_TOOLS.len() as u64) as usize);
        let (id, tool) = (self.id("srvtoolu"), SERVER_TOOLS[which].0);
        blocks.push(json!({"type": "server_tool_use", "id": id, "name": tool, "input": {"query": self.words()}}));
        (id, tool)
    }

    fn anthropic_server_result(&mut self, id: &str, tool: &str) -> Value {
        let known = SERVER_TOOLS.iter().find(|(name, _)| *name == tool);
        let kind = known.map_or("web_search_tool_result", |(_, kind)| kind);
        let text = self.output();
        let content = match tool {
            "web_search" => {
                json!([{"type": "web_search_result", "url": "https://example.org/a", "title": "A page", "encrypted_content": text, "page_age": null}])
            }
            "web_fetch" => {
                json!({"type": "web_fetch_result", "url": "https://example.org/a", "content": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}}})
            }
            "code_execution" => {
                json!({"type": "code_execution_result", "stdout": text, "stderr": "", "return_code": 0, "content": []})
            }
            "bash_code_execution" => {
                json!({"type": "bash_code_execution_result", "stdout": text, "stderr": "", "return_code": 0, "content": []})
            }
            "text_editor_code_execution" => {
                json!({"type": "text_editor_code_execution_view_result", "file_type": "text", "content": text})
            }
            _ => {
                json!({"type": "tool_search_tool_search_result", "tool_references": [{"type": "tool_reference", "tool_name": "read_file"}]})
            }
        };
        json!({"type": kind, "tool_use_id": id, "content": content})
    }
}

fn anthropic_picture() -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}})
}
