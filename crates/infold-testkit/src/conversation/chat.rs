//! Generates conversations on the chat wire.

use infold_wire::StopReason;
use serde_json::{Value, json};

use super::{Conversation, NextStep, PICTURE, ScriptedCall, Shape};

impl Conversation {
    pub(super) fn chat_body(&mut self, stream: bool) -> Value {
        let system = json!({"role": "system", "content": "You are a careful engineer."});
        let messages: Vec<_> = [system].into_iter().chain(self.history.clone()).collect();
        json!({
            "model": self.model, "max_completion_tokens": self.max_tokens, "stream": stream,
            "tools": [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}],
            "messages": messages,
        })
    }

    pub(super) fn chat_client(&mut self) -> Vec<Value> {
        let mut said = Vec::new();
        if let NextStep::Results(calls, _) = self.state.pending.clone() {
            let interrupted = self.random.chance(4);
            for call in calls {
                let content = if interrupted {
                    json!("Interrupted by the user")
                } else if self.random.chance(20) {
                    json!([{"type": "text", "text": self.output()}])
                } else {
                    json!(self.output())
                };
                said.push(json!({"role": "tool", "tool_call_id": call.id, "content": content}));
            }
            let percent = if interrupted { 100 } else { 8 };
            if !self.adds(percent) {
                return said;
            }
        }
        if self.adds(4) && !self.history.is_empty() {
            let role = ["system", "developer"][self.random.below(2) as usize];
            said.push(json!({"role": role, "content": self.words()}));
        }
        let text = self.words();
        let picture = format!("data:image/png;base64,{PICTURE}");
        let content = match self.random.below(10) {
            0 => {
                json!([{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": picture}}])
            }
            1 => {
                json!([{"type": "text", "text": text}, {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,YWJj"}}])
            }
            2..4 => json!([{"type": "text", "text": text}]),
            _ => json!(text),
        };
        said.push(json!({"role": "user", "content": content}));
        said
    }

    pub(super) fn chat_model(&mut self) -> (Vec<Value>, StopReason) {
        let mut message = json!({"role": "assistant", "content": self.words()});
        if self.thinking {
            message["reasoning_content"] = json!(self.words());
        }
        if !matches!(
            self.shape(),
            Shape::Calls | Shape::Mixed | Shape::Programmatic
        ) {
            return (vec![message], StopReason::End);
        }
        let (mut calls, mut list) = (Vec::new(), Vec::new());
        for _ in 0..self.width() {
            let (id, name) = (self.id("call"), self.tool());
            let given = json!({"path": self.words()}).to_string();
            list.push(if self.random.chance(15) { json!({"id": id, "type": "custom", "custom": {"name": name, "input": given}}) } else { json!({"id": id, "type": "function", "function": {"name": name, "arguments": given}}) });
            let kind = "";
            calls.push(ScriptedCall { id, name, kind });
        }
        if self.random.chance(50) {
            message["content"] = Value::Null;
        }
        message["tool_calls"] = Value::Array(list);
        self.state.pending = NextStep::Results(calls, Vec::new());
        (vec![message], StopReason::Calls)
    }
}
