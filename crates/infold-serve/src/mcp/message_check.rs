//! Checks JSON-RPC messages before the protocol's crate reads them, because it does not describe their errors.

use serde_json::{Value, json};

/// The error in a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BadMessage {
    code: i32,
    text: String,
    /// The request's id; null if it cannot be read.
    id: Value,
}

/// The codes of JSON-RPC.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;

impl BadMessage {
    /// A message that is none.
    pub fn invalid(text: impl Into<String>, id: Value) -> BadMessage {
        BadMessage {
            code: INVALID_REQUEST,
            text: text.into(),
            id,
        }
    }

    /// Returns the response to it.
    pub fn response(&self) -> String {
        let error = json!({"code": self.code, "message": self.text});
        json!({"jsonrpc": "2.0", "id": self.id, "error": error}).to_string()
    }

    /// Says whether the message is a request whose only error is in its parameters.
    pub fn is_request(&self) -> bool {
        self.code == INVALID_PARAMS && !self.id.is_null()
    }
}

/// Returns the id of a message, if it is valid for a request.
pub(super) fn id_of(message: &[u8]) -> Value {
    let message: Value = serde_json::from_slice(message).unwrap_or_default();
    known_id(&message["id"])
}

fn known_id(id: &Value) -> Value {
    match id {
        Value::String(_) | Value::Number(_) => id.clone(),
        _ => Value::Null,
    }
}

/// Returns the error in a message, if there is one.
pub(super) fn check(message: &[u8]) -> Result<(), BadMessage> {
    let message: Value = serde_json::from_slice(message).map_err(|error| BadMessage {
        code: PARSE_ERROR,
        text: format!("the message is not JSON: {error}"),
        id: Value::Null,
    })?;
    let given = message.get("id");
    let id = known_id(given.unwrap_or(&Value::Null));
    let invalid = |text: &str| Err(BadMessage::invalid(text, id.clone()));
    if message.is_array() {
        return invalid("requests are sent one by one");
    }
    if message["jsonrpc"] != "2.0" {
        return invalid("this is no message of JSON-RPC 2.0");
    }
    let is_response = ["result", "error"].iter().any(|it| !message[*it].is_null());
    if is_response {
        return Ok(());
    }
    let Some(method) = message["method"].as_str() else {
        return invalid("the message names no method");
    };
    if given.is_some_and(|id| !id.is_string() && !id.is_i64()) {
        return invalid("the id of a request is a text or a whole number");
    }
    if !matches!(&message["params"], Value::Null | Value::Object(_)) {
        let method = infold_wire::shorten(method, 60);
        return Err(BadMessage {
            code: INVALID_PARAMS,
            text: format!("the parameters of `{method}` are not an object"),
            id,
        });
    }
    Ok(())
}
