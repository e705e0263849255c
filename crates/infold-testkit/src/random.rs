//! Numbers that look random, for runs that can be repeated.

/// Numbers that look random and are the same for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

const WORDS: [&str; 24] = [
    "harbour",
    "berth",
    "price",
    "season",
    "the",
    "of",
    "config",
    "error",
    "timeout",
    "retry",
    "parser",
    "index",
    "and",
    "then",
    "file",
    "src/main.rs",
    "line",
    "42",
    "value",
    "changed",
    "test",
    "passes",
    "again",
    "why",
];

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, zero if that is zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Returns true with this probability, in percent.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len() as u64) as usize]
    }
}
