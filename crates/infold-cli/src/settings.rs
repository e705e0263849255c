use std::time::Duration;

use clap::Args;
use infold::config::{ProfileRequest, UnknownProfile};
use infold::profile::{Origin, ResolvedProfile, Setting, Settings};
use infold::setup::{self, is_window_set};
use infold::summarizer::{SummarizerChoice, SummarizerFactory};
use infold::{Config, Setup, SetupError, Strategy};
use infold_log::NoRoom;

use crate::connect::Calls;
use crate::failure::{Failure, Kind};
use crate::pen::{Made, Reach};

/// What a person may say of how to fold.
#[derive(Clone, Debug, Default, Args)]
pub struct Choice {
    /// How many tokens the model takes, such as 8000, 32k or 1m
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    pub window: Option<u64>,
    /// The model, which says window, tokenizer and defaults (`infold models`)
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// What to keep and how the summary looks: infold, roo, gemini, file or truncate
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<Strategy>,
    /// From what share of the window on to fold: 0.75 or 75
    #[arg(long, value_name = "SHARE", value_parser = threshold)]
    pub threshold: Option<f64>,
    /// How long a reply to leave room for
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    pub max_tokens: Option<u64>,
    /// How many bytes a request may have
    #[arg(long, value_name = "BYTES", value_parser = tokens)]
    pub max_bytes: Option<u64>,
    /// Who writes summaries: extractive, model, model:NAME, or command:… with the transcript on its standard input
    #[arg(long, value_name = "WHO")]
    pub summarizer: Option<String>,
    /// How long a summary may take, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub summarizer_timeout: Option<u64>,
    /// With this profile of the configuration
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
}

/// What came of it.
pub struct Chosen {
    /// How to fold.
    pub setup: Setup,
    // A model that writes summaries is called with these.
    _calls: Option<Calls>,
}

impl Choice {
    /// Puts together what was said, what the task knows, the configuration and what is built in.
    pub fn chosen(
        &self,
        config: &Config,
        known: Known,
        reach: Reach<'_>,
        json: bool,
    ) -> Result<Chosen, Failure> {
        let resolved = self.resolved(config, &known)?;
        for warning in &resolved.warnings {
            Failure::new(Kind::Usage, warning).warn(json);
        }
        let of_task = known.provider;
        let known = setup::ModelFacts {
            found: known.found,
            // What was learned is of the task's own model, not of another one.
            factor: known.factor.filter(|_| self.model.is_none()),
            bytes: self.max_bytes,
            ..setup::ModelFacts::default()
        };
        let mut own = None;
        let setup = Setup::new(config, resolved, known, |pen| {
            let pen = SummarizerFactory {
                contexts: reach.contexts,
                talks: reach.talk.is_some(),
                timeout: self.timeout(config),
                ..pen
            };
            let (summarizer, calls) = self.summarizer(&pen, reach, of_task.as_deref(), json)?;
            own = calls;
            Ok::<_, Failure>(summarizer)
        })?;
        Ok(Chosen { setup, _calls: own })
    }

    /// Says whether anybody chose a window: this call, the task, the configuration.
    pub fn tells_window(&self, config: &Config, known: &Known) -> Result<bool, Failure> {
        Ok(is_window_set(&self.resolved(config, known)?))
    }

    fn resolved(&self, config: &Config, known: &Known) -> Result<ResolvedProfile, Failure> {
        let settings = Settings {
            window: self.window.or(known.window).map(Setting::call),
            threshold: self.threshold.map(Setting::call),
            max_tokens: self.max_tokens.map(Setting::call),
            strategy: self
                .strategy
                .map(|strategy| Setting::call(strategy.name.to_owned())),
            ..Settings::default()
        };
        let asked = ProfileRequest {
            model: self.model.clone().or_else(|| known.model.clone()),
            profile: self.profile.clone(),
            settings,
        };
        config.resolve(&asked).map_err(no_profile)
    }

    fn timeout(&self, config: &Config) -> Duration {
        let seconds = self.summarizer_timeout;
        Duration::from_secs(seconds.unwrap_or(config.summarizer.timeout.value))
    }

    fn summarizer(
        &self,
        pen: &SummarizerFactory<'_>,
        reach: Reach<'_>,
        of_task: Option<&str>,
        json: bool,
    ) -> Result<Made, Failure> {
        let set = &pen.config.summarizer.name;
        let built_in = || (pen.built_in(), None);
        let who = match &self.summarizer {
            Some(who) => who,
            None if set.origin == Origin::Default => {
                let any = reach.usual.then(|| reach.if_any(pen, of_task)).flatten();
                let other = pen.other_provider(None).filter(|_| reach.usual);
                if let (None, Some((other, model))) = (&any, other) {
                    let (name, text) = (other.name, "cannot be asked for summaries");
                    Failure::new(Kind::Provider, format!("{model} of {name} {text}")).warn(json);
                }
                return Ok(any.unwrap_or_else(built_in));
            }
            // Files are folded without a model, unless this call asks for one.
            None if set.value.starts_with("model") && !reach.usual => return Ok(built_in()),
            None => &set.value,
        };
        match SummarizerChoice::read(who)? {
            SummarizerChoice::Extractive => Ok(built_in()),
            SummarizerChoice::Model(named) => reach.model(pen, of_task, named.as_deref()),
            SummarizerChoice::Command(command) => Ok((pen.command(command), None)),
        }
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Failure {
        match error {
            SetupError::Profile(error) => no_profile(error),
            SetupError::Room(error) => error.into(),
            SetupError::Connect(error) => error.into(),
            SetupError::Task(error) => error.into(),
            error @ SetupError::Who { .. } => Failure::new(Kind::Usage, error).hint(
                "extractive, model, model:NAME, or command: and what the shell should run, such as command:'ollama run llama3'",
            ),
        }
    }
}

/// What to say of a profile that is not there.
pub fn no_profile(error: UnknownProfile) -> Failure {
    let hint = match error.all.is_empty() {
        true => "the configuration has no profiles".to_owned(),
        false => format!("there are {}", error.all.join(", ")),
    };
    Failure::new(Kind::Usage, error).hint(hint)
}

/// What a task knows of its model.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Whose it is.
    pub provider: Option<String>,
    /// Its name.
    pub model: Option<String>,
    /// Its window.
    pub window: Option<u64>,
    /// The window is what the server runs it with: nobody chose it.
    pub found: bool,
    /// Tokens of it for each that we count, as learned from what was reported.
    pub factor: Option<f64>,
}

impl From<NoRoom> for Failure {
    fn from(error: NoRoom) -> Failure {
        Failure::new(Kind::Usage, error)
            .hint("give a larger --window, or a smaller --max-tokens for the reply")
    }
}

/// Reads a number of tokens or bytes: 8000, 32k, 1.5m.
pub fn tokens(text: &str) -> Result<u64, String> {
    infold::config::tokens::parse(text)
        .ok_or_else(|| "give a number such as 8000, 32k or 1m".to_owned())
}

fn threshold(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .trim_end_matches('%')
        .parse()
        .map_err(|_| "give a share such as 0.75 or 75".to_owned())?;
    infold::Threshold::new(number).map_err(|error| error.to_string())?;
    Ok(number)
}
