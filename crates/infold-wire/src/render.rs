use std::ops::Range;

use infold_log::{Call, Role, Rounds, Seq, Source};

use crate::message::{block_is, result_of};
use crate::{Kind, Message, MessageError, quote};

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

/// What is shown of a message that says nothing; some providers refuse empty content.
pub const EMPTY: &str = "(empty)";

/// Renders a round that cannot be shown as it came.
///
/// Calls that never got a result are answered as interrupted, if the round is
/// closed. Results that answer nothing become user text behind the round. Every
/// other byte stays.
pub fn render_round(
    members: &[(Seq, Vec<u8>)],
    closed: bool,
) -> Result<Vec<Rendered>, MessageError> {
    let mut rounds = Rounds::default();
    let mut shown: Vec<Rendered> = Vec::new();
    let mut late: Vec<Rendered> = Vec::new();
    let mut dialect = Dialect::Chat;
    for (at, (seq, bytes)) in members.iter().enumerate() {
        let message = Message::parse(bytes)?;
        let facts = message.facts();
        if at == 0 {
            dialect = Dialect::of(&message);
        }
        let (_, paired) = rounds.pair(*seq, &facts);
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
    if closed && !rounds.waiting().is_empty() {
        interrupt(rounds.waiting(), dialect, &mut shown)?;
    }
    shown.append(&mut late);
    Ok(shown)
}

/// Renders a stand-in or a note.
pub fn render_text(role: Role, text: &str) -> Vec<u8> {
    let (role, text) = (role.wire_name(), quote(text));
    format!(r#"{{"role":"{role}","content":{text}}}"#).into_bytes()
}

/// Returns what replaces a masked part: the stub in the form that part needs.
pub fn render_stub(kind: crate::PartKind, stub: &str) -> String {
    match kind {
        crate::PartKind::Result => quote(stub),
        crate::PartKind::Image | crate::PartKind::Other => {
            format!(r#"{{"type":"text","text":{}}}"#, quote(stub))
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

/// How a round's calls are written, and so how their results must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    /// `tool_calls`, answered by messages of role `tool`.
    Chat,
    /// `function_call`, answered by a message of role `function`.
    Function,
    /// `tool_use` blocks, answered by `tool_result` blocks in one user message.
    Blocks,
}

impl Dialect {
    fn of(message: &Message<'_>) -> Dialect {
        if message.blocks().any(|block| block_is(block, "tool_use")) {
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

fn with_content(message: &Message<'_>) -> Vec<u8> {
    let base = message.json().range().start;
    let text = quote(EMPTY);
    match message.content() {
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

/// Answers the calls that wait.
fn interrupt(
    waiting: &[Call],
    dialect: Dialect,
    shown: &mut Vec<Rendered>,
) -> Result<(), MessageError> {
    if dialect != Dialect::Blocks {
        shown.extend(waiting.iter().map(|call| Rendered {
            source: Source::Repair,
            bytes: interrupted_message(call, dialect).into_bytes(),
        }));
        return Ok(());
    }
    let blocks: Vec<String> = waiting.iter().map(interrupted_block).collect();
    let blocks = blocks.join(",");
    // Anthropic wants all results of a round in one message.
    for line in shown.iter_mut().skip(1) {
        let message = Message::parse(&line.bytes)?;
        // A result of role `tool`, from a client that mixes the forms, has no place for a block.
        let list = message
            .results()
            .next()
            .and_then(|_| message.content())
            .map(|list| list.range());
        if let Some(list) = list {
            let at = list.start + 1;
            line.bytes = splice(&line.bytes, &[(at..at, format!("{blocks},"))]);
            return Ok(());
        }
    }
    let bytes = format!(r#"{{"role":"user","content":[{blocks}]}}"#).into_bytes();
    let source = Source::Repair;
    shown.push(Rendered { source, bytes });
    Ok(())
}

fn interrupted_message(call: &Call, dialect: Dialect) -> String {
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

/// Turns the results that are not paired into text.
fn results_as_text(message: &Message<'_>, paired: &[bool]) -> Vec<u8> {
    if message.role() == Role::Tool {
        let call = message.answers().pop().unwrap_or_default();
        let content = labelled(&label(&call), message.content());
        let content = match &content[..] {
            [Block::Text(text)] => text.clone(),
            blocks => format!("[{}]", join(blocks)),
        };
        return format!(r#"{{"role":"user","content":{content}}}"#).into_bytes();
    }
    let Some(content) = message.content() else {
        return message.bytes().to_vec();
    };
    let mut results = Vec::new();
    let mut others = Vec::new();
    let mut paired = paired.iter();
    for block in content.elements() {
        let raw = Block::Raw(String::from_utf8_lossy(block.bytes()).into_owned());
        if !block_is(block, "tool_result") {
            others.push(raw);
        } else if paired.next() == Some(&true) {
            results.push(raw);
        } else {
            let inner = block.get("content");
            others.extend(labelled(&label(&result_of(block)), inner));
        }
    }
    results.append(&mut others);
    let base = message.json().range().start;
    let range = content.range().start - base..content.range().end - base;
    splice(message.bytes(), &[(range, format!("[{}]", join(&results)))])
}

/// A block, or a text that becomes one.
enum Block {
    /// A JSON string, quotes included.
    Text(String),
    /// A whole block.
    Raw(String),
}

fn join(blocks: &[Block]) -> String {
    let blocks: Vec<String> = blocks
        .iter()
        .map(|block| match block {
            Block::Text(text) => format!(r#"{{"type":"text","text":{text}}}"#),
            Block::Raw(raw) => raw.clone(),
        })
        .collect();
    blocks.join(",")
}

/// A result's content with a label before it, its bytes untouched.
fn labelled(label: &str, content: Option<crate::Json<'_>>) -> Vec<Block> {
    let label = quote(label);
    let Some(content) = content else {
        return vec![Block::Text(label)];
    };
    let raw = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match content.kind() {
        Kind::String => {
            let opened = &label[..label.len() - 1];
            vec![Block::Text(format!(
                "{opened}\\n{}",
                &raw(content.bytes())[1..]
            ))]
        }
        Kind::Array => {
            let blocks = content.elements().map(|block| match block.kind() {
                Kind::String => Block::Text(raw(block.bytes())),
                _ => Block::Raw(raw(block.bytes())),
            });
            std::iter::once(Block::Text(label)).chain(blocks).collect()
        }
        _ => vec![Block::Text(label)],
    }
}

fn label(call: &Call) -> String {
    let name = call
        .name
        .as_deref()
        .map(|name| format!(" of {name}"))
        .unwrap_or_default();
    let id = call
        .id
        .as_deref()
        .map(|id| format!(" ({id})"))
        .unwrap_or_default();
    format!("[Tool result{name}{id} without its call, or too late:]")
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
}
