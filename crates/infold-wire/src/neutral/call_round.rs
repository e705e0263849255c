//! Pairs results with the calls of a round.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use super::NeutralBlock;
use crate::{Json, quote};

/// The calls of one model output that wait for their results.
///
/// A result is paired with its call by id, else by the tool's name, else by order.
#[derive(Debug, Default)]
pub struct CallRound {
    /// Calls of all rounds so far.
    call_count: u64,
    calls: Vec<PendingCall>,
    ids: HashMap<String, VecDeque<usize>>,
    names: HashMap<String, VecDeque<usize>>,
    /// All calls before this index are answered.
    first: usize,
    answered: usize,
}

/// A call, in JSON strings.
#[derive(Debug)]
pub struct PendingCall {
    /// The call's new id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    answered: bool,
}

impl CallRound {
    /// Starts a new output: calls without a result no longer wait.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.ids.clear();
        self.names.clear();
        self.first = 0;
        self.answered = 0;
    }

    /// Counts a call and returns its number.
    pub fn count_call(&mut self) -> u64 {
        self.call_count += 1;
        self.call_count
    }

    /// Adds a call with the id `given`, whose new id is `id`.
    pub fn add_call(&mut self, given: &str, name: &str, id: String) {
        let at = self.calls.len();
        let queue = |map: &mut HashMap<String, VecDeque<usize>>, key: &str| {
            if key != "\"\"" {
                map.entry(normalize_string(key).into_owned())
                    .or_default()
                    .push_back(at);
            }
        };
        queue(&mut self.ids, given);
        queue(&mut self.names, name);
        self.calls.push(PendingCall {
            id,
            name: name.to_owned(),
            answered: false,
        });
    }

    /// Returns whether a call of the round had this id.
    pub fn has(&self, given: &str) -> bool {
        self.ids.contains_key(&*normalize_string(given))
    }

    /// Finds the call that a result answers, and marks it as answered.
    pub fn answer(&mut self, id: &str, name: &str) -> Option<&PendingCall> {
        let CallRound {
            calls,
            ids,
            names,
            first,
            ..
        } = self;
        let waiting = |map: &mut HashMap<String, VecDeque<usize>>, key: &str| {
            let queue = map.get_mut(&*normalize_string(key))?;
            while let Some(at) = queue.pop_front() {
                if !calls[at].answered {
                    return Some(at);
                }
            }
            None
        };
        let at = match (id, name) {
            ("\"\"", "\"\"") => {
                while calls.get(*first).is_some_and(|call| call.answered) {
                    *first += 1;
                }
                (*first < calls.len()).then_some(*first)
            }
            ("\"\"", name) => waiting(names, name),
            (id, _) => waiting(ids, id),
        }?;
        self.answered += 1;
        self.calls[at].answered = true;
        Some(&self.calls[at])
    }

    /// Returns whether every call has its result.
    pub fn is_answered(&self) -> bool {
        self.answered == self.calls.len()
    }

    /// Gives calls without an id one, and their results the same.
    pub fn assign_id(&mut self, block: &mut NeutralBlock<'_>) {
        match block {
            NeutralBlock::Call(id, name, _) => {
                let number = self.count_call();
                let given = id.clone();
                if id == "\"\"" {
                    *id = Cow::Owned(format!("\"call_{number}\""));
                }
                self.add_call(&given, name, id.to_string());
            }
            NeutralBlock::Result { id, name, .. } => {
                let call = self.answer(id, name);
                if id == "\"\"" {
                    *id = call.map_or(name.clone(), |call| Cow::Owned(call.id.clone()));
                }
            }
            _ => {}
        }
    }
}

/// Returns a JSON string without needless escapes, for comparing.
fn normalize_string(string: &str) -> Cow<'_, str> {
    if !string.contains('\\') {
        return Cow::Borrowed(string);
    }
    let text = Json::checked(string.as_bytes()).text();
    Cow::Owned(quote(&text.unwrap_or_default()))
}
