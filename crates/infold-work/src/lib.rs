//! Carries out tasks: claims them from the queue, and runs the agent loop.
//!
//! A worker ([`Worker`]) takes tasks from the registry under a lease and gives each to a process of its own.
//! That process runs the loop ([`TaskRun`]): fold, ask the model, run its calls, record the results, until the
//! task is done, is paused or fails. Progress is read from the log, so any worker that takes a task resumes
//! where the log ends.
//!
//! ```no_run
//! use infold_work::{EndMode, RunEvent, TaskRun};
//!
//! # fn run(run: TaskRun<'_>) -> Result<(), infold_work::RunError> {
//! let end = run.run(&mut |event| {
//!     if let RunEvent::CallStarted { name, .. } = event {
//!         eprintln!("calls {name}");
//!     }
//! })?;
//! println!("{end:?}");
//! # Ok(())
//! # }
//! ```

mod limits;
mod lease;
mod round;
mod call_record;
mod repeats;
mod built_in;
mod tool_set;
mod call_runner;
mod checkpoints;
mod run;
mod end;
mod worker;

pub use built_in::NAMES as BUILT_IN_TOOLS;
pub use call_runner::{CallOutcome, CallRecordError};
pub use checkpoints::RunCheckpoints;
pub use end::{EndMode, RunEnd};
pub use lease::{LeaseKeeper, LeaseState, claim_request, new_owner};
pub use limits::WorkLimits;
pub use round::task_result;
pub use run::{RunError, RunEvent, RunListener, RunModel, TaskRun};
pub use tool_set::{TaskToolPolicy, ToolSet, ToolSetError};
pub use worker::{Worker, WorkerError, WorkerEvent, WorkerSettings};
