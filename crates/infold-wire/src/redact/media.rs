//! Images, audio and files in messages. A replacement in their bytes, address or type would break them, and a provider
//! would refuse the message: so they are redacted completely.

use infold_log::Role;

use super::message::{redacted_block, redacted_part};
use crate::edits::splice;
use crate::{Json, JsonKind, quote};

/// An image of one pixel, for items that must have one.
const BLANK_PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Types of blocks, parts and items that hold media.
const MEDIA_TYPES: &str =
    "image image_url input_image audio input_audio video_url document file input_file";

/// The types of media in the output of a tool, which may otherwise have any content.
const MEDIA_TYPES_IN_OUTPUTS: &str = "input_image input_file";

/// Members of Gemini's parts that hold media.
const MEDIA_PARTS: [&str; 4] = ["inlineData", "inline_data", "fileData", "file_data"];

/// The members with the bytes, the address or the type of media.
const MEDIA_MEMBERS: &str = "data url image_url file_data file_url fileUri file_uri media_type mimeType mime_type format detail";

fn contains(names: &str, name: &[u8]) -> bool {
    let mut names = names.split_ascii_whitespace();
    names.any(|listed| listed.as_bytes() == name)
}

/// Returns whether media are broken by a change of this member of an object of this type.
pub fn is_media_member(kind: &[u8], name: &[u8]) -> bool {
    contains(MEDIA_MEMBERS, name) && !(kind == b"text" && name == b"data")
}

/// Returns the replacement of an object with media; `None` if it has none.
pub fn redacted_media(
    json: Json<'_>,
    kind: &[u8],
    is_output: bool,
    role: Role,
    marker: &str,
) -> Option<Vec<u8>> {
    let types = if is_output {
        MEDIA_TYPES_IN_OUTPUTS
    } else {
        MEDIA_TYPES
    };
    let has_media = |name: &&str| {
        json.get(name)
            .is_some_and(|it| it.kind() == JsonKind::Object)
    };
    if contains(types, kind) {
        Some(redacted_block(json, marker, role))
    } else if !is_output && MEDIA_PARTS.iter().any(has_media) {
        Some(redacted_part(json, marker))
    } else {
        None
    }
}

/// Returns the image that takes the place of one that an item of this type must have in this member.
pub fn blank_image(kind: &[u8], name: &[u8]) -> Option<String> {
    match (kind, name) {
        (b"image_generation_call", b"result") => Some(BLANK_PNG.to_owned()),
        (b"computer_screenshot", b"image_url") => {
            Some(format!("data:image/png;base64,{BLANK_PNG}"))
        }
        _ => None,
    }
}

/// Adds markers to the text of a message, in place of images beside it.
pub fn with_markers(message: Vec<u8>, count: usize, marker: &str) -> Vec<u8> {
    let content = Json::parse(&message)
        .ok()
        .and_then(|json| json.get("content"));
    let Some(content) = content.filter(|content| content.kind() == JsonKind::String) else {
        return message;
    };
    let mut texts = vec![marker; count];
    let text = content.text().unwrap_or_default();
    if !text.is_empty() {
        texts.insert(0, &text);
    }
    let range = content.range();
    splice(&message, &[(range, quote(&texts.join("\n")))])
}

/// Removes texts from the media of a tool's result, which has no place for them.
pub fn without_texts(result: Vec<u8>, marker: &str) -> Vec<u8> {
    let parts = Json::parse(&result).ok().and_then(|json| json.get("parts"));
    let Some(parts) = parts else {
        return result;
    };
    let is_kept = |part: &Json<'_>| !part.get("text").is_some_and(|text| text.is(marker));
    let kept: Vec<&[u8]> = parts.elements().filter(is_kept).map(Json::bytes).collect();
    let kept = [b"[".as_slice(), &kept.join(&b","[..]), b"]"].concat();
    splice(&result, &[(parts.range(), kept)])
}
