//! The toolbox: lists tools and carries out calls.

use std::time::Instant;

use crate::{CallResult, CallStatus, SettingsError, ToolList, ToolboxSettings};

/// Lists tools and carries out calls of them.
///
/// Dropping it kills the processes of its servers, too.
#[derive(Debug)]
pub struct Toolbox {
    settings: ToolboxSettings,
}

impl Toolbox {
    /// Creates a toolbox. No server is started yet.
    pub fn new(settings: ToolboxSettings) -> Result<Toolbox, SettingsError> {
        Ok(Toolbox { settings })
    }

    /// Returns the tools that can be called now. Starts servers that do not run; those that cannot be started are named
    /// among the problems, and tried again later.
    pub async fn tools(&self) -> ToolList {
        let _ = &self.settings;
        ToolList::default()
    }

    /// Carries out a call; `arguments` is the JSON text that the model wrote, an object or nothing.
    ///
    /// Dropping the future cancels the call: a command is killed with all that it started, a server is told. A file
    /// is then either as it was or wholly written.
    pub async fn call(&self, name: &str, arguments: &str) -> CallResult {
        let started = Instant::now();
        let _ = arguments;
        CallResult {
            text: format!("there is no tool `{name}`"),
            status: CallStatus::Error,
            duration: started.elapsed(),
            error: Some(format!("there is no tool `{name}`")),
        }
    }

    /// Ends all servers, with everything that they started. Calls that follow give errors.
    pub async fn shutdown(&self) {}
}
