//! Checks requests as providers do.

mod chat;
mod responses;
mod anthropic;
mod gemini;
mod ollama;

use infold_wire::{Json, JsonError, Wire};

use crate::dialect::{self, BadRequest};
use crate::reply_request::ReplyRequest;
use crate::send::Outgoing;
use crate::{Model, Seen, rules};

/// Checks the key, if the model asks for one.
pub(crate) fn key(wire: Wire, model: &Model, seen: &Seen) -> Result<(), Outgoing> {
    let Some(wanted) = &model.key else {
        return Ok(());
    };
    let bearer = || seen.header("authorization")?.strip_prefix("Bearer ");
    let given = match wire {
        Wire::Chat | Wire::Responses | Wire::Ollama => bearer(),
        Wire::Anthropic => seen.header("x-api-key").or_else(bearer),
        Wire::Gemini => {
            let mut query = seen.query.split('&');
            let in_query = || query.find_map(|it| it.strip_prefix("key="));
            seen.header("x-goog-api-key").or_else(in_query)
        }
    };
    match given {
        Some(given) if given == wanted => Ok(()),
        given => Err(dialect::key(wire, given)),
    }
}

/// Returns a provider's error for a body that is not JSON.
pub(crate) fn unreadable(wire: Wire, error: &JsonError) -> BadRequest {
    let message = match wire {
        Wire::Chat | Wire::Responses => "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)".to_owned(),
        Wire::Anthropic => format!("The request body is not valid JSON: {error}"),
        Wire::Gemini => format!("Invalid JSON payload received. {error}"),
        Wire::Ollama => format!("invalid character: {error}"),
    };
    BadRequest::new(message, "", "")
}

/// Checks a request as its provider would, as far as the model behind it insists.
pub(crate) fn request(
    model: &Model,
    seen: &Seen,
    asked: &ReplyRequest,
    body: Json<'_>,
) -> Result<(), BadRequest> {
    if model.strict || model.picky {
        usual(model, seen, asked.wire, body)?;
    }
    if model.picky {
        rules::check_all(model, asked, body)?;
    }
    Ok(())
}

fn usual(model: &Model, seen: &Seen, wire: Wire, body: Json<'_>) -> Result<(), BadRequest> {
    match wire {
        Wire::Chat => chat::check(body),
        Wire::Responses => responses::check(body),
        Wire::Anthropic => anthropic::check(body, seen, model.alternate),
        Wire::Gemini => gemini::check(body),
        Wire::Ollama => ollama::check(body),
    }
}

/// A string member, or an empty one.
fn string(json: Json<'_>, name: &str) -> String {
    let text = json.get(name).and_then(Json::text);
    text.map(|text| text.into_owned()).unwrap_or_default()
}

/// A member with something in it.
fn given<'a>(json: Json<'a>, name: &str) -> Option<Json<'a>> {
    json.get(name).filter(|it| !it.is_null())
}
