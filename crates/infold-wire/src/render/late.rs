//! Turns results that answer no call into user text.

use infold_log::{Call, Role};

use super::BlockStyle;
use crate::message::{answered_call, block_is, gemini_result, read_gemini_answer};
use crate::neutral::raw_json;
use crate::{Json, JsonKind, Message, PartKind, quote};

/// Turns the results that are not paired into text.
pub(super) fn results_as_text(message: &Message<'_>, paired: &[bool]) -> Vec<u8> {
    let style = BlockStyle::of(message.form());
    if message.role() == Role::Tool {
        let call = message.answers().pop().unwrap_or_default();
        // An output with a special form is shown as JSON.
        let parts = message.parts();
        let is_plain = parts.iter().all(|part| part.kind == PartKind::Result);
        let content = match message.output().or(message.content()) {
            Some(output) if !is_plain => vec![json_as_text(&label(&call), output)],
            content => labelled(&label(&call), content),
        };
        let content = match &content[..] {
            [TextOrBlock::Text(text)] => text.clone(),
            blocks => join(blocks, style),
        };
        return format!(r#"{{"role":"user","content":{content}}}"#).into_bytes();
    }
    let Some(content) = message.parts_or_content() else {
        return message.bytes().to_vec();
    };
    let mut results = Vec::new();
    let mut others = Vec::new();
    let none_paired = !paired.contains(&true);
    let mut paired = paired.iter();
    for block in content.elements() {
        let raw = TextOrBlock::Block(raw_json(block).into_owned());
        let Some((call, inner)) = read_result(block, style) else {
            others.push(raw);
            continue;
        };
        match paired.next() {
            Some(true) => results.push(raw),
            _ => others.extend(labelled(&label(&call), inner)),
        }
    }
    results.append(&mut others);
    let blocks = join(&results, style);
    if style == BlockStyle::Part && none_paired {
        // The message may have the role `function`.
        return format!(r#"{{"role":"user","parts":{blocks}}}"#).into_bytes();
    }
    message.with_replaced(content, &blocks)
}

/// Returns the call that a block answers, and the result; none if it is not a result.
fn read_result(block: Json<'_>, style: BlockStyle) -> Option<(Call, Option<Json<'_>>)> {
    if style != BlockStyle::Part {
        return block_is(block, "tool_result")
            .then(|| (answered_call(block), block.get("content")));
    }
    let (call, response) = read_gemini_answer(block)?;
    // Only a text can be put among parts unchanged.
    let text = response.and_then(|response| gemini_result(response).0);
    let text = text.filter(|text| text.kind() == JsonKind::String);
    Some((call, text.or(response)))
}

/// A block, or a text that becomes one.
enum TextOrBlock {
    /// A JSON string, quotes included.
    Text(String),
    Block(String),
}

fn join(blocks: &[TextOrBlock], style: BlockStyle) -> String {
    let blocks = blocks.iter().map(|block| match block {
        TextOrBlock::Text(text) => style.text_block(Role::User, text),
        TextOrBlock::Block(block) => block.clone(),
    });
    format!("[{}]", blocks.collect::<Vec<_>>().join(","))
}

/// Returns a result's content with a label before it, its bytes untouched.
fn labelled(label: &str, content: Option<Json<'_>>) -> Vec<TextOrBlock> {
    let text = quote(label);
    let Some(content) = content else {
        return vec![TextOrBlock::Text(text)];
    };
    match content.kind() {
        JsonKind::String => {
            let (label, content) = (&text[..text.len() - 1], &raw_json(content)[1..]);
            vec![TextOrBlock::Text(format!("{label}\\n{content}"))]
        }
        JsonKind::Array => {
            let blocks = content.elements().map(|block| match block.kind() {
                JsonKind::String => TextOrBlock::Text(raw_json(block).into_owned()),
                _ => TextOrBlock::Block(raw_json(block).into_owned()),
            });
            let label = std::iter::once(TextOrBlock::Text(text));
            label.chain(blocks).collect()
        }
        JsonKind::Object => vec![json_as_text(label, content)],
        _ => vec![TextOrBlock::Text(text)],
    }
}

fn json_as_text(label: &str, value: Json<'_>) -> TextOrBlock {
    TextOrBlock::Text(quote(&format!("{label}\n{}", raw_json(value))))
}

fn label(call: &Call) -> String {
    let name = call.name.iter().map(|name| format!(" of {name}"));
    let id = call.id.iter().map(|id| format!(" ({id})"));
    let call: String = name.chain(id).collect();
    format!("[Tool result{call} without its call, or too late:]")
}
