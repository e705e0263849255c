//! Errors of a configuration, with their lines.

use crate::profile::Origin;

/// A problem of a configuration, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct ConfigError {
    /// The file and line, or the variable.
    pub origin: Origin,
    /// The problem.
    pub problem: ConfigProblem,
}

/// A problem of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigProblem {
    /// The text is no YAML, or uses more of YAML than is supported.
    #[error("this is not YAML: {0}")]
    Syntax(String),
    /// The text is larger than any configuration.
    #[error("this is too large or too deeply nested for a configuration")]
    TooLarge,
    /// A key that occurs twice in one mapping.
    #[error("`{key}` was set before, on line {first}")]
    Twice {
        /// The key.
        key: String,
        /// The line where it was set first.
        first: usize,
    },
    /// A key that has no meaning here.
    #[error("`{key}` has no meaning {place}{}", instead(.nearest.as_deref(), .valid))]
    Key {
        /// The key.
        key: String,
        /// The section.
        place: String,
        /// The valid key that looks most like it.
        nearest: Option<String>,
        /// All valid names.
        valid: Vec<String>,
    },
    /// A value that the key does not accept.
    #[error("`{key}` takes {expected}, not {found}{}", instead(.nearest.as_deref(), &[]))]
    Value {
        /// The key, with its sections.
        key: String,
        /// The values it takes.
        expected: String,
        /// The value as it was written.
        found: String,
        /// The valid value that looks most like it.
        nearest: Option<String>,
    },
    /// A policy for tools that names unknown tools, or contradicts itself.
    #[error("`{key}`: {what}")]
    Policy {
        /// The key, with its sections.
        key: String,
        /// The problem.
        what: String,
    },
    /// A variable that is not set and has no default.
    #[error("the variable {0} is not set")]
    Unset(String),
    /// A `${` without a name and `}`.
    #[error("`${{` is not followed by a name and `}}`")]
    Braces,
}

fn instead(nearest: Option<&str>, valid: &[String]) -> String {
    match (nearest, valid) {
        (Some(nearest), _) => format!("; did you mean `{nearest}`?"),
        (None, []) => String::new(),
        (None, valid) => format!("; valid are {}", valid.join(", ")),
    }
}

impl ConfigProblem {
    /// Returns the hint for the problem.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ConfigProblem::Syntax(_) => {
                Some("indent with spaces, never with tabs; quote texts that hold `: ` or ` #`")
            }
            ConfigProblem::Unset(_) => Some("set it, or give a default: ${NAME:-default}"),
            ConfigProblem::Braces => Some("write ${NAME} or ${NAME:-default}; $$ stands for one $"),
            _ => None,
        }
    }
}

/// Returns the name that looks most like `name`, if any looks like it at all.
pub fn nearest<'a>(name: &str, all: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let letters = |text: &str| -> Vec<char> {
        let plain = text.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
        plain.take(40).flat_map(char::to_lowercase).collect()
    };
    let name = letters(name);
    let (distance, best) = all
        .into_iter()
        .map(|one| (distance(&name, &letters(one)), one))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= name.len().div_ceil(3)).then(|| best.to_owned())
}

/// Returns the edit distance: changed, added, removed and swapped characters.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let mut least = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(change);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        least = least.min(rows[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    rows[a.len()][b.len()]
}
