use std::sync::OnceLock;

use super::Encoding;

/// A token's place in the vocabulary. Of two merges the one with the lower rank is made first.
pub type Rank = u32;

/// The tokens of an encoding, to be found by their bytes and by the two that make them.
pub struct Vocabulary {
    /// The rank of each single byte.
    pub bytes: [Rank; 256],
    /// All tokens, one behind the other.
    text: Vec<u8>,
    /// Where each token ends in `text`.
    ends: Vec<u32>,
    /// Ranks by the hash of their bytes; `NONE` where there is no token.
    whole: Vec<Rank>,
    /// The two parts and the rank they make, by the hash of the parts; 0 where there is none.
    ///
    /// A token can be reached by one pair of parts only. If two others stood side by side and
    /// made the same bytes, then merging those bytes alone would come to the same two.
    pairs: Vec<u64>,
}

/// No token.
const NONE: Rank = Rank::MAX;

/// How many bits a rank takes.
const BITS: u32 = 18;

impl Vocabulary {
    /// Returns the vocabulary of an encoding, which is read when it is first asked for.
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

    /// Says whether the piece is a token.
    #[inline]
    pub fn has(&self, piece: &[u8]) -> bool {
        let mut at = self.slot(hash(piece));
        loop {
            let rank = self.whole[at];
            if rank == NONE {
                return false;
            }
            if self.token(rank) == piece {
                return true;
            }
            at = (at + 1) & (self.whole.len() - 1);
        }
    }

    /// Returns the token that two tokens make.
    #[inline]
    pub fn merged(&self, left: Rank, right: Rank) -> Option<Rank> {
        let key = (left as u64) << BITS | right as u64;
        let mut at = self.pair_slot(key);
        loop {
            let entry = self.pairs[at];
            if entry == 0 {
                return None;
            }
            if entry >> BITS == key {
                return Some((entry & ((1 << BITS) - 1)) as Rank);
            }
            at = (at + 1) & (self.pairs.len() - 1);
        }
    }

    fn token(&self, rank: Rank) -> &[u8] {
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

    fn pair_slot(&self, key: u64) -> usize {
        (key.wrapping_mul(SPREAD) >> (64 - self.pairs.len().trailing_zeros())) as usize
    }

    fn insert(&mut self, rank: Rank) {
        let mut at = self.slot(hash(self.token(rank)));
        while self.whole[at] != NONE {
            at = (at + 1) & (self.whole.len() - 1);
        }
        self.whole[at] = rank;
    }

    fn insert_pair(&mut self, left: Rank, right: Rank, rank: Rank) {
        let key = (left as u64) << BITS | right as u64;
        let mut at = self.pair_slot(key);
        while self.pairs[at] != 0 {
            at = (at + 1) & (self.pairs.len() - 1);
        }
        self.pairs[at] = key << BITS | rank as u64;
    }
}

/// Reads what `scripts/vocabulary` wrote, into tables of two to the `bits` places.
fn read(data: &[u8], bits: u32) -> Vocabulary {
    let (singles, merges) = data.split_at(256);
    let count = 256 + merges.len() / 6;
    let mut read = Vocabulary {
        bytes: [0; 256],
        text: Vec::with_capacity(count * 8),
        ends: Vec::with_capacity(count),
        whole: vec![NONE; 1 << bits],
        pairs: vec![0; 1 << bits],
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
            let start = read.ends[part as usize] as usize - read.token(part).len();
            let end = read.ends[part as usize] as usize;
            read.text.extend_from_within(start..end);
        }
        read.ends.push(read.text.len() as u32);
        read.insert(rank);
        read.insert_pair(left, right, rank);
    }
    read
}

/// Two to the 64 divided by the golden ratio: spreads what is close together.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash whose upper bits are good.
#[inline]
pub fn hash(piece: &[u8]) -> u64 {
    let mut hash = piece.len() as u64;
    let mut words = piece.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        hash = (hash ^ word).wrapping_mul(SPREAD).rotate_left(29);
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(SPREAD);
    (hash ^ hash >> 32).wrapping_mul(SPREAD)
}
