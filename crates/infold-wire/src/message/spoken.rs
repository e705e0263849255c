use infold_log::{Call, Link, LinkKind, Role};

use super::pairs::{self, Pairing};
use super::{Form, Item, Message};
use crate::json::Cursor;
use crate::{Json, Kind};

/// What a message says, as far as it matters.
#[derive(Default)]
pub(super) struct Spoken {
    pub calls: Vec<Call>,
    pub answers: Vec<Call>,
    pub links: Vec<Link>,
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
                Kind::Array => content.cursor().array(|at| self.block(message.role, at)),
                kind => self.blank = kind == Kind::Null,
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
            Item::Call if runs_in_container(message) => self.link(LinkKind::Opens, members.call_id),
            Item::Call => {
                let name = members.name.and_then(said).or_else(|| tool(message));
                self.calls.push(Call { id, name });
            }
            // An output may name its call by the item's own id, which pairs with nothing.
            Item::Output => {
                let name = id.is_none().then(|| tool(message)).flatten();
                self.answers.push(Call { id, name });
            }
            Item::Hosted | Item::Approval => self.hosted(message),
            Item::Message => {}
        }
    }

    /// Takes in an item that has to do with the provider's own tools, or is of a type that is not known.
    fn hosted(&mut self, message: &Message<'_>) {
        let kind = message.members.kind.map(Json::name).unwrap_or_default();
        match pairs::of_item(&kind) {
            Pairing::Opens(id) => self.link(LinkKind::Opens, message.json.get(id)),
            Pairing::Continues(id) => {
                let refused = message.json.get("approve").is_some_and(Json::is_false);
                let kind = if refused {
                    LinkKind::Ends
                } else {
                    LinkKind::Continues
                };
                self.link(kind, message.json.get(id));
            }
            Pairing::Ends(id) => self.link(LinkKind::Ends, message.json.get(id)),
            Pairing::Unknown => message.json.cursor().object(|key, at| {
                let value = at.value();
                if pairs::may_name(key) {
                    self.link(LinkKind::Mentions, Some(value));
                }
            }),
            Pairing::Alone | Pairing::Call(_) | Pairing::Result(_) => {}
        }
    }

    fn link(&mut self, kind: LinkKind, id: Option<Json<'_>>) {
        if let Some(id) = id.and_then(said) {
            self.links.push(Link { id, kind });
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
        let (mut id, mut name, mut answers, mut caller) = (None, None, None, None);
        let mut others = Vec::new();
        at.object(|key, at| {
            let value = at.value();
            match key {
                b"type" => kind = Some(value),
                b"text" => text = Some(value),
                b"id" => id = Some(value),
                b"name" => name = Some(value),
                b"tool_use_id" => answers = Some(value),
                b"caller" => caller = value.get("tool_id"),
                key if pairs::may_name(key) => others.push(value),
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
        self.link(LinkKind::Continues, caller);
        match (pairs::of_block(&kind), role) {
            (Pairing::Call(_), Role::Assistant) => self.calls.push(Call {
                id: id.and_then(said),
                name: name.and_then(said),
            }),
            (Pairing::Result(_), Role::User) => self.answers.push(Call {
                id: answers.and_then(said),
                name: None,
            }),
            (Pairing::Opens(_), Role::Assistant) => self.link(LinkKind::Opens, id),
            (Pairing::Ends(_), _) => self.link(LinkKind::Ends, answers),
            (Pairing::Unknown, _) => {
                let ids = id.into_iter().chain(answers).chain(others);
                ids.for_each(|id| self.link(LinkKind::Mentions, Some(id)));
            }
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
            key => {
                let value = at.value();
                blank &= value.is_null();
                self.gemini_link(key, value);
            }
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

impl Spoken {
    /// Takes in what a part has to do with the provider's own tools.
    fn gemini_link(&mut self, member: &[u8], value: Json<'_>) {
        let kind = match pairs::of_part(member) {
            Some(Pairing::Opens(_)) => LinkKind::Opens,
            Some(Pairing::Ends(_)) => LinkKind::Ends,
            Some(_) => return,
            // One of many members that say more of a part, or a part that is not known.
            None if value.kind() == Kind::Object => LinkKind::Mentions,
            None => return,
        };
        let id = value.get("id").and_then(said);
        // A program and its result name each other only by their order.
        let unnamed = (kind != LinkKind::Mentions).then(|| "code execution".to_owned());
        let link = id.or(unnamed).map(|id| Link { id, kind });
        self.links.extend(link);
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

/// Says whether a call is carried out by the provider, in a container of its own.
fn runs_in_container(message: &Message<'_>) -> bool {
    let environment = message.json.get("environment");
    let kind = environment.and_then(|environment| environment.get("type"));
    kind.is_some_and(|kind| kind.name().starts_with(b"container"))
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
