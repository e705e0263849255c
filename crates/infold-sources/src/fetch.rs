//! Fetches tasks: lists them, hands each to a queue once, and relabels it as taken.

use std::error::Error;
use std::fmt;

use uuid::Uuid;

use crate::comment::is_own;
use crate::source::{Repository, TaskPages};
use crate::{Source, SourceError, SourceKind, SourceTask, task_text};

/// A queue that tasks are handed to.
pub trait TaskQueue: Send {
    /// Returns the entry of a task that was enqueued before, whatever became of it.
    fn find(&mut self, task: &SourceTask) -> Result<Option<QueuedTask>, QueueError>;

    /// Enqueues a task under its id. If there is one of this id, returns that one.
    fn enqueue(&mut self, request: QueueRequest<'_>) -> Result<QueuedTask, QueueError>;
}

/// Why a queue did not take a task.
pub type QueueError = Box<dyn Error + Send + Sync>;

/// A task that is to be enqueued.
#[derive(Clone, Debug)]
pub struct QueueRequest<'a> {
    /// The id, which is the same at every fetch.
    pub uuid: Uuid,
    /// Where it came from.
    pub task: &'a SourceTask,
    /// The user's text, with the words of strangers marked.
    pub text: &'a str,
}

/// A task as a queue has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedTask {
    /// Its id.
    pub uuid: Uuid,
    /// Whether it was made by this call.
    pub is_new: bool,
    /// Its status in the queue.
    pub status: QueueStatus,
}

/// The status of a task in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueStatus {
    /// The task waits, runs or is paused.
    Open,
    /// The task is completed.
    Completed,
    /// The task has failed.
    Failed,
}

/// The options of a fetch.
#[derive(Clone, Debug, Default)]
pub struct FetchOptions {
    /// Repositories, as `owner/name`.
    pub repos: Vec<String>,
    /// How many new tasks are enqueued at most.
    pub limit: Option<usize>,
    /// Whether to list only, without enqueuing or writing anything.
    pub is_dry_run: bool,
}

/// The result of a fetch.
#[derive(Debug, Default)]
pub struct FetchReport {
    /// The tasks that were listed, in order.
    pub tasks: Vec<FetchedTask>,
    /// The problems of the fetch; they did not stop it.
    pub problems: Vec<FetchProblem>,
}

/// A task that was listed.
#[derive(Debug)]
pub struct FetchedTask {
    /// The task.
    pub task: SourceTask,
    /// Its id in the queue.
    pub uuid: Uuid,
    /// Whether this fetch enqueued it, or would have.
    pub is_new: bool,
    /// Whether its labels were updated to its status.
    pub is_relabelled: bool,
}

/// A problem, and the place where it occurred.
#[derive(Debug)]
pub struct FetchProblem {
    /// The repository or task.
    pub place: String,
    /// The cause.
    pub cause: FetchFault,
}

/// The cause of a problem.
#[derive(Debug, thiserror::Error)]
pub enum FetchFault {
    /// A request to the source failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The queue did not accept the task.
    #[error("cannot be enqueued: {0}")]
    Queue(QueueError),
    /// The name is not that of a repository.
    #[error("is no repository: {0}")]
    Name(&'static str),
    /// The server listed things that are no tasks.
    #[error("{0} items of the list could not be read")]
    Items(usize),
}

impl fmt::Display for FetchProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.cause)
    }
}

impl FetchReport {
    /// Returns how many tasks were enqueued.
    pub fn new_tasks(&self) -> usize {
        self.tasks.iter().filter(|task| task.is_new).count()
    }

    fn problem(&mut self, place: impl fmt::Display, cause: impl Into<FetchFault>) {
        self.problems.push(FetchProblem {
            place: place.to_string(),
            cause: cause.into(),
        });
    }
}

/// Fetches the tasks of all repositories.
///
/// Each is enqueued first and relabelled then: if a fetch ends in between, the next one finds the task in the
/// queue and relabels it. A repository that fails does not keep others from being fetched.
pub async fn fetch(
    source: &mut Source,
    options: &FetchOptions,
    queue: &mut dyn TaskQueue,
) -> FetchReport {
    let mut report = FetchReport::default();
    for name in &options.repos {
        let (owner, repo) = match split_name(source.kind(), name) {
            Ok(parts) => parts,
            Err(reason) => {
                report.problem(name, FetchFault::Name(reason));
                continue;
            }
        };
        let found = source.repository(owner, repo).await;
        let error = match found {
            Ok(repo) => fetch_repository(source, options, &repo, queue, &mut report)
                .await
                .err(),
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            let ends = is_of_server(&error);
            report.problem(name, error);
            if ends {
                break;
            }
        }
    }
    report
}

/// Says whether an error is of the server as a whole, so that further requests would fail as well.
fn is_of_server(error: &SourceError) -> bool {
    matches!(
        error,
        SourceError::Token { .. }
            | SourceError::RateLimited { .. }
            | SourceError::Unavailable { .. }
            | SourceError::Moved { .. }
    )
}

async fn fetch_repository(
    source: &mut Source,
    options: &FetchOptions,
    repo: &Repository,
    queue: &mut dyn TaskQueue,
    report: &mut FetchReport,
) -> Result<(), SourceError> {
    if repo.is_archived {
        return Err(SourceError::Archived {
            repo: repo.to_string(),
        });
    }
    let label = source.labels.wanted.clone();
    let mut listing = TaskPages::new(&label);
    let listed = source.list(repo, &mut listing).await;
    if listing.unreadable > 0 {
        report.problem(repo, FetchFault::Items(listing.unreadable));
    }
    // Labels are changed after the whole list is read: they would move later tasks to pages that were read.
    for task in std::mem::take(&mut listing.tasks) {
        let is_full = options
            .limit
            .is_some_and(|limit| report.new_tasks() >= limit);
        if is_full {
            break;
        }
        let name = task.name();
        match take(source, options, task, queue).await {
            Ok((fetched, relabelling)) => {
                report.tasks.push(fetched);
                match relabelling {
                    Err(error) if is_of_server(&error) => return Err(error),
                    Err(error) => report.problem(name, error),
                    Ok(()) => {}
                }
            }
            Err(FetchFault::Source(error)) if is_of_server(&error) => return Err(error),
            Err(cause) => report.problem(name, cause),
        }
    }
    // Tasks that were listed before the list broke off are taken; the next fetch finds the others.
    listed
}

/// Enqueues a task and relabels it; the second result is that of relabelling.
async fn take(
    source: &mut Source,
    options: &FetchOptions,
    task: SourceTask,
    queue: &mut dyn TaskQueue,
) -> Result<(FetchedTask, Result<(), SourceError>), FetchFault> {
    let known = queue.find(&task).map_err(FetchFault::Queue)?;
    if options.is_dry_run {
        let fetched = FetchedTask {
            uuid: known.map_or_else(|| task.uuid(), |entry| entry.uuid),
            is_new: known.is_none(),
            is_relabelled: false,
            task,
        };
        return Ok((fetched, Ok(())));
    }
    let entry = match known {
        Some(entry) => QueuedTask {
            is_new: false,
            ..entry
        },
        None => enqueue(source, &task, queue).await?,
    };
    let label = match entry.status {
        QueueStatus::Open => source.labels.taken.clone(),
        QueueStatus::Completed => source.labels.done.clone(),
        QueueStatus::Failed => source.labels.failed.clone(),
    };
    let relabelled = source
        .relabel(&task.reference(), &task.labels, &label)
        .await;
    let fetched = FetchedTask {
        uuid: entry.uuid,
        is_new: entry.is_new,
        is_relabelled: relabelled.is_ok(),
        task,
    };
    Ok((fetched, relabelled))
}

async fn enqueue(
    source: &mut Source,
    task: &SourceTask,
    queue: &mut dyn TaskQueue,
) -> Result<QueuedTask, FetchFault> {
    let mut comments = Vec::new();
    if task.comment_count > 0 {
        comments = source.comments(&task.reference()).await?;
        comments.retain(|comment| !comment.is_internal && !is_own(&comment.body));
    }
    let request = QueueRequest {
        uuid: task.uuid(),
        task,
        text: &task_text(task, &comments),
    };
    queue.enqueue(request).map_err(FetchFault::Queue)
}

/// Splits `owner/name`. An owner at GitLab may be a group in a group.
fn split_name(kind: SourceKind, name: &str) -> Result<(&str, &str), &'static str> {
    let parts: Vec<&str> = name.split('/').collect();
    let is_part = |part: &&str| {
        let is_name = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
        part.chars().all(is_name) && part.chars().any(char::is_alphanumeric)
    };
    if !parts.iter().all(is_part) {
        return Err("it has a character that no name has, or an empty part");
    }
    match (kind, parts.len()) {
        (SourceKind::Github, 2) => {}
        (SourceKind::Github, _) => return Err("it is written as `owner/name`"),
        (SourceKind::Gitlab, 2..) => {}
        (SourceKind::Gitlab, _) => return Err("it is written as `group/name`"),
    }
    name.rsplit_once('/').ok_or("it has no owner")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_repositories_have_an_owner() {
        let split = |kind, name| split_name(kind, name);
        assert_eq!(split(SourceKind::Github, "o/r.rs"), Ok(("o", "r.rs")));
        assert_eq!(split(SourceKind::Gitlab, "a/b-c/d"), Ok(("a/b-c", "d")));
        for bad in [
            "",
            "r",
            "o/",
            "/r",
            "o/..",
            "o/r?x",
            "o/r/s",
            "https://h/o/r",
            "o/r\n",
        ] {
            assert!(split(SourceKind::Github, bad).is_err(), "{bad}");
        }
        assert!(split(SourceKind::Gitlab, "r").is_err());
    }
}
