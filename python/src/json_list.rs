//! Builds a JSON array element by element, so that messages are not parsed and written again: their bytes must not
//! change.

use serde_json::Value;

/// A JSON array under construction. Its elements keep their bytes.
pub struct JsonList(Vec<u8>);

impl JsonList {
    /// Starts an empty array.
    pub fn new() -> JsonList {
        JsonList(vec![b'['])
    }

    /// Appends an element; `json` must be valid JSON.
    pub fn push(&mut self, json: &[u8]) {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        self.0.extend_from_slice(json);
    }

    /// Appends `object` with one more member behind the others, whose bytes `json` are kept. `object` must have a
    /// member.
    pub fn push_with(&mut self, object: &Value, name: &str, json: &[u8]) {
        let text = object.to_string();
        let members = text.strip_suffix('}').unwrap_or(&text);
        let mut bytes = members.as_bytes().to_vec();
        bytes.extend_from_slice(format!(",\"{name}\":").as_bytes());
        bytes.extend_from_slice(json);
        bytes.push(b'}');
        self.push(&bytes);
    }

    /// Ends the array, and returns its bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.0.push(b']');
        self.0
    }
}
