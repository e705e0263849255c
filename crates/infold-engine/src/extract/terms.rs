//! The terms of a text as hashes, and how likely each is to be used again.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use super::facts::persist;
use super::names::{MentionOrigin, Mentions};
use super::word_lists::STOP_WORDS;
use crate::sentence::is_wide;

/// A word, or a pair of characters of a script without spaces, as a hash of its small letters.
pub type TermHash = u64;

/// A map by terms, which are hashes already.
pub type TermMap<V> = HashMap<TermHash, V, BuildHasherDefault<TermHasher>>;
/// A set of terms.
pub type TermSet = HashSet<TermHash, BuildHasherDefault<TermHasher>>;

/// A hasher that uses a term as its own hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct TermHasher(u64);

impl Hasher for TermHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
        }
    }

    fn write_u64(&mut self, term: u64) {
        self.0 = term;
    }
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
/// Shorter words of scripts with spaces are not informative.
const MIN_WORD_CHARS: usize = 3;
/// Longer ones are data.
const MAX_WORD_CHARS: usize = 40;

/// Calls `found` with each term of a text in order, and with `None` where a sentence ends.
pub fn for_each(text: &str, mut found: impl FnMut(Option<TermHash>)) {
    let mut word = WordHash::default();
    for c in text.chars() {
        if c.is_ascii_alphabetic() {
            word.push(c.to_ascii_lowercase());
        } else if is_wide(c) {
            if word.chars > 0 {
                word.end(&mut found);
            }
            word.push_wide(c, &mut found);
        } else if c.is_alphabetic() {
            c.to_lowercase().for_each(|c| word.push(c));
        } else {
            word.end(&mut found);
            if matches!(c, '\n' | '.' | '!' | '?' | '。' | '！' | '？') {
                found(None);
            }
        }
    }
    word.end(&mut found);
}

/// The hash of the word that is being read.
struct WordHash {
    hash: u64,
    chars: usize,
    /// The previous character, if it is of a script without spaces.
    wide: Option<char>,
}

impl Default for WordHash {
    fn default() -> WordHash {
        WordHash {
            hash: FNV_BASIS,
            chars: 0,
            wide: None,
        }
    }
}

impl WordHash {
    fn push(&mut self, c: char) {
        self.wide = None;
        self.hash = mix(self.hash, c);
        self.chars += 1;
    }

    fn push_wide(&mut self, c: char, found: &mut impl FnMut(Option<TermHash>)) {
        if let Some(before) = self.wide {
            found(Some(mix(mix(FNV_BASIS, before), c)));
        }
        self.wide = Some(c);
    }

    fn end(&mut self, found: &mut impl FnMut(Option<TermHash>)) {
        let is_word = (MIN_WORD_CHARS..=MAX_WORD_CHARS).contains(&self.chars);
        if is_word && !STOP_WORD_HASHES.contains(&self.hash) {
            found(Some(self.hash));
        }
        if self.chars > 0 {
            *self = WordHash::default();
        } else {
            self.wide = None;
        }
    }
}

fn mix(hash: u64, c: char) -> u64 {
    let mut hash = hash;
    let mut code = u32::from(c);
    loop {
        hash = (hash ^ u64::from(code & 0xff)).wrapping_mul(FNV_PRIME);
        code >>= 8;
        if code == 0 {
            return hash;
        }
    }
}

/// Returns the hash of a text, the same in every run.
pub fn hash(text: &str) -> u64 {
    text.chars().fold(FNV_BASIS, mix)
}

/// Returns one term for two neighbours.
pub fn pair(first: TermHash, second: TermHash) -> TermHash {
    (first.rotate_left(17) ^ second).wrapping_mul(FNV_PRIME)
}

/// All terms of the messages; if there are too many, the half that is less likely to be used again is dropped.
#[derive(Clone, Debug, Default)]
pub struct TermTable {
    terms: TermMap<Mentions>,
    /// The last message with any of them.
    now: u64,
}

/// The capacity of a map of 2 MB; one more would double it.
const MAX_TERMS: usize = 57_000;
/// A term with this value is used again with a probability of one half.
const EVEN_VALUE: f64 = 4.0;

impl TermTable {
    /// Counts each term of a text once for each message and origin.
    pub fn record(&mut self, text: &str, seq: u64, origin: MentionOrigin) {
        self.now = self.now.max(seq);
        for_each(text, |term| {
            let Some(term) = term else { return };
            self.terms.entry(term).or_default().count(seq, origin);
        });
        if self.terms.len() >= MAX_TERMS {
            self.forget();
        }
    }

    /// Returns how likely a term is to be used again, from 0 to 1.
    pub fn weight(&self, term: TermHash) -> f64 {
        self.terms.get(&term).map_or(0.0, |mentions| {
            let value = mentions.value(self.now);
            value / (value + EVEN_VALUE)
        })
    }

    /// Returns the sum of the rarities of the terms of a text, each counted once. Long paths and data do not count.
    pub fn rarity(&self, text: &str) -> f64 {
        let mut own = TermSet::default();
        let mut sum = 0.0;
        let is_word = |word: &&str| word.len() <= MAX_WORD_CHARS || !word.is_ascii();
        for word in text.split_whitespace().filter(is_word) {
            for_each(word, |term| {
                if let Some(term) = term.filter(|term| own.insert(*term)) {
                    sum += self.terms.get(&term).map_or(1.0, Mentions::rarity);
                }
            });
        }
        sum
    }

    /// Returns about how many bytes the table takes.
    pub fn memory_bytes(&self) -> usize {
        self.terms.capacity() * (size_of::<(TermHash, Mentions)>() + 1)
    }

    /// Keeps the better half. As many new terms fill it up again, so the total time stays linear.
    fn forget(&mut self) {
        let now = self.now;
        let mut weights: Vec<f64> = self
            .terms
            .values()
            .map(|mentions| mentions.value(now))
            .collect();
        let middle = weights.len() / 2;
        let (_, least, _) = weights.select_nth_unstable_by(middle, f64::total_cmp);
        let least = *least;
        let mut left = MAX_TERMS / 2;
        self.terms.retain(|_, mentions| {
            let stays = mentions.value(now) >= least && left > 0;
            left -= usize::from(stays);
            stays
        });
    }
}

/// The hashes of words that every text of their language has.
static STOP_WORD_HASHES: LazyLock<TermSet> =
    LazyLock::new(|| STOP_WORDS.iter().map(hash).collect());

persist!(TermTable: terms, now);

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        let mut count = 0;
        for_each(text, |term| count += usize::from(term.is_some()));
        count
    }

    #[test]
    fn words_are_told_in_any_script() {
        assert_eq!(count("The deposit for thirty euros"), 3);
        assert_eq!(count("登录按钮"), 3);
        assert_eq!(count("Кнопка должна быть синей"), 4);
        assert_eq!(count(""), 0);
        let mut all = Vec::new();
        for_each("Deposit deposit", |term| all.push(term));
        assert_eq!(all[0], all[1]);
    }

    #[test]
    fn what_is_new_and_said_by_people_weighs_more() {
        let mut words = TermTable::default();
        words.record("harbour", 1, MentionOrigin::User);
        words.record("crane", 1, MentionOrigin::Result);
        words.record("gangway", 500, MentionOrigin::User);
        let weight = |word: &str| {
            let mut weight = 0.0;
            for_each(word, |term| {
                weight = term.map_or(weight, |term| words.weight(term))
            });
            weight
        };
        assert!(weight("gangway") > weight("harbour"));
        assert!(weight("harbour") > weight("crane"));
        assert_eq!(weight("unheard"), 0.0);
    }

    #[test]
    fn a_vocabulary_stays_bounded() {
        let mut words = TermTable::default();
        for seq in 0..400_u64 {
            let text: String = (0..500_u64)
                .map(|n| {
                    let letters = format!("{:x}", (seq * 500 + n).wrapping_mul(0x9e37_79b9));
                    letters.replace(|c: char| c.is_ascii_digit(), "qx") + " "
                })
                .collect();
            words.record(&text, seq, MentionOrigin::Result);
        }
        assert!(words.terms.len() <= MAX_TERMS);
        assert!(words.memory_bytes() < 8 << 20);
    }
}
