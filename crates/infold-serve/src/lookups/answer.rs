//! Answers calls that were held back: look-ups from the log, others with a refusal.

use std::sync::Arc;

use infold_wire::lookup::{HeldCall, HeldKind, LookupNames, LookupTool};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::conversations::Core;
use crate::mcp::History;

/// A result with less room than this is replaced by a note.
const MIN_RESULT_CHARS: usize = 400;

/// Answers calls within the remaining room for results. Blocks.
pub(super) fn answer(
    core: &Arc<Core>,
    task: Uuid,
    names: Option<LookupNames>,
    calls: &[HeldCall],
    room: &mut usize,
) -> Vec<Result<String, String>> {
    let history = names.map(|names| History::of_conversation(core.contexts.clone(), task, names));
    let mut lookups = 0;
    let answer = |call: &HeldCall| {
        let tool = match &call.kind {
            HeldKind::Lookup(tool) => *tool,
            HeldKind::Refused(told) => {
                let event = json!({ "tool": call.name, "told": told });
                core.publish(task, "refusal", event.to_string());
                return Err(told.clone());
            }
        };
        lookups += 1;
        // Each result leaves room for the next ones.
        let limit = *room / 2;
        let result = if limit < MIN_RESULT_CHARS {
            Err("no room is left for more look-ups: answer with what you have".to_owned())
        } else {
            look_up(history.as_ref(), tool, call).map(|text| cut(text, limit))
        };
        let (Ok(text) | Err(text)) = &result;
        *room -= text.chars().count().min(*room);
        let event = json!({
            "tool": tool.name(),
            "failed": result.is_err(),
            "chars": text.chars().count(),
        });
        core.publish(task, "lookup", event.to_string());
        result
    };
    let answers = calls.iter().map(answer).collect();
    core.metrics.looked_up(lookups);
    answers
}

fn look_up(history: Option<&History>, tool: LookupTool, call: &HeldCall) -> Result<String, String> {
    let arguments = call.arguments.iter().cloned();
    let arguments: Map<String, Value> = arguments
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    match history.and_then(|history| history.call(tool.name(), arguments)) {
        Some(result) => result.map_err(|failure| failure.to_string()),
        None => Err(format!("no tool `{}`", tool.name())),
    }
}

/// Returns a text of at most `limit` characters.
fn cut(text: String, limit: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(limit) else {
        return text;
    };
    let left = text[end..].chars().count();
    format!(
        "{}\n… cut: {left} more characters do not fit the window; ask for less",
        &text[..end]
    )
}
