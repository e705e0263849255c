//! The tools of a workspace: its files, and commands that run in it.

mod root;
mod file;
mod read;
mod write;
mod glob;
mod walk;
mod list;
mod search;
mod run;
mod definitions;

use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::arguments::CallArguments;
use crate::cancel::CancelFlag;
use crate::failure::CallProblem;
use crate::{CommandRule, Tool, ToolLimits};
pub(crate) use root::Root;

/// A directory whose files the tools read and write.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: Root,
    commands: CommandRule,
    /// The environment of commands.
    environment: Vec<(OsString, OsString)>,
    limits: ToolLimits,
    /// Held while a file is changed, so that of two edits none is lost.
    writes: Mutex<()>,
}

/// The state of one call.
#[derive(Debug, Default)]
struct CallContext {
    cancel: CancelFlag,
}

impl Workspace {
    pub fn new(
        root: Root,
        commands: CommandRule,
        environment: Vec<(OsString, OsString)>,
        limits: ToolLimits,
    ) -> Workspace {
        Workspace {
            root,
            commands,
            environment,
            limits,
            writes: Mutex::new(()),
        }
    }

    /// Returns the tools that can be called.
    pub fn tools(&self) -> Vec<Tool> {
        let mut tools = definitions::file_tools();
        if self.commands == CommandRule::Allowed {
            tools.push(definitions::command_tool(&self.limits));
        }
        tools
    }

    /// Says whether there is a tool of that name.
    pub fn has(&self, name: &str) -> bool {
        self.tools().iter().any(|tool| tool.name == name)
    }

    /// Carries out a call of a tool that there is.
    pub async fn call(
        self: &Arc<Workspace>,
        name: &str,
        arguments: CallArguments,
    ) -> Result<String, CallProblem> {
        let tool = match name {
            "read" => FileTool::Read,
            "write" => FileTool::Write,
            "edit" => FileTool::Edit,
            "list" => FileTool::List,
            "search" => FileTool::Search,
            _ => return run::run(self, arguments).await,
        };
        let workspace = Arc::clone(self);
        let context = CallContext::default();
        let _cancel = context.cancel.set_on_drop();
        let done =
            tokio::task::spawn_blocking(move || workspace.use_files(tool, arguments, &context));
        done.await.unwrap_or_else(|error| {
            Err(CallProblem::new(format!(
                "the tool `{name}` broke off: {error}"
            )))
        })
    }

    fn use_files(
        &self,
        tool: FileTool,
        arguments: CallArguments,
        context: &CallContext,
    ) -> Result<String, CallProblem> {
        match tool {
            FileTool::Read => read::read(self, &arguments.only(read::ARGUMENTS)?, context),
            FileTool::Write => write::write(self, &arguments.only(write::WRITE_ARGUMENTS)?),
            FileTool::Edit => write::edit(self, &arguments.only(write::EDIT_ARGUMENTS)?),
            FileTool::List => list::list(self, &arguments.only(list::ARGUMENTS)?, context),
            FileTool::Search => search::search(self, &arguments.only(search::ARGUMENTS)?, context),
        }
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A tool that uses files.
#[derive(Clone, Copy, Debug)]
enum FileTool {
    Read,
    Write,
    Edit,
    List,
    Search,
}
