use std::cell::RefCell;

use super::merge::merge;
use super::vocabulary::{SPREAD, Vocabulary};
use super::{Encoding, split};

/// The counts of short pieces that were seen lately.
///
/// Most pieces of most texts are among them. What is seen takes the place of what had the
/// same hash, so it stays as small as it is.
pub struct Cache {
    /// A piece's bytes, and its length in the last one.
    keys: Vec<u128>,
    counts: Vec<u8>,
}

/// How many pieces are kept: 272 KiB of them.
const PLACES: usize = 1 << 14;
/// The longest piece that is kept.
const LONGEST: usize = 15;

thread_local! {
    static CACHES: [RefCell<Cache>; 2] = const { [const { RefCell::new(Cache::new()) }; 2] };
}

impl Cache {
    const fn new() -> Cache {
        Cache {
            keys: Vec::new(),
            counts: Vec::new(),
        }
    }

    /// Lends this thread's cache of an encoding.
    pub fn lend<T>(encoding: Encoding, work: impl FnOnce(&mut Cache) -> T) -> T {
        CACHES.with(|caches| {
            let mut cache = caches[encoding as usize].borrow_mut();
            if cache.keys.is_empty() {
                // No piece has this key: the empty one is never asked for.
                cache.keys = vec![0; PLACES];
                cache.counts = vec![0; PLACES];
            }
            work(&mut cache)
        })
    }

    /// Returns how many tokens the piece is that starts and ends there.
    #[inline(always)]
    pub fn count(&mut self, vocabulary: &Vocabulary, text: &[u8], start: usize, end: usize) -> u64 {
        let length = end - start;
        if length > LONGEST {
            return counted(vocabulary, &text[start..end]);
        }
        let key = key(text, start, length);
        let folded = key as u64 ^ ((key >> 64) as u64).rotate_left(23);
        let at = (folded.wrapping_mul(SPREAD) >> (64 - PLACES.trailing_zeros())) as usize;
        if self.keys[at] != key {
            self.keys[at] = key;
            self.counts[at] = counted(vocabulary, &text[start..end]) as u8;
        }
        self.counts[at] as u64
    }
}

#[cold]
#[inline(never)]
fn counted(vocabulary: &Vocabulary, piece: &[u8]) -> u64 {
    match vocabulary.has(piece) {
        true => 1,
        false => merge(vocabulary, piece),
    }
}

/// Up to fifteen bytes and how many they are.
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

/// Adds up the pieces of a text and returns where the part begins that was not cut yet.
pub fn pieces(encoding: Encoding, text: &str, whole: bool, total: &mut u64) -> usize {
    let text = split::Text {
        bytes: text.as_bytes(),
        whole,
    };
    match encoding {
        Encoding::O200k => cut(encoding, text, total, split::o200k),
        Encoding::Cl100k => cut(encoding, text, total, split::cl100k),
    }
}

#[inline]
fn cut(
    encoding: Encoding,
    text: split::Text<'_>,
    total: &mut u64,
    end: impl Fn(split::Text<'_>, usize) -> split::End,
) -> usize {
    let vocabulary = Vocabulary::of(encoding);
    Cache::lend(encoding, |cache| {
        let mut start = 0;
        while let Some(end) = end(text, start) {
            *total += cache.count(vocabulary, text.bytes, start, end);
            start = end;
        }
        start
    })
}
