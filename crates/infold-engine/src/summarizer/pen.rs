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

    /// A model at a provider: the one that was named, or else the one that condenses.
    pub fn model(
        &self,
        board: &Switchboard,
        provider: &Provider,
        named: Option<&str>,
    ) -> Result<Box<dyn Summarizer + Send>, SetupError> {
        let (config, profile, main) = (self.config, self.profile, self.main());
        // What the table names, only the maker of the model has.
        let elsewhere =
            provider.base_url.is_some() || profile.provider.as_ref() != Some(&provider.api.value);
        let condenser = Some(profile.condense_model.as_str())
            .filter(|name| !(name.is_empty() || self.of_table && elsewhere));
        let name = match named.or(condenser).or(main) {
            Some(name) => name.to_owned(),
            None => connect::model(config, provider, None, None)?,
        };
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
        if let Some(main) = main.filter(|main| *main != name && named.is_none()) {
            model.instead = Some(connect::connection(board, config, provider, main)?);
        }
        Ok(Box::new(model))
    }
}

/// The window that a server runs a model with, as far as it says so.
fn found(connection: &Connection) -> Option<u64> {
    let usual = Some(OLLAMAS_OWN).filter(|_| connection.wire() == Wire::Ollama);
    connection.window().or(usual)
}
