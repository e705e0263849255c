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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::models;

    #[test]
    fn a_threshold_is_a_fraction_up_to_one_and_a_percentage_above() {
        for (number, percent) in [
            (0.05, 5.0),
            (0.75, 75.0),
            (1.0, 100.0),
            (5.0, 5.0),
            (70.0, 70.0),
            (100.0, 100.0),
        ] {
            let threshold = Threshold::new(number).map(Threshold::percent);
            assert_eq!(threshold, Ok(percent), "{number}");
        }
        for number in [
            0.0, 0.04, 1.01, 4.0, 4.99, 100.5, 101.0, -0.5, -1.0, -2.0, 1e300,
        ] {
            assert_eq!(Threshold::new(number), Err(NoThreshold(number)), "{number}");
        }
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Threshold::new(number).is_err(), "{number}");
        }
        assert_eq!(Threshold::inherit(-1.0), Ok(None));
        assert_eq!(Threshold::inherit(-1.5), Err(NoThreshold(-1.5)));
    }

    #[test]
    fn a_threshold_shows_no_more_places_than_were_written() {
        let shown = |number| Threshold::new(number).map(|threshold| threshold.to_string());
        assert_eq!(shown(0.07).as_deref(), Ok("7 %"));
        assert_eq!(shown(62.5).as_deref(), Ok("62.5 %"));
    }

    #[test]
    fn an_unknown_model_has_a_careful_profile_and_a_warning() {
        let resolved = Profile::resolve("mystery", None, &[], Preset::of);
        let profile = resolved.profile;
        assert_eq!((profile.window, profile.factor), (128_000, 1.5));
        assert_eq!(profile.condense_model, "mystery");
        assert_eq!(resolved.warnings.len(), 1);
        // A window that was given leaves nothing to warn of.
        let given = Settings {
            window: Some(Set::call(9000)),
            ..Settings::default()
        };
        let resolved = Profile::resolve("mystery", None, &[given], Preset::of);
        assert_eq!(
            (resolved.profile.window, resolved.warnings.len()),
            (9000, 0)
        );
    }

    #[test]
    fn messages_from_the_table_do_not_replace_a_share() {
        let strategy = |name: &str| Settings {
            strategy: Some(Set::call(name.to_owned())),
            ..Settings::default()
        };
        let opus = models::find("claude-opus-4");
        let keep = |name| {
            let resolved = Profile::resolve("claude-opus-4", opus, &[strategy(name)], Preset::of);
            resolved.profile.keep
        };
        assert_eq!(keep("roo"), Keep::Messages(5));
        assert_eq!(keep("gemini"), Keep::Share(0.3));
        assert_eq!(keep("infold"), Keep::Share(0.2));
    }

    #[test]
    fn a_strategy_that_does_not_exist_is_passed_over() {
        let layer = Settings {
            strategy: Some(Set::call("rooo".to_owned())),
            ..Settings::default()
        };
        let resolved = Profile::resolve("gpt-5", models::find("gpt-5"), &[layer], Preset::of);
        assert_eq!(resolved.profile.strategy, "infold");
        assert_eq!(
            resolved.warnings,
            ["command line: there is no strategy `rooo`; passed over"]
        );
    }

    proptest! {
        /// Every number is a threshold from 5 to 100 percent, or refused.
        #[test]
        fn a_threshold_is_in_range(number in any::<f64>()) {
            if let Ok(threshold) = Threshold::new(number) {
                prop_assert!((5.0..=100.0).contains(&threshold.percent()));
                prop_assert!(threshold.of(1_000_000) <= 1_000_000);
            }
        }

        /// The first layer with a real threshold decides; each unreal one before it is warned of.
        #[test]
        fn the_first_layer_that_says_something_decides(
            layers in prop::collection::vec(
                prop::option::of(prop::sample::select(vec![-1.0, 0.0, 4.0, 0.5, 60.0, 101.0])), 0..6),
            table in any::<bool>(),
        ) {
            let model = models::find(if table { "claude-opus-4" } else { "gpt-5" });
            let set = |number: &Option<f64>| Settings {
                threshold: number.map(Set::call),
                ..Settings::default()
            };
            let settings: Vec<Settings> = layers.iter().map(set).collect();
            let resolved = Profile::resolve("m", model, &settings, Preset::of);
            let said: Vec<f64> = layers.iter().flatten().copied().collect();
            let real = |number: &f64| *number == 0.5 || *number == 60.0;
            let first = said.iter().position(real);
            let expected = match first {
                Some(at) => if said[at] == 0.5 { 50.0 } else { 60.0 },
                None => if table { 80.0 } else { 75.0 },
            };
            let passed = &said[..first.unwrap_or(said.len())];
            let wrong = passed.iter().filter(|number| **number != -1.0).count();
            prop_assert_eq!(resolved.profile.threshold.percent(), expected);
            prop_assert_eq!(resolved.warnings.len(), wrong);
        }
    }
}
