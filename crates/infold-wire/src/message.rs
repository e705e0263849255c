use std::ops::Range;

use infold_log::{Call, Facts, Role};

use crate::json::Cursor;
use crate::{Json, JsonError, Kind};

/// A message as it came over the wire, OpenAI chat or Anthropic, known to be one.
///
/// Nothing in it is decoded or changed; what it says is read from its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    json: Json<'a>,
    role: Role,
    members: Members<'a>,
}

/// The members of a message that say something to us.
#[derive(Clone, Copy, Debug, Default)]
struct Members<'a> {
    role: Option<Json<'a>>,
    content: Option<Json<'a>>,
    tool_calls: Option<Json<'a>>,
    function_call: Option<Json<'a>>,
    tool_call_id: Option<Json<'a>>,
    name: Option<Json<'a>>,
    /// There is one beside `content` that says something.
    speaks: bool,
    /// There is one that holds reasoning.
    reasons: bool,
}

impl<'a> Members<'a> {
    fn take(&mut self, key: Json<'a>, value: Json<'a>) {
        let given = !value.is_null();
        match &*key.name() {
            b"role" => self.role = Some(value),
            b"content" => self.content = Some(value),
            // An empty list calls nobody, and says nothing either.
            b"tool_calls" => {
                self.tool_calls = Some(value).filter(|calls| calls.elements().next().is_some());
            }
            b"function_call" => self.function_call = given.then_some(value),
            b"tool_call_id" => self.tool_call_id = given.then_some(value),
            b"name" | b"tool_name" => self.name = given.then_some(value),
            b"reasoning_content" | b"reasoning" | b"reasoning_details" | b"thinking" => {
                self.reasons |= given;
            }
            b"refusal" | b"audio" | b"images" => self.speaks |= given,
            _ => {}
        }
    }
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
    #[error("unknown role `{role}` (known: system, developer, user, assistant, tool, function)")]
    UnknownRole {
        /// The role.
        role: String,
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
    /// Checks that `text` is a message. Of duplicate members the last one counts.
    pub fn parse(text: &'a [u8]) -> Result<Message<'a>, MessageError> {
        let mut read = Members::default();
        let json = Json::parse_members(text, |key, value| read.take(key, value))?;
        if json.kind() != Kind::Object {
            return Err(MessageError::NotAnObject {
                found: describe(json.kind()),
            });
        }
        let role = known_role(read.role.ok_or(MessageError::NoRole)?)?;
        let message = Message {
            json,
            role,
            members: read,
        };
        message.check_content()?;
        Ok(message)
    }

    /// Its bytes, without white space around them.
    pub fn bytes(&self) -> &'a [u8] {
        self.json.bytes()
    }

    /// The JSON object it is.
    pub fn json(&self) -> Json<'a> {
        self.json
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.role
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
            reasons,
            blank,
        } = self.spoken();
        let empty = calls.is_empty() && answers.is_empty() && blank && !self.speaks_otherwise();
        Facts {
            role: self.role,
            calls,
            answers,
            reasoning: self.members.reasons || reasons,
            empty,
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
        self.spoken().calls
    }

    /// The calls it brings results for.
    pub fn answers(&self) -> Vec<Call> {
        self.spoken().answers
    }

    /// Its tool result blocks.
    pub fn results(&self) -> impl Iterator<Item = Json<'a>> + use<'a> {
        self.blocks()
            .filter(|block| block_is(*block, "tool_result"))
    }

    /// Its parts. A text is one part, a list of blocks one part per block.
    pub fn parts(&self) -> Vec<Part> {
        let Some(content) = self.members.content else {
            return Vec::new();
        };
        let whole = |kind| Part {
            index: 0,
            kind,
            range: content.range(),
        };
        match (self.role, content.kind()) {
            (Role::Tool, _) => vec![whole(PartKind::Result)],
            (_, Kind::Array) => content.elements().zip(0..).map(block_part).collect(),
            _ => vec![whole(PartKind::Other)],
        }
    }

    fn check_content(&self) -> Result<(), MessageError> {
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

    /// It has a member beside `content` that a provider takes for an answer.
    fn speaks_otherwise(&self) -> bool {
        let calls = self.members.tool_calls.is_some() || self.members.function_call.is_some();
        self.members.speaks || self.members.reasons || self.role == Role::Assistant && calls
    }

    /// Reads calls and content, in one pass over each.
    fn spoken(&self) -> Spoken {
        let mut spoken = Spoken {
            blank: true,
            ..Spoken::default()
        };
        if self.role == Role::Assistant {
            self.read_calls(&mut spoken.calls);
        }
        if self.role == Role::Tool {
            spoken.answers.push(Call {
                id: self.members.tool_call_id.and_then(said),
                name: self.members.name.and_then(said),
            });
        }
        if let Some(content) = self.members.content {
            match content.kind() {
                Kind::String => spoken.blank = content.is_blank(),
                _ => content.cursor().array(|at| spoken.block(self.role, at)),
            }
        }
        spoken
    }

    /// Reads the calls that stand beside the content.
    fn read_calls(&self, calls: &mut Vec<Call>) {
        let named = |at: &mut Cursor<'_>| {
            let mut found = None;
            at.object(|key, at| match key {
                b"name" => found = said(at.value()),
                _ => drop(at.value()),
            });
            found
        };
        if let Some(list) = self.members.tool_calls {
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
        calls.extend(self.members.function_call.map(|call| Call {
            id: None,
            name: named(&mut call.cursor()),
        }));
    }
}

/// What a message says, as far as it matters.
#[derive(Default)]
struct Spoken {
    calls: Vec<Call>,
    answers: Vec<Call>,
    /// A block holds reasoning.
    reasons: bool,
    /// Nothing but white space was said.
    blank: bool,
}

impl Spoken {
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
        self.blank &= &*kind == b"text" && text.is_none_or(Json::is_blank);
        match (&*kind, role) {
            (b"tool_use", Role::Assistant) => self.calls.push(Call {
                id: id.and_then(said),
                name: name.and_then(said),
            }),
            (b"tool_result", Role::User) => self.answers.push(Call {
                id: answers.and_then(said),
                name: None,
            }),
            (b"thinking" | b"redacted_thinking" | b"reasoning", Role::Assistant) => {
                self.reasons = true;
            }
            _ => {}
        }
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
    let image = ["image", "image_url", "input_image"]
        .iter()
        .any(|kind| block_is(block, kind));
    let (kind, range) = match result {
        Some(content) => (PartKind::Result, content.range()),
        None if image => (PartKind::Image, block.range()),
        None => (PartKind::Other, block.range()),
    };
    Part { index, kind, range }
}

/// A value that is a text and not an empty one.
fn said(value: Json<'_>) -> Option<String> {
    let text = value.text()?;
    (!text.is_empty()).then(|| text.into_owned())
}

fn known_role(role: Json<'_>) -> Result<Role, MessageError> {
    match &*role.name() {
        b"system" | b"developer" => Ok(Role::System),
        b"user" => Ok(Role::User),
        b"assistant" => Ok(Role::Assistant),
        b"tool" | b"function" => Ok(Role::Tool),
        _ => Err(MessageError::UnknownRole {
            role: String::from_utf8_lossy(role.bytes())
                .trim_matches('"')
                .chars()
                .take(40)
                .collect(),
        }),
    }
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
