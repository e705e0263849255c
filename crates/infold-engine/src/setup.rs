use std::time::Duration;

use infold_log::NoRoom;
use infold_store::{Contexts, InEffect, TaskError};
use infold_wire::Wire;

use crate::config::{Asked, NoProfile, Provider};
use crate::connect::{self, ConnectError, OLLAMAS_OWN};
use crate::profile::{Origin, Resolved, Set, Settings};
use crate::summarizer::{Pen, Who};
use crate::{Aim, Config, Hooks, Profile, Summarizer, Switchboard, usage};

/// How to fold for a model.
pub struct Setup {
    /// All that decides it.
    pub profile: Profile,
    /// What to aim at.
    pub aim: Aim,
    /// Somebody chose the window.
    pub told: bool,
    /// The server was asked for the window, and does not say, or not yet.
    pub guessed: bool,
    /// Who writes summaries.
    pub summarizer: Box<dyn Summarizer + Send>,
    /// Whom to tell.
    pub hooks: Hooks,
    /// What the person should know.
    pub warnings: Vec<String>,
}

/// Why nothing can be folded for a model.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A profile is not there.
    #[error(transparent)]
    Profile(#[from] NoProfile),
    /// The window is too small for anything.
    #[error(transparent)]
    Room(#[from] NoRoom),
    /// Nobody writes summaries by that name.
    #[error("no summarizer `{who}`")]
    Who {
        /// What was said.
        who: String,
    },
    /// There is nobody to ask.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// What was learned of a model could not be read.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// What else is known of a model, beside its profile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The window is what its server runs it with: nobody chose it.
    pub found: bool,
    /// Its server was asked, and did not say.
    pub guessed: bool,
    /// Tokens of it for each that we count, as learned from what was reported.
    pub factor: Option<f64>,
    /// How many bytes a request may have.
    pub bytes: Option<u64>,
}

impl Setup {
    /// Puts together what was resolved and what is known; `write` says who writes summaries.
    pub fn new<E: From<SetupError>>(
        config: &Config,
        resolved: Resolved,
        known: Known,
        write: impl FnOnce(Pen<'_>) -> Result<Box<dyn Summarizer + Send>, E>,
    ) -> Result<Setup, E> {
        let told = !known.found && is_told(&resolved);
        let Resolved {
            profile,
            warnings,
            origins,
        } = resolved;
        let mut aim = Aim::of(&profile, known.bytes).map_err(SetupError::from)?;
        if let Some(factor) = known.factor {
            aim.factor = factor;
        }
        if profile.model.is_empty() {
            // Nobody named a tokenizer: tokens are what we count.
            aim.factor = 1.0;
        }
        let condenser = origins.iter().find(|(name, _)| *name == "condense_model");
        let pen = Pen {
            config,
            contexts: None,
            profile: &profile,
            told,
            of_table: condenser.is_some_and(|(_, origin)| matches!(origin, Origin::Table(_))),
            talks: false,
            timeout: Duration::from_secs(config.summarizer.timeout.value),
        };
        let summarizer = write(pen)?;
        Ok(Setup {
            summarizer,
            hooks: Hooks::of(config),
            profile,
            told,
            guessed: known.guessed,
            aim,
            warnings,
        })
    }
}

/// Says whether the window is one that somebody chose.
pub fn is_told(resolved: &Resolved) -> bool {
    let window = resolved.origins.iter().find(|(name, _)| *name == "window");
    window.is_some_and(|(_, origin)| !matches!(origin, Origin::Table(_) | Origin::Default))
}

/// What holds for a new task with this model and window, if they were chosen.
pub fn in_effect(config: &Config, model: Option<&str>, window: Option<u64>) -> InEffect {
    let asked = Asked {
        model: model.map(str::to_owned),
        settings: Settings {
            window: window.map(Set::call),
            ..Settings::default()
        },
        ..Asked::default()
    };
    // A profile that is not there is told of by whoever folds.
    let Ok(Resolved { profile, .. }) = config.resolve(&asked) else {
        return InEffect::default();
    };
    InEffect {
        model: Some(profile.model.clone()).filter(|model| !model.is_empty()),
        context_length: Some(profile.window),
        compression_threshold: Some(profile.threshold.share()),
    }
}

/// How to fold for a model of a provider, with `window` if somebody chose one.
///
/// Where only its server knows the window, it is asked: not on a thread of the runtime. Without
/// a switchboard, or a key of our own where one is wanted, nobody is asked, and no model writes
/// summaries.
pub fn setup(
    config: &Config,
    contexts: &Contexts,
    switchboard: Option<&Switchboard>,
    provider: &Provider,
    model: &str,
    window: Option<u64>,
) -> Result<Setup, SetupError> {
    let board = switchboard.filter(|_| connect::is_ready(provider));
    let resolve = |window: Option<u64>| {
        config.resolve(&Asked {
            model: Some(model.to_owned()),
            profile: None,
            settings: Settings {
                window: window.map(Set::call),
                ..Settings::default()
            },
        })
    };
    let mut known = Known {
        factor: usage::learned(contexts, &provider.name, model)?,
        ..Known::default()
    };
    let mut resolved = resolve(window)?;
    if !is_told(&resolved) {
        let named = usage::named_window(contexts, &provider.name, model)?;
        let (window, guessed) = found(config, board, provider, model, named)?;
        resolved = resolve(window)?;
        (known.found, known.guessed) = (true, guessed);
    }
    let mut warning = None;
    let made = Setup::new(config, resolved, known, |pen| {
        let pen = Pen {
            contexts: Some(contexts),
            talks: true,
            ..pen
        };
        let set = &config.summarizer.name;
        // A model of another provider may write where ours has no key.
        let other = pen.other_provider(None);
        let other = other
            .filter(|(other, _)| connect::is_ready(other))
            .is_some();
        let who = match set.origin {
            Origin::Default if board.is_none() && !other => Who::Extractive,
            Origin::Default => Who::Model(None),
            _ => Who::read(&set.value)?,
        };
        let named = match &who {
            Who::Model(named) => named.as_deref(),
            Who::Extractive | Who::Command(_) => None,
        };
        let board = match pen.other_provider(named) {
            Some(_) => switchboard,
            None => board,
        };
        let asked = match (who, board) {
            (Who::Extractive, _) => return Ok(pen.built_in()),
            (Who::Command(command), _) => return Ok(pen.command(command)),
            (Who::Model(named), Some(board)) => pen.model(board, provider, named.as_deref()),
            (Who::Model(_), None) => {
                let name = &provider.name;
                warning = Some(format!(
                    "there is no key of our own for {name}: no model writes summaries there"
                ));
                return Ok(pen.built_in());
            }
        };
        match asked {
            Err(error) if set.origin == Origin::Default => {
                let other = pen.other_provider(None);
                warning = other.map(|_| format!("{error}: no model writes summaries"));
                Ok(pen.built_in())
            }
            asked => asked,
        }
    });
    let mut setup = made?;
    setup.warnings.extend(warning);
    Ok(setup)
}

/// The window that a model runs with, if anybody but the table knows; and whether a server that
/// should know did not say.
fn found(
    config: &Config,
    board: Option<&Switchboard>,
    provider: &Provider,
    model: &str,
    named: Option<u64>,
) -> Result<(Option<u64>, bool), SetupError> {
    let window = match board {
        Some(board) => {
            let connection = connect::connection(board, config, provider, model)?;
            connect::running(config, &connection, named)
        }
        None => named,
    };
    let to = connect::endpoint(provider).map_err(ConnectError::from)?;
    let usual = Some(OLLAMAS_OWN).filter(|_| to.wire == Wire::Ollama);
    let knows = to.wire == Wire::Ollama || to.is_local();
    Ok((
        window.or(usual),
        window.is_none() && knows && board.is_some(),
    ))
}
