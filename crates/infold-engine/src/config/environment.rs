use super::problem::ConfigError;
use super::reader::{Reader, value};
use super::sections::{DAYS, SUMMARIZER, TOKENS, summarizing};
use super::{Config, Secret, tokens};
use crate::profile::{Origin, Set, Threshold};
use crate::strategy::NAMES;

/// The variables that providers' own tools read their keys from.
const KEYS: [(&str, &str); 4] = [
    ("openai", "OPENAI_API_KEY"),
    ("responses", "OPENAI_API_KEY"),
    ("anthropic", "ANTHROPIC_API_KEY"),
    ("gemini", "GEMINI_API_KEY"),
];

/// The variable that holds the key for an API.
pub fn key_variable(api: &str) -> Option<&'static str> {
    let found = KEYS.iter().find(|(of, _)| *of == api);
    found.map(|(_, variable)| *variable)
}

/// Puts what the environment says in the place of what the file says.
pub(super) fn apply(config: &mut Config, reader: &mut Reader<'_>) {
    let storage = &mut config.context_storage;
    let truth = |text: &str| match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    };
    let instead = get(reader, "CONTEXT_STORAGE_ENABLED", "true or false", truth);
    replace(&mut storage.enabled, instead);
    let instead = get(reader, "INFOLD_CONTEXTS", "a directory", |text| {
        Some(text.into())
    });
    replace(&mut storage.base_dir, instead);
    let expected = "a fraction up to 1, a percentage up to 100, or -1 to inherit";
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    if let Some(threshold) = get(reader, "COMPRESSION_THRESHOLD", expected, number) {
        if let Err(error) = Threshold::inherit(threshold.value) {
            reader
                .warnings
                .push(format!("{}: {error}; it is passed over", threshold.origin));
        }
        storage.compression_threshold = Some(threshold);
    }
    let days = |text: &str| text.parse().ok().filter(|&days: &u32| days <= 36_500);
    let instead = get(reader, "CLEANUP_DAYS", DAYS, days);
    replace(&mut storage.cleanup_days, instead);
    let some = |text: &str| Some(text.to_owned());
    config.model = get(reader, "INFOLD_MODEL", "a model", some);
    config.profile = get(reader, "INFOLD_PROFILE", "a profile", some);
    config.environment.window = get(reader, "INFOLD_WINDOW", TOKENS, tokens::parse);
    let expected = format!("one of {}", NAMES.join(", "));
    let strategy = |text: &str| NAMES.contains(&text).then(|| text.to_owned());
    config.environment.strategy = get(reader, "INFOLD_STRATEGY", &expected, strategy);
    let instead = get(reader, "INFOLD_SUMMARIZER", SUMMARIZER, summarizing);
    replace(&mut config.summarizer.name, instead);
    for (api, variable) in KEYS {
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

/// The value of a variable; an empty one counts as not set.
fn get<T>(
    reader: &mut Reader<'_>,
    name: &str,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<Set<T>> {
    let text = (reader.env)(name).filter(|text| !text.is_empty())?;
    let origin = Origin::Env(name.to_owned());
    match parse(text.trim()) {
        Some(value) => Some(Set::new(value, origin)),
        None => {
            let short: String = text.chars().take(60).filter(|c| !c.is_control()).collect();
            let problem = value(name, expected, format!("`{short}`"));
            reader.errors.push(ConfigError { origin, problem });
            None
        }
    }
}

fn replace<T>(value: &mut Set<T>, instead: Option<Set<T>>) {
    if let Some(instead) = instead {
        *value = instead;
    }
}
