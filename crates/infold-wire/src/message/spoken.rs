use infold_log::{Call, Role};

use super::{Form, Item, Message};
use crate::json::Cursor;
use crate::{Json, Kind};

/// What a message says, as far as it matters.
#[derive(Default)]
pub(super) struct Spoken {
    pub calls: Vec<Call>,
    pub answers: Vec<Call>,
    /// A block holds reasoning.
    pub reasons: bool,
    /// Nothing but white space was said.
    pub blank: bool,
}

impl Spoken {
    /// Reads calls and content, in one pass over each.
    pub fn of(message: &Message<'_>) -> Spoken {
        let mut spoken = Spoken {
            blank: true,
            ..Spoken::default()
        };
        match message.form {
            Form::Turn => spoken.turn(message),
            Form::Content => {
                let parts = message.members.parts.into_iter();
                parts.for_each(|parts| parts.cursor().array(|at| spoken.part(message.role, at)));
            }
            Form::Item(item) => spoken.item(item, message),
        }
        spoken
    }

    fn turn(&mut self, message: &Message<'_>) {
        if message.role == Role::Assistant {
            self.chat_calls(message);
        }
        if message.role == Role::Tool {
            self.answers.push(Call {
                id: message.members.tool_call_id.and_then(said),
                name: message.members.name.and_then(said),
            });
        }
        self.content(message);
    }

    fn content(&mut self, message: &Message<'_>) {
        if let Some(content) = message.members.content {
            match content.kind() {
                Kind::String => self.blank = content.is_blank(),
                _ => content.cursor().array(|at| self.block(message.role, at)),
            }
        }
    }

    fn item(&mut self, item: Item, message: &Message<'_>) {
        let members = &message.members;
        if item == Item::Message {
            return self.content(message);
        }
        self.blank = false;
        let id = members.call_id.and_then(said);
        match item {
            Item::Reasoning => self.reasons = true,
            Item::Call => {
                let name = members.name.and_then(said).or_else(|| tool(message));
                self.calls.push(Call { id, name });
            }
            // An output may name its call by the item's own id, which pairs with nothing.
            Item::Output => {
                let name = id.is_none().then(|| tool(message)).flatten();
                self.answers.push(Call { id, name });
            }
            Item::Message | Item::Hosted | Item::Approval => {}
        }
    }

    /// Reads the calls that stand beside the content.
    fn chat_calls(&mut self, message: &Message<'_>) {
        let named = |at: &mut Cursor<'_>| {
            let mut found = None;
            at.object(|key, at| match key {
                b"name" => found = said(at.value()),
                _ => drop(at.value()),
            });
            found
        };
        let calls = &mut self.calls;
        if let Some(list) = message.members.tool_calls {
            list.cursor().array(|at| {
                let mut call = Call::default();
                at.object(|key, at| match key {
                    b"id" => call.id = said(at.value()),
                    b"function" | b"custom" => call.name = named(at),
                    _ => drop(at.value()),
                });
                calls.push(call);
            });
        }
        calls.extend(message.members.function_call.map(|call| Call {
            id: None,
            name: named(&mut call.cursor()),
        }));
    }

    /// Takes in a block of the content.
    fn block(&mut self, role: Role, at: &mut Cursor<'_>) {
        let (mut kind, mut text) = (None, None);
        let (mut id, mut name, mut answers) = (None, None, None);
        at.object(|key, at| {
            let value = at.value();
            match key {
                b"type" => kind = Some(value),
                b"text" => text = Some(value),
                b"id" => id = Some(value),
                b"name" => name = Some(value),
                b"tool_use_id" => answers = Some(value),
                _ => {}
            }
        });
        let kind = kind.map(Json::name).unwrap_or_default();
        let is_text = matches!(&*kind, b"text" | b"input_text" | b"output_text");
        let reasons = matches!(&*kind, b"thinking" | b"redacted_thinking" | b"reasoning")
            && role == Role::Assistant;
        // No provider takes back an output of reasoning alone.
        self.blank &= reasons || is_text && text.is_none_or(Json::is_blank);
        self.reasons |= reasons;
        match (&*kind, role) {
            (b"tool_use", Role::Assistant) => self.calls.push(Call {
                id: id.and_then(said),
                name: name.and_then(said),
            }),
            (b"tool_result", Role::User) => self.answers.push(Call {
                id: answers.and_then(said),
                name: None,
            }),
            _ => {}
        }
    }

    /// Takes in a part of a Gemini content.
    fn part(&mut self, role: Role, at: &mut Cursor<'_>) {
        let (mut call, mut answer) = (None, None);
        let mut blank = true;
        let mut reasons = false;
        at.object(|key, at| match key {
            b"functionCall" | b"function_call" => call = gemini_call(at),
            b"functionResponse" | b"function_response" => answer = gemini_call(at),
            b"text" => blank &= at.value().is_blank(),
            b"thought" => reasons |= at.value().is_true(),
            b"thoughtSignature" | b"thought_signature" => reasons |= !at.value().is_null(),
            _ => blank &= at.value().is_null(),
        });
        // A signature may come with an empty text, and must go back with it.
        self.blank &= blank && !reasons && call.is_none() && answer.is_none();
        self.reasons |= reasons;
        match role {
            Role::Assistant => self.calls.extend(call),
            Role::User => self.answers.extend(answer),
            Role::System | Role::Tool => {}
        }
    }
}

/// Passes a `functionCall` or a `functionResponse`.
fn gemini_call(at: &mut Cursor<'_>) -> Option<Call> {
    let mut call = None;
    at.object(|key, at| {
        let call = call.get_or_insert_with(Call::default);
        match key {
            b"id" => call.id = said(at.value()),
            b"name" => call.name = said(at.value()),
            _ => drop(at.value()),
        }
    });
    call
}

/// The call that a Gemini part answers, and its `response`; none if it is no result.
pub(crate) fn gemini_answer(part: Json<'_>) -> Option<(Call, Option<Json<'_>>)> {
    let [camel, snake] = part.pick(["functionResponse", "function_response"]);
    let result = camel.or(snake)?;
    let call = gemini_call(&mut result.cursor())?;
    Some((call, result.get("response")))
}

/// The tool that an item calls or answers, by its type.
fn tool(message: &Message<'_>) -> Option<String> {
    let kind = message.members.kind?.text()?;
    let kind = kind.strip_suffix("_output").unwrap_or(&kind);
    let kind = kind.strip_suffix("_call").unwrap_or(kind);
    (!matches!(kind, "function" | "custom_tool")).then(|| kind.to_owned())
}

/// A value that is a text and not an empty one.
pub(super) fn said(value: Json<'_>) -> Option<String> {
    let text = value.text()?;
    (!text.is_empty()).then(|| text.into_owned())
}
