//! Checks a request as Gemini does.

use infold_wire::Json;

use super::{given, string};
use crate::dialect::BadRequest;
use crate::reply_request::listed;

pub(super) fn check(body: Json<'_>) -> Result<(), BadRequest> {
    let contents = listed(body, "contents");
    if contents.is_empty() {
        return wrong("* GenerateContentRequest.contents: contents is not specified\n");
    }
    let mut open = 0;
    let mut before = String::new();
    for (at, content) in contents.iter().enumerate() {
        let role = string(*content, "role");
        if !["user", "model", "function", ""].contains(&role.as_str()) {
            return wrong("Please use a valid role: user, model.");
        }
        let parts = listed(*content, "parts");
        if parts.is_empty() {
            return wrong(format!(
                "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.\n"
            ));
        }
        let count = |name: &str| {
            parts
                .iter()
                .filter(|it| given(**it, name).is_some())
                .count()
        };
        let (calls, results) = (count("functionCall"), count("functionResponse"));
        if results > 0 && open == 0 {
            return wrong(
                "Please ensure that function response turn comes immediately after a function call turn.",
            );
        }
        if results != open {
            return wrong(
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
            );
        }
        if calls > 0 && !["user", "function"].contains(&before.as_str()) {
            return wrong(
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
            );
        }
        open = calls;
        before = if role.is_empty() {
            "user".to_owned()
        } else {
            role
        };
    }
    Ok(())
}

fn wrong<T>(message: impl Into<String>) -> Result<T, BadRequest> {
    Err(BadRequest::new(message, "", ""))
}
