//! The settings of a toolbox: its tools and their limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use infold_provider::Secret;

/// The settings of a toolbox: its tools and their limits. The default has no tools.
#[derive(Clone, Debug, Default)]
pub struct ToolboxSettings {
    /// The directory whose files the tools read and write; without it there are no workspace tools.
    pub workspace: Option<PathBuf>,
    /// Directories that the file tools neither read nor change, also where they are in the workspace.
    pub protected: Vec<PathBuf>,
    /// Whether the model may run commands in the workspace.
    pub commands: CommandRule,
    /// The MCP servers. Each is started when tools are first listed, or one of its own is called.
    pub servers: Vec<McpServer>,
    /// Names of tools that the caller has itself; a server's tool of such a name is prefixed.
    pub reserved_names: Vec<String>,
    /// How much a call may take and give.
    pub limits: ToolLimits,
    /// The environment of commands and servers, mostly that of this process. Variables that look like keys
    /// (`*_KEY`, `*_TOKEN`, `*SECRET*`, `*PASSWORD*`) are left out; a server gets those that its own
    /// [`McpTransport::Command`] names.
    pub environment: Vec<(OsString, OsString)>,
}

/// Whether the model may run commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandRule {
    /// There is no tool that runs commands.
    #[default]
    Off,
    /// There is a tool that runs any command, as the user of this process.
    Allowed,
}

/// An MCP server, and how it is reached.
#[derive(Clone, Debug)]
pub struct McpServer {
    /// Its name: letters, digits, `_` and `-`. It prefixes the names of tools that several servers have.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// How long it may take to start, and how long for one call.
    pub timeout: Duration,
}

impl McpServer {
    /// How long a server may take by default.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
}

/// How an MCP server is reached.
#[derive(Clone, Debug)]
pub enum McpTransport {
    /// A process that is spoken with over its standard input and output.
    Command {
        /// The program and its arguments. There is no shell; [`split_command_line`] takes a text apart.
        command: Vec<String>,
        /// Variables in addition to those of [`ToolboxSettings::environment`].
        environment: Vec<(String, Secret)>,
    },
    /// A server that is spoken with over streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, Secret)>,
    },
}

/// How much a call may take and give.
#[derive(Clone, Debug)]
pub struct ToolLimits {
    /// The most bytes of a result; a longer one is cut, and a mark says so.
    pub max_result_bytes: usize,
    /// The size of a file that is read or edited.
    pub max_file_bytes: u64,
    /// How long a command may run unless the call says.
    pub command_timeout: Duration,
    /// How long a command may run whatever the call says.
    pub max_command_timeout: Duration,
    /// How many tools of one server are offered.
    pub max_server_tools: usize,
}

impl Default for ToolLimits {
    fn default() -> ToolLimits {
        ToolLimits {
            max_result_bytes: 64 << 20,
            max_file_bytes: 64 << 20,
            command_timeout: Duration::from_secs(120),
            max_command_timeout: Duration::from_secs(30 * 60),
            max_server_tools: 1000,
        }
    }
}

/// Why settings are invalid.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The workspace cannot be opened.
    #[error("workspace {} cannot be opened", path.display())]
    Workspace {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A server cannot be used as it is configured.
    #[error("MCP server `{server}`: {reason}")]
    Server {
        /// Its name.
        server: String,
        /// The problem.
        reason: String,
    },
}

/// Splits a command line into its words as a shell does: quotes and backslashes group, nothing is expanded.
///
/// Returns none for a text with an open quote, or without words.
pub fn split_command_line(text: &str) -> Option<Vec<String>> {
    let words = shlex::split(text)?;
    if words.is_empty() { None } else { Some(words) }
}
