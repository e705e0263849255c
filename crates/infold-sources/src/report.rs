//! Reports the start and the result of a task where it came from.

use uuid::Uuid;

use crate::comment::CommentKind;
use crate::prompt::revision;
use crate::text::{postable, shortened};
use crate::{Source, SourceError, SourceTask, TaskRef};

/// How many characters of a result are posted. GitHub takes 65,536 in a comment.
const MAX_RESULT_CHARS: usize = 60_000;

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultStatus {
    /// The task is completed.
    Completed,
    /// The task has failed.
    Failed,
}

/// The result of a task.
#[derive(Clone, Debug)]
pub struct TaskResult<'a> {
    /// How it ended.
    pub status: ResultStatus,
    /// The answer of the model, or why it failed. Secrets are taken out, mentions and commands do nothing.
    pub text: &'a str,
    /// The revision that the task was made of ([`crate::revision_of`] its text); none if it is not known.
    pub revision: Option<&'a str>,
}

/// The result of a report.
#[derive(Debug)]
pub struct ReportOutcome {
    /// Whether the comment was posted now; else it was there.
    pub is_posted: bool,
    /// Whether title or description changed since the task was taken.
    pub is_edited: bool,
    /// Why the labels are not those of the result.
    pub relabelling: Result<(), SourceError>,
}

impl Source {
    /// Comments that work on a task has begun; returns whether the comment was posted now.
    pub async fn report_start(&mut self, at: &TaskRef, task: Uuid) -> Result<bool, SourceError> {
        let text = format!("Infold has begun to work on this (task `{task}`).");
        self.comment_once(at, task, CommentKind::Start, &text).await
    }

    /// Comments the result of a task, and relabels it. Done again, it changes nothing.
    pub async fn report_result(
        &mut self,
        at: &TaskRef,
        task: Uuid,
        result: &TaskResult<'_>,
    ) -> Result<ReportOutcome, SourceError> {
        let now = self.task(at).await?;
        let is_edited = result.revision.is_some_and(|taken| taken != revision(&now));
        let (kind, label) = match result.status {
            ResultStatus::Completed => (CommentKind::Completed, self.labels.done.clone()),
            ResultStatus::Failed => (CommentKind::Failed, self.labels.failed.clone()),
        };
        let text = self.result_text(&now, task, result, is_edited);
        let is_posted = self.comment_once(at, task, kind, &text).await?;
        let relabelling = self.relabel(at, &now.labels, &label).await;
        Ok(ReportOutcome {
            is_posted,
            is_edited,
            relabelling,
        })
    }

    fn result_text(
        &self,
        now: &SourceTask,
        task: Uuid,
        result: &TaskResult<'_>,
        is_edited: bool,
    ) -> String {
        let what = now.task_type.title();
        let mut text = match result.status {
            ResultStatus::Completed => format!("Infold has completed this (task `{task}`).\n"),
            ResultStatus::Failed => format!("Infold could not complete this (task `{task}`).\n"),
        };
        if is_edited {
            text.push_str(&format!(
                "\nThe {what} was edited since the task was taken; this is the result for its earlier text.\n"
            ));
        }
        let said = self.api.server.redact(&postable(result.text));
        let said = shortened(said.trim(), MAX_RESULT_CHARS, "\n\n(cut)");
        if !said.is_empty() {
            text.push_str(&format!("\n{said}\n"));
        }
        text
    }
}
