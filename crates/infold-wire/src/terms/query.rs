//! Search queries as users type them: words, "phrases", -excluded words, prefixes*.

use std::collections::HashSet;
use std::ops::Range;

use super::scan::{Term, TermKind, each_term};
use super::stem::{Language, is_stop_word, synonyms_of};
use super::{MIN_COMPOUND_BYTES, reversed};

/// A parsed query. Every text is a query: characters without a meaning as operators are searched for, or left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The terms to look for; the more of them a message has, the better.
    pub terms: Vec<QueryTerm>,
    /// Words that a message must have in a row.
    pub phrases: Vec<Vec<String>>,
    /// Words that a message must not have, each alone or in a row.
    pub excluded: Vec<Vec<String>>,
    /// Whether the query is a sentence rather than a few words: its answer need not have any of them.
    pub is_sentence: bool,
}

/// A term to look for, with all its forms.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryTerm {
    /// The term as it was typed, folded.
    pub word: String,
    /// The forms that it may have in a message.
    pub forms: Vec<TermForm>,
    /// Whether the term is a whole identifier or path, whose parts are terms too.
    pub is_whole: bool,
    /// Whether the term is a part of such an identifier or path.
    pub is_part: bool,
}

/// One form of a term to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermForm {
    /// The term in the index.
    pub term: String,
    /// Whether only the beginning of an indexed term has to match.
    pub is_prefix: bool,
    /// The relation of the form to the typed word.
    pub kind: FormKind,
}

/// The relation of a form to the word that was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormKind {
    /// The word as it was typed.
    Word,
    /// Words with the same stem.
    Stem,
    /// Words that mean much the same.
    Synonym,
    /// Words that begin or end alike: compounds and their parts.
    Kin,
}

/// Words with fewer characters in common are not related.
const MIN_KIN_CHARS: usize = 5;
/// The fewest characters of the end of a compound.
const MIN_END_CHARS: usize = 4;
/// The number of words from which on a query may be a sentence.
const MIN_SENTENCE_WORDS: usize = 3;
/// The most different words of a query.
const MAX_TERMS: usize = 64;
/// The most phrases, and the most excluded texts.
const MAX_PHRASES: usize = 16;
/// More of a query is not read.
const MAX_QUERY_BYTES: usize = 64 << 10;

/// A piece of the text between white space, or between quotes.
enum QueryPart<'a> {
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
        let is_positive = |piece: &QueryPart<'_>| !matches!(piece, QueryPart::Excluded(_));
        let has_positive = pieces.iter().any(is_positive);
        let mut builder = Builder {
            language: Language::of(text),
            query: Query::default(),
            known: HashSet::new(),
        };
        for piece in &pieces {
            match piece {
                QueryPart::Words(text) => builder.words(text),
                QueryPart::Prefix(text) => builder.prefix(text),
                QueryPart::Phrase(text) => {
                    let words = words_in_row(text);
                    if !words.is_empty() {
                        builder.query.phrases.push(words);
                    }
                    builder.words(text);
                }
                // Without any other term, `-v` is searched for literally.
                QueryPart::Excluded(text) if !has_positive => builder.words(text),
                QueryPart::Excluded(text) => {
                    let words = words_in_row(text);
                    if !words.is_empty() {
                        builder.query.excluded.push(words);
                    }
                }
            }
        }
        let query = &mut builder.query;
        query.phrases.truncate(MAX_PHRASES);
        query.excluded.truncate(MAX_PHRASES);
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

    /// Returns a matcher for the searched terms in messages.
    pub fn matcher(&self) -> TermMatcher<'_> {
        let mut matcher = TermMatcher::default();
        for form in self.terms.iter().flat_map(|term| &term.forms) {
            match (form.term.strip_prefix('~'), form.is_prefix, form.kind) {
                (Some(end), ..) => matcher.ends.push(end),
                (None, true, _) => matcher.beginnings.push(&form.term),
                (None, false, FormKind::Word) => drop(matcher.words.insert(&form.term)),
                (None, false, _) => drop(matcher.stems.insert(&form.term)),
            }
        }
        matcher
    }
}

/// Recognises the terms in messages that a query searches for.
#[derive(Clone, Debug, Default)]
pub struct TermMatcher<'a> {
    words: HashSet<&'a str>,
    /// Words, and stems of words.
    stems: HashSet<&'a str>,
    beginnings: Vec<&'a str>,
    /// Ends of words, reversed.
    ends: Vec<&'a str>,
}

impl<'a> TermMatcher<'a> {
    /// Returns the part of the query that a term of a message in this language matches: a word, its stem, beginning or
    /// end. `None` if it is not searched for.
    pub fn matched(&self, term: &Term<'_>, language: Language) -> Option<&'a str> {
        let text = term.text;
        let exact = self.words.get(text).or_else(|| self.stems.get(text));
        let begins = |start: &&&str| text.starts_with(**start);
        let found = exact.or_else(|| self.beginnings.iter().find(begins));
        if found.is_some() || term.kind != TermKind::Word {
            return found.copied();
        }
        let stem = language.stem(text).unwrap_or(text.into());
        let ends_with = |end: &&&str| {
            let mut chars = stem.chars().rev();
            end.chars().all(|c| chars.next() == Some(c))
        };
        let ends = self.ends.iter().filter(|_| language == Language::German);
        let found = self.stems.get(&*stem);
        found.or_else(|| ends.into_iter().find(ends_with)).copied()
    }
}

struct Builder {
    language: Language,
    query: Query,
    known: HashSet<String>,
}

impl Builder {
    fn words(&mut self, text: &str) {
        let mut found: Vec<(TermKind, String, Range<usize>)> = Vec::new();
        each_term(text, &mut |term| {
            found.push((term.kind, term.text.to_owned(), term.range));
        });
        let wholes = found.iter().filter(|(kind, ..)| *kind == TermKind::Whole);
        let wholes: Vec<_> = wholes.map(|(.., range)| range.clone()).collect();
        let is_part = |range: &Range<usize>| {
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
                    self.add(word, part, false);
                }
                TermKind::Whole => self.add(word, false, true),
                TermKind::Characters => {
                    let is_single = word.chars().count() == 1;
                    // The last character of a run is searched for with the one before it.
                    let is_last =
                        |other: &Range<usize>| other.start < range.start && other.end == range.end;
                    if !is_single || !characters.iter().any(is_last) {
                        self.add_form(word.clone(), word, is_single);
                    }
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
            let kind = FormKind::Word;
            let forms = vec![TermForm {
                term,
                is_prefix,
                kind,
            }];
            self.query.terms.push(QueryTerm {
                word,
                forms,
                is_whole: false,
                is_part: false,
            });
        }
    }

    fn add(&mut self, word: String, is_part: bool, is_whole: bool) {
        if self.query.terms.len() >= MAX_TERMS || !self.known.insert(word.clone()) {
            return;
        }
        let form = |term: String, kind: FormKind| TermForm {
            term,
            is_prefix: false,
            kind,
        };
        let mut forms = vec![form(word.clone(), FormKind::Word)];
        if !is_whole {
            let stems = self.language.stems(&word);
            forms.extend(stems.into_iter().map(|stem| form(stem, FormKind::Stem)));
            let synonyms = synonyms_of(&word).into_iter();
            forms.extend(synonyms.map(|stem| form(stem.to_owned(), FormKind::Synonym)));
            self.add_kin(&word, &mut forms);
        }
        self.query.terms.push(QueryTerm {
            word,
            forms,
            is_whole,
            is_part,
        });
    }

    /// Adds forms for words that begin or end as a word does, and for those that it begins or ends with.
    fn add_kin(&self, word: &str, forms: &mut Vec<TermForm>) {
        let chars: Vec<char> = word.chars().collect();
        let form = |term: String, is_prefix: bool| TermForm {
            term,
            is_prefix,
            kind: FormKind::Kin,
        };
        if chars.len() < MIN_END_CHARS || !chars.iter().all(|c| c.is_alphabetic()) {
            return;
        }
        let stem = self.language.stem(word).unwrap_or(word.into());
        if stem.chars().count() >= MIN_END_CHARS {
            forms.push(form(reversed(&stem), true));
        }
        if chars.len() < MIN_KIN_CHARS {
            return;
        }
        let is_short = stem.chars().count() < MIN_KIN_CHARS;
        let start = if is_short { word } else { &stem };
        forms.push(form(start.to_owned(), true));
        let half = (chars.len() * 3 / 5).max(MIN_KIN_CHARS);
        for len in half..chars.len() {
            let start: String = chars[..len].iter().collect();
            if !is_stop_word(&start, self.language) {
                forms.push(form(start, false));
            }
        }
        if self.language == Language::German && chars.len() >= MIN_COMPOUND_BYTES {
            for len in MIN_KIN_CHARS..=chars.len() - 3 {
                let end: String = chars[chars.len() - len..].iter().collect();
                forms.push(form(end, false));
            }
        }
    }

    /// Leaves out stop words, unless there are no others.
    fn finish(mut self) -> Query {
        let language = self.language;
        let says = |term: &QueryTerm| !is_stop_word(&term.word, language);
        let typed = self.query.words().len();
        if self.query.terms.iter().any(says) {
            self.query.terms.retain(says);
            self.query.is_sentence =
                typed >= MIN_SENTENCE_WORDS && self.query.words().len() < typed;
        }
        self.query
    }
}

/// The words of a phrase, as they follow each other in the index.
fn words_in_row(text: &str) -> Vec<String> {
    let mut words: Vec<(String, Range<usize>)> = Vec::new();
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

fn split(text: &str) -> Vec<QueryPart<'_>> {
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
            (true, _) => QueryPart::Excluded(inner),
            (false, Some(_)) => QueryPart::Phrase(inner),
            (false, None) => match inner.strip_suffix('*') {
                Some(start) if !start.is_empty() => QueryPart::Prefix(start),
                _ => QueryPart::Words(inner),
            },
        });
        rest = after;
    }
    pieces
}
