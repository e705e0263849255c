//! The tools of a task, as the configuration and the command line allow them.

use std::path::PathBuf;
use std::time::Duration;

use infold::Config;
use infold::config::{McpAccess, McpCommand, McpServerConfig};
use infold_store::{Contexts, Metadata};
use infold_toolbox::{
    CommandRule, McpServer, McpTransport, Toolbox, ToolboxSettings, split_command_line,
};
use infold_work::{BUILT_IN_TOOLS, TaskToolPolicy, ToolSet};

use crate::error::{CliError, CliResult};
use crate::model_call::ModelCall;

/// Returns the tools of a task.
pub fn tool_set(
    config: &Config,
    contexts: &Contexts,
    allow_commands: bool,
    metadata: &Metadata,
    call: &ModelCall,
) -> CliResult<ToolSet> {
    let is_configured = config.work.commands.as_ref().is_some_and(|set| set.value);
    let servers = config.mcp_servers.iter().map(mcp_server);
    let toolbox = Toolbox::new(ToolboxSettings {
        workspace: metadata.cwd.as_ref().map(PathBuf::from),
        // The log records the model's actions, so the model must not write it.
        protected: vec![contexts.root().to_owned()],
        commands: if is_configured || allow_commands {
            CommandRule::Allowed
        } else {
            CommandRule::Off
        },
        servers: servers.collect::<CliResult<_>>()?,
        reserved_names: BUILT_IN_TOOLS.map(str::to_owned).to_vec(),
        environment: std::env::vars_os().collect(),
        ..ToolboxSettings::default()
    });
    let toolbox = toolbox.map_err(|error| {
        CliError::usage(error)
            .hint("the workspace of a task is the directory that it was made with")
    })?;
    let handle = call.runtime.handle();
    let handle = handle.ok_or_else(|| CliError::provider("the runtime was shut down"))?;
    let policy = config.tools.as_ref();
    let policy = policy.map(|tools| TaskToolPolicy::new(tools.policy.clone()));
    Ok(ToolSet::new(toolbox, handle, policy))
}

/// Returns a configured MCP server as the toolbox takes it.
fn mcp_server(server: &McpServerConfig) -> CliResult<McpServer> {
    let transport = match &server.access {
        McpAccess::Command { command, env } => McpTransport::Command {
            command: match command {
                McpCommand::Words(words) => words.clone(),
                McpCommand::Line(line) => split_command_line(line).ok_or_else(|| {
                    let text = format!(
                        "the command of MCP server `{}` has an open quote",
                        server.name
                    );
                    CliError::usage(text).hint("`mcp_servers` in config.yaml")
                })?,
            },
            environment: env.clone(),
        },
        McpAccess::Http { url, headers } => McpTransport::Http {
            url: url.clone(),
            headers: headers.clone(),
        },
    };
    let timeout = server.timeout.as_ref();
    let timeout = timeout.map(|set| Duration::from_secs(set.value));
    Ok(McpServer {
        name: server.name.clone(),
        transport,
        timeout: timeout.unwrap_or(McpServer::DEFAULT_TIMEOUT),
    })
}
