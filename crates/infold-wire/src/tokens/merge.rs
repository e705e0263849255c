//! Merges the bytes of a piece into tokens.
//!
//! The pair of the lowest rank is merged first, of equals the leftmost, until none is left.
//! A piece of up to [`WINDOW_BYTES`] bytes is merged at once. A longer one is merged a window at a
//! time, which relies on this: tokens that stand side by side are the result for the whole
//! exactly if each two neighbours are the result for their own bytes. So it is enough that the
//! last token kept of one window and the first of the next agree; where they do not, the
//! window is made larger, at last to all there is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary::{MergeRank, NO_RANK, Vocabulary};

/// The size of a window; twice the length of the longest token.
const WINDOW_BYTES: usize = 256;
/// The size of a small window, which most pieces fit in, and which is faster to clear.
const SMALL_WINDOW_BYTES: usize = 32;
/// The pairs are searched for the lowest in blocks of this size.
const BLOCK_PAIRS: usize = 16;

/// Returns how many tokens a piece merges into.
pub fn merge(vocabulary: &Vocabulary, piece: &[u8]) -> u64 {
    if piece.len() <= SMALL_WINDOW_BYTES {
        MergeWindow::<SMALL_WINDOW_BYTES>::new(vocabulary, piece).count as u64
    } else if piece.len() <= WINDOW_BYTES {
        MergeWindow::<WINDOW_BYTES>::new(vocabulary, piece).count as u64
    } else {
        merge_long(vocabulary, piece).0
    }
}

/// Returns where the tokens of a piece of at most [`WINDOW_BYTES`] bytes end.
pub fn ends(vocabulary: &Vocabulary, piece: &[u8]) -> Vec<usize> {
    let merged = MergeWindow::<WINDOW_BYTES>::new(vocabulary, piece).tokens(0);
    merged.into_iter().map(|(_, end)| end).collect()
}

/// Merges a window after another, from the last token boundary that is well inside.
///
/// Returns the tokens, and how many bytes the windows had together.
fn merge_long(vocabulary: &Vocabulary, piece: &[u8]) -> (u64, usize) {
    let (mut start, mut size, mut total) = (0, WINDOW_BYTES, 0);
    let mut work = WINDOW_BYTES;
    let mut parts = tokens(vocabulary, piece, start, size);
    loop {
        if start + size >= piece.len() {
            return (total + parts.len() as u64, work);
        }
        let kept = parts
            .iter()
            .take_while(|part| part.1 <= start + size / 4 * 3);
        let kept = kept.count().max(1);
        let (last, next) = (parts[kept - 1], parts[kept..].first().map(|part| part.0));
        let following = tokens(vocabulary, piece, last.1, WINDOW_BYTES);
        let first = following[0].0;
        work += WINDOW_BYTES;
        if next == Some(first) || vocabulary.are_apart(last.0, first) {
            total += kept as u64;
            (start, size, parts) = (last.1, WINDOW_BYTES, following);
        } else {
            size *= 2;
            work += size;
            parts = tokens(vocabulary, piece, start, size);
        }
    }
}

/// Returns the tokens of a window, each with its end.
fn tokens(
    vocabulary: &Vocabulary,
    piece: &[u8],
    start: usize,
    size: usize,
) -> Vec<(MergeRank, usize)> {
    let end = piece.len().min(start + size);
    let bytes = &piece[start..end];
    match size {
        ..=WINDOW_BYTES => MergeWindow::<WINDOW_BYTES>::new(vocabulary, bytes).tokens(start),
        _ => merge_large(vocabulary, bytes, start),
    }
}

/// A piece that is being merged. Parts are indexed by their first byte.
struct MergeWindow<const N: usize> {
    ranks: [MergeRank; N],
    /// The distance to the next part.
    lengths: [u16; N],
    /// The length of the part before.
    before: [u16; N],
    /// The token that each part forms with the next one, and its index: the lowest is merged next.
    pairs: [i32; N],
    /// The lowest of each block of pairs.
    lowest: [i32; WINDOW_BYTES / BLOCK_PAIRS],
    size: usize,
    count: usize,
}

/// No pair.
const NEVER: i32 = i32::MAX;

impl<const N: usize> MergeWindow<N> {
    #[inline]
    fn new(vocabulary: &Vocabulary, piece: &[u8]) -> MergeWindow<N> {
        let mut window = MergeWindow {
            ranks: [0; N],
            lengths: [1; N],
            before: [1; N],
            pairs: [NEVER; N],
            lowest: [NEVER; WINDOW_BYTES / BLOCK_PAIRS],
            size: piece.len(),
            count: piece.len(),
        };
        for (rank, byte) in window.ranks.iter_mut().zip(piece) {
            *rank = vocabulary.bytes[*byte as usize];
        }
        for (at, two) in piece.windows(2).enumerate() {
            window.pairs[at] = pair(vocabulary.of_bytes(two[0], two[1]), at);
        }
        for block in 0..piece.len().div_ceil(BLOCK_PAIRS) {
            window.look(block);
        }
        window.run(vocabulary);
        window
    }

    fn run(&mut self, vocabulary: &Vocabulary) {
        let blocks = self.size.div_ceil(BLOCK_PAIRS);
        loop {
            let lowest = self.lowest[..blocks].iter().fold(NEVER, |a, b| a.min(*b));
            if lowest == NEVER {
                return;
            }
            let at = lowest as usize % WINDOW_BYTES;
            self.merge_at(
                at,
                (lowest as usize / WINDOW_BYTES) as MergeRank,
                vocabulary,
            );
            self.count -= 1;
        }
    }

    fn merge_at(&mut self, at: usize, rank: MergeRank, vocabulary: &Vocabulary) {
        let gone = at + self.lengths[at] as usize;
        let next = gone + self.lengths[gone] as usize;
        self.ranks[at] = rank;
        self.lengths[at] += self.lengths[gone];
        self.pairs[gone] = NEVER;
        self.pairs[at] = NEVER;
        if next < self.size {
            self.before[next] = self.lengths[at];
            self.pairs[at] = pair(vocabulary.merged(rank, self.ranks[next]), at);
        }
        self.look(at / BLOCK_PAIRS);
        if gone / BLOCK_PAIRS != at / BLOCK_PAIRS {
            self.look(gone / BLOCK_PAIRS);
        }
        if at > 0 {
            let before = at - self.before[at] as usize;
            self.pairs[before] = pair(vocabulary.merged(self.ranks[before], rank), before);
            self.look(before / BLOCK_PAIRS);
        }
    }

    /// Finds the lowest pair of a block again.
    fn look(&mut self, block: usize) {
        let pairs: &[i32; BLOCK_PAIRS] = self.pairs[block * BLOCK_PAIRS..][..BLOCK_PAIRS]
            .try_into()
            .expect("a block");
        self.lowest[block] = pairs.iter().fold(NEVER, |a, b| a.min(*b));
    }

    fn tokens(&self, start: usize) -> Vec<(MergeRank, usize)> {
        let mut out = Vec::with_capacity(self.count);
        let mut at = 0;
        while at < self.size {
            let end = at + self.lengths[at] as usize;
            out.push((self.ranks[at], start + end));
            at = end;
        }
        out
    }
}

/// A rank and a place in one number, ordered by rank. A rank has eighteen bits.
fn pair(rank: MergeRank, at: usize) -> i32 {
    match rank {
        NO_RANK => NEVER,
        _ => rank as i32 * WINDOW_BYTES as i32 + at as i32,
    }
}

/// A token of a piece that is too large for a window.
#[derive(Clone, Copy)]
struct LargeToken {
    rank: MergeRank,
    before: u32,
    after: u32,
    /// The token that it forms with the next one.
    makes: MergeRank,
}

fn merge_large(vocabulary: &Vocabulary, piece: &[u8], start: usize) -> Vec<(MergeRank, usize)> {
    let end = piece.len() as u32;
    let mut parts: Vec<LargeToken> = piece
        .iter()
        .zip(0u32..)
        .map(|(byte, at)| LargeToken {
            rank: vocabulary.bytes[*byte as usize],
            before: at.wrapping_sub(1),
            after: at + 1,
            makes: NO_RANK,
        })
        .collect();
    let mut heap = BinaryHeap::with_capacity(parts.len());
    let look =
        |parts: &mut [LargeToken], at: u32, heap: &mut BinaryHeap<Reverse<(MergeRank, u32)>>| {
            let LargeToken { rank, after, .. } = parts[at as usize];
            let makes = parts
                .get(after as usize)
                .map_or(NO_RANK, |next| vocabulary.merged(rank, next.rank));
            parts[at as usize].makes = makes;
            heap.extend((makes != NO_RANK).then_some(Reverse((makes, at))));
        };
    for at in 0..end {
        look(&mut parts, at, &mut heap);
    }
    while let Some(Reverse((rank, at))) = heap.pop() {
        // An entry is out of date if its tokens were merged since.
        if parts[at as usize].makes != rank {
            continue;
        }
        let gone = parts[at as usize].after;
        let after = parts[gone as usize].after;
        parts[gone as usize].makes = NO_RANK;
        parts[at as usize].rank = rank;
        parts[at as usize].after = after;
        if after < end {
            parts[after as usize].before = at;
        }
        look(&mut parts, at, &mut heap);
        let before = parts[at as usize].before;
        if before < end {
            look(&mut parts, before, &mut heap);
        }
    }
    let mut out = Vec::new();
    let mut at = 0;
    while at < end {
        let LargeToken { rank, after, .. } = parts[at as usize];
        out.push((rank, start + after as usize));
        at = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::Encoding;
    use super::*;

    /// A generator of bytes that are neither random nor regular.
    fn bytes(kinds: &[u8], seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed;
        let step = |_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            kinds[(state >> 40) as usize % kinds.len()]
        };
        (0..length).map(step).collect()
    }

    #[test]
    fn windows_come_to_what_the_whole_does() {
        let all: Vec<u8> = (0..=255).collect();
        let kinds: [&[u8]; 8] = [
            b"a",
            b"ab",
            b" \n",
            b"=-",
            b"aeiounrst",
            b"\xe4\xb8\xad",
            b"0aA/+",
            &all,
        ];
        for encoding in [Encoding::O200k, Encoding::Cl100k] {
            let vocabulary = Vocabulary::of(encoding);
            for (kinds, seed) in kinds.iter().zip(1..) {
                for length in [257, 1000, 5000] {
                    let piece = bytes(kinds, seed * 97, length);
                    let whole = merge_large(vocabulary, &piece, 0).len() as u64;
                    let (merged, work) = merge_long(vocabulary, &piece);
                    assert_eq!(merged, whole, "{kinds:?} {length}");
                    assert!(
                        work < 3 * length + 2 * WINDOW_BYTES,
                        "{kinds:?} {length}: {work}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_token_is_one_token() {
        let vocabulary = Vocabulary::of(Encoding::Cl100k);
        for rank in (0..100_256).step_by(9) {
            assert_eq!(merge(vocabulary, vocabulary.token(rank)), 1, "{rank}");
        }
    }
}
