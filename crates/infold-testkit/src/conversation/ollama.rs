//! Generates conversations on Ollama's wire.

use infold_wire::StopReason;
use serde_json::{Value, json};

use super::{Conversation, NextStep, PICTURE, ScriptedCall, Shape};

impl Conversation {
    pub(super) fn ollama_body(&mut self, stream: bool) -> Value {
        json!({
            "model": self.model, "stream": stream, "options": {"num_predict": self.max_tokens},
            "tools": [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}],
            "messages": self.history,
        })
    }

    pub(super) fn ollama_client(&mut self) -> Vec<Value> {
        let mut said = Vec::new();
        if let NextStep::Results(calls, _) = self.state.pending.clone() {
            for call in calls {
                let mut result =
                    json!({"role": "tool", "tool_name": call.name, "content": self.output()});
                // Older versions give calls no ids.
                if !call.id.is_empty() {
                    result["tool_call_id"] = json!(call.id);
                }
                said.push(result);
            }
            if !self.random.chance(8) {
                return said;
            }
        }
        if self.random.chance(4) {
            said.push(json!({"role": "system", "content": self.words()}));
        }
        let mut user = json!({"role": "user", "content": self.words()});
        if self.random.chance(10) {
            user["images"] = json!([PICTURE]);
        }
        said.push(user);
        said
    }

    pub(super) fn ollama_model(&mut self) -> (Vec<Value>, StopReason) {
        let mut message = json!({"role": "assistant", "content": self.words()});
        if self.thinking {
            message["thinking"] = json!(self.words());
        }
        if !matches!(
            self.shape(),
            Shape::Calls | Shape::Mixed | Shape::Programmatic
        ) {
            return (vec![message], StopReason::End);
        }
        let with_ids = self.seed.is_multiple_of(2);
        let (mut calls, mut list) = (Vec::new(), Vec::new());
        for place in 0..self.width() {
            let name = self.tool();
            let function =
                json!({"index": place, "name": name, "arguments": {"path": self.words()}});
            let mut call = json!({"function": function});
            let mut id = String::new();
            if with_ids {
                id = self.id("call");
                call["id"] = json!(id);
            }
            list.push(call);
            let kind = "";
            calls.push(ScriptedCall { id, name, kind });
        }
        message["tool_calls"] = Value::Array(list);
        if self.random.chance(50) {
            message["content"] = json!("");
        }
        self.state.pending = NextStep::Results(calls, Vec::new());
        (vec![message], StopReason::Calls)
    }
}
