//! Carries out tool calls: the files and commands of a workspace, and the tools of MCP servers.
//!
//! This crate does not depend on tasks, logs or models. A call takes the arguments as the model wrote them and
//! always returns a result: a failure is a result with [`CallStatus::Error`] whose text suggests a remedy.
//!
//! ```no_run
//! use infold_toolbox::{Toolbox, ToolboxSettings, head_and_tail};
//!
//! # async fn call() -> Result<(), infold_toolbox::SettingsError> {
//! let toolbox = Toolbox::new(ToolboxSettings {
//!     workspace: Some("/home/ada/project".into()),
//!     ..ToolboxSettings::default()
//! })?;
//! for tool in toolbox.tools().await.tools {
//!     println!("{}: {}", tool.name, tool.description);
//! }
//! let result = toolbox.call("read", r#"{"path":"README.md"}"#).await;
//! println!("{}", head_and_tail(&result.text, 16 << 10, "read the file by ranges of lines"));
//! toolbox.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod settings;
mod tool;
mod call_result;
mod toolbox;
mod arguments;
mod failure;
mod workspace;
mod mcp;
mod catalog;
mod process_group;
mod environment;
mod output;
mod cancel;
mod excerpt;
pub use call_result::{CallResult, CallStatus};
pub use excerpt::head_and_tail;
pub use settings::{
    CommandRule, McpServer, McpTransport, SettingsError, ToolLimits, ToolboxSettings,
    split_command_line,
};
pub use tool::{ServerProblem, Tool, ToolList};
pub use toolbox::Toolbox;
