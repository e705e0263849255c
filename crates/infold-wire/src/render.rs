//! Renders messages of a view that are not sent unchanged: repaired rounds, stand-ins, stubs.

mod append;
mod interrupt;
mod late;
mod clip;
mod thinking;

use infold_log::{Call, Role, Rounds, Seq, Source};

use interrupt::{CallDialect, interrupt_blocks, interrupt_items, interrupted_message, repair};
use late::results_as_text;

pub use append::{CONTEXT_HEAD, CONTEXT_TAIL, RECALLED_HEAD, append_system_text, append_text};
pub use clip::{clip_result, part_text};
pub use thinking::without_thinking;

use crate::edits::splice;
use crate::message::block_is;
use crate::neutral::gemini;
use crate::{Form, Item, Json, Message, MessageError, Part, PartKind, Wire, quote};

/// A message of a view, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedMessage {
    /// The message or the repair that it was made from.
    pub source: Source,
    /// The message's bytes, without a line break at the end.
    pub bytes: Vec<u8>,
}

/// The result of an interrupted call.
pub const INTERRUPTED_RESULT: &str = "[interrupted: this call never returned a result]";

/// The text between two turns that may not follow each other.
pub(crate) const SEPARATOR_TEXT: &str = "(noted)";

/// The content shown for an empty message; some providers refuse empty content.
pub const EMPTY_PLACEHOLDER: &str = "(empty)";

/// Renders a round that cannot be shown as it came.
///
/// In a closed exchange, calls without a result get an "interrupted" one. Results without a call become
/// user text behind the exchange. Every other byte stays.
pub fn render_round(
    members: &[(Seq, Vec<u8>)],
    closed: bool,
) -> Result<Vec<RenderedMessage>, MessageError> {
    let mut rounds = Rounds::default();
    let mut starts = Vec::new();
    for (at, (seq, bytes)) in members.iter().enumerate() {
        let facts = Message::read(bytes)?.facts();
        if rounds.add(*seq, &facts, None).starts {
            starts.push(at);
        }
    }
    starts.push(members.len());
    let mut shown = Vec::new();
    for range in starts.windows(2).map(|ends| ends[0]..ends[1]) {
        let last = range.end == members.len();
        shown.append(&mut render_exchange(&members[range], closed || !last)?);
    }
    Ok(shown)
}

fn render_exchange(
    members: &[(Seq, Vec<u8>)],
    closed: bool,
) -> Result<Vec<RenderedMessage>, MessageError> {
    let mut rounds = Rounds::default();
    let mut shown: Vec<RenderedMessage> = Vec::new();
    let mut late: Vec<RenderedMessage> = Vec::new();
    let mut dialect = CallDialect::Chat;
    let mut items: Vec<(Call, String)> = Vec::new();
    for (at, (seq, bytes)) in members.iter().enumerate() {
        let message = Message::read(bytes)?;
        let facts = message.facts();
        if at == 0 {
            dialect = CallDialect::of(&message);
        }
        if message.form() == Form::Item(Item::Call) {
            let kind = message.kind().and_then(Json::text).unwrap_or_default();
            let calls = facts.calls.iter().cloned();
            items.extend(calls.map(|call| (call, kind.clone().into_owned())));
        }
        let (_, paired) = rounds.pair(*seq, &facts, None);
        let is_late = !paired.is_empty() && !paired.contains(&true);
        if is_late && !facts.empty {
            let (source, bytes) = (Source::Late(*seq), results_as_text(&message, &paired));
            late.push(RenderedMessage { source, bytes });
            continue;
        }
        let source = Source::Message(*seq);
        let bytes = if facts.empty {
            with_placeholder(&message)
        } else if paired.contains(&false) {
            results_as_text(&message, &paired)
        } else {
            message.bytes().to_vec()
        };
        shown.push(RenderedMessage { source, bytes });
    }
    let waiting: Vec<Call> = rounds.waiting().cloned().collect();
    if closed && !waiting.is_empty() {
        match dialect {
            CallDialect::Items => interrupt_items(&waiting, items, &mut shown),
            CallDialect::Blocks | CallDialect::Contents => {
                interrupt_blocks(&waiting, dialect, &mut shown)?;
            }
            CallDialect::Chat | CallDialect::Function => {
                let waiting = waiting.iter();
                shown.extend(waiting.map(|call| repair(interrupted_message(call, dialect))));
            }
        }
    }
    shown.append(&mut late);
    Ok(shown)
}

/// Renders a stand-in or a note in the form of a wire.
pub fn render_text(wire: Wire, role: Role, text: &str) -> Vec<u8> {
    let text = quote(text);
    let message = match (wire, role) {
        (Wire::Gemini, role) => {
            let role = gemini::role_name(role);
            format!(r#"{{"role":"{role}","parts":[{{"text":{text}}}]}}"#)
        }
        _ => format!(r#"{{"role":"{}","content":{text}}}"#, role.wire_name()),
    };
    message.into_bytes()
}

/// Renders a stand-in of one or more messages in the form of a wire.
///
/// On Gemini's wire a call of the model must follow a turn of the user's, so a stand-in that ends with the model's
/// words gets a separator behind it.
pub fn render_stand_in(wire: Wire, stand_in: &[(Role, String)]) -> Vec<Vec<u8>> {
    let lines = stand_in.iter();
    let mut lines: Vec<Vec<u8>> = lines
        .map(|(role, text)| render_text(wire, *role, text))
        .collect();
    let last = stand_in.last().map(|(role, _)| *role);
    if wire == Wire::Gemini && last == Some(Role::Assistant) {
        lines.push(render_text(wire, Role::User, SEPARATOR_TEXT));
    }
    lines
}

/// Renders the stub of a masked part in the form that the part needs.
pub fn render_stub(message: &Message<'_>, part: &Part, stub: &str) -> String {
    let text = quote(stub);
    match (message.form(), part.kind) {
        // Gemini's results are objects.
        (Form::Content, PartKind::Result) => format!(r#"{{"output":{text}}}"#),
        (_, PartKind::Result) => text,
        (form, PartKind::Image | PartKind::Other) => {
            let mut blocks = message.blocks();
            let block = blocks.find(|block| block.range() == part.range);
            let style = match block {
                Some(block) if block_is(block, "input_image") => BlockStyle::Item,
                _ => BlockStyle::of(form),
            };
            style.text_block(message.role(), &text)
        }
    }
}

/// The form of a text in a list of blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockStyle {
    /// `{"type":"text","text":…}`
    Block,
    /// `{"text":…}`
    Part,
    /// `{"type":"input_text","text":…}`, or `output_text` of the model's.
    Item,
}

impl BlockStyle {
    fn of(form: Form) -> BlockStyle {
        match form {
            Form::Turn => BlockStyle::Block,
            Form::Content => BlockStyle::Part,
            Form::Item(_) => BlockStyle::Item,
        }
    }

    /// Writes a block of a text, which is a JSON string.
    pub fn text_block(self, role: Role, text: &str) -> String {
        let kind = match (self, role) {
            (BlockStyle::Part, _) => return format!(r#"{{"text":{text}}}"#),
            (BlockStyle::Block, _) => "text",
            (BlockStyle::Item, Role::Assistant) => "output_text",
            (BlockStyle::Item, _) => "input_text",
        };
        format!(r#"{{"type":"{kind}","text":{text}}}"#)
    }
}

pub(crate) fn with_placeholder(message: &Message<'_>) -> Vec<u8> {
    let mut text = quote(EMPTY_PLACEHOLDER);
    let form = message.form();
    if form != Form::Turn {
        let block = BlockStyle::of(form).text_block(message.role(), &text);
        text = format!("[{block}]");
    }
    match message.parts_or_content() {
        Some(content) => message.with_replaced(content, &text),
        None => {
            let end = message.bytes().len() - 1;
            let content = format!(",\"content\":{text}");
            splice(message.bytes(), &[(end..end, content)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(closed: bool, lines: &[&str]) -> Vec<String> {
        let mut seq = Seq::FIRST;
        let mut members = Vec::new();
        for line in lines {
            members.push((seq, line.as_bytes().to_vec()));
            seq = seq.next();
        }
        let shown = render_round(&members, closed).unwrap();
        shown
            .into_iter()
            .map(|line| String::from_utf8(line.bytes).unwrap())
            .collect()
    }

    const CHAT: &str = r#"{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"ls"}},{"id":"b","function":{"name":"cat"}}]}"#;
    const BLOCKS: &str = r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{}},{"type":"tool_use","id":"b","name":"ls","input":{}}]}"#;

    #[test]
    fn a_chat_call_without_a_result_is_answered_as_interrupted() {
        insta::assert_snapshot!(rendered(true, &[CHAT, r#"{"role":"tool","tool_call_id":"b","content":"x"}"#]).join("\n"), @r#"
        {"role":"assistant","tool_calls":[{"id":"a","function":{"name":"ls"}},{"id":"b","function":{"name":"cat"}}]}
        {"role":"tool","tool_call_id":"b","content":"x"}
        {"role":"tool","tool_call_id":"a","content":"[interrupted: this call never returned a result]"}
        "#);
        assert_eq!(rendered(false, &[CHAT]), [CHAT]);
    }

    #[test]
    fn interrupted_blocks_join_the_message_with_the_other_results() {
        let result = r#"{"role":"user","content":[ {"type":"tool_result","tool_use_id":"b","content":"\ud83d"},{"type":"text","text":"and"}]}"#;
        insta::assert_snapshot!(rendered(true, &[BLOCKS, result])[1], @r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"[interrupted: this call never returned a result]","is_error":true}, {"type":"tool_result","tool_use_id":"b","content":"\ud83d"},{"type":"text","text":"and"}]}"#);
        insta::assert_snapshot!(rendered(true, &[BLOCKS]).len(), @"2");
    }

    #[test]
    fn interrupted_blocks_stand_alone_beside_results_of_the_other_form() {
        let result = r#"{"role":"tool","tool_call_id":"b","content":"x"}"#;
        let shown = rendered(true, &[BLOCKS, result]);
        assert_eq!(shown[1], result);
        insta::assert_snapshot!(shown[2], @r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"[interrupted: this call never returned a result]","is_error":true}]}"#);
    }

    #[test]
    fn a_late_result_is_text_behind_the_round_and_keeps_its_bytes() {
        let late = r#"{"role":"tool","tool_call_id":"z","content":"caf\u00e9 \ud83d"}"#;
        let shown = rendered(
            false,
            &[
                CHAT,
                late,
                r#"{"role":"tool","tool_call_id":"a","content":"x"}"#,
            ],
        );
        insta::assert_snapshot!(shown[2], @r#"{"role":"user","content":"[Tool result (z) without its call, or too late:]\ncaf\u00e9 \ud83d"}"#);
    }

    #[test]
    fn late_blocks_become_text_after_the_results_that_are_in_time() {
        let mixed = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"z","content":[{"type":"text","text":"old"}]},{"type":"tool_result","tool_use_id":"a","content":"new"}],"x":1}"#;
        let shown = rendered(false, &[BLOCKS, mixed]);
        insta::assert_snapshot!(shown[1], @r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"new"},{"type":"text","text":"[Tool result (z) without its call, or too late:]"},{"type":"text","text":"old"}],"x":1}"#);
    }

    #[test]
    fn empty_content_is_said_to_be_empty() {
        assert_eq!(
            rendered(true, &[r#"{"role":"assistant","content":null,"id":"m"}"#]),
            [r#"{"role":"assistant","content":"(empty)","id":"m"}"#]
        );
    }

    const PARTS: &str = r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{}},"thoughtSignature":"s"},{"functionCall":{"id":"2","name":"cat","args":{}}}]}"#;

    #[test]
    fn interrupted_parts_join_the_content_with_the_other_results() {
        let result =
            r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{}}}]}"#;
        let shown = rendered(true, &[PARTS, result]);
        insta::assert_snapshot!(shown[1], @r#"{"role":"user","parts":[{"functionResponse":{"id":"2","name":"cat","response":{"error":"[interrupted: this call never returned a result]"}}},{"functionResponse":{"name":"ls","response":{}}}]}"#);
        let alone = rendered(true, &[PARTS]);
        insta::assert_snapshot!(alone[1], @r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"error":"[interrupted: this call never returned a result]"}}},{"functionResponse":{"id":"2","name":"cat","response":{"error":"[interrupted: this call never returned a result]"}}}]}"#);
    }

    #[test]
    fn late_parts_become_text_in_a_content() {
        let late = r#"{"role":"function","parts":[{"functionResponse":{"id":"9","name":"x","response":{"output":"old \ud83d"}}},{"functionResponse":{"id":"8","name":"x","response":{"result":[1]}}}]}"#;
        insta::assert_snapshot!(rendered(false, &[PARTS, late])[1], @r#"{"role":"user","parts":[{"text":"[Tool result of x (9) without its call, or too late:]\nold \ud83d"},{"text":"[Tool result of x (8) without its call, or too late:]\n{\"result\":[1]}"}]}"#);
    }

    #[test]
    fn interrupted_items_are_answered_each_in_its_kind() {
        let shown = rendered(
            true,
            &[
                r#"{"type":"reasoning","summary":[],"encrypted_content":"x"}"#,
                r#"{"type":"function_call","call_id":"a","name":"ls","arguments":"{}"}"#,
                r#"{"type":"custom_tool_call","call_id":"b","name":"sh","input":"x"}"#,
                r#"{"type":"function_call","call_id":"c","name":"ls","arguments":"{}"}"#,
                r#"{"type":"function_call_output","call_id":"a","output":"x"}"#,
            ],
        );
        insta::assert_snapshot!(shown[5..].join("\n"), @r#"
        {"type":"custom_tool_call_output","call_id":"b","output":"[interrupted: this call never returned a result]"}
        {"type":"function_call_output","call_id":"c","output":"[interrupted: this call never returned a result]"}
        "#);
    }

    #[test]
    fn late_items_become_words_of_the_user() {
        let text = r#"{"type":"function_call_output","call_id":"a","output":"x"}"#;
        insta::assert_snapshot!(rendered(false, &[text])[0], @r#"{"role":"user","content":"[Tool result (a) without its call, or too late:]\nx"}"#);
        let list = r#"{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"data:"}]}"#;
        insta::assert_snapshot!(rendered(false, &[list])[0], @r#"{"role":"user","content":[{"type":"input_text","text":"[Tool result (a) without its call, or too late:]"},{"type":"input_image","image_url":"data:"}]}"#);
        let shell =
            r#"{"type":"shell_call_output","call_id":"a","output":[{"stdout":"x","stderr":""}]}"#;
        insta::assert_snapshot!(rendered(false, &[shell])[0], @r#"{"role":"user","content":"[Tool result (a) without its call, or too late:]\n[{\"stdout\":\"x\",\"stderr\":\"\"}]"}"#);
    }

    #[test]
    fn what_is_empty_says_so_in_every_form() {
        let of = |text: &str| rendered(true, &[text]).remove(0);
        assert_eq!(
            of(r#"{"role":"model","parts":[]}"#),
            r#"{"role":"model","parts":[{"text":"(empty)"}]}"#
        );
        assert_eq!(
            of(
                r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":""}]}"#
            ),
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"(empty)"}]}"#
        );
    }

    /// Masks every part that can be masked, and returns the rest.
    fn masked(text: &str) -> String {
        let message = Message::parse(text.as_bytes()).expect("a message");
        let parts = message.parts().into_iter();
        let edits: Vec<_> = parts
            .filter(|part| part.kind != PartKind::Other)
            .map(|part| (part.range.clone(), render_stub(&message, &part, "…")))
            .collect();
        let bytes = splice(text.as_bytes(), &edits);
        let left = Message::parse(&bytes).expect("still a message");
        assert_eq!(left.facts().answers, message.facts().answers);
        assert_eq!(left.wires(), message.wires());
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_stub_has_the_form_of_what_it_hides() {
        assert_eq!(
            masked(
                r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"x"}}},{"inline_data":{"mime_type":"image/png","data":"AA"}},{"text":"y"}]}"#
            ),
            r#"{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"…"}}},{"text":"…"},{"text":"y"}]}"#
        );
        assert_eq!(
            masked(
                r#"{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"x"}]}"#
            ),
            r#"{"type":"function_call_output","call_id":"a","output":"…"}"#
        );
        assert_eq!(
            masked(
                r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:"}]}"#
            ),
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"…"}]}"#
        );
        let shell = r#"{"type":"shell_call_output","call_id":"a","output":[{"stdout":"x"}]}"#;
        assert_eq!(masked(shell), shell);
    }

    #[test]
    fn words_come_in_the_form_of_the_wire() {
        let of = |wire, role| String::from_utf8(render_text(wire, role, "hi")).unwrap();
        assert_eq!(
            of(Wire::Gemini, Role::Assistant),
            r#"{"role":"model","parts":[{"text":"hi"}]}"#
        );
        for wire in Wire::ALL {
            for role in [Role::User, Role::Assistant] {
                let text = of(wire, role);
                let message = Message::parse(text.as_bytes()).unwrap();
                assert!(message.wires().has(wire), "{text} on {wire}");
                assert_eq!(message.role(), role);
            }
        }
    }
}
