//! Comments on the start and the result of a task where it came from.

use infold::Config;
use infold_log::{Past as _, Role};
use infold_sources::{
    ResultStatus, Source, SourceError, SourceKind, TaskRef, TaskResult, revision_of,
};
use infold_store::{Contexts, Log, Metadata};
use infold_wire::{ContentBlock, Message, searchable_text};
use infold_work::RunEnd;
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use crate::error::{CliError, CliResult};
use crate::fetch::open_source;
use crate::output::note;

/// The source of a task. A report that fails becomes a note: the task continues.
pub struct SourceReport {
    source: Source,
    at: TaskRef,
    task: Uuid,
    /// The revision of the source that the task was made from.
    revision: Option<String>,
    runtime: Runtime,
    is_json: bool,
}

impl SourceReport {
    /// Returns the source of a task; none if it came from elsewhere, or without a token.
    pub fn open(config: &Config, log: &Log, task: Uuid, is_json: bool) -> CliResult<Option<Self>> {
        let metadata = Metadata::read(log.dir())?;
        let Some((kind, at)) = origin(&metadata) else {
            return Ok(None);
        };
        let section = match kind {
            SourceKind::Github => &config.sources.github,
            SourceKind::Gitlab => &config.sources.gitlab,
        };
        let source = open_source(kind, section, None)?;
        if !source.has_token() {
            let variable = kind.token_variable();
            let text = format!("{kind} is not told of this task: {variable} is not set");
            note(is_json, text);
            return Ok(None);
        }
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                note(is_json, format!("{kind} is not told of this task: {error}"));
                return Ok(None);
            }
        };
        let report = SourceReport {
            source,
            at,
            task,
            revision: task_revision(log)?,
            runtime,
            is_json,
        };
        Ok(Some(report))
    }

    /// Comments that the task was begun, once.
    pub fn start(&mut self) {
        let told = self.source.report_start(&self.at, self.task);
        let told = self.runtime.block_on(told);
        self.check(told.map(|_| ()));
    }

    /// Comments the result of a task that ended, once, and relabels it.
    pub fn end(&mut self, end: &RunEnd) {
        let (status, text) = match end {
            RunEnd::Completed { summary } => (ResultStatus::Completed, summary),
            RunEnd::Failed { error } => (ResultStatus::Failed, error),
            RunEnd::Paused { .. }
            | RunEnd::Stopped
            | RunEnd::Retried { .. }
            | RunEnd::LeaseLost => return,
        };
        let result = TaskResult {
            status,
            text,
            revision: self.revision.as_deref(),
        };
        let told = self.source.report_result(&self.at, self.task, &result);
        let told = self.runtime.block_on(told);
        self.check(told.and_then(|outcome| outcome.relabelling));
    }

    fn check(&self, told: Result<(), SourceError>) {
        if let Err(error) = told {
            note(self.is_json, format!("the source was not told: {error}"));
        }
    }
}

/// Comments the result of a task at its source, for a task that its loop did not end itself. A failure becomes a note.
pub fn report_end(contexts: &Contexts, config: &Config, task: Uuid, end: &RunEnd, json: bool) {
    if !matches!(end, RunEnd::Failed { .. }) {
        return;
    }
    let log = contexts.read(task).map_err(CliError::from);
    match log.and_then(|log| SourceReport::open(config, &log, task, json)) {
        Ok(Some(mut source)) => source.end(end),
        Ok(None) => {}
        Err(error) => note(json, format!("the source was not told: {}", error.text())),
    }
}

fn origin(metadata: &Metadata) -> Option<(SourceKind, TaskRef)> {
    let kind = metadata.task_source.as_deref()?.parse().ok()?;
    let at = TaskRef {
        owner: metadata.owner.clone()?,
        repo: metadata.repo.clone()?,
        task_type: metadata.task_type.as_deref()?.parse().ok()?,
        task_id: metadata.task_id.clone()?,
    };
    Some((kind, at))
}

/// Returns the revision that the first message of the user names.
fn task_revision(log: &Log) -> CliResult<Option<String>> {
    for run in log.state().shown().path() {
        for seq in run.seqs() {
            if log.record(seq)?.role == Role::User {
                let body = log.message(seq)?;
                let message = Message::read(&body).ok();
                let text = message.map(|message| searchable_text(&ContentBlock::all(&message)));
                return Ok(text.and_then(|text| revision_of(&text).map(str::to_owned)));
            }
        }
    }
    Ok(None)
}
