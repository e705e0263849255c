//! An issue, pull request or merge request as a task.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// A kind of server that tasks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// GitHub, or GitHub Enterprise Server.
    Github,
    /// GitLab, at gitlab.com or elsewhere.
    Gitlab,
}

impl SourceKind {
    /// Returns the name that commands, configuration and the registry use.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Github => "github",
            SourceKind::Gitlab => "gitlab",
        }
    }

    /// Returns the name as its makers write it.
    pub fn title(self) -> &'static str {
        match self {
            SourceKind::Github => "GitHub",
            SourceKind::Gitlab => "GitLab",
        }
    }

    /// Returns the address of the public service.
    pub fn home(self) -> &'static str {
        match self {
            SourceKind::Github => "https://api.github.com",
            SourceKind::Gitlab => "https://gitlab.com",
        }
    }

    /// Returns the variable of the environment that holds the token.
    pub fn token_variable(self) -> &'static str {
        match self {
            SourceKind::Github => "GITHUB_TOKEN",
            SourceKind::Gitlab => "GITLAB_TOKEN",
        }
    }
}

/// A text names no kind of server or task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is none of {valid}")]
pub struct UnknownKind {
    text: String,
    valid: &'static str,
}

impl FromStr for SourceKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<SourceKind, UnknownKind> {
        match text {
            "github" => Ok(SourceKind::Github),
            "gitlab" => Ok(SourceKind::Gitlab),
            _ => Err(UnknownKind {
                text: text.to_owned(),
                valid: "github, gitlab",
            }),
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kind of a task at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskType {
    /// An issue.
    Issue,
    /// A pull request of GitHub.
    PullRequest,
    /// A merge request of GitLab.
    MergeRequest,
}

impl TaskType {
    /// Returns the name that the registry has.
    pub fn name(self) -> &'static str {
        match self {
            TaskType::Issue => "issue",
            TaskType::PullRequest => "pull_request",
            TaskType::MergeRequest => "merge_request",
        }
    }

    /// Returns the words for people.
    pub fn title(self) -> &'static str {
        match self {
            TaskType::Issue => "issue",
            TaskType::PullRequest => "pull request",
            TaskType::MergeRequest => "merge request",
        }
    }
}

impl FromStr for TaskType {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<TaskType, UnknownKind> {
        match text {
            "issue" => Ok(TaskType::Issue),
            "pull_request" => Ok(TaskType::PullRequest),
            "merge_request" => Ok(TaskType::MergeRequest),
            _ => Err(UnknownKind {
                text: text.to_owned(),
                valid: "issue, pull_request, merge_request",
            }),
        }
    }
}

impl fmt::Display for TaskType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Where a task came from, as the registry keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TaskRef {
    /// The owner of the repository: a user, an organisation, or a group with its parents.
    pub owner: String,
    /// The repository.
    pub repo: String,
    /// Its kind.
    pub task_type: TaskType,
    /// Its number in the repository.
    pub task_id: String,
}

/// An issue, pull request or merge request, as its server describes it. All texts are those of strangers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTask {
    /// The kind of server.
    pub source: SourceKind,
    /// Host and port of the server.
    pub host: String,
    /// The server's own id of the repository, which a rename does not change.
    pub repo_id: String,
    /// The owner of the repository: a user, an organisation, or a group with its parents.
    pub owner: String,
    /// The repository.
    pub repo: String,
    /// Its kind.
    pub task_type: TaskType,
    /// Its number in the repository.
    pub task_id: String,
    /// The title.
    pub title: String,
    /// The description.
    pub body: String,
    /// The account that wrote it.
    pub author: String,
    /// Its page.
    pub url: String,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// When it was last changed, as the server writes it.
    pub updated_at: String,
    /// How many comments it has.
    pub comment_count: u64,
}

/// A comment on a task, written by anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskComment {
    /// The account that wrote it.
    pub author: String,
    /// The text.
    pub body: String,
    /// When it was written, as the server writes it.
    pub created_at: String,
    /// The account belongs to a program.
    pub is_bot: bool,
    /// The server wrote it about a change, or only members of the project may read it.
    pub is_internal: bool,
}

impl SourceTask {
    /// Returns the key by which it is enqueued once: the same at every fetch, also after the repository
    /// was renamed.
    pub fn key(&self) -> String {
        format!(
            "{}:{}:{}:{}:{}",
            self.source, self.host, self.repo_id, self.task_type, self.task_id
        )
    }

    /// Returns the id of its task, which is made of the key: a queue that has it has this task.
    pub fn uuid(&self) -> Uuid {
        let digest = blake3::derive_key("infold sources task id v1", self.key().as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    /// Returns where it is.
    pub fn reference(&self) -> TaskRef {
        TaskRef {
            owner: self.owner.clone(),
            repo: self.repo.clone(),
            task_type: self.task_type,
            task_id: self.task_id.clone(),
        }
    }

    /// Returns a name for messages: `owner/repo#42`.
    pub fn name(&self) -> String {
        self.reference().to_string()
    }
}

impl fmt::Display for TaskRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.task_type {
            TaskType::MergeRequest => '!',
            TaskType::Issue | TaskType::PullRequest => '#',
        };
        write!(f, "{}/{}{sign}{}", self.owner, self.repo, self.task_id)
    }
}
