//! What a message does: reads a file, runs a command, says something, brings a result.
//!
//! Known from the names of tools and the shapes of their arguments, as the common agents have them; a tool
//! nobody knows still shows its paths, its command or its arguments.

mod call;
mod ending;
mod excerpt;
mod inline;
mod todo;
mod words;

use std::borrow::Cow;

use infold_log::Role;

use crate::message::Piece;
use crate::{Json, Kind, Message, typed};

pub use ending::{Ending, ending};
use excerpt::{excerpt, raw_excerpt};
pub use todo::{State, Todo};
pub use words::Words;

/// Of a longer text only this many bytes of its front are looked at,
const FRONT: usize = 12 * 1024;
/// and this many of its end, where outputs say how they ended.
const BACK: usize = 4 * 1024;
/// Longer arguments are not read as JSON.
const ARGUMENTS: usize = 4 << 20;

/// One thing a tool call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Looks at a file.
    Read(String),
    /// Gives a file new contents.
    Write(String),
    /// Makes a file.
    Create(String),
    /// Changes part of a file.
    Edit(String),
    /// Removes a file.
    Delete(String),
    /// Gives a file another name.
    Move {
        /// What it was called.
        from: String,
        /// What it is called now.
        to: String,
    },
    /// Runs a command.
    Run(String),
    /// Looks for something.
    Search {
        /// The pattern or question.
        what: String,
        /// Where it looks.
        path: Option<String>,
    },
    /// Sets the list of things to do, whole.
    Todos(Vec<Todo>),
    /// Proposes a plan, in words.
    Plan(String),
    /// Anything else: its arguments, shortened.
    Other(String),
}

/// A tool call and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The call's id, if it has one.
    pub id: Option<String>,
    /// The tool's name as it was called.
    pub name: String,
    /// What it does, in order; a patch may change several files.
    pub acts: Vec<Act>,
    /// What its arguments say, texts one per line, without file names.
    pub text: String,
}

/// What a tool gave back.
#[derive(Clone, Debug)]
pub struct Given<'a> {
    /// The id of the call it answers, if it has one.
    pub id: Option<String>,
    /// The front and the end of it.
    pub text: Cow<'a, str>,
    /// Whether it is marked as an error, if it is marked at all.
    pub failed: Option<bool>,
}

/// Something a message does.
#[derive(Clone, Debug)]
pub enum Deed<'a> {
    /// It says this.
    Said(Cow<'a, str>),
    /// It calls a tool.
    Called(Called),
    /// It brings a result.
    Given(Given<'a>),
}

/// Returns what `message` does, in order. Reasoning is left out: nobody is meant to refer to it.
///
/// Time is linear in the message, memory bounded by a few dozen kilobytes for each of its parts.
pub fn deeds<'a>(message: &Message<'a>) -> Vec<Deed<'a>> {
    deeds_within(message, FRONT + BACK)
}

/// As [`deeds`], but of each result only so many bytes, of its front and its end, are looked at.
pub fn deeds_within<'a>(message: &Message<'a>, most: usize) -> Vec<Deed<'a>> {
    let mut out = Vec::new();
    // Some headings of results have the result in the next text.
    let mut is_headed = false;
    for (_, piece) in message.pieces() {
        let id = |id: Option<Json<'_>>| id.and_then(Json::text).map(Cow::into_owned);
        match piece {
            Piece::Text(text) => is_headed = said(message.role(), text, is_headed, &mut out),
            Piece::Call {
                id: of,
                tool,
                given,
            } => {
                out.push(Deed::Called(call::read(id(of), &tool.name(), given)));
            }
            Piece::Result(given) => out.push(Deed::Given(Given {
                id: id(given.id),
                failed: given.failed,
                text: given
                    .content
                    .map(|content| result_text(content, most))
                    .unwrap_or_default(),
            })),
            Piece::Image => {}
        }
    }
    out
}

/// Some agents call tools, and answer the calls, in plain text. Returns whether the answer follows.
fn said<'a>(role: Role, text: Json<'a>, is_headed: bool, out: &mut Vec<Deed<'a>>) -> bool {
    // What people ask for is read whole, if it is no document.
    let (front, back) = match role {
        Role::User => (4 * FRONT, 4 * BACK),
        Role::Assistant | Role::System | Role::Tool => (FRONT, BACK),
    };
    let Some(text) = excerpt(text, front, back) else {
        return false;
    };
    let given = |text| {
        Deed::Given(Given {
            id: None,
            text,
            failed: None,
        })
    };
    match role {
        Role::Assistant => inline::split(text, out),
        Role::User if is_headed => out.push(given(text)),
        Role::User => match typed::output(&text) {
            Some("") => return true,
            Some(output) => out.push(given(Cow::Owned(output.to_owned()))),
            None => out.push(Deed::Said(text)),
        },
        _ => out.push(Deed::Said(text)),
    }
    false
}

fn result_text(content: Json<'_>, most: usize) -> Cow<'_, str> {
    let (front, back) = (most - most / 4, most / 4);
    if let Some(text) = excerpt(content, front, back) {
        return text;
    }
    if content.kind() == Kind::Object {
        return raw_excerpt(content, front, back);
    }
    let mut out = String::new();
    for block in content.elements() {
        if out.len() > most {
            break;
        }
        let text = block.get("text").unwrap_or(block);
        if let Some(text) = excerpt(text, front, back) {
            out.push_str(&text);
            out.push('\n');
        }
    }
    Cow::Owned(out)
}
