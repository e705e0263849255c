//! Recognises search hits that are themselves earlier searches of the log.
//!
//! A model's call of a search tool is recorded like any message, and its result repeats the messages that it found. A later
//! search for the same words would find those repetitions first, so they are left out of its results.

use infold_log::{Past as _, Span};
use infold_store::{Log, SearchHit};
use infold_wire::{ContentBlock, Message};

/// The tools whose results only repeat the log. These are endings, because clients put the server's name before the tool's.
const REPEATING_TOOLS: [&str; 2] = ["search_history", "recall"];
/// Only this many messages at the start of a round are searched for calls, so that a long round costs little.
const MAX_MESSAGES: u64 = 32;

/// Returns whether a hit is part of an earlier search: its round has calls up to the hit, and all of them are of such tools.
///
/// A round that also called another tool is no echo, because its messages contain something new. On an error the hit stays.
pub fn is_echo(log: &Log, hit: &SearchHit) -> bool {
    let Ok(record) = log.record(hit.seq) else {
        return false;
    };
    let Some(round) = Span::new(record.round, hit.seq) else {
        return false;
    };
    let mut calls = round.seqs().take(MAX_MESSAGES as usize).flat_map(|seq| {
        let blocks = log.message(seq).map(|bytes| blocks(&bytes));
        blocks
            .unwrap_or_default()
            .into_iter()
            .filter_map(called_tool)
    });
    let Some(first) = calls.next() else {
        return false;
    };
    let repeats = |name: &str| REPEATING_TOOLS.iter().any(|tool| name.ends_with(tool));
    repeats(&first) && calls.all(|name| repeats(&name))
}

/// Returns the content of a message; nothing if it cannot be parsed.
fn blocks(bytes: &[u8]) -> Vec<ContentBlock> {
    let message = Message::parse(bytes);
    message.map_or_else(|_| Vec::new(), |message| ContentBlock::all(&message))
}

/// Returns the name of the tool that a block calls; none for other blocks.
fn called_tool(block: ContentBlock) -> Option<String> {
    match block {
        ContentBlock::Call { name, .. } => Some(name),
        _ => None,
    }
}
