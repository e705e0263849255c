//! A request as the scripted server got it.

use std::hash::{DefaultHasher, Hasher};
use std::time::SystemTime;

use infold_wire::{Json, Wire};

use crate::reply_request;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its number, from one.
    pub number: u64,
    /// When its last byte arrived.
    pub at: SystemTime,
    /// `POST`, `GET`.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query without its question mark; empty if there is none.
    pub query: String,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// How many bytes the body has.
    pub len: u64,
    /// The [`hash`] of the body.
    pub hash: u64,
    /// The body; nothing if it has more than 1 MiB.
    pub body: Option<Vec<u8>>,
    /// Its first 4 KiB.
    pub head: Vec<u8>,
    /// Its last 4 KiB.
    pub tail: Vec<u8>,
    /// Whether the client went away before the body was complete.
    pub cut: bool,
}

/// A request that the server refused as invalid.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The request.
    pub request: Seen,
    /// The error, in the provider's words.
    pub reason: String,
}

impl Seen {
    /// Returns the first header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the body as text; of a large one nothing.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.body.as_deref().unwrap_or_default()).into_owned()
    }

    /// Returns the body if it is JSON and not large.
    pub fn json(&self) -> Option<Json<'_>> {
        Json::parse(self.body.as_deref()?).ok()
    }

    /// Returns the wire on which it asks for a reply; nothing if it asks for something else.
    pub fn wire(&self) -> Option<Wire> {
        reply_request::wire(&self.method, &self.path)
    }

    /// Returns the messages of the request, as they stand in it.
    pub fn messages(&self) -> Vec<String> {
        let list = self.wire().zip(self.json()).and_then(|(wire, json)| {
            json.get(match wire {
                Wire::Chat | Wire::Anthropic | Wire::Ollama => "messages",
                Wire::Responses => "input",
                Wire::Gemini => "contents",
            })
        });
        let text = |json: Json<'_>| String::from_utf8_lossy(json.bytes()).into_owned();
        let list = list.into_iter().flat_map(Json::elements);
        list.map(text).collect()
    }
}

/// Returns the value of [`Seen::hash`] for a body of these bytes.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    hash.write(bytes);
    hash.finish()
}
