//! Counts the tokens of a message's content as Roo Code does, because its folds depend on these numbers.

use infold_wire::tokens::{Counter, Encoding, image};
use infold_wire::{Json, JsonKind, js};

/// Returns the tokens of a message's content, a text or a list of blocks, as Roo Code counts them.
///
/// That is 1.5 times the tokens of the content: Roo Code counts Claude's tokens with OpenAI's
/// vocabulary and adds a margin.
pub fn count_tokens(content: Json<'_>) -> u64 {
    add_margin(count_without_margin(content))
}

/// Returns the tokens of a content without the margin.
///
/// If Roo Code counts several contents in one call, their tokens are added up before [`add_margin`] rounds the sum.
pub fn count_without_margin(content: Json<'_>) -> u64 {
    if content.kind() != JsonKind::String {
        return content.elements().map(count_block).sum();
    }
    let mut counter = Counter::new(Encoding::O200k);
    counter.push_json(content);
    counter.finish()
}

/// Adds Roo Code's margin to a number of tokens: times 1.5, rounded up.
pub fn add_margin(tokens: u64) -> u64 {
    (tokens * 3).div_ceil(2)
}

/// Returns the tokens of a block: Roo Code writes it as a text, and counts that text.
fn count_block(block: Json<'_>) -> u64 {
    let mut counter = Counter::new(Encoding::O200k);
    match &*block.get("type").map(Json::name).unwrap_or_default() {
        b"text" => push_text(block, &mut counter),
        b"image" => {
            let data = block.get("source").and_then(|source| source.get("data"));
            return image(data);
        }
        b"tool_use" => push_call(block, &mut counter),
        b"tool_result" => push_result(block, &mut counter),
        _ => {}
    }
    counter.finish()
}

fn push_text(block: Json<'_>, counter: &mut Counter) {
    if let Some(text) = block.get("text") {
        counter.push_json(text);
    }
}

fn push_call(block: Json<'_>, counter: &mut Counter) {
    counter.push("Tool: ");
    push_printed(block.get("name"), counter);
    if let Some(input) = block.get("input") {
        counter.push("\nArguments: ");
        counter.push(&js::stringify(input));
    }
}

fn push_result(block: Json<'_>, counter: &mut Counter) {
    counter.push("Tool Result (");
    push_printed(block.get("tool_use_id"), counter);
    counter.push(")");
    if block.get("is_error").is_some_and(js::is_truthy) {
        counter.push("\n[Error]");
    }
    let Some(content) = block.get("content") else {
        return;
    };
    if content.kind() == JsonKind::String {
        counter.push("\n");
        counter.push_json(content);
    }
    for item in content.elements() {
        counter.push("\n");
        let kind = item.get("type");
        match &*kind.map(Json::name).unwrap_or_default() {
            b"text" => push_text(item, counter),
            b"image" => counter.push("[Image content]"),
            _ => {
                counter.push("[Unsupported content block: ");
                push_printed(kind, counter);
                counter.push("]");
            }
        }
    }
}

/// Pushes a value as a JavaScript template string prints it, because Roo Code uses one: a missing value is `undefined`.
fn push_printed(value: Option<Json<'_>>, counter: &mut Counter) {
    match value {
        None => counter.push("undefined"),
        Some(text) if text.kind() == JsonKind::String => counter.push_json(text),
        Some(other) => counter.push(&js::stringify(other)),
    }
}
