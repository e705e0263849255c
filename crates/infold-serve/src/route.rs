//! Derives the purpose of a request from its path and headers.

use http::{HeaderMap, Method};
use infold_provider::percent_decode;
use infold_wire::Wire;

use crate::{Api, ConversationName};

/// The destination of a request, and the name of its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub to: Destination,
    /// The path without segments for the proxy, and with its version.
    pub path: String,
    /// The name of the conversation.
    pub name: Option<ConversationName>,
}

/// The destination of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The proxy itself: its API, metrics and health.
    Ours,
    /// The root, where clients check that a server is there.
    Root,
    /// A model, whose reply is recorded.
    Model {
        wire: Wire,
        /// The model, if the path names it.
        model: Option<String>,
        /// Whether the reply streams, if the path decides that.
        stream: Option<bool>,
    },
    /// A request to a provider that is no model call.
    Provider(Wire),
}

/// The path cannot be trusted, or the name that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadPath(pub &'static str);

impl Route {
    /// Reads where a request goes. `path` is as the client wrote it.
    pub fn read(method: &Method, path: &str, headers: &HeaderMap) -> Result<Route, BadPath> {
        let path = clean(path)?;
        let (given, path) = match path.strip_prefix("/t/") {
            Some(rest) => {
                let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
                (Some(percent_decode(name)), format!("/{rest}"))
            }
            None => (None, path),
        };
        if Api::takes(&path) {
            let (to, name) = (Destination::Ours, None);
            return Ok(Route { to, path, name });
        }
        let path = versioned(path);
        let to = to(method, &path, headers);
        let name = name(given, headers)?;
        Ok(Route { to, path, name })
    }

    /// The form in which to answer.
    pub fn wire(&self) -> Option<Wire> {
        match self.to {
            Destination::Ours | Destination::Root => None,
            Destination::Model { wire, .. } | Destination::Provider(wire) => Some(wire),
        }
    }
}

/// A path without doubled slashes, if nothing in it leads out of where it starts.
fn clean(path: &str) -> Result<String, BadPath> {
    if !path.starts_with('/') {
        return Err(BadPath("a path starts with /"));
    }
    let mut seen = path.to_owned();
    // The provider may decode the path again.
    for _ in 0..4 {
        if seen
            .bytes()
            .any(|byte| byte < b' ' || byte == 0x7f || byte == b'\\')
        {
            return Err(BadPath("the path has characters that no path has"));
        }
        if seen.split('/').any(|part| matches!(part, "." | "..")) {
            return Err(BadPath("the path leads elsewhere"));
        }
        if !seen.contains('%') {
            break;
        }
        seen = percent_decode(&seen);
    }
    let mut clean = String::with_capacity(path.len());
    for byte in path.chars() {
        if byte != '/' || !clean.ends_with('/') {
            clean.push(byte);
        }
    }
    Ok(clean)
}

/// Path segments that follow a version.
const VERSIONED_PATHS: [&str; 10] = [
    "chat",
    "completions",
    "responses",
    "conversations",
    "messages",
    "models",
    "embeddings",
    "files",
    "audio",
    "images",
];

/// A path with one version: bases are given with and without, and some clients add one of their own.
fn versioned(path: String) -> String {
    let mut rest = path.as_str();
    for doubled in ["/v1", "/v1beta"] {
        while let Some(inner) = rest.strip_prefix(doubled)
            && (inner.starts_with("/v1/")
                || inner.starts_with("/v1beta/")
                || inner.starts_with("/api/"))
        {
            rest = inner;
        }
    }
    let first = rest[1..].split('/').next().unwrap_or_default();
    if VERSIONED_PATHS.contains(&first) {
        format!("/v1{rest}")
    } else if rest.len() == path.len() {
        path
    } else {
        rest.to_owned()
    }
}

/// Ollama's paths below `/api`; Anthropic has others there.
const OLLAMA_PATHS: [&str; 16] = [
    "chat",
    "generate",
    "tags",
    "show",
    "version",
    "ps",
    "pull",
    "push",
    "create",
    "copy",
    "delete",
    "embed",
    "embeddings",
    "blobs",
    "me",
    "signout",
];

fn to(method: &Method, path: &str, headers: &HeaderMap) -> Destination {
    let post = *method == Method::POST;
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    if parts == [""] && [Method::GET, Method::HEAD].contains(method) {
        return Destination::Root;
    }
    if let Some(wire) = called(&parts).filter(|_| post) {
        return Destination::Model {
            wire,
            model: deployment(&parts),
            stream: None,
        };
    }
    gemini(post, path).unwrap_or_else(|| Destination::Provider(provider(&parts, headers)))
}

/// Returns the wire of the model call that a path ends with. The segments before it are the base path of a gateway, or
/// of a provider that serves several APIs.
fn called(parts: &[&str]) -> Option<Wire> {
    match parts {
        [.., "chat", "completions"] => Some(Wire::Chat),
        [.., "responses"] => Some(Wire::Responses),
        // OpenAI's threads have messages, too.
        [.., before, "messages"] if is_version(before) || *before == "anthropic" => {
            Some(Wire::Anthropic)
        }
        [.., "api", "chat"] => Some(Wire::Ollama),
        _ => None,
    }
}

/// The deployment that an Azure path names: `/openai/deployments/NAME/…`.
fn deployment(parts: &[&str]) -> Option<String> {
    let at = parts.iter().position(|part| *part == "deployments")?;
    parts.get(at + 1).map(|name| percent_decode(name))
}

/// `…/models/M:verb`
fn gemini(post: bool, path: &str) -> Option<Destination> {
    let named = path.rsplit_once("/models/");
    let (_, named) = named.or_else(|| path.rsplit_once("/tunedModels/"))?;
    let (model, verb) = named.rsplit_once(':')?;
    let stream = match verb {
        "generateContent" => false,
        "streamGenerateContent" => true,
        "countTokens" | "embedContent" | "batchEmbedContents" => {
            return Some(Destination::Provider(Wire::Gemini));
        }
        _ => return None,
    };
    if !post {
        return Some(Destination::Provider(Wire::Gemini));
    }
    Some(Destination::Model {
        wire: Wire::Gemini,
        model: Some(percent_decode(model)),
        stream: Some(stream),
    })
}

/// Returns the API that a path belongs to which is no model call.
fn provider(parts: &[&str], headers: &HeaderMap) -> Wire {
    let below = |name: &str| {
        let mut pairs = parts.windows(2);
        pairs.any(|pair| pair[1] == name && (is_version(pair[0]) || pair[0] == "openai"))
    };
    match parts {
        [_, "api", first, ..] if OLLAMA_PATHS.contains(first) => Wire::Ollama,
        // Gemini serves OpenAI's API there.
        [_, "v1beta", "openai", ..] => Wire::Chat,
        [_, "v1beta", ..] => Wire::Gemini,
        [_, "anthropic", ..] => Wire::Anthropic,
        _ if below("messages") => Wire::Anthropic,
        _ if below("responses") || below("conversations") => Wire::Responses,
        _ => by_headers(headers),
    }
}

/// Says whether part of a path is a version: v1, v1beta, v4.
fn is_version(part: &str) -> bool {
    let rest = part.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|first: char| first.is_ascii_digit())
}

/// Returns the wire of a client, judged by its headers.
fn by_headers(headers: &HeaderMap) -> Wire {
    if headers.contains_key("x-goog-api-key") || headers.contains_key("x-goog-api-client") {
        Wire::Gemini
    } else if headers.contains_key("anthropic-version") || headers.contains_key("x-api-key") {
        Wire::Anthropic
    } else {
        Wire::Chat
    }
}

/// The headers in which clients name the session of a request.
const SESSION_HEADERS: [&str; 9] = [
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-id",
    "x-session-affinity",
    "agent-session-id",
    "x-opencode-session",
    "x-conversation-id",
    "thread-id",
];

/// The longest name.
const MAX_NAME_BYTES: usize = 200;

/// Says whether a text can be the name of a conversation.
pub(crate) fn is_valid_name(name: &str) -> bool {
    !name.trim().is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(char::is_control)
}

fn name(given: Option<String>, headers: &HeaderMap) -> Result<Option<ConversationName>, BadPath> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str());
    let given = match (given, text("x-infold-task")) {
        (Some(given), _) => Some(given),
        (None, Some(Ok(given))) => Some(percent_decode(given.trim())),
        (None, Some(Err(_))) => return Err(BadPath("the name in x-infold-task is no text")),
        (None, None) => None,
    };
    if let Some(given) = given {
        return if is_valid_name(&given) {
            Ok(Some(ConversationName::Given(given)))
        } else {
            Err(BadPath(
                "the name of a conversation has from 1 to 200 characters, all of which can be seen",
            ))
        };
    }
    let mut sessions = SESSION_HEADERS.iter().filter_map(|name| text(name)?.ok());
    let session = sessions.find(|session| is_valid_name(session));
    Ok(session.map(|session| ConversationName::Session(session.to_owned())))
}
