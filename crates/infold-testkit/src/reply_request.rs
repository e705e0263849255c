//! Parses requests.

use infold_wire::{Json, JsonKind, Wire};

use crate::Seen;

/// The kind of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressTarget {
    /// A reply.
    Reply(Wire),
    /// A reply to a prompt, in Ollama's oldest form.
    Generate,
    /// A number of tokens.
    Count(Wire),
    /// Vectors of texts.
    Embeddings(Wire),
    /// A list of models; of Anthropic's if the version header says so.
    Models(Wire),
    /// A model's description.
    Show,
    /// Which model is loaded.
    Loaded,
    Version,
    /// A health check.
    Alive,
    Unknown,
}

/// Parses the target of a path; base addresses come with and without their version, and after the prefixes of
/// gateways.
pub(crate) fn target(method: &str, path: &str) -> AddressTarget {
    let bare = path
        .strip_prefix("/v1beta")
        .or_else(|| path.strip_prefix("/v1"));
    let bare = bare.filter(|rest| rest.starts_with('/')).unwrap_or(path);
    let bare = bare.trim_end_matches('/');
    let action = bare
        .rsplit_once("/models/")
        .and_then(|(_, rest)| rest.rsplit_once(':'));
    let ends = |ending: &str| path.trim_end_matches('/').ends_with(ending);
    match (method, bare, action) {
        ("POST", ..) if ends("/chat/completions") => AddressTarget::Reply(Wire::Chat),
        ("POST", ..) if ends("/responses") => AddressTarget::Reply(Wire::Responses),
        ("POST", ..) if ends("/v1/messages") => AddressTarget::Reply(Wire::Anthropic),
        ("POST", ..) if ends("/v1/messages/count_tokens") => AddressTarget::Count(Wire::Anthropic),
        ("POST", "/api/chat", _) => AddressTarget::Reply(Wire::Ollama),
        ("POST", ..) if ends("/embeddings") => AddressTarget::Embeddings(Wire::Chat),
        ("POST", "/api/embed", _) => AddressTarget::Embeddings(Wire::Ollama),
        ("POST", _, Some((_, "batchEmbedContents"))) => AddressTarget::Embeddings(Wire::Gemini),
        ("POST", "/api/generate", _) => AddressTarget::Generate,
        ("POST", "/api/show", _) => AddressTarget::Show,
        ("POST", _, Some((_, "generateContent" | "streamGenerateContent"))) => {
            AddressTarget::Reply(Wire::Gemini)
        }
        ("POST", _, Some((_, "countTokens"))) => AddressTarget::Count(Wire::Gemini),
        ("GET", "/models", _) if path.starts_with("/v1beta/") => {
            AddressTarget::Models(Wire::Gemini)
        }
        ("GET", "/models", _) => AddressTarget::Models(Wire::Chat),
        ("GET", "/api/tags", _) => AddressTarget::Models(Wire::Ollama),
        ("GET", "/api/ps", _) => AddressTarget::Loaded,
        ("GET", "/api/version", _) => AddressTarget::Version,
        ("GET" | "HEAD", "" | "/health", _) => AddressTarget::Alive,
        _ => AddressTarget::Unknown,
    }
}

/// The wire on which a request asks for a reply.
pub(crate) fn wire(method: &str, path: &str) -> Option<Wire> {
    match target(method, path) {
        AddressTarget::Reply(wire) => Some(wire),
        AddressTarget::Generate => Some(Wire::Ollama),
        _ => None,
    }
}

/// A parsed request for a reply.
#[derive(Clone, Debug)]
pub(crate) struct ReplyRequest {
    pub wire: Wire,
    pub model: String,
    pub stream: bool,
    /// Usage is wanted at the end of a stream.
    pub usage: bool,
    /// How many tokens the reply may have.
    pub most: Option<u64>,
    /// Gemini streams an array unless asked for events.
    pub array: bool,
}

impl ReplyRequest {
    /// Reads it from the body, or from the ends of one that was too large to keep.
    pub fn of(seen: &Seen, wire: Wire, body: Option<Json<'_>>) -> ReplyRequest {
        let ends = [&seen.head[..], &seen.tail[..]];
        let member = |name: &str| body.and_then(|body| body.get(name));
        let flag = |name: &str| match body {
            Some(body) => body.get(name).map(Json::is_true),
            None => ends.iter().find_map(|end| flag_in(end, name)),
        };
        let in_path = seen.path.rsplit_once("/models/");
        let in_path = in_path.and_then(|(_, rest)| rest.rsplit_once(':'));
        let named = match body {
            Some(_) => member("model")
                .and_then(Json::text)
                .map(|it| it.into_owned()),
            None => ends.iter().find_map(|end| string_in(end, "model")),
        };
        let named = in_path.map(|(model, _)| model.to_owned()).or(named);
        let stream = match wire {
            Wire::Gemini => in_path.is_some_and(|(_, action)| action == "streamGenerateContent"),
            Wire::Ollama => flag("stream").unwrap_or(true),
            _ => flag("stream").unwrap_or(false),
        };
        let options = member("stream_options").and_then(|it| it.get("include_usage"));
        ReplyRequest {
            wire,
            model: named.unwrap_or_default(),
            stream,
            usage: options.map_or_else(|| flag("include_usage"), |it| Some(it.is_true()))
                == Some(true),
            most: body.and_then(|body| most(wire, body)),
            array: wire == Wire::Gemini && !seen.query.contains("alt=sse"),
        }
    }
}

/// How long the reply may be, wherever the wire says so.
fn most(wire: Wire, body: Json<'_>) -> Option<u64> {
    let inner = |outer: &str, name: &str| body.get(outer).and_then(|it| it.get(name));
    let limit = match wire {
        Wire::Chat => body
            .get("max_completion_tokens")
            .or_else(|| body.get("max_tokens")),
        Wire::Responses => body.get("max_output_tokens"),
        Wire::Anthropic => body.get("max_tokens"),
        Wire::Gemini => inner("generationConfig", "maxOutputTokens"),
        Wire::Ollama => inner("options", "num_predict"),
    };
    let limit = limit.and_then(Json::number);
    limit
        .filter(|limit| *limit >= 0.0)
        .map(|limit| limit as u64)
}

/// Returns the text after a name and its colon in a piece of JSON.
fn after<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let name = format!("\"{name}\"");
    let at = bytes
        .windows(name.len())
        .position(|it| it == name.as_bytes())?;
    let rest = bytes[at + name.len()..].trim_ascii_start();
    Some(rest.strip_prefix(b":")?.trim_ascii_start())
}

fn flag_in(bytes: &[u8], name: &str) -> Option<bool> {
    let rest = after(bytes, name)?;
    match (rest.starts_with(b"true"), rest.starts_with(b"false")) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

fn string_in(bytes: &[u8], name: &str) -> Option<String> {
    let rest = after(bytes, name)?.strip_prefix(b"\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

/// The elements of a member, or the member itself if it is a text or an object.
pub(crate) fn listed<'a>(body: Json<'a>, name: &str) -> Vec<Json<'a>> {
    match body.get(name) {
        Some(list) if list.kind() == JsonKind::Array => list.elements().collect(),
        Some(one) if !one.is_null() => vec![one],
        _ => Vec::new(),
    }
}
