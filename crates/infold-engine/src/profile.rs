use std::fmt;

use crate::models::{Model, Prices, Tokenizer, UNKNOWN_WINDOW};

/// All that decides how a conversation with one model is folded.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The model's name, as it was asked for; empty if it was not.
    pub model: String,
    /// Whose model it is, as far as known.
    pub provider: Option<String>,
    /// How many tokens a request may hold.
    pub window: u64,
    /// How many tokens a reply may have, as far as known.
    pub max_output: Option<u64>,
    /// How many tokens a reply is asked to have at most, if that was said.
    pub max_tokens: Option<u64>,
    /// When to start folding.
    pub threshold: Threshold,
    /// Whether to fold at the threshold without being told to.
    pub auto: bool,
    /// How much to keep of what is newest.
    pub keep: Keep,
    /// How large a summary may be against what it replaces.
    pub ratio: f64,
    /// The model that writes summaries.
    pub condense_model: String,
    /// What it is asked, if not the strategy's own prompt.
    pub prompt: Option<String>,
    /// The name of the strategy.
    pub strategy: String,
    /// How the model cuts text.
    pub tokenizer: Tokenizer,
    /// By how much to multiply counted tokens before any usage was reported.
    pub factor: f64,
    /// What the model costs.
    pub prices: Option<Prices>,
}

/// How full the window may be before folding starts: 5 to 100 percent.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Threshold(f64);

/// How much to keep of what is newest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// So many messages, widened to rounds.
    Messages(u32),
    /// This share, more than 0 and less than 1; of what is for the strategy to say.
    Share(f64),
}

/// A number that is no threshold.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0} is no threshold: give a fraction from 0.05 to 1 or a percentage from 5 to 100")]
pub struct NoThreshold(pub f64);

impl Threshold {
    /// Reads a number as people write it: up to 1 it is a fraction, above it is a percentage.
    pub fn new(number: f64) -> Result<Threshold, NoThreshold> {
        let percent = if number <= 1.0 {
            number * 100.0
        } else {
            number
        };
        // Written so that what is not a number is refused too.
        match (5.0..=100.0).contains(&percent) {
            true => Ok(Threshold(percent)),
            false => Err(NoThreshold(number)),
        }
    }

    /// The same, where `-1` stands for what the next layer says.
    pub fn inherit(number: f64) -> Result<Option<Threshold>, NoThreshold> {
        match number {
            -1.0 => Ok(None),
            _ => Threshold::new(number).map(Some),
        }
    }

    /// As a percentage, from 5 to 100.
    pub fn percent(self) -> f64 {
        self.0
    }

    /// How many tokens of a window it is, rounded up.
    pub fn of(self, window: u64) -> u64 {
        (window as f64 * self.0 / 100.0).ceil() as u64
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Two places are enough, and 0.07 × 100 would show more.
        write!(f, "{} %", (self.0 * 100.0).round() / 100.0)
    }
}

impl Keep {
    /// Reads a number as people write it: below 1 it is a share, else a number of messages.
    pub fn new(number: f64) -> Option<Keep> {
        match number {
            _ if number > 0.0 && number < 1.0 => Some(Keep::Share(number)),
            _ if number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0 => {
                Some(Keep::Messages(number as u32))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::Messages(1) => write!(f, "1 message"),
            Keep::Messages(count) => write!(f, "{count} messages"),
            Keep::Share(share) => write!(f, "{} %", (share * 1e4).round() / 100.0),
        }
    }
}

/// What a strategy brings along, for whatever nobody else has set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// When to start folding.
    pub threshold: Threshold,
    /// How much to keep of what is newest.
    pub keep: Keep,
    /// How large a summary may be against what it replaces.
    pub ratio: f64,
}

impl Preset {
    /// What the strategy of that name brings along.
    pub fn of(strategy: &str) -> Option<Preset> {
        let (percent, keep, ratio) = match strategy {
            "infold" => (75.0, Keep::Share(0.2), 0.25),
            "roo" => (75.0, Keep::Messages(3), 0.25),
            "gemini" => (50.0, Keep::Share(0.3), 0.25),
            "file" => (70.0, Keep::Messages(5), 0.35),
            _ => return None,
        };
        Some(Preset {
            threshold: Threshold(percent),
            keep,
            ratio,
        })
    }
}

/// The strategies there are.
pub const STRATEGIES: [&str; 4] = ["infold", "roo", "gemini", "file"];

/// The strategy when none is named.
pub const DEFAULT_STRATEGY: &str = "infold";

/// One layer of settings; what it leaves out, the next one says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How many tokens a request may hold.
    pub window: Option<Set<u64>>,
    /// When to start folding, as it was written: see [`Threshold::inherit`].
    pub threshold: Option<Set<f64>>,
    /// Whether to fold at the threshold without being told to.
    pub auto: Option<Set<bool>>,
    /// How much to keep of what is newest.
    pub keep: Option<Set<Keep>>,
    /// How large a summary may be against what it replaces.
    pub ratio: Option<Set<f64>>,
    /// The model that writes summaries.
    pub condense_model: Option<Set<String>>,
    /// What it is asked.
    pub prompt: Option<Set<String>>,
    /// The name of the strategy.
    pub strategy: Option<Set<String>>,
    /// How many tokens a reply is asked to have at most.
    pub max_tokens: Option<Set<u64>>,
}

/// A value and where it was set.
#[derive(Clone, Debug, PartialEq)]
pub struct Set<T> {
    /// The value.
    pub value: T,
    /// Where it was set.
    pub origin: Origin,
}

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// By whoever called: a flag of the command.
    Call,
    /// In the configuration.
    Line {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// By a variable of the environment.
    Env(String),
    /// In the built-in table of models, in the row of this name.
    Table(String),
    /// By a strategy of this name.
    Strategy(String),
    /// Nowhere: it is what infold does by itself.
    Default,
}

impl<T> Set<T> {
    /// A value and where it was set.
    pub fn new(value: T, origin: Origin) -> Set<T> {
        Set { value, origin }
    }

    /// A value that the caller gave.
    pub fn call(value: T) -> Set<T> {
        Set::new(value, Origin::Call)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Call => write!(f, "command line"),
            Origin::Line { file, line } => write!(f, "{file}:{line}"),
            Origin::Env(name) => write!(f, "environment {name}"),
            Origin::Table(name) => write!(f, "model table: {name}"),
            Origin::Strategy(name) => write!(f, "strategy {name}"),
            Origin::Default => write!(f, "default"),
        }
    }
}

/// A profile, where each of its values comes from, and what was wrong on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The profile.
    pub profile: Profile,
    /// The name of each value and where it was set, in the order of the fields.
    pub origins: Vec<(&'static str, Origin)>,
    /// What the person should know: values that were passed over, a model nobody knows.
    pub warnings: Vec<String>,
}

impl Profile {
    /// Puts a profile together: for each value the first layer that sets it, then the model's
    /// row of the table, then the strategy's preset.
    ///
    /// `model` is its name (empty: none named) and what is known of it.
    pub fn resolve(
        name: &str,
        model: Option<&Model>,
        layers: &[Settings],
        preset: impl Fn(&str) -> Option<Preset>,
    ) -> Resolved {
        let mut warnings = Vec::new();
        let (strategy, preset) = strategy(layers, preset, &mut warnings);
        let row = model.map(|model| Origin::Table(model.name.clone()));
        let table = |value: Option<u64>| value.zip(row.clone()).map(|(v, o)| Set::new(v, o));
        let by_strategy = || Origin::Strategy(strategy.value.clone());

        let window = first(layers, |layer| layer.window.clone())
            .or_else(|| table(model.map(|model| model.window)))
            .unwrap_or_else(|| {
                if !name.is_empty() {
                    warnings.push(format!(
                        "nothing is known of model `{name}`: a window of {UNKNOWN_WINDOW} tokens is assumed"
                    ));
                }
                Set::new(UNKNOWN_WINDOW, Origin::Default)
            });
        let threshold = threshold(layers, &mut warnings)
            .or_else(|| known(model, |model| model.threshold))
            .unwrap_or_else(|| Set::new(preset.threshold, by_strategy()));
        // A number of messages from the table does not replace a share: it is another measure.
        let counted = matches!(preset.keep, Keep::Messages(_));
        let keep = first(layers, |layer| layer.keep.clone())
            .or_else(|| known(model, |model| model.keep.filter(|_| counted)))
            .unwrap_or_else(|| Set::new(preset.keep, by_strategy()));
        let ratio = first(layers, |layer| layer.ratio.clone())
            .or_else(|| known(model, |model| model.ratio))
            .unwrap_or_else(|| Set::new(preset.ratio, by_strategy()));
        let auto =
            first(layers, |layer| layer.auto.clone()).unwrap_or(Set::new(true, Origin::Default));
        let condense_model = first(layers, |layer| layer.condense_model.clone())
            .or_else(|| known(model, |model| model.condense_model.clone()))
            .unwrap_or_else(|| Set::new(name.to_owned(), Origin::Default));
        let prompt = first(layers, |layer| layer.prompt.clone());
        let max_tokens = first(layers, |layer| layer.max_tokens.clone());
        let tokenizer = model.map_or(Tokenizer::Other, |model| model.tokenizer);

        let set = |origin: &Option<Origin>| origin.clone().unwrap_or(Origin::Default);
        let origins = vec![
            ("window", window.origin),
            ("max_output", set(&row)),
            (
                "max_tokens",
                set(&max_tokens.as_ref().map(|set| set.origin.clone())),
            ),
            ("threshold", threshold.origin),
            ("auto", auto.origin),
            ("keep", keep.origin),
            ("ratio", ratio.origin),
            ("condense_model", condense_model.origin),
            (
                "prompt",
                prompt
                    .as_ref()
                    .map_or_else(by_strategy, |set| set.origin.clone()),
            ),
            ("strategy", strategy.origin.clone()),
            ("tokenizer", set(&row)),
            ("factor", set(&row)),
            ("prices", set(&row)),
        ];
        let profile = Profile {
            model: name.to_owned(),
            provider: model.map(|model| model.provider.clone()),
            window: window.value,
            max_output: model.map(|model| model.max_output),
            max_tokens: max_tokens.map(|set| set.value),
            threshold: threshold.value,
            auto: auto.value,
            keep: keep.value,
            ratio: ratio.value,
            condense_model: condense_model.value,
            prompt: prompt.map(|set| set.value),
            strategy: strategy.value,
            tokenizer,
            factor: tokenizer.factor(),
            prices: model.and_then(|model| model.prices),
        };
        Resolved {
            profile,
            origins,
            warnings,
        }
    }
}

fn first<T>(layers: &[Settings], get: impl Fn(&Settings) -> Option<Set<T>>) -> Option<Set<T>> {
    layers.iter().find_map(get)
}

fn known<T>(model: Option<&Model>, get: impl Fn(&Model) -> Option<T>) -> Option<Set<T>> {
    let model = model?;
    let origin = Origin::Table(model.name.clone());
    get(model).map(|value| Set::new(value, origin))
}

/// The first threshold that is one; -1 leaves it to the next layer, and so does, with a
/// warning, a number that is none.
fn threshold(layers: &[Settings], warnings: &mut Vec<String>) -> Option<Set<Threshold>> {
    let written = layers.iter().filter_map(|layer| layer.threshold.as_ref());
    for set in written {
        match Threshold::inherit(set.value) {
            Ok(Some(threshold)) => return Some(Set::new(threshold, set.origin.clone())),
            Ok(None) => {}
            Err(error) => warnings.push(format!("{}: {error}; passed over", set.origin)),
        }
    }
    None
}

/// The first strategy that exists, and what it brings along.
fn strategy(
    layers: &[Settings],
    preset: impl Fn(&str) -> Option<Preset>,
    warnings: &mut Vec<String>,
) -> (Set<String>, Preset) {
    for set in layers.iter().filter_map(|layer| layer.strategy.as_ref()) {
        match preset(&set.value) {
            Some(preset) => return (set.clone(), preset),
            None => warnings.push(format!(
                "{}: there is no strategy `{}`; passed over",
                set.origin, set.value
            )),
        }
    }
    let usual = Preset {
        threshold: Threshold(75.0),
        keep: Keep::Share(0.2),
        ratio: 0.25,
    };
    let name = DEFAULT_STRATEGY.to_owned();
    let preset = preset(&name).unwrap_or(usual);
    (Set::new(name, Origin::Default), preset)
}
