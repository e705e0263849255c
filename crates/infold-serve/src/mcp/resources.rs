//! Tasks and folds as resources, by address.

use infold_log::Item;
use infold_store::TaskRow;
use infold_wire::shorten;
use uuid::Uuid;

use super::history::HistoryReach;
use super::{History, ToolFailure, recall, view};

/// A task or a fold in a list.
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub about: String,
}

/// Addresses with places: address, name, description.
pub const TEMPLATES: [(&str, &str, &str); 3] = [
    (
        "infold://tasks/{task}",
        "conversation",
        "What the model sees of a conversation, a line for each message or fold",
    ),
    (
        "infold://tasks/{task}/folds/{fold}",
        "fold",
        "A fold such as e7: its text, and the messages it stands for",
    ),
    (
        "infold://tasks/{task}/messages/{range}",
        "messages",
        "Messages in full: 12, 12..40 or 12..",
    ),
];

/// The number of tasks on a page of the list, each with its folds.
const TASKS_PER_PAGE: usize = 20;

impl History {
    /// Lists tasks, each followed by its folds in force; and where the next page begins.
    pub(super) fn resources(
        &self,
        cursor: Option<&str>,
    ) -> Result<(Vec<Resource>, Option<String>), ToolFailure> {
        let from: usize = match cursor {
            None => 0,
            Some(cursor) => cursor
                .parse()
                .map_err(|_| ToolFailure::new("this cursor is not one of ours"))?,
        };
        let rows = self.scope.rows(&self.contexts)?;
        let mut list = Vec::new();
        for row in rows.iter().skip(from).take(TASKS_PER_PAGE) {
            list.push(task(row));
            // A task that cannot be read is listed without its folds.
            list.extend(self.folds(row).unwrap_or_default());
        }
        let next = from.saturating_add(TASKS_PER_PAGE);
        Ok((list, (next < rows.len()).then(|| next.to_string())))
    }

    fn folds(&self, row: &TaskRow) -> Result<Vec<Resource>, ToolFailure> {
        let log = self.contexts.read(row.uuid)?;
        let shown = log.state().shown();
        let folds = shown.items().iter().filter_map(|item| match item {
            Item::Fold(fold) => Some(fold),
            _ => None,
        });
        let folds = folds.map(|fold| {
            let ends = fold.runs.first().zip(fold.runs.last());
            let ends = ends.map(|(first, last)| format!("{}..{}", first.from(), last.to()));
            Resource {
                uri: format!("infold://tasks/{}/folds/{}", row.uuid, fold.id),
                name: format!("{} of {}", fold.id, &row.uuid.to_string()[..8]),
                about: format!("Hides messages {}", ends.unwrap_or_default()),
            }
        });
        Ok(folds.collect())
    }

    /// Reads a resource; `None` if there is none at this address.
    pub(super) fn read(&self, uri: &str) -> Option<Result<String, ToolFailure>> {
        let path = uri.strip_prefix("infold://tasks/")?;
        let parts: Vec<&str> = path.split('/').collect();
        let (name, part) = match parts.as_slice() {
            [task] => (task, None),
            [task, "folds", fold] if fold.starts_with('e') => (task, Some(fold)),
            [task, "messages", range] if !range.starts_with('e') => (task, Some(range)),
            _ => return None,
        };
        Some(self.in_scope(name).and_then(|task| {
            let log = self.contexts.read(task)?;
            match part {
                Some(range) => Ok(recall::recalled(&log, range, 0)?),
                None => view::viewed(log, 1),
            }
        }))
    }

    /// Finds a task by its name within the scope: the reader of a resource is unknown.
    fn in_scope(&self, name: &str) -> Result<Uuid, ToolFailure> {
        let rows = self.scope.rows(&self.contexts)?;
        self.named(name, &HistoryReach { rows, call: None })
    }
}

fn task(row: &TaskRow) -> Resource {
    let id = row.uuid.to_string();
    let title = row.title.as_deref().map(|title| shorten(title, 100));
    Resource {
        uri: format!("infold://tasks/{id}"),
        name: title.unwrap_or_else(|| id[..8].to_owned()),
        about: format!("Conversation {} ({})", &id[..8], row.status),
    }
}
