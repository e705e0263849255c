//! Which result answers which call.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use super::Block;
use crate::{Json, quote};

/// The calls of one model output that wait for their results.
///
/// A result is paired with its call by id, else by the tool's name, else by order.
#[derive(Debug, Default)]
pub struct Round {
    /// Calls of all rounds so far.
    made: u64,
    calls: Vec<Made>,
    ids: HashMap<String, VecDeque<usize>>,
    names: HashMap<String, VecDeque<usize>>,
    /// No call before this one waits.
    first: usize,
    answered: usize,
}

/// A call, in JSON strings.
#[derive(Debug)]
pub struct Made {
    /// Its id as it is known from now on.
    pub id: String,
    /// The tool.
    pub name: String,
    answered: bool,
}

impl Round {
    /// Starts with a new output: what was not answered is not waited for any more.
    pub fn clear(&mut self) {
        self.calls.clear();
        self.ids.clear();
        self.names.clear();
        self.first = 0;
        self.answered = 0;
    }

    /// Counts a call and returns its number.
    pub fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Takes a call that was made under one id and is known by another.
    pub fn call(&mut self, given: &str, name: &str, id: String) {
        let at = self.calls.len();
        let queue = |map: &mut HashMap<String, VecDeque<usize>>, key: &str| {
            if key != "\"\"" {
                map.entry(plain(key).into_owned())
                    .or_default()
                    .push_back(at);
            }
        };
        queue(&mut self.ids, given);
        queue(&mut self.names, name);
        self.calls.push(Made {
            id,
            name: name.to_owned(),
            answered: false,
        });
    }

    /// Says whether a call was made under this id.
    pub fn has(&self, given: &str) -> bool {
        self.ids.contains_key(&*plain(given))
    }

    /// Finds the call that a result answers.
    pub fn answer(&mut self, id: &str, name: &str) -> Option<&Made> {
        let Round {
            calls,
            ids,
            names,
            first,
            ..
        } = self;
        let waiting = |map: &mut HashMap<String, VecDeque<usize>>, key: &str| {
            let queue = map.get_mut(&*plain(key))?;
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

    /// Says whether no call waits.
    pub fn is_answered(&self) -> bool {
        self.answered == self.calls.len()
    }

    /// Gives calls without an id one, and their results the same.
    pub fn settle(&mut self, block: &mut Block<'_>) {
        match block {
            Block::Call(id, name, _) => {
                let number = self.next();
                let given = id.clone();
                if id == "\"\"" {
                    *id = Cow::Owned(format!("\"call_{number}\""));
                }
                self.call(&given, name, id.to_string());
            }
            Block::Result { id, name, .. } => {
                let made = self.answer(id, name);
                if id == "\"\"" {
                    *id = made.map_or(name.clone(), |made| Cow::Owned(made.id.clone()));
                }
            }
            _ => {}
        }
    }
}

/// A JSON string in the one form it has with no escape that is not needed.
fn plain(string: &str) -> Cow<'_, str> {
    match string.contains('\\') {
        true => Cow::Owned(quote(
            &Json::checked(string.as_bytes()).text().unwrap_or_default(),
        )),
        false => Cow::Borrowed(string),
    }
}
