//! What somebody typed to search for: words, "phrases", -excluded words, prefixes*.

use std::collections::HashSet;

use super::scan::{Term, TermKind, each_term};
use super::stem::{Language, is_stop_word};

/// A query, parsed. Every text is one: what has no meaning as an operator is searched for, or left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// What is looked for; the more of them a message has, the better.
    pub terms: Vec<QueryTerm>,
    /// Words that a message must have in a row.
    pub phrases: Vec<Vec<String>>,
    /// Words that a message must not have, each alone or in a row.
    pub excluded: Vec<Vec<String>>,
}

/// One thing that is looked for, with all its forms.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryTerm {
    /// As it was typed, folded.
    pub word: String,
    /// How it may stand in a message.
    pub forms: Vec<TermForm>,
    /// It is a whole identifier or path, whose parts are terms too.
    pub is_whole: bool,
    /// It is a part of a whole.
    pub is_part: bool,
}

/// One form of what is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermForm {
    /// The term in the index.
    pub term: String,
    /// Only its beginning.
    pub is_prefix: bool,
    /// It stands for words with the same stem.
    pub is_stem: bool,
}

/// More different words of a query are not looked for.
const MAX_TERMS: usize = 64;
/// More of a query is not read.
const MAX_QUERY_BYTES: usize = 64 << 10;

/// A piece of the text between white space, or between quotes.
enum Piece<'a> {
    Words(&'a str),
    Prefix(&'a str),
    Phrase(&'a str),
    Excluded(&'a str),
}

impl Query {
    /// Reads a query. There are no errors.
    pub fn parse(text: &str) -> Query {
        let end = text.len().min(MAX_QUERY_BYTES);
        let end = (0..=end).rev().find(|at| text.is_char_boundary(*at));
        let text = &text[..end.unwrap_or(0)];
        let pieces = split(text);
        let is_positive = |piece: &Piece<'_>| !matches!(piece, Piece::Excluded(_));
        let has_positive = pieces.iter().any(is_positive);
        let mut builder = Builder {
            language: Language::of(text),
            query: Query::default(),
            known: HashSet::new(),
        };
        for piece in &pieces {
            match piece {
                Piece::Words(text) => builder.words(text),
                Piece::Prefix(text) => builder.prefix(text),
                Piece::Phrase(text) => {
                    let words = words_in_row(text);
                    if words.len() > 1 {
                        builder.query.phrases.push(words);
                    }
                    builder.words(text);
                }
                // Without anything else, `-v` is what is looked for.
                Piece::Excluded(text) if !has_positive => builder.words(text),
                Piece::Excluded(text) => {
                    let words = words_in_row(text);
                    if !words.is_empty() {
                        builder.query.excluded.push(words);
                    }
                }
            }
        }
        builder.finish()
    }

    /// Says whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the words it looks for, to say so.
    pub fn words(&self) -> Vec<&str> {
        let typed = self.terms.iter().filter(|term| !term.is_part);
        typed.map(|term| term.word.as_str()).collect()
    }

    /// Says whether a term of a message is one of those that are looked for.
    pub fn matches(&self, term: &Term<'_>, language: Language) -> bool {
        let stem = || match term.kind {
            TermKind::Word => language.stem(term.text),
            _ => None,
        };
        let mut forms = self.terms.iter().flat_map(|term| &term.forms);
        forms.any(|form| {
            if form.is_prefix {
                return term.text.starts_with(&form.term);
            }
            form.term == term.text || form.is_stem && stem().is_some_and(|stem| stem == form.term)
        })
    }
}

struct Builder {
    language: Language,
    query: Query,
    known: HashSet<String>,
}

impl Builder {
    fn words(&mut self, text: &str) {
        let mut found: Vec<(TermKind, String, std::ops::Range<usize>)> = Vec::new();
        each_term(text, &mut |term| {
            found.push((term.kind, term.text.to_owned(), term.range));
        });
        let wholes = found.iter().filter(|(kind, ..)| *kind == TermKind::Whole);
        let wholes: Vec<_> = wholes.map(|(.., range)| range.clone()).collect();
        let is_part = |range: &std::ops::Range<usize>| {
            wholes
                .iter()
                .any(|whole| whole.start <= range.start && range.end <= whole.end)
        };
        let characters = found
            .iter()
            .filter(|(kind, ..)| *kind == TermKind::Characters);
        let characters: Vec<_> = characters.map(|(.., range)| range.clone()).collect();
        for (kind, word, range) in found {
            match kind {
                TermKind::Word => {
                    let part = is_part(&range);
                    self.add(word, part, false, Language::stems);
                }
                TermKind::Whole => self.add(word, false, true, |_, word| vec![word.to_owned()]),
                TermKind::Characters => {
                    let is_single = word.chars().count() == 1;
                    // The last character of a run is looked for with the one before it.
                    let is_last = characters
                        .iter()
                        .any(|other| other.start < range.start && other.end == range.end);
                    if is_single && is_last {
                        continue;
                    }
                    let prefix = is_single;
                    self.add_form(word.clone(), word, prefix);
                }
            }
        }
    }

    fn prefix(&mut self, text: &str) {
        let words = words_in_row(text);
        if let [word] = &words[..] {
            self.add_form(format!("{word}*"), word.clone(), true);
        } else {
            self.words(text);
        }
    }

    fn add_form(&mut self, word: String, term: String, is_prefix: bool) {
        if self.query.terms.len() < MAX_TERMS && self.known.insert(word.clone()) {
            let forms = vec![TermForm {
                term,
                is_prefix,
                is_stem: false,
            }];
            self.query.terms.push(QueryTerm {
                word,
                forms,
                is_whole: false,
                is_part: false,
            });
        }
    }

    fn add(
        &mut self,
        word: String,
        is_part: bool,
        is_whole: bool,
        stems: impl Fn(Language, &str) -> Vec<String>,
    ) {
        if self.query.terms.len() >= MAX_TERMS || !self.known.insert(word.clone()) {
            return;
        }
        let mut forms = vec![TermForm {
            term: word.clone(),
            is_prefix: false,
            is_stem: false,
        }];
        if !is_whole {
            forms.extend(
                stems(self.language, &word)
                    .into_iter()
                    .map(|term| TermForm {
                        term,
                        is_prefix: false,
                        is_stem: true,
                    }),
            );
        }
        self.query.terms.push(QueryTerm {
            word,
            forms,
            is_whole,
            is_part,
        });
    }

    /// Leaves out words that say nothing, unless there are no others.
    fn finish(mut self) -> Query {
        let language = self.language;
        let says = |term: &QueryTerm| !is_stop_word(&term.word, language);
        if self.query.terms.iter().any(says) {
            self.query.terms.retain(says);
        }
        self.query
    }
}

/// The words of a phrase, as they follow each other in the index.
fn words_in_row(text: &str) -> Vec<String> {
    let mut words: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    each_term(text, &mut |term| {
        if term.kind != TermKind::Whole {
            words.push((term.text.to_owned(), term.range));
        }
    });
    // The last character of a run follows only where the run ends in the message too.
    let is_tail = words.len() > 1
        && words[words.len() - 1].0.chars().count() == 1
        && words[words.len() - 2].1.end == words[words.len() - 1].1.end;
    if is_tail {
        words.pop();
    }
    words.into_iter().map(|(word, _)| word).collect()
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„')
}

fn split(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c.is_whitespace() {
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let is_excluded = c == '-' && !rest[1..].starts_with(['-', ' ', '\t', '\n']);
        let body = if is_excluded { &rest[1..] } else { rest };
        let quoted = body.chars().next().filter(|c| is_quote(*c));
        let quoted = quoted.and_then(|open| {
            let inner = &body[open.len_utf8()..];
            let end = inner.find(is_quote)?;
            Some((&inner[..end], &inner[end..]))
        });
        let (inner, after) = match quoted {
            Some((inner, after)) => {
                let close = after.chars().next().map_or(0, char::len_utf8);
                (inner, &after[close..])
            }
            None => {
                let end = body.find(char::is_whitespace).unwrap_or(body.len());
                body.split_at(end)
            }
        };
        pieces.push(match (is_excluded, quoted) {
            (true, _) => Piece::Excluded(inner),
            (false, Some(_)) => Piece::Phrase(inner),
            (false, None) => match inner.strip_suffix('*') {
                Some(start) if !start.is_empty() => Piece::Prefix(start),
                _ => Piece::Words(inner),
            },
        });
        rest = after;
    }
    pieces
}
