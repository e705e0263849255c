//! Options that decide how a conversation is folded, and the setup that follows from them.

use std::time::Duration;

use clap::Args;
use infold::config::{ProfileRequest, UnknownProfile};
use infold::profile::{Origin, ResolvedProfile, Setting, Settings};
use infold::setup::{self, is_window_set};
use infold::summarizer::{SummarizerChoice, SummarizerFactory};
use infold::{Config, Setup, SetupError, Strategy};
use infold_log::NoRoom;

use crate::call_runtime::CallRuntime;
use crate::error::{CliError, CliResult};
use crate::model_access::{ModelAccess, SummarizerAndRuntime};

/// The flags that decide how to fold.
#[derive(Clone, Debug, Default, Args)]
pub struct FoldOptions {
    /// The model's window in tokens, such as 8000, 32k or 1m
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub window: Option<u64>,
    /// The model, which sets window, tokenizer and defaults (`infold models`)
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// What to keep and the form of the summary: infold, roo, gemini, file or truncate
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<Strategy>,
    /// Fold when this share of the window is used: 0.75 or 75
    #[arg(long, value_name = "SHARE", value_parser = parse_threshold)]
    pub threshold: Option<f64>,
    /// The length of the reply to reserve room for
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub max_tokens: Option<u64>,
    /// The maximum size of a request
    #[arg(long, value_name = "BYTES", value_parser = parse_tokens)]
    pub max_bytes: Option<u64>,
    /// The summarizer: extractive, model, model:NAME, or command:… which reads the transcript on standard input
    #[arg(long, value_name = "SUMMARIZER")]
    pub summarizer: Option<String>,
    /// The time limit of a summary, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub summarizer_timeout: Option<u64>,
    /// Use this profile of the configuration
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
}

/// The fold settings, and the runtime of the summarizer.
pub struct FoldSetup {
    /// The aim, profile, summarizer and hooks.
    pub setup: Setup,
    // Calls of a summarizing model end when this is dropped.
    _runtime: Option<CallRuntime>,
}

impl FoldOptions {
    /// Combines the flags, the task, the configuration and the defaults.
    pub fn setup(
        &self,
        config: &Config,
        model: TaskModel,
        access: ModelAccess<'_>,
        json: bool,
    ) -> CliResult<FoldSetup> {
        let resolved = self.resolve(config, &model)?;
        for warning in &resolved.warnings {
            CliError::usage(warning).warn(json);
        }
        let known = setup::ModelFacts {
            found: model.is_detected,
            // The factor was learned for the task's model, not for the one of the flag.
            factor: model.factor.filter(|_| self.model.is_none()),
            bytes: self.max_bytes,
            ..setup::ModelFacts::default()
        };
        let mut runtime = None;
        let setup = Setup::new(config, resolved, known, |factory| {
            let seconds = self.summarizer_timeout;
            let factory = SummarizerFactory {
                contexts: access.contexts,
                talks: access.conversation.is_some(),
                timeout: Duration::from_secs(seconds.unwrap_or(config.summarizer.timeout.value)),
                ..factory
            };
            let (summarizer, own) =
                self.summarizer(&factory, access, model.provider.as_deref(), json)?;
            runtime = own;
            Ok::<_, CliError>(summarizer)
        })?;
        Ok(FoldSetup {
            setup,
            _runtime: runtime,
        })
    }

    /// Returns whether the flags, the task or the configuration set a window.
    pub fn sets_window(&self, config: &Config, model: &TaskModel) -> CliResult<bool> {
        Ok(is_window_set(&self.resolve(config, model)?))
    }

    fn resolve(&self, config: &Config, model: &TaskModel) -> CliResult<ResolvedProfile> {
        let strategy = self
            .strategy
            .map(|strategy| Setting::call(strategy.name.to_owned()));
        let asked = ProfileRequest {
            model: self.model.clone().or_else(|| model.name.clone()),
            profile: self.profile.clone(),
            settings: Settings {
                window: self.window.or(model.window).map(Setting::call),
                threshold: self.threshold.map(Setting::call),
                max_tokens: self.max_tokens.map(Setting::call),
                strategy,
                ..Settings::default()
            },
        };
        config.resolve(&asked).map_err(no_profile)
    }

    fn summarizer(
        &self,
        factory: &SummarizerFactory<'_>,
        access: ModelAccess<'_>,
        task_provider: Option<&str>,
        json: bool,
    ) -> CliResult<SummarizerAndRuntime> {
        let configured = &factory.config.summarizer.name;
        let built_in = || (factory.built_in(), None);
        let name = match &self.summarizer {
            Some(name) => name,
            None if configured.origin == Origin::Default && access.prefer_model => {
                let model = access.available_model(factory, task_provider);
                if let (None, Some((other, model))) = (&model, factory.other_provider(None)) {
                    let text = format!("{model} of {} is not available for summaries", other.name);
                    CliError::provider(text).warn(json);
                }
                return Ok(model.unwrap_or_else(built_in));
            }
            None if configured.origin == Origin::Default => return Ok(built_in()),
            // Files are folded without a model unless a flag asks for one.
            None if configured.value.starts_with("model") && !access.prefer_model => {
                return Ok(built_in());
            }
            None => &configured.value,
        };
        match SummarizerChoice::read(name)? {
            SummarizerChoice::Extractive => Ok(built_in()),
            SummarizerChoice::Model(name) => access.model(factory, task_provider, name.as_deref()),
            SummarizerChoice::Command(command) => Ok((factory.command(command), None)),
        }
    }
}

impl From<SetupError> for CliError {
    fn from(error: SetupError) -> CliError {
        match error {
            SetupError::Profile(error) => no_profile(error),
            SetupError::Room(error) => error.into(),
            SetupError::Connect(error) => error.into(),
            SetupError::Task(error) => error.into(),
            error @ SetupError::UnknownSummarizer { .. } => CliError::usage(error).hint(
                "extractive, model, model:NAME, or command: and a shell command, such as command:'ollama run llama3'",
            ),
        }
    }
}

/// Makes the error for a profile that does not exist.
pub fn no_profile(error: UnknownProfile) -> CliError {
    let hint = if error.all.is_empty() {
        "the configuration has no profiles".to_owned()
    } else {
        format!("available: {}", error.all.join(", "))
    };
    CliError::usage(error).hint(hint)
}

/// The known facts about a task's model.
#[derive(Clone, Debug, Default)]
pub struct TaskModel {
    /// The model's provider.
    pub provider: Option<String>,
    /// The model's name.
    pub name: Option<String>,
    /// The model's window.
    pub window: Option<u64>,
    /// The server reported the window: the user did not choose it.
    pub is_detected: bool,
    /// The model's tokens per token that we count, learned from reported usage.
    pub factor: Option<f64>,
}

impl From<NoRoom> for CliError {
    fn from(error: NoRoom) -> CliError {
        CliError::usage(error)
            .hint("use a larger --window, or a smaller --max-tokens for the reply")
    }
}

/// Parses a number of tokens or bytes: 8000, 32k, 1.5m.
pub fn parse_tokens(text: &str) -> Result<u64, String> {
    infold::config::tokens::parse(text)
        .ok_or_else(|| "must be a number such as 8000, 32k or 1m".to_owned())
}

fn parse_threshold(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse();
    let number: f64 = number.map_err(|_| "must be a share such as 0.75 or 75".to_owned())?;
    infold::Threshold::new(number).map_err(|error| error.to_string())?;
    Ok(number)
}
