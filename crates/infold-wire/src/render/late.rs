use infold_log::{Call, Role};

use super::{Flavour, splice};
use crate::message::{block_is, gemini_answer, gemini_result, result_of};
use crate::{Json, Kind, Message, PartKind, quote};

/// Turns the results that are not paired into text.
pub(super) fn results_as_text(message: &Message<'_>, paired: &[bool]) -> Vec<u8> {
    let flavour = Flavour::of(message.form());
    if message.role() == Role::Tool {
        let call = message.answers().pop().unwrap_or_default();
        // A shape of its own is read as what it is, JSON.
        let plain = message
            .parts()
            .iter()
            .all(|part| part.kind == PartKind::Result);
        let content = match message.output().or(message.content()) {
            Some(output) if !plain => vec![as_json(&label(&call), output)],
            content => labelled(&label(&call), content),
        };
        let content = match &content[..] {
            [Block::Text(text)] => text.clone(),
            blocks => format!("[{}]", join(blocks, flavour)),
        };
        return format!(r#"{{"role":"user","content":{content}}}"#).into_bytes();
    }
    let Some(content) = message.contents().or(message.content()) else {
        return message.bytes().to_vec();
    };
    let mut results = Vec::new();
    let mut others = Vec::new();
    let none_paired = !paired.contains(&true);
    let mut paired = paired.iter();
    for block in content.elements() {
        let raw = Block::Raw(String::from_utf8_lossy(block.bytes()).into_owned());
        let Some((call, inner)) = result_in(block, flavour) else {
            others.push(raw);
            continue;
        };
        match paired.next() {
            Some(true) => results.push(raw),
            _ => others.extend(labelled(&label(&call), inner)),
        }
    }
    results.append(&mut others);
    let base = message.json().range().start;
    let range = content.range().start - base..content.range().end - base;
    let blocks = format!("[{}]", join(&results, flavour));
    if flavour == Flavour::Part && none_paired {
        // It may have come in the name of a function.
        return format!(r#"{{"role":"user","parts":{blocks}}}"#).into_bytes();
    }
    splice(message.bytes(), &[(range, blocks)])
}

/// The call that a block answers, and with what; none if it is no result.
fn result_in(block: Json<'_>, flavour: Flavour) -> Option<(Call, Option<Json<'_>>)> {
    if flavour != Flavour::Part {
        return block_is(block, "tool_result").then(|| (result_of(block), block.get("content")));
    }
    let (call, response) = gemini_answer(block)?;
    // Only a text can stand among parts as it is.
    let text = response.and_then(|response| gemini_result(response).0);
    let text = text.filter(|text| text.kind() == Kind::String);
    Some((call, text.or(response)))
}

/// A block, or a text that becomes one.
enum Block {
    /// A JSON string, quotes included.
    Text(String),
    /// A whole block.
    Raw(String),
}

fn join(blocks: &[Block], flavour: Flavour) -> String {
    let blocks: Vec<String> = blocks
        .iter()
        .map(|block| match block {
            Block::Text(text) => flavour.block(Role::User, text),
            Block::Raw(raw) => raw.clone(),
        })
        .collect();
    blocks.join(",")
}

/// A result's content with a label before it, its bytes untouched.
fn labelled(label: &str, content: Option<Json<'_>>) -> Vec<Block> {
    let quoted = quote(label);
    let Some(content) = content else {
        return vec![Block::Text(quoted)];
    };
    let raw = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match content.kind() {
        Kind::String => {
            let opened = &quoted[..quoted.len() - 1];
            vec![Block::Text(format!(
                "{opened}\\n{}",
                &raw(content.bytes())[1..]
            ))]
        }
        Kind::Array => {
            let blocks = content.elements().map(|block| match block.kind() {
                Kind::String => Block::Text(raw(block.bytes())),
                _ => Block::Raw(raw(block.bytes())),
            });
            std::iter::once(Block::Text(quoted)).chain(blocks).collect()
        }
        Kind::Object => vec![as_json(label, content)],
        _ => vec![Block::Text(quoted)],
    }
}

/// A value as text, with a label before it.
fn as_json(label: &str, value: Json<'_>) -> Block {
    let value = String::from_utf8_lossy(value.bytes());
    Block::Text(quote(&format!("{label}\n{value}")))
}

fn label(call: &Call) -> String {
    let name = call
        .name
        .as_deref()
        .map(|name| format!(" of {name}"))
        .unwrap_or_default();
    let id = call
        .id
        .as_deref()
        .map(|id| format!(" ({id})"))
        .unwrap_or_default();
    format!("[Tool result{name}{id} without its call, or too late:]")
}
