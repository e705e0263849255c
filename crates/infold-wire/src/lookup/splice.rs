//! Puts look-ups back into a conversation where the client has the reply without them.

use infold_log::{Seq, Source};

use super::PendingResult;
use crate::edits::splice;
use crate::render::with_placeholder;
use crate::{Form, Json, JsonKind, Message, RenderedMessage};

/// Replaces the messages from `from` to `at`, a reply without its look-ups, by all messages of its rounds; results of
/// look-ups beside calls of the client's are put among the results that follow. If the model's last message is empty, a
/// text states that: empty messages are refused.
pub fn splice_lookups(
    shown: Vec<RenderedMessage>,
    (from, at): (Seq, Seq),
    messages: &[Vec<u8>],
    results: &[PendingResult],
) -> Vec<RenderedMessage> {
    let mut out = Vec::with_capacity(shown.len() + messages.len());
    let mut pending: Option<&[PendingResult]> = None;
    for line in shown {
        let is_of_reply = line
            .source
            .seq()
            .is_some_and(|seq| seq >= from && seq <= at);
        if is_of_reply {
            if pending.is_none() {
                out.extend(messages.iter().map(|bytes| RenderedMessage {
                    source: Source::Lookup,
                    bytes: unless_empty(bytes),
                }));
                if let Some(last) = out.last_mut().filter(|_| !messages.is_empty()) {
                    last.source = line.source;
                }
                pending = Some(results);
            }
            continue;
        }
        match pending.filter(|pending| !pending.is_empty()) {
            Some(results) => {
                out.extend(with_results(line, results));
                pending = Some(&[]);
            }
            None => out.push(line),
        }
    }
    // The client has not answered its own calls yet.
    out.extend(pending.unwrap_or_default().iter().map(alone));
    out
}

/// Returns a message unchanged, or one that states that it is empty.
fn unless_empty(bytes: &[u8]) -> Vec<u8> {
    match Message::read(bytes) {
        Ok(message) if message.facts().empty => with_placeholder(&message),
        _ => bytes.to_vec(),
    }
}

fn alone(result: &PendingResult) -> RenderedMessage {
    RenderedMessage {
        source: Source::Lookup,
        bytes: result.message.clone(),
    }
}

/// Adds results to a message with results of the client's: within it where the wire has them all in one, else before it.
fn with_results(line: RenderedMessage, results: &[PendingResult]) -> Vec<RenderedMessage> {
    let added = Message::read(&line.bytes)
        .ok()
        .and_then(|message| add_to_list(&message, results));
    match added {
        Some(bytes) => vec![RenderedMessage { bytes, ..line }],
        None => results.iter().map(alone).chain([line]).collect(),
    }
}

/// Returns a message with results of ours among its own, each at its place.
fn add_to_list(message: &Message<'_>, results: &[PendingResult]) -> Option<Vec<u8>> {
    if message.answers().is_empty() {
        return None;
    }
    let list = match message.form() {
        Form::Content => message.gemini_parts(),
        Form::Turn => message.content().filter(|it| it.kind() == JsonKind::Array),
        Form::Item(_) => None,
    }?;
    let is_result = |block: &Json<'_>| {
        block.get("functionResponse").is_some() || crate::message::block_is(*block, "tool_result")
    };
    let own: Vec<Json<'_>> = list.elements().filter(is_result).collect();
    let mut edits = Vec::new();
    for result in results {
        let ours = Message::read(&result.message).ok()?;
        let ours = ours.gemini_parts().or_else(|| ours.content())?;
        let block = String::from_utf8_lossy(ours.elements().next()?.bytes()).into_owned();
        edits.push(match own.get(result.before) {
            Some(next) => (next.range().start..next.range().start, format!("{block},")),
            None => {
                let last = own.last()?.range().end;
                (last..last, format!(",{block}"))
            }
        });
    }
    let base = message.json().range().start;
    for (range, _) in &mut edits {
        *range = range.start - base..range.end - base;
    }
    Some(splice(message.bytes(), &edits))
}
