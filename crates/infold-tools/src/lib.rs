//! Decides which tools a model may see now, and which calls of them it may make.
//!
//! The crate has no side effects: its input is tools, a policy and a situation, and its output is the decision about
//! each tool, with reasons.
//!
//! ```
//! use infold_tools::{Policy, PolicyDraft, OfferedTool, Validators};
//!
//! let policy = Policy::new(PolicyDraft {
//!     phase: Some("planning".to_owned()),
//!     permissions: vec!["read".to_owned()],
//!     ..PolicyDraft::default()
//! })?;
//! let tools = [OfferedTool::named("Read"), OfferedTool::named("Write"), OfferedTool::named("Bash")];
//! let projection = policy.project(&tools, policy.situation(), &Validators::default());
//! assert_eq!(projection.shown_names(), ["Read"]);
//! # Ok::<(), infold_tools::PolicyProblems>(())
//! ```

mod name;
mod category;
mod permission;
mod situation;
mod tool;
mod policy;
mod narrow;
mod projection;
mod validators;
mod check;
pub use category::{CATEGORIES, CONTROL, built_in_category};
pub use check::{CallRefusal, ShownTools};
pub use name::UnknownName;
pub use permission::Permission;
pub use policy::{Policy, PolicyDraft, PolicyProblem, PolicyProblems, ToolRule, UnknownTools};
pub use projection::{Decision, HiddenReason, Projection, ToolVerdict};
pub use situation::{Environment, Situation, SituationChange};
pub use tool::{OfferedTool, ToolOrigin};
pub use validators::{MAX_SCHEMA_BYTES, SchemaError, Validators};
