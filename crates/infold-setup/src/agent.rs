//! The agents that can be set up: where their configurations are, and what is to change in each.

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

/// An agent.
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
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file; nothing is returned if there is none.
    pub read: &'a dyn Fn(&Path) -> Result<Option<String>, String>,
}

/// The proxy and the MCP server that an agent is to use.
pub struct AgentTarget<'a> {
    /// The address of the proxy, without a path.
    pub base: &'a str,
    /// Addresses that the proxy had before: none of them is an upstream.
    pub former: &'a [&'a str],
    /// How it reaches `infold mcp`; nothing if that is not wanted.
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
    /// Its syntax.
    pub syntax: Syntax,
    /// Where the value stands.
    pub path: Vec<PathStep>,
    /// The value.
    pub value: Value,
}

/// The changes for an agent, and where its requests went before.
#[derive(Debug, Default)]
pub struct Plan {
    /// The changes, in the order in which they are made.
    pub changes: Vec<ValueChange>,
    /// Where the proxy has to send requests of an API, because the agent did so.
    pub upstreams: Vec<NeededUpstream>,
    /// The APIs that it uses.
    pub apis: Vec<&'static str>,
    /// Those of them that an address leads to the proxy for already.
    pub through: Vec<&'static str>,
    /// Those of them that went to the API's own address.
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
        /// Why.
        reason: String,
    },
    /// A file is not valid.
    #[error("{}, {problem}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Where and why.
        problem: SyntaxError,
    },
    /// Where it sends requests now cannot be the proxy's upstream.
    #[error("{}: {problem}", file.display())]
    Upstream {
        /// The file.
        file: PathBuf,
        /// Why.
        problem: UpstreamProblem,
    },
    /// It takes no address in a file, or not in the way it is used.
    #[error("{0}")]
    Impossible(String),
}

impl Agent {
    /// All of them.
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

    /// Its name on the command line.
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

    /// Its name for people.
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

    /// Finds an agent by its name.
    pub fn named(name: &str) -> Option<Agent> {
        let aliases = [("claude-code", Agent::Claude), ("cn", Agent::Continue)];
        let alias = aliases.iter().find(|(alias, _)| *alias == name);
        let mut all = Agent::ALL.into_iter();
        alias
            .map(|(_, agent)| *agent)
            .or_else(|| all.find(|agent| agent.name() == name))
    }

    /// Its programs.
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

    /// The file or directory that says that it was used here.
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

    /// Returns what is to change so that its requests go to a target.
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

    /// Returns the environment variables that override what is written, or keep it from being read.
    pub fn overriding(self) -> &'static [&'static str] {
        match self {
            // Its settings come before the environment.
            Agent::Claude => &["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"],
            // Its own file comes first.
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
    /// Returns the files that stand nearer than the user's own and set an address, too.
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
                all.retain(|file| *file != claude::directory(at).join("settings.json"));
                all
            }
            // It reads the first that it finds, whatever is in it.
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
    /// A directory of the user's configurations.
    pub fn config(&self, name: &str) -> PathBuf {
        let set = (self.env)("XDG_CONFIG_HOME").map(PathBuf::from);
        let base = set.filter(|path| path.is_absolute());
        base.unwrap_or_else(|| self.home.join(".config")).join(name)
    }

    /// A directory that a variable names, or one in the home directory.
    fn named(&self, variable: &str, in_home: &str) -> PathBuf {
        let set = (self.env)(variable).filter(|path| !path.is_empty());
        set.map_or_else(|| self.home.join(in_home), PathBuf::from)
    }

    /// Returns whether a variable is set to something.
    fn is_set(&self, variable: &str) -> bool {
        (self.env)(variable).is_some_and(|value| !value.is_empty())
    }
}

/// The text of a new file before anything is set in it.
pub fn empty(syntax: Syntax) -> &'static str {
    if syntax == Syntax::Json { "{}\n" } else { "" }
}
