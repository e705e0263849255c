//! `infold fetch`: puts issues and merge requests of GitHub and GitLab into the queue.

use std::time::Duration;

use clap::Args;
use infold::config::{Secret, SourceConfig};
use infold::{Config, queue};
use infold_sources::{
    FetchFault, FetchOptions, FetchProblem, FetchReport, FetchedTask, Labels, QueueError,
    QueueRequest, QueueStatus, QueuedTask, Source, SourceError, SourceKind, SourceOptions,
    SourceTask, TaskQueue,
};
use infold_store::{Contexts, Status};
use serde_json::json;

use crate::config::user_directory;
use crate::error::{CliError, CliResult, Exit};
use crate::output::{Output, note, one_line};

/// The arguments of `infold fetch`.
#[derive(Debug, Args)]
pub struct FetchArgs {
    /// Where the tasks come from: github or gitlab
    #[arg(long, value_name = "NAME")]
    source: SourceKind,
    /// A repository, instead of the configured ones; may be repeated
    #[arg(long = "repo", value_name = "OWNER/NAME")]
    repos: Vec<String>,
    /// The label of what is fetched [default: the configured one, else infold]
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// How many tasks are enqueued at most
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// The user the tasks belong to
    #[arg(long, env = "USER")]
    user: Option<String>,
    /// Only list what would be enqueued
    #[arg(long)]
    dry_run: bool,
}

/// `infold fetch`
pub fn run(contexts: &Contexts, config: &Config, args: &FetchArgs, out: &mut Output) -> CliResult {
    let section = match args.source {
        SourceKind::Github => &config.sources.github,
        SourceKind::Gitlab => &config.sources.gitlab,
    };
    let options = args.fetch_options(section)?;
    let mut source = open_source(args.source, section, args.label.as_deref())?;
    let variable = args.source.token_variable();
    if !source.has_token() && !args.dry_run {
        return Err(CliError::usage(format!("{variable} is not set"))
            .hint("the token is read from it; --dry-run lists public repositories without one"));
    }
    let is_json = out.is_json();
    if source.is_exposed() {
        note(
            is_json,
            "the token is sent unencrypted: `base_url` starts with http://",
        );
    }
    source.on_wait(move |why, wait| {
        // Short waits are nothing to tell.
        if wait >= Duration::from_secs(2) {
            note(is_json, format!("waiting {} s: {why}", wait.as_secs()));
        }
    });
    let mut queue = RegistryQueue {
        contexts,
        config,
        user: args.user.clone(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::provider(format!("no threads available: {error}")))?;
    let report = runtime.block_on(infold_sources::fetch(&mut source, &options, &mut queue));
    if let Err(error) = source.save_cache() {
        note(
            is_json,
            format!("the cache of pages was not written: {error}"),
        );
    }
    print(&report, args, out)
}

impl FetchArgs {
    fn fetch_options(&self, section: &SourceConfig) -> CliResult<FetchOptions> {
        let configured = section.repos.iter().map(|set| set.value.clone());
        let repos = if self.repos.is_empty() {
            configured.collect()
        } else {
            self.repos.clone()
        };
        if repos.is_empty() {
            let name = self.source.name();
            return Err(CliError::usage("no repository is named").hint(format!(
                "--repo OWNER/NAME, or `sources.{name}.repos` in config.yaml"
            )));
        }
        Ok(FetchOptions {
            repos,
            limit: self.limit,
            is_dry_run: self.dry_run,
        })
    }
}

/// Opens a source as configured, with the token of the environment.
pub fn open_source(
    kind: SourceKind,
    section: &SourceConfig,
    label: Option<&str>,
) -> CliResult<Source> {
    let token = std::env::var(kind.token_variable()).ok();
    let token = token
        .map(|token| token.trim().to_owned())
        .filter(|token| !token.is_empty());
    let defaults = Labels::default();
    let set = |set: &Option<infold::profile::Setting<String>>, default: String| {
        set.as_ref().map_or(default, |set| set.value.clone())
    };
    let labels = Labels {
        wanted: label.map_or_else(|| set(&section.label, defaults.wanted), str::to_owned),
        taken: set(&section.taken_label, defaults.taken),
        done: set(&section.done_label, defaults.done),
        failed: set(&section.failed_label, defaults.failed),
    };
    let ours = [&labels.taken, &labels.done, &labels.failed];
    if ours.contains(&&labels.wanted)
        || labels.wanted.contains(',')
        || labels.wanted.trim().is_empty()
    {
        return Err(CliError::usage(format!(
            "`{}` cannot be the label of what is fetched",
            labels.wanted
        ))
        .hint("it has no comma, and differs from the labels of what was taken or has ended"));
    }
    let cache = user_directory("XDG_CACHE_HOME", ".cache");
    let options = SourceOptions {
        base_url: section.base_url.as_ref().map(|set| set.value.clone()),
        token: token.map(Secret::new),
        labels,
        cache_file: cache.map(|dir| dir.join(format!("{kind}-pages.jsonl"))),
        ..SourceOptions::default()
    };
    Source::new(kind, options).map_err(|error| {
        CliError::usage(error).hint(format!(
            "check `sources.{kind}.base_url` and {}",
            kind.token_variable()
        ))
    })
}

/// The queue of this contexts directory.
struct RegistryQueue<'a> {
    contexts: &'a Contexts,
    config: &'a Config,
    user: Option<String>,
}

impl TaskQueue for RegistryQueue<'_> {
    fn find(&mut self, task: &SourceTask) -> Result<Option<QueuedTask>, QueueError> {
        let uuid = task.uuid();
        if self.contexts.place(uuid).is_none() {
            return Ok(None);
        }
        let row = self.contexts.row(uuid)?;
        let status = row.map_or(QueueStatus::Open, |row| match row.status {
            Status::Completed => QueueStatus::Completed,
            Status::Failed => QueueStatus::Failed,
            Status::Queued | Status::Running | Status::Paused => QueueStatus::Open,
        });
        Ok(Some(QueuedTask {
            uuid,
            is_new: false,
            status,
        }))
    }

    fn enqueue(&mut self, request: QueueRequest<'_>) -> Result<QueuedTask, QueueError> {
        enqueue_task(self.contexts, self.config, self.user.as_deref(), &request)
    }
}

/// Enqueues a task under its own id.
fn enqueue_task(
    contexts: &Contexts,
    config: &Config,
    user: Option<&str>,
    request: &QueueRequest<'_>,
) -> Result<QueuedTask, QueueError> {
    let task = request.task;
    let queued = queue::enqueue(
        contexts,
        queue::EnqueueRequest {
            task_source: Some(task.source.name().to_owned()),
            owner: Some(task.owner.clone()),
            repo: Some(task.repo.clone()),
            task_type: Some(task.task_type.name().to_owned()),
            task_id: Some(task.task_id.clone()),
            user: user.map(str::to_owned),
            uuid: Some(request.uuid),
            ..queue::EnqueueRequest::new(config, request.text)
        },
    )?;
    Ok(QueuedTask {
        uuid: queued.task,
        is_new: queued.is_new,
        status: QueueStatus::Open,
    })
}

fn print(report: &FetchReport, args: &FetchArgs, out: &mut Output) -> CliResult {
    for task in &report.tasks {
        print_task(task, args, out)?;
    }
    out.finish()?;
    let (new, all) = (report.new_tasks(), report.tasks.len());
    let done = if args.dry_run {
        "would be enqueued"
    } else {
        "enqueued"
    };
    note(
        out.is_json(),
        format!("{new} of {all} {done}; {} known", all - new),
    );
    let Some((last, others)) = report.problems.split_last() else {
        return Ok(());
    };
    for problem in others {
        problem_error(problem, args.source).warn(out.is_json());
    }
    Err(problem_error(last, args.source))
}

fn print_task(fetched: &FetchedTask, args: &FetchArgs, out: &mut Output) -> CliResult {
    let task = &fetched.task;
    let object = json!({
        "uuid": fetched.uuid.to_string(), "new": fetched.is_new, "relabelled": fetched.is_relabelled,
        "task_source": task.source.name(), "owner": task.owner, "repo": task.repo,
        "task_type": task.task_type.name(), "task_id": task.task_id, "title": task.title,
        "author": task.author, "url": task.url, "labels": task.labels, "dry_run": args.dry_run,
    });
    let state = if fetched.is_new { "new  " } else { "known" };
    let title = one_line(&task.title);
    out.result(
        &object,
        format!(
            "{state}  {}  {}  {title}",
            fetched.uuid,
            one_line(&task.name())
        ),
    )
}

/// Converts a problem into an error with a hint.
fn problem_error(problem: &FetchProblem, kind: SourceKind) -> CliError {
    let variable = kind.token_variable();
    let (exit, hint) = match &problem.cause {
        FetchFault::Name(_) => (Exit::Usage, "such as --repo owner/name".to_owned()),
        FetchFault::Queue(_) => (
            Exit::Store,
            "it keeps its label; the next fetch tries again".to_owned(),
        ),
        FetchFault::Items(_) => (
            Exit::Provider,
            format!("is `sources.{kind}.base_url` right?"),
        ),
        FetchFault::Source(error) => (Exit::Provider, source_hint(error, kind, variable)),
    };
    CliError::new(exit, problem).hint(hint)
}

fn source_hint(error: &SourceError, kind: SourceKind, variable: &str) -> String {
    match error {
        SourceError::Token { .. } => {
            format!("check {variable}: is it of this server, and not expired?")
        }
        SourceError::Forbidden { .. } => format!(
            "{variable} may read, but not write there: it needs access to issues and to pull or merge requests"
        ),
        SourceError::Missing { .. } => format!("check the name, and whether {variable} may see it"),
        SourceError::Archived { .. } => {
            format!("unarchive it, or take it out of `sources.{kind}.repos`")
        }
        SourceError::RateLimited { .. } => {
            "try again then; tasks that were enqueued are not enqueued twice".to_owned()
        }
        SourceError::Unavailable { .. } | SourceError::Unconfirmed { .. } => {
            "try again later; nothing is done twice".to_owned()
        }
        SourceError::Unreadable { .. } | SourceError::Moved { .. } => {
            format!("check `sources.{kind}.base_url`: is it the address of the API?")
        }
        SourceError::Refused { .. } => "try again later, or look at it on its page".to_owned(),
    }
}
