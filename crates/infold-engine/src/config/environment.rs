//! Applies the variables of the environment over the configuration files.

use super::problem::ConfigError;
use super::reader::{ConfigReader, replace, value_problem};
use super::sections::{DAYS, SUMMARIZER, TOKENS, parse_summarizer};
use super::{Config, Secret, tokens};
use crate::profile::{Origin, Setting, Threshold};
use crate::strategy::STRATEGY_NAMES;

/// The variables from which the tools of providers read their keys.
const KEY_VARIABLES: [(&str, &str); 4] = [
    ("openai", "OPENAI_API_KEY"),
    ("responses", "OPENAI_API_KEY"),
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("gemini", "GEMINI_API_KEY"),
];

/// Returns the variable that holds the key for an API.
pub fn key_variable(api: &str) -> Option<&'static str> {
    let pair = KEY_VARIABLES.iter().find(|(of, _)| *of == api);
    pair.map(|(_, variable)| *variable)
}

/// Replaces values of the files by those of the environment.
pub(super) fn apply(config: &mut Config, reader: &mut ConfigReader<'_>) {
    let storage = &mut config.context_storage;
    let boolean = |text: &str| match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    };
    let text = |text: &str| Some(text.to_owned());
    let enabled = get(reader, "CONTEXT_STORAGE_ENABLED", "true or false", boolean);
    replace(&mut storage.enabled, enabled);
    let path = |text: &str| Some(text.into());
    let base_dir = get(reader, "INFOLD_CONTEXTS", "a directory", path);
    replace(&mut storage.base_dir, base_dir);
    let expected = "a fraction up to 1, a percentage up to 100, or -1 to inherit";
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    if let Some(threshold) = get(reader, "COMPRESSION_THRESHOLD", expected, number) {
        if let Err(error) = Threshold::inherit(threshold.value) {
            let warning = format!("{}: {error}; it is ignored", threshold.origin);
            reader.warnings.push(warning);
        }
        storage.compression_threshold = Some(threshold);
    }
    let days = |text: &str| text.parse().ok().filter(|&days: &u32| days <= 36_500);
    let cleanup_days = get(reader, "CLEANUP_DAYS", DAYS, days);
    replace(&mut storage.cleanup_days, cleanup_days);
    config.model = get(reader, "INFOLD_MODEL", "a model", text);
    config.profile = get(reader, "INFOLD_PROFILE", "a profile", text);
    config.environment.window = get(reader, "INFOLD_WINDOW", TOKENS, tokens::parse);
    let expected = format!("one of {}", STRATEGY_NAMES.join(", "));
    let strategy = |text: &str| STRATEGY_NAMES.contains(&text).then(|| text.to_owned());
    config.environment.strategy = get(reader, "INFOLD_STRATEGY", &expected, strategy);
    let summarizer = get(reader, "INFOLD_SUMMARIZER", SUMMARIZER, parse_summarizer);
    replace(&mut config.summarizer.name, summarizer);
    for (api, variable) in KEY_VARIABLES {
        let key = |text: &str| Some(Secret::new(text.to_owned()));
        let key = get(reader, variable, "a key", key);
        config.keys.extend(key.map(|key| (api, key)));
    }
    for provider in &mut config.llm.providers {
        // A key for one address is not sent to another.
        if provider.api_key.is_none() && provider.base_url.is_none() {
            let mut keys = config.keys.iter();
            let key = keys.find(|(api, _)| *api == provider.name);
            provider.api_key = key.map(|(_, key)| key.clone());
        }
    }
}

/// Returns the value of a variable; an empty one counts as not set.
fn get<T>(
    reader: &mut ConfigReader<'_>,
    name: &str,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<Setting<T>> {
    let text = (reader.env)(name).filter(|text| !text.is_empty())?;
    let origin = Origin::Env(name.to_owned());
    let Some(value) = parse(text.trim()) else {
        let short: String = text.chars().take(60).filter(|c| !c.is_control()).collect();
        let problem = value_problem(name, expected, format!("`{short}`"));
        reader.errors.push(ConfigError { origin, problem });
        return None;
    };
    Some(Setting::new(value, origin))
}
