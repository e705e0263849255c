//! A server, a source and a queue for tests.

use std::collections::HashMap;
use std::time::Duration;

use infold_sources::{
    FetchOptions, FetchReport, QueueError, QueueRequest, QueueStatus, QueuedTask, RetryPolicy,
    Secret, Source, SourceKind, SourceOptions, SourceTask, TaskQueue, TaskRef, TaskType, fetch,
};
use infold_testkit::{Forge, ForgeState};
use uuid::Uuid;

pub const KINDS: [SourceKind; 2] = [SourceKind::Github, SourceKind::Gitlab];

/// Returns a server with the repository `o/r`.
pub fn forge() -> Forge {
    Forge::start(ForgeState::with_repo("o", "r"))
}

/// Returns options that reach a server, with short waits.
pub fn options(forge: &Forge) -> SourceOptions {
    SourceOptions {
        base_url: Some(forge.url()),
        token: Some(Secret::new("forge-token".to_owned())),
        retry: RetryPolicy {
            attempts: 4,
            first_wait: Duration::from_millis(1),
            longest_wait: Duration::from_millis(5),
            ..RetryPolicy::default()
        },
        write_interval: Duration::ZERO,
        ..SourceOptions::default()
    }
}

pub fn source(kind: SourceKind, forge: &Forge) -> Source {
    Source::new(kind, options(forge)).expect("an address")
}

/// Fetches the repository `o/r`.
pub async fn fetch_all(source: &mut Source, queue: &mut Queue) -> FetchReport {
    let options = FetchOptions {
        repos: vec!["o/r".to_owned()],
        ..FetchOptions::default()
    };
    fetch(source, &options, queue).await
}

pub fn issue(number: u64) -> TaskRef {
    TaskRef {
        owner: "o".to_owned(),
        repo: "r".to_owned(),
        task_type: TaskType::Issue,
        task_id: number.to_string(),
    }
}

/// A queue in memory.
#[derive(Default)]
pub struct Queue {
    pub entries: HashMap<Uuid, QueueStatus>,
    /// The names and texts of enqueued tasks, in order.
    pub enqueued: Vec<(String, String)>,
}

impl TaskQueue for Queue {
    fn find(&mut self, task: &SourceTask) -> Result<Option<QueuedTask>, QueueError> {
        let uuid = task.uuid();
        let status = self.entries.get(&uuid).copied();
        Ok(status.map(|status| QueuedTask {
            uuid,
            is_new: false,
            status,
        }))
    }

    fn enqueue(&mut self, request: QueueRequest<'_>) -> Result<QueuedTask, QueueError> {
        if request.task.title == "refused" {
            return Err("the disk is full".into());
        }
        let before = self.entries.insert(request.uuid, QueueStatus::Open);
        assert_eq!(before, None, "{} is enqueued twice", request.task.name());
        let text = request.text.to_owned();
        self.enqueued.push((request.task.name(), text));
        Ok(QueuedTask {
            uuid: request.uuid,
            is_new: true,
            status: QueueStatus::Open,
        })
    }
}

impl Queue {
    pub fn names(&self) -> Vec<&str> {
        self.enqueued
            .iter()
            .map(|(name, _)| name.as_str())
            .collect()
    }
}

/// Returns the labels of an item.
pub fn labels(forge: &Forge, number: u64) -> Vec<String> {
    forge.with(|state| state.repos[0].item(number).expect("an item").labels.clone())
}

/// Returns the comments of an item.
pub fn comments(forge: &Forge, number: u64) -> Vec<String> {
    forge.with(|state| {
        let item = state.repos[0].item(number).expect("an item");
        item.comments
            .iter()
            .map(|comment| comment.body.clone())
            .collect()
    })
}

pub fn problems(report: &FetchReport) -> Vec<String> {
    report.problems.iter().map(ToString::to_string).collect()
}
