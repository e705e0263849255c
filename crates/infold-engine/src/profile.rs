mod keep;
mod settings;
mod threshold;

pub use keep::Keep;
pub use settings::{Origin, Set, Settings};
pub use threshold::{NoThreshold, Threshold};

use crate::Strategy;
use crate::models::{self, Model, Prices, Tokenizer, UNKNOWN_WINDOW};

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
    pub fn resolve(name: &str, model: Option<&Model>, layers: &[Settings]) -> Resolved {
        let mut warnings = Vec::new();
        let (strategy, preset) = strategy(layers, &mut warnings);
        let row = model.map(|model| Origin::Table(model.name.clone()));
        let by_strategy = || Origin::Strategy(strategy.value.clone());

        let window = first(layers, |layer| layer.window.clone())
            .or_else(|| {
                let origin = row.clone().unwrap_or(Origin::Default);
                models::window(name, model).map(|window| Set::new(window, origin))
            })
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
fn strategy(layers: &[Settings], warnings: &mut Vec<String>) -> (Set<String>, Preset) {
    for set in layers.iter().filter_map(|layer| layer.strategy.as_ref()) {
        match set.value.parse::<Strategy>() {
            Ok(strategy) => return (set.clone(), strategy.preset()),
            Err(_) => warnings.push(format!(
                "{}: there is no strategy `{}`; passed over",
                set.origin, set.value
            )),
        }
    }
    let usual = Strategy::default();
    let name = Set::new(usual.name.to_owned(), Origin::Default);
    (name, usual.preset())
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
            window: Some(Set::call(9000)),
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
            strategy: Some(Set::call(name.to_owned())),
            ..Settings::default()
        };
        let opus = models::find("claude-opus-4");
        let keep = |name| {
            let resolved = Profile::resolve("claude-opus-4", opus, &[strategy(name)]);
            resolved.profile.keep
        };
        assert_eq!(keep("roo"), Keep::Messages(5));
        assert_eq!(keep("gemini"), Keep::Share(0.3));
        assert_eq!(keep("infold"), Keep::Share(0.15));
    }

    #[test]
    fn a_strategy_that_does_not_exist_is_passed_over() {
        let layer = Settings {
            strategy: Some(Set::call("rooo".to_owned())),
            ..Settings::default()
        };
        let resolved = Profile::resolve("gpt-5", models::find("gpt-5"), &[layer]);
        assert_eq!(resolved.profile.strategy, "infold");
        assert_eq!(
            resolved.warnings,
            ["command line: there is no strategy `rooo`; passed over"]
        );
    }

    proptest! {
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
