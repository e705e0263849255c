//! Results for calls that were interrupted.

use infold_log::{Call, Source};

use super::{INTERRUPTED_RESULT, RenderedMessage};
use crate::edits::splice;
use crate::message::block_is;
use crate::{Form, Json, Message, MessageError, quote};

/// The form of a round's calls, which decides the form of their results.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallDialect {
    /// `tool_calls`, answered by messages of role `tool`.
    Chat,
    /// `function_call`, answered by a message of role `function`.
    Function,
    /// `tool_use` blocks, answered by `tool_result` blocks in one user message.
    Blocks,
    /// `functionCall` parts, answered by `functionResponse` parts in one user content.
    Contents,
    /// Items, each answered by an item.
    Items,
}

impl CallDialect {
    pub fn of(message: &Message<'_>) -> CallDialect {
        let calls = || message.json().get("tool_calls");
        match message.form() {
            Form::Content => CallDialect::Contents,
            Form::Item(_) => CallDialect::Items,
            Form::Turn if message.blocks().any(|block| block_is(block, "tool_use")) => {
                CallDialect::Blocks
            }
            Form::Turn if calls().is_none_or(Json::is_null) => CallDialect::Function,
            Form::Turn => CallDialect::Chat,
        }
    }
}

/// Answers calls that are items, each by an item of the matching type.
pub(super) fn interrupt_items(
    waiting: &[Call],
    items: Vec<(Call, String)>,
    shown: &mut Vec<RenderedMessage>,
) {
    let mut items = items.into_iter();
    // The waiting calls are in the same order as the items.
    shown.extend(waiting.iter().map(|call| {
        let kind = items.by_ref().find(|(item, _)| item == call);
        let kind = kind.map_or("function_call".to_owned(), |(_, kind)| kind);
        repair(interrupted_item(call, &kind))
    }));
}

/// Answers calls whose results are all in one user message.
pub(super) fn interrupt_blocks(
    waiting: &[Call],
    dialect: CallDialect,
    shown: &mut Vec<RenderedMessage>,
) -> Result<(), MessageError> {
    let gemini = dialect == CallDialect::Contents;
    let block = if gemini {
        interrupted_part
    } else {
        interrupted_block
    };
    let blocks: Vec<String> = waiting.iter().map(block).collect();
    let blocks = blocks.join(",");
    for line in shown.iter_mut().skip(1) {
        let message = Message::read(&line.bytes)?;
        // A client that mixes the forms may send a result that is not a list of blocks.
        let list = if gemini {
            message.gemini_parts()
        } else {
            let has_results = message.results().next().is_some();
            message.content().filter(|_| has_results)
        };
        let list = list.filter(|_| !message.answers().is_empty());
        if let Some(list) = list.map(Json::range) {
            let at = list.start + 1;
            line.bytes = splice(&line.bytes, &[(at..at, format!("{blocks},"))]);
            return Ok(());
        }
    }
    let content = if gemini { "parts" } else { "content" };
    shown.push(repair(format!(
        r#"{{"role":"user","{content}":[{blocks}]}}"#
    )));
    Ok(())
}

pub(super) fn repair(message: String) -> RenderedMessage {
    RenderedMessage {
        source: Source::Repair,
        bytes: message.into_bytes(),
    }
}

fn interrupted_item(call: &Call, kind: &str) -> String {
    let id = quote(call.id.as_deref().unwrap_or_default());
    let text = quote(INTERRUPTED_RESULT);
    let output = match kind {
        "shell_call" => format!(
            r#"[{{"stdout":"","stderr":{text},"outcome":{{"type":"exit","exit_code":1}}}}]"#
        ),
        "apply_patch_call" => format!(r#"{text},"status":"failed""#),
        _ => text,
    };
    let kind = quote(&format!("{kind}_output"));
    format!(r#"{{"type":{kind},"call_id":{id},"output":{output}}}"#)
}

fn interrupted_part(call: &Call) -> String {
    let id = call.id.as_deref().map(quote);
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    let name = quote(call.name.as_deref().unwrap_or_default());
    let text = quote(INTERRUPTED_RESULT);
    format!(r#"{{"functionResponse":{{{id}"name":{name},"response":{{"error":{text}}}}}}}"#)
}

pub(super) fn interrupted_message(call: &Call, dialect: CallDialect) -> String {
    let (role, member, value) = match (&call.id, dialect) {
        (Some(id), _) => ("tool", "tool_call_id", Some(id)),
        (None, CallDialect::Function) => ("function", "name", call.name.as_ref()),
        (None, _) => ("tool", "tool_name", call.name.as_ref()),
    };
    let value = quote(value.map_or("", |value| value));
    let content = quote(INTERRUPTED_RESULT);
    format!(r#"{{"role":"{role}","{member}":{value},"content":{content}}}"#)
}

fn interrupted_block(call: &Call) -> String {
    let id = quote(call.id.as_deref().unwrap_or_default());
    let content = quote(INTERRUPTED_RESULT);
    format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content},"is_error":true}}"#)
}
