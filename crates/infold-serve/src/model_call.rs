//! A call of a model, as a client made it: the name of its conversation, who makes it, and where that works.

use std::sync::Arc;

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, USER_AGENT};
use infold::config::Provider;
use infold_store::{Metadata, redacted_name};
use infold_wire::{Json, Wire};
use memchr::memmem;
use tokio::task::spawn_blocking;

use crate::body::decode_body;
use crate::proxy::ProxiedRequest;
use crate::route::Destination;
use crate::{IncomingBody, headers};

/// The bytes of a body that are searched.
const MAX_SEARCHED_BYTES: u64 = 256 << 10;

/// Texts that agents put before their working directory.
const DIRECTORY_MARKERS: [&str; 5] = [
    "Working directory: ",
    "<cwd>",
    "working in the directory: ",
    "Current working directory: ",
    "Current Working Directory (",
];

/// A call of a model, as a client made it.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The form of the request and of the reply.
    pub wire: Wire,
    /// The model, where the path names it (Gemini); else the body does.
    pub model: Option<String>,
    /// Whether the reply streams, if the path decides that (Gemini); else the body does.
    pub stream: Option<bool>,
    /// Its headers ask for a window of a million tokens.
    pub long_context: bool,
    /// The program that makes the call, if known.
    pub agent: Option<String>,
    /// The name of the conversation, if its header or path has one.
    pub name: Option<ConversationName>,
    /// The provider that the call goes to.
    pub provider: Arc<Provider>,
    /// The request itself.
    pub body: IncomingBody,
}

/// The name of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationName {
    /// Given in a header or the path by the person who set the client up.
    Given(String),
    /// The client's own session, which many conversations may be part of.
    Session(String),
}

/// The prefix under which given names are indexed.
pub(crate) const GIVEN_PREFIX: &str = "given ";

impl ConversationName {
    /// Returns the key under which the name is indexed.
    pub(crate) fn key(&self) -> String {
        match self {
            ConversationName::Given(name) => format!("{GIVEN_PREFIX}{name}"),
            ConversationName::Session(name) => format!("session {name}"),
        }
    }

    /// Returns the name in the form in which redacted names are recorded.
    pub(crate) fn redacted(&self) -> ConversationName {
        match self {
            ConversationName::Given(name) => ConversationName::Given(redacted_name(name)),
            ConversationName::Session(name) => ConversationName::Session(redacted_name(name)),
        }
    }

    /// Says whether the name is among indexed names, plain or redacted.
    pub(crate) fn is_among(&self, names: &[String]) -> bool {
        names.contains(&self.key()) || names.contains(&self.redacted().key())
    }

    /// Says whether it was given by the person who set the client up.
    pub(crate) fn is_given(&self) -> bool {
        matches!(self, ConversationName::Given(_))
    }

    /// Returns the task type that represents the name in a task's metadata.
    pub(crate) fn task_type(&self) -> &'static str {
        match self {
            ConversationName::Given(_) => "named",
            ConversationName::Session(_) => "session",
        }
    }

    /// Returns the name that a task was made with.
    pub(crate) fn of(metadata: &Metadata) -> Option<ConversationName> {
        let text = metadata.task_id.clone()?;
        let names = [
            ConversationName::Given(text.clone()),
            ConversationName::Session(text),
        ];
        names
            .into_iter()
            .find(|name| metadata.task_type.as_deref() == Some(name.task_type()))
    }

    /// Returns the name itself.
    pub(crate) fn text(&self) -> &str {
        match self {
            ConversationName::Given(name) | ConversationName::Session(name) => name,
        }
    }
}

impl ProxiedRequest<'_> {
    /// Reads the call, and says whether its body had to be decompressed; none if it cannot be read.
    pub async fn read_call(&self) -> Option<(ModelCall, bool)> {
        let Destination::Model {
            wire,
            model,
            stream,
        } = &self.route.to
        else {
            return None;
        };
        let mut body = self.body.clone();
        let mut unpacked = false;
        if self.parts.headers.contains_key(CONTENT_ENCODING) {
            let (headers, limits) = (self.parts.headers.clone(), self.state.limits.clone());
            let packed = body.clone();
            let plain = spawn_blocking(move || decode_body(&headers, &packed, &limits)).await;
            match plain {
                Ok(Ok(Some(plain))) => (body, unpacked) = (plain, true),
                Ok(Ok(None)) => {
                    self.state.metrics.failed("unpack");
                    tracing::warn!(
                        "a request is packed in a way that is not read here: passed through unrecorded"
                    );
                    return None;
                }
                Ok(Err(error)) => {
                    self.state.metrics.failed("unpack");
                    tracing::warn!(%error, "a packed request could not be read: passed through unrecorded");
                    return None;
                }
                Err(_) => {
                    self.state.metrics.failed("unpack");
                    return None;
                }
            }
        }
        let call = ModelCall {
            wire: *wire,
            model: crate::translate::model(self.upstream, *wire).or_else(|| model.clone()),
            stream: *stream,
            long_context: headers::asks_for_long_context(&self.parts.headers),
            agent: agent_name(&self.parts.headers),
            name: self.route.name.clone(),
            provider: Arc::clone(&self.upstream.provider),
            body,
        };
        Some((call, unpacked))
    }
}

/// The name of the program that sent a request, without its version.
pub(crate) fn agent_name(headers: &HeaderMap) -> Option<String> {
    let agent = headers.get(USER_AGENT)?.to_str().ok()?;
    let name = agent.split(['/', ' ', '(']).next()?;
    let is_name = !name.is_empty() && name.len() <= 64;
    is_name.then(|| name.to_owned())
}

/// The directory in which an agent works, if its instructions name it.
pub(crate) fn working_directory(body: &IncomingBody) -> Option<String> {
    let part = body.part(&(0..body.len().min(MAX_SEARCHED_BYTES))).ok()?;
    DIRECTORY_MARKERS.iter().find_map(|marker| {
        let mut found = memmem::find_iter(&part, marker.as_bytes());
        found.find_map(|at| path(&part[at + marker.len()..]))
    })
}

/// The absolute path with which a piece of a JSON string begins.
fn path(text: &[u8]) -> Option<String> {
    const MAX_PATH_BYTES: usize = 1024;
    let text = &text[..text.len().min(MAX_PATH_BYTES)];
    let ends = |at: &usize| match text[*at] {
        b'"' | b'<' | b'\n' | b')' => true,
        b'\\' => text.get(at + 1) == Some(&b'n'),
        _ => false,
    };
    let end = (0..text.len()).find(ends)?;
    let quoted = [b"\"", &text[..end], b"\""].concat();
    let path = Json::parse(&quoted).ok()?.text()?.trim().to_owned();
    let is_absolute = path.starts_with('/') || path.get(1..3) == Some(":\\");
    is_absolute.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_found_in_what_agents_say() {
        let found = |text: &str| {
            working_directory(&IncomingBody::InMemory(text.as_bytes().to_vec().into()))
        };
        let claude =
            r#"{"system":"<env>\nWorking directory: /home/me/app\nIs directory a git repo: Yes"}"#;
        assert_eq!(found(claude).as_deref(), Some("/home/me/app"));
        let codex = r#"{"input":[{"text":"<environment_context>\n  <cwd>/srv/a b</cwd>\n"}]}"#;
        assert_eq!(found(codex).as_deref(), Some("/srv/a b"));
        let windows = r#"{"system":"Working directory: C:\\code\\app\n"}"#;
        assert_eq!(found(windows).as_deref(), Some("C:\\code\\app"));
        assert_eq!(found(r#"{"system":"Working directory: unknown\n"}"#), None);
        assert_eq!(found(r#"{"system":"hello"}"#), None);
    }
}
