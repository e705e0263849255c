use std::time::Duration;

use infold_store::Contexts;
use infold_wire::Wire;

use super::{Command, Extractive, Model, Summarizer};
use crate::config::Provider;
use crate::connect::{self, OLLAMAS_OWN};
use crate::models::Tokenizer;
use crate::setup::SetupError;
use crate::{Config, Connection, Profile, Switchboard};

/// Who writes summaries, as it is said in a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The built-in summarizer.
    Extractive,
    /// A model by its name, or else the one that condenses.
    Model(Option<String>),
    /// A command of the shell.
    Command(String),
}

/// What it takes to have summaries written for one model's conversation.
pub struct Pen<'a> {
    /// What is configured.
    pub config: &'a Config,
    /// Where it is kept how models count.
    pub contexts: Option<&'a Contexts>,
    /// The profile of the conversation's model.
    pub profile: &'a Profile,
    /// Somebody chose its window.
    pub told: bool,
    /// The table of models names the one that condenses; nobody here did.
    pub of_table: bool,
    /// The provider is the one of the talk, so the window of its model is known.
    pub talks: bool,
    /// How long a summary may take.
    pub timeout: Duration,
}

impl Who {
    /// Reads `extractive`, `model`, `model:NAME` or `command:` and a command.
    pub fn read(text: &str) -> Result<Who, SetupError> {
        let named = |kind: &str| {
            let name = text.strip_prefix(kind).map(str::trim);
            name.filter(|name| !name.is_empty()).map(str::to_owned)
        };
        match text {
            "extractive" => Ok(Who::Extractive),
            "model" => Ok(Who::Model(None)),
            _ => named("model:")
                .map(|name| Who::Model(Some(name)))
                .or_else(|| named("command:").map(Who::Command))
                .ok_or_else(|| SetupError::Who {
                    who: text.to_owned(),
                }),
        }
    }
}

impl Pen<'_> {
    /// The built-in summarizer.
    pub fn built_in(&self) -> Box<dyn Summarizer + Send> {
        Box::new(Extractive)
    }

    /// A command that writes.
    pub fn command(&self, command: String) -> Box<dyn Summarizer + Send> {
        Box::new(Command {
            command,
            timeout: self.timeout,
            takes: None,
        })
    }

    /// The conversation's model, if one is named.
    pub fn main(&self) -> Option<&str> {
        let model = self.profile.model.as_str();
        Some(model).filter(|model| !model.is_empty())
    }

    /// The provider that the name of the writing model begins with, such as `anthropic/claude-haiku-4-5`, and what
    /// the model is called there.
    ///
    /// Where the conversation's own model has such a name, it is one of a service that has models of many makers, and
    /// the name is what that service calls the model.
    pub fn other_provider<'n>(&'n self, named: Option<&'n str>) -> Option<(Provider, &'n str)> {
        if self.main().is_some_and(|main| main.contains('/')) {
            return None;
        }
        let name = named.unwrap_or(&self.profile.condense_model);
        let (provider, model) = name.split_once('/')?;
        let provider = self.config.provider_named(provider)?;
        (!model.is_empty()).then_some((provider, model))
    }

    /// A model: the one that was named, or else the one that condenses; at the provider that its name begins with, or
    /// else at this one.
    pub fn model(
        &self,
        board: &Switchboard,
        provider: &Provider,
        named: Option<&str>,
    ) -> Result<Box<dyn Summarizer + Send>, SetupError> {
        match self.other_provider(named) {
            Some((other, name)) => self.model_at(board, &other, name.to_owned(), None),
            None => {
                let name = self.model_name(provider, named)?;
                // It is asked where the one that condenses is not there.
                let main = self.main().filter(|main| *main != name && named.is_none());
                self.model_at(board, provider, name, main)
            }
        }
    }

    /// What the writing model is called at the conversation's provider.
    fn model_name(&self, provider: &Provider, named: Option<&str>) -> Result<String, SetupError> {
        let profile = self.profile;
        // What the table names, only the maker of the model has.
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
        board: &Switchboard,
        provider: &Provider,
        name: String,
        instead: Option<&str>,
    ) -> Result<Box<dyn Summarizer + Send>, SetupError> {
        let (config, profile, main) = (self.config, self.profile, self.main());
        let connection = connect::connection(board, config, provider, &name)?;
        let own = Some(name.as_str()) == main;
        let told = match own {
            true => Some(profile.window).filter(|_| self.told),
            false => config.window_of(&name),
        };
        // A talk has found it out already, and only Ollama runs models with less than they take.
        let known = own && (self.talks || connection.wire() != Wire::Ollama);
        let window = told.unwrap_or_else(|| match known {
            true => profile.window,
            false => found(&connection).unwrap_or(profile.window),
        });
        let row = config.find(&name);
        let learned = match self.contexts {
            Some(contexts) => crate::usage::learned(contexts, &provider.name, &name)?,
            None => None,
        };
        let tokenizer = row.map_or(Tokenizer::Other, |row| row.tokenizer);
        let mut model = Model::new(connection, window);
        model.told = told.is_some();
        model.factor = learned.unwrap_or(tokenizer.factor());
        model.max_output = row.map(|row| row.max_output);
        model.timeout = self.timeout;
        model.checks = config.summarizer.check.value;
        if let Some(instead) = instead {
            model.instead = Some(connect::connection(board, config, provider, instead)?);
        }
        Ok(Box::new(model))
    }
}

/// The window that a server runs a model with, as far as it says so.
fn found(connection: &Connection) -> Option<u64> {
    let usual = Some(OLLAMAS_OWN).filter(|_| connection.wire() == Wire::Ollama);
    connection.window().or(usual)
}
