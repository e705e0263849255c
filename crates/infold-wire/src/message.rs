//! Messages of any wire: their form, role, parts and facts.

mod form;
mod members;
mod content_facts;
mod native;
mod pairs;
mod content_item;

use std::ops::Range;

use infold_log::{Call, Facts, Role};

pub(crate) use content_facts::read_gemini_answer;
use content_facts::{ContentFacts, non_empty_text};
pub(crate) use content_item::{
    CalledTool, ContentItem, as_bool, gemini_result, is_image_block, is_image_data,
};
pub use form::{Form, Item};
use members::MessageMembers;
pub(crate) use pairs::{Pairing, block_pairing, may_be_pair_id, part_pairing};

use crate::edits::splice;
use crate::{Json, JsonError, JsonKind};

/// A message in the form of any wire. Nothing in it is decoded or changed.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    json: Json<'a>,
    form: Form,
    role: Role,
    members: MessageMembers<'a>,
}

/// The reason that a JSON text is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The text is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// JSON, but not an object.
    #[error("a message is a JSON object, not {found}")]
    NotAnObject {
        /// The JSON type it has instead.
        found: &'static str,
    },
    /// The message has no role.
    #[error("no \"role\"")]
    NoRole,
    /// An unknown role.
    #[error("unknown role `{role}` (known: {known})")]
    UnknownRole {
        /// The role.
        role: String,
        /// The roles of messages of this form.
        known: &'static str,
    },
    /// Neither content nor a tool call.
    #[error("no \"content\" and no tool call")]
    NoContent,
    /// Content of a type that no wire has.
    #[error("\"content\" is {found}, neither text nor a list of blocks")]
    BadContent {
        /// The JSON type it has instead.
        found: &'static str,
    },
}

/// A part of a message's content that a mask can replace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The part's index in the message.
    pub index: u32,
    /// The kind of the part: a result, an image or something else.
    pub kind: PartKind,
    /// The bytes a stub would replace, counted from the start of the message.
    pub range: Range<usize>,
}

/// The type of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// A tool result.
    Result,
    /// An image block.
    Image,
    /// Anything else: text, calls, reasoning, unknown blocks.
    Other,
}

impl<'a> Message<'a> {
    /// Parses a message that a provider would accept. Of duplicate members the last one counts.
    pub fn parse(text: &'a [u8]) -> Result<Message<'a>, MessageError> {
        let message = Message::read(text)?;
        message.check_content()?;
        Ok(message)
    }

    /// Parses a message with any content: clients also send back empty messages, and content that no wire has.
    pub fn read(text: &'a [u8]) -> Result<Message<'a>, MessageError> {
        let mut members = MessageMembers::new();
        let json = Json::parse_members(text, |key, value| members.insert(key, value))?;
        if json.kind() != JsonKind::Object {
            return Err(MessageError::NotAnObject {
                found: describe(json.kind()),
            });
        }
        let form = form_of(&members);
        Ok(Message {
            json,
            form,
            role: role_of(form, &members)?,
            members,
        })
    }

    /// Returns its bytes, without white space around them.
    pub fn bytes(&self) -> &'a [u8] {
        self.json.bytes()
    }

    /// Returns its JSON object.
    pub fn json(&self) -> Json<'a> {
        self.json
    }

    /// Returns the form of the message.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns its role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns whether it has a `role`; without one the role follows from its form.
    pub fn has_role(&self) -> bool {
        self.members.role.is_some()
    }

    /// Returns the type of an item.
    pub(crate) fn kind(&self) -> Option<Json<'a>> {
        self.members.kind
    }

    /// Returns the list or the text with the content: Gemini's parts, else `content`.
    pub(crate) fn parts_or_content(&self) -> Option<Json<'a>> {
        self.members.parts.or(self.members.content)
    }

    /// Returns Gemini's parts.
    pub(crate) fn gemini_parts(&self) -> Option<Json<'a>> {
        self.members.parts
    }

    /// Returns the output of an item that answers a call.
    pub(crate) fn output(&self) -> Option<Json<'a>> {
        let is_output = self.form == Form::Item(Item::Output);
        self.members.output.filter(|_| is_output)
    }

    /// Returns its content, if it has a member of that name.
    pub fn content(&self) -> Option<Json<'a>> {
        self.members.content
    }

    /// Replaces one value of the message; all other bytes are copied.
    pub(crate) fn with_replaced(&self, value: Json<'_>, replacement: &str) -> Vec<u8> {
        let base = self.json.range().start;
        let range = value.range();
        let range = range.start - base..range.end - base;
        splice(self.bytes(), &[(range, replacement)])
    }

    /// Returns the facts about the message that planning needs.
    pub fn facts(&self) -> Facts {
        let bytes = self.bytes().len() as u64;
        let content = ContentFacts::of(self);
        let has_calls = !content.calls.is_empty() || !content.answers.is_empty();
        Facts {
            role: self.role,
            reasoning: self.members.has_reasoning || content.has_reasoning,
            empty: !has_calls && content.is_blank && !self.answers_beside_content(),
            calls: content.calls,
            answers: content.answers,
            links: content.links,
            item: self.role == Role::Assistant && matches!(self.form, Form::Item(_)),
            tokens: estimate_tokens(bytes),
            bytes,
        }
    }

    /// Returns the content's blocks; none if it is a plain text.
    pub fn blocks(&self) -> impl Iterator<Item = Json<'a>> + use<'a> {
        self.members.content.into_iter().flat_map(Json::elements)
    }

    /// Returns the tool calls it makes.
    pub fn calls(&self) -> Vec<Call> {
        ContentFacts::of(self).calls
    }

    /// Returns the calls it holds results of.
    pub fn answers(&self) -> Vec<Call> {
        ContentFacts::of(self).answers
    }

    /// Returns its tool result blocks.
    pub fn results(&self) -> impl Iterator<Item = Json<'a>> + use<'a> {
        self.blocks()
            .filter(|block| block_is(*block, "tool_result"))
    }

    /// Returns its parts. A text is one part, a list of blocks one part per block.
    pub fn parts(&self) -> Vec<Part> {
        let whole = |kind, range| Part {
            index: 0,
            kind,
            range,
        };
        match (self.form, self.members.content) {
            (Form::Content, _) => {
                let parts = self.members.parts.into_iter().flat_map(Json::elements);
                parts.zip(0..).map(gemini_part).collect()
            }
            (Form::Item(Item::Output), _) => {
                let kind = self.output_kind();
                let output = self.members.output.into_iter();
                output.map(|output| whole(kind, output.range())).collect()
            }
            (_, None) => Vec::new(),
            (Form::Turn, Some(content)) if self.role == Role::Tool => {
                vec![whole(PartKind::Result, content.range())]
            }
            (_, Some(content)) if content.kind() == JsonKind::Array => {
                content.elements().zip(0..).map(block_part).collect()
            }
            (_, Some(content)) => vec![whole(PartKind::Other, content.range())],
        }
    }

    /// Outputs of a form of their own count as `Other`: a stub cannot replace them.
    fn output_kind(&self) -> PartKind {
        let kind = self.members.kind.map(Json::name).unwrap_or_default();
        let lists = matches!(&*kind, b"function_call_output" | b"custom_tool_call_output");
        match self.members.output.map(Json::kind) {
            Some(JsonKind::String) => PartKind::Result,
            Some(JsonKind::Array) if lists => PartKind::Result,
            _ => PartKind::Other,
        }
    }

    fn check_content(&self) -> Result<(), MessageError> {
        if !matches!(self.form, Form::Turn | Form::Item(Item::Message)) {
            return Ok(());
        }
        match self.members.content.map(Json::kind) {
            Some(JsonKind::String | JsonKind::Array) => Ok(()),
            Some(JsonKind::Null) | None
                if self.answers_beside_content() || self.members.has_reasoning =>
            {
                Ok(())
            }
            Some(JsonKind::Null) if self.role == Role::Assistant => Ok(()),
            Some(JsonKind::Null) | None => Err(MessageError::NoContent),
            Some(other) => Err(MessageError::BadContent {
                found: describe(other),
            }),
        }
    }

    /// Returns whether a member beside `content` counts as an answer when sent back; reasoning does not.
    fn answers_beside_content(&self) -> bool {
        let calls = self.members.tool_calls.is_some() || self.members.function_call.is_some();
        self.members.has_other_content || self.role == Role::Assistant && calls
    }
}

/// Estimates the tokens of a message from its bytes.
pub fn estimate_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// Returns whether a block has this type.
pub fn block_is(block: Json<'_>, kind: &str) -> bool {
    block.get("type").is_some_and(|found| found.is(kind))
}

/// Returns the call that a tool result block answers.
pub fn answered_call(block: Json<'_>) -> Call {
    Call {
        id: block.get("tool_use_id").and_then(non_empty_text),
        name: None,
    }
}

fn block_part((block, index): (Json<'_>, u32)) -> Part {
    let result = block_is(block, "tool_result")
        .then(|| block.get("content"))
        .flatten();
    let (kind, range) = match result {
        Some(content) => (PartKind::Result, content.range()),
        None if is_image_block(block) => (PartKind::Image, block.range()),
        None => (PartKind::Other, block.range()),
    };
    Part { index, kind, range }
}

fn gemini_part((part, index): (Json<'_>, u32)) -> Part {
    let other = |kind| Part {
        index,
        kind,
        range: part.range(),
    };
    let [camel, snake] = part.pick(["functionResponse", "function_response"]);
    let response = camel.or(snake).and_then(|result| result.get("response"));
    let data = part.pick(["inlineData", "inline_data", "fileData", "file_data"]);
    match response {
        Some(response) => Part {
            range: response.range(),
            ..other(PartKind::Result)
        },
        None if data.into_iter().flatten().next().is_some_and(is_image_data) => {
            other(PartKind::Image)
        }
        None => other(PartKind::Other),
    }
}

fn form_of(members: &MessageMembers<'_>) -> Form {
    // An output of Gemini's that was cut off has no parts; only its role shows the form.
    let is_model = || members.role.is_some_and(|role| role.is("model"));
    if members.content.is_none() && (members.parts.is_some() || is_model()) {
        return Form::Content;
    }
    let kind = members.kind.map(Json::name).unwrap_or_default();
    let item = match &*kind {
        b"message" => {
            let content = members
                .content
                .filter(|content| Item::has_content(*content));
            content.map(|_| Item::Message)
        }
        // A message with a role and a content is a turn, with any type.
        _ if members.content.is_some() && members.role.is_some() => None,
        kind => {
            let known = Item::from_type(kind, members.call_id.is_some());
            // Clients also send back items of types that are not listed here.
            let unknown = members.role.is_none() && members.content.is_none() && !kind.is_empty();
            // Ids of items begin with their type: `fc_…`.
            let named = |id: Json<'_>| id.name().contains(&b'_');
            let has_id = members.id.is_some_and(named) || members.call_id.is_some_and(named);
            known.or((unknown && has_id).then_some(Item::Hosted))
        }
    };
    item.map_or(Form::Turn, Form::Item)
}

fn role_of(form: Form, members: &MessageMembers<'_>) -> Result<Role, MessageError> {
    match form {
        Form::Turn | Form::Item(Item::Message) => {
            parse_role(members.role.ok_or(MessageError::NoRole)?, false)
        }
        Form::Content => {
            let role = members.role;
            role.map_or(Ok(Role::User), |role| parse_role(role, true))
        }
        Form::Item(Item::Output) => Ok(Role::Tool),
        Form::Item(Item::Approval) => Ok(Role::User),
        Form::Item(Item::Reasoning | Item::Call | Item::Hosted) => Ok(Role::Assistant),
    }
}

/// Results of Gemini have the role `user` or, in older clients, `function`.
fn parse_role(role: Json<'_>, is_gemini: bool) -> Result<Role, MessageError> {
    match (&*role.name(), is_gemini) {
        (b"system", _) | (b"developer", false) => Ok(Role::System),
        (b"user", _) | (b"function", true) => Ok(Role::User),
        (b"assistant", false) | (b"model", true) => Ok(Role::Assistant),
        (b"tool" | b"function", false) => Ok(Role::Tool),
        _ => {
            let role = String::from_utf8_lossy(role.bytes());
            Err(MessageError::UnknownRole {
                role: role.trim_matches('"').chars().take(40).collect(),
                known: if is_gemini {
                    "user, model, function, system"
                } else {
                    "system, developer, user, assistant, tool, function"
                },
            })
        }
    }
}

fn describe(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Object => "an object",
        JsonKind::Array => "a list",
        JsonKind::String => "a text",
        JsonKind::Number => "a number",
        JsonKind::Bool => "true or false",
        JsonKind::Null => "null",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str) -> Facts {
        Message::parse(text.as_bytes()).unwrap().facts()
    }

    fn ids(calls: &[Call]) -> Vec<&str> {
        calls
            .iter()
            .map(|call| call.id.as_deref().unwrap_or("-"))
            .collect()
    }

    #[test]
    fn calls_are_found_in_every_dialect() {
        let chat = facts(
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"read","arguments":"{}"}},{"id":"b","type":"custom","custom":{"name":"x","input":""}}]}"#,
        );
        assert_eq!(ids(&chat.calls), ["a", "b"]);
        assert_eq!(chat.calls[1].name.as_deref(), Some("x"));
        let legacy = facts(r#"{"role":"assistant","content":null,"function_call":{"name":"f"}}"#);
        assert_eq!(legacy.calls[0].name.as_deref(), Some("f"));
        let blocks = facts(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"tool_use","id":"t","name":"n","input":{"type":"tool_use"}}]}"#,
        );
        assert_eq!(ids(&blocks.calls), ["t"]);
        assert!(blocks.reasoning);
    }

    #[test]
    fn results_are_found_in_every_dialect() {
        let tool = facts(r#"{"role":"tool","tool_call_id":"a","content":""}"#);
        assert_eq!(ids(&tool.answers), ["a"]);
        assert!(!tool.empty);
        let named = facts(r#"{"role":"tool","tool_name":"ls","content":"x"}"#);
        assert_eq!(named.answers[0].name.as_deref(), Some("ls"));
        let function = facts(r#"{"role":"function","name":"f","content":"x"}"#);
        assert_eq!(function.answers[0].name.as_deref(), Some("f"));
        let user = facts(
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"},{"type":"text","text":"go on"}]}"#,
        );
        assert_eq!(ids(&user.answers), ["t"]);
    }

    #[test]
    fn what_is_not_a_message_is_told_apart() {
        let why = |text: &str| Message::parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(why("[1]"), "a message is a JSON object, not a list");
        assert_eq!(why(r#"{"content":"x"}"#), "no \"role\"");
        assert_eq!(
            why(r#"{"role":"toolResult","content":"x"}"#),
            "unknown role `toolResult` (known: system, developer, user, assistant, tool, function)"
        );
        assert_eq!(why(r#"{"role":"user"}"#), "no \"content\" and no tool call");
        assert_eq!(
            why(r#"{"role":"user","content":7}"#),
            "\"content\" is a number, neither text nor a list of blocks"
        );
    }

    #[test]
    fn only_what_says_nothing_is_empty() {
        assert!(facts(r#"{"role":"user","content":" \n"}"#).empty);
        assert!(facts(r#"{"role":"assistant","content":null}"#).empty);
        assert!(facts(r#"{"role":"user","content":[]}"#).empty);
        assert!(facts(r#"{"role":"assistant","content":null,"tool_calls":[]}"#).empty);
        assert!(!facts(r#"{"role":"assistant","content":null,"refusal":"no"}"#).empty);
        assert!(!facts(r#"{"role":"user","content":[{"type":"image","source":{}}]}"#).empty);
    }

    #[test]
    fn parts_name_the_bytes_a_stub_replaces() {
        let text = r#" {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"long"},{"type":"image","source":1}]}"#;
        let message = Message::parse(text.as_bytes()).unwrap();
        let parts = message.parts();
        assert_eq!(&text[parts[0].range.clone()], "\"long\"");
        assert_eq!(
            &text[parts[1].range.clone()],
            r#"{"type":"image","source":1}"#
        );
        assert_eq!(parts[1].kind, PartKind::Image);
    }
}
