//! The texts, calls, results and images of a message, in one form for all wires.

use infold_log::Role;

use super::{Form, Item, Message};
use crate::neutral::ObjectMembers;
use crate::{Json, JsonKind};

/// A text, call, result or image in a message of any wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContentItem<'a> {
    Text(Json<'a>),
    /// A tool call, also one that the provider answers itself.
    Call {
        id: Option<Json<'a>>,
        tool: CalledTool<'a>,
        given: Option<Json<'a>>,
    },
    Result(ResultContent<'a>),
    Image,
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultContent<'a> {
    /// The id of the call it answers.
    pub id: Option<Json<'a>>,
    /// A text, a list of blocks, or any value on wires that have objects for results.
    pub content: Option<Json<'a>>,
    /// Whether the result is marked as an error, if there is a mark at all.
    pub failed: Option<bool>,
}

/// The tool of a call, by name or by the type of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CalledTool<'a> {
    Named(Option<Json<'a>>),
    ItemType(Option<Json<'a>>),
}

impl CalledTool<'_> {
    /// Returns its name; empty if it has none.
    pub fn name(self) -> String {
        match self {
            CalledTool::Named(name) => name.and_then(Json::text).unwrap_or_default().into_owned(),
            CalledTool::ItemType(kind) => {
                let kind = kind.and_then(Json::text).unwrap_or_default();
                kind.strip_suffix("_call").unwrap_or(&kind).to_owned()
            }
        }
    }
}

impl<'a> Message<'a> {
    /// Returns the message's texts, calls, results and images in order, each with the index of its part. Reasoning is
    /// left out: no later message refers to it.
    pub(crate) fn content_items(&self) -> Vec<(u32, ContentItem<'a>)> {
        let mut out = Vec::new();
        match self.form {
            Form::Turn if self.role == Role::Tool => {
                // Chat has no mark for errors, but some clients add one.
                let [snake, camel] = self.json.pick(["is_error", "isError"]);
                let result = ResultContent {
                    id: self.members.tool_call_id,
                    content: self.members.content,
                    failed: snake.or(camel).and_then(as_bool),
                };
                let result = self.members.content.map(|_| ContentItem::Result(result));
                out.extend(result.map(|result| (0, result)));
            }
            Form::Turn | Form::Item(Item::Message) => {
                match self.members.content {
                    Some(text) if text.kind() == JsonKind::String => {
                        out.push((0, ContentItem::Text(text)));
                    }
                    content => {
                        let blocks = content.into_iter().flat_map(Json::elements).zip(0..);
                        let items = blocks
                            .filter_map(|(block, at)| Some((at, read_block(self.role, block)?)));
                        out.extend(items);
                    }
                }
                if self.role == Role::Assistant {
                    self.add_chat_calls(&mut out);
                }
            }
            Form::Content => {
                let parts = self.members.parts.into_iter().flat_map(Json::elements);
                let items = parts.zip(0..);
                let items = items.filter_map(|(part, at)| Some((at, read_part(self.role, part)?)));
                out.extend(items);
            }
            Form::Item(Item::Output) => {
                let (id, content) = (self.members.call_id, self.members.output);
                out.push((0, ContentItem::result(id, content)));
            }
            Form::Item(Item::Call | Item::Hosted) => self.add_item_call(&mut out),
            Form::Item(Item::Reasoning | Item::Approval) => {}
        }
        out
    }

    fn add_chat_calls(&self, out: &mut Vec<(u32, ContentItem<'a>)>) {
        let calls = self.members.tool_calls.into_iter();
        let calls = calls.flat_map(Json::elements).filter_map(|call| {
            let [id, function, custom] = call.pick(["id", "function", "custom"]);
            Some((id, function.or(custom)?))
        });
        let legacy = self.members.function_call.map(|call| (None, call));
        out.extend(calls.chain(legacy).map(|(id, call)| {
            let [name, arguments, input] = call.pick(["name", "arguments", "input"]);
            let (tool, given) = (CalledTool::Named(name), arguments.or(input));
            (0, ContentItem::Call { id, tool, given })
        }));
    }

    fn add_item_call(&self, out: &mut Vec<(u32, ContentItem<'a>)>) {
        let kind = self.members.kind;
        if !kind.is_some_and(|kind| kind.name().ends_with(b"_call")) {
            return;
        }
        let names = ["id", "arguments", "input", "action", "operation", "queries"];
        let [own, arguments, input, action, operation, queries] = self.json.pick(names);
        let id = self.members.call_id.or(own);
        let tool = match self.members.name {
            None => CalledTool::ItemType(kind),
            name => CalledTool::Named(name),
        };
        let given = arguments.or(input).or(action).or(operation).or(queries);
        out.push((0, ContentItem::Call { id, tool, given }));
        // Calls of the provider's own tools hold their result.
        let output = self.members.output;
        out.extend(output.map(|_| (0, ContentItem::result(id, output))));
    }
}

impl<'a> ContentItem<'a> {
    fn result(id: Option<Json<'a>>, content: Option<Json<'a>>) -> ContentItem<'a> {
        let failed = None;
        ContentItem::Result(ResultContent {
            id,
            content,
            failed,
        })
    }
}

/// Reads a block in one pass: it may be large, and each lookup of a member is a pass.
fn read_block(role: Role, block: Json<'_>) -> Option<ContentItem<'_>> {
    let members = ObjectMembers::of(block);
    let kind = members.get("type").map(Json::name).unwrap_or_default();
    match (&*kind, role) {
        (b"tool_use", Role::Assistant) => Some(ContentItem::Call {
            id: members.get("id"),
            tool: CalledTool::Named(members.get("name")),
            given: members.get("input"),
        }),
        (b"tool_result", _) => {
            let error = members.get("is_error").or_else(|| members.get("isError"));
            Some(ContentItem::Result(ResultContent {
                id: members.get("tool_use_id"),
                content: members.get("content"),
                failed: error.and_then(as_bool),
            }))
        }
        (b"refusal", _) => members.get("refusal").map(ContentItem::Text),
        _ => {
            let image = members.get("source").or_else(|| members.get("image_url"));
            let text = members.get("text").map(ContentItem::Text);
            text.or(image.map(|_| ContentItem::Image))
        }
    }
}

fn read_part(role: Role, part: Json<'_>) -> Option<ContentItem<'_>> {
    let mut thought = false;
    let mut found = None;
    for (key, value) in part.members() {
        match &*key.name() {
            b"thought" => thought = value.is_true(),
            b"text" => found = Some(ContentItem::Text(value)),
            b"functionCall" | b"function_call" if role == Role::Assistant => {
                let [id, name, given] = value.pick(["id", "name", "args"]);
                let tool = CalledTool::Named(name);
                found = Some(ContentItem::Call { id, tool, given });
            }
            b"functionResponse" | b"function_response" => {
                let [id, response] = value.pick(["id", "response"]);
                let (content, failed) = response.map_or((None, None), gemini_result);
                found = Some(ContentItem::Result(ResultContent {
                    id,
                    content,
                    failed,
                }));
            }
            b"inlineData" | b"inline_data" | b"fileData" | b"file_data" => {
                found = found.or(is_image_data(value).then_some(ContentItem::Image));
            }
            _ => {}
        }
    }
    found.filter(|_| !thought)
}

/// Returns the content of a `response` and whether it failed: the relevant member, else the whole object.
pub(crate) fn gemini_result(response: Json<'_>) -> (Option<Json<'_>>, Option<bool>) {
    let [output, result, content, error] = response.pick(["output", "result", "content", "error"]);
    let given = |value: &Json<'_>| !value.is_null();
    let failed = error.filter(given).map(|_| true);
    let said = output.or(result).or(content).filter(given);
    let said = said.or(error.filter(given));
    (said.or(Some(response)), failed)
}

/// Returns whether Gemini's inline data, or its file, is an image.
pub(crate) fn is_image_data(data: Json<'_>) -> bool {
    let [camel, snake] = data.pick(["mimeType", "mime_type"]);
    let kind = camel.or(snake).map(Json::name).unwrap_or_default();
    kind.starts_with(b"image/")
}

/// Returns whether a block of a content is an image.
pub(crate) fn is_image_block(block: Json<'_>) -> bool {
    let kind = block.get("type").map(Json::name).unwrap_or_default();
    matches!(&*kind, b"image" | b"image_url" | b"input_image")
}

/// Returns the value of `true` and `false`.
pub(crate) fn as_bool(json: Json<'_>) -> Option<bool> {
    (json.kind() == JsonKind::Bool).then(|| json.is_true())
}
