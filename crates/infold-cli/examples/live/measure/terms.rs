//! The terms of a session that may be referred to again, and those of them that a stand-in holds.

use std::collections::HashMap;

use infold::references::{self, ReferenceFinder};

/// The number of a reference or a word.
pub type Term = usize;

/// The terms that user and assistant of a session refer to: references as `infold::references` has them, and plain
/// words.
pub struct Terms {
    references: HashMap<String, Term>,
    finder: ReferenceFinder,
    /// Words in lower case; they come after the references.
    words: HashMap<String, Term>,
}

/// The number of terms that were wanted, and of those that were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The number of those that were found.
    pub kept: u64,
    /// The number of all.
    pub wanted: u64,
}

/// Shares of references and of words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recall {
    /// Of references.
    pub references: Share,
    /// Of words.
    pub words: Share,
}

/// Shorter words are not specific.
const LEAST_WORD_LETTERS: usize = 4;

/// Words that occur in every text.
const STOP_WORDS: &str = "about above after again against already also always another around because been before being \
    below between both cannot check come could currently does doesn doing done down each either else ensure even ever every first \
    from further gets give given goes going good have having here however into isn itself just keep know last less let's like look \
    looks made make makes many might more most much must need needed needs never next none note nothing only other otherwise over \
    perfect please really right same seems should show shows since some something still such sure take than that their them then \
    there these they thing things think this those through under until upon used uses using very want well were what when where \
    whether which while will with within without work works would your yours";

impl Terms {
    /// Collects all terms of these texts.
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Terms {
        let mut references: HashMap<String, Term> = HashMap::new();
        let mut ordered: Vec<String> = Vec::new();
        let mut words: HashMap<String, Term> = HashMap::new();
        for text in texts {
            references::for_each(text, |reference| {
                if !references.contains_key(reference) {
                    references.insert(reference.to_owned(), ordered.len());
                    ordered.push(reference.to_owned());
                }
            });
            each_word(text, |word| {
                let next = words.len();
                words.entry(word).or_insert(next);
            });
        }
        STOP_WORDS.split_whitespace().for_each(|word| {
            words.remove(word);
        });
        let mut left: Vec<(String, Term)> = words.into_iter().collect();
        left.sort_by_key(|(_, number)| *number);
        let words = left.into_iter().map(|(word, _)| word).zip(ordered.len()..);
        Terms {
            finder: ReferenceFinder::new(ordered.iter().map(|reference| &**reference)),
            references,
            words: words.collect(),
        }
    }

    /// Returns the number of terms.
    pub fn len(&self) -> usize {
        self.references.len() + self.words.len()
    }

    /// Says whether a term is a word.
    fn is_word(&self, term: Term) -> bool {
        term >= self.references.len()
    }

    /// The terms that a text makes, in order, each once.
    pub fn made(&self, text: &str) -> Vec<Term> {
        let mut made = self.words_in(text);
        references::for_each(text, |reference| {
            made.extend(self.references.get(reference))
        });
        once(made)
    }

    /// The terms that occur in a text, in order, each once.
    pub fn found(&self, text: &str) -> Vec<Term> {
        let mut found = self.words_in(text);
        self.finder.find(text, |term| found.push(term));
        once(found)
    }

    fn words_in(&self, text: &str) -> Vec<Term> {
        let mut found = Vec::new();
        each_word(text, |word| found.extend(self.words.get(&word)));
        found
    }

    /// Counts the wanted terms in a stand-in.
    ///
    /// The figures contain no other scoring.
    pub fn kept(&self, stand_in: &str, wanted: &[Term]) -> Recall {
        if wanted.is_empty() {
            return Recall::default();
        }
        let held = self.found(stand_in);
        self.recall(wanted, |term| held.binary_search(&term).is_ok())
    }

    /// Counts the wanted terms, and those that are there.
    pub fn recall(&self, wanted: &[Term], is_there: impl Fn(Term) -> bool) -> Recall {
        let mut recall = Recall::default();
        for term in wanted {
            let share = if self.is_word(*term) {
                &mut recall.words
            } else {
                &mut recall.references
            };
            share.wanted += 1;
            share.kept += u64::from(is_there(*term));
        }
        recall
    }
}

impl Recall {
    /// Adds another one.
    pub fn add(&mut self, other: Recall) {
        self.references.add(other.references);
        self.words.add(other.words);
    }
}

impl Share {
    /// Adds another one.
    pub fn add(&mut self, other: Share) {
        self.kept += other.kept;
        self.wanted += other.wanted;
    }

    /// Adds one that was wanted.
    pub fn count(&mut self, is_kept: bool) {
        self.wanted += 1;
        self.kept += u64::from(is_kept);
    }
}

/// Calls `found` with each plain word in lower case.
fn each_word(text: &str, mut found: impl FnMut(String)) {
    for word in text.split(|letter: char| !letter.is_alphabetic()) {
        // Bytes are looked at first: most words are short, and counting letters is slow.
        if word.len() >= LEAST_WORD_LETTERS && word.chars().count() >= LEAST_WORD_LETTERS {
            found(word.to_lowercase());
        }
    }
}

fn once(mut terms: Vec<Term>) -> Vec<Term> {
    terms.sort_unstable();
    terms.dedup();
    terms
}
