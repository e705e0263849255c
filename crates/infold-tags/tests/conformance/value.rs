//! JSON values as the recordings compare them.

use std::collections::BTreeMap;

use infold_wire::{Json, JsonKind};

/// A decoded value: no key order, lone surrogates kept, numbers as doubles.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(Vec<u16>),
    List(Vec<Value>),
    Object(BTreeMap<Vec<u16>, Value>),
}

impl Value {
    pub fn of(json: Json<'_>) -> Value {
        match json.kind() {
            JsonKind::Null => Value::Null,
            JsonKind::Bool => Value::Bool(json.is_true()),
            JsonKind::Number => Value::Number(json.number().unwrap_or(f64::NAN)),
            JsonKind::String => Value::Text(json.utf16().unwrap_or_default()),
            JsonKind::Array => Value::List(json.elements().map(Value::of).collect()),
            JsonKind::Object => {
                let member = |(key, value): (Json<'_>, _)| {
                    (key.utf16().unwrap_or_default(), Value::of(value))
                };
                Value::Object(json.members().map(member).collect())
            }
        }
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        match self {
            Value::Object(members) => members.get_mut(&key.encode_utf16().collect::<Vec<_>>()),
            _ => None,
        }
    }

    pub fn remove(&mut self, key: &str) {
        if let Value::Object(members) = self {
            members.remove(&key.encode_utf16().collect::<Vec<_>>());
        }
    }

    /// Returns the place and kind of the first difference of two values; `None` if they are equal.
    pub fn difference(&self, other: &Value) -> Option<String> {
        match (self, other) {
            (Value::Object(ours), Value::Object(theirs)) => {
                let keys = ours.keys().chain(theirs.keys());
                keys.map(|key| {
                    (
                        String::from_utf16_lossy(key),
                        ours.get(key),
                        theirs.get(key),
                    )
                })
                .find_map(|(key, ours, theirs)| Value::differ(ours, theirs, &key))
            }
            (Value::List(ours), Value::List(theirs)) => {
                let indices = 0..ours.len().max(theirs.len());
                indices
                    .map(|at| (at.to_string(), ours.get(at), theirs.get(at)))
                    .find_map(|(at, ours, theirs)| Value::differ(ours, theirs, &at))
            }
            _ if self == other => None,
            _ => Some(format!(
                ": expected {}, got {}",
                self.short(),
                other.short()
            )),
        }
    }

    fn differ(ours: Option<&Value>, theirs: Option<&Value>, at: &str) -> Option<String> {
        let inner = match (ours, theirs) {
            (Some(ours), Some(theirs)) => ours.difference(theirs)?,
            (Some(ours), None) => format!(": expected {}, got nothing", ours.short()),
            (None, Some(theirs)) => format!(": expected nothing, got {}", theirs.short()),
            (None, None) => return None,
        };
        Some(format!("/{at}{inner}"))
    }

    fn short(&self) -> String {
        let text = match self {
            Value::Text(units) => format!("\"{}\"", escaped(units)),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Object(members) => {
                let keys: Vec<_> = members
                    .keys()
                    .map(|key| String::from_utf16_lossy(key))
                    .collect();
                format!("{{{}}}", keys.join(","))
            }
            Value::Number(number) => number.to_string(),
            Value::Bool(bool) => bool.to_string(),
            Value::Null => "null".to_owned(),
        };
        text.chars().take(80).collect()
    }
}

/// Returns a text in which lone surrogates are distinct.
fn escaped(units: &[u16]) -> String {
    let show = |unit: Result<char, std::char::DecodeUtf16Error>| match unit {
        Ok(char) => char.escape_debug().to_string(),
        Err(lone) => format!("\\u{:04x}", lone.unpaired_surrogate()),
    };
    char::decode_utf16(units.iter().copied())
        .map(show)
        .collect()
}
