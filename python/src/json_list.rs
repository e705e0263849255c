//! A JSON array that is written element by element.

use serde_json::Value;

/// A JSON array whose elements keep their bytes.
pub struct JsonList(Vec<u8>);

impl JsonList {
    pub fn new() -> JsonList {
        JsonList(vec![b'['])
    }

    /// Appends an element.
    pub fn push(&mut self, json: &[u8]) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.extend_from_slice(json);
    }

    /// Appends an object with one more member, whose bytes are kept.
    pub fn push_with(&mut self, object: &Value, name: &str, json: &[u8]) {
        let text = object.to_string();
        let mut bytes = text.trim_end_matches('}').as_bytes().to_vec();
        bytes.extend_from_slice(format!(",\"{name}\":").as_bytes());
        bytes.extend_from_slice(json);
        bytes.push(b'}');
        self.push(&bytes);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.0.push(b']');
        self.0
    }
}
