//! The configuration: `config.yaml`, its layers, and the environment.

mod environment;
pub(crate) mod problem;
mod reader;
mod sections;
mod sources;
mod tools;
mod work;
mod mcp_servers;
pub(crate) mod yaml;
mod layers;
mod restricted;
mod entries;
pub mod tokens;

use std::net::IpAddr;
use std::path::PathBuf;

pub use entries::ConfigEntry;
pub use environment::key_variable;
pub use infold_provider::{APIS, Secret};
pub use layers::{ConfigSource, ParsedConfig};
pub use mcp_servers::{McpAccess, McpCommand, McpServerConfig};
pub use problem::{ConfigError, ConfigProblem, nearest};
pub use reader::EnvLookup;
pub use restricted::RestrictedKey;
pub use sources::{SourceConfig, SourcesConfig};
pub use tools::ToolsConfig;
pub use work::WorkConfig;

use infold_layers::{DocumentPart, Field, Shares, Transitions};

use crate::models::{self, Model, Prices};
use crate::profile::{KeepRecent, Origin, Profile, ResolvedProfile, Setting, Settings};
use crate::recall::RecallLimits;

/// The sections of a configuration, and the keys beside them.
pub const SECTIONS: [&str; 14] = [
    "context_storage",
    "llm",
    "profiles",
    "models",
    "summarizer",
    "hooks",
    "serve",
    "tools",
    "mcp_servers",
    "redact",
    "recall",
    "layers",
    "sources",
    "work",
];

/// The APIs that the proxy speaks: one for each wire.
pub const SERVED_APIS: [&str; 5] = ["openai", "responses", "anthropic", "gemini", "ollama"];

/// The values of `config.yaml` and the environment, and where each was set.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The storage of conversations.
    pub context_storage: ContextStorage,
    /// Providers and their models.
    pub llm: Llm,
    /// Settings by name, or by the start of a model's name.
    pub profiles: Vec<NamedProfile>,
    /// Models that take precedence over the built-in table.
    pub models: Vec<ConfiguredModel>,
    /// The summarizer.
    pub summarizer: SummarizerConfig,
    /// Commands to run around a fold.
    pub hooks: HooksConfig,
    /// The proxy's address and providers.
    pub serve: ServeConfig,
    /// Whether secrets are replaced before they are written to disk.
    pub redact: Setting<bool>,
    /// The automatic recall of hidden messages.
    pub recall: RecallConfig,
    /// The part of a task's layered state that is shown.
    pub layers: LayersConfig,
    /// The policy for tools; without one all are shown.
    pub tools: Option<ToolsConfig>,
    /// The servers that tasks are fetched from.
    pub sources: SourcesConfig,
    /// The settings for carrying out tasks.
    pub work: WorkConfig,
    /// Settings that the environment makes for every model.
    pub environment: Settings,
    /// The model that the environment names.
    pub model: Option<Setting<String>>,
    /// The profile that the environment names.
    pub profile: Option<Setting<String>>,
    /// Keys that the environment has for APIs that the configuration need not describe.
    pub keys: Vec<(&'static str, Setting<Secret>)>,
    /// Addresses that the environment has for APIs, where the configuration names none.
    pub addresses: Vec<(&'static str, Setting<String>)>,
    /// MCP servers whose tools tasks may use.
    pub mcp_servers: Vec<McpServerConfig>,
}

/// The automatic recall of hidden messages.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallConfig {
    /// Whether excerpts of hidden messages are added to requests that refer to them.
    pub auto: Setting<bool>,
    /// The tokens of all excerpts of a request, instead of 2 % of the window.
    pub tokens: Option<Setting<u64>>,
    /// The most excerpts of a request.
    pub excerpts: Setting<u64>,
}

impl RecallConfig {
    /// Returns the limits for a window; `None` if recall is switched off.
    pub fn limits(&self, window: u64) -> Option<RecallLimits> {
        let default = RecallLimits::of_window(window);
        self.auto.value.then(|| RecallLimits {
            tokens: self.tokens.as_ref().map_or(default.tokens, |set| set.value),
            excerpts: self.excerpts.value as usize,
        })
    }
}

/// The part of a task's layered state that is shown, and its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct LayersConfig {
    /// Whether requests that pass through the proxy show it.
    pub inject: Setting<bool>,
    /// The tokens of it, instead of 10 % of the window.
    pub max_tokens: Option<Setting<u64>>,
    /// The number of last turns that it includes.
    pub recent_turns: Setting<u64>,
    /// The share of each part.
    pub shares: Shares,
    /// The shares that were set, in percent.
    pub set_shares: Vec<(DocumentPart, Setting<u64>)>,
    /// The lowest score of shown items, if relevance is by words.
    pub threshold: Setting<f64>,
    /// The lowest score of shown items, if relevance is by embeddings.
    pub embedding_threshold: Setting<f64>,
    /// The method for matching items with the goal.
    pub relevance: Setting<RelevanceMethod>,
    /// The model that makes embeddings.
    pub embedding_model: Option<Setting<String>>,
    /// The fields whose items are ranked by how well they match the goal.
    pub ranked: Vec<Field>,
    /// The phase changes that a model may make.
    pub transitions: Transitions,
}

/// The method for matching items with the goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelevanceMethod {
    /// By the words that they have in common.
    Bm25,
    /// By embeddings of the provider in use.
    Embeddings,
}

impl RelevanceMethod {
    /// Returns its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            RelevanceMethod::Bm25 => "bm25",
            RelevanceMethod::Embeddings => "embeddings",
        }
    }
}

impl LayersConfig {
    /// Returns the tokens that a document may take of a window.
    pub fn max_tokens(&self, window: u64) -> u64 {
        let set = self.max_tokens.as_ref().map(|set| set.value);
        set.unwrap_or(window / 10)
    }
}

/// The storage of conversations.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextStorage {
    /// Whether conversations are recorded.
    pub enabled: Setting<bool>,
    /// The contexts directory.
    pub base_dir: Setting<PathBuf>,
    /// The threshold for folding, as it was written.
    pub compression_threshold: Option<Setting<f64>>,
    /// The number of messages to keep.
    pub keep_recent_messages: Option<Setting<u32>>,
    /// The number of days for which ended tasks are kept.
    pub cleanup_days: Setting<u32>,
    /// The prompt for a summarizing model.
    pub summary_prompt: Option<Setting<String>>,
}

/// Providers and their models.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Llm {
    /// The name of the provider in use.
    pub provider: Option<Setting<String>>,
    /// All configured providers.
    pub providers: Vec<Provider>,
}

/// A provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Its name in the configuration.
    pub name: String,
    /// The API it speaks, one of [`APIS`].
    pub api: Setting<String>,
    /// The model.
    pub model: Option<Setting<String>>,
    /// The model's window.
    pub context_length: Option<Setting<u64>>,
    /// The key.
    pub api_key: Option<Setting<Secret>>,
    /// The address, if not the API's own.
    pub base_url: Option<Setting<String>>,
    /// The longest reply in tokens.
    pub max_tokens: Option<Setting<u64>>,
}

/// Settings with a name: one of the user's own, or the start of a model's name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedProfile {
    /// The name.
    pub name: String,
    /// The settings.
    pub settings: Settings,
}

/// A row of the table of models that the configuration adds or changes.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredModel {
    /// The row: the built-in one, changed.
    pub row: Model,
    /// The changed values that profiles can change too.
    pub settings: Settings,
    /// Whether the configuration sets its prices.
    pub has_prices: bool,
    /// The place where the provider was set.
    pub origin: Origin,
}

/// The summarizer.
#[derive(Clone, Debug, PartialEq)]
pub struct SummarizerConfig {
    /// `extractive`, `model`, `model:` and its name, or `command:` and a command.
    pub name: Setting<String>,
    /// The time limit of a summary in seconds.
    pub timeout: Setting<u64>,
    /// Whether a model checks the summary.
    pub check: Setting<bool>,
}

/// Commands to run around a fold, JSON on standard input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HooksConfig {
    /// Runs before it; if it fails, nothing is folded.
    pub before_fold: Option<Setting<String>>,
    /// Runs after it.
    pub after_fold: Option<Setting<String>>,
}

/// The proxy's address and providers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServeConfig {
    /// The port.
    pub port: Option<Setting<u16>>,
    /// The address; one that other machines can reach needs a token.
    pub host: Option<Setting<IpAddr>>,
    /// The token that clients must send.
    pub token: Option<Setting<Secret>>,
    /// The names under which clients may reach it, besides those of this machine.
    pub names: Vec<Setting<String>>,
    /// The seconds for which a provider may send nothing; 0 means no limit.
    pub upstream_idle: Option<Setting<u64>>,
    /// The hours after its last request at which a conversation has ended; 0 means never, none means a day.
    pub end_after: Option<Setting<u64>>,
    /// Whether clients of `/infold/mcp` may pin messages and add notes.
    pub mcp_write: Option<Setting<bool>>,
    /// Whether models are offered tools for looking up folded messages, which the proxy answers.
    pub recall_tool: Option<Setting<bool>>,
    /// The workspace of which snapshots are taken when requests bring results of calls that may have written.
    pub checkpoints: Option<Setting<PathBuf>>,
    /// The destination of an API's requests: the name of a provider, or an address.
    pub upstreams: Vec<(&'static str, Setting<String>)>,
}

/// The model and settings that one call asks for: the flags of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileRequest {
    /// The model.
    pub model: Option<String>,
    /// A profile by its name.
    pub profile: Option<String>,
    /// Settings that take precedence over all others.
    pub settings: Settings,
}

/// The requested profile does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile `{name}`")]
pub struct UnknownProfile {
    /// The name.
    pub name: String,
    /// The profiles that exist.
    pub all: Vec<String>,
}

impl Default for Config {
    fn default() -> Config {
        fn default<T>(value: T) -> Setting<T> {
            Setting::new(value, Origin::Default)
        }
        Config {
            context_storage: ContextStorage {
                enabled: default(true),
                base_dir: default("./contexts".into()),
                compression_threshold: None,
                keep_recent_messages: None,
                cleanup_days: default(30),
                summary_prompt: None,
            },
            llm: Llm::default(),
            profiles: Vec::new(),
            models: Vec::new(),
            summarizer: SummarizerConfig {
                name: default("extractive".to_owned()),
                timeout: default(120),
                check: default(false),
            },
            hooks: HooksConfig::default(),
            serve: ServeConfig::default(),
            redact: default(false),
            recall: RecallConfig {
                auto: default(true),
                tokens: None,
                excerpts: default(RecallLimits::of_window(0).excerpts as u64),
            },
            layers: LayersConfig {
                inject: default(false),
                max_tokens: None,
                recent_turns: default(5),
                shares: Shares::default(),
                set_shares: Vec::new(),
                threshold: default(0.0),
                embedding_threshold: default(0.3),
                relevance: default(RelevanceMethod::Bm25),
                embedding_model: None,
                ranked: vec![Field::Summaries, Field::Facts],
                transitions: Transitions::default(),
            },
            tools: None,
            sources: SourcesConfig::default(),
            work: WorkConfig::default(),
            environment: Settings::default(),
            model: None,
            profile: None,
            keys: Vec::new(),
            addresses: Vec::new(),
            mcp_servers: Vec::new(),
        }
    }
}

impl Config {
    /// Reads a configuration of one file, and the environment over it.
    ///
    /// `file` is the name that messages show. Returns warnings too; or all errors there are,
    /// in the order of their lines.
    pub fn parse(
        file: &str,
        text: &str,
        env: EnvLookup<'_>,
    ) -> Result<(Config, Vec<String>), Vec<ConfigError>> {
        let layer = ConfigSource {
            file,
            text,
            trusted: true,
        };
        let parsed = Config::parse_layers(&[layer], env)?;
        Ok((parsed.config, parsed.warnings))
    }

    /// Says whether a text looks like a configuration of infold: many programs have a `config.yaml`.
    pub fn is_ours(text: &str) -> bool {
        // `redact` counts with any value: `redact: yes` must be an error, not ignored.
        let ours = "context_storage llm profiles summarizer serve redact recall layers";
        let key = |line: &str| {
            let key = line.split_once(':').map(|(key, _)| key.trim_end());
            key.is_some_and(|key| ours.split(' ').any(|it| it == key))
        };
        text.trim_start_matches('\u{feff}').lines().any(key)
    }

    /// Returns the provider in use: the named one, or else the only one.
    pub fn provider(&self) -> Option<&Provider> {
        match (&self.llm.provider, self.llm.providers.as_slice()) {
            (Some(name), all) => all.iter().find(|provider| provider.name == name.value),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }

    /// Returns the provider of a name: a configured one, or an API that needs no more than a key.
    pub fn provider_named(&self, name: &str) -> Option<Provider> {
        let own = self.llm.providers.iter().find(|one| one.name == name);
        let api = APIS.into_iter().find(|api| *api == name);
        own.cloned().or_else(|| {
            let key = self.keys.iter().find(|(of, _)| Some(*of) == api);
            let address = self.addresses.iter().find(|(of, _)| Some(*of) == api);
            Some(Provider {
                name: api?.to_owned(),
                api: Setting::new(api?.to_owned(), Origin::Default),
                model: None,
                context_length: None,
                api_key: key.map(|(_, key)| key.clone()),
                base_url: address.map(|(_, address)| address.clone()),
                max_tokens: None,
            })
        })
    }

    /// Returns the window that is set for a model, here or in the environment.
    pub fn window_of(&self, model: &str) -> Option<u64> {
        let set = self.environment.window.as_ref().map(|set| set.value);
        let profile = models::longest(model, &self.profiles, |profile| &profile.name);
        let profile = profile.and_then(|profile| profile.settings.window.as_ref());
        let own = self.own(model).and_then(|own| own.settings.window.as_ref());
        let general = || self.general(model).window.map(|set| set.value);
        set.or(profile.or(own).map(|set| set.value))
            .or_else(general)
    }

    /// Returns the model in use when a call names none.
    pub fn model(&self) -> Option<&Setting<String>> {
        let configured = || self.provider()?.model.as_ref();
        self.model.as_ref().or_else(configured)
    }

    /// Returns the row of a model: the longest matching name, configured rows first.
    pub fn find(&self, name: &str) -> Option<&Model> {
        let own = self.own(name).map(|own| &own.row);
        let built_in = models::find(name);
        match (own, built_in) {
            (Some(own), Some(row)) if own.name.len() < row.name.len() => Some(row),
            (own, row) => own.or(row),
        }
    }

    /// Returns the prices of a model at a provider: configured ones, or its maker's if they sell it.
    pub fn prices(&self, model: &str, provider: &Provider, local: bool) -> Option<Prices> {
        let row = self.find(model)?;
        let own = self.own(model).filter(|own| own.row == *row);
        let api = match provider.api.value.as_str() {
            "responses" => "openai",
            api => api,
        };
        let sold = !local && row.provider == api;
        row.prices
            .filter(|_| sold || own.is_some_and(|own| own.has_prices))
    }

    fn own(&self, name: &str) -> Option<&ConfiguredModel> {
        models::longest(name, &self.models, |own| &own.row.name)
    }

    /// Resolves the profile for a call: its own settings, then the environment, the profile named or
    /// matching the model, the profile `default`, the other sections, the models, the strategy.
    pub fn resolve(&self, asked: &ProfileRequest) -> Result<ResolvedProfile, UnknownProfile> {
        let named = asked.profile.as_ref();
        let named = named.or(self.profile.as_ref().map(|set| &set.value));
        let usual = || self.model().map(|set| set.value.clone());
        let name = asked.model.clone().or_else(usual).unwrap_or_default();
        let chosen = match named {
            Some(named) => {
                let profile = self.profiles.iter().find(|profile| profile.name == *named);
                Some(profile.ok_or_else(|| UnknownProfile {
                    name: named.clone(),
                    all: self.profiles.iter().map(|one| one.name.clone()).collect(),
                })?)
            }
            None => models::longest(&name, &self.profiles, |profile| &profile.name),
        };
        let default = self.profiles.iter().find(|one| one.name == "default");
        let mut layers = vec![asked.settings.clone(), self.environment.clone()];
        layers.extend(chosen.map(|profile| profile.settings.clone()));
        layers.extend(default.map(|profile| profile.settings.clone()));
        layers.push(self.general(&name));
        let row = self.find(&name);
        let own = self.own(&name).filter(|own| Some(&own.row) == row);
        layers.extend(own.map(|own| own.settings.clone()));
        Ok(Profile::resolve(&name, row, &layers))
    }

    /// Returns the settings that the sections other than `profiles` have for a model.
    fn general(&self, model: &str) -> Settings {
        let storage = &self.context_storage;
        let keep = storage.keep_recent_messages.as_ref();
        // A window belongs to one model and does not count for another.
        let speaks = |provider: &&Provider| match &provider.model {
            Some(own) => own.value.eq_ignore_ascii_case(model),
            None => self.provider() == Some(provider),
        };
        let provider = self.provider().filter(speaks);
        let provider = provider.or_else(|| self.llm.providers.iter().find(speaks));
        Settings {
            threshold: storage.compression_threshold.clone(),
            keep: keep.map(|set| Setting::new(KeepRecent::Messages(set.value), set.origin.clone())),
            prompt: storage.summary_prompt.clone(),
            window: provider.and_then(|provider| provider.context_length.clone()),
            max_tokens: provider.and_then(|provider| provider.max_tokens.clone()),
            ..Settings::default()
        }
    }
}
