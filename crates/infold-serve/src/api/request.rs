//! A request to the REST API: path, query and body.

use bytes::Bytes;
use http::header::ACCEPT;
use http::request::Parts;
use infold_log::steer::Target;
use infold_store::Contexts;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::error::ApiError;
use super::route::ApiRoute;

/// A request to a route.
#[derive(Debug)]
pub struct ApiRequest {
    /// The path parameters.
    places: Vec<String>,
    query: Vec<(String, String)>,
    /// Lists come one object a line, not as an array.
    pub lines: bool,
    /// The idempotency key: an operation with the same key is carried out once.
    pub idempotency_key: Option<String>,
    /// The body.
    pub body: Bytes,
}

impl ApiRequest {
    /// Reads the head of a request.
    pub fn new(
        route: &ApiRoute,
        places: Vec<String>,
        head: &Parts,
    ) -> Result<ApiRequest, ApiError> {
        let mut query: Vec<(String, String)> = Vec::new();
        for pair in head.uri.query().unwrap_or_default().split('&') {
            if pair.is_empty() {
                continue;
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = decode(name).zip(decode(value));
            let (name, value) = decoded
                .ok_or_else(|| ApiError::bad(format!("`{pair}` of the query is not UTF-8")))?;
            if !route.query.iter().any(|query| query.name == name) {
                let known: Vec<&str> = route.query.iter().map(|query| query.name).collect();
                let known = if known.is_empty() {
                    "it takes none".to_owned()
                } else {
                    format!("it takes {}", known.join(", "))
                };
                return Err(ApiError::bad(format!(
                    "no query parameter `{name}` here; {known}"
                )));
            }
            if query.iter().any(|(other, _)| *other == name) {
                return Err(ApiError::bad(format!("`{name}` is in the query twice")));
            }
            query.push((name, value));
        }
        let key = head.headers.get("idempotency-key").map(|key| {
            let text = key.to_str().map(str::to_owned);
            text.map_err(|_| ApiError::bad("the header Idempotency-Key is not printable ASCII"))
        });
        let accept = head.headers.get_all(ACCEPT).iter();
        let mut accept = accept.filter_map(|value| value.to_str().ok());
        Ok(ApiRequest {
            places,
            query,
            lines: accept.any(|value| value.contains("application/x-ndjson")),
            idempotency_key: key.transpose()?,
            body: Bytes::new(),
        })
    }

    /// Returns a path parameter.
    pub fn place(&self, at: usize) -> &str {
        self.places.get(at).map_or("", String::as_str)
    }

    /// The task that the path names.
    pub fn task(&self, contexts: &Contexts) -> Result<Uuid, ApiError> {
        Ok(contexts.resolve(self.place(0))?)
    }

    /// A parameter of the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A number in the query, at least 1.
    pub fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let Some(text) = self.query(name) else {
            return Ok(None);
        };
        let number = text.parse().ok().filter(|number| *number > 0);
        let bad = || ApiError::bad(format!("`{name}={text}`: give a number, counted from 1"));
        number.map(Some).ok_or_else(bad)
    }

    /// A yes or no in the query.
    pub fn flag(&self, name: &str) -> Result<bool, ApiError> {
        match self.query(name) {
            None | Some("false" | "0") => Ok(false),
            Some("" | "true" | "1") => Ok(true),
            Some(other) => Err(ApiError::bad(format!("`{name}={other}`: true or false"))),
        }
    }

    /// A point of a log in the query.
    pub fn at(&self) -> Result<Option<Target>, ApiError> {
        let at = self.query("at").map(infold::step::target).transpose();
        at.map_err(|error| ApiError::bad(format!("`at` of the query: {error}")))
    }

    /// The members of the body, which may have none but these; an empty body has none.
    pub fn members(&self, known: &[&str]) -> Result<BodyMembers, ApiError> {
        if self.body.iter().all(u8::is_ascii_whitespace) {
            return Ok(BodyMembers(Map::new()));
        }
        let value: Value = serde_json::from_slice(&self.body)
            .map_err(|error| ApiError::bad(format!("the body is not JSON: {error}")))?;
        let Value::Object(members) = value else {
            return Err(ApiError::bad("the body is not a JSON object"));
        };
        if let Some(other) = members.keys().find(|name| !known.contains(&name.as_str())) {
            let known = if known.is_empty() {
                "it has none".to_owned()
            } else {
                format!("there are {}", known.join(", "))
            };
            return Err(ApiError::bad(format!(
                "no member \"{other}\" here; {known}"
            )));
        }
        Ok(BodyMembers(members))
    }
}

/// The members of a body.
pub struct BodyMembers(Map<String, Value>);

impl BodyMembers {
    /// A member; `null` is none.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(&self, name: &str) -> Result<Option<String>, ApiError> {
        self.read(name, "a text", |value| value.as_str().map(str::to_owned))
    }

    /// A whole number, at least 1.
    pub fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let positive = |value: &Value| value.as_u64().filter(|number| *number > 0);
        self.read(name, "a whole number above 0", positive)
    }

    /// Returns a boolean member; false if it is missing.
    pub fn flag(&self, name: &str) -> Result<bool, ApiError> {
        let flag = self.read(name, "true or false", Value::as_bool)?;
        Ok(flag.unwrap_or_default())
    }

    /// A member of one kind.
    pub fn read<T>(
        &self,
        name: &str,
        what: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let bad = || ApiError::bad(format!("\"{name}\" must be {what}"));
        read(value).map(Some).ok_or_else(bad)
    }
}

/// Decodes percent-encoding.
fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_may_not_hold_is_read() {
        let table = [
            ("", Some("")),
            ("2026-11-15T12%3A00Z", Some("2026-11-15T12:00Z")),
            ("a+b%2bc", Some("a b+c")),
            ("%e2%82%ac", Some("€")),
            ("%e2", None),
            ("%", None),
            ("%4", None),
            ("%+1", None),
        ];
        for (text, read) in table {
            assert_eq!(decode(text).as_deref(), read, "{text}");
        }
    }
}
