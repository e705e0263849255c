//! Builds the summarizer that is configured for a conversation.

use std::time::Duration;

use infold_store::Contexts;
use infold_wire::Wire;

use super::{CommandSummarizer, Extractive, ModelSummarizer, Summarizer};
use crate::config::Provider;
use crate::connect::{self, OLLAMA_DEFAULT_WINDOW};
use crate::models::Tokenizer;
use crate::setup::SetupError;
use crate::{Config, Connection, Connector, Profile};

/// The configured kind of summarizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummarizerChoice {
    /// The built-in summarizer.
    Extractive,
    /// A model by its name, or else the profile's condense model.
    Model(Option<String>),
    /// A shell command.
    Command(String),
}

/// Builds summarizers for the conversation with one model.
pub struct SummarizerFactory<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The store, which knows how models count tokens.
    pub contexts: Option<&'a Contexts>,
    /// The profile of the conversation's model.
    pub profile: &'a Profile,
    /// Whether the window was chosen and not looked up.
    pub is_window_configured: bool,
    /// Whether the condense model comes from the table of models, not from the configuration.
    pub of_table: bool,
    /// Whether the provider is that of the conversation, so that the window of its model is known.
    pub talks: bool,
    /// The time limit of a summary.
    pub timeout: Duration,
}

impl SummarizerChoice {
    /// Reads `extractive`, `model`, `model:NAME` or `command:` and a command.
    pub fn read(text: &str) -> Result<SummarizerChoice, SetupError> {
        let named = |kind: &str| {
            let name = text.strip_prefix(kind).map(str::trim);
            name.filter(|name| !name.is_empty()).map(str::to_owned)
        };
        match text {
            "extractive" => Ok(SummarizerChoice::Extractive),
            "model" => Ok(SummarizerChoice::Model(None)),
            _ => named("model:")
                .map(|name| SummarizerChoice::Model(Some(name)))
                .or_else(|| named("command:").map(SummarizerChoice::Command))
                .ok_or_else(|| SetupError::UnknownSummarizer {
                    name: text.to_owned(),
                }),
        }
    }
}

impl SummarizerFactory<'_> {
    /// Returns the built-in summarizer.
    pub fn built_in(&self) -> Box<dyn Summarizer + Send> {
        Box::new(Extractive)
    }

    /// Returns a summarizer that runs a command.
    pub fn command(&self, command: String) -> Box<dyn Summarizer + Send> {
        Box::new(CommandSummarizer {
            command,
            timeout: self.timeout,
            takes: None,
        })
    }

    /// Returns the conversation's model, if one is named.
    pub fn main(&self) -> Option<&str> {
        let model = self.profile.model.as_str();
        Some(model).filter(|model| !model.is_empty())
    }

    /// Returns the provider with which the name of the summarizing model begins, such as `anthropic/claude-haiku-4-5`, and
    /// the model's name there.
    ///
    /// None if the conversation's own model has such a name: then its provider offers models of many makers, and the whole
    /// name is the model's.
    pub fn other_provider<'n>(&'n self, named: Option<&'n str>) -> Option<(Provider, &'n str)> {
        if self.main().is_some_and(|main| main.contains('/')) {
            return None;
        }
        let name = named.unwrap_or(&self.profile.condense_model);
        let (provider, model) = name.split_once('/')?;
        let provider = self.config.provider_named(provider)?;
        (!model.is_empty()).then_some((provider, model))
    }

    /// Returns a summarizer that asks a model: the named one, or else the condense model; at the provider with which its
    /// name begins, or else at this one.
    pub fn model(
        &self,
        connector: &Connector,
        provider: &Provider,
        named: Option<&str>,
    ) -> Result<Box<dyn Summarizer + Send>, SetupError> {
        match self.other_provider(named) {
            Some((other, name)) => self.model_at(connector, &other, name.to_owned(), None),
            None => {
                let name = self.model_name(provider, named)?;
                // The conversation's model is the fallback where the provider lacks the condense model.
                let main = self.main().filter(|main| *main != name && named.is_none());
                self.model_at(connector, provider, name, main)
            }
        }
    }

    /// Returns the name of the summarizing model at the conversation's provider.
    fn model_name(&self, provider: &Provider, named: Option<&str>) -> Result<String, SetupError> {
        let profile = self.profile;
        // Only the maker of the model offers the one that the table names.
        let elsewhere =
            provider.base_url.is_some() || profile.provider.as_ref() != Some(&provider.api.value);
        let condenser = Some(profile.condense_model.as_str())
            .filter(|name| !(name.is_empty() || self.of_table && elsewhere));
        Ok(match named.or(condenser).or(self.main()) {
            Some(name) => name.to_owned(),
            None => connect::model(self.config, provider, None, None)?,
        })
    }

    fn model_at(
        &self,
        connector: &Connector,
        provider: &Provider,
        name: String,
        fallback: Option<&str>,
    ) -> Result<Box<dyn Summarizer + Send>, SetupError> {
        let (config, profile, main) = (self.config, self.profile, self.main());
        let connection = connect::connection(connector, config, provider, &name)?;
        let own = Some(name.as_str()) == main;
        let configured = if own {
            Some(profile.window).filter(|_| self.is_window_configured)
        } else {
            config.window_of(&name)
        };
        // A conversation has already looked it up, and only Ollama runs models with a smaller window.
        let is_known = own && (self.talks || connection.wire() != Wire::Ollama);
        let looked_up = || {
            if is_known {
                None
            } else {
                reported_window(&connection)
            }
        };
        let window = configured.or_else(looked_up).unwrap_or(profile.window);
        let row = config.find(&name);
        let learned = match self.contexts {
            Some(contexts) => crate::usage::learned_factor(contexts, &provider.name, &name)?,
            None => None,
        };
        let tokenizer = row.map_or(Tokenizer::Other, |row| row.tokenizer);
        let mut model = ModelSummarizer::new(connection, window);
        model.is_window_configured = configured.is_some();
        model.factor = learned.unwrap_or(tokenizer.factor());
        model.max_output = row.map(|row| row.max_output);
        model.timeout = self.timeout;
        model.checks = config.summarizer.check.value;
        if let Some(fallback) = fallback {
            model.fallback = Some(connect::connection(connector, config, provider, fallback)?);
        }
        Ok(Box::new(model))
    }
}

/// Returns the window that a server reports for a model.
fn reported_window(connection: &Connection) -> Option<u64> {
    let usual = Some(OLLAMA_DEFAULT_WINDOW).filter(|_| connection.wire() == Wire::Ollama);
    connection.window().or(usual)
}
