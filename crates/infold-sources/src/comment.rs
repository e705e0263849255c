//! Posts comments at most once: each begins with a hidden marker (an HTML comment), and is not posted if a comment with
//! the same marker exists.

use uuid::Uuid;

use crate::{Source, SourceError, SourceKind, TaskComment, TaskRef};

/// The start of every marker.
const MARKER_START: &str = "<!-- infold:";

/// The event that a comment reports. A task gets at most one comment of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentKind {
    Start,
    Completed,
    Failed,
}

impl CommentKind {
    /// Returns the first line of a comment, by which it is recognised later.
    pub fn marker(self, task: Uuid) -> String {
        let name = match self {
            CommentKind::Start => "start",
            CommentKind::Completed => "completed",
            CommentKind::Failed => "failed",
        };
        format!("{MARKER_START}{task}:{name} -->")
    }
}

/// Returns whether a comment contains a marker of any task. Such comments are not shown to the model as part of the
/// task.
pub fn is_own(body: &str) -> bool {
    body.contains(MARKER_START)
}

impl Source {
    /// Posts a comment unless it exists; returns whether this call posted it.
    ///
    /// If the answer to a post is lost, the comment may have been posted. The comments are therefore read again before
    /// each attempt, and a comment that is found after the first attempt counts as posted by this call.
    pub(crate) async fn comment_once(
        &mut self,
        at: &TaskRef,
        task: Uuid,
        kind: CommentKind,
        text: &str,
    ) -> Result<bool, SourceError> {
        let marker = kind.marker(task);
        let body = format!("{marker}\n{text}");
        let login = self.login().await?;
        let mut attempt = 0;
        loop {
            let comments = self.comments(at).await?;
            if comments
                .iter()
                .any(|comment| self.is_own_comment(login.as_deref(), comment, &marker))
            {
                return Ok(attempt > 0);
            }
            match self.post_comment(at, &body).await {
                Ok(()) => return Ok(true),
                Err(SourceError::Unconfirmed { server, what }) => {
                    attempt += 1;
                    if attempt >= self.api.retry.attempts {
                        return Err(SourceError::Unconfirmed { server, what });
                    }
                    let wait = self.api.retry.backoff(attempt);
                    (self.api.on_wait)(&what, wait);
                    tokio::time::sleep(wait).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns whether this account posted a comment with this marker. A marker in a comment of another account does
    /// not count: the id of a task is public from its first comment on, so another person could otherwise post the next
    /// marker and prevent our comment.
    fn is_own_comment(&self, login: Option<&str>, comment: &TaskComment, marker: &str) -> bool {
        let is_ours = match (login, self.kind()) {
            (Some(login), _) => comment.author.eq_ignore_ascii_case(login),
            // The server names no account for the token of a GitHub app, but marks the app's comments as those of a
            // bot.
            (None, SourceKind::Github) => comment.is_bot,
            // `is_bot` is never set for GitLab, so the marker alone decides.
            (None, SourceKind::Gitlab) => true,
        };
        is_ours && comment.body.starts_with(marker)
    }
}
