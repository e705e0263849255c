//! The terms of a text: the index entries of a message, and the words of a query.
//!
//! Messages and queries are split by the same function, so a literal part of a message finds it.

mod letter;
mod scan;
mod stem;
mod query;

pub use query::{FormKind, Query, QueryTerm, TermForm, TermMatcher};
pub use scan::{Term, TermKind, each_term};
pub use stem::{Language, is_stop_word};

/// The terms of a document, each list joined by spaces, as the index takes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentTerms {
    /// Words, parts of identifiers and paths, pairs of CJK characters, emoji; in the order of the text.
    pub words: String,
    /// Identifiers, paths, numbers and dates as a whole.
    pub wholes: String,
    /// Stems of words that differ from their word.
    pub stems: String,
    /// The number of words.
    pub count: u64,
}

impl DocumentTerms {
    /// Returns the terms of a text.
    pub fn of(text: &str) -> DocumentTerms {
        let mut terms = DocumentTerms::default();
        let language = Language::of(text);
        each_term(text, &mut |term| match term.kind {
            TermKind::Word => {
                push(&mut terms.words, term.text);
                terms.count += 1;
                let stem = language.remembered_stem(term.text);
                if let Some(stem) = &stem {
                    push(&mut terms.stems, stem);
                }
                if language == Language::German && term.text.len() >= MIN_COMPOUND_BYTES {
                    // A compound is found by its last part.
                    let stem = stem.as_deref().unwrap_or(term.text);
                    push(&mut terms.stems, &reversed(stem));
                }
            }
            TermKind::Characters => {
                push(&mut terms.words, term.text);
                terms.count += 1;
            }
            TermKind::Whole => push(&mut terms.wholes, term.text),
        });
        terms
    }
}

/// Shorter words of German are no compounds.
const MIN_COMPOUND_BYTES: usize = 8;

/// A term by whose beginning words are found that end so.
fn reversed(word: &str) -> String {
    std::iter::once('~').chain(word.chars().rev()).collect()
}

fn push(out: &mut String, term: &str) {
    if !out.is_empty() {
        out.push(' ');
    }
    out.push_str(term);
}

#[cfg(test)]
mod tests;
