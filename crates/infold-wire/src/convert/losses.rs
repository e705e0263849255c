//! Counts what a conversion to another wire loses, and replaces blocks that the other wire does not have by texts.

use std::collections::BTreeMap;

use crate::Json;
use crate::message::block_is;
use crate::neutral::{NeutralBlock, raw_json};

// The losses, as they are reported to the user: each says what is lost and what the other wire gets instead.
pub const REASONING: &str = "reasoning, left out: only its own provider takes it back";
pub const BARE_REASONING: &str = "reasoning without its content or what followed it, left out";
pub const ERROR_MARK: &str = "the error mark of a tool result, left out";
pub const RESULT_IMAGE: &str = "an image in a tool result, shown by the user after it";
pub const MOVED_IMAGE: &str = "an image of the assistant or the system, shown by the user after it";
pub const IMAGE_URL: &str = "an image by its address, shown as its address";
pub const SYSTEM_MESSAGE: &str = "a later system message, shown as text of the user";
pub const ORPHAN: &str = "a tool result without its call, shown as text";
pub const EMPTY_MESSAGE: &str = "an empty message, shown as `(empty)`";
pub const CALL_ID: &str = "the id of a tool call, changed to one that is taken here";
pub const SPEAKER_NAME: &str = "the name of a speaker, left out";
pub const CITATIONS: &str = "citations, left out";
const HOSTED_TOOL_STEP: &str = "a step of a provider's own tool, left out";
const DOCUMENT: &str = "a document, left out and named";
const RECORDING: &str = "sound or video, left out and named";
const UNKNOWN_BLOCK: &str = "a block of another wire, left out and named";

/// The number of occurrences of each loss, by its text above.
pub type Losses = BTreeMap<&'static str, u64>;

/// Counts one occurrence of a loss.
pub fn count_loss(losses: &mut Losses, loss: &'static str) {
    *losses.entry(loss).or_default() += 1;
}

/// Returns the text that replaces a block that only its own wire has, and counts the loss. Reasoning and steps of
/// hosted tools have no replacement. A plain-text document becomes its text, and nothing is lost.
pub fn replacement(raw: &str, losses: &mut Losses) -> Option<NeutralBlock<'static>> {
    let json = Json::checked(raw.as_bytes());
    let kind = json.get("type").and_then(Json::text).unwrap_or_default();
    // A Gemini part has no `type`: the name of its first member says what it is.
    let first = || json.members().next()?.0.text();
    let kind = if kind.is_empty() {
        first().unwrap_or_default()
    } else {
        kind
    };
    let (loss, called) = match &*kind {
        "thinking" | "redacted_thinking" | "reasoning" => (REASONING, None),
        "document" => match plain_document(json) {
            Some(text) => return Some(text),
            None => (DOCUMENT, Some("document")),
        },
        "file" | "input_file" | "container_upload" => (DOCUMENT, Some("document")),
        "inlineData" | "inline_data" | "fileData" | "file_data" if !is_recording(json) => {
            (DOCUMENT, Some("document"))
        }
        "inlineData" | "inline_data" | "fileData" | "file_data" | "input_audio" | "audio"
        | "input_video" | "video_url" => (RECORDING, Some("recording")),
        "executableCode" | "codeExecutionResult" => (HOSTED_TOOL_STEP, None),
        "server_tool_use" | "mcp_tool_use" | "mcp_list_tools" | "item_reference" => {
            (HOSTED_TOOL_STEP, None)
        }
        kind if kind.ends_with("_call") || kind.ends_with("_tool_result") => {
            (HOSTED_TOOL_STEP, None)
        }
        kind => (UNKNOWN_BLOCK, Some(kind)),
    };
    count_loss(losses, loss);
    // The type of an unknown block comes from the client and may be long.
    let called = called?.chars().take(40).collect::<String>();
    let text = crate::quote(&format!("[{called} left out]"));
    Some(NeutralBlock::Text(text.into()))
}

/// Returns the text of a document of Anthropic's whose source is a plain text.
fn plain_document(json: Json<'_>) -> Option<NeutralBlock<'static>> {
    let source = json.get("source");
    let source = source.filter(|source| block_is(*source, "text"))?;
    let text = raw_json(source.get("data")?).into_owned();
    text.starts_with('"')
        .then(|| NeutralBlock::Text(text.into()))
}

/// Returns whether a Gemini part holds sound or video, by its MIME type.
fn is_recording(json: Json<'_>) -> bool {
    let mut members = json.members();
    members.any(|(_, data)| {
        let [one, other] = data.pick(["mimeType", "mime_type"]);
        let kind = one.or(other).and_then(Json::text).unwrap_or_default();
        kind.starts_with("audio/") || kind.starts_with("video/")
    })
}
