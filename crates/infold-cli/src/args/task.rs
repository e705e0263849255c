//! The arguments of `infold task`, and of the commands that create a task.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use infold_store::{Metadata, Status};

use super::parsers::parse_age;

/// A command of `infold task`.
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Create a task and print its id
    New {
        #[command(flatten)]
        args: NewArgs,
        /// The wire format of its messages: chat, responses, anthropic, gemini or ollama
        #[arg(long)]
        wire: Option<infold_wire::Wire>,
    },
    /// List tasks, newest activity first
    List {
        /// Only tasks with this status
        #[arg(long)]
        status: Option<Status>,
        /// Only tasks of this user
        #[arg(long)]
        user: Option<String>,
        /// Print only the short id and the title, separated by a tab
        #[arg(long)]
        ids: bool,
    },
    /// Show the details of a task
    Show(TaskArg),
    /// Append messages, all of them or none
    Push {
        /// The task
        task: String,
        /// The messages; - for standard input
        #[arg(value_name = "FILE", default_value = "-")]
        file: PathBuf,
        /// An idempotency key: pushing the same messages with the same key again appends nothing
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
    },
    /// Record a tool run; the record is read from standard input
    Tool {
        /// The task
        task: String,
    },
    /// Mark a task completed
    Complete {
        /// The task
        task: String,
    },
    /// Mark a task failed
    Fail {
        /// The task
        task: String,
        /// The reason
        #[arg(long, value_name = "TEXT")]
        error: String,
    },
    /// Set a task aside: no worker takes it until it is resumed
    Pause {
        /// The task
        task: String,
        /// The reason
        #[arg(long, value_name = "TEXT", default_value = "paused by a person")]
        reason: String,
    },
    /// Queue a task again that was paused
    Resume {
        /// The task
        task: String,
    },
    /// End a task as failed, also one that is being carried out
    Cancel {
        /// The task
        task: String,
        /// The reason
        #[arg(long, value_name = "TEXT", default_value = "cancelled by a person")]
        reason: String,
    },
    /// Show figures of all tasks: what runs, counts, failures, minutes, tokens
    Stats,
    /// Permanently delete a task, running or not
    Delete {
        /// The task
        task: String,
        /// Also delete its forks
        #[arg(long)]
        with_forks: bool,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Remove tasks that ended long ago, rows and directories
    Clean {
        /// The minimum age, such as 30d, 12h or 90m [default: the configured cleanup_days, else 30d]
        #[arg(long, value_name = "AGE", value_parser = parse_age)]
        older_than: Option<jiff::SignedDuration>,
        /// Only list what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

/// What a new task is for, and its model.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Where it comes from, such as github
    #[arg(long)]
    pub source: Option<String>,
    /// The owner of the repository
    #[arg(long)]
    pub owner: Option<String>,
    /// The repository
    #[arg(long)]
    pub repo: Option<String>,
    /// Its type at the source, such as issue
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Its id at the source
    #[arg(long)]
    pub id: Option<String>,
    /// The user it belongs to
    #[arg(long)]
    pub user: Option<String>,
    /// The provider of its model
    #[arg(long)]
    pub provider: Option<String>,
    /// Its model
    #[arg(long)]
    pub model: Option<String>,
    /// The model's window, in tokens
    #[arg(long, value_name = "TOKENS")]
    pub context_length: Option<u64>,
}

impl NewArgs {
    /// Returns the metadata of a task whose messages have the form of `wire`.
    pub fn metadata(&self, wire: &str) -> Metadata {
        Metadata {
            task_source: self.source.clone(),
            owner: self.owner.clone(),
            repo: self.repo.clone(),
            task_type: self.kind.clone(),
            task_id: self.id.clone(),
            user: self.user.clone(),
            llm_provider: self.provider.clone(),
            model: self.model.clone(),
            context_length: self.context_length,
            wire: Some(wire.to_owned()),
            ..Metadata::default()
        }
    }
}

/// A task, by default the newest.
#[derive(Debug, Args)]
pub struct TaskArg {
    /// The task
    #[arg(default_value = "@")]
    pub task: String,
}
