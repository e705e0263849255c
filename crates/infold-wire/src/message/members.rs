//! The members of a message that the other modules read, collected in one pass.

use super::native::{ALL, OLLAMA, accepting_wires, intersect};
use crate::{Json, JsonKind, Wires};

/// The members of a message that matter.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessageMembers<'a> {
    pub role: Option<Json<'a>>,
    pub content: Option<Json<'a>>,
    pub tool_calls: Option<Json<'a>>,
    pub function_call: Option<Json<'a>>,
    pub tool_call_id: Option<Json<'a>>,
    pub name: Option<Json<'a>>,
    /// Gemini's content.
    pub parts: Option<Json<'a>>,
    /// `type`, of an item of Responses.
    pub kind: Option<Json<'a>>,
    pub id: Option<Json<'a>>,
    pub call_id: Option<Json<'a>>,
    pub output: Option<Json<'a>>,
    /// Whether it has a refusal, audio or images beside `content`.
    pub has_other_content: bool,
    pub has_reasoning: bool,
    /// The wires that accept all of the members.
    pub wires: Wires,
}

impl<'a> MessageMembers<'a> {
    pub fn new() -> MessageMembers<'a> {
        MessageMembers {
            wires: ALL,
            ..MessageMembers::default()
        }
    }

    /// Adds the next member.
    pub fn insert(&mut self, key: Json<'a>, value: Json<'a>) {
        let is_set = !value.is_null();
        let name = key.name();
        self.wires = intersect(self.wires, accepting_wires(&name));
        match &*name {
            b"role" => self.role = is_set.then_some(value),
            b"content" => self.content = Some(value),
            // An empty list counts as no list.
            b"tool_calls" => {
                self.tool_calls = Some(value).filter(|calls| calls.elements().next().is_some());
                if self.tool_calls.is_none() && is_set {
                    self.wires = intersect(self.wires, OLLAMA);
                }
            }
            b"function_call" => self.function_call = is_set.then_some(value),
            b"tool_call_id" => self.tool_call_id = is_set.then_some(value),
            b"name" | b"tool_name" => self.name = is_set.then_some(value),
            b"parts" => self.parts = Some(value).filter(|parts| parts.kind() == JsonKind::Array),
            b"type" => self.kind = Some(value),
            b"call_id" => self.call_id = is_set.then_some(value),
            b"id" => self.id = Some(value).filter(|id| id.kind() == JsonKind::String),
            b"output" => self.output = is_set.then_some(value),
            b"reasoning_content" | b"reasoning" | b"reasoning_details" | b"thinking" => {
                self.has_reasoning |= is_set;
            }
            b"refusal" | b"audio" | b"images" => self.has_other_content |= is_set,
            _ => {}
        }
    }
}
