//! Signatures of providers, which no longer match a content that was redacted, and signed reasoning.

use infold_log::Role;

use super::message::ObjectWriter;
use crate::neutral::gemini::PLACEHOLDER_SIGNATURE;
use crate::render::BlockStyle;
use crate::{Json, JsonKind, quote};

/// Members whose texts a provider signed or encrypted.
fn is_signature(name: &[u8]) -> bool {
    matches!(
        name,
        b"signature" | b"thoughtSignature" | b"thought_signature" | b"encrypted_content"
    )
}

/// Removes signatures from an object whose content changed. Gemini requires one on calls, so calls get the one that it
/// accepts for any content.
pub fn without_signatures(object: Vec<u8>) -> Vec<u8> {
    let Ok(json) = Json::parse(&object) else {
        return object;
    };
    let nested = json.get("extra_content").and_then(thought_signature);
    if nested.is_none() && !json.members().any(|(key, _)| is_signature(&key.name())) {
        return object;
    }
    let is_call = ["functionCall", "function_call"]
        .iter()
        .any(|name| json.get(name).is_some());
    let mut out = ObjectWriter::default();
    for (key, value) in json.members() {
        match &*key.name() {
            b"thoughtSignature" | b"thought_signature" if is_call => {
                out.put(key.bytes(), PLACEHOLDER_SIGNATURE.as_bytes());
            }
            name if is_signature(name) => {}
            // The form in which Gemini's compatible API has it, beside a call.
            b"extra_content" if nested.is_some() => {
                let google =
                    format!(r#"{{"google":{{"thought_signature":{PLACEHOLDER_SIGNATURE}}}}}"#);
                out.put(key.bytes(), google.as_bytes());
            }
            _ => out.keep((key, value)),
        }
    }
    out.done()
}

/// Returns the replacement of an object with reasoning, which its provider signed.
pub fn redacted_reasoning(json: Json<'_>, marker: &str) -> Option<Vec<u8>> {
    let text = quote(marker);
    let [kind, thought, summary] = json.pick(["type", "thought", "summary"]);
    let kind = kind.map(Json::name).unwrap_or_default();
    let style = match &*kind {
        b"thinking" | b"redacted_thinking" => BlockStyle::Block,
        // An item, which has a summary, is redacted whole.
        b"reasoning" if summary.is_none() => BlockStyle::Block,
        kind if kind.starts_with(b"reasoning.") => {
            return Some(format!(r#"{{"type":"reasoning.text","text":{text}}}"#).into_bytes());
        }
        _ if thought.is_some_and(Json::is_true) => BlockStyle::Part,
        _ => return None,
    };
    Some(style.text_block(Role::Assistant, &text).into_bytes())
}

/// Returns whether a part is a thought of Gemini's.
pub fn is_thought(part: Json<'_>) -> bool {
    part.kind() == JsonKind::Object && part.get("thought").is_some_and(Json::is_true)
}

fn thought_signature(extra: Json<'_>) -> Option<Json<'_>> {
    extra.get("google")?.get("thought_signature")
}
