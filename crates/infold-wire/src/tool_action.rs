//! Reads the actions of a message: text, tool calls (which file is read, which command runs) and tool results.
//!
//! Calls are recognised by the names of tools and the shapes of their arguments, as the common agents have
//! them; an unknown tool still shows its paths, its command or its arguments.

mod calls_in_text;
mod excerpt;
mod message_text;
mod outcome;
mod todo;
mod tool_call;
mod tool_kind;

use std::borrow::Cow;

use infold_log::Role;

use crate::message::ContentItem;
use crate::{Json, JsonKind, Message, typed_text};

use excerpt::{excerpt, raw_excerpt};
pub use message_text::MessageText;
pub use outcome::{ToolOutcome, read_outcome};
pub use todo::{Todo, TodoState};
pub use tool_call::{COMMAND_KEYS, PATH_KEYS};
pub use tool_kind::{ToolKind, plain_name, tool_kind};

/// The bytes that are read of the front of a longer text.
const FRONT_BYTES: usize = 12 * 1024;
/// The bytes that are read of its end, where outputs say how a command ended.
const BACK_BYTES: usize = 4 * 1024;
/// Longer arguments are not read as JSON.
const MAX_ARGUMENTS_BYTES: usize = 4 << 20;

/// One action of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolAction {
    /// Reads a file.
    Read(String),
    /// Writes a whole file.
    Write(String),
    /// Creates a file.
    Create(String),
    /// Changes part of a file.
    Edit(String),
    /// Removes a file.
    Delete(String),
    /// Renames a file.
    Move {
        /// The old path.
        from: String,
        /// The new path.
        to: String,
    },
    /// Runs a command.
    Run(String),
    /// Searches.
    Search {
        /// The pattern or question.
        what: String,
        /// The path of the search.
        path: Option<String>,
    },
    /// Replaces the list of todos.
    Todos(Vec<Todo>),
    /// Proposes a plan, in words.
    Plan(String),
    /// Does something else: its arguments, shortened.
    Other(String),
}

/// A tool call and its actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The call's id, if it has one.
    pub id: Option<String>,
    /// The tool's name as it was called.
    pub name: String,
    /// Its actions, in order; a patch may change several files.
    pub actions: Vec<ToolAction>,
    /// The values of its arguments, one per line, without file names.
    pub text: String,
}

/// The result of a tool call.
#[derive(Clone, Debug)]
pub struct ToolResult<'a> {
    /// The id of the call it answers, if it has one.
    pub id: Option<String>,
    /// The front and the end of the result.
    pub text: Cow<'a, str>,
    /// Whether the result is marked as an error, if there is a mark at all.
    pub failed: Option<bool>,
}

/// One action of a message.
#[derive(Clone, Debug)]
pub enum MessageAction<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A tool call.
    Call(ToolCall),
    /// The result of a call.
    Result(ToolResult<'a>),
}

/// Returns the actions of `message`, in order. Reasoning is left out, since later messages do not refer to it.
///
/// Time is linear in the message, memory bounded by a few dozen kilobytes for each of its parts.
pub fn message_actions<'a>(message: &Message<'a>) -> Vec<MessageAction<'a>> {
    message_actions_within(message, FRONT_BYTES + BACK_BYTES)
}

/// Like [`message_actions`], but reads at most `max_result_bytes` of each result, of its front and its end.
pub fn message_actions_within<'a>(
    message: &Message<'a>,
    max_result_bytes: usize,
) -> Vec<MessageAction<'a>> {
    let mut out = Vec::new();
    // Some agents write the heading of a result and the result as two texts.
    let mut is_headed = false;
    for (_, piece) in message.content_items() {
        let id = |id: Option<Json<'_>>| id.and_then(Json::text).map(Cow::into_owned);
        match piece {
            ContentItem::Text(text) => {
                is_headed = read_text(message.role(), text, is_headed, &mut out)
            }
            ContentItem::Call {
                id: of,
                tool,
                given,
            } => {
                let call = tool_call::read(id(of), &tool.name(), given);
                out.push(MessageAction::Call(call));
            }
            ContentItem::Result(given) => out.push(MessageAction::Result(ToolResult {
                id: id(given.id),
                failed: given.failed,
                text: given
                    .content
                    .map(|content| result_text(content, max_result_bytes))
                    .unwrap_or_default(),
            })),
            ContentItem::Image => {}
        }
    }
    out
}

/// Reads a text, in which some agents call tools and give results. Returns whether it is only the heading of a result.
fn read_text<'a>(
    role: Role,
    text: Json<'a>,
    is_headed: bool,
    out: &mut Vec<MessageAction<'a>>,
) -> bool {
    // A request of the user is read completely, unless it is a document.
    let scale = if role == Role::User { 4 } else { 1 };
    let (front, back) = (scale * FRONT_BYTES, scale * BACK_BYTES);
    let Some(text) = excerpt(text, front, back) else {
        return false;
    };
    let result = |text| {
        MessageAction::Result(ToolResult {
            id: None,
            text,
            failed: None,
        })
    };
    match role {
        Role::Assistant => calls_in_text::split(text, out),
        Role::User if is_headed => out.push(result(text)),
        Role::User => match typed_text::tool_output(&text) {
            Some("") => return true,
            Some(output) => out.push(result(Cow::Owned(output.to_owned()))),
            None => out.push(MessageAction::Text(text)),
        },
        _ => out.push(MessageAction::Text(text)),
    }
    false
}

fn result_text(content: Json<'_>, max_bytes: usize) -> Cow<'_, str> {
    let (front, back) = (max_bytes - max_bytes / 4, max_bytes / 4);
    if let Some(text) = excerpt(content, front, back) {
        return text;
    }
    if content.kind() == JsonKind::Object {
        return raw_excerpt(content, front, back);
    }
    let mut out = String::new();
    for block in content.elements() {
        if out.len() > max_bytes {
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
