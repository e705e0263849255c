//! Assigns the pieces of a stream to the calls of a chat.

use std::collections::HashMap;

use super::growing_json::{text_of, token_count};
use crate::value_end::ValueEnd;
use crate::{Json, JsonKind};

/// The calls of a chat so far. The place of a call is the number of calls before it.
#[derive(Debug, Default)]
pub(crate) struct CallPlaces {
    calls: Vec<BegunCall>,
    /// The call that an index refers to now.
    by_index: HashMap<u64, usize>,
}

#[derive(Debug, Default)]
struct BegunCall {
    index: u64,
    id: Option<String>,
    name: String,
    arguments: ArgumentsEnd,
}

impl CallPlaces {
    /// Returns the place of the call that a piece belongs to. A piece that is a whole call, or belongs to none, begins
    /// a new one.
    pub fn place(&mut self, piece: Json<'_>, is_whole: bool) -> usize {
        let known = self.find(piece).filter(|_| !is_whole);
        let PieceOfCall {
            index,
            id,
            name,
            arguments,
        } = PieceOfCall::of(piece);
        let at = known.unwrap_or_else(|| {
            self.calls.push(BegunCall {
                index: index.unwrap_or(self.calls.len() as u64),
                ..BegunCall::default()
            });
            self.calls.len() - 1
        });
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        let call = &mut self.calls[at];
        call.id = call.id.take().or(id);
        if let Some(name) = name.filter(|name| *name != call.name) {
            call.name.push_str(&name);
        }
        if let Some(arguments) = arguments {
            call.arguments.push(arguments);
        }
        at
    }

    /// Finds the call that a piece continues.
    pub fn find(&self, piece: Json<'_>) -> Option<usize> {
        let PieceOfCall {
            index,
            id,
            name,
            arguments,
        } = PieceOfCall::of(piece);
        let by_id = || {
            let mut places = (0..self.calls.len()).rev();
            places.find(|at| self.calls[*at].id == id)
        };
        let at = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None if id.is_some() => by_id(),
            None => self.calls.len().checked_sub(1).filter(|_| name.is_none()),
        }?;
        let Some(name) = name else { return Some(at) };
        let call = &self.calls[at];
        // Some servers give all calls the same index: another id with a name is another call.
        let is_other_id = id.is_some() && call.id.is_some() && call.id != id;
        let is_other_name = call.name != name && index.is_none();
        // Others give all of them the same id, or none. A merely repeated name comes before the arguments end.
        let is_over = call.arguments.is_over && arguments.is_some_and(|given| !given.is_blank());
        (!is_other_id && !is_other_name && !is_over).then_some(at)
    }

    /// Returns the places of the calls in the order of their message.
    pub fn order(&self) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.calls.len()).collect();
        places.sort_by_key(|at| self.calls[*at].index);
        places
    }
}

struct PieceOfCall<'a> {
    index: Option<u64>,
    id: Option<String>,
    name: Option<String>,
    arguments: Option<Json<'a>>,
}

impl<'a> PieceOfCall<'a> {
    fn of(piece: Json<'a>) -> PieceOfCall<'a> {
        let [index, id, function, custom] = piece.pick(["index", "id", "function", "custom"]);
        let inner = function.or(custom).unwrap_or(piece);
        let [name, arguments, input] = inner.pick(["name", "arguments", "input"]);
        let index = index.filter(|index| index.kind() == JsonKind::Number);
        let text = |json| text_of(json).filter(|text| !text.is_empty());
        PieceOfCall {
            index: index.map(|index| token_count(Some(index))),
            id: text(id),
            name: text(name),
            arguments: arguments.or(input).filter(|given| !given.is_null()),
        }
    }
}

/// Whether streamed arguments are a complete object.
#[derive(Debug, Default)]
struct ArgumentsEnd {
    value_end: ValueEnd,
    has_begun: bool,
    is_over: bool,
}

impl ArgumentsEnd {
    fn push(&mut self, piece: Json<'_>) {
        let Some(text) = text_of(Some(piece)) else {
            // An object where its text belongs.
            self.is_over = true;
            return;
        };
        let text = if self.has_begun {
            &text
        } else {
            text.trim_start_matches(|char| char != '{' && char != '[')
        };
        self.has_begun |= !text.is_empty();
        self.is_over |= self.value_end.feed(text.as_bytes()).is_some();
    }
}
