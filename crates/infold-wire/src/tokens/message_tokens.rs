//! Counts the tokens of a message by those of its parts, with rules for parts that are not text.

use std::ops::Range;

use infold_log::Role;

use super::compact_json::count_json;
use super::{Counter, Encoding, Estimator, count, image};
use crate::message::{ContentItem, is_image_data};
use crate::{Form, Item, Json, JsonKind, Message};

/// The tokens that a provider adds to each message.
const MESSAGE_OVERHEAD_TOKENS: u64 = 4;

/// Counts the tokens of a message, each part by its rule.
///
/// Text and reasoning are counted as text, calls and results with the words around them, inline data (images,
/// documents, sound) by its length and unknown content as JSON. Parts are counted one by one, so that the count without
/// a part is a difference.
pub fn message(message: &Message<'_>) -> u64 {
    message_by(Encoding::O200k, message)
}

/// Like [`message`], but with another method.
pub fn message_by(by: impl Into<Estimator>, message: &Message<'_>) -> u64 {
    let mut counter = MessageCounter::new(by);
    match message.form() {
        Form::Turn | Form::Item(Item::Message) => counter.turn(message),
        Form::Content => {
            let parts = message.gemini_parts().into_iter().flat_map(Json::elements);
            parts.for_each(|part| counter.part(part));
        }
        Form::Item(item) => counter.item(item, message),
    }
    MESSAGE_OVERHEAD_TOKENS + counter.total
}

/// Counts the tokens of a message with this text only.
pub fn text_message(text: &str) -> u64 {
    MESSAGE_OVERHEAD_TOKENS + count(Encoding::O200k, text)
}

/// Counts the tokens of the part of a message with this range, that of a [`crate::Part`].
///
/// It is never more than [`message`] counts.
pub fn part(message: &Message<'_>, range: &Range<usize>) -> u64 {
    let mut counter = MessageCounter::new(Encoding::O200k);
    if message.form() == Form::Content {
        counter.gemini_part(message, range);
        return counter.total;
    }
    let Some(content) = message.output().or(message.content()) else {
        return 0;
    };
    if content.range() == *range {
        counter.content(content);
        return counter.total;
    }
    for block in content.elements() {
        if block.range() == *range {
            counter.block(block);
        } else if block.range().contains(&range.start)
            && let Some(inner) = block.get("content").filter(|inner| inner.range() == *range)
        {
            counter.content(inner);
        }
    }
    counter.total
}

struct MessageCounter {
    counter: Counter,
    total: u64,
}

impl MessageCounter {
    fn new(by: impl Into<Estimator>) -> MessageCounter {
        MessageCounter {
            counter: Counter::new(by),
            total: 0,
        }
    }

    /// Adds a message with a role and a content.
    fn turn(&mut self, message: &Message<'_>) {
        // Each lookup of a member is a pass over the message, so there is only one.
        let members = || message.json().members();
        let mut label = message.role() == Role::Tool;
        for (name, value) in members() {
            let name = name.name();
            if label && *name == *b"tool_call_id" {
                self.label("Tool Result (", Some(value), ")\n");
                label = false;
            }
            self.member(&name, value);
        }
        if label {
            self.label("Tool Result (", None, ")\n");
        }
        if let Some(content) = message.content() {
            self.content(content);
        }
    }

    /// Adds an item that is no message.
    fn item(&mut self, item: Item, message: &Message<'_>) {
        let names = ["call_id", "encrypted_content", "summary", "content"];
        let [id, encrypted, summary, content] = message.json().pick(names);
        // Base64 has four bytes for three, and a token about four bytes.
        let encrypted = encrypted.filter(|encrypted| encrypted.kind() == JsonKind::String);
        self.total += encrypted.map_or(0, |encrypted| encrypted.bytes().len() as u64 * 3 / 16);
        match (item, message.content_items().first()) {
            (Item::Reasoning, _) => [summary, content]
                .into_iter()
                .flatten()
                .for_each(|texts| self.content(texts)),
            (Item::Output, _) => {
                self.label("Tool Result (", id, ")\n");
                let output = message.output().into_iter();
                output.for_each(|output| self.content(output));
            }
            (Item::Call, Some((_, ContentItem::Call { tool, given, .. }))) => {
                self.counter.push("Tool: ");
                self.counter.push(&tool.name());
                self.arguments(*given);
            }
            _ if encrypted.is_some() => {}
            _ => self.json(message.json()),
        }
    }

    /// Adds a part of a Gemini content. Signatures are not text.
    fn part(&mut self, part: Json<'_>) {
        let mut known = false;
        for (name, value) in part.members() {
            match &*name.name() {
                b"text" if value.kind() == JsonKind::String => self.text(value),
                b"functionCall" | b"function_call" => {
                    self.call(value.get("name"), value.get("args"))
                }
                b"functionResponse" | b"function_response" => {
                    let [id, name, response] = value.pick(["id", "name", "response"]);
                    self.label("Tool Result (", id.or(name), ")\n");
                    response.into_iter().for_each(|value| self.json(value));
                }
                b"inlineData" | b"inline_data" if is_image_data(value) => {
                    self.total += image(value.get("data"));
                }
                b"fileData" | b"file_data" if is_image_data(value) => self.total += image(None),
                _ => continue,
            }
            known = true;
        }
        if !known {
            self.json(part);
        }
    }

    /// Adds the part of a Gemini content, or the result in it, with this range.
    fn gemini_part(&mut self, message: &Message<'_>, range: &Range<usize>) {
        let parts = message.gemini_parts().into_iter().flat_map(Json::elements);
        let Some(part) = parts.into_iter().find(|part| {
            let whole = part.range();
            whole.start <= range.start && range.end <= whole.end
        }) else {
            return;
        };
        if part.range() == *range {
            return self.part(part);
        }
        let results = part.members().map(|(_, result)| result);
        let response = results.filter_map(|result| result.get("response"));
        response
            .filter(|response| response.range() == *range)
            .for_each(|response| self.json(response));
    }

    /// Adds a member of a message other than its content.
    fn member(&mut self, name: &[u8], value: Json<'_>) {
        match name {
            b"tool_calls" => value.elements().for_each(|call| self.chat_call(call)),
            b"function_call" => self.named_call(value),
            b"reasoning_content" | b"reasoning" | b"thinking" | b"refusal" => self.content(value),
            b"reasoning_details" => self.content(value),
            b"images" => value
                .elements()
                .for_each(|data| self.total += image(Some(data))),
            b"audio" if !value.is_null() => self.json(value),
            _ => {}
        }
    }

    /// Adds a text, or a list of blocks.
    fn content(&mut self, content: Json<'_>) {
        match content.kind() {
            JsonKind::String => self.text(content),
            JsonKind::Array => content.elements().for_each(|block| self.block(block)),
            JsonKind::Null => {}
            _ => self.json(content),
        }
    }

    fn block(&mut self, block: Json<'_>) {
        let names = [
            "type",
            "text",
            "thinking",
            "name",
            "input",
            "tool_use_id",
            "is_error",
            "content",
        ];
        let [kind, text, thinking, name, input, answers, error, content] = block.pick(names);
        let kind = kind.map(Json::name).unwrap_or_default();
        let is_string =
            |value: Option<Json<'_>>| value.is_some_and(|value| value.kind() == JsonKind::String);
        match (&*kind, text, thinking) {
            (b"tool_use", ..) => self.call(name, input),
            (b"tool_result", ..) => {
                self.label("Tool Result (", answers, ")\n");
                if error.is_some_and(Json::is_true) {
                    self.label("[Error]\n", None, "");
                }
                content
                    .into_iter()
                    .for_each(|content| self.content(content));
            }
            (b"image" | b"image_url" | b"input_image", ..) => self.total += image(inline(block)),
            (b"thinking", _, Some(text)) if is_string(thinking) => self.text(text),
            (
                b"text" | b"input_text" | b"output_text" | b"reasoning" | b"summary_text"
                | b"reasoning_text",
                Some(content),
                _,
            ) if is_string(text) => self.text(content),
            _ if block.kind() == JsonKind::String => self.text(block),
            _ => self.json(block),
        }
    }

    fn text(&mut self, text: Json<'_>) {
        self.counter.push_json(text);
        self.total += self.counter.finish();
    }

    fn label(&mut self, before: &str, value: Option<Json<'_>>, after: &str) {
        self.counter.push(before);
        value
            .into_iter()
            .for_each(|value| self.counter.push_json(value));
        self.counter.push(after);
        self.total += self.counter.finish();
    }

    /// Adds an entry of `tool_calls`.
    fn chat_call(&mut self, call: Json<'_>) {
        match call.get("function").or_else(|| call.get("custom")) {
            Some(inner) => self.named_call(inner),
            None => self.json(call),
        }
    }

    fn named_call(&mut self, call: Json<'_>) {
        let given = call.get("arguments").or_else(|| call.get("input"));
        if !call.is_null() {
            self.call(call.get("name"), given);
        }
    }

    fn call(&mut self, name: Option<Json<'_>>, given: Option<Json<'_>>) {
        self.counter.push("Tool: ");
        name.into_iter()
            .for_each(|name| self.counter.push_json(name));
        self.arguments(given);
    }

    fn arguments(&mut self, given: Option<Json<'_>>) {
        self.label("\nArguments: ", None, "");
        match given {
            // Arguments that are a string already are sent as they are.
            Some(text) if text.kind() == JsonKind::String => self.text(text),
            Some(value) => self.json(value),
            None => {}
        }
    }

    /// Adds any value as compact JSON; inline data by its length.
    fn json(&mut self, value: Json<'_>) {
        self.total += count_json(value, &mut self.counter);
        self.total += self.counter.finish();
    }
}

/// Returns the inline data of an image block.
fn inline(block: Json<'_>) -> Option<Json<'_>> {
    if let Some(source) = block.get("source") {
        return source.get("data");
    }
    let url = block.get("image_url")?;
    let url = url.get("url").unwrap_or(url);
    url.is_data_url().then_some(url)
}
