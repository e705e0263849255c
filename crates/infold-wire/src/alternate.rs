//! Separators between two turns of one role, for providers that want roles to alternate.

use infold_log::{Role, Rounds, Seq};

use crate::render::SEPARATOR_TEXT;
use crate::{Form, Item, Message, Wire, render_text};

/// Finds the places that need a separator in messages to a provider that wants roles to alternate.
///
/// That may apply always, or only where messages were left out: on Gemini's wire, a turn of the model with calls must
/// follow one of the user's; on Anthropic's, a later system message must be between one of the user's and one of the
/// model's.
#[derive(Clone, Debug)]
pub struct Alternation {
    wire: Wire,
    always: bool,
    rounds: Rounds,
    count: u64,
    last: Option<Role>,
    /// The role of the last turn without calls and results: some servers do not count those.
    last_turn: Option<Role>,
    /// `last_turn` before the current output, whose text does not count either if it calls.
    turn_before_output: Option<Role>,
}

impl Alternation {
    /// Starts before the first message; `None` if the wire needs no separators, and they are not wanted `always`.
    pub fn of(wire: Wire, always: bool) -> Option<Alternation> {
        let wanted = always || matches!(wire, Wire::Gemini | Wire::Anthropic);
        wanted.then(|| Alternation {
            wire,
            always,
            rounds: Rounds::default(),
            count: 0,
            last: None,
            last_turn: None,
            turn_before_output: None,
        })
    }

    /// Takes the next message, and returns the separator to put before it; `None` if the role changes, or the message
    /// continues an output. At a `seam`, other messages before it were left out.
    pub fn separator(&mut self, next: &[u8], seam: bool) -> Option<Vec<u8>> {
        let message = Message::read(next).ok()?;
        let role = message.role();
        if self.wire == Wire::Anthropic && !self.always {
            let last = self.last.replace(role);
            return self.system_separator(last, role).filter(|_| seam);
        }
        self.count += 1;
        let seq = Seq::new(self.count)?;
        let facts = message.facts();
        let assigned = self.rounds.add(seq, &facts, None);
        let last = self.last.replace(role);
        let (again, other) = match role {
            Role::User if !facts.is_request() => return None,
            Role::User => {
                let again = self.last_turn == Some(role) || last == Some(role);
                (again, Role::Assistant)
            }
            Role::Assistant => (last == Some(role) && assigned.round == seq, Role::User),
            Role::System | Role::Tool => return None,
        };
        let separates = again && (self.always || seam && role == Role::Assistant);
        if separates {
            self.last_turn = Some(other);
        }
        if role == Role::Assistant && assigned.round == seq {
            self.turn_before_output = self.last_turn;
        }
        if !facts.calls.is_empty() {
            self.last_turn = self.turn_before_output;
        } else if role == Role::User || is_turn(message.form()) {
            self.last_turn = Some(role);
        }
        separates.then(|| render_text(self.wire, other, SEPARATOR_TEXT))
    }

    /// Returns the separator between a later system message and the one before or after it.
    fn system_separator(&self, last: Option<Role>, role: Role) -> Option<Vec<u8>> {
        let other = match (last?, role) {
            (Role::System, Role::User) => Role::Assistant,
            (Role::Assistant, Role::System) => Role::User,
            _ => return None,
        };
        Some(render_text(self.wire, other, SEPARATOR_TEXT))
    }
}

fn is_turn(form: Form) -> bool {
    matches!(form, Form::Turn | Form::Content | Form::Item(Item::Message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separated(wire: Wire, messages: &[&str]) -> Vec<bool> {
        let mut alternation = Alternation::of(wire, true).unwrap();
        let messages = messages.iter();
        messages
            .map(|message| alternation.separator(message.as_bytes(), false).is_some())
            .collect()
    }

    #[test]
    fn turns_of_one_role_are_separated() {
        let user = r#"{"role":"user","content":"x"}"#;
        let model = r#"{"role":"assistant","content":"x"}"#;
        let seen = separated(Wire::Chat, &[user, user, model, model, user]);
        assert_eq!(seen, [false, true, false, true, false]);
    }

    #[test]
    fn calls_and_their_results_are_not_counted() {
        let user = r#"{"role":"user","content":"x"}"#;
        let call = r#"{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}"#;
        let result = r#"{"role":"tool","tool_call_id":"a","content":"x"}"#;
        let model = r#"{"role":"assistant","content":"x"}"#;
        let seen = separated(Wire::Chat, &[user, call, result, user, call, result, model]);
        assert_eq!(seen, [false, false, false, true, false, false, false]);
        let said = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}"#;
        let item = r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}"#;
        let output = r#"{"type":"function_call_output","call_id":"a","output":"x"}"#;
        let seen = separated(Wire::Responses, &[user, said, item, output, user]);
        assert_eq!(seen, [false, false, false, false, true]);
        // A separator is a turn as well.
        let seen = separated(Wire::Chat, &[user, model, call, result, user]);
        assert_eq!(seen, [false, false, true, false, true]);
        let use_ = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}"#;
        let result =
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}"#;
        let seen = separated(Wire::Anthropic, &[user, use_, result, user]);
        assert_eq!(seen, [false, false, false, true]);
    }

    #[test]
    fn where_something_was_left_out_a_call_follows_the_user() {
        let mut alternation = Alternation::of(Wire::Gemini, false).unwrap();
        let call = r#"{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}"#;
        let mut separated = |seam| alternation.separator(call.as_bytes(), seam).is_some();
        assert_eq!(
            [false, false, true].map(&mut separated),
            [false, false, true]
        );
        assert!(Alternation::of(Wire::Chat, false).is_none());
    }

    #[test]
    fn a_later_system_message_stands_between_the_user_and_the_model() {
        let [user, model, system] = ["user", "assistant", "system"]
            .map(|role| format!(r#"{{"role":"{role}","content":"x"}}"#));
        let mut alternation = Alternation::of(Wire::Anthropic, false).unwrap();
        let mut put = |message: &str, seam| {
            let separator = alternation.separator(message.as_bytes(), seam);
            separator.map(|separator| Message::read(&separator).unwrap().role())
        };
        assert_eq!(put(&user, false), None);
        assert_eq!(put(&system, false), None);
        assert_eq!(put(&user, true), Some(Role::Assistant));
        assert_eq!(put(&model, true), None);
        assert_eq!(put(&system, true), Some(Role::User));
        // Messages that the client itself sends in this order stay.
        assert_eq!(put(&user, false), None);
        assert_eq!(put(&user, true), None);
    }

    #[test]
    fn approvals_are_no_turns() {
        let seen = separated(
            Wire::Responses,
            &[
                r#"{"role":"user","content":"x"}"#,
                r#"{"type":"mcp_approval_request","id":"a","name":"f","arguments":"{}"}"#,
                r#"{"type":"mcp_approval_response","approval_request_id":"a","approve":true}"#,
                r#"{"type":"mcp_approval_response","approval_request_id":"b","approve":true}"#,
                r#"{"type":"mcp_call","id":"c","approval_request_id":"a","name":"f","arguments":"{}"}"#,
                r#"{"role":"user","content":"x"}"#,
            ],
        );
        assert_eq!(seen, [false, false, false, false, false, true]);
    }

    #[test]
    fn items_of_one_output_are_one_turn() {
        let seen = separated(
            Wire::Responses,
            &[
                r#"{"role":"user","content":"x"}"#,
                r#"{"type":"reasoning","id":"rs_1","summary":[]}"#,
                r#"{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}"#,
                r#"{"type":"function_call","call_id":"b","name":"f","arguments":"{}"}"#,
                r#"{"type":"function_call_output","call_id":"a","output":"x"}"#,
                r#"{"type":"function_call_output","call_id":"b","output":"x"}"#,
                r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}"#,
                r#"{"role":"user","content":"x"}"#,
                r#"{"role":"user","content":"x"}"#,
            ],
        );
        let expected = [false, false, false, false, false, false, false, false, true];
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_output_that_was_paused_is_one_turn() {
        let seen = separated(
            Wire::Anthropic,
            &[
                r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}"#,
                r#"{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]}"#,
                r#"{"role":"assistant","content":"x"}"#,
            ],
        );
        assert_eq!(seen, [false, false, true]);
    }
}
