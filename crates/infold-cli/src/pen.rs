use std::time::Duration;

use infold::config::Provider;
use infold::models::Tokenizer;
use infold::summarizer::Model;
use infold::{Config, Connection, Profile, Summarizer};
use infold_provider::Patience;
use infold_store::Contexts;
use infold_wire::Wire;

use crate::connect::{self, Calls};
use crate::failure::Failure;

/// What a model that writes summaries is called with.
#[derive(Clone, Copy, Default)]
pub struct Pen<'a> {
    /// The calls of a talk, and whom it is with.
    pub talk: Option<(&'a Calls, &'a Provider)>,
    /// Where it is kept how models count.
    pub contexts: Option<&'a Contexts>,
    /// A model writes if nobody says otherwise and one can be asked.
    pub usual: bool,
}

/// A summarizer, and the calls it makes if they are its own.
pub type Made = (Box<dyn Summarizer>, Option<Calls>);

/// What it takes to find the model that writes summaries.
pub struct Writer<'a> {
    /// What is configured.
    pub config: &'a Config,
    /// The profile of the conversation's model.
    pub profile: &'a Profile,
    /// Somebody chose its window.
    pub told: bool,
    /// The table of models names the one that condenses; nobody here did.
    pub of_table: bool,
    /// The provider that the task names.
    pub of_task: Option<&'a str>,
    /// What a model is called with.
    pub pen: Pen<'a>,
    /// How long a summary may take.
    pub timeout: Duration,
}

impl Writer<'_> {
    /// The model of the talk, or of the configuration if it can be asked.
    pub fn if_any(&self) -> Option<Made> {
        let ready = match self.pen.talk {
            Some(_) => true,
            None => self.config.provider().is_some_and(|provider| {
                let open = connect::endpoint(provider).is_ok_and(|to| !to.needs_key());
                open || provider.api_key.is_some()
            }),
        };
        ready.then(|| self.model(None).ok()).flatten()
    }

    /// A model by its name, or else the one that condenses.
    pub fn model(&self, named: Option<&str>) -> Result<Made, Failure> {
        let model = &self.profile.model;
        let main = Some(model.as_str()).filter(|model| !model.is_empty());
        match self.pen.talk {
            Some((calls, provider)) => Ok((self.at(calls, provider, main, named)?, None)),
            None => {
                let provider = connect::provider(self.config, None, self.of_task, main)?;
                let calls = Calls::new(Patience {
                    deadline: self.timeout,
                    attempts: 3,
                    ..Patience::default()
                })?;
                let made = self.at(&calls, &provider, main, named)?;
                Ok((made, Some(calls)))
            }
        }
    }

    fn at(
        &self,
        calls: &Calls,
        provider: &Provider,
        main: Option<&str>,
        named: Option<&str>,
    ) -> Result<Box<dyn Summarizer>, Failure> {
        let (config, profile) = (self.config, self.profile);
        // What the table names, only the maker of the model has.
        let elsewhere =
            provider.base_url.is_some() || profile.provider.as_ref() != Some(&provider.api.value);
        let condenser = Some(profile.condense_model.as_str())
            .filter(|name| !(name.is_empty() || self.of_table && elsewhere));
        let name = match named.or(condenser).or(main) {
            Some(name) => name.to_owned(),
            None => connect::model(config, provider, None, None)?,
        };
        let connection = calls.connect(config, provider, &name)?;
        let own = Some(name.as_str()) == main;
        let told = match own {
            true => Some(profile.window).filter(|_| self.told),
            false => config.window_of(&name),
        };
        // A talk has found it out already, and only Ollama runs models with less than they take.
        let known = own && (self.pen.talk.is_some() || connection.wire() != Wire::Ollama);
        let window = told.unwrap_or_else(|| match known {
            true => profile.window,
            false => found(&connection).unwrap_or(profile.window),
        });
        let row = config.find(&name);
        let learned = match self.pen.contexts {
            Some(contexts) => infold::usage::learned(contexts, &provider.name, &name)?,
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
            model.instead = Some(calls.connect(config, provider, main)?);
        }
        Ok(Box::new(model))
    }
}

/// The window that Ollama runs a model with if nobody says otherwise.
pub const OLLAMAS_OWN: u64 = 4096;

/// The window that a server runs a model with, as far as it says so.
fn found(connection: &Connection) -> Option<u64> {
    let usual = Some(OLLAMAS_OWN).filter(|_| connection.wire() == Wire::Ollama);
    connection.window().or(usual)
}
