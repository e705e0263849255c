//! Compares names of tools without regard to spelling, and suggests the most similar known name for an unknown one.

/// The parts of a tool name, of each only the ASCII letters and digits, in lower case: `mcp__GitHub__deleteBranch` and
/// `mcp__github__delete_branch` are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameParts(Vec<String>);

/// Separators between the parts of a name, in addition to `__`.
const PART_SEPARATORS: [char; 3] = ['.', ':', '/'];

impl NameParts {
    /// Splits a name into its parts.
    pub fn of(name: &str) -> NameParts {
        let parts = name
            .split("__")
            .flat_map(|part| part.split(PART_SEPARATORS));
        let letters = parts.map(|part| {
            let letters = part.chars().filter(char::is_ascii_alphanumeric);
            letters.map(|letter| letter.to_ascii_lowercase()).collect()
        });
        NameParts(letters.filter(|part: &String| !part.is_empty()).collect())
    }

    /// Returns whether the last parts of this name are the other name, so that `delete_branch` also means
    /// `mcp__github__delete_branch`.
    pub fn ends_with(&self, other: &NameParts) -> bool {
        !other.0.is_empty() && self.0.ends_with(&other.0)
    }

    /// Returns whether the name begins with `start`. The last part of `start` may be the beginning of a part of the
    /// name, unless a separator follows it: `mcp__git` begins `mcp__github__push`, `mcp__git__` does not.
    ///
    /// `mcp__github__` also begins `mcp__github`, the name of a whole server, so that a rule for all its tools applies.
    pub fn begins_with(&self, start: &str) -> bool {
        let is_whole = start.ends_with("__") || start.ends_with(PART_SEPARATORS);
        let start = NameParts::of(start).0;
        let Some((last, before)) = start.split_last() else {
            return false;
        };
        let Some(rest) = self.0.strip_prefix(before) else {
            return false;
        };
        let next = rest.first();
        next.is_some_and(|next| next == last || !is_whole && next.starts_with(last))
    }
}

/// The error for a name that is not known, with a suggestion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} `{name}`{}", suggestion(.nearest.as_deref(), .valid))]
pub struct UnknownName {
    /// The kind of name: a tool, a category and so on.
    pub kind: &'static str,
    /// The unknown name, shortened if it is long.
    pub name: String,
    /// The known name that is most similar, if one is similar at all.
    pub nearest: Option<String>,
    /// All known names.
    pub valid: Vec<String>,
}

impl UnknownName {
    /// Returns the error for a name that is none of `valid`.
    pub(crate) fn new<'a>(
        kind: &'static str,
        name: &str,
        valid: impl IntoIterator<Item = &'a str>,
    ) -> UnknownName {
        let valid: Vec<String> = valid.into_iter().map(str::to_owned).collect();
        UnknownName {
            kind,
            nearest: nearest(name, valid.iter().map(String::as_str)),
            name: name.chars().take(MAX_NAME_CHARS).collect(),
            valid,
        }
    }
}

/// The most characters of an unknown name in a message; longer names are also compared by these alone.
const MAX_NAME_CHARS: usize = 60;

/// Returns the end of the message: the most similar name, or else all valid names.
fn suggestion(nearest: Option<&str>, valid: &[String]) -> String {
    match nearest {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => format!("; valid are {}", valid.join(", ")),
    }
}

/// Returns the name that is most similar to `name`: the one with the smallest edit distance, if that is at most a third
/// of the length of `name`, or 2.
fn nearest<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let letters = |text: &str| -> Vec<char> {
        let plain = text.chars().take(MAX_NAME_CHARS);
        plain.flat_map(char::to_lowercase).collect()
    };
    let name = letters(name);
    let all = all
        .into_iter()
        .map(|one| (edit_distance(&name, &letters(one)), one));
    let (distance, best) = all.min_by_key(|(distance, _)| *distance)?;
    (distance <= name.len().div_ceil(3).max(2)).then(|| best.to_owned())
}

/// Returns the Levenshtein distance of two texts, computed with one row of the matrix.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, one) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let change = diagonal + usize::from(one != other);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
