//! Where the directories of tasks are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

/// The places in a contexts directory that hold tasks: those under way, and those that ended.
pub(crate) const PLACES: [&str; 2] = ["running", "completed"];

/// Returns whether the directory of a task is where those are that ended.
pub(crate) fn is_among_ended(dir: &Path) -> bool {
    dir.parent().is_some_and(|place| place.ends_with(PLACES[1]))
}

/// Finds the directory of a task by its id, for logs that begin with another task's.
#[derive(Clone, Debug, Default)]
pub struct TaskDirs {
    root: Option<Arc<Path>>,
}

impl TaskDirs {
    /// The tasks of a contexts directory.
    pub fn of(root: &Path) -> TaskDirs {
        TaskDirs {
            root: Some(root.into()),
        }
    }

    /// No tasks: a log that begins with another one's cannot be read.
    pub fn none() -> TaskDirs {
        TaskDirs::default()
    }

    /// The directory of a task, if it is there.
    pub fn find(&self, task: Uuid) -> Option<PathBuf> {
        let root = self.root.as_ref()?;
        let dirs = PLACES.map(|place| root.join(place).join(task.to_string()));
        dirs.into_iter().find(|dir| dir.is_dir())
    }
}
