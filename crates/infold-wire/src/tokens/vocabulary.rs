//! Finds the tokens of an encoding by their bytes, and by the two tokens that form them.

use std::sync::OnceLock;

use super::Encoding;

/// A token's index in the vocabulary. Of two merges the one with the lower rank comes first.
pub type MergeRank = u32;

/// The rank of no token.
pub const NO_RANK: MergeRank = MergeRank::MAX;

/// The tokens of an encoding, to be found by their bytes and by the two that make them.
pub struct Vocabulary {
    /// The rank of each single byte.
    pub bytes: [MergeRank; 256],
    /// The tokens of two bytes.
    of_bytes: Vec<MergeRank>,
    /// All tokens, one behind the other.
    text: Vec<u8>,
    /// The end of each token in `text`.
    ends: Vec<u32>,
    /// Ranks by the hash of their bytes, with a part of the hash; `EMPTY_SLOT` where there is no token.
    whole: Vec<u32>,
    /// The two parts and the rank they make, by the hash of the parts; 0 where there is none.
    ///
    /// A token can be reached by one pair of parts only. If two other adjacent parts had the same bytes, then merging
    /// those bytes alone would give the same two.
    pairs: Vec<u64>,
    /// A filter with a bit for each hash of a pair: most pairs form no token.
    filter: Vec<u64>,
}

/// The bits of a rank.
const RANK_BITS: u32 = 18;
const RANK_MASK: u32 = (1 << RANK_BITS) - 1;
const EMPTY_SLOT: u32 = u32::MAX;
/// The bits of a hash that index the filter of pairs.
const FILTER_BITS: u32 = 22;

impl Vocabulary {
    /// Returns the vocabulary of an encoding, which is read on first use.
    pub fn of(encoding: Encoding) -> &'static Vocabulary {
        static O200K: OnceLock<Vocabulary> = OnceLock::new();
        static CL100K: OnceLock<Vocabulary> = OnceLock::new();
        match encoding {
            Encoding::O200k => {
                O200K.get_or_init(|| read(include_bytes!("../../data/o200k.bin"), 19))
            }
            Encoding::Cl100k => {
                CL100K.get_or_init(|| read(include_bytes!("../../data/cl100k.bin"), 18))
            }
        }
    }

    /// Returns whether the piece is a token.
    #[inline]
    pub fn has(&self, piece: &[u8]) -> bool {
        let hash = hash(piece);
        let mut at = self.slot(hash);
        loop {
            let entry = self.whole[at];
            if entry == EMPTY_SLOT {
                return false;
            }
            if (entry ^ mark(hash)) & !RANK_MASK == 0 && self.token(entry & RANK_MASK) == piece {
                return true;
            }
            at = (at + 1) & (self.whole.len() - 1);
        }
    }

    /// Returns the token that two tokens form.
    #[inline]
    pub fn merged(&self, left: MergeRank, right: MergeRank) -> MergeRank {
        let key = key(left, right);
        let hash = mix(key);
        let bit = (hash >> (64 - FILTER_BITS)) as usize;
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return NO_RANK;
        }
        let mut at = self.pair_slot(hash);
        loop {
            let entry = self.pairs[at];
            if entry == 0 {
                return NO_RANK;
            }
            if entry >> RANK_BITS == key {
                return entry as MergeRank & RANK_MASK;
            }
            at = (at + 1) & (self.pairs.len() - 1);
        }
    }

    /// Returns the token that two bytes form.
    #[inline]
    pub fn of_bytes(&self, left: u8, right: u8) -> MergeRank {
        self.of_bytes[(left as usize) << 8 | right as usize]
    }

    /// Returns whether two adjacent tokens are not merged.
    pub fn are_apart(&self, left: MergeRank, right: MergeRank) -> bool {
        let both = [self.token(left), self.token(right)].concat();
        super::merge::ends(self, &both) == [self.token(left).len(), both.len()]
    }

    /// Returns a token's bytes.
    pub fn token(&self, rank: MergeRank) -> &[u8] {
        let rank = rank as usize;
        let start = match rank {
            0 => 0,
            _ => self.ends[rank - 1],
        };
        &self.text[start as usize..self.ends[rank] as usize]
    }

    fn slot(&self, hash: u64) -> usize {
        (hash >> (64 - self.whole.len().trailing_zeros())) as usize
    }

    fn pair_slot(&self, hash: u64) -> usize {
        // The hash may share bits with the index of the filter.
        (hash >> (64 - self.pairs.len().trailing_zeros())) as usize
    }

    fn insert(&mut self, rank: MergeRank) {
        let hash = hash(self.token(rank));
        let mut at = self.slot(hash);
        while self.whole[at] != EMPTY_SLOT {
            at = (at + 1) & (self.whole.len() - 1);
        }
        self.whole[at] = mark(hash) & !RANK_MASK | rank;
    }

    fn insert_pair(&mut self, left: MergeRank, right: MergeRank, rank: MergeRank) {
        let key = key(left, right);
        let hash = mix(key);
        let bit = (hash >> (64 - FILTER_BITS)) as usize;
        self.filter[bit / 64] |= 1 << (bit % 64);
        let mut at = self.pair_slot(hash);
        while self.pairs[at] != 0 {
            at = (at + 1) & (self.pairs.len() - 1);
        }
        self.pairs[at] = key << RANK_BITS | rank as u64;
    }
}

/// Reads a file of `scripts/vocabulary` into tables of two to the `bits` entries.
fn read(data: &[u8], bits: u32) -> Vocabulary {
    let (singles, merges) = data.split_at(256);
    let count = 256 + merges.len() / 6;
    let mut read = Vocabulary {
        bytes: [0; 256],
        of_bytes: vec![NO_RANK; 1 << 16],
        text: Vec::with_capacity(count * 7),
        ends: Vec::with_capacity(count),
        whole: vec![EMPTY_SLOT; 1 << bits],
        pairs: vec![0; 1 << bits],
        filter: vec![0; 1 << (FILTER_BITS - 6)],
    };
    for (&byte, rank) in singles.iter().zip(0..) {
        read.bytes[byte as usize] = rank;
        read.text.push(byte);
        read.ends.push(read.text.len() as u32);
        read.insert(rank);
    }
    for (merge, rank) in merges.chunks_exact(6).zip(256..) {
        let part = |at: usize| u32::from_le_bytes([merge[at], merge[at + 1], merge[at + 2], 0]);
        let (left, right) = (part(0), part(3));
        for part in [left, right] {
            let end = read.ends[part as usize] as usize;
            let start = end - read.token(part).len();
            read.text.extend_from_within(start..end);
        }
        read.ends.push(read.text.len() as u32);
        read.insert(rank);
        read.insert_pair(left, right, rank);
        if let &[left, right] = read.token(rank) {
            read.of_bytes[(left as usize) << 8 | right as usize] = rank;
        }
    }
    read
}

fn key(left: MergeRank, right: MergeRank) -> u64 {
    (left as u64) << RANK_BITS | right as u64
}

/// Returns the bits of a hash that are stored beside a rank.
fn mark(hash: u64) -> u32 {
    (hash as u32) << RANK_BITS
}

/// Two to the 64 divided by the golden ratio, which spreads close numbers.
pub const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes a number; the result is good in its upper bits.
#[inline]
fn mix(number: u64) -> u64 {
    let product = number.wrapping_mul(SPREAD);
    (product ^ product >> 32).wrapping_mul(SPREAD)
}

/// Hashes some bytes; the result is good in its upper bits.
#[inline]
fn hash(piece: &[u8]) -> u64 {
    let mut hash = piece.len() as u64;
    let mut rest = piece;
    while let Some((word, more)) = rest.split_first_chunk::<8>() {
        hash = mix(hash ^ u64::from_le_bytes(*word));
        rest = more;
    }
    let last = rest.iter().fold(0, |last, byte| last << 8 | *byte as u64);
    mix(hash ^ last)
}
