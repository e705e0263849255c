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

use crate::{Json, Kind, Message};

pub use ending::{Ending, ending};
use excerpt::excerpt;
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
    // In one pass: each look at a member is a pass over the message.
    let [mut calls, mut call, mut id, mut error] = [None; 4];
    for (key, value) in message.json().members() {
        match &*key.name() {
            b"tool_calls" => calls = Some(value),
            b"function_call" => call = Some(value),
            b"tool_call_id" => id = Some(value),
            b"is_error" | b"isError" => error = Some(value),
            _ => {}
        }
    }
    match message.content() {
        Some(content) if message.role() == Role::Tool => out.push(Deed::Given(Given {
            id: id.and_then(Json::text).map(Cow::into_owned),
            failed: error.and_then(marked),
            text: result_text(content, most),
        })),
        Some(content) if content.kind() == Kind::String => {
            said(message.role(), content, &mut out);
        }
        Some(content) => {
            for block in content.elements() {
                block_deed(message.role(), block, most, &mut out);
            }
        }
        None => {}
    }
    if message.role() == Role::Assistant {
        chat_calls(calls, call, &mut out);
    }
    out
}

fn block_deed<'a>(role: Role, block: Json<'a>, most: usize, out: &mut Vec<Deed<'a>>) {
    // In one pass: a block may be large, and each look at a member is a pass.
    let [
        mut kind,
        mut id,
        mut name,
        mut input,
        mut content,
        mut text,
        mut error,
    ] = [None; 7];
    for (key, value) in block.members() {
        match &*key.name() {
            b"type" => kind = Some(value),
            b"id" | b"tool_use_id" => id = Some(value),
            b"name" => name = Some(value),
            b"input" => input = Some(value),
            b"content" => content = Some(value),
            b"text" => text = Some(value),
            b"is_error" | b"isError" => error = Some(value),
            _ => {}
        }
    }
    let id = id.and_then(Json::text).map(Cow::into_owned);
    let kind = kind.map(Json::name).unwrap_or_default();
    match (&*kind, role) {
        (b"tool_use", Role::Assistant) => {
            let name = name.and_then(Json::text).unwrap_or_default();
            out.push(Deed::Called(call::read(id, &name, input)));
        }
        (b"tool_result", _) => out.push(Deed::Given(Given {
            id,
            failed: error.and_then(marked),
            text: content
                .map(|content| result_text(content, most))
                .unwrap_or_default(),
        })),
        _ => {
            if let Some(text) = text {
                said(role, text, out);
            }
        }
    }
}

/// Some agents call tools, and answer the calls, in plain text.
fn said<'a>(role: Role, text: Json<'a>, out: &mut Vec<Deed<'a>>) {
    let Some(text) = excerpt(text, FRONT, BACK) else {
        return;
    };
    match role {
        Role::Assistant => inline::split(text, out),
        Role::User => match inline::answer(&text) {
            Some(answer) => out.push(Deed::Given(Given {
                id: None,
                text: Cow::Owned(answer.to_owned()),
                failed: None,
            })),
            None => out.push(Deed::Said(text)),
        },
        _ => out.push(Deed::Said(text)),
    }
}

fn chat_calls(calls: Option<Json<'_>>, call: Option<Json<'_>>, out: &mut Vec<Deed<'_>>) {
    let chat = calls.into_iter().flat_map(Json::elements);
    let legacy = call.map(|call| (None, Some(call)));
    let chat = chat.map(|call| {
        let inner = call.get("function").or_else(|| call.get("custom"));
        (call.get("id").and_then(Json::text), inner)
    });
    for (id, call) in chat.chain(legacy) {
        let Some(call) = call else { continue };
        let name = call.get("name").and_then(Json::text).unwrap_or_default();
        let arguments = call.get("arguments").or_else(|| call.get("input"));
        out.push(Deed::Called(call::read(
            id.map(Cow::into_owned),
            &name,
            arguments,
        )));
    }
}

fn marked(mark: Json<'_>) -> Option<bool> {
    (mark.kind() == Kind::Bool).then(|| mark.is_true())
}

fn result_text(content: Json<'_>, most: usize) -> Cow<'_, str> {
    let (front, back) = (most - most / 4, most / 4);
    if let Some(text) = excerpt(content, front, back) {
        return text;
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
