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

/// The variables from which the tools of providers read another address.
const ADDRESS_VARIABLES: [(&str, &str); 5] = [
    ("openai", "OPENAI_BASE_URL"),
    ("responses", "OPENAI_BASE_URL"),
    ("anthropic", "ANTHROPIC_BASE_URL"),
    ("gemini", "GOOGLE_GEMINI_BASE_URL"),
    ("ollama", "OLLAMA_HOST"),
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
    for (api, variable) in ADDRESS_VARIABLES {
        // An invalid address is reported when it is used: other commands do not need it.
        let address = |text: &str| match api {
            "ollama" => Some(ollama_address(text)),
            _ => Some(text.to_owned()),
        };
        let address = get(reader, variable, "an address", address);
        config
            .addresses
            .extend(address.map(|address| (api, address)));
    }
    for provider in &mut config.llm.providers {
        if provider.base_url.is_none() && provider.api.value == provider.name {
            let mut addresses = config.addresses.iter();
            let address = addresses.find(|(api, _)| *api == provider.name);
            provider.base_url = address.map(|(_, address)| address.clone());
        }
    }
}

impl Config {
    /// Drops the addresses from the environment. The proxy does this, because they are its own: they are set for the
    /// clients that are started beside it.
    pub fn forget_environment_addresses(&mut self) {
        self.addresses.clear();
        for provider in &mut self.llm.providers {
            let is_from_environment = |set: &Setting<String>| matches!(set.origin, Origin::Env(_));
            if provider.base_url.as_ref().is_some_and(is_from_environment) {
                provider.base_url = None;
            }
        }
    }
}

/// Returns the address that a value of `OLLAMA_HOST` means: it need not have a scheme, a host or a port.
fn ollama_address(text: &str) -> String {
    const PORT: &str = "11434";
    if text.contains("://") {
        return text.to_owned();
    }
    let (authority, path) = match text.find('/') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (authority, PORT),
    };
    // The address on which a server listens everywhere is none to call.
    let host = match host {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    let port = if port.is_empty() { PORT } else { port };
    format!("http://{host}:{port}{path}")
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
