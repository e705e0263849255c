//! The tasks that a client may read.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use infold_store::{Contexts, TaskError, TaskRow};

use super::ToolFailure;

/// The tasks that a client may read, beside its own conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpScope {
    /// All tasks.
    All,
    /// One task, by its id or the beginning of it, or `@`: the newest at the time of each call.
    Task(String),
    /// The tasks whose agent worked in a directory.
    Directory(PathBuf),
}

impl McpScope {
    /// Returns the rows of its tasks, newest activity first. Tasks outside of it are not named in errors.
    pub(super) fn rows(&self, contexts: &Contexts) -> Result<Vec<TaskRow>, ToolFailure> {
        match self {
            McpScope::All => Ok(contexts.rows_by_activity()?),
            McpScope::Task(name) => match contexts.resolve(name) {
                Ok(id) => Ok(contexts.row(id)?.into_iter().collect()),
                Err(TaskError::Unknown { .. }) => Ok(Vec::new()),
                Err(TaskError::Ambiguous { .. }) => Err(ToolFailure::new(format!(
                    "this server was given `{name}`, and several conversations begin so"
                ))),
                Err(error) => Err(error.into()),
            },
            McpScope::Directory(dir) => {
                let mut rows = contexts.rows_by_activity()?;
                let real = fs::canonicalize(dir).ok();
                rows.retain(|row| {
                    let of = row.cwd.as_deref().map(Path::new);
                    of.is_some_and(|of| of == dir || is_same(of, real.as_deref()))
                });
                Ok(rows)
            }
        }
    }
}

/// Returns whether a path leads to a directory, by links perhaps.
fn is_same(path: &Path, real: Option<&Path>) -> bool {
    real.is_some() && fs::canonicalize(path).ok().as_deref() == real
}

impl fmt::Display for McpScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            McpScope::All => write!(f, "all conversations"),
            McpScope::Task(name) => write!(f, "the conversation {name}"),
            McpScope::Directory(dir) => write!(f, "the conversations of {}", dir.display()),
        }
    }
}
