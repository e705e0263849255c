//! Edits the configurations of agents in place, so that each edit can be taken back byte for byte.
//!
//! ```
//! use infold_setup::{PathStep, Syntax, Unset, set, unset};
//! use serde_json::json;
//!
//! let before = "{\n  // mine\n  \"theme\": \"dark\"\n}\n";
//! let path = PathStep::keys(&["env", "ANTHROPIC_BASE_URL"]);
//! let (after, applied) = set(Syntax::Json, before, &path, &json!("http://127.0.0.1:7333"))
//!     .expect("valid JSON")
//!     .expect("it was not set");
//! assert!(after.contains("// mine"));
//! assert_eq!(unset(Syntax::Json, &after, &applied), Ok(Unset::Done(before.to_owned())));
//! ```

mod tree;
mod text;
mod json;
mod yaml;
mod toml;
mod dotenv;
mod flow;
mod edit;
mod mcp;
mod agent;
mod file;
mod lock;
mod mask;
mod process;
mod state;
mod apply;
mod moved;
mod undo;
mod diff;

pub use agent::{
    Agent, AgentTarget, NeededUpstream, Plan, PlanError, Surroundings, UpstreamProblem,
    ValueChange, empty, is_loopback,
};
pub use apply::{ApplyError, PlannedFile, file_changes, write_agent};
pub use diff::diff;
pub use edit::{
    Applied, Around, EditError, Syntax, SyntaxError, Unset, get, is_blank, path_text, read, set,
    unset,
};
pub use file::{
    FileError, check_writable, missing_directories, read as read_file, remove as remove_file,
    replace as replace_file,
};
pub use lock::{LockError, SetupLock};
pub use mcp::{McpForm, ServerEntry};
pub use process::ProcessIdentity;
pub use state::{
    AgentRecord, FileRecord, ServerRecord, SetupRecord, SetupRecordError, TasksRecord,
};
pub use tree::PathStep;
pub use undo::{UndoneLines, undo_agent, undo_before_write};
