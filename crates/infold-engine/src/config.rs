mod environment;
mod problem;
mod reader;
mod sections;
mod yaml;
mod layers;
mod restricted;
mod entries;
pub mod tokens;

use std::net::IpAddr;
use std::path::PathBuf;

pub use entries::Entry;
pub use environment::key_variable;
pub use infold_provider::Secret;
pub use layers::{Layer, Parsed};
pub use problem::{ConfigError, Problem};
pub use reader::Lookup;
pub use restricted::RestrictedKey;

use crate::models::{self, Model, Prices};
use crate::profile::{Keep, Origin, Profile, Resolved, Set, Settings};

/// The sections of a configuration, and the keys beside them.
pub const SECTIONS: [&str; 10] = [
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
];

/// The APIs that a provider may speak, and so the providers that need no `provider:`.
pub const APIS: [&str; 6] = [
    "openai",
    "responses",
    "anthropic",
    "gemini",
    "ollama",
    "lmstudio",
];

/// The APIs that the proxy speaks: one for each wire.
pub const SERVED: [&str; 5] = ["openai", "responses", "anthropic", "gemini", "ollama"];

/// What `config.yaml` and the environment say, and where they say it.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where and how conversations are kept.
    pub context_storage: ContextStorage,
    /// Which models to talk to.
    pub llm: Llm,
    /// Settings by name, or by the start of a model's name.
    pub profiles: Vec<NamedProfile>,
    /// Rows that come before those of the built-in table.
    pub models: Vec<OwnModel>,
    /// Who writes summaries.
    pub summarizer: Summarizer,
    /// Commands to run around a fold.
    pub hooks: Hooks,
    /// Where the proxy listens, and where it sends.
    pub serve: Serve,
    /// Whether secrets are replaced before they reach the disk.
    pub redact: Set<bool>,
    /// Settings that the environment makes for every model.
    pub environment: Settings,
    /// The model that the environment names.
    pub model: Option<Set<String>>,
    /// The profile that the environment names.
    pub profile: Option<Set<String>>,
    /// Keys that the environment has for APIs that the configuration need not describe.
    pub keys: Vec<(&'static str, Set<Secret>)>,
    /// Sections that were there and are not read yet, and their lines.
    pub kept: Vec<(&'static str, Origin)>,
}

/// Where and how conversations are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextStorage {
    /// Whether anything is recorded at all.
    pub enabled: Set<bool>,
    /// The contexts directory.
    pub base_dir: Set<PathBuf>,
    /// When to start folding, as it was written.
    pub compression_threshold: Option<Set<f64>>,
    /// How many messages to keep.
    pub keep_recent_messages: Option<Set<u32>>,
    /// For how many days ended tasks are kept.
    pub cleanup_days: Set<u32>,
    /// What a summarizing model is asked.
    pub summary_prompt: Option<Set<String>>,
}

/// Which models to talk to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Llm {
    /// The name of the provider in use.
    pub provider: Option<Set<String>>,
    /// All that are described.
    pub providers: Vec<Provider>,
}

/// One model API, and what to ask of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Its name in the configuration.
    pub name: String,
    /// The API it speaks, one of [`APIS`].
    pub api: Set<String>,
    /// The model.
    pub model: Option<Set<String>>,
    /// The model's window.
    pub context_length: Option<Set<u64>>,
    /// The key.
    pub api_key: Option<Set<Secret>>,
    /// Where it is, if not where the provider itself is.
    pub base_url: Option<Set<String>>,
    /// How long a reply may be.
    pub max_tokens: Option<Set<u64>>,
}

/// Settings with a name: one of the user's own, or the start of a model's name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedProfile {
    /// The name.
    pub name: String,
    /// The settings.
    pub settings: Settings,
}

/// A row of the user's own in the table of models.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnModel {
    /// The row: what the built-in table says, changed.
    pub row: Model,
    /// What of it was changed that profiles can change too.
    pub settings: Settings,
    /// Its prices are the user's own.
    pub priced: bool,
    /// Where it stands.
    pub origin: Origin,
}

/// Who writes summaries.
#[derive(Clone, Debug, PartialEq)]
pub struct Summarizer {
    /// `extractive`, `model`, `model:` and its name, or `command:` and a command.
    pub name: Set<String>,
    /// After how many seconds it is given up.
    pub timeout: Set<u64>,
    /// Whether a model looks over what it wrote.
    pub check: Set<bool>,
}

/// Commands to run around a fold, JSON on standard input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hooks {
    /// Before it; if it fails, nothing is folded.
    pub before_fold: Option<Set<String>>,
    /// After it.
    pub after_fold: Option<Set<String>>,
}

/// Where the proxy listens, and where it sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Serve {
    /// The port.
    pub port: Option<Set<u16>>,
    /// The address; one that others can reach wants a token.
    pub host: Option<Set<IpAddr>>,
    /// What clients must send.
    pub token: Option<Set<Secret>>,
    /// Names under which clients may reach it, beside those of this machine.
    pub names: Vec<Set<String>>,
    /// So many seconds a provider may be silent; 0 is for ever.
    pub upstream_idle: Option<Set<u64>>,
    /// So many hours after its last request a conversation has ended; 0 is never, and nothing is a day.
    pub end_after: Option<Set<u64>>,
    /// Where the requests of an API go: an API, and the name of a provider or an address.
    pub upstreams: Vec<(&'static str, Set<String>)>,
}

/// What one call asks for: flags of the command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// The model.
    pub model: Option<String>,
    /// A profile by its name.
    pub profile: Option<String>,
    /// Settings that come before all others.
    pub settings: Settings,
}

/// A profile was asked for that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no profile `{name}`")]
pub struct NoProfile {
    /// The name.
    pub name: String,
    /// Those that are there.
    pub all: Vec<String>,
}

impl Default for Config {
    fn default() -> Config {
        let default = |path: &str| Set::new(PathBuf::from(path), Origin::Default);
        Config {
            context_storage: ContextStorage {
                enabled: Set::new(true, Origin::Default),
                base_dir: default("./contexts"),
                compression_threshold: None,
                keep_recent_messages: None,
                cleanup_days: Set::new(30, Origin::Default),
                summary_prompt: None,
            },
            llm: Llm::default(),
            profiles: Vec::new(),
            models: Vec::new(),
            summarizer: Summarizer {
                name: Set::new("extractive".to_owned(), Origin::Default),
                timeout: Set::new(120, Origin::Default),
                check: Set::new(false, Origin::Default),
            },
            hooks: Hooks::default(),
            serve: Serve::default(),
            redact: Set::new(false, Origin::Default),
            environment: Settings::default(),
            model: None,
            profile: None,
            keys: Vec::new(),
            kept: Vec::new(),
        }
    }
}

impl Config {
    /// Reads a configuration of one file, and what the environment sets instead of it.
    ///
    /// `file` is the name that messages show. Returns warnings too; or all errors there are,
    /// in the order of their lines.
    pub fn parse(
        file: &str,
        text: &str,
        env: Lookup<'_>,
    ) -> Result<(Config, Vec<String>), Vec<ConfigError>> {
        let layer = Layer {
            file,
            text,
            trusted: true,
        };
        let parsed = Config::parse_layers(&[layer], env)?;
        Ok((parsed.config, parsed.warnings))
    }

    /// Whether a text looks like a configuration of infold's: many programs have a `config.yaml`.
    pub fn is_ours(text: &str) -> bool {
        // `redact` counts with any value: whoever writes `redact: yes` must not believe that it is on.
        let ours = [
            "context_storage",
            "llm",
            "profiles",
            "summarizer",
            "serve",
            "redact",
        ];
        let key = |line: &str| {
            let key = line.split_once(':').map(|(key, _)| key.trim_end());
            key.is_some_and(|key| ours.contains(&key))
        };
        text.trim_start_matches('\u{feff}').lines().any(key)
    }

    /// The provider in use: the one named, or else the only one.
    pub fn provider(&self) -> Option<&Provider> {
        match (&self.llm.provider, self.llm.providers.as_slice()) {
            (Some(name), all) => all.iter().find(|provider| provider.name == name.value),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }

    /// The provider of a name: one of the configuration, or an API that needs no more than a key.
    pub fn provider_named(&self, name: &str) -> Option<Provider> {
        let own = self.llm.providers.iter().find(|one| one.name == name);
        let api = APIS.into_iter().find(|api| *api == name);
        own.cloned().or_else(|| {
            let key = self.keys.iter().find(|(of, _)| Some(*of) == api);
            Some(Provider {
                name: api?.to_owned(),
                api: Set::new(api?.to_owned(), Origin::Default),
                model: None,
                context_length: None,
                api_key: key.map(|(_, key)| key.clone()),
                base_url: None,
                max_tokens: None,
            })
        })
    }

    /// The window that somebody set for a model, here or in the environment.
    pub fn window_of(&self, model: &str) -> Option<u64> {
        let set = self.environment.window.as_ref().map(|set| set.value);
        let profile = models::longest(model, &self.profiles, |profile| &profile.name);
        let profile = profile.and_then(|profile| profile.settings.window.as_ref());
        let own = self.own(model).and_then(|own| own.settings.window.as_ref());
        let general = || self.general(model).window.map(|set| set.value);
        set.or(profile.or(own).map(|set| set.value))
            .or_else(general)
    }

    /// The model in use, when the call names none.
    pub fn model(&self) -> Option<&Set<String>> {
        let configured = || self.provider()?.model.as_ref();
        self.model.as_ref().or_else(configured)
    }

    /// What is known of a model: the longest matching name, the user's own rows first.
    pub fn find(&self, name: &str) -> Option<&Model> {
        let own = self.own(name).map(|own| &own.row);
        let built_in = models::find(name);
        match (own, built_in) {
            (Some(own), Some(row)) if own.name.len() < row.name.len() => Some(row),
            (own, row) => own.or(row),
        }
    }

    /// What a model costs at a provider: the user's own prices, or else its maker's if they sell it.
    pub fn prices(&self, model: &str, provider: &Provider, local: bool) -> Option<Prices> {
        let row = self.find(model)?;
        let own = self.own(model).filter(|own| own.row == *row);
        let api = match provider.api.value.as_str() {
            "responses" => "openai",
            api => api,
        };
        let sold = !local && row.provider == api;
        row.prices
            .filter(|_| sold || own.is_some_and(|own| own.priced))
    }

    fn own(&self, name: &str) -> Option<&OwnModel> {
        models::longest(name, &self.models, |own| &own.row.name)
    }

    /// The profile for a call: what it asks for, then the environment, the profile named or
    /// matching the model, the profile `default`, the other sections, the models, the strategy.
    pub fn resolve(&self, asked: &Asked) -> Result<Resolved, NoProfile> {
        let named = asked.profile.as_ref();
        let named = named.or(self.profile.as_ref().map(|set| &set.value));
        let usual = || self.model().map(|set| set.value.clone());
        let name = asked.model.clone().or_else(usual).unwrap_or_default();
        let chosen = match named {
            Some(named) => {
                let found = self.profiles.iter().find(|profile| profile.name == *named);
                Some(found.ok_or_else(|| self.no_profile(named))?)
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

    fn no_profile(&self, name: &str) -> NoProfile {
        NoProfile {
            name: name.to_owned(),
            all: self.profiles.iter().map(|one| one.name.clone()).collect(),
        }
    }

    /// What the sections other than `profiles` say of a model.
    fn general(&self, model: &str) -> Settings {
        let storage = &self.context_storage;
        let keep = storage.keep_recent_messages.as_ref();
        // A window is that of one model: it says nothing of another.
        let speaks = |provider: &&Provider| match &provider.model {
            Some(own) => own.value.eq_ignore_ascii_case(model),
            None => self.provider() == Some(provider),
        };
        let provider = self.provider().filter(speaks);
        let provider = provider.or_else(|| self.llm.providers.iter().find(speaks));
        Settings {
            threshold: storage.compression_threshold.clone(),
            keep: keep.map(|set| Set::new(Keep::Messages(set.value), set.origin.clone())),
            prompt: storage.summary_prompt.clone(),
            window: provider.and_then(|provider| provider.context_length.clone()),
            max_tokens: provider.and_then(|provider| provider.max_tokens.clone()),
            ..Settings::default()
        }
    }
}
