use infold_log::Role;

use super::{Form, Item, Message, block_is};
use crate::{Json, Kind};

/// One thing that a message says, calls or brings, whatever its wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    /// Words.
    Text(Json<'a>),
    /// A tool call; one that the provider answers itself, too.
    Call {
        id: Option<Json<'a>>,
        tool: Tool<'a>,
        given: Option<Json<'a>>,
    },
    /// What a call gave back.
    Result(Given<'a>),
    /// An image.
    Image,
}

/// What a call gave back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'a> {
    /// The call it answers.
    pub id: Option<Json<'a>>,
    /// A text, a list of blocks, or any value on wires that have objects for results.
    pub content: Option<Json<'a>>,
    /// Whether it is marked as an error, if it is marked at all.
    pub failed: Option<bool>,
}

/// Who is called: by name, or by the type of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tool<'a> {
    Named(Option<Json<'a>>),
    Kind(Option<Json<'a>>),
}

impl Tool<'_> {
    /// Its name; empty if it has none.
    pub fn name(self) -> String {
        match self {
            Tool::Named(name) => name.and_then(Json::text).unwrap_or_default().into_owned(),
            Tool::Kind(kind) => {
                let kind = kind.and_then(Json::text).unwrap_or_default();
                kind.strip_suffix("_call").unwrap_or(&kind).to_owned()
            }
        }
    }
}

impl<'a> Message<'a> {
    /// What it says, calls and brings, in order, each with the part that holds it.
    /// Reasoning is left out: nobody is meant to refer to it.
    pub(crate) fn pieces(&self) -> Vec<(u32, Piece<'a>)> {
        let mut out = Vec::new();
        match self.form {
            Form::Turn if self.role == Role::Tool => {
                // The mark of an error is no member of the wire's, and so seldom looked for.
                let [one, other] = self.json.pick(["is_error", "isError"]);
                let result = Given {
                    id: self.members.tool_call_id,
                    content: self.members.content,
                    failed: one.or(other).and_then(marked),
                };
                out.extend(self.members.content.map(|_| (0, Piece::Result(result))));
            }
            Form::Turn | Form::Item(Item::Message) => {
                self.said(&mut out);
                if self.role == Role::Assistant {
                    self.chat_calls(&mut out);
                }
            }
            Form::Content => {
                let parts = self.members.parts.into_iter().flat_map(Json::elements);
                parts
                    .zip(0..)
                    .for_each(|(part, at)| gemini(self.role, part, at, &mut out));
            }
            Form::Item(Item::Output) => {
                let result = Given {
                    id: self.members.call_id,
                    content: self.members.output,
                    failed: None,
                };
                out.push((0, Piece::Result(result)));
            }
            Form::Item(Item::Call | Item::Hosted) => self.item_call(&mut out),
            Form::Item(Item::Reasoning | Item::Approval) => {}
        }
        out
    }

    fn said(&self, out: &mut Vec<(u32, Piece<'a>)>) {
        let Some(content) = self.members.content else {
            return;
        };
        match content.kind() {
            Kind::String => out.push((0, Piece::Text(content))),
            _ => {
                let blocks = content.elements().zip(0..);
                let pieces = blocks.filter_map(|(of, at)| Some((at, block(self.role, of)?)));
                out.extend(pieces);
            }
        }
    }

    fn chat_calls(&self, out: &mut Vec<(u32, Piece<'a>)>) {
        let calls = self
            .members
            .tool_calls
            .into_iter()
            .flat_map(Json::elements)
            .filter_map(|call| {
                let [id, function, custom] = call.pick(["id", "function", "custom"]);
                Some((id, function.or(custom)?))
            });
        let legacy = self.members.function_call.map(|call| (None, call));
        out.extend(calls.chain(legacy).map(|(id, call)| {
            let [name, arguments, input] = call.pick(["name", "arguments", "input"]);
            let (tool, given) = (Tool::Named(name), arguments.or(input));
            (0, Piece::Call { id, tool, given })
        }));
    }

    fn item_call(&self, out: &mut Vec<(u32, Piece<'a>)>) {
        let kind = self.members.kind;
        if !kind.is_some_and(|kind| kind.name().ends_with(b"_call")) {
            return;
        }
        let names = ["id", "arguments", "input", "action", "operation", "queries"];
        let [own, arguments, input, action, operation, queries] = self.json.pick(names);
        let id = self.members.call_id.or(own);
        let tool = match self.members.name {
            None => Tool::Kind(kind),
            name => Tool::Named(name),
        };
        let given = arguments.or(input).or(action).or(operation).or(queries);
        out.push((0, Piece::Call { id, tool, given }));
        // The provider's own tools bring the result with the call.
        if let Some(content) = self.members.output {
            let result = Given {
                id,
                content: Some(content),
                failed: None,
            };
            out.push((0, Piece::Result(result)));
        }
    }
}

/// A block of a content. In one pass: it may be large, and each look at a member is a pass.
fn block(role: Role, block: Json<'_>) -> Option<Piece<'_>> {
    let names = [
        "type",
        "id",
        "tool_use_id",
        "name",
        "input",
        "content",
        "text",
        "is_error",
        "isError",
        "source",
        "image_url",
        "refusal",
    ];
    let [
        kind,
        id,
        answers,
        name,
        input,
        content,
        text,
        error,
        fails,
        source,
        url,
        refusal,
    ] = block.pick(names);
    let kind = kind.map(Json::name).unwrap_or_default();
    match (&*kind, role) {
        (b"tool_use", Role::Assistant) => Some(Piece::Call {
            id,
            tool: Tool::Named(name),
            given: input,
        }),
        (b"tool_result", _) => Some(Piece::Result(Given {
            id: answers,
            content,
            failed: error.or(fails).and_then(marked),
        })),
        (b"refusal", _) => refusal.map(Piece::Text),
        _ if text.is_some() => text.map(Piece::Text),
        _ => source.or(url).map(|_| Piece::Image),
    }
}

/// A part of a Gemini content.
fn gemini<'a>(role: Role, part: Json<'a>, at: u32, out: &mut Vec<(u32, Piece<'a>)>) {
    let mut thought = false;
    let mut found = None;
    for (key, value) in part.members() {
        match &*key.name() {
            b"thought" => thought = value.is_true(),
            b"text" => found = Some(Piece::Text(value)),
            b"functionCall" | b"function_call" if role == Role::Assistant => {
                let [id, name, given] = value.pick(["id", "name", "args"]);
                let tool = Tool::Named(name);
                found = Some(Piece::Call { id, tool, given });
            }
            b"functionResponse" | b"function_response" => {
                let [id, response] = value.pick(["id", "response"]);
                let (content, failed) = response.map_or((None, None), gemini_result);
                found = Some(Piece::Result(Given {
                    id,
                    content,
                    failed,
                }));
            }
            b"inlineData" | b"inline_data" | b"fileData" | b"file_data" => {
                found = found.or(is_image(value).then_some(Piece::Image));
            }
            _ => {}
        }
    }
    out.extend(found.filter(|_| !thought).map(|piece| (at, piece)));
}

/// What a `response` says: it is an object, mostly with the one member that matters.
pub(crate) fn gemini_result(response: Json<'_>) -> (Option<Json<'_>>, Option<bool>) {
    let [output, result, content, error] = response.pick(["output", "result", "content", "error"]);
    let given = |value: &Json<'_>| !value.is_null();
    let failed = error.filter(given).map(|_| true);
    let said = output.or(result).or(content).filter(given);
    let said = said.or(error.filter(given));
    (said.or(Some(response)), failed)
}

/// Says whether Gemini's inline data, or its file, is an image.
pub(crate) fn is_image(data: Json<'_>) -> bool {
    let [camel, snake] = data.pick(["mimeType", "mime_type"]);
    let kind = camel.or(snake).map(Json::name).unwrap_or_default();
    kind.starts_with(b"image/")
}

/// Says whether a block of a content is an image.
pub(crate) fn is_image_block(block: Json<'_>) -> bool {
    ["image", "image_url", "input_image"]
        .iter()
        .any(|kind| block_is(block, kind))
}

fn marked(mark: Json<'_>) -> Option<bool> {
    (mark.kind() == Kind::Bool).then(|| mark.is_true())
}
