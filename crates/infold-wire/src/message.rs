mod form;
mod members;
mod spoken;
mod native;
mod pairs;
mod piece;

use std::ops::Range;

use infold_log::{Call, Facts, Role};

pub use form::{Form, Item};
use members::Members;
pub(crate) use pairs::{Pairing, may_name, of_block, of_part};
pub(crate) use piece::{Piece, Tool, gemini_result, is_image, is_image_block};
pub(crate) use spoken::gemini_answer;
use spoken::{Spoken, said};

use crate::{Json, JsonError, Kind};

/// A message as it came over any of the wires, known to be one.
///
/// Nothing in it is decoded or changed; what it says is read from its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    json: Json<'a>,
    form: Form,
    role: Role,
    members: Members<'a>,
}

/// Why a JSON text is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Not JSON at all.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// JSON, but not an object.
    #[error("a message is a JSON object, not {found}")]
    NotAnObject {
        /// What it is instead.
        found: &'static str,
    },
    /// No role.
    #[error("no \"role\"")]
    NoRole,
    /// A role nobody knows.
    #[error("unknown role `{role}` (known: {known})")]
    UnknownRole {
        /// The role.
        role: String,
        /// Those that messages of its form have.
        known: &'static str,
    },
    /// Nothing said and nothing called.
    #[error("no \"content\" and no tool call")]
    NoContent,
    /// Content of a kind no wire has.
    #[error("\"content\" is {found}, neither text nor a list of blocks")]
    BadContent {
        /// What it is instead.
        found: &'static str,
    },
}

/// A piece of a message's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its place among the parts of the message.
    pub index: u32,
    /// What it is.
    pub kind: PartKind,
    /// The bytes a stub would replace, counted from the start of the message.
    pub range: Range<usize>,
}

/// What a part of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// What a tool gave back.
    Result,
    /// An image block.
    Image,
    /// Anything else: text, calls, reasoning, blocks we do not know.
    Other,
}

impl<'a> Message<'a> {
    /// Checks that `text` is a message, and one that a provider would take. Of duplicate members the
    /// last one counts.
    pub fn parse(text: &'a [u8]) -> Result<Message<'a>, MessageError> {
        let message = Message::read(text)?;
        message.check_content()?;
        Ok(message)
    }

    /// Checks that `text` is a message, whatever it says: clients also send back messages that say
    /// nothing, or say it in a way that no wire has.
    pub fn read(text: &'a [u8]) -> Result<Message<'a>, MessageError> {
        let mut read = Members::none();
        let json = Json::parse_members(text, |key, value| read.take(key, value))?;
        if json.kind() != Kind::Object {
            return Err(MessageError::NotAnObject {
                found: describe(json.kind()),
            });
        }
        let form = form_of(&read);
        Ok(Message {
            json,
            form,
            role: role_of(form, &read)?,
            members: read,
        })
    }

    /// Its bytes, without white space around them.
    pub fn bytes(&self) -> &'a [u8] {
        self.json.bytes()
    }

    /// The JSON object it is.
    pub fn json(&self) -> Json<'a> {
        self.json
    }

    /// How it is written.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.role
    }

    /// It says itself who speaks; else that follows from what it is.
    pub fn has_role(&self) -> bool {
        self.members.role.is_some()
    }

    /// The type of an item.
    pub(crate) fn kind(&self) -> Option<Json<'a>> {
        self.members.kind
    }

    /// Gemini's parts.
    pub(crate) fn contents(&self) -> Option<Json<'a>> {
        self.members.parts
    }

    /// What an item gives back, if it is one that does.
    pub(crate) fn output(&self) -> Option<Json<'a>> {
        let gives = self.form == Form::Item(Item::Output);
        self.members.output.filter(|_| gives)
    }

    /// Its content, if it has a member of that name.
    pub fn content(&self) -> Option<Json<'a>> {
        self.members.content
    }

    /// What planning needs to know of it.
    pub fn facts(&self) -> Facts {
        let bytes = self.bytes().len() as u64;
        let Spoken {
            calls,
            answers,
            links,
            reasons,
            blank,
        } = Spoken::of(self);
        let empty = calls.is_empty() && answers.is_empty() && blank && !self.answers_otherwise();
        Facts {
            role: self.role,
            calls,
            answers,
            links,
            reasoning: self.members.reasons || reasons,
            empty,
            item: self.role == Role::Assistant && matches!(self.form, Form::Item(_)),
            tokens: estimate(bytes),
            bytes,
        }
    }

    /// The content's blocks; none if it is a plain text.
    pub fn blocks(&self) -> impl Iterator<Item = Json<'a>> + use<'a> {
        self.members.content.into_iter().flat_map(Json::elements)
    }

    /// The tool calls it makes.
    pub fn calls(&self) -> Vec<Call> {
        Spoken::of(self).calls
    }

    /// The calls it brings results for.
    pub fn answers(&self) -> Vec<Call> {
        Spoken::of(self).answers
    }

    /// Its tool result blocks.
    pub fn results(&self) -> impl Iterator<Item = Json<'a>> + use<'a> {
        self.blocks()
            .filter(|block| block_is(*block, "tool_result"))
    }

    /// Its parts. A text is one part, a list of blocks one part per block.
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
            (_, Some(content)) if content.kind() == Kind::Array => {
                content.elements().zip(0..).map(block_part).collect()
            }
            (_, Some(content)) => vec![whole(PartKind::Other, content.range())],
        }
    }

    /// Some outputs have a shape of their own, in which a stub has no place.
    fn output_kind(&self) -> PartKind {
        let kind = self.members.kind.map(Json::name).unwrap_or_default();
        let lists = matches!(&*kind, b"function_call_output" | b"custom_tool_call_output");
        match self.members.output.map(Json::kind) {
            Some(Kind::String) => PartKind::Result,
            Some(Kind::Array) if lists => PartKind::Result,
            _ => PartKind::Other,
        }
    }

    fn check_content(&self) -> Result<(), MessageError> {
        if !matches!(self.form, Form::Turn | Form::Item(Item::Message)) {
            return Ok(());
        }
        match self.members.content.map(Json::kind) {
            Some(Kind::String | Kind::Array) => Ok(()),
            Some(Kind::Null) | None if self.speaks_otherwise() => Ok(()),
            Some(Kind::Null) if self.role == Role::Assistant => Ok(()),
            Some(Kind::Null) | None => Err(MessageError::NoContent),
            Some(other) => Err(MessageError::BadContent {
                found: describe(other),
            }),
        }
    }

    /// It has a member beside `content` that a provider sends.
    fn speaks_otherwise(&self) -> bool {
        self.answers_otherwise() || self.members.reasons
    }

    /// It has a member beside `content` that a provider takes back for an answer: reasoning is none.
    fn answers_otherwise(&self) -> bool {
        let calls = self.members.tool_calls.is_some() || self.members.function_call.is_some();
        self.members.speaks || self.role == Role::Assistant && calls
    }
}

/// The estimate of a message's tokens from its bytes.
pub fn estimate(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// Says whether a block has this type.
pub fn block_is(block: Json<'_>, kind: &str) -> bool {
    block.get("type").is_some_and(|found| found.is(kind))
}

/// The call that a tool result block answers.
pub fn result_of(block: Json<'_>) -> Call {
    Call {
        id: block.get("tool_use_id").and_then(said),
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
    let names = [
        "functionResponse",
        "function_response",
        "inlineData",
        "inline_data",
        "fileData",
        "file_data",
    ];
    let [camel, snake, data, its_data, file, its_file] = part.pick(names);
    let response = camel.or(snake).and_then(|result| result.get("response"));
    let data = data.or(its_data).or(file).or(its_file);
    match response {
        Some(response) => Part {
            range: response.range(),
            ..other(PartKind::Result)
        },
        None if data.is_some_and(is_image) => other(PartKind::Image),
        None => other(PartKind::Other),
    }
}

fn form_of(members: &Members<'_>) -> Form {
    // A model of Gemini's that was cut off says nothing, and only its role tells whose it is.
    let is_model = || members.role.is_some_and(|role| role.is("model"));
    if members.content.is_none() && (members.parts.is_some() || is_model()) {
        return Form::Content;
    }
    let kind = members.kind.map(Json::name).unwrap_or_default();
    let item = match &*kind {
        b"message" => members
            .content
            .is_some_and(Item::holds)
            .then_some(Item::Message),
        // What has a content is said by somebody, whatever else it is called.
        _ if members.content.is_some() && members.role.is_some() => None,
        kind => {
            let known = Item::known(kind, members.call_id.is_some());
            // A type that is not known yet, of the provider's: clients send back what they got.
            let unknown = members.role.is_none() && members.content.is_none() && !kind.is_empty();
            // Its ids say what they are of: `fc_…`.
            let named = |id: Json<'_>| id.name().contains(&b'_');
            let has_id = members.id.is_some_and(named) || members.call_id.is_some_and(named);
            known.or((unknown && has_id).then_some(Item::Hosted))
        }
    };
    item.map_or(Form::Turn, Form::Item)
}

fn role_of(form: Form, members: &Members<'_>) -> Result<Role, MessageError> {
    match form {
        Form::Turn | Form::Item(Item::Message) => {
            known_role(members.role.ok_or(MessageError::NoRole)?)
        }
        Form::Content => members.role.map_or(Ok(Role::User), gemini_role),
        Form::Item(Item::Output) => Ok(Role::Tool),
        Form::Item(Item::Approval) => Ok(Role::User),
        Form::Item(Item::Reasoning | Item::Call | Item::Hosted) => Ok(Role::Assistant),
    }
}

fn known_role(role: Json<'_>) -> Result<Role, MessageError> {
    match &*role.name() {
        b"system" | b"developer" => Ok(Role::System),
        b"user" => Ok(Role::User),
        b"assistant" => Ok(Role::Assistant),
        b"tool" | b"function" => Ok(Role::Tool),
        _ => Err(unknown(
            role,
            "system, developer, user, assistant, tool, function",
        )),
    }
}

/// Results come from `user` or, older, from `function`: both carry them as a user's parts.
fn gemini_role(role: Json<'_>) -> Result<Role, MessageError> {
    match &*role.name() {
        b"user" | b"function" => Ok(Role::User),
        b"model" => Ok(Role::Assistant),
        b"system" => Ok(Role::System),
        _ => Err(unknown(role, "user, model, function, system")),
    }
}

fn unknown(role: Json<'_>, known: &'static str) -> MessageError {
    let role = String::from_utf8_lossy(role.bytes());
    let role = role.trim_matches('"').chars().take(40).collect();
    MessageError::UnknownRole { role, known }
}

fn describe(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "an object",
        Kind::Array => "a list",
        Kind::String => "a text",
        Kind::Number => "a number",
        Kind::Bool => "true or false",
        Kind::Null => "null",
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
