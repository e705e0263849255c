//! What a text is about: its words, as hashes, and how likely each is to be said again.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

use super::facts::keep;
use super::names::{Met, Source};
use super::sentence::is_wide;

/// A word, or a pair of characters of a script without spaces, as a hash of its small letters.
pub type Term = u64;

/// A map by terms, which are hashes already.
pub type TermMap<V> = HashMap<Term, V, BuildHasherDefault<TermHasher>>;
/// A set of terms.
pub type TermSet = HashSet<Term, BuildHasherDefault<TermHasher>>;

/// Takes a term for its own hash.
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
/// Shorter words of scripts with spaces say little.
const MIN_WORD_CHARS: usize = 3;
/// Longer ones are data.
const MAX_WORD_CHARS: usize = 40;

/// Calls `found` with each term of a text in order, and with none where a sentence ends.
pub fn each(text: &str, mut found: impl FnMut(Option<Term>)) {
    let mut word = Word::default();
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

struct Word {
    hash: u64,
    chars: usize,
    /// The character before, of a script without spaces.
    wide: Option<char>,
}

impl Default for Word {
    fn default() -> Word {
        Word {
            hash: FNV_BASIS,
            chars: 0,
            wide: None,
        }
    }
}

impl Word {
    fn push(&mut self, c: char) {
        self.wide = None;
        self.hash = mix(self.hash, c);
        self.chars += 1;
    }

    fn push_wide(&mut self, c: char, found: &mut impl FnMut(Option<Term>)) {
        if let Some(before) = self.wide {
            found(Some(mix(mix(FNV_BASIS, before), c)));
        }
        self.wide = Some(c);
    }

    fn end(&mut self, found: &mut impl FnMut(Option<Term>)) {
        let is_word = (MIN_WORD_CHARS..=MAX_WORD_CHARS).contains(&self.chars);
        if is_word && !stop_words().contains(&self.hash) {
            found(Some(self.hash));
        }
        if self.chars > 0 {
            *self = Word::default();
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

/// A hash of a text, the same in every run.
pub fn hash(text: &str) -> u64 {
    text.chars().fold(FNV_BASIS, mix)
}

/// One term for two that stand beside each other.
pub fn pair(first: Term, second: Term) -> Term {
    (first.rotate_left(17) ^ second).wrapping_mul(FNV_PRIME)
}

/// All words met; when there are too many, the least likely to be said again are forgotten.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    terms: TermMap<Met>,
    /// The last message that any was met in.
    now: u64,
}

/// As many as a map of 2 MB holds; with one more it would double.
const MAX_TERMS: usize = 57_000;
/// A word met so much is as likely as not to be said again.
const EVEN_VALUE: f64 = 4.0;

impl Vocabulary {
    /// Counts each term of a text once for the message and source.
    pub fn meet(&mut self, text: &str, seq: u64, source: Source) {
        self.now = self.now.max(seq);
        each(text, |term| {
            let Some(term) = term else { return };
            self.terms.entry(term).or_default().count(seq, source);
        });
        if self.terms.len() >= MAX_TERMS {
            self.forget();
        }
    }

    /// How likely a term is to be said again, from 0 to 1.
    pub fn weight(&self, term: Term) -> f64 {
        self.terms.get(&term).map_or(0.0, |met| {
            let value = met.value(self.now);
            value / (value + EVEN_VALUE)
        })
    }

    /// How much of a text was said seldom: the sum over its terms, each counted once. Long paths and data say nothing.
    pub fn rarity(&self, text: &str) -> f64 {
        let mut own = TermSet::default();
        let mut sum = 0.0;
        let is_word = |word: &&str| word.len() <= MAX_WORD_CHARS || !word.is_ascii();
        for word in text.split_whitespace().filter(is_word) {
            each(word, |term| {
                if let Some(term) = term.filter(|term| own.insert(*term)) {
                    sum += self.terms.get(&term).map_or(1.0, Met::rarity);
                }
            });
        }
        sum
    }

    /// Returns about how many bytes they take.
    pub fn held(&self) -> usize {
        self.terms.capacity() * (size_of::<(Term, Met)>() + 1)
    }

    /// Keeps the better half. It takes as many new ones to fill up again, so the time stays linear.
    fn forget(&mut self) {
        let now = self.now;
        let mut weights: Vec<f64> = self.terms.values().map(|met| met.value(now)).collect();
        let middle = weights.len() / 2;
        let (_, least, _) = weights.select_nth_unstable_by(middle, f64::total_cmp);
        let least = *least;
        let mut left = MAX_TERMS / 2;
        self.terms.retain(|_, met| {
            let stays = met.value(now) >= least && left > 0;
            left -= usize::from(stays);
            stays
        });
    }
}

fn stop_words() -> &'static TermSet {
    static WORDS: OnceLock<TermSet> = OnceLock::new();
    WORDS.get_or_init(|| {
        let words = STOP_WORDS.split_whitespace();
        words.map(hash).collect()
    })
}

/// Words that every text of their language has.
const STOP_WORDS: &str = "
the and for that this with you are not but can was have from they will what all has had were been one its out into
more then than them our your his her she who how when which their there would could should about some any may use
also now just like let get got see does did yes okay here where why very each other only over same such too own most
both few nor off again once because while these those being having doing let's i'll i'm it's don't
der die das und ist nicht ein eine einer eines den dem des mit von auf für im zum zur als auch aus bei dass sich sind
war wird noch nur oder aber wir ich sie ihr man wie was wenn dann hier
les des est une dans pas sur plus par pour que qui avec sont ont ces cette mais nous vous ils elle aux leur tout
los las una por con del para este esta como más pero sus sin sobre son fue hay muy
não uma com por que dos das mais como mas foi ele ela seu sua nos isso
che non una per con del della sono anche come più nel alla questo questa
что это как так его для она они мы вы был была было были при или если уже еще ещё";

keep!(Vocabulary { terms, now });

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        let mut count = 0;
        each(text, |term| count += usize::from(term.is_some()));
        count
    }

    #[test]
    fn words_are_told_in_any_script() {
        assert_eq!(count("The deposit for thirty euros"), 3);
        assert_eq!(count("登录按钮"), 3);
        assert_eq!(count("Кнопка должна быть синей"), 4);
        assert_eq!(count(""), 0);
        let mut all = Vec::new();
        each("Deposit deposit", |term| all.push(term));
        assert_eq!(all[0], all[1]);
    }

    #[test]
    fn what_is_new_and_said_by_people_weighs_more() {
        let mut words = Vocabulary::default();
        words.meet("harbour", 1, Source::User);
        words.meet("crane", 1, Source::Given);
        words.meet("gangway", 500, Source::User);
        let weight = |word: &str| {
            let mut weight = 0.0;
            each(word, |term| {
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
        let mut words = Vocabulary::default();
        for seq in 0..400_u64 {
            let text: String = (0..500_u64)
                .map(|n| {
                    let letters = format!("{:x}", (seq * 500 + n).wrapping_mul(0x9e37_79b9));
                    letters.replace(|c: char| c.is_ascii_digit(), "qx") + " "
                })
                .collect();
            words.meet(&text, seq, Source::Given);
        }
        assert!(words.terms.len() <= MAX_TERMS);
        assert!(words.held() < 8 << 20);
    }
}
