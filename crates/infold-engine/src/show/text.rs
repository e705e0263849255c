//! Folds, messages and views as lines of text: the command colours them, tools return them.

use infold_log::Role;
use infold_store::{EventLine, What, iso};
use infold_wire::{ContentBlock, Message, message_excerpt, shorten};

use super::{RecalledMessage, ViewEntry, fold_json, fold_texts, kind};
use crate::numbers::{count, number};

/// The kind of a line, for programs that colour it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// The heading of a fold.
    Fold,
    /// The heading of a message.
    Message(Role),
    /// A text, of several lines perhaps, as it came.
    Text,
    /// Reasoning, of several lines perhaps, as it came.
    Reasoning,
    /// A tool call.
    Call,
    /// A remark of ours.
    Remark,
}

/// Takes lines until it returns an error.
pub type LineVisitor<'a, E> = dyn FnMut(LineKind, &str) -> Result<(), E> + 'a;

/// Longer arguments of a call, or those with several lines, are written below its line.
const MAX_ARGUMENT_CHARS: usize = 100;
/// Further arguments are written below a line that is longer.
const MAX_CALL_CHARS: usize = 400;
/// Headings of arguments are cut here: keys have any length.
const MAX_LINE_CHARS: usize = 1000;

/// Visits the lines of a fold: a heading, and the text that the model sees in its place.
pub fn fold_lines<E>(line: &EventLine, visit: &mut LineVisitor<'_, E>) -> Result<(), E> {
    let object = fold_json(line);
    let size = |name: &str| number(object[name].as_u64().unwrap_or_default());
    let head = format!(
        "── {} {} · hides {}..{} · {} → {} tokens · {}",
        line.id,
        kind(&line.what),
        object["from"],
        object["to"],
        size("original_tokens"),
        size("tokens"),
        iso(line.ts)
    );
    visit(LineKind::Fold, &head)?;
    let mut texts = fold_texts(&line.what).into_iter();
    texts.try_for_each(|(_, text)| visit(LineKind::Text, &text))
}

impl RecalledMessage<'_> {
    /// Visits the lines of the message: a heading, and its blocks as text.
    pub fn lines<E>(&self, visit: &mut LineVisitor<'_, E>) -> Result<(), E> {
        let (record, seq) = (&self.record, self.seq);
        let hidden = if self.shown { "" } else { " · hidden" };
        let head = format!("── {seq} {} · {}{hidden}", record.role, iso(record.time));
        visit(LineKind::Message(record.role), &head)?;
        let Ok(message) = Message::parse(self.bytes) else {
            return visit(LineKind::Text, &String::from_utf8_lossy(self.bytes));
        };
        let mut blocks = ContentBlock::all(&message).into_iter();
        blocks.try_for_each(|block| block_lines(&block, record.role, visit))
    }
}

fn block_lines<E>(
    block: &ContentBlock,
    role: Role,
    visit: &mut LineVisitor<'_, E>,
) -> Result<(), E> {
    match block {
        ContentBlock::Text(text) => visit(LineKind::Text, text),
        ContentBlock::Reasoning(text) => visit(LineKind::Reasoning, text),
        ContentBlock::Image => visit(LineKind::Remark, "(image)"),
        ContentBlock::Result { text, failed, .. } => {
            if *failed {
                visit(LineKind::Remark, "← error")?;
            } else if role != Role::Tool {
                visit(LineKind::Remark, "← result")?;
            }
            visit(LineKind::Text, text)
        }
        ContentBlock::Call {
            name, arguments, ..
        } => call_lines(name, arguments, visit),
    }
}

/// Visits a call in one line, and below it the arguments that do not fit there.
fn call_lines<E>(
    name: &str,
    arguments: &[(String, String)],
    visit: &mut LineVisitor<'_, E>,
) -> Result<(), E> {
    let is_long =
        |value: &str| value.contains('\n') || value.chars().nth(MAX_ARGUMENT_CHARS).is_some();
    let (mut line, mut below) = (String::new(), Vec::new());
    for (key, value) in arguments {
        if is_long(key) || is_long(value) || line.chars().nth(MAX_CALL_CHARS).is_some() {
            below.push((key, value));
            continue;
        }
        let comma = if line.is_empty() { "" } else { ", " };
        let name = if key.is_empty() { "" } else { ": " };
        line += &format!("{comma}{key}{name}{value}");
    }
    let call = shorten(&format!("→ {name}({line})"), MAX_LINE_CHARS);
    visit(LineKind::Call, &call)?;
    for (key, value) in below {
        let lines = count(value.lines().count() as u64, "line");
        let head = shorten(&format!("  {key} ({lines}):"), MAX_LINE_CHARS);
        visit(LineKind::Remark, &head)?;
        visit(LineKind::Text, value)?;
    }
    Ok(())
}

/// An entry of a view in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewLine {
    /// The message, or the range of the fold.
    pub name: String,
    /// The role of the message; `None` for a fold.
    pub role: Option<Role>,
    /// The beginning of the text, or the extent of the fold.
    pub text: String,
    /// Remarks: pinned, masked, late.
    pub note: String,
    /// The tokens of the entry.
    pub tokens: u64,
}

/// The characters of a message that a line shows.
const MAX_EXCERPT_CHARS: usize = 400;

impl ViewEntry<'_> {
    /// Returns the entry in one line; none if it cannot be parsed.
    pub fn line(&self) -> Option<ViewLine> {
        match self {
            ViewEntry::Fold(line, tokens) => fold_line(line, *tokens),
            ViewEntry::Message {
                source,
                note,
                bytes,
            } => {
                let message = Message::parse(bytes).ok()?;
                Some(ViewLine {
                    name: source.seq().map_or(String::new(), |seq| seq.to_string()),
                    role: Some(speaker(&message)),
                    text: message_excerpt(&message, MAX_EXCERPT_CHARS),
                    note: note.clone(),
                    tokens: infold_wire::tokens::message(&message),
                })
            }
        }
    }
}

/// Returns the role to show: on some wires tool results have the role of the user.
pub fn speaker(message: &Message<'_>) -> Role {
    if message.answers().is_empty() {
        message.role()
    } else {
        Role::Tool
    }
}

fn fold_line(line: &EventLine, tokens: u64) -> Option<ViewLine> {
    let What::Fold(fold) = &line.what else {
        return None;
    };
    let (messages, hidden) = (
        count(fold.messages, "message"),
        number(fold.original_tokens),
    );
    let hides = match kind(&line.what) {
        "summary" => format!("(summary of {messages}, {hidden} tokens)"),
        _ => format!("({messages} hidden, {hidden} tokens)"),
    };
    let span = fold.span;
    Some(ViewLine {
        name: match span.count() {
            1 => span.to_string(),
            _ => format!("{}-{}", span.from(), span.to()),
        },
        role: None,
        text: format!("{} {hides}", line.id),
        note: String::new(),
        tokens,
    })
}
