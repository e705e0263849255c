//! The history that a client of the protocol may use: the store, its scope, and whether it may write.

use std::sync::Arc;

use infold::step::Step;
use infold_store::{Contexts, TaskError, TaskRow};
use infold_wire::lookup::LookupNames;
use uuid::Uuid;

use super::arguments::ToolArguments;
use super::caller::{self, CallerCall};
use super::{McpScope, ToolFailure};

/// Takes a step on a task and describes its effect in one line.
pub type StepTaker = Arc<dyn Fn(Uuid, &Step) -> Result<String, ToolFailure> + Send + Sync>;

/// The most characters of a result; the rest is requested with another call.
pub(super) const MAX_RESULT_CHARS: usize = 20_000;

/// The history of some tasks.
#[derive(Clone)]
pub struct History {
    pub(super) contexts: Contexts,
    pub(super) scope: McpScope,
    /// Writes; none if the history may only be read.
    pub(super) steps: Option<StepTaker>,
    /// The names by which a conversation is offered the tools that read its own history, and no other. None if a client of the
    /// protocol is served.
    pub(super) offered: Option<LookupNames>,
}

/// The tasks of a call: those in scope, and the caller's own.
pub(super) struct HistoryReach {
    /// The tasks in scope and the caller's own, newest activity first.
    pub rows: Vec<TaskRow>,
    /// The call in the log of its conversation, if it was found.
    pub call: Option<CallerCall>,
}

/// The number of tasks that are named if one has to be chosen.
const MAX_NAMED: usize = 5;

impl History {
    /// Serves the tasks of a scope. They are read-only without `steps`.
    pub fn new(contexts: Contexts, scope: McpScope, steps: Option<StepTaker>) -> History {
        History {
            contexts,
            scope,
            steps,
            offered: None,
        }
    }

    /// Serves a conversation its own history, by tools that are offered under these names.
    pub fn of_conversation(contexts: Contexts, task: Uuid, names: LookupNames) -> History {
        History {
            offered: Some(names),
            ..History::new(contexts, McpScope::Task(task.to_string()), None)
        }
    }

    /// Returns the same history with another scope.
    pub(super) fn within(&self, scope: McpScope) -> History {
        History {
            scope,
            ..self.clone()
        }
    }

    /// Finds the tasks of a call.
    pub(super) fn reach(
        &self,
        tool: &str,
        arguments: &ToolArguments,
    ) -> Result<HistoryReach, ToolFailure> {
        let mut rows = self.scope.rows(&self.contexts)?;
        if let McpScope::Task(_) = self.scope {
            return Ok(HistoryReach { rows, call: None });
        }
        let all = match self.scope {
            McpScope::All => None,
            _ => Some(self.contexts.rows_by_activity()?),
        };
        let searched = all.as_deref().unwrap_or(&rows);
        let call = caller::find(&self.contexts, searched, tool, arguments.all());
        let own = call.map(|call| call.task);
        // The caller may read its own conversation, whatever directory it names.
        let row = all.and_then(|all| all.into_iter().find(|row| Some(row.uuid) == own));
        if let Some(row) = row.filter(|row| rows.iter().all(|other| other.uuid != row.uuid)) {
            rows.insert(0, row);
        }
        Ok(HistoryReach { rows, call })
    }

    /// Finds the one task that a call refers to: the named one, the caller's own, or the only one.
    pub(super) fn task(&self, tool: &str, arguments: &ToolArguments) -> Result<Uuid, ToolFailure> {
        let reach = self.reach(tool, arguments)?;
        if let Some(name) = arguments.text("task")? {
            return self.named(&name, &reach);
        }
        match (reach.call, reach.rows.as_slice()) {
            (Some(call), _) => Ok(call.task),
            (None, [only]) => Ok(only.uuid),
            (None, []) => Err(self.nothing()),
            (None, rows) => Err(ToolFailure::new(format!(
                "which conversation? name it with `task`, by the beginning of its id: {}",
                names(rows)
            ))),
        }
    }

    /// Finds a task by its name within reach.
    pub(super) fn named(&self, name: &str, reach: &HistoryReach) -> Result<Uuid, ToolFailure> {
        Contexts::resolve_among(name, &reach.rows).map_err(|error| {
            let is_unknown = matches!(error, TaskError::Unknown { .. });
            let failure = ToolFailure::from(error);
            if is_unknown && self.scope != McpScope::All {
                return failure.hint(&format!("this server shows {} and no others", self.scope));
            }
            failure
        })
    }

    /// Says that there is no task.
    pub(super) fn nothing(&self) -> ToolFailure {
        ToolFailure::new(format!("nothing is recorded of {}", self.scope))
    }
}

/// Lists the first of some tasks with their subjects.
fn names(rows: &[TaskRow]) -> String {
    let name = |row: &TaskRow| {
        let id = row.uuid.to_string();
        match &row.title {
            Some(title) => format!("{} ({})", &id[..8], infold_wire::shorten(title, 60)),
            None => id[..8].to_owned(),
        }
    };
    let mut names: Vec<String> = rows.iter().take(MAX_NAMED).map(name).collect();
    if rows.len() > MAX_NAMED {
        names.push(format!("and {} more", rows.len() - MAX_NAMED));
    }
    names.join(", ")
}
