//! Requests and replies of a code hosting server, its pages and ETags.

use axum::http::{HeaderMap, Method};
use serde_json::Value;

use crate::hash;

/// A request that came in.
#[derive(Clone, Debug)]
pub(super) struct ForgeRequest {
    pub method: Method,
    /// The path, one decoded segment after the other.
    pub path: Vec<String>,
    pub query: Vec<(String, String)>,
    pub headers: HeaderMap,
    pub body: Value,
    /// The address of the server as the client has it.
    pub base: String,
    /// Path and query as they came.
    pub target: String,
}

/// A reply.
#[derive(Clone, Debug)]
pub(super) struct ForgeReply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl ForgeRequest {
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let pair = self.query.iter().find(|(key, _)| key == name);
        pair.map(|(_, value)| value.as_str())
    }

    /// Returns a text member of the body, or of the query, where GitLab takes it too.
    pub fn text(&self, name: &str) -> Option<String> {
        let member = self.body.get(name).and_then(Value::as_str);
        member.or_else(|| self.parameter(name)).map(str::to_owned)
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.parameter(name)?.parse().ok()
    }

    pub fn per_page(&self, default: usize) -> usize {
        self.number("per_page").unwrap_or(default).clamp(1, 100)
    }

    pub fn page(&self) -> usize {
        self.number("page").unwrap_or(1).max(1)
    }

    /// Returns the address of this list with other parameters.
    pub fn link(&self, path: &str, changes: &[(&str, String)]) -> String {
        let changed = |name: &str| changes.iter().any(|(key, _)| *key == name);
        let own = self.query.iter().filter(|(name, _)| !changed(name));
        let mut pairs: Vec<String> = own
            .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
            .collect();
        pairs.extend(
            changes
                .iter()
                .map(|(name, value)| format!("{name}={}", encode(value))),
        );
        format!("{}{path}?{}", self.base, pairs.join("&"))
    }
}

impl ForgeReply {
    pub fn json(status: u16, body: &Value) -> ForgeReply {
        ForgeReply {
            status,
            headers: vec![(
                "content-type".to_owned(),
                "application/json; charset=utf-8".to_owned(),
            )],
            body: body.to_string().into_bytes(),
        }
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> ForgeReply {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Adds the ETag of a reply to GET; the reply is empty if the client has it.
    pub fn with_etag(self, request: &ForgeRequest) -> ForgeReply {
        if request.method != Method::GET || self.status != 200 {
            return self;
        }
        let etag = format!("W/\"{:016x}\"", hash(&self.body));
        let sent = request.headers.get("if-none-match");
        let is_known = sent.is_some_and(|sent| sent.as_bytes() == etag.as_bytes());
        let mut reply = self.header("etag", etag);
        if is_known {
            reply.status = 304;
            reply.body.clear();
            reply.headers.retain(|(name, _)| name != "content-type");
        }
        reply
    }
}

fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Decodes a part of an address; in a query a plus is a space.
pub(super) fn decode(text: &str, is_query: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = code.and_then(|two| u8::from_str_radix(two, 16).ok());
        rest = after;
        match (first, code) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) if is_query => bytes.push(b' '),
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
