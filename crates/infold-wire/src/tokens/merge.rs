use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::vocabulary::{Rank, Vocabulary};

/// Returns how many tokens a piece merges into.
///
/// Merges the pair of the lowest rank, the leftmost of equals, until no pair is left.
pub fn merge(vocabulary: &Vocabulary, piece: &[u8]) -> u64 {
    match piece.len() {
        ..=SMALL => merge_small(vocabulary, piece),
        _ => merge_large(vocabulary, piece),
    }
}

/// Up to here looking at all pairs for the lowest is faster than keeping them in order.
const SMALL: usize = 64;

const NONE: Rank = Rank::MAX;

fn merge_small(vocabulary: &Vocabulary, piece: &[u8]) -> u64 {
    let mut parts = [0; SMALL];
    // What each part makes with the next one.
    let mut pairs = [NONE; SMALL];
    let mut count = piece.len();
    for (part, byte) in parts.iter_mut().zip(piece) {
        *part = vocabulary.bytes[*byte as usize];
    }
    let made = |left, right| vocabulary.merged(left, right).unwrap_or(NONE);
    for at in 1..count {
        pairs[at - 1] = made(parts[at - 1], parts[at]);
    }
    while count > 1 {
        let (mut at, mut lowest) = (0, NONE);
        for (place, &rank) in pairs[..count - 1].iter().enumerate() {
            if rank < lowest {
                (at, lowest) = (place, rank);
            }
        }
        if lowest == NONE {
            break;
        }
        parts[at] = lowest;
        parts.copy_within(at + 2..count, at + 1);
        pairs.copy_within(at + 1..count - 1, at);
        count -= 1;
        pairs[count - 1] = NONE;
        if at + 1 < count {
            pairs[at] = made(parts[at], parts[at + 1]);
        }
        if at > 0 {
            pairs[at - 1] = made(parts[at - 1], parts[at]);
        }
    }
    count as u64
}

/// A part of a piece, at the place of its first byte.
#[derive(Clone, Copy)]
struct Part {
    rank: Rank,
    before: u32,
    after: u32,
    /// What it makes with the next one.
    makes: Rank,
}

fn merge_large(vocabulary: &Vocabulary, piece: &[u8]) -> u64 {
    let end = piece.len() as u32;
    let mut parts: Vec<Part> = piece
        .iter()
        .zip(0u32..)
        .map(|(byte, at)| Part {
            rank: vocabulary.bytes[*byte as usize],
            before: at.wrapping_sub(1),
            after: at + 1,
            makes: NONE,
        })
        .collect();
    let mut heap = BinaryHeap::with_capacity(parts.len());
    let look = |parts: &mut [Part], at: u32, heap: &mut BinaryHeap<Reverse<(Rank, u32)>>| {
        let Part { rank, after, .. } = parts[at as usize];
        let next = parts.get(after as usize);
        let makes = next.and_then(|next| vocabulary.merged(rank, next.rank));
        parts[at as usize].makes = makes.unwrap_or(NONE);
        heap.extend(makes.map(|rank| Reverse((rank, at))));
    };
    for at in 0..end {
        look(&mut parts, at, &mut heap);
    }
    let mut count = piece.len() as u64;
    while let Some(Reverse((rank, at))) = heap.pop() {
        // What was merged since then, or makes something else now, is out of date.
        if parts[at as usize].makes != rank {
            continue;
        }
        let gone = parts[at as usize].after;
        let after = parts[gone as usize].after;
        parts[gone as usize].makes = NONE;
        parts[at as usize].rank = rank;
        parts[at as usize].after = after;
        if after < end {
            parts[after as usize].before = at;
        }
        count -= 1;
        look(&mut parts, at, &mut heap);
        let before = parts[at as usize].before;
        if before < end {
            look(&mut parts, before, &mut heap);
        }
    }
    count
}
