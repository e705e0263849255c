//! Reads the content of messages of a wire without the code under test.

use std::collections::HashMap;

use infold_wire::Wire;
use serde_json::Value;

use super::talk::Said;

/// Texts that a conversion inserts are recognised by their brackets, and left out.
const LABELS: [&str; 2] = ["[image from the result of ", "[the image follows]"];

/// Reads messages. Images in results count as the user's, after the results of their round.
pub fn heard(messages: &[Vec<u8>], wire: Wire) -> Vec<Said> {
    let mut heard = Heard::default();
    for message in messages {
        let json: Value = serde_json::from_slice(message).expect("JSON");
        match wire {
            Wire::Gemini => heard.content(&json),
            _ if json.get("role").is_none() => heard.item(&json),
            _ => heard.turn(&json),
        }
    }
    heard.shown();
    heard.said
}

#[derive(Default)]
struct Heard {
    said: Vec<Said>,
    /// Images of results.
    images: Vec<Said>,
    /// The tools that calls named.
    names: HashMap<String, String>,
}

fn str(json: &Value) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

impl Heard {
    fn say(&mut self, said: Said) {
        if let Said::Call(id, name, _) = &said {
            self.names.insert(id.clone(), name.clone());
        }
        if !matches!(said, Said::Result(..)) {
            self.shown();
        }
        match (self.said.last_mut(), said) {
            (_, Said::Text(_, text)) if text.is_empty() => {}
            (Some(Said::Text(who, text)), Said::Text(other, more)) if *who == other => {
                text.push('\n');
                text.push_str(&more);
            }
            (_, said) => self.said.push(said),
        }
    }

    fn shown(&mut self) {
        self.said.append(&mut self.images);
    }

    fn text(&mut self, who: &'static str, text: &str) {
        let mut lines: Vec<&str> = text.split('\n').collect();
        lines.retain(|line| !LABELS.iter().any(|label| line.starts_with(label)));
        self.say(Said::Text(who, lines.join("\n")));
    }

    fn result(&mut self, id: &Value, text: String, failed: bool) {
        let text = if text == LABELS[1] {
            String::new()
        } else {
            text
        };
        self.say(Said::Result(str(id), text, failed));
    }

    fn turn(&mut self, json: &Value) {
        let who = match &*str(&json["role"]) {
            "system" | "developer" => "system",
            "assistant" => "assistant",
            "tool" => {
                let Value::String(text) = &json["content"] else {
                    panic!("a result is a text: {json}");
                };
                return self.result(&json["tool_call_id"], text.clone(), false);
            }
            _ => "user",
        };
        match &json["content"] {
            Value::String(text) => self.text(who, text),
            Value::Array(blocks) => {
                assert!(!blocks.is_empty(), "an empty content");
                blocks.iter().for_each(|block| self.block(who, block));
            }
            _ => {}
        }
        for data in json["images"].as_array().into_iter().flatten() {
            self.say(Said::Image(who, str(data)));
        }
        for call in json["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let arguments = match &function["arguments"] {
                Value::String(text) => serde_json::from_str(text).expect("arguments are JSON"),
                other => other.clone(),
            };
            self.say(Said::Call(
                str(&call["id"]),
                str(&function["name"]),
                arguments,
            ));
        }
    }

    fn block(&mut self, who: &'static str, block: &Value) {
        match &*str(&block["type"]) {
            "text" | "input_text" | "output_text" => self.text(who, &str(&block["text"])),
            "tool_use" => self.say(Said::Call(
                str(&block["id"]),
                str(&block["name"]),
                block["input"].clone(),
            )),
            "tool_result" => {
                let text = self.inside(&block["content"]);
                self.result(&block["tool_use_id"], text, block["is_error"] == true);
            }
            _ => self.say(Said::Image(who, data(block))),
        }
    }

    /// Returns the text of a result; its images are kept for later.
    fn inside(&mut self, content: &Value) -> String {
        let mut texts = Vec::new();
        for block in content.as_array().into_iter().flatten() {
            match block["text"].as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.images.push(Said::Image("user", data(block))),
            }
        }
        texts.extend(content.as_str().map(str::to_owned));
        texts.join("\n")
    }

    fn item(&mut self, json: &Value) {
        match &*str(&json["type"]) {
            "function_call" => {
                let arguments = serde_json::from_str(&str(&json["arguments"])).expect("JSON");
                self.say(Said::Call(
                    str(&json["call_id"]),
                    str(&json["name"]),
                    arguments,
                ));
            }
            "function_call_output" => {
                let text = self.inside(&json["output"]);
                self.result(&json["call_id"], text, false);
            }
            other => panic!("an item of type {other}"),
        }
    }

    fn content(&mut self, json: &Value) {
        let who = match &*str(&json["role"]) {
            "model" => "assistant",
            "system" => "system",
            _ => "user",
        };
        let parts = json["parts"].as_array().expect("parts");
        assert!(!parts.is_empty(), "no parts");
        for part in parts {
            let (call, answer) = (&part["functionCall"], &part["functionResponse"]);
            if let Some(text) = part["text"].as_str() {
                self.text(who, text);
            } else if call.is_object() {
                let name = str(&call["name"]);
                self.say(Said::Call(str(&call["id"]), name, call["args"].clone()));
            } else if answer.is_object() {
                let failed = answer["response"].get("error").is_some();
                let key = if failed { "error" } else { "output" };
                self.named(answer);
                self.result(&answer["id"], str(&answer["response"][key]), failed);
            } else {
                self.say(Said::Image(who, data(part)));
            }
        }
    }

    /// A result carries the name of the call it answers.
    fn named(&self, answer: &Value) {
        let made = self.names.get(&str(&answer["id"])).cloned();
        assert_eq!(made, Some(str(&answer["name"])));
    }
}

/// Returns the data of an image in any form.
fn data(block: &Value) -> String {
    let url = match &block["image_url"] {
        Value::Object(inner) => str(&inner["url"]),
        other => str(other),
    };
    match url.split_once(";base64,") {
        Some((_, data)) => data.to_owned(),
        None => str(&block["source"]["data"]) + &str(&block["inlineData"]["data"]),
    }
}
