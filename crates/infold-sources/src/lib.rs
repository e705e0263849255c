//! Takes tasks from GitHub and GitLab: issues, pull requests and merge requests with a label.
//!
//! A [`Source`] is one server with its token. [`fetch`] lists the items with the label, adds each item to a
//! [`TaskQueue`] once, and changes the label to say that it was taken. [`Source::report_start`] and
//! [`Source::report_result`] post one comment each; the latter also sets the label of the result. Labels and comments
//! on the server are the state of this crate; it stores only a cache of pages.
//!
//! ```no_run
//! use infold_sources::{FetchOptions, Source, SourceKind, SourceOptions, TaskQueue, fetch};
//!
//! # async fn example(queue: &mut dyn TaskQueue) -> Result<(), Box<dyn std::error::Error>> {
//! let mut source = Source::new(SourceKind::Github, SourceOptions::default())?;
//! let options = FetchOptions { repos: vec!["owner/name".to_owned()], ..FetchOptions::default() };
//! let report = fetch(&mut source, &options, queue).await;
//! println!("{} tasks are new", report.new_tasks());
//! # Ok(())
//! # }
//! ```

mod task;
mod text;
mod prompt;
mod error;
mod rate_limit;
mod pages;
mod etag_cache;
mod api;
mod fields;
mod github;
mod gitlab;
mod source;
mod fetch;
mod comment;
mod report;
pub use error::SourceError;
pub use fetch::{
    FetchFault, FetchOptions, FetchProblem, FetchReport, FetchedTask, QueueError, QueueRequest,
    QueueStatus, QueuedTask, TaskQueue, fetch,
};
pub use infold_provider::{RestLimits, RestServerError, RetryPolicy, Secret};
pub use prompt::{revision_of, task_text};
pub use report::{ReportOutcome, ResultStatus, TaskResult};
pub use source::{Labels, Source, SourceOptions};
pub use task::{SourceKind, SourceTask, TaskComment, TaskRef, TaskType, UnknownKind};
pub use text::visible;
