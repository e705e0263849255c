//! The toolbox: lists tools and carries out calls.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::task::JoinSet;

use crate::arguments::CallArguments;
use crate::catalog::{Catalog, ToolTarget};
use crate::environment::without_secrets;
use crate::failure::CallProblem;
use crate::mcp::{ServerHandle, SharedSettings, ToolListing};
use crate::workspace::{Root, Workspace};
use crate::{
    CallResult, CallStatus, McpServer, SettingsError, ToolList, ToolboxSettings, head_and_tail,
};

/// Lists tools and carries out calls of them.
///
/// Dropping it kills the processes of its servers, too.
#[derive(Debug)]
pub struct Toolbox {
    workspace: Option<Arc<Workspace>>,
    servers: Vec<Arc<ServerHandle>>,
    reserved_names: Vec<String>,
    max_result_bytes: usize,
    /// The last list of tools.
    catalog: Mutex<Option<Arc<Catalog>>>,
}

impl Toolbox {
    /// Creates a toolbox. No server is started yet.
    pub fn new(settings: ToolboxSettings) -> Result<Toolbox, SettingsError> {
        let environment = without_secrets(settings.environment);
        let limits = settings.limits;
        let max_result_bytes = limits.max_result_bytes;
        let shared = SharedSettings {
            environment: environment.clone(),
            directory: settings.workspace.clone(),
            max_tools: limits.max_server_tools,
            max_result_bytes,
        };
        let workspace = settings.workspace.map(|path| {
            let root = Root::open(&path, &settings.protected);
            let opened =
                root.map(|root| Workspace::new(root, settings.commands, environment, limits));
            opened.map_err(|source| SettingsError::Workspace { path, source })
        });
        check_names(&settings.servers)?;
        let servers = settings.servers.into_iter().map(|server| {
            let name = server.name.clone();
            let server = ServerHandle::new(server, shared.clone());
            server
                .map(Arc::new)
                .map_err(|reason| SettingsError::Server {
                    server: name,
                    reason,
                })
        });
        Ok(Toolbox {
            workspace: workspace.transpose()?.map(Arc::new),
            servers: servers.collect::<Result<_, _>>()?,
            reserved_names: settings.reserved_names,
            max_result_bytes,
            catalog: Mutex::new(None),
        })
    }

    /// Returns the tools that can be called now. Starts servers that do not run; those that cannot be started
    /// are listed among the problems, and tried again later.
    ///
    /// Cheap when nothing changed. The tools of a server that went down are still listed, so that the tools
    /// offered to a model stay the same.
    pub async fn tools(&self) -> ToolList {
        let catalog = self.list().await;
        ToolList {
            tools: catalog.tools.clone(),
            problems: catalog.problems.clone(),
        }
    }

    async fn list(&self) -> Arc<Catalog> {
        let listed = self.list_servers().await;
        let names = self.servers.iter().map(|server| server.name());
        let own = self.workspace.as_ref().map(|workspace| workspace.tools());
        let reserved = self.reserved_names.iter().map(String::as_str);
        let servers = names.zip(listed).collect();
        let catalog = Catalog::new(own.unwrap_or_default(), reserved, servers);
        let catalog = Arc::new(catalog);
        *self.catalog() = Some(Arc::clone(&catalog));
        catalog
    }

    fn catalog(&self) -> MutexGuard<'_, Option<Arc<Catalog>>> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the tools of all servers, at the same time.
    async fn list_servers(&self) -> Vec<ToolListing> {
        let mut listing = JoinSet::new();
        for (position, server) in self.servers.iter().enumerate() {
            let server = Arc::clone(server);
            listing.spawn(async move { (position, server.tools().await) });
        }
        let mut listed = vec![ToolListing::default(); self.servers.len()];
        for (position, tools) in listing.join_all().await {
            listed[position] = tools;
        }
        listed
    }

    /// Carries out a call; `arguments` is the JSON text that the model wrote, an object or nothing.
    ///
    /// Dropping the future cancels the call: a command is killed with all processes that it started, a server
    /// receives a cancellation. A file is then either unchanged or written completely.
    pub async fn call(&self, name: &str, arguments: &str) -> CallResult {
        let started = Instant::now();
        let done = self.carry_out(name, arguments).await;
        self.result(done, started)
    }

    async fn carry_out(&self, name: &str, arguments: &str) -> Result<String, CallProblem> {
        let own = self
            .workspace
            .as_ref()
            .filter(|workspace| workspace.has(name));
        if let Some(workspace) = own {
            return workspace.call(name, CallArguments::parse(arguments)?).await;
        }
        let target = self.target(name).await?;
        let arguments = CallArguments::parse(arguments)?.into_members();
        let server = &self.servers[target.server];
        server.call(&target.tool, arguments).await
    }

    /// Finds the tool of a server. Lists the servers first if that was never done, and again if one was not available.
    async fn target(&self, name: &str) -> Result<ToolTarget, CallProblem> {
        let known = self.catalog().clone();
        let target = known.as_ref().and_then(|catalog| catalog.target(name));
        if let Some(target) = target {
            return Ok(target.clone());
        }
        let catalog = match known {
            Some(catalog) if catalog.problems.is_empty() => catalog,
            _ => self.list().await,
        };
        let target = catalog.target(name).cloned();
        target.ok_or_else(|| CallProblem::new(catalog.describe_missing(name)))
    }

    fn result(&self, done: Result<String, CallProblem>, started: Instant) -> CallResult {
        let (text, error) = match done {
            Ok(text) => (text, None),
            Err(CallProblem { reason, output }) => {
                let text = match output {
                    Some(output) if output.contains(&reason) => output,
                    Some(output) if !output.is_empty() => {
                        format!("{}\n[{reason}]", output.trim_end())
                    }
                    _ => reason.clone(),
                };
                (text, Some(reason.replace('\n', " | ")))
            }
        };
        let text = if text.trim().is_empty() {
            "(no output)".to_owned()
        } else if text.len() > self.max_result_bytes {
            head_and_tail(&text, self.max_result_bytes, "the result was too long")
        } else {
            text
        };
        CallResult {
            text,
            status: match error {
                None => CallStatus::Success,
                Some(_) => CallStatus::Error,
            },
            duration: started.elapsed(),
            error,
        }
    }

    /// Ends all servers, with everything that they started. Calls of their tools that follow give errors.
    pub async fn shutdown(&self) {
        let mut ending = JoinSet::new();
        for server in &self.servers {
            let server = Arc::clone(server);
            ending.spawn(async move { server.shut_down().await });
        }
        ending.join_all().await;
    }
}

/// Checks that each server has a name of its own that can be a part of a tool's name.
fn check_names(servers: &[McpServer]) -> Result<(), SettingsError> {
    const MAX_SERVER_NAME_BYTES: usize = 32;
    let mut names = HashSet::new();
    for server in servers {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let reason = if server.name.is_empty() {
            "a server needs a name"
        } else if server.name.len() > MAX_SERVER_NAME_BYTES || !server.name.chars().all(is_valid) {
            "its name may have letters, digits, `_` and `-`, at most 32 of them"
        } else if !names.insert(&server.name) {
            "there are two servers of this name"
        } else {
            continue;
        };
        return Err(SettingsError::Server {
            server: server.name.clone(),
            reason: reason.to_owned(),
        });
    }
    Ok(())
}
