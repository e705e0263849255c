//! Generates conversations on Gemini's wire.

use infold_wire::StopReason;
use serde_json::{Value, json};

use super::{Conversation, NextStep, PICTURE, ScriptedCall, Shape};
use crate::seal;

impl Conversation {
    /// Returns the body of the next request.
    pub(super) fn gemini_body(&mut self) -> Value {
        let mut config = json!({"maxOutputTokens": self.max_tokens});
        if self.thinking {
            config["thinkingConfig"] = json!({"includeThoughts": true});
        }
        json!({
            "systemInstruction": {"parts": [{"text": "You are a careful engineer."}]},
            "tools": [{"functionDeclarations": [{"name": "read_file", "parameters": {"type": "OBJECT"}}]}],
            "generationConfig": config,
            "contents": self.history,
        })
    }

    /// Returns the messages that the client appends: the results of the pending calls, or a text, or both.
    pub(super) fn gemini_client(&mut self) -> Vec<Value> {
        let mut parts = Vec::new();
        if let NextStep::Results(calls, _) = self.state.pending.clone() {
            let interrupted = self.random.chance(4);
            for call in calls {
                let response = if interrupted {
                    json!({"error": "Interrupted by the user"})
                } else {
                    json!({"output": self.output()})
                };
                let mut result = json!({"name": call.name, "response": response});
                if !call.id.is_empty() {
                    result["id"] = json!(call.id);
                }
                parts.push(json!({"functionResponse": result}));
            }
            // Parts other than results would end the running tools of the server.
            if self.state.running.is_some() || !interrupted && !self.random.chance(8) {
                return vec![json!({"role": "user", "parts": parts})];
            }
        }
        parts.push(json!({"text": self.words()}));
        match self.random.below(12) {
            0 => parts.push(json!({"inlineData": {"mimeType": "image/png", "data": PICTURE}})),
            1 => parts.push(json!({"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.org/a.pdf"}})),
            _ => {}
        }
        vec![json!({"role": "user", "parts": parts})]
    }

    /// Returns the messages of the model's turn. `robotCall` and `robotResponse` are invented kinds of parts, as a
    /// future version of the API may have them.
    pub(super) fn gemini_model(&mut self) -> (Vec<Value>, StopReason) {
        let mut parts = Vec::new();
        if self.thinking {
            parts.push(json!({"text": self.words(), "thought": true}));
        }
        if let Some(id) = self.reports() {
            parts.push(json!({"robotResponse": {"id": id, "response": {"output": self.output()}}}));
        }
        if let Some((id, _)) = self.state.running.take() {
            parts.push(json!({"toolResponse": {"id": id, "toolType": "GOOGLE_SEARCH_WEB", "response": {"output": self.output()}}}));
        }
        let shape = self.shape();
        if self.random.chance(60) || matches!(shape, Shape::Plain | Shape::Background) {
            let text = self.words();
            let mut part = json!({"text": text});
            if self.thinking && self.random.chance(50) {
                sign(&mut part, "text");
            }
            parts.push(part);
        }
        match shape {
            Shape::Plain => {}
            Shape::Server | Shape::Paused => {
                for _ in 0..self.width() {
                    let code = self.words();
                    parts.push(json!({"executableCode": {"language": "PYTHON", "code": code}}));
                    parts.push(json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": self.output()}}));
                }
                parts.push(json!({"text": self.words()}));
            }
            Shape::Mcp => {
                let id = self.gemini_server_call(&mut parts);
                parts.push(json!({"toolResponse": {"id": id, "toolType": "GOOGLE_SEARCH_WEB", "response": {"output": self.output()}}}));
                parts.push(json!({"text": self.words()}));
            }
            Shape::Mixed | Shape::Programmatic => {
                let id = self.gemini_server_call(&mut parts);
                self.state.running = Some((id, "search"));
                self.gemini_calls(&mut parts);
            }
            Shape::Calls => self.gemini_calls(&mut parts),
            Shape::Background => {
                if let Some(id) = self.start_background("rbt") {
                    parts.push(json!({"robotCall": {"id": id, "args": {"move": self.words()}}}));
                }
            }
        }
        (
            vec![json!({"role": "model", "parts": parts})],
            StopReason::End,
        )
    }

    /// Adds a call of a tool that the provider runs itself; returns its id.
    fn gemini_server_call(&mut self, parts: &mut Vec<Value>) -> String {
        let id = self.id("stc");
        let mut part = json!({"toolCall": {"id": id, "toolType": "GOOGLE_SEARCH_WEB", "args": {"query": self.words()}}});
        if self.random.chance(50) {
            sign(&mut part, "toolCall");
        }
        parts.push(part);
        id
    }

    /// Adds calls of the client's tools, whose results become the client's next step. Gemini 3 gives calls ids and
    /// signs the first of them.
    fn gemini_calls(&mut self, parts: &mut Vec<Value>) {
        let signs = self.model.contains("gemini-3");
        let mut calls = Vec::new();
        for place in 0..self.width() {
            let name = self.tool();
            let mut call = json!({"name": name, "args": {"path": self.words()}});
            let mut id = String::new();
            if signs {
                id = self.id("fc");
                call["id"] = json!(id);
            }
            let mut part = json!({"functionCall": call});
            if signs && place == 0 {
                sign(&mut part, "functionCall");
            }
            parts.push(part);
            // Only other wires have several kinds of calls.
            let kind = "";
            calls.push(ScriptedCall { id, name, kind });
        }
        self.state.pending = NextStep::Results(calls, Vec::new());
    }
}

/// Adds a thought signature that depends on the member `data` of a part, so that a changed part is noticed.
fn sign(part: &mut Value, data: &str) {
    let signature = seal(&part[data].to_string());
    part["thoughtSignature"] = json!(signature);
}
