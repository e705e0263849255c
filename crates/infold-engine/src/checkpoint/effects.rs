//! Finds out which calls may have changed files.

use infold_log::Role;
use infold_wire::Message;
use infold_wire::tool_action::{MessageAction, ToolAction, message_actions};

/// Returns whether a message calls a tool that may write. An unknown tool may.
pub fn may_write(message: &Message<'_>) -> bool {
    message_actions(message).iter().any(|action| match action {
        MessageAction::Call(call) => call.actions.is_empty() || call.actions.iter().any(writes),
        MessageAction::Text(_) | MessageAction::Result(_) => false,
    })
}

fn writes(action: &ToolAction) -> bool {
    match action {
        ToolAction::Read(_)
        | ToolAction::Search { .. }
        | ToolAction::Todos(_)
        | ToolAction::Plan(_) => false,
        ToolAction::Write(_)
        | ToolAction::Create(_)
        | ToolAction::Edit(_)
        | ToolAction::Delete(_)
        | ToolAction::Move { .. }
        | ToolAction::Run(_)
        | ToolAction::Other(_) => true,
    }
}

/// Finds out whether the last messages of a conversation have results of calls that may have written.
///
/// They are read backwards, up to the end of the model's last reply.
#[derive(Debug, Default)]
pub struct ResultScan {
    has_result: bool,
    is_in_reply: bool,
}

impl ResultScan {
    /// Takes the message before the last one that was taken; returns the answer once it is known.
    pub fn push(&mut self, message: &Message<'_>) -> Option<bool> {
        if message.role() == Role::Assistant {
            self.is_in_reply = true;
            return match (self.has_result, may_write(message)) {
                (false, _) => Some(false),
                (true, true) => Some(true),
                // Some clients send each part of a reply as a separate message.
                (true, false) => None,
            };
        }
        if self.is_in_reply {
            return Some(false);
        }
        let brings = |action: &MessageAction<'_>| matches!(action, MessageAction::Result(_));
        self.has_result |=
            message.role() == Role::Tool || message_actions(message).iter().any(brings);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(messages: &[&str]) -> bool {
        let mut scan = ResultScan::default();
        let mut newest_first = messages.iter().rev();
        let found =
            newest_first.find_map(|text| scan.push(&Message::parse(text.as_bytes()).unwrap()));
        found.unwrap_or(false)
    }

    #[test]
    fn only_results_of_calls_that_may_write_count() {
        let call = |name: &str, input: &str| {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"{name}","input":{input}}}]}}"#
            )
        };
        let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"ok"}]}"#;
        let said = r#"{"role":"user","content":"go on"}"#;
        let read = call("Read", r#"{"file_path":"a.rs"}"#);
        let edit = call(
            "Edit",
            r#"{"file_path":"a.rs","old_string":"a","new_string":"b"}"#,
        );
        let other = call("mcp__x__frob", r#"{"n":1}"#);
        assert!(asks(&[said, &edit, result]));
        assert!(asks(&[said, &other, result]));
        assert!(
            asks(&[&edit, result, said]),
            "the user typed behind the results"
        );
        assert!(!asks(&[said, &read, result]));
        assert!(!asks(&[said, &edit]));
        assert!(!asks(&[
            &edit,
            result,
            r#"{"role":"assistant","content":"done"}"#,
            said
        ]));
        let chat = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]}"#;
        assert!(asks(&[
            said,
            chat,
            r#"{"role":"tool","tool_call_id":"a","content":"x"}"#
        ]));
    }
}
