use infold_log::{Call, Source};

use super::{INTERRUPTED, Rendered, splice};
use crate::message::block_is;
use crate::{Form, Json, Message, MessageError, quote};

/// How a round's calls are written, and so how their results must be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
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

impl Dialect {
    pub fn of(message: &Message<'_>) -> Dialect {
        if message.form() == Form::Content {
            Dialect::Contents
        } else if let Form::Item(_) = message.form() {
            Dialect::Items
        } else if message.blocks().any(|block| block_is(block, "tool_use")) {
            Dialect::Blocks
        } else if message
            .json()
            .get("tool_calls")
            .is_none_or(|calls| calls.is_null())
        {
            Dialect::Function
        } else {
            Dialect::Chat
        }
    }
}

/// Answers calls that were items, each by the item that its kind of call wants.
pub(super) fn interrupt_items(
    waiting: &[Call],
    items: Vec<(Call, String)>,
    shown: &mut Vec<Rendered>,
) {
    let mut items = items.into_iter();
    // What waits is what was called, in the same order, without what was answered.
    shown.extend(waiting.iter().map(|call| {
        let kind = items.by_ref().find(|(item, _)| item == call);
        let kind = kind.map_or("function_call".to_owned(), |(_, kind)| kind);
        repair(interrupted_item(call, &kind))
    }));
}

/// Answers calls whose results all stand in one message of the user's.
pub(super) fn interrupt_blocks(
    waiting: &[Call],
    dialect: Dialect,
    shown: &mut Vec<Rendered>,
) -> Result<(), MessageError> {
    let gemini = dialect == Dialect::Contents;
    let block = if gemini {
        interrupted_part
    } else {
        interrupted_block
    };
    let blocks: Vec<String> = waiting.iter().map(block).collect();
    let blocks = blocks.join(",");
    for line in shown.iter_mut().skip(1) {
        let message = Message::read(&line.bytes)?;
        // A result from a client that mixes the forms has no place for a block.
        let list = match gemini {
            true => message.contents(),
            false => message
                .content()
                .filter(|_| message.results().next().is_some()),
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

pub(super) fn repair(message: String) -> Rendered {
    Rendered {
        source: Source::Repair,
        bytes: message.into_bytes(),
    }
}

fn interrupted_item(call: &Call, kind: &str) -> String {
    let id = quote(call.id.as_deref().unwrap_or_default());
    let text = quote(INTERRUPTED);
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
    let text = quote(INTERRUPTED);
    format!(r#"{{"functionResponse":{{{id}"name":{name},"response":{{"error":{text}}}}}}}"#)
}

pub(super) fn interrupted_message(call: &Call, dialect: Dialect) -> String {
    let content = quote(INTERRUPTED);
    let name = call.name.as_deref().unwrap_or_default();
    match (&call.id, dialect) {
        (Some(id), _) => {
            let id = quote(id);
            format!(r#"{{"role":"tool","tool_call_id":{id},"content":{content}}}"#)
        }
        (None, Dialect::Function) => {
            let name = quote(name);
            format!(r#"{{"role":"function","name":{name},"content":{content}}}"#)
        }
        (None, _) => {
            let name = quote(name);
            format!(r#"{{"role":"tool","tool_name":{name},"content":{content}}}"#)
        }
    }
}

fn interrupted_block(call: &Call) -> String {
    let id = quote(call.id.as_deref().unwrap_or_default());
    let content = quote(INTERRUPTED);
    format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content},"is_error":true}}"#)
}
