//! The history that a client of the protocol may use: the store, its scope, and whether it may write.

use std::sync::Arc;

use infold::step::Step;
use infold_store::{Contexts, TaskError, TaskRow};
use infold_wire::lookup::LookupNames;
use uuid::Uuid;

use super::arguments::ToolArguments;
use super::caller::{self, CallerCall};
use super::{McpScope, ToolFailure};

/// Takes a step on a task and says what it did, in one line.
pub type StepTaker = Arc<dyn Fn(Uuid, &Step) -> Result<String, ToolFailure> + Send + Sync>;

/// The most characters of a result; what is left is asked for with another call.
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
    /// The call in the log of the conversation that it comes from, if that can be told.
    pub call: Option<CallerCall>,
}

/// So many tasks are named where one has to be chosen.
const MAX_NAMED: usize = 5;

impl History {
    /// Serves the tasks of a scope. They are only read, unless something takes steps.
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

    /// The same history with another scope.
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
        // Its own conversation is the caller's to read, whatever directory it names.
        let row = all.and_then(|all| all.into_iter().find(|row| Some(row.uuid) == own));
        if let Some(row) = row.filter(|row| rows.iter().all(|other| other.uuid != row.uuid)) {
            rows.insert(0, row);
        }
        Ok(HistoryReach { rows, call })
    }

    /// Finds the one task that a call is about: the named one, the caller's own, or the only one.
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

    /// Finds a task by its name, if it is in reach.
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

/// The first of some tasks, with what they are about.
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
