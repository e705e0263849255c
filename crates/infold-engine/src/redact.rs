//! Redaction: removes messages, or the matches of a pattern, from a log for good.

use std::ops::Range;
use std::str::FromStr;

use infold_log::Span;
use infold_store::{Contexts, RedactTarget, Redaction, TaskError};
use regex::Regex;
use serde_json::{Value, json};
use uuid::Uuid;

/// A regular expression that never matches an empty text.
///
/// ```
/// use infold::redact::Pattern;
///
/// let pattern: Pattern = "sk-[a-z0-9]+".parse()?;
/// assert_eq!(pattern.find("the key sk-12ab is old"), [8..15]);
/// assert!("x*".parse::<Pattern>().is_err());
/// # Ok::<(), infold::redact::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// The reason that a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The text is no regular expression.
    #[error("not a regular expression: {reason} at character {at}")]
    Syntax {
        /// The position of the character, counted from one.
        at: usize,
        /// The error there.
        reason: String,
    },
    /// The expression would take too much memory.
    #[error("not a regular expression that can be used: {reason}")]
    TooLarge {
        /// The error of the compiler.
        reason: String,
    },
    /// The expression matches an empty text.
    #[error("a pattern that matches the empty string would be found everywhere")]
    Empty,
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Pattern, PatternError> {
        let parsed = regex_syntax::parse(text).map_err(|error| syntax(text, &error))?;
        if parsed.properties().minimum_len().is_none_or(|len| len == 0) {
            return Err(PatternError::Empty);
        }
        let regex = Regex::new(text).map_err(|error| PatternError::TooLarge {
            reason: error.to_string(),
        })?;
        Ok(Pattern(regex))
    }
}

fn syntax(text: &str, error: &regex_syntax::Error) -> PatternError {
    let (offset, reason) = match error {
        regex_syntax::Error::Parse(error) => (error.span().start.offset, error.kind().to_string()),
        regex_syntax::Error::Translate(error) => {
            (error.span().start.offset, error.kind().to_string())
        }
        other => (0, other.to_string()),
    };
    let before = text.get(..offset).unwrap_or_default();
    PatternError::Syntax {
        at: before.chars().count() + 1,
        reason,
    }
}

impl Pattern {
    /// Returns where it matches in a text.
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        self.0.find_iter(text).map(|found| found.range()).collect()
    }
}

/// Returns a pattern for a text of which only the beginning and the length are known.
///
/// ```
/// use infold::redact::{Pattern, pattern_of};
///
/// let pattern: Pattern = pattern_of("sk-1", 7).parse()?;
/// assert_eq!(pattern.find("the key sk-12ab is old"), [8..15]);
/// # Ok::<(), infold::redact::PatternError>(())
/// ```
pub fn pattern_of(start: &str, chars: usize) -> String {
    let rest = chars.saturating_sub(start.chars().count());
    format!("(?s){}.{{{rest}}}", regex_syntax::escape(start))
}

/// A request to remove messages, the matches of a pattern, or its matches in some messages.
#[derive(Clone, Debug, Default)]
pub struct RedactionRequest {
    /// The messages; all of them if there is only a pattern.
    pub spans: Vec<Span>,
    /// The part of them that is removed; all of them if there is none.
    pub pattern: Option<Pattern>,
}

impl RedactionRequest {
    /// Returns the redaction without carrying it out.
    pub fn preview(&self, contexts: &Contexts, task: Uuid) -> Result<Redaction, TaskError> {
        self.with(|target| contexts.redactable(task, target))
            .map(|redaction| self.meant(redaction))
    }

    /// Removes it for good.
    pub fn carry_out(&self, contexts: &Contexts, task: Uuid) -> Result<Redaction, TaskError> {
        self.with(|target| contexts.redact(task, target))
            .map(|redaction| self.meant(redaction))
    }

    /// Leaves out matches across texts unless the pattern has quotes: else a `.` only ran over the end of a text.
    fn meant(&self, mut redaction: Redaction) -> Redaction {
        let is_meant = |pattern: &Pattern| pattern.0.as_str().contains('"');
        if !self.pattern.as_ref().is_some_and(is_meant) {
            redaction.spanned.clear();
        }
        redaction
    }

    fn with<T>(&self, work: impl FnOnce(RedactTarget<'_>) -> T) -> T {
        let spans = self.spans.as_slice();
        match &self.pattern {
            None => work(RedactTarget::Messages(spans)),
            Some(pattern) => work(RedactTarget::Matches {
                within: (!spans.is_empty()).then_some(spans),
                find: &|text| pattern.find(text),
            }),
        }
    }
}

/// Returns a redaction as JSON for scripts.
pub fn describe(redaction: &Redaction) -> Value {
    let tasks = redaction.tasks.iter().map(|task| {
        let messages = task.messages.iter();
        let messages: Vec<Value> = messages
            .map(|(seq, matches)| json!({"seq": seq.get(), "matches": matches}))
            .collect();
        json!({
            "uuid": task.task.to_string(), "event": task.event.map(|event| format!("e{event}")),
            "messages": messages, "texts": task.texts,
        })
    });
    let tasks: Vec<Value> = tasks.collect();
    let removed = redaction.removed.iter();
    let removed: Vec<String> = removed.map(|path| path.display().to_string()).collect();
    let spanned: Vec<u64> = redaction.spanned.iter().map(|seq| seq.get()).collect();
    let files = redaction.files.iter().map(|file| {
        let (path, workspace) = (file.path.display(), file.workspace.display());
        json!({"workspace": workspace.to_string(), "path": path.to_string(), "snapshots": file.snapshots})
    });
    let files: Vec<Value> = files.collect();
    json!({"tasks": tasks, "files": files, "left": redaction.left, "spanned": spanned, "removed": removed, "entries": redaction.entries})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        text.parse::<Pattern>().unwrap_err().to_string()
    }

    #[test]
    fn a_pattern_that_could_match_nothing_is_refused() {
        for text in ["", "x*", "a|", r"\b", "^$", "(?:)"] {
            assert_eq!(text.parse::<Pattern>().unwrap_err(), PatternError::Empty);
        }
    }

    #[test]
    fn a_pattern_that_is_none_says_where_it_breaks() {
        assert_eq!(
            why("é(b"),
            "not a regular expression: unclosed group at character 2"
        );
        assert!(
            why("a{2,1}").contains("at character 2"),
            "{}",
            why("a{2,1}")
        );
    }
}
