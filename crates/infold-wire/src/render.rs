mod interrupt;
mod late;
mod clip;
mod thinking;

use std::ops::Range;

use infold_log::{Call, Role, Rounds, Seq, Source};

use interrupt::{Dialect, interrupt_blocks, interrupt_items, interrupted_message, repair};
use late::results_as_text;

pub use clip::{clip_result, part_text};
pub use thinking::without_thinking;

use crate::message::block_is;
use crate::{Form, Item, Json, Message, MessageError, Part, PartKind, Wire, quote};

/// A message of a view, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Where it comes from.
    pub source: Source,
    /// Its bytes, without a line break at the end.
    pub bytes: Vec<u8>,
}

/// What an interrupted call is answered with.
pub const INTERRUPTED: &str = "[interrupted: this call never returned a result]";

/// What stands between two turns that may not follow each other.
pub(crate) const NOTED: &str = "(noted)";

/// What is shown of a message that says nothing; some providers refuse empty content.
pub const EMPTY: &str = "(empty)";

/// Renders a round that cannot be shown as it came.
///
/// Calls that never got a result are answered as interrupted, if their exchange is
/// closed. Results that answer nothing become user text behind the exchange. Every
/// other byte stays.
pub fn render_round(
    members: &[(Seq, Vec<u8>)],
    closed: bool,
) -> Result<Vec<Rendered>, MessageError> {
    let mut rounds = Rounds::default();
    let mut starts = Vec::new();
    for (at, (seq, bytes)) in members.iter().enumerate() {
        let facts = Message::read(bytes)?.facts();
        if rounds.hear(*seq, &facts, None).starts {
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

/// Renders one output and its results.
fn render_exchange(
    members: &[(Seq, Vec<u8>)],
    closed: bool,
) -> Result<Vec<Rendered>, MessageError> {
    let mut rounds = Rounds::default();
    let mut shown: Vec<Rendered> = Vec::new();
    let mut late: Vec<Rendered> = Vec::new();
    let mut dialect = Dialect::Chat;
    let mut items: Vec<(Call, String)> = Vec::new();
    for (at, (seq, bytes)) in members.iter().enumerate() {
        let message = Message::read(bytes)?;
        let facts = message.facts();
        if at == 0 {
            dialect = Dialect::of(&message);
        }
        if message.form() == Form::Item(Item::Call) {
            let kind = message.kind().and_then(Json::text).unwrap_or_default();
            let calls = facts.calls.iter().cloned();
            items.extend(calls.map(|call| (call, kind.clone().into_owned())));
        }
        let (_, paired) = rounds.pair(*seq, &facts, None);
        let rendered = |bytes| Rendered {
            source: Source::Message(*seq),
            bytes,
        };
        if facts.empty {
            shown.push(rendered(with_content(&message)));
        } else if paired.iter().all(|paired| *paired) {
            shown.push(rendered(message.bytes().to_vec()));
        } else if paired.contains(&true) {
            shown.push(rendered(results_as_text(&message, &paired)));
        } else {
            late.push(Rendered {
                source: Source::Late(*seq),
                bytes: results_as_text(&message, &paired),
            });
        }
    }
    let waiting: Vec<Call> = rounds.waiting().cloned().collect();
    if closed && !waiting.is_empty() {
        match dialect {
            Dialect::Items => interrupt_items(&waiting, items, &mut shown),
            Dialect::Blocks | Dialect::Contents => {
                interrupt_blocks(&waiting, dialect, &mut shown)?;
            }
            Dialect::Chat | Dialect::Function => {
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
    match (wire, role) {
        (Wire::Gemini, Role::Assistant) => gemini("model", &text),
        (Wire::Gemini, Role::System) => gemini("system", &text),
        (Wire::Gemini, Role::User | Role::Tool) => gemini("user", &text),
        _ => format!(r#"{{"role":"{}","content":{text}}}"#, role.wire_name()).into_bytes(),
    }
}

/// Renders a stand-in of one or more messages in the form of a wire.
///
/// On Gemini's a turn of the model that calls must follow one of the user's, so something of the
/// user's stands behind words of the model.
pub fn render_stand_in(wire: Wire, stand_in: &[(Role, String)]) -> Vec<Vec<u8>> {
    let lines = stand_in.iter();
    let mut lines: Vec<Vec<u8>> = lines
        .map(|(role, text)| render_text(wire, *role, text))
        .collect();
    let last = stand_in.last().map(|(role, _)| *role);
    if wire == Wire::Gemini && last == Some(Role::Assistant) {
        lines.push(render_text(wire, Role::User, NOTED));
    }
    lines
}

/// Returns what replaces a masked part of a message: the stub in the form that part needs.
pub fn render_stub(message: &Message<'_>, part: &Part, stub: &str) -> String {
    let text = quote(stub);
    match (message.form(), part.kind) {
        // Gemini's results are objects.
        (Form::Content, PartKind::Result) => format!(r#"{{"output":{text}}}"#),
        (_, PartKind::Result) => text,
        (form, PartKind::Image | PartKind::Other) => {
            let mut blocks = message.blocks();
            let block = blocks.find(|block| block.range() == part.range);
            let flavour = match block {
                Some(block) if block_is(block, "input_image") => Flavour::Item,
                _ => Flavour::of(form),
            };
            flavour.block(message.role(), &text)
        }
    }
}

/// Replaces ranges of a text, given in order and without overlap; all other bytes are copied.
pub fn splice(text: &[u8], edits: &[(Range<usize>, String)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    for (range, with) in edits {
        out.extend_from_slice(&text[at..range.start]);
        out.extend_from_slice(with.as_bytes());
        at = range.end;
    }
    out.extend_from_slice(&text[at..]);
    out
}

/// Replaces ranges of a text, given in any order; of two that overlap, the one that begins later is left out.
pub fn splice_apart(text: &[u8], mut edits: Vec<(Range<usize>, String)>) -> Vec<u8> {
    edits.sort_by_key(|(range, _)| range.start);
    let mut end = 0;
    edits.retain(|(range, _)| {
        let apart = range.start >= end;
        end = if apart { range.end } else { end };
        apart
    });
    splice(text, &edits)
}

/// How a text stands in a list of blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavour {
    /// `{"type":"text","text":…}`
    Block,
    /// `{"text":…}`
    Part,
    /// `{"type":"input_text","text":…}`, or `output_text` of the model's.
    Item,
}

impl Flavour {
    fn of(form: Form) -> Flavour {
        match form {
            Form::Turn => Flavour::Block,
            Form::Content => Flavour::Part,
            Form::Item(_) => Flavour::Item,
        }
    }

    /// Writes a block that says a text, which is a JSON string.
    fn block(self, role: Role, text: &str) -> String {
        let kind = match (self, role) {
            (Flavour::Part, _) => return format!(r#"{{"text":{text}}}"#),
            (Flavour::Block, _) => "text",
            (Flavour::Item, Role::Assistant) => "output_text",
            (Flavour::Item, _) => "input_text",
        };
        format!(r#"{{"type":"{kind}","text":{text}}}"#)
    }
}

fn with_content(message: &Message<'_>) -> Vec<u8> {
    let base = message.json().range().start;
    let mut text = quote(EMPTY);
    let form = message.form();
    if form != Form::Turn {
        text = format!("[{}]", Flavour::of(form).block(message.role(), &text));
    }
    match message.contents().or(message.content()) {
        Some(content) => {
            let range = content.range();
            let range = range.start - base..range.end - base;
            splice(message.bytes(), &[(range, text)])
        }
        None => {
            let end = message.bytes().len() - 1;
            splice(
                message.bytes(),
                &[(end..end, format!(",\"content\":{text}"))],
            )
        }
    }
}

fn gemini(role: &str, text: &str) -> Vec<u8> {
    format!(r#"{{"role":"{role}","parts":[{{"text":{text}}}]}}"#).into_bytes()
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

    /// Masks every part that can be, and says what is left.
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
