//! The rules of each provider that only a picky server checks: pairs of any kind, signatures, order, ids.
//!
//! [`crate::check`] has those that every scripted server checks. A message is the provider's own where
//! it is known; where it is not, it names the rule and the place.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;
mod seal;

use std::time::SystemTime;

use infold_wire::{Json, Wire};

use crate::dialect::BadRequest;
use crate::reply_request::{ReplyRequest, listed};
use crate::{Model, Seen, check};
pub use seal::seal;

/// Members that Infold stores beside a message and that must not be sent to a provider.
const BOOKKEEPING: [&str; 3] = ["seq", "timestamp", "tokens"];

/// Checks the additional rules of a picky provider.
pub(crate) fn check_all(
    model: &Model,
    asked: &ReplyRequest,
    body: Json<'_>,
) -> Result<(), BadRequest> {
    match asked.wire {
        Wire::Chat => chat::check(body, model.alternate),
        Wire::Responses => responses::check(body, model.alternate),
        Wire::Anthropic => anthropic::check(body),
        Wire::Gemini => gemini::check(body, &asked.model, model.alternate),
        Wire::Ollama => ollama::check(body),
    }
}

/// Returns the error of a model that refuses this request as invalid.
///
/// `path` is the path of the request. The key and the length are not checked.
pub fn refusal(model: &Model, path: &str, body: &[u8]) -> Option<String> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let seen = Seen {
        number: 1,
        at: SystemTime::UNIX_EPOCH,
        method: "POST".to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: vec![("anthropic-version".to_owned(), "2023-06-01".to_owned())],
        len: body.len() as u64,
        hash: 0,
        body: None,
        head: Vec::new(),
        tail: Vec::new(),
        cut: false,
    };
    let wire = seen.wire()?;
    let checked = Json::parse(body)
        .map_err(|error| check::unreadable(wire, &error))
        .and_then(|json| {
            let asked = ReplyRequest::of(&seen, wire, Some(json));
            check::request(model, &seen, &asked, json)
        });
    checked.err().map(|wrong| wrong.message)
}

/// The error of a provider that names no parameter.
fn refuse<T>(message: impl Into<String>) -> Result<T, BadRequest> {
    Err(BadRequest::new(message, "", ""))
}

/// A string member; an empty one if it is missing.
fn string(json: Json<'_>, name: &str) -> String {
    let text = json.get(name).and_then(Json::text);
    text.map(|text| text.into_owned()).unwrap_or_default()
}

/// A member that is not null.
fn given<'a>(json: Json<'a>, name: &str) -> Option<Json<'a>> {
    json.get(name).filter(|it| !it.is_null())
}

/// The name of the first member that is not in `allowed`.
fn unknown_member(json: Json<'_>, allowed: &[&str]) -> Option<String> {
    let mut names = json.members().map(|(name, _)| name);
    let found = names.find(|name| !allowed.iter().any(|it| name.is(it)));
    found.map(|name| name.text().unwrap_or_default().into_owned())
}

/// The name of the first bookkeeping member.
fn bookkeeping(json: Json<'_>) -> Option<&'static str> {
    let mut names = BOOKKEEPING.into_iter();
    names.find(|name| json.get(name).is_some())
}

/// Whether an id or a name has only the characters that providers take.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !text.is_empty() && text.bytes().all(plain)
}

/// The text of a content that is a string or a list of parts with `text`.
fn has_parts_of(json: Json<'_>, name: &str, allowed: &[&str]) -> Result<(), (usize, String)> {
    for (place, part) in listed(json, name).into_iter().enumerate() {
        let kind = string(part, "type");
        if part.text().is_none() && !allowed.contains(&kind.as_str()) {
            return Err((place, kind));
        }
    }
    Ok(())
}
