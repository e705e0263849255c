//! The calls, results, links and reasoning in a message's content.

use infold_log::{Call, Link, LinkKind, Role};

use super::pairs::{self, Pairing};
use super::{Form, Item, Message};
use crate::json::Cursor;
use crate::{Json, JsonKind};

/// The facts of a message's content that planning needs.
#[derive(Default)]
pub(super) struct ContentFacts {
    pub calls: Vec<Call>,
    pub answers: Vec<Call>,
    pub links: Vec<Link>,
    pub has_reasoning: bool,
    /// Whether there is nothing but white space.
    pub is_blank: bool,
}

impl ContentFacts {
    /// Reads calls and content, in one pass over each.
    pub fn of(message: &Message<'_>) -> ContentFacts {
        let mut facts = ContentFacts {
            is_blank: true,
            ..ContentFacts::default()
        };
        let members = &message.members;
        match message.form {
            Form::Turn => {
                if message.role == Role::Assistant {
                    facts.add_chat_calls(message);
                }
                if message.role == Role::Tool {
                    facts.answers.push(Call {
                        id: members.tool_call_id.and_then(non_empty_text),
                        name: members.name.and_then(non_empty_text),
                    });
                }
                facts.add_content(message);
            }
            Form::Content => {
                let parts = members.parts.into_iter();
                parts.for_each(|parts| parts.cursor().array(|at| facts.add_part(message.role, at)));
            }
            Form::Item(Item::Message) => facts.add_content(message),
            Form::Item(item) => facts.add_item(item, message),
        }
        facts
    }

    fn add_content(&mut self, message: &Message<'_>) {
        if let Some(content) = message.members.content {
            match content.kind() {
                JsonKind::String => self.is_blank = content.is_blank(),
                JsonKind::Array => content
                    .cursor()
                    .array(|at| self.add_block(message.role, at)),
                kind => self.is_blank = kind == JsonKind::Null,
            }
        }
    }

    fn add_item(&mut self, item: Item, message: &Message<'_>) {
        let members = &message.members;
        self.is_blank = false;
        let id = members.call_id.and_then(non_empty_text);
        match item {
            Item::Reasoning => self.has_reasoning = true,
            Item::Call if runs_in_container(message) => {
                self.add_link(LinkKind::Opens, members.call_id);
            }
            Item::Call => {
                let name = members.name.and_then(non_empty_text);
                let name = name.or_else(|| tool_of_type(message));
                self.calls.push(Call { id, name });
            }
            // An output may name its call by the item's own id, which pairs with nothing.
            Item::Output => {
                let name = id.is_none().then(|| tool_of_type(message)).flatten();
                self.answers.push(Call { id, name });
            }
            Item::Hosted | Item::Approval => self.add_hosted_item(message),
            Item::Message => {}
        }
    }

    fn add_hosted_item(&mut self, message: &Message<'_>) {
        let kind = message.members.kind.map(Json::name).unwrap_or_default();
        let (kind, id) = match pairs::item_pairing(&kind) {
            Pairing::Opens(id) => (LinkKind::Opens, id),
            Pairing::Ends(id) => (LinkKind::Ends, id),
            // A call that is not approved ends here.
            Pairing::Continues(id) if message.json.get("approve").is_some_and(Json::is_false) => {
                (LinkKind::Ends, id)
            }
            Pairing::Continues(id) => (LinkKind::Continues, id),
            Pairing::Unknown => {
                return message.json.cursor().object(|key, at| {
                    let id = Some(at.value()).filter(|_| pairs::may_be_pair_id(key));
                    self.add_link(LinkKind::Mentions, id);
                });
            }
            Pairing::Alone | Pairing::Call(_) | Pairing::Result(_) => return,
        };
        self.add_link(kind, message.json.get(id));
    }

    fn add_link(&mut self, kind: LinkKind, id: Option<Json<'_>>) {
        if let Some(id) = id.and_then(non_empty_text) {
            self.links.push(Link { id, kind });
        }
    }

    fn add_chat_calls(&mut self, message: &Message<'_>) {
        let named = |at: &mut Cursor<'_>| {
            let mut found = None;
            at.object(|key, at| match key {
                b"name" => found = non_empty_text(at.value()),
                _ => drop(at.value()),
            });
            found
        };
        let calls = &mut self.calls;
        if let Some(list) = message.members.tool_calls {
            list.cursor().array(|at| {
                let mut call = Call::default();
                at.object(|key, at| match key {
                    b"id" => call.id = non_empty_text(at.value()),
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

    fn add_block(&mut self, role: Role, at: &mut Cursor<'_>) {
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
                key if pairs::may_be_pair_id(key) => others.push(value),
                _ => {}
            }
        });
        let kind = kind.map(Json::name).unwrap_or_default();
        let is_text = matches!(&*kind, b"text" | b"input_text" | b"output_text");
        let is_reasoning = matches!(&*kind, b"thinking" | b"redacted_thinking" | b"reasoning")
            && role == Role::Assistant;
        // No provider accepts an output with reasoning alone.
        self.is_blank &= is_reasoning || is_text && text.is_none_or(Json::is_blank);
        self.has_reasoning |= is_reasoning;
        self.add_link(LinkKind::Continues, caller);
        match (pairs::block_pairing(&kind), role) {
            (Pairing::Call(_), Role::Assistant) => self.calls.push(Call {
                id: id.and_then(non_empty_text),
                name: name.and_then(non_empty_text),
            }),
            (Pairing::Result(_), Role::User) => self.answers.push(Call {
                id: answers.and_then(non_empty_text),
                name: None,
            }),
            (Pairing::Opens(_), Role::Assistant) => self.add_link(LinkKind::Opens, id),
            (Pairing::Ends(_), _) => self.add_link(LinkKind::Ends, answers),
            (Pairing::Unknown, _) => {
                let ids = id.into_iter().chain(answers).chain(others);
                ids.for_each(|id| self.add_link(LinkKind::Mentions, Some(id)));
            }
            _ => {}
        }
    }

    fn add_part(&mut self, role: Role, at: &mut Cursor<'_>) {
        let (mut call, mut answer) = (None, None);
        let mut is_blank = true;
        let mut is_reasoning = false;
        at.object(|key, at| match key {
            b"functionCall" | b"function_call" => call = read_gemini_call(at),
            b"functionResponse" | b"function_response" => answer = read_gemini_call(at),
            b"text" => is_blank &= at.value().is_blank(),
            b"thought" => is_reasoning |= at.value().is_true(),
            b"thoughtSignature" | b"thought_signature" => is_reasoning |= !at.value().is_null(),
            key => {
                let value = at.value();
                is_blank &= value.is_null();
                self.add_gemini_link(key, value);
            }
        });
        // A signature may come with an empty text, and must be sent back with it.
        self.is_blank &= is_blank && !is_reasoning && call.is_none() && answer.is_none();
        self.has_reasoning |= is_reasoning;
        match role {
            Role::Assistant => self.calls.extend(call),
            Role::User => self.answers.extend(answer),
            Role::System | Role::Tool => {}
        }
    }

    /// Adds the link of a part that belongs to the provider's own tools.
    fn add_gemini_link(&mut self, member: &[u8], value: Json<'_>) {
        let kind = match pairs::part_pairing(member) {
            Some(Pairing::Opens(_)) => LinkKind::Opens,
            Some(Pairing::Ends(_)) => LinkKind::Ends,
            Some(_) => return,
            // The member describes a part of another type, or a part of an unknown type.
            None if value.kind() == JsonKind::Object => LinkKind::Mentions,
            None => return,
        };
        let id = value.get("id").and_then(non_empty_text);
        // A program and its result have no ids: they follow each other.
        let unnamed = (kind != LinkKind::Mentions).then(|| "code execution".to_owned());
        let link = id.or(unnamed).map(|id| Link { id, kind });
        self.links.extend(link);
    }
}

/// Reads the id and the name of a `functionCall` or a `functionResponse`.
fn read_gemini_call(at: &mut Cursor<'_>) -> Option<Call> {
    let mut call = None;
    at.object(|key, at| {
        let call = call.get_or_insert_with(Call::default);
        match key {
            b"id" => call.id = non_empty_text(at.value()),
            b"name" => call.name = non_empty_text(at.value()),
            _ => drop(at.value()),
        }
    });
    call
}

/// Returns the call that a Gemini part answers, and its `response`; none if it is not a result.
pub(crate) fn read_gemini_answer(part: Json<'_>) -> Option<(Call, Option<Json<'_>>)> {
    let [camel, snake] = part.pick(["functionResponse", "function_response"]);
    let result = camel.or(snake)?;
    let call = read_gemini_call(&mut result.cursor())?;
    Some((call, result.get("response")))
}

fn runs_in_container(message: &Message<'_>) -> bool {
    let environment = message.json.get("environment");
    let kind = environment.and_then(|environment| environment.get("type"));
    kind.is_some_and(|kind| kind.name().starts_with(b"container"))
}

/// Derives the tool that an item calls or answers from its type.
fn tool_of_type(message: &Message<'_>) -> Option<String> {
    let kind = message.members.kind?.text()?;
    let kind = kind.strip_suffix("_output").unwrap_or(&kind);
    let kind = kind.strip_suffix("_call").unwrap_or(kind);
    (!matches!(kind, "function" | "custom_tool")).then(|| kind.to_owned())
}

pub(super) fn non_empty_text(value: Json<'_>) -> Option<String> {
    let text = value.text()?;
    (!text.is_empty()).then(|| text.into_owned())
}
