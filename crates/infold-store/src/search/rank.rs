//! Ranks messages: BM25 over the terms of a query, with those of neighbouring messages, newest first among
//! equals.

use std::collections::{HashMap, HashSet};

use infold_wire::terms::{FormKind, Query, QueryTerm, TermForm};
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::filter::RowFilter;
use super::index::SearchIndex;
use super::scope::{Scope, parts};
use super::{Found, SearchRequest};
use crate::RegistryError;

/// BM25 `k1`: how soon more occurrences of a term add nothing.
const K1: f64 = 1.2;
/// BM25 `b`: how strongly the length of a message reduces the weight of its occurrences.
const B: f64 = 0.3;
/// The weight of a word with the same stem, relative to the word itself.
const STEM_WEIGHT: f64 = 0.7;
/// The weight of a part of an identifier, relative to the whole.
const PART_WEIGHT: f64 = 0.6;
/// The weight of a synonym, in messages without the word itself.
const SYNONYM_WEIGHT: f64 = 0.5;
/// The weight of a word that begins or ends alike.
const KIN_WEIGHT: f64 = 0.3;
/// The weights of a term in an adjacent message and in one two messages away, so that a question and its answer
/// are found together.
const NEIGHBOUR_WEIGHTS: [f64; 2] = [0.3, 0.1];

/// The weight of having all terms, against having few of them often.
const COVERAGE_WEIGHT: f64 = 0.5;

/// The most occurrences of a term that are read; a term with more is common, and is looked up in the messages
/// that the other terms find.
const MAX_OCCURRENCES: usize = 12_000;
/// The most occurrences that are read of each synonym and each similar word.
const MAX_RELATED_OCCURRENCES: usize = 5000;
/// The number of messages with the word itself from which on related words are not read.
const MAX_DIRECT: usize = 100;
/// The most messages that are ranked by all criteria.
const MAX_CANDIDATES: usize = 2000;
/// The most messages, best first, whose neighbours are added.
const MAX_SEEDS: usize = 300;
/// The most messages in which common terms are looked up.
const MAX_LOOKUPS: usize = 64;

/// Messages with terms of a query, and how often each has which.
struct Candidates {
    /// How many terms the query has.
    width: usize,
    places: HashMap<i64, usize>,
    /// For each term how many messages have it.
    having: Vec<usize>,
    rows: Vec<i64>,
    /// For each row and each term how often it occurs, weighted.
    counts: Vec<f64>,
}

impl Candidates {
    fn new(width: usize) -> Candidates {
        Candidates {
            width,
            places: HashMap::new(),
            having: vec![0; width],
            rows: Vec::new(),
            counts: Vec::new(),
        }
    }

    fn counts_of(&mut self, row: i64) -> &mut [f64] {
        let (rows, counts, width) = (&mut self.rows, &mut self.counts, self.width);
        let place = *self.places.entry(row).or_insert_with(|| {
            rows.push(row);
            counts.resize(counts.len() + width, 0.0);
            rows.len() - 1
        });
        &mut self.counts[place * width..(place + 1) * width]
    }

    fn at(&self, place: usize) -> &[f64] {
        &self.counts[place * self.width..(place + 1) * self.width]
    }
}

/// The messages that match a query, best first.
pub fn ranked(
    index: &mut SearchIndex,
    query: &Query,
    request: &SearchRequest<'_>,
    scope: &Scope,
) -> Result<Vec<Found>, RegistryError> {
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let filter = RowFilter::new(index, query, request, scope)?;
    let mut candidates = Candidates::new(query.terms.len());
    let mut common = Vec::new();
    for (at, term) in query.terms.iter().enumerate() {
        if !index.run(|db| count_term(db, term, at, &filter, &mut candidates))? {
            continue;
        }
        match scope.ranges() {
            Some(ranges) => {
                index.run(|db| note_term(db, term, at, ranges, &filter, &mut candidates))?;
            }
            None => common.push(at),
        }
    }
    let all_are_common = common.len() == query.terms.len();
    if all_are_common {
        index.run(|db| add_newest_with_all(db, query, &filter, &mut candidates))?;
    }
    let weights = weights(query, &candidates, &common, scope);
    let mut best = best_rows(&candidates, &weights);
    if !common.is_empty() && !all_are_common {
        let seeds = &best[..best.len().min(MAX_LOOKUPS)];
        index.run(|db| look_up(db, query, &common, seeds, &mut candidates))?;
    }
    if query.is_sentence {
        add_neighbours(&mut best, &filter, &mut candidates);
    }
    let scored = index.run(|db| scored(db, &best, &candidates, &weights, scope))?;
    let mut tasks: HashMap<i64, Option<Uuid>> = HashMap::new();
    let mut found = Vec::with_capacity(scored.len());
    for (row, score) in scored {
        let (number, seq) = parts(row);
        let holder = match tasks.get(&number) {
            Some(task) => *task,
            None => *tasks.entry(number).or_insert(index.task(number)?),
        };
        let task = scope.task_of(row, || holder);
        found.extend(task.zip(seq).map(|(task, seq)| Found { task, seq, score }));
    }
    Ok(found)
}

/// How often a message has a term of a query.
#[derive(Default)]
struct TermCounts {
    /// The word itself.
    words: f64,
    /// Words whose stem it is.
    inflected: f64,
    /// Words with the same stem, itself included unless it is the stem.
    stems: f64,
    /// Words that mean much the same, or are kin, weighted.
    related: f64,
}

impl TermCounts {
    fn is_direct(&self) -> bool {
        self.words + self.inflected + self.stems > 0.0
    }

    fn weighted(&self) -> f64 {
        let others = self.inflected.max(self.stems - self.words);
        let direct = self.words + STEM_WEIGHT * others.max(0.0);
        if self.is_direct() {
            direct
        } else {
            self.related
        }
    }
}

/// Counts a term in all messages that have it; says whether it was too common for that.
fn count_term(
    db: &Connection,
    term: &QueryTerm,
    at: usize,
    filter: &RowFilter<'_>,
    candidates: &mut Candidates,
) -> rusqlite::Result<bool> {
    let word = &term.forms[0];
    let mut counts: HashMap<i64, TermCounts> = HashMap::new();
    for form in &term.forms {
        // A word that is its own stem is read once.
        if form.kind == FormKind::Stem && word.term == form.term {
            continue;
        }
        let share = match form.kind {
            FormKind::Word | FormKind::Stem => 1.0,
            FormKind::Synonym => SYNONYM_WEIGHT,
            FormKind::Kin => KIN_WEIGHT,
        };
        let is_related = matches!(form.kind, FormKind::Synonym | FormKind::Kin);
        if is_related && counts.len() >= MAX_DIRECT {
            break;
        }
        let mut of_form: HashMap<i64, f64> = HashMap::new();
        let limit = if is_related {
            MAX_RELATED_OCCURRENCES
        } else {
            MAX_OCCURRENCES
        };
        let is_cut = each_occurrence(db, form, limit, &mut |row, column| {
            if !filter.takes(row) || column == "facts" {
                return;
            }
            match (form.kind, column) {
                (FormKind::Word, "words" | "wholes") => counts.entry(row).or_default().words += 1.0,
                (FormKind::Word, _) if term.is_whole => {}
                (FormKind::Word, _) => counts.entry(row).or_default().inflected += 1.0,
                (_, "wholes") => {}
                _ => *of_form.entry(row).or_default() += share,
            }
        })?;
        if is_cut && !is_related {
            return Ok(true);
        }
        for (row, count) in of_form {
            let counts = counts.entry(row).or_default();
            let sum = if is_related {
                &mut counts.related
            } else {
                &mut counts.stems
            };
            *sum = sum.max(count);
        }
    }
    let direct = counts.values().filter(|counts| counts.is_direct()).count();
    candidates.having[at] = if direct > 0 { direct } else { counts.len() };
    for (row, counts) in counts {
        candidates.counts_of(row)[at] = counts.weighted();
    }
    Ok(false)
}

/// Notes which messages of some tasks have a term that is common in all of them.
fn note_term(
    db: &Connection,
    term: &QueryTerm,
    at: usize,
    ranges: &[(i64, i64, Uuid)],
    filter: &RowFilter<'_>,
    candidates: &mut Candidates,
) -> rusqlite::Result<()> {
    let mut statement = db.prepare_cached(
        "SELECT rowid FROM terms WHERE terms MATCH ?1 AND rowid BETWEEN ?2 AND ?3",
    )?;
    let mut having = 0;
    for (first, last, _) in ranges {
        let mut rows = statement.query(params![any_form(term), first, last])?;
        while let Some(row) = rows.next()? {
            let row = row.get(0)?;
            if filter.takes(row) {
                candidates.counts_of(row)[at] = 1.0;
                having += 1;
            }
        }
    }
    candidates.having[at] = having;
    Ok(())
}

/// Calls `visit` with the row and the column of each occurrence; says whether there were more than are read.
fn each_occurrence(
    db: &Connection,
    form: &TermForm,
    limit: usize,
    visit: &mut dyn FnMut(i64, &str),
) -> rusqlite::Result<bool> {
    let mut statement = db.prepare_cached(if form.is_prefix {
        "SELECT doc, col FROM temp.instances WHERE term >= ?1 AND term < ?2"
    } else {
        "SELECT doc, col FROM temp.instances WHERE term = ?1 AND ?2 IS NOT NULL"
    })?;
    let end = format!("{}\u{10FFFF}", form.term);
    let mut rows = statement.query(params![form.term, end])?;
    let mut read = 0;
    while let Some(row) = rows.next()? {
        read += 1;
        if read > limit {
            return Ok(true);
        }
        visit(row.get(0)?, row.get_ref(1)?.as_str().unwrap_or_default());
    }
    Ok(false)
}

/// Where all terms are common, the newest messages that have all of them are ranked.
fn add_newest_with_all(
    db: &Connection,
    query: &Query,
    filter: &RowFilter<'_>,
    candidates: &mut Candidates,
) -> rusqlite::Result<()> {
    let all: Vec<String> = query.terms.iter().map(any_form).collect();
    let mut statement =
        db.prepare_cached("SELECT rowid FROM terms WHERE terms MATCH ?1 ORDER BY rowid DESC")?;
    let mut rows = statement.query([all.join(" AND ")])?;
    while candidates.rows.len() < MAX_CANDIDATES
        && let Some(row) = rows.next()?
    {
        let row = row.get(0)?;
        if filter.takes(row) {
            candidates.counts_of(row).fill(1.0);
        }
    }
    Ok(())
}

/// The expression for any form of a term.
fn any_form(term: &QueryTerm) -> String {
    let direct = |form: &&TermForm| matches!(form.kind, FormKind::Word | FormKind::Stem);
    let forms: Vec<String> = term
        .forms
        .iter()
        .filter(direct)
        .map(|form| {
            let star = if form.is_prefix { " *" } else { "" };
            format!("\"{}\"{star}", form.term)
        })
        .collect();
    format!("({})", forms.join(" OR "))
}

/// Returns the weight of each term: the fewer messages have it, the higher.
fn weights(query: &Query, candidates: &Candidates, common: &[usize], scope: &Scope) -> Vec<f64> {
    let messages = scope.messages as f64;
    let terms = query.terms.iter().enumerate();
    terms
        .map(|(at, term)| {
            let having = if common.contains(&at) {
                (messages / 4.0).max(MAX_OCCURRENCES as f64)
            } else {
                candidates.having[at] as f64
            };
            let idf = (1.0 + (messages - having).max(0.0) / (having + 0.5)).ln();
            idf * if term.is_part { PART_WEIGHT } else { 1.0 }
        })
        .collect()
}

/// Returns the rows with the highest weight of terms, whatever their length.
fn best_rows(candidates: &Candidates, weights: &[f64]) -> Vec<i64> {
    let mut rows: Vec<(f64, i64)> = (0..candidates.rows.len())
        .map(|place| {
            let terms = candidates.at(place).iter().zip(weights);
            let score: f64 = terms
                .map(|(count, weight)| weight * saturated(*count, 1.0))
                .sum();
            (score, candidates.rows[place])
        })
        .collect();
    rows.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    rows.truncate(MAX_CANDIDATES);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Returns the BM25 score of a number of occurrences, in a message of a length relative to the average.
fn saturated(count: f64, length: f64) -> f64 {
    count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length))
}

/// Looks up common terms in the best rows.
fn look_up(
    db: &Connection,
    query: &Query,
    common: &[usize],
    rows: &[i64],
    candidates: &mut Candidates,
) -> rusqlite::Result<()> {
    let mut statement =
        db.prepare_cached("SELECT 1 FROM terms WHERE terms MATCH ?1 AND rowid = ?2")?;
    for at in common {
        let expression = any_form(&query.terms[*at]);
        for row in rows {
            if statement.exists(params![expression, row])? {
                candidates.counts_of(*row)[*at] = 1.0;
            }
        }
    }
    Ok(())
}

/// Adds the neighbours of the best messages, because an answer need not repeat the words of its question.
fn add_neighbours(best: &mut Vec<i64>, filter: &RowFilter<'_>, candidates: &mut Candidates) {
    let known: HashSet<i64> = best.iter().copied().collect();
    let seeds: Vec<i64> = best.iter().take(MAX_SEEDS).copied().collect();
    for row in seeds {
        for beside in [row - 1, row + 1] {
            if !known.contains(&beside) && filter.takes(beside) {
                candidates.counts_of(beside);
                best.push(beside);
            }
        }
    }
    best.sort_unstable();
    best.dedup();
}

/// The rows that are messages with their scores, best first.
fn scored(
    db: &Connection,
    rows: &[i64],
    candidates: &Candidates,
    weights: &[f64],
    scope: &Scope,
) -> rusqlite::Result<Vec<(i64, f64)>> {
    let average = (scope.words as f64 / scope.messages.max(1) as f64).max(1.0);
    let mut document = db.prepare_cached("SELECT time, words FROM documents WHERE row = ?1")?;
    let mut values: HashMap<i64, Vec<f64>> = HashMap::with_capacity(rows.len());
    let mut times: Vec<(i64, i64)> = Vec::with_capacity(rows.len());
    for row in rows {
        let mut found = document.query([row])?;
        let Some(found) = found.next()? else { continue };
        let (time, words): (i64, i64) = (found.get(0)?, found.get(1)?);
        let length = words as f64 / average;
        let place = candidates.places.get(row).copied().unwrap_or_default();
        let counts = candidates.at(place).iter();
        let value = counts.map(|count| saturated(*count, length)).collect();
        values.insert(*row, value);
        times.push((*row, time));
    }
    let mut scored: Vec<(i64, i64, f64)> = Vec::with_capacity(times.len());
    for (row, time) in times {
        let mut score = 0.0;
        let mut own_terms = 0;
        for (at, weight) in weights.iter().enumerate() {
            let value = |row: i64| values.get(&row).map_or(0.0, |values| values[at]);
            let mut sum = value(row);
            own_terms += usize::from(sum > 0.0);
            for (distance, share) in (1..).zip(NEIGHBOUR_WEIGHTS) {
                let beside = value(row - distance).max(value(row + distance));
                sum += share * beside;
            }
            score += weight * sum;
        }
        let coverage = own_terms as f64 / weights.len().max(1) as f64;
        scored.push((row, time, score * (1.0 + COVERAGE_WEIGHT * coverage)));
    }
    scored.sort_by(|one, other| {
        other
            .2
            .total_cmp(&one.2)
            .then((other.1, other.0).cmp(&(one.1, one.0)))
    });
    Ok(scored
        .into_iter()
        .map(|(row, _, score)| (row, score))
        .collect())
}
