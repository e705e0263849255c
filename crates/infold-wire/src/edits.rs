//! Replaces ranges of bytes and copies all others.

use std::ops::Range;

use crate::Json;

/// A range of some bytes, and its replacement.
pub(crate) type ByteEdit = (Range<usize>, Vec<u8>);

/// Replaces ranges of a text, given in order and without overlap; all other bytes are copied.
pub fn splice<B: AsRef<[u8]>>(text: &[u8], edits: &[(Range<usize>, B)]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut copied = 0;
    for (range, replacement) in edits {
        out.extend_from_slice(&text[copied..range.start]);
        out.extend_from_slice(replacement.as_ref());
        copied = range.end;
    }
    out.extend_from_slice(&text[copied..]);
    out
}

/// Replaces ranges of a text, given in any order; of two that overlap, the one that begins later is left out.
pub fn splice_unordered(text: &[u8], mut edits: Vec<(Range<usize>, String)>) -> Vec<u8> {
    edits.sort_by_key(|(range, _)| range.start);
    let mut end = 0;
    edits.retain(|(range, _)| {
        let is_apart = range.start >= end;
        end = if is_apart { range.end } else { end };
        is_apart
    });
    splice(text, &edits)
}

/// Replaces parts of a JSON value, given by their [`Json::range`]; none if there is nothing to replace.
pub(crate) fn splice_json(json: Json<'_>, mut edits: Vec<ByteEdit>) -> Option<Vec<u8>> {
    let base = json.range().start;
    for (range, _) in &mut edits {
        *range = range.start - base..range.end - base;
    }
    (!edits.is_empty()).then(|| splice(json.bytes(), &edits))
}
