//! Changes of the layered state of a task.

use infold_log::EventId;
use infold_wire::Json;

use super::{number, raw};

/// The author of a change of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateAuthor {
    /// A person: it is a step, which `undo` takes back.
    Person,
    /// A model.
    Model,
    /// The proxy, which keeps a state in force where a client went back to an earlier message.
    Proxy,
}

/// A change of the layered state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateLine {
    /// The author of the change.
    pub author: StateAuthor,
    /// The change before it that was in force.
    pub previous: Option<EventId>,
    /// The changes that produce the whole state before this one, as a JSON array, so that earlier events need
    /// not be read.
    pub base: Option<String>,
    /// The changes, a JSON array.
    pub changes: String,
}

impl StateLine {
    pub(super) fn encode(&self) -> String {
        let author = match self.author {
            StateAuthor::Person => "person",
            StateAuthor::Model => "model",
            StateAuthor::Proxy => "proxy",
        };
        let previous = self.previous.map_or(String::new(), |previous| {
            format!(r#","previous":{}"#, previous.get())
        });
        let base = self
            .base
            .as_ref()
            .map_or(String::new(), |base| format!(r#","base":{base}"#));
        let changes = &self.changes;
        format!(r#","by":"{author}"{previous}{base},"changes":{changes}"#)
    }

    pub(super) fn decode(json: Json<'_>) -> Option<StateLine> {
        let by = json.get("by")?;
        Some(StateLine {
            author: if by.is("person") {
                StateAuthor::Person
            } else if by.is("proxy") {
                StateAuthor::Proxy
            } else {
                StateAuthor::Model
            },
            previous: number(json, "previous").and_then(EventId::new),
            base: match json.get("base") {
                Some(base) => Some(raw(base)?),
                None => None,
            },
            changes: raw(json.get("changes")?)?,
        })
    }
}
