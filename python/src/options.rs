//! The options of `fold` and `manage`: how much is folded, and which summarizer is used.

use std::time::Duration;

use infold::config::ProfileRequest;
use infold::config::tokens::parse as parse_tokens;
use infold::profile::{Setting, Settings};
use infold::setup::{ModelFacts, is_window_set};
use infold::summarizer::{SummarizerChoice, SummarizerFactory};
use infold::{Config, Setup, SetupError, Strategy, Summarizer, Threshold};
use pyo3::prelude::*;

use crate::failure::BindingError;
use crate::function_summarizer::{FunctionSummarizer, Raised};

/// The options as keyword arguments of Python. `package/infold` builds the dictionary: every item is there, and numbers
/// of tokens and bytes are texts.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct FoldKeywords {
    window: Option<String>,
    model: Option<String>,
    strategy: Option<String>,
    threshold: Option<f64>,
    max_tokens: Option<String>,
    max_bytes: Option<String>,
    summarizer: Option<SummarizerOption>,
    summarizer_timeout: Option<f64>,
    force: bool,
}

/// The summarizer to use: one chosen by name, or a Python function with its name for reports.
#[derive(FromPyObject)]
enum SummarizerOption {
    Name(String),
    Function(Py<PyAny>, String),
}

/// What is known about a task's model; nothing for a fold without a task.
#[derive(Default)]
pub struct KnownModel {
    /// The name of the model.
    pub name: Option<String>,
    /// The number of tokens that the model accepts.
    pub window: Option<u64>,
    /// The model's tokens per token that we count, learned from reported usage.
    pub factor: Option<f64>,
}

impl FoldKeywords {
    /// Combines the options, the task's model and the defaults. No configuration file is read.
    ///
    /// The second value will contain the exception of the summarizer function if it raises one that must end the fold,
    /// such as `KeyboardInterrupt`.
    pub fn setup(
        &self,
        model: KnownModel,
        needs_window: bool,
    ) -> Result<(Setup, Raised), BindingError> {
        let config = Config::default();
        let window = number("window", self.window.as_deref())?.or(model.window);
        let strategy = self.strategy.as_deref().map(str::parse::<Strategy>);
        let strategy = strategy.transpose().map_err(BindingError::usage)?;
        if let Some(share) = self.threshold {
            Threshold::new(share).map_err(BindingError::usage)?;
        }
        let max_tokens = number("max_tokens", self.max_tokens.as_deref())?;
        let request = ProfileRequest {
            model: self.model.clone().or(model.name),
            profile: None,
            settings: Settings {
                window: window.map(Setting::call),
                threshold: self.threshold.map(Setting::call),
                max_tokens: max_tokens.map(Setting::call),
                strategy: strategy.map(|strategy| Setting::call(strategy.name.to_owned())),
                ..Settings::default()
            },
        };
        let resolved = config.resolve(&request).map_err(BindingError::usage)?;
        if needs_window && request.model.is_none() && !is_window_set(&resolved) {
            return Err(BindingError::usage("no window given")
                .hint("use window=32_000, or model=\"…\" for that model's window"));
        }
        let facts = ModelFacts {
            // The factor was learned for the task's model, and does not hold for a model that the options name.
            factor: model.factor.filter(|_| self.model.is_none()),
            bytes: number("max_bytes", self.max_bytes.as_deref())?,
            ..ModelFacts::default()
        };
        let raised = Raised::default();
        let mut setup = Setup::new(&config, resolved, facts, |factory| {
            self.summarizer(factory, &raised)
        })?;
        setup.aim.forced = self.force;
        Ok((setup, raised))
    }

    /// Returns the summarizer that the options choose; by default the built-in extractive one.
    fn summarizer(
        &self,
        factory: SummarizerFactory<'_>,
        raised: &Raised,
    ) -> Result<Box<dyn Summarizer + Send>, BindingError> {
        let timeout = match self.summarizer_timeout {
            None => factory.timeout,
            Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(BindingError::usage)?,
        };
        let factory = SummarizerFactory { timeout, ..factory };
        let name = match &self.summarizer {
            None => return Ok(factory.built_in()),
            Some(SummarizerOption::Function(function, name)) => {
                return Ok(Box::new(FunctionSummarizer {
                    function: Python::attach(|py| function.clone_ref(py)),
                    name: name.clone(),
                    raised: raised.clone(),
                }));
            }
            Some(SummarizerOption::Name(name)) => name,
        };
        match SummarizerChoice::read(name) {
            Ok(SummarizerChoice::Extractive) => Ok(factory.built_in()),
            Ok(SummarizerChoice::Command(command)) => Ok(factory.command(command)),
            Ok(SummarizerChoice::Model(_)) => Err(BindingError::usage(format!(
                "the summarizer `{name}` is one of the command, not of the library"
            ))
            .hint("give a function that calls your model: summarizer=lambda text, tokens: …")),
            Err(error @ SetupError::UnknownSummarizer { .. }) => Err(BindingError::usage(error).hint(
                "\"extractive\", \"command:…\", or a function of the text and a number of tokens",
            )),
            Err(error) => Err(error.into()),
        }
    }
}

/// Parses an option that is a number of tokens or bytes, such as `32k`.
fn number(name: &str, text: Option<&str>) -> Result<Option<u64>, BindingError> {
    let Some(text) = text else { return Ok(None) };
    let number = parse_tokens(text).ok_or_else(|| {
        BindingError::usage(format!("{name}: `{text}` is no number of that kind"))
            .hint("such as 8000, \"32k\" or \"1m\"")
    });
    number.map(Some)
}
