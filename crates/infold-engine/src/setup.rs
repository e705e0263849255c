//! Puts together how to fold for a model: profile, aim, summarizer, hooks.

use std::time::Duration;

use infold_log::NoRoom;
use infold_store::{Contexts, InEffect, TaskError};
use infold_wire::Wire;

use crate::config::{ProfileRequest, Provider, UnknownProfile};
use crate::connect::{self, ConnectError, OLLAMA_DEFAULT_WINDOW};
use crate::profile::{Origin, ResolvedProfile, Setting, Settings};
use crate::summarizer::{SummarizerChoice, SummarizerFactory};
use crate::{Aim, Config, Connector, Hooks, Profile, Summarizer, usage};

/// The fold settings for a model.
pub struct Setup {
    /// The settings.
    pub profile: Profile,
    /// The aim of passes.
    pub aim: Aim,
    /// Whether the window was set explicitly.
    pub has_set_window: bool,
    /// Whether the server's answer about the window is missing, or not there yet.
    pub guessed: bool,
    /// The summarizer.
    pub summarizer: Box<dyn Summarizer + Send>,
    /// The hooks.
    pub hooks: Hooks,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// The reason that there is no setup for a model.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The profile does not exist.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// The window is too small.
    #[error(transparent)]
    Room(#[from] NoRoom),
    /// The summarizer does not exist.
    #[error("no summarizer `{name}`")]
    UnknownSummarizer {
        /// The name that was given.
        name: String,
    },
    /// There is no provider to call.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The learned facts of a model could not be read.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// Facts about a model that its profile does not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelFacts {
    /// Whether the window is the one that the server uses, not a configured one.
    pub found: bool,
    /// Whether the server was asked for the window, and its answer had none.
    pub guessed: bool,
    /// Tokens of the model for each counted one, learned from reported usage.
    pub factor: Option<f64>,
    /// The most bytes of a request.
    pub bytes: Option<u64>,
}

impl Setup {
    /// Joins a resolved profile and known facts; `write` chooses the summarizer.
    pub fn new<E: From<SetupError>>(
        config: &Config,
        resolved: ResolvedProfile,
        facts: ModelFacts,
        write: impl FnOnce(SummarizerFactory<'_>) -> Result<Box<dyn Summarizer + Send>, E>,
    ) -> Result<Setup, E> {
        let has_set_window = !facts.found && is_window_set(&resolved);
        let ResolvedProfile {
            profile,
            warnings,
            origins,
        } = resolved;
        let mut aim = Aim::of(&profile, facts.bytes).map_err(SetupError::from)?;
        aim.recall = config.recall.limits(profile.window);
        if let Some(factor) = facts.factor {
            aim.factor = factor;
        }
        if profile.model.is_empty() {
            // Without a model tokens are counted by our own tokenizer.
            aim.factor = 1.0;
        }
        let condenser = origins.iter().find(|(name, _)| *name == "condense_model");
        let factory = SummarizerFactory {
            config,
            contexts: None,
            profile: &profile,
            is_window_configured: has_set_window,
            of_table: condenser.is_some_and(|(_, origin)| matches!(origin, Origin::Table(_))),
            talks: false,
            timeout: Duration::from_secs(config.summarizer.timeout.value),
        };
        let summarizer = write(factory)?;
        Ok(Setup {
            summarizer,
            hooks: Hooks::of(config),
            profile,
            has_set_window,
            guessed: facts.guessed,
            aim,
            warnings,
        })
    }
}

/// Says whether the window was set explicitly.
pub fn is_window_set(resolved: &ResolvedProfile) -> bool {
    let window = resolved.origins.iter().find(|(name, _)| *name == "window");
    window.is_some_and(|(_, origin)| !matches!(origin, Origin::Table(_) | Origin::Default))
}

/// Returns the settings in effect for a new task with this model and window, if they were chosen.
pub fn in_effect(config: &Config, model: Option<&str>, window: Option<u64>) -> InEffect {
    let asked = ProfileRequest {
        model: model.map(str::to_owned),
        settings: Settings {
            window: window.map(Setting::call),
            ..Settings::default()
        },
        ..ProfileRequest::default()
    };
    // An unknown profile is reported when something is folded.
    let Ok(ResolvedProfile { profile, .. }) = config.resolve(&asked) else {
        return InEffect::default();
    };
    InEffect {
        model: Some(profile.model.clone()).filter(|model| !model.is_empty()),
        context_length: Some(profile.window),
        compression_threshold: Some(profile.threshold.share()),
    }
}

/// Sets up folding for a model of a provider, with `window` if one was chosen.
///
/// If only the server knows the window, the server is asked, which blocks: do not call this on a thread of the runtime.
/// Without a connector, or a configured key where one is needed, no server is asked, and no model writes summaries.
pub fn setup(
    config: &Config,
    contexts: &Contexts,
    connector: Option<&Connector>,
    provider: &Provider,
    model: &str,
    window: Option<u64>,
) -> Result<Setup, SetupError> {
    let ready = connector.filter(|_| connect::is_ready(provider));
    let resolve = |window: Option<u64>| {
        config.resolve(&ProfileRequest {
            model: Some(model.to_owned()),
            profile: None,
            settings: Settings {
                window: window.map(Setting::call),
                ..Settings::default()
            },
        })
    };
    let mut facts = ModelFacts {
        factor: usage::learned_factor(contexts, &provider.name, model)?,
        ..ModelFacts::default()
    };
    let mut resolved = resolve(window)?;
    if !is_window_set(&resolved) {
        let named = usage::named_window(contexts, &provider.name, model)?;
        let (window, guessed) = find_window(config, ready, provider, model, named)?;
        resolved = resolve(window)?;
        (facts.found, facts.guessed) = (true, guessed);
    }
    let mut warning = None;
    let setup = Setup::new(config, resolved, facts, |factory| {
        let factory = SummarizerFactory {
            contexts: Some(contexts),
            talks: true,
            ..factory
        };
        let set = &config.summarizer.name;
        // A model of another provider may write where this one has no key.
        let other = factory.other_provider(None);
        let is_other_ready = other.is_some_and(|(other, _)| connect::is_ready(&other));
        let who = match set.origin {
            Origin::Default if ready.is_none() && !is_other_ready => SummarizerChoice::Extractive,
            Origin::Default => SummarizerChoice::Model(None),
            _ => SummarizerChoice::read(&set.value)?,
        };
        let named = match &who {
            SummarizerChoice::Model(named) => named.as_deref(),
            SummarizerChoice::Extractive | SummarizerChoice::Command(_) => None,
        };
        let connector = match factory.other_provider(named) {
            Some(_) => connector,
            None => ready,
        };
        let asked = match (who, connector) {
            (SummarizerChoice::Extractive, _) => return Ok(factory.built_in()),
            (SummarizerChoice::Command(command), _) => return Ok(factory.command(command)),
            (SummarizerChoice::Model(named), Some(connector)) => {
                factory.model(connector, provider, named.as_deref())
            }
            (SummarizerChoice::Model(_), None) => {
                let name = &provider.name;
                warning = Some(format!(
                    "no key is configured for {name}: no model writes summaries there"
                ));
                return Ok(factory.built_in());
            }
        };
        match asked {
            Err(error) if set.origin == Origin::Default => {
                let other = factory.other_provider(None);
                warning = other.map(|_| format!("{error}: no model writes summaries"));
                Ok(factory.built_in())
            }
            asked => asked,
        }
    });
    let mut setup = setup?;
    setup.warnings.extend(warning);
    Ok(setup)
}

/// Returns the window that a model runs with, if it is known from a source other than the table; and whether a server
/// that should know it did not report it.
fn find_window(
    config: &Config,
    connector: Option<&Connector>,
    provider: &Provider,
    model: &str,
    named: Option<u64>,
) -> Result<(Option<u64>, bool), SetupError> {
    let window = match connector {
        Some(connector) => {
            let connection = connect::connection(connector, config, provider, model)?;
            connect::served_window(config, &connection, named)
        }
        None => named,
    };
    let to = connect::endpoint(provider).map_err(ConnectError::from)?;
    let is_ollama = to.wire == Wire::Ollama;
    let guessed = window.is_none() && (is_ollama || to.is_local()) && connector.is_some();
    Ok((
        window.or(is_ollama.then_some(OLLAMA_DEFAULT_WINDOW)),
        guessed,
    ))
}
