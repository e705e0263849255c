//! Comments that are posted once: each has a hidden marker that is looked for first.

use uuid::Uuid;

use crate::{Source, SourceError, SourceKind, TaskComment, TaskRef};

/// The start of every marker.
const MARKER_START: &str = "<!-- infold:";

/// The event that a comment reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentKind {
    Start,
    Completed,
    Failed,
}

impl CommentKind {
    /// Returns the line that tells a comment from others.
    pub fn marker(self, task: Uuid) -> String {
        let name = match self {
            CommentKind::Start => "start",
            CommentKind::Completed => "completed",
            CommentKind::Failed => "failed",
        };
        format!("{MARKER_START}{task}:{name} -->")
    }
}

/// Says whether a comment has a marker of any task.
pub fn is_own(body: &str) -> bool {
    body.contains(MARKER_START)
}

impl Source {
    /// Posts a comment unless it is there; returns whether it was posted now.
    ///
    /// An answer that is lost does not double it: the marker is looked for before each attempt.
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
                .any(|comment| self.wrote(login.as_deref(), comment, &marker))
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

    /// Says whether a comment is ours. A marker that another account wrote does not count: the id of a task is
    /// public from its first comment on, and anybody could keep the next one from being posted.
    fn wrote(&self, login: Option<&str>, comment: &TaskComment, marker: &str) -> bool {
        let is_ours = match (login, self.kind()) {
            (Some(login), _) => comment.author.eq_ignore_ascii_case(login),
            // The token of an app has no account that the server names; its comments are those of a bot.
            (None, SourceKind::Github) => comment.is_bot,
            (None, SourceKind::Gitlab) => true,
        };
        is_ours && comment.body.starts_with(marker)
    }
}
