//! Counts the pieces of a text, and caches the counts of short ones.

use std::cell::RefCell;

use super::merge::merge;
use super::vocabulary::{SPREAD, Vocabulary};
use super::{Encoding, split};

/// Caches the counts of short pieces.
///
/// Most pieces of most texts are among them. A new piece replaces the one with the
/// same hash, so the size is fixed.
pub struct PieceCache {
    /// A piece's bytes, and its length in the last one.
    keys: Vec<u128>,
    counts: Vec<u8>,
}

/// The number of cached pieces, which take 272 KiB.
const CACHED_PIECES: usize = 1 << 14;
/// Longer pieces are not cached.
const MAX_CACHED_PIECE_BYTES: usize = 15;

thread_local! {
    static CACHES: [RefCell<PieceCache>; 2] = const { [const { RefCell::new(PieceCache::new()) }; 2] };
}

impl PieceCache {
    const fn new() -> PieceCache {
        PieceCache {
            keys: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Calls `work` with this thread's cache of an encoding.
    pub fn with<T>(encoding: Encoding, work: impl FnOnce(&mut PieceCache) -> T) -> T {
        CACHES.with(|caches| {
            let mut cache = caches[encoding as usize].borrow_mut();
            if cache.keys.is_empty() {
                // No piece has the key 0, since none is empty.
                cache.keys = vec![0; CACHED_PIECES];
                cache.counts = vec![0; CACHED_PIECES];
            }
            work(&mut cache)
        })
    }

    /// Counts the tokens of the piece between `start` and `end`.
    #[inline(always)]
    pub fn count(&mut self, vocabulary: &Vocabulary, text: &[u8], start: usize, end: usize) -> u64 {
        let length = end - start;
        if length > MAX_CACHED_PIECE_BYTES {
            return count_piece(vocabulary, &text[start..end]);
        }
        let key = key(text, start, length);
        let folded = key as u64 ^ ((key >> 64) as u64).rotate_left(23);
        let at = (folded.wrapping_mul(SPREAD) >> (64 - CACHED_PIECES.trailing_zeros())) as usize;
        if self.keys[at] != key {
            self.keys[at] = key;
            self.counts[at] = count_piece(vocabulary, &text[start..end]) as u8;
        }
        self.counts[at] as u64
    }
}

#[cold]
#[inline(never)]
fn count_piece(vocabulary: &Vocabulary, piece: &[u8]) -> u64 {
    if vocabulary.has(piece) {
        1
    } else {
        merge(vocabulary, piece)
    }
}

/// Returns up to fifteen bytes and their number as one key.
#[inline]
fn key(text: &[u8], start: usize, length: usize) -> u128 {
    let bytes = match text.get(start..start + 16) {
        Some(bytes) => u128::from_le_bytes(bytes.try_into().expect("sixteen bytes")),
        None => {
            let mut last = [0; 16];
            last[..length].copy_from_slice(&text[start..start + length]);
            u128::from_le_bytes(last)
        }
    };
    bytes & ((1 << (8 * length)) - 1) | (length as u128) << 120
}

/// Adds the counts of a text's pieces, and returns the start of the rest that cannot be split yet.
pub fn count_pieces(encoding: Encoding, text: &str, whole: bool, total: &mut u64) -> usize {
    let text = split::SplitText {
        bytes: text.as_bytes(),
        whole,
    };
    match encoding {
        Encoding::O200k => count_each(encoding, text, total, split::o200k),
        Encoding::Cl100k => count_each(encoding, text, total, split::cl100k),
    }
}

#[inline]
fn count_each(
    encoding: Encoding,
    text: split::SplitText<'_>,
    total: &mut u64,
    end: impl Fn(split::SplitText<'_>, usize) -> split::End,
) -> usize {
    let vocabulary = Vocabulary::of(encoding);
    PieceCache::with(encoding, |cache| {
        let mut start = 0;
        while let Some(end) = end(text, start) {
            *total += cache.count(vocabulary, text.bytes, start, end);
            start = end;
        }
        start
    })
}
