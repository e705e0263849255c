//! Recognises earlier searches in the log: their results are on record already, in the original messages.

use infold_log::{Past as _, Span};
use infold_store::{Log, SearchHit};
use infold_wire::{ContentBlock, Message};

/// Ends of the names of tools whose results only repeat the log.
const REPEATING_TOOLS: [&str; 2] = ["search_history", "recall"];
/// The number of messages of a round in which calls are looked for.
const MAX_MESSAGES: u64 = 32;

/// Returns whether a hit is a call of one of our tools, or its result: a search that returned those would find itself.
pub fn is_echo(log: &Log, hit: &SearchHit) -> bool {
    let Ok(record) = log.record(hit.seq) else {
        return false;
    };
    let Some(round) = Span::new(record.round, hit.seq) else {
        return false;
    };
    let mut calls = round.seqs().take(MAX_MESSAGES as usize).flat_map(|seq| {
        let blocks = log.message(seq).map(|bytes| blocks(&bytes));
        blocks.unwrap_or_default().into_iter().filter_map(name)
    });
    let Some(first) = calls.next() else {
        return false;
    };
    let repeats = |name: &str| REPEATING_TOOLS.iter().any(|tool| name.ends_with(tool));
    repeats(&first) && calls.all(|name| repeats(&name))
}

fn blocks(bytes: &[u8]) -> Vec<ContentBlock> {
    let message = Message::parse(bytes);
    message.map_or_else(|_| Vec::new(), |message| ContentBlock::all(&message))
}

fn name(block: ContentBlock) -> Option<String> {
    match block {
        ContentBlock::Call { name, .. } => Some(name),
        _ => None,
    }
}
