//! The agents that `infold setup` knows: where their configuration files are, and which values in them have to change
//! so that their requests go through the proxy.

mod claude;
mod codex;
mod gemini;
mod opencode;
mod goose;
mod aider;
mod continue_dev;
mod llm;
mod cline;
mod upstream;
mod plan;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::edit::{Syntax, SyntaxError};
use crate::mcp::ServerEntry;
use crate::tree::PathStep;

use plan::ConfigDocument;
pub use upstream::{NeededUpstream, UpstreamProblem, is_loopback};

/// An agent that `infold setup` knows. The rules for its files are in the submodule of its name; Cursor has none, because
/// it cannot be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// goose.
    Goose,
    /// aider.
    Aider,
    /// Continue's `cn`.
    Continue,
    /// llm.
    Llm,
    /// Cline's command line.
    Cline,
    /// Cursor.
    Cursor,
}

/// The directories, environment and files that an agent's configuration depends on.
pub struct Surroundings<'a> {
    /// The home directory.
    pub home: &'a Path,
    /// The current directory.
    pub current: &'a Path,
    /// Returns the value of an environment variable. A function, so that tests need no real environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file; returns `None` if it does not exist.
    pub read: &'a dyn Fn(&Path) -> Result<Option<String>, String>,
}

/// The proxy and the MCP server that an agent is to use.
pub struct AgentTarget<'a> {
    /// The address of the proxy, without a path.
    pub base: &'a str,
    /// Earlier addresses of the proxy. A configuration that still has one must not make it an upstream: the proxy would
    /// send requests to itself.
    pub former: &'a [&'a str],
    /// How the agent reaches `infold mcp`; `None` if that is not wanted.
    pub mcp: Option<&'a ServerEntry>,
}

impl AgentTarget<'_> {
    /// The addresses of the proxy, now and before.
    fn bases(&self) -> impl Iterator<Item = &str> {
        [self.base].into_iter().chain(self.former.iter().copied())
    }
}

/// A change of one value in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueChange {
    /// The file.
    pub file: PathBuf,
    /// The syntax of the file.
    pub syntax: Syntax,
    /// Where the value stands in the file.
    pub path: Vec<PathStep>,
    /// The new value.
    pub value: Value,
}

/// The changes for an agent, and where its requests went before: the proxy has to forward them to the same place.
#[derive(Debug, Default)]
pub struct Plan {
    /// The changes, in the order in which they are made.
    pub changes: Vec<ValueChange>,
    /// The upstreams that the proxy needs: the addresses, other than an API's own, to which the agent sent its
    /// requests.
    pub upstreams: Vec<NeededUpstream>,
    /// The APIs that the agent uses.
    pub apis: Vec<&'static str>,
    /// The APIs among `apis` for which the agent already has the proxy's address.
    pub through: Vec<&'static str>,
    /// The APIs among `apis` whose requests went to the API's own address.
    pub at_home: Vec<&'static str>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Why an agent cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A file cannot be read.
    #[error("{}: {reason}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A file does not have valid syntax.
    #[error("{}, {problem}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// The problem, with its position.
        problem: SyntaxError,
    },
    /// The address to which the agent sends requests now cannot be an upstream of the proxy.
    #[error("{}: {problem}", file.display())]
    Upstream {
        /// The file.
        file: PathBuf,
        /// The reason.
        problem: UpstreamProblem,
    },
    /// The agent reads no address from a file, or not with its present sign-in or provider. The text says what to do.
    #[error("{0}")]
    Impossible(String),
}

impl Agent {
    /// All agents, in the order in which they are listed.
    pub const ALL: [Agent; 10] = [
        Agent::Claude,
        Agent::Codex,
        Agent::Gemini,
        Agent::Opencode,
        Agent::Goose,
        Agent::Aider,
        Agent::Continue,
        Agent::Llm,
        Agent::Cline,
        Agent::Cursor,
    ];

    /// Returns the agent's name as an argument of `infold setup`.
    pub fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::Opencode => "opencode",
            Agent::Goose => "goose",
            Agent::Aider => "aider",
            Agent::Continue => "continue",
            Agent::Llm => "llm",
            Agent::Cline => "cline",
            Agent::Cursor => "cursor",
        }
    }

    /// Returns the agent's name in messages.
    pub fn title(self) -> &'static str {
        match self {
            Agent::Claude => "Claude Code",
            Agent::Codex => "Codex",
            Agent::Gemini => "Gemini CLI",
            Agent::Continue => "Continue (cn)",
            Agent::Cline => "Cline (command line)",
            Agent::Cursor => "Cursor",
            other => other.name(),
        }
    }

    /// Finds an agent by its name or an alias.
    pub fn named(name: &str) -> Option<Agent> {
        let aliases = [("claude-code", Agent::Claude), ("cn", Agent::Continue)];
        let alias = aliases.iter().find(|(alias, _)| *alias == name);
        let mut all = Agent::ALL.into_iter();
        alias
            .map(|(_, agent)| *agent)
            .or_else(|| all.find(|agent| agent.name() == name))
    }

    /// Returns the programs of the agent, as they are named on the `PATH`.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            Agent::Continue => &["cn"],
            Agent::Cursor => &["cursor", "cursor-agent"],
            Agent::Claude => &["claude"],
            Agent::Codex => &["codex"],
            Agent::Gemini => &["gemini"],
            Agent::Opencode => &["opencode"],
            Agent::Goose => &["goose"],
            Agent::Aider => &["aider"],
            Agent::Llm => &["llm"],
            Agent::Cline => &["cline"],
        }
    }

    /// Returns the file or directory whose existence shows that the agent is used on this machine, even if its program
    /// is not on the `PATH`.
    pub fn traces(self, at: &Surroundings<'_>) -> PathBuf {
        match self {
            Agent::Claude => claude::directory(at),
            Agent::Codex => codex::directory(at),
            Agent::Gemini => at.home.join(".gemini"),
            Agent::Opencode => at.config("opencode"),
            Agent::Goose => at.config("goose"),
            Agent::Aider => at.home.join(".aider.conf.yml"),
            Agent::Continue => continue_dev::directory(at),
            Agent::Llm => llm::directory(at),
            Agent::Cline => cline::directory(at),
            Agent::Cursor => at.home.join(".cursor"),
        }
    }

    /// Returns the changes that make the agent send its requests to a target. Nothing is written.
    pub fn plan(self, at: &Surroundings<'_>, to: &AgentTarget<'_>) -> Result<Plan, PlanError> {
        match self {
            Agent::Claude => claude::plan(at, to),
            Agent::Codex => codex::plan(at, to),
            Agent::Gemini => gemini::plan(at, to),
            Agent::Opencode => opencode::plan(at, to),
            Agent::Goose => goose::plan(at, to),
            Agent::Aider => aider::plan(at, to),
            Agent::Continue => continue_dev::plan(at, to),
            Agent::Llm => llm::plan(at, to),
            Agent::Cline => cline::plan(at, to),
            Agent::Cursor => Err(PlanError::Impossible(
                "Cursor keeps its address in a database of its own, and its requests come from Cursor's servers, \
                 which cannot reach this machine; Settings > Models > Override OpenAI Base URL takes an address \
                 that is public (`infold serve --host`, behind TLS, with a token)"
                    .to_owned(),
            )),
        }
    }

    /// Returns the environment variables that override the values in the files, or make the agent ignore them.
    pub fn overriding(self) -> &'static [&'static str] {
        match self {
            // The settings override the environment, so ANTHROPIC_BASE_URL is not among them. These two choose a
            // cloud's API, which has no base URL.
            Agent::Claude => &["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"],
            // The configuration file overrides the environment.
            Agent::Codex => &[],
            Agent::Gemini => &[
                "GOOGLE_GEMINI_BASE_URL",
                "GOOGLE_GENAI_USE_VERTEXAI",
                "GOOGLE_GENAI_USE_GCA",
            ],
            Agent::Opencode => &["OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT"],
            Agent::Goose => &[
                "GOOSE_PROVIDER",
                "OPENAI_HOST",
                "OPENAI_BASE_URL",
                "ANTHROPIC_HOST",
                "GOOGLE_HOST",
                "OLLAMA_HOST",
            ],
            Agent::Aider => &["AIDER_OPENAI_API_BASE"],
            Agent::Continue | Agent::Llm | Agent::Cline | Agent::Cursor => &[],
        }
    }
}

impl Agent {
    /// Returns the files that override the user's configuration, such as those of the current directory, and that set
    /// an address too.
    pub fn nearer(self, at: &Surroundings<'_>) -> Vec<PathBuf> {
        let says = |file: &PathBuf, word: &str| {
            let text = (at.read)(file).ok().flatten();
            text.is_some_and(|text| text.contains(word))
        };
        let here = |names: &[&str], word: &str| -> Vec<PathBuf> {
            let files = names.iter().map(|name| at.current.join(name));
            files.filter(|file| says(file, word)).collect()
        };
        match self {
            Agent::Claude => {
                let managed = PathBuf::from("/etc/claude-code/managed-settings.json");
                let mut all = here(
                    &[".claude/settings.json", ".claude/settings.local.json"],
                    "ANTHROPIC_BASE_URL",
                );
                all.extend(Some(managed).filter(|file| says(file, "ANTHROPIC_BASE_URL")));
                // In the home directory, the settings of the project are the user's own file.
                all.retain(|file| *file != claude::directory(at).join("settings.json"));
                all
            }
            // Gemini CLI reads only the first file that it finds, so that file overrides the user's even if it sets no
            // address.
            Agent::Gemini => {
                let own = at.home.join(".gemini/.env");
                let above = at.current.ancestors().take_while(|dir| *dir != at.home);
                let mut files = above.flat_map(|dir| [dir.join(".gemini/.env"), dir.join(".env")]);
                let nearest = files
                    .find(|file| *file != own && (at.read)(file).is_ok_and(|text| text.is_some()));
                nearest.into_iter().collect()
            }
            Agent::Opencode => here(&["opencode.json", "opencode.jsonc"], "baseURL"),
            Agent::Aider if at.current != at.home => here(&[".aider.conf.yml"], "openai-api-base"),
            _ => Vec::new(),
        }
    }
}

impl Surroundings<'_> {
    /// Returns the directory of this name among the user's configurations. A relative `XDG_CONFIG_HOME` is ignored, as
    /// its specification requires.
    pub fn config(&self, name: &str) -> PathBuf {
        let set = (self.env)("XDG_CONFIG_HOME").map(PathBuf::from);
        let base = set.filter(|path| path.is_absolute());
        base.unwrap_or_else(|| self.home.join(".config")).join(name)
    }

    /// Returns the directory that an environment variable names, or else `in_home` in the home directory.
    fn named(&self, variable: &str, in_home: &str) -> PathBuf {
        let set = (self.env)(variable).filter(|path| !path.is_empty());
        set.map_or_else(|| self.home.join(in_home), PathBuf::from)
    }

    /// Returns whether an environment variable is set and not empty.
    fn is_set(&self, variable: &str) -> bool {
        (self.env)(variable).is_some_and(|value| !value.is_empty())
    }
}

/// Returns the text of a new file before any value is set in it: JSON needs an object to hold the values.
pub fn empty(syntax: Syntax) -> &'static str {
    if syntax == Syntax::Json { "{}\n" } else { "" }
}
