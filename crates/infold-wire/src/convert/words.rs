//! What is said of things that could not be carried over.

use std::collections::BTreeMap;

use crate::Json;
use crate::message::block_is;
use crate::said::Block;

pub const REASONING: &str = "reasoning, left out: only its own provider takes it back";
pub const BARE: &str = "reasoning without its content or what followed it, left out";
pub const ERROR: &str = "the error mark of a tool result, left out";
pub const RESULT_IMAGE: &str = "an image in a tool result, shown by the user after it";
pub const MOVED_IMAGE: &str = "an image of the assistant or the system, shown by the user after it";
pub const ADDRESS: &str = "an image by its address, shown as its address";
pub const SYSTEM: &str = "a later system message, shown as text of the user";
pub const ORPHAN: &str = "a tool result without its call, shown as text";
pub const NOTHING: &str = "an empty message, shown as `(empty)`";
pub const ID: &str = "the id of a tool call, changed to one that is taken here";
pub const SPEAKER: &str = "the name of a speaker, left out";
pub const CITATIONS: &str = "citations, left out";
const STEP: &str = "a step of a provider's own tool, left out";
const DOCUMENT: &str = "a document, left out and named";
const SOUND: &str = "sound or video, left out and named";
const UNKNOWN: &str = "a block of another wire, left out and named";

/// What became of what, and how often.
pub type Lost = BTreeMap<&'static str, u64>;

/// Counts one.
pub fn lose(lost: &mut Lost, what: &'static str) {
    *lost.entry(what).or_default() += 1;
}

/// What is shown of a block that no other wire has.
pub fn stand_in(raw: &str, lost: &mut Lost) -> Option<Block<'static>> {
    let json = Json::checked(raw.as_bytes());
    let kind = json.get("type").and_then(Json::text).unwrap_or_default();
    let first = json.members().next();
    let kind = match &*kind {
        "" => first.and_then(|(name, _)| name.text()).unwrap_or_default(),
        _ => kind,
    };
    let (what, called) = match &*kind {
        "thinking" | "redacted_thinking" | "reasoning" => (REASONING, None),
        "document" => match plain_document(json) {
            Some(text) => return Some(text),
            None => (DOCUMENT, Some("document")),
        },
        "file" | "input_file" | "container_upload" => (DOCUMENT, Some("document")),
        "inlineData" | "inline_data" | "fileData" | "file_data" => match is_sound(json) {
            true => (SOUND, Some("recording")),
            false => (DOCUMENT, Some("document")),
        },
        "input_audio" | "audio" | "input_video" | "video_url" => (SOUND, Some("recording")),
        "executableCode" | "codeExecutionResult" => (STEP, None),
        "server_tool_use" | "mcp_tool_use" | "mcp_list_tools" | "item_reference" => (STEP, None),
        kind if kind.ends_with("_call") || kind.ends_with("_tool_result") => (STEP, None),
        kind => (UNKNOWN, Some(kind)),
    };
    lose(lost, what);
    let called = called?.chars().take(40).collect::<String>();
    let text = crate::quote(&format!("[{called} left out]"));
    Some(Block::Text(text.into()))
}

/// A document that is nothing but text.
fn plain_document(json: Json<'_>) -> Option<Block<'static>> {
    let source = json
        .get("source")
        .filter(|source| block_is(*source, "text"))?;
    let text = String::from_utf8_lossy(source.get("data")?.bytes()).into_owned();
    text.starts_with('"').then(|| Block::Text(text.into()))
}

fn is_sound(json: Json<'_>) -> bool {
    let mut members = json.members();
    members.any(|(_, data)| {
        let [one, other] = data.pick(["mimeType", "mime_type"]);
        let kind = one.or(other).and_then(Json::text).unwrap_or_default();
        kind.starts_with("audio/") || kind.starts_with("video/")
    })
}
