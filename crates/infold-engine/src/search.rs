//! The search as people, scripts and models ask for it: one form for the command, the REST API and tools.

use std::ops::Range;
use std::time::Duration;

use infold_log::{Place, Role};
use infold_store::{
    Contexts, Matching, SearchAnswer, SearchHit, SearchRequest, TaskError, iso, now,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::redact::{Pattern, PatternError};
use crate::step;
use infold_log::steer::Target;

/// A search query, as it was written.
#[derive(Clone, Debug, Default)]
pub struct SearchQuery {
    /// The text.
    pub text: String,
    /// The interpretation of the text.
    pub mode: SearchMode,
    /// Only these tasks; `None` means all.
    pub tasks: Option<Vec<Uuid>>,
    /// Only messages that the view does not show unchanged.
    pub only_hidden: bool,
    /// Only messages of this role.
    pub role: Option<Role>,
    /// Only calls of this tool and their results.
    pub tool: Option<String>,
    /// Only calls that touch this file and their results.
    pub file: Option<String>,
    /// Only messages from this time on.
    pub since: Option<u64>,
    /// Only messages up to this time.
    pub until: Option<u64>,
    /// The most hits.
    pub limit: Option<usize>,
}

/// The interpretation of a search text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchMode {
    /// By its words: phrases in quotes, `-word` excludes, `word*` is a beginning.
    #[default]
    Words,
    /// As a literal text.
    Exact,
    /// As a regular expression.
    Regex,
}

/// The reason that there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// Write another expression.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// Look at the store.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// The default number of hits.
pub const DEFAULT_LIMIT: usize = 20;
/// The largest number of hits.
pub const MAX_LIMIT: usize = 1000;
/// The time for filling the index, or for scanning logs, after which the answer is given from the results so far.
const PATIENCE: Duration = Duration::from_secs(10);

impl SearchQuery {
    /// Asks the store.
    pub fn run(&self, contexts: &Contexts) -> Result<SearchAnswer, SearchError> {
        let pattern: Option<Pattern> = match self.mode {
            SearchMode::Regex => Some(self.text.parse()?),
            SearchMode::Words | SearchMode::Exact => None,
        };
        let find = |text: &str| match &pattern {
            Some(pattern) => pattern.find(text),
            None => occurrences(&self.text, text),
        };
        let matching = match self.mode {
            SearchMode::Words => Matching::Words(&self.text),
            SearchMode::Exact | SearchMode::Regex => Matching::Find(&find),
        };
        let request = SearchRequest {
            tasks: self.tasks.clone(),
            only_hidden: self.only_hidden,
            role: self.role,
            tool: self.tool.clone(),
            file: self.file.clone(),
            since: self.since,
            until: self.until,
            limit: self.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT),
            patience: PATIENCE,
            ..SearchRequest::new(matching)
        };
        Ok(contexts.search(&request)?)
    }

    /// Describes the search, for answers without a hit.
    pub fn describe(&self, answer: &SearchAnswer) -> String {
        let what = infold_wire::shorten(&self.text, 200);
        let message = if self.is_filtered() {
            "no message of those asked for"
        } else {
            "no message"
        };
        match self.mode {
            SearchMode::Exact => format!("{message} contains exactly `{what}`"),
            SearchMode::Regex => format!("{message} matches the expression `{what}`"),
            SearchMode::Words if answer.words.is_empty() => {
                format!("`{what}` has no word to search for")
            }
            SearchMode::Words => {
                let words = infold_wire::shorten(&answer.words.join(", "), 200);
                format!("{message} has any of: {words}")
            }
        }
    }

    fn is_filtered(&self) -> bool {
        self.only_hidden
            || self.role.is_some()
            || self.tool.is_some()
            || self.file.is_some()
            || self.since.is_some()
            || self.until.is_some()
    }
}

/// Returns the places of a text in another.
fn occurrences(wanted: &str, text: &str) -> Vec<Range<usize>> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let found = text.match_indices(wanted);
    found.map(|(at, found)| at..at + found.len()).collect()
}

/// Says how much was not searched, and why; none if all was.
pub fn describe_coverage(answer: &SearchAnswer) -> Option<String> {
    let coverage = &answer.coverage;
    let stopped = coverage.stopped.as_ref()?;
    let share = coverage.searched_bytes as f64 * 100.0 / coverage.total_bytes.max(1) as f64;
    Some(format!(
        "searched {:.0} % of the logs: {stopped}",
        share.min(100.0)
    ))
}

/// Returns a hit for scripts. Marks are counted in characters of the snippet.
pub fn hit_json(hit: &SearchHit) -> Value {
    let text = &hit.snippet.text;
    let chars = |to: usize| text[..to].chars().count();
    let marks = hit.snippet.marks.iter();
    let marks: Vec<[usize; 2]> = marks
        .map(|mark| [chars(mark.start), chars(mark.end)])
        .collect();
    let (place, fold) = match hit.place {
        Place::Open => ("shown", None),
        Place::Under(fold) => ("folded", Some(fold.to_string())),
        Place::Elsewhere => ("rewound", None),
    };
    json!({
        "task": hit.task.to_string(), "seq": hit.seq.get(), "role": hit.role.wire_name(),
        "timestamp": iso(hit.time), "tokens": hit.tokens,
        "hidden": hit.place != Place::Open, "place": place, "fold": fold,
        "score": (hit.score * 1000.0).round() / 1000.0, "snippet": text, "marks": marks,
    })
}

/// Describes the place of a hidden message; empty if it is shown.
pub fn describe_place(place: Place) -> String {
    match place {
        Place::Open => String::new(),
        Place::Under(fold) => format!(" · hidden behind {fold}"),
        Place::Elsewhere => " · hidden by a rewind".to_owned(),
    }
}

/// Returns an answer for scripts.
pub fn answer_json(query: &SearchQuery, answer: &SearchAnswer) -> Value {
    let hits: Vec<Value> = answer.hits.iter().map(hit_json).collect();
    let note = hits.is_empty().then(|| query.describe(answer));
    json!({
        "hits": hits, "words": answer.words, "complete": answer.coverage.is_complete(),
        "total_bytes": answer.coverage.total_bytes, "searched_bytes": answer.coverage.searched_bytes,
        "stopped": answer.coverage.stopped, "note": note,
    })
}

/// Parses a role: `user`, `model` or `assistant`, `tool`, `system`.
pub fn parse_role(text: &str) -> Result<Role, String> {
    match text {
        "user" => Ok(Role::User),
        "model" | "assistant" => Ok(Role::Assistant),
        "tool" => Ok(Role::Tool),
        "system" => Ok(Role::System),
        _ => Err(format!("`{text}` is no role: user, model, tool or system")),
    }
}

/// Parses a time: ISO 8601, a date, milliseconds, or an age such as 3d, 12h, 90m.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let seconds = match unit {
        "d" => 86_400,
        "h" => 3_600,
        "m" => 60,
        "s" => 1,
        _ => 0,
    };
    if let (Ok(number), 1..) = (number.parse::<u64>(), seconds) {
        return Ok(now().saturating_sub(number.saturating_mul(seconds * 1000)));
    }
    match step::target(text) {
        Ok(Target::Time(time)) => Ok(time),
        _ => Err(format!(
            "`{text}` is neither a time (2026-11-15T12:00Z), a date (2026-11-15) nor an age (3d, 12h)"
        )),
    }
}

/// Parses a time up to which messages are meant: a date is meant to its end.
pub fn parse_end_time(text: &str) -> Result<u64, String> {
    let is_date =
        text.len() == "2026-11-15".len() && text.bytes().filter(|byte| *byte == b'-').count() == 2;
    let rest_of_day = if is_date { 86_400_000 - 1 } else { 0 };
    Ok(parse_time(text)?.saturating_add(rest_of_day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_or_ages() {
        assert_eq!(parse_time("2026-11-15"), Ok(1_794_700_800_000));
        assert_eq!(parse_end_time("2026-11-15"), Ok(1_794_787_199_999));
        assert_eq!(
            parse_end_time("2026-11-15T00:00:00Z"),
            Ok(1_794_700_800_000)
        );
        assert_eq!(parse_time("1794700800000"), Ok(1_794_700_800_000));
        let day = parse_time("1d").unwrap();
        assert!(now() - day >= 86_400_000 && now() - day < 86_500_000);
        for wrong in ["", "32", "e3", "tomorrow", "3x", "é"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
