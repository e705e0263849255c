//! Checks a request as Ollama does.

use infold_wire::Json;

use super::{given, string};
use crate::dialect::BadRequest;
use crate::reply_request::listed;

/// Ollama takes almost anything.
pub(super) fn check(body: Json<'_>) -> Result<(), BadRequest> {
    if string(body, "model").is_empty() {
        return Err(BadRequest::new("model is required", "", ""));
    }
    for message in listed(body, "messages") {
        let role = string(message, "role");
        if !["system", "user", "assistant", "tool"].contains(&role.as_str()) {
            let message =
                format!("invalid role: {role}, must be one of [system, user, assistant, tool]");
            return Err(BadRequest::new(message, "", ""));
        }
        // Arguments are an object here, where others have a text.
        for call in given(message, "tool_calls")
            .into_iter()
            .flat_map(Json::elements)
        {
            let arguments = call.get("function").and_then(|it| given(it, "arguments"));
            if arguments.is_some_and(|it| it.kind() != infold_wire::JsonKind::Object) {
                let message = "json: cannot unmarshal string into Go struct field ToolCallFunction.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments";
                return Err(BadRequest::new(message, "", ""));
            }
        }
    }
    Ok(())
}
