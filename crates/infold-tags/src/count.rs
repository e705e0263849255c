use infold_wire::tokens::{Counter, Encoding, image};
use infold_wire::{Json, Kind, js};

/// Returns how many tokens the peer takes a message's content for, a text or a list of blocks.
///
/// Half as much again as the content has: the peer's answer to counting Claude's tokens
/// with OpenAI's vocabulary.
pub fn count(content: Json<'_>) -> u64 {
    padded(unpadded(content))
}

/// Returns the tokens of a content before anything is added to be safe.
///
/// Several contents that the peer counts in one call are added up first and [`padded`] once.
pub fn unpadded(content: Json<'_>) -> u64 {
    match content.kind() {
        Kind::String => {
            let mut counter = Counter::new(Encoding::O200k);
            counter.push_json(content);
            counter.finish()
        }
        _ => content.elements().map(block).sum(),
    }
}

/// Returns a sum of tokens times 1.5, rounded up.
pub fn padded(tokens: u64) -> u64 {
    (tokens * 3).div_ceil(2)
}

fn block(block: Json<'_>) -> u64 {
    let mut counter = Counter::new(Encoding::O200k);
    let kind = block.get("type").map(Json::name).unwrap_or_default();
    match &*kind {
        b"text" => block
            .get("text")
            .into_iter()
            .for_each(|text| counter.push_json(text)),
        b"image" => {
            let data = block.get("source").and_then(|source| source.get("data"));
            return image(data);
        }
        b"tool_use" => call(block, &mut counter),
        b"tool_result" => result(block, &mut counter),
        _ => {}
    }
    counter.finish()
}

fn call(block: Json<'_>, counter: &mut Counter) {
    counter.push("Tool: ");
    printed(block.get("name"), counter);
    if let Some(input) = block.get("input") {
        counter.push("\nArguments: ");
        counter.push(&js::stringify(input));
    }
}

fn result(block: Json<'_>, counter: &mut Counter) {
    counter.push("Tool Result (");
    printed(block.get("tool_use_id"), counter);
    counter.push(")");
    if block.get("is_error").is_some_and(js::is_truthy) {
        counter.push("\n[Error]");
    }
    let Some(content) = block.get("content") else {
        return;
    };
    if content.kind() == Kind::String {
        counter.push("\n");
        counter.push_json(content);
    }
    for item in content.elements() {
        counter.push("\n");
        let kind = item.get("type");
        match &*kind.map(Json::name).unwrap_or_default() {
            b"text" => {
                let text = item.get("text");
                text.into_iter().for_each(|text| counter.push_json(text));
            }
            b"image" => counter.push("[Image content]"),
            _ => {
                counter.push("[Unsupported content block: ");
                printed(kind, counter);
                counter.push("]");
            }
        }
    }
}

/// A value as JavaScript puts it into a text.
fn printed(value: Option<Json<'_>>, counter: &mut Counter) {
    match value {
        None => counter.push("undefined"),
        Some(text) if text.kind() == Kind::String => counter.push_json(text),
        Some(other) => counter.push(&js::stringify(other)),
    }
}
