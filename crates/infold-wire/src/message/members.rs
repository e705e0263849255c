use super::native::{ALL, OLLAMA, both, takes};
use crate::{Json, Kind, Wires};

/// The members of a message that say something to us.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members<'a> {
    pub role: Option<Json<'a>>,
    pub content: Option<Json<'a>>,
    pub tool_calls: Option<Json<'a>>,
    pub function_call: Option<Json<'a>>,
    pub tool_call_id: Option<Json<'a>>,
    pub name: Option<Json<'a>>,
    /// Gemini's content.
    pub parts: Option<Json<'a>>,
    /// What an item of Responses is,
    pub kind: Option<Json<'a>>,
    /// what it is known by,
    pub id: Option<Json<'a>>,
    /// which call it makes or answers,
    pub call_id: Option<Json<'a>>,
    /// and with what.
    pub output: Option<Json<'a>>,
    /// There is one beside `content` that says something.
    pub speaks: bool,
    /// There is one that holds reasoning.
    pub reasons: bool,
    /// The wires that take all of them.
    pub takes: Wires,
}

impl<'a> Members<'a> {
    /// Before the first one.
    pub fn none() -> Members<'a> {
        Members {
            role: None,
            content: None,
            tool_calls: None,
            function_call: None,
            tool_call_id: None,
            name: None,
            parts: None,
            kind: None,
            call_id: None,
            id: None,
            output: None,
            speaks: false,
            reasons: false,
            takes: ALL,
        }
    }

    /// Takes the next one.
    pub fn take(&mut self, key: Json<'a>, value: Json<'a>) {
        let given = !value.is_null();
        let name = key.name();
        self.takes = both(self.takes, takes(&name));
        match &*name {
            b"role" => self.role = given.then_some(value),
            b"content" => self.content = Some(value),
            // An empty list calls nobody, and says nothing either.
            b"tool_calls" => {
                self.tool_calls = Some(value).filter(|calls| calls.elements().next().is_some());
                if self.tool_calls.is_none() && given {
                    self.takes = both(self.takes, OLLAMA);
                }
            }
            b"function_call" => self.function_call = given.then_some(value),
            b"tool_call_id" => self.tool_call_id = given.then_some(value),
            b"name" | b"tool_name" => self.name = given.then_some(value),
            b"parts" => self.parts = Some(value).filter(|parts| parts.kind() == Kind::Array),
            b"type" => self.kind = Some(value),
            b"call_id" => self.call_id = given.then_some(value),
            b"id" => self.id = Some(value).filter(|id| id.kind() == Kind::String),
            b"output" => self.output = given.then_some(value),
            b"reasoning_content" | b"reasoning" | b"reasoning_details" | b"thinking" => {
                self.reasons |= given;
            }
            b"refusal" | b"audio" | b"images" => self.speaks |= given,
            _ => {}
        }
    }
}
