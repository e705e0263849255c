//! The profile: all settings that decide how a conversation with one model is folded.

mod keep_recent;
mod settings;
mod threshold;

pub use keep_recent::KeepRecent;
pub use settings::{Origin, Setting, Settings};
pub use threshold::{InvalidThreshold, Threshold};

use crate::Strategy;
use crate::models::{self, Model, Prices, Tokenizer, UNKNOWN_WINDOW};

/// All settings that decide how a conversation with one model is folded.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The model's name, as the call gave it; empty if it gave none.
    pub model: String,
    /// The maker of the model, if known.
    pub provider: Option<String>,
    /// The most tokens of a request.
    pub window: u64,
    /// The most tokens of a reply, if known.
    pub max_output: Option<u64>,
    /// The requested limit of a reply in tokens, if set.
    pub max_tokens: Option<u64>,
    /// When to start folding.
    pub threshold: Threshold,
    /// Whether to fold at the threshold automatically.
    pub auto: bool,
    /// The newest part of a conversation that is kept.
    pub keep: KeepRecent,
    /// The largest size of a summary relative to the messages that it replaces.
    pub ratio: f64,
    /// The model that writes summaries.
    pub condense_model: String,
    /// The prompt for that model, if not the strategy's own.
    pub prompt: Option<String>,
    /// The name of the strategy.
    pub strategy: String,
    /// The tokenizer of the model.
    pub tokenizer: Tokenizer,
    /// By how much to multiply counted tokens before any usage was reported.
    pub factor: f64,
    /// The prices of the model.
    pub prices: Option<Prices>,
}

/// A profile, and where each of its values comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedProfile {
    /// The profile.
    pub profile: Profile,
    /// The name of each value and where it was set, in the order of the fields.
    pub origins: Vec<(&'static str, Origin)>,
    /// Warnings for the user: ignored values, an unknown model.
    pub warnings: Vec<String>,
}

impl Profile {
    /// Resolves a profile: for each value the first layer that sets it, then the model's
    /// row of the table, then the strategy's preset.
    ///
    /// `name` is that of the model (empty: none named), `model` its row.
    pub fn resolve(name: &str, model: Option<&Model>, layers: &[Settings]) -> ResolvedProfile {
        let mut warnings = Vec::new();
        let (strategy, preset) = strategy(layers, &mut warnings);
        let preset_threshold =
            Threshold::new(preset.threshold).expect("presets have valid thresholds");
        let row = model.map(|model| Origin::Table(model.name.clone()));
        let by_strategy = || Origin::Strategy(strategy.value.clone());

        let window = first(layers, |layer| &layer.window)
            .or_else(|| {
                let origin = row.clone().unwrap_or(Origin::Default);
                models::window(name, model).map(|window| Setting::new(window, origin))
            })
            .unwrap_or_else(|| {
                if !name.is_empty() {
                    warnings.push(format!(
                        "nothing is known of model `{name}`: a window of {UNKNOWN_WINDOW} tokens is assumed"
                    ));
                }
                Setting::new(UNKNOWN_WINDOW, Origin::Default)
            });
        let threshold = threshold(layers, &mut warnings)
            .or_else(|| of_row(model, |model| model.threshold))
            .unwrap_or_else(|| Setting::new(preset_threshold, by_strategy()));
        // A number of messages from the table does not replace a share, which is another measure.
        let is_count = matches!(preset.keep(), KeepRecent::Messages(_));
        let keep = first(layers, |layer| &layer.keep)
            .or_else(|| of_row(model, |model| model.keep.filter(|_| is_count)))
            .unwrap_or_else(|| Setting::new(preset.keep(), by_strategy()));
        let ratio = first(layers, |layer| &layer.ratio)
            .or_else(|| of_row(model, |model| model.ratio))
            .unwrap_or_else(|| Setting::new(preset.ratio, by_strategy()));
        let auto =
            first(layers, |layer| &layer.auto).unwrap_or(Setting::new(true, Origin::Default));
        let condense_model = first(layers, |layer| &layer.condense_model)
            .or_else(|| of_row(model, |model| model.condense_model.clone()))
            .unwrap_or_else(|| Setting::new(name.to_owned(), Origin::Default));
        let prompt = first(layers, |layer| &layer.prompt);
        let max_tokens = first(layers, |layer| &layer.max_tokens);
        let tokenizer = model.map_or(Tokenizer::Other, |model| model.tokenizer);

        let row = row.unwrap_or(Origin::Default);
        let max_tokens_origin = max_tokens.as_ref().map(|set| set.origin.clone());
        let prompt_origin = prompt.as_ref().map(|set| set.origin.clone());
        let origins = vec![
            ("window", window.origin),
            ("max_output", row.clone()),
            ("max_tokens", max_tokens_origin.unwrap_or(Origin::Default)),
            ("threshold", threshold.origin),
            ("auto", auto.origin),
            ("keep", keep.origin),
            ("ratio", ratio.origin),
            ("condense_model", condense_model.origin),
            ("prompt", prompt_origin.unwrap_or_else(by_strategy)),
            ("strategy", strategy.origin.clone()),
            ("tokenizer", row.clone()),
            ("factor", row.clone()),
            ("prices", row),
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
        ResolvedProfile {
            profile,
            origins,
            warnings,
        }
    }
}

fn first<T: Clone>(
    layers: &[Settings],
    get: impl Fn(&Settings) -> &Option<Setting<T>>,
) -> Option<Setting<T>> {
    layers.iter().find_map(|layer| get(layer).clone())
}

fn of_row<T>(model: Option<&Model>, get: impl Fn(&Model) -> Option<T>) -> Option<Setting<T>> {
    let model = model?;
    let origin = Origin::Table(model.name.clone());
    get(model).map(|value| Setting::new(value, origin))
}

/// Returns the first valid threshold; -1 leaves it to the next layer, and so does, with a
/// warning, an invalid number.
fn threshold(layers: &[Settings], warnings: &mut Vec<String>) -> Option<Setting<Threshold>> {
    let written = layers.iter().filter_map(|layer| layer.threshold.as_ref());
    for set in written {
        match Threshold::inherit(set.value) {
            Ok(Some(threshold)) => return Some(Setting::new(threshold, set.origin.clone())),
            Ok(None) => {}
            Err(error) => warnings.push(format!("{}: {error}; ignored", set.origin)),
        }
    }
    None
}

/// Returns the first strategy that exists, by name and as data.
fn strategy(layers: &[Settings], warnings: &mut Vec<String>) -> (Setting<String>, Strategy) {
    for set in layers.iter().filter_map(|layer| layer.strategy.as_ref()) {
        match set.value.parse::<Strategy>() {
            Ok(strategy) => return (set.clone(), strategy),
            Err(_) => warnings.push(format!(
                "{}: there is no strategy `{}`; ignored",
                set.origin, set.value
            )),
        }
    }
    let default = Strategy::default();
    let name = Setting::new(default.name.to_owned(), Origin::Default);
    (name, default)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::models;

    #[test]
    fn an_unknown_model_has_a_careful_profile_and_a_warning() {
        let resolved = Profile::resolve("mystery", None, &[]);
        let profile = resolved.profile;
        assert_eq!((profile.window, profile.factor), (128_000, 1.5));
        assert_eq!(profile.condense_model, "mystery");
        assert_eq!(resolved.warnings.len(), 1);
        // A window that was given leaves nothing to warn of.
        let given = Settings {
            window: Some(Setting::call(9000)),
            ..Settings::default()
        };
        let resolved = Profile::resolve("mystery", None, &[given]);
        assert_eq!(
            (resolved.profile.window, resolved.warnings.len()),
            (9000, 0)
        );
    }

    #[test]
    fn messages_from_the_table_do_not_replace_a_share() {
        let strategy = |name: &str| Settings {
            strategy: Some(Setting::call(name.to_owned())),
            ..Settings::default()
        };
        let opus = models::find("claude-opus-4");
        let keep = |name| {
            let resolved = Profile::resolve("claude-opus-4", opus, &[strategy(name)]);
            resolved.profile.keep
        };
        assert_eq!(keep("roo"), KeepRecent::Messages(5));
        assert_eq!(keep("gemini"), KeepRecent::Share(0.3));
        assert_eq!(keep("infold"), KeepRecent::Share(0.15));
    }

    #[test]
    fn a_strategy_that_does_not_exist_is_passed_over() {
        let layer = Settings {
            strategy: Some(Setting::call("rooo".to_owned())),
            ..Settings::default()
        };
        let resolved = Profile::resolve("gpt-5", models::find("gpt-5"), &[layer]);
        assert_eq!(resolved.profile.strategy, "infold");
        assert_eq!(
            resolved.warnings,
            ["command line: there is no strategy `rooo`; ignored"]
        );
    }

    proptest! {
        /// The first layer with a valid threshold decides; there is a warning for each invalid one before it.
        #[test]
        fn the_first_layer_that_says_something_decides(
            layers in prop::collection::vec(
                prop::option::of(prop::sample::select(vec![-1.0, 0.0, 4.0, 0.5, 60.0, 101.0])), 0..6),
            table in any::<bool>(),
        ) {
            let model = models::find(if table { "claude-opus-4" } else { "gpt-5" });
            let set = |number: &Option<f64>| Settings {
                threshold: number.map(Setting::call),
                ..Settings::default()
            };
            let settings: Vec<Settings> = layers.iter().map(set).collect();
            let resolved = Profile::resolve("m", model, &settings);
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
