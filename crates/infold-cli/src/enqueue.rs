//! `infold enqueue`: puts a task into the queue.

use std::path::{Path, PathBuf};

use clap::Args;
use infold::Config;
use infold::queue::{EnqueueRequest, enqueue};
use infold_store::Contexts;
use serde_json::json;
use uuid::Uuid;

use crate::error::{CliError, CliResult};
use crate::output::{Output, note};
use crate::steps::read_text;

/// The arguments of `infold enqueue`.
#[derive(Debug, Args)]
pub struct EnqueueArgs {
    /// What is to be done
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub text: Option<String>,
    /// Read what is to be done from this file; - for standard input
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Tasks with a higher number come first
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub priority: i64,
    /// The id of the task [default: a new one]
    #[arg(long)]
    pub uuid: Option<Uuid>,
    /// The user it is done for
    #[arg(long, env = "USER")]
    pub user: Option<String>,
    /// The directory it is done in [default: the configured one, else the current directory]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Let the model run commands in the workspace, until the task ends
    #[arg(long)]
    pub allow_commands: bool,
}

/// `infold enqueue`
pub fn run(
    contexts: &Contexts,
    config: &Config,
    args: &EnqueueArgs,
    out: &mut Output,
) -> CliResult {
    let text = match (&args.text, &args.from) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => read_text(path)?,
        (None, None) => String::new(),
    };
    let request = EnqueueRequest {
        priority: args.priority,
        uuid: args.uuid,
        allows_commands: args.allow_commands,
        ..task_request(config, &text, args.user.clone(), args.workspace.as_deref())?
    };
    let queued = enqueue(contexts, request)?;
    let id = queued.task.to_string();
    out.result(&json!({"uuid": id, "new": queued.is_new}), &id)?;
    out.finish()?;
    if !queued.is_new {
        note(out.is_json(), "it is there already; nothing was enqueued");
    }
    Ok(())
}

/// Returns the request for a task from the command line.
pub fn task_request(
    config: &Config,
    text: &str,
    user: Option<String>,
    workspace: Option<&Path>,
) -> CliResult<EnqueueRequest> {
    if text.trim().is_empty() {
        return Err(CliError::usage("there is nothing to do: the text is empty")
            .hint("say what is to be done; nothing was stored"));
    }
    let mut request = EnqueueRequest::new(config, text);
    request.workspace = Some(find_workspace(workspace.or(request.workspace.as_deref()))?);
    request.task_source = Some("cli".to_owned());
    request.user = user;
    Ok(request)
}

/// Returns the whole path of a workspace; the current directory if none is named.
fn find_workspace(named: Option<&Path>) -> CliResult<PathBuf> {
    let path = named.unwrap_or(Path::new("."));
    let found = path.canonicalize().and_then(|path| {
        let is_dir = path.metadata()?.is_dir();
        is_dir
            .then_some(path)
            .ok_or(std::io::ErrorKind::NotADirectory.into())
    });
    found.map_err(|error| {
        CliError::usage(format!(
            "the workspace {} cannot be used: {error}",
            path.display()
        ))
        .hint("--workspace names a directory; nothing was stored")
    })
}
