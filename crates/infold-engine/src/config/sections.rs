//! Reads each section of a configuration file; the keys of a section are the words of its first line.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use infold_layers::{DocumentPart, Field, PHASES};

use super::problem::{ConfigProblem, nearest};
use super::reader::{ConfigReader, Scalar, Section, replace, value_problem};
use super::yaml::{YamlKind, YamlMember, YamlNode};
use super::{
    APIS, Config, ConfiguredModel, LayersConfig, NamedProfile, Provider, RelevanceMethod, SECTIONS,
    SERVED_APIS, Secret,
};
use super::{mcp_servers, sources, tools, work};
use crate::models::{self, Model, Prices, Tokenizer, UNKNOWN_WINDOW};
use crate::profile::{KeepRecent, Setting, Settings, Threshold};
use crate::strategy::STRATEGY_NAMES;

/// Reads all sections of a file into `config`.
pub(super) fn read(config: &mut Config, reader: &mut ConfigReader<'_>, root: &YamlNode) {
    let mut top = reader.section("", root, &SECTIONS.join(" "));
    for member in top.members() {
        let node = &member.value;
        match member.key.as_str() {
            "context_storage" => read_storage(config, top.reader, node),
            "llm" => read_llm(config, top.reader, node),
            "profiles" => read_profiles(config, top.reader, node),
            "models" => read_models(config, top.reader, node),
            "summarizer" => read_summarizer(config, &mut top, member),
            "hooks" => {
                let mut hooks = top.reader.section("hooks", node, "before_fold after_fold");
                config.hooks.before_fold = read_command(&mut hooks, "before_fold");
                config.hooks.after_fold = read_command(&mut hooks, "after_fold");
            }
            "recall" => read_recall(config, top.reader, node),
            "layers" => read_layers(config, top.reader, node),
            "tools" => config.tools = tools::read(top.reader, member),
            "sources" => config.sources = sources::read(top.reader, node),
            "work" => config.work = work::read(top.reader, node),
            "mcp_servers" => config.mcp_servers = mcp_servers::read(top.reader, node),
            _ => {}
        }
    }
    if let Some(tools) = &config.tools {
        let phase = tools.policy.situation().phase();
        config.layers.transitions.start_at(phase);
    }
    replace(&mut config.redact, top.boolean("redact"));
    // `serve` is read last, because it names providers that may be defined after it.
    if let Some(member) = top.get("serve") {
        read_serve(config, top.reader, &member.value);
    }
}

fn read_storage(config: &mut Config, reader: &mut ConfigReader<'_>, node: &YamlNode) {
    let keys =
        "enabled base_dir compression_threshold keep_recent_messages cleanup_days summary_prompt";
    let home = (reader.env)("HOME");
    let mut section = reader.section("context_storage", node, keys);
    let storage = &mut config.context_storage;
    replace(&mut storage.enabled, section.boolean("enabled"));
    let path = |scalar: &Scalar| directory(&scalar.text, home.as_deref());
    let base_dir = section.value("base_dir", "a directory", path);
    replace(&mut storage.base_dir, base_dir);
    storage.compression_threshold = read_threshold(&mut section, "compression_threshold");
    let count = |scalar: &Scalar| scalar.integer().and_then(|number| number.try_into().ok());
    let expected = "a number of messages";
    storage.keep_recent_messages = section.value("keep_recent_messages", expected, count);
    let days = |scalar: &Scalar| {
        let days = scalar.integer().filter(|&days| days <= 36_500)?;
        days.try_into().ok()
    };
    let cleanup_days = section.value("cleanup_days", DAYS, days);
    replace(&mut storage.cleanup_days, cleanup_days);
    storage.summary_prompt = section.text("summary_prompt");
}

fn read_recall(config: &mut Config, reader: &mut ConfigReader<'_>, node: &YamlNode) {
    let mut section = reader.section("recall", node, "auto tokens excerpts");
    let recall = &mut config.recall;
    replace(&mut recall.auto, section.boolean("auto"));
    recall.tokens = section.value("tokens", "a number of tokens", Scalar::integer);
    let count = |scalar: &Scalar| scalar.integer().filter(|count| (1..=20).contains(count));
    let excerpts = section.value("excerpts", "a number from 1 to 20", count);
    replace(&mut recall.excerpts, excerpts);
}

fn read_layers(config: &mut Config, reader: &mut ConfigReader<'_>, node: &YamlNode) {
    let keys = "inject max_tokens recent_turns shares threshold embedding_threshold relevance embedding_model ranked transitions";
    let mut section = reader.section("layers", node, keys);
    let layers = &mut config.layers;
    replace(&mut layers.inject, section.boolean("inject"));
    layers.max_tokens = section.tokens("max_tokens");
    let turns = |scalar: &Scalar| scalar.integer().filter(|turns| (0..=20).contains(turns));
    let turns = section.value("recent_turns", "a number from 0 to 20", turns);
    replace(&mut layers.recent_turns, turns);
    let share = |scalar: &Scalar| scalar.number().filter(|share| (0.0..=1.0).contains(share));
    let threshold = section.value("threshold", "a number from 0 to 1", share);
    replace(&mut layers.threshold, threshold);
    read_relevance(layers, &mut section, share);
    if let Some(member) = section.get("shares") {
        let names = DocumentPart::ALL.map(DocumentPart::name).join(" ");
        let mut shares = section
            .reader
            .section("layers.shares", &member.value, &names);
        for part in DocumentPart::ALL {
            let percent = |scalar: &Scalar| scalar.integer().filter(|percent| *percent <= 100);
            let set = shares.value(part.name(), "a percentage from 0 to 100", percent);
            if let Some(set) = set
                && layers.shares.set(part, set.value as i64).is_ok()
            {
                layers.set_shares.push((part, set));
            }
        }
    }
    if let Some(member) = section.get("ranked") {
        layers.ranked = read_fields(section.reader, &member.value);
    }
    if let Some(member) = section.get("transitions") {
        read_transitions(layers, section.reader, &member.value);
    }
}

/// Reads how relevance is found out.
fn read_relevance(
    layers: &mut LayersConfig,
    section: &mut Section<'_, '_, '_>,
    share: fn(&Scalar) -> Option<f64>,
) {
    let threshold = section.value("embedding_threshold", "a number from 0 to 1", share);
    replace(&mut layers.embedding_threshold, threshold);
    layers.embedding_model = section.text("embedding_model");
    let methods = [RelevanceMethod::Bm25, RelevanceMethod::Embeddings];
    if let Some(word) = section.word("relevance", &methods.map(RelevanceMethod::name)) {
        let method = methods.into_iter().find(|it| it.name() == word.value);
        layers.relevance = Setting {
            value: method.unwrap_or(RelevanceMethod::Bm25),
            origin: word.origin,
        };
    }
    if layers.relevance.value == RelevanceMethod::Embeddings
        && layers.embedding_model.is_none()
        && let Some(member) = section.get("relevance")
    {
        let problem = value_problem(
            "layers.relevance",
            "`embeddings` only together with `layers.embedding_model`, the name of a model",
            "alone".to_owned(),
        );
        section.reader.report(member.line, problem);
    }
}

/// Reads names of fields; a wrong one is reported with the nearest.
fn read_fields(reader: &mut ConfigReader<'_>, node: &YamlNode) -> Vec<Field> {
    let names: Vec<&str> = Field::all()
        .filter(|field| field.is_list())
        .map(Field::name)
        .collect();
    let words = read_words(reader, "layers.ranked", node, &names);
    words.iter().filter_map(|word| Field::find(word)).collect()
}

fn read_transitions(layers: &mut LayersConfig, reader: &mut ConfigReader<'_>, node: &YamlNode) {
    let path = "layers.transitions";
    let section = reader.section(path, node, &PHASES.join(" "));
    for member in section.members() {
        let path = format!("{path}.{}", member.key);
        let to = read_words(section.reader, &path, &member.value, &PHASES);
        layers.transitions.allow(&member.key, to);
    }
}

/// Reads a list of words, each of which must be one of `words`.
fn read_words(
    reader: &mut ConfigReader<'_>,
    path: &str,
    node: &YamlNode,
    words: &[&str],
) -> Vec<String> {
    let expected = format!("a list of {}", words.join(", "));
    let YamlKind::List(items) = &node.kind else {
        if !node.is_null() {
            let problem = value_problem(path, &expected, "something else".to_owned());
            reader.report(node.line, problem);
        }
        return Vec::new();
    };
    let mut found = Vec::new();
    for item in items {
        let Some(scalar) = reader.scalar(path, item, &expected) else {
            continue;
        };
        if words.contains(&scalar.text.as_str()) {
            found.push(scalar.text);
        } else {
            let problem = ConfigProblem::Value {
                key: path.to_owned(),
                expected: expected.clone(),
                found: format!("`{}`", infold_wire::shorten(&scalar.text, 60)),
                nearest: nearest(&scalar.text, words.iter().copied()),
            };
            reader.report(item.line, problem);
        }
    }
    found
}

pub(super) const DAYS: &str = "a number of days, from 0 to 36500";

/// Parses a path in which `~/` is the home directory.
pub(super) fn directory(text: &str, home: Option<&str>) -> Option<PathBuf> {
    match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Some(Path::new(home).join(rest)),
        _ => (!text.is_empty()).then(|| PathBuf::from(text)),
    }
}

fn read_threshold(section: &mut Section<'_, '_, '_>, key: &str) -> Option<Setting<f64>> {
    let expected = "a fraction up to 1, a percentage up to 100, or -1 to inherit";
    let set = section.value(key, expected, Scalar::number)?;
    // A number out of range is ignored when the profile is resolved, not an error.
    if let (Err(error), Some(member)) = (Threshold::inherit(set.value), section.get(key)) {
        let warning = format!("`{}`: {error}; it is ignored", section.path(key));
        section.reader.warn(member.line, warning);
    }
    Some(set)
}

fn read_llm(config: &mut Config, reader: &mut ConfigReader<'_>, node: &YamlNode) {
    let mut section = reader.open("llm", node);
    for member in section.members() {
        let is_api = APIS.contains(&member.key.as_str());
        let names_api = || member.value.members().iter().any(|it| it.key == "provider");
        if member.key == "provider" {
            continue;
        } else if is_api || names_api() {
            let provider = read_provider(section.reader, member, is_api);
            config.llm.providers.push(provider);
        } else {
            report_unknown_provider(section.reader, member);
        }
    }
    let names = provider_names(config);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    config.llm.provider = section.word("provider", &names);
}

/// Returns the APIs, and the names of providers that the configuration describes.
fn provider_names(config: &Config) -> Vec<String> {
    let described = config.llm.providers.iter().map(|one| one.name.clone());
    let own = described.filter(|name| !APIS.contains(&name.as_str()));
    APIS.map(str::to_owned).into_iter().chain(own).collect()
}

fn report_unknown_provider(reader: &mut ConfigReader<'_>, member: &YamlMember) {
    let mut names = vec!["provider"];
    names.extend(APIS);
    reader.report_unknown("llm", member, &names);
    if let (YamlKind::Map(_), Some(error)) = (&member.value.kind, reader.errors.last_mut())
        && let ConfigProblem::Key {
            place,
            nearest: None,
            ..
        } = &mut error.problem
    {
        // A provider of any name is fine, but its API must be known.
        place.push_str(" without a `provider:` of its own that says which API it speaks");
    }
}

fn read_provider(reader: &mut ConfigReader<'_>, member: &YamlMember, is_api: bool) -> Provider {
    let path = format!("llm.{}", member.key);
    let keys = "provider model context_length api_key base_url max_tokens";
    let origin = reader.origin(member.line);
    let mut section = reader.section(&path, &member.value, keys);
    // The other name counts only until the error about its `provider:` is reported.
    let api = if is_api { member.key.as_str() } else { APIS[0] };
    let api = Setting::new(api.to_owned(), origin);
    let secret = |scalar: &Scalar| Some((Secret::new(scalar.text.clone()), scalar.has_variable));
    let api_key = section.value("api_key", "a text", secret);
    let api_key = api_key.filter(|set| !set.value.0.reveal().is_empty());
    let is_literal = api_key.as_ref().is_some_and(|set| !set.value.1);
    if let Some(key) = section.get("api_key").filter(|_| is_literal) {
        let advice = "a key written into a file is easily shared by mistake; write ${NAME} and set that variable";
        let warning = format!("`{path}.api_key`: {advice}");
        section.reader.warn(key.line, warning);
    }
    let url = |scalar: &Scalar| is_http(&scalar.text).then(|| scalar.text.clone());
    let expected = "an address that starts with http:// or https://";
    Provider {
        name: member.key.clone(),
        api: section.word("provider", &APIS).unwrap_or(api),
        model: section.text("model"),
        context_length: section.tokens("context_length"),
        api_key: api_key.map(|set| Setting::new(set.value.0, set.origin)),
        base_url: section.value("base_url", expected, url),
        max_tokens: section.tokens("max_tokens"),
    }
}

pub(super) const TOKENS: &str = "a number of tokens";

pub(super) fn is_http(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

fn read_profiles(config: &mut Config, reader: &mut ConfigReader<'_>, node: &YamlNode) {
    let keys = "window threshold auto keep ratio condense_model prompt strategy max_tokens";
    for member in reader.open("profiles", node).members() {
        let path = format!("profiles.{}", member.key);
        let mut section = reader.section(&path, &member.value, keys);
        let settings = Settings {
            auto: section.boolean("auto"),
            prompt: section.text("prompt"),
            strategy: section.word("strategy", &STRATEGY_NAMES),
            max_tokens: section.tokens("max_tokens"),
            ..read_shared_settings(&mut section)
        };
        config.profiles.push(NamedProfile {
            name: member.key.clone(),
            settings,
        });
    }
}

/// Reads the settings that both profiles and models have.
fn read_shared_settings(section: &mut Section<'_, '_, '_>) -> Settings {
    let keep = |scalar: &Scalar| scalar.number().and_then(KeepRecent::new);
    let is_ratio = |number: &f64| *number > 0.0 && *number < 1.0;
    let ratio = |scalar: &Scalar| scalar.number().filter(is_ratio);
    Settings {
        window: section.tokens("window"),
        threshold: read_threshold(section, "threshold"),
        keep: section.value("keep", "a number of messages, or a share below 1", keep),
        ratio: section.value("ratio", "a number between 0 and 1", ratio),
        condense_model: section.text("condense_model"),
        ..Settings::default()
    }
}

fn read_models(config: &mut Config, reader: &mut ConfigReader<'_>, node: &YamlNode) {
    let keys = "provider window max_output tokenizer prices threshold keep ratio condense_model";
    for member in reader.open("models", node).members() {
        let path = format!("models.{}", member.key);
        let origin = reader.origin(member.line);
        let mut section = reader.section(&path, &member.value, keys);
        let settings = read_shared_settings(&mut section);
        let mut row = models::find(&member.key).cloned().unwrap_or(Model {
            name: String::new(),
            provider: "other".to_owned(),
            window: UNKNOWN_WINDOW,
            max_output: 8192,
            tokenizer: Tokenizer::Other,
            prices: None,
            threshold: None,
            keep: None,
            ratio: None,
            condense_model: None,
        });
        row.name = member.key.clone();
        if let Some(provider) = section.text("provider") {
            row.provider = provider.value;
        }
        if let Some(window) = &settings.window {
            row.window = window.value;
            row.max_output = row.max_output.min(window.value);
        }
        if let Some(output) = section.tokens("max_output") {
            row.max_output = output.value;
        }
        let tokenizer = section.word("tokenizer", &["o200k", "cl100k", "claude", "other"]);
        if let Some(tokenizer) = tokenizer.and_then(|set| Tokenizer::named(&set.value)) {
            row.tokenizer = tokenizer;
        }
        let prices = section.get("prices");
        if let Some(member) = prices {
            let path = section.path("prices");
            row.prices = read_prices(section.reader, &path, &member.value, row.prices);
        }
        config.models.push(ConfiguredModel {
            row,
            settings,
            has_prices: prices.is_some(),
            origin,
        });
    }
}

/// Reads prices. A missing cache price is that of plain input; the others are required.
fn read_prices(
    reader: &mut ConfigReader<'_>,
    path: &str,
    node: &YamlNode,
    known: Option<Prices>,
) -> Option<Prices> {
    let mut section = reader.section(path, node, "input cached write output");
    let [input, cached, write, output] = ["input", "cached", "write", "output"].map(|key| {
        let price = |scalar: &Scalar| scalar.number().filter(|&price| price >= 0.0);
        let price = section.value(key, "US dollars per million tokens", price);
        price.map(|set| set.value)
    });
    let if_same_input = |price: fn(Prices) -> f64| known.filter(|_| input.is_none()).map(price);
    let Some((plain, output)) = input
        .or(known.map(|known| known.input))
        .zip(output.or(known.map(|known| known.output)))
    else {
        let problem = value_problem(path, "at least `input` and `output`", "less".to_owned());
        reader.report(node.line, problem);
        return None;
    };
    Some(Prices {
        input: plain,
        cached: cached
            .or(if_same_input(|known| known.cached))
            .unwrap_or(plain),
        write: write
            .or(if_same_input(|known| known.write))
            .unwrap_or(plain),
        output,
    })
}

/// Reads `summarizer: model`, `summarizer: command:…`, or a mapping of `use`, `timeout` and `check`.
fn read_summarizer(config: &mut Config, top: &mut Section<'_, '_, '_>, member: &YamlMember) {
    let parse = |scalar: &Scalar| parse_summarizer(&scalar.text);
    let name = if let YamlKind::Map(_) = &member.value.kind {
        let mut section = top
            .reader
            .section("summarizer", &member.value, "use timeout check");
        replace(&mut config.summarizer.check, section.boolean("check"));
        let timeout = section.positive("timeout", "a number of seconds");
        replace(&mut config.summarizer.timeout, timeout);
        section.value("use", SUMMARIZER, parse)
    } else {
        top.value("summarizer", SUMMARIZER, parse)
    };
    replace(&mut config.summarizer.name, name);
}

pub(super) const SUMMARIZER: &str =
    "`extractive`, `model`, `model:` and its name, or `command:` and a command";

pub(super) fn parse_summarizer(text: &str) -> Option<String> {
    let is_word = ["extractive", "model"].contains(&text);
    let has_name = ["model:", "command:"].into_iter().any(|kind| {
        let name = text.strip_prefix(kind).map(str::trim);
        name.is_some_and(|name| !name.is_empty())
    });
    (is_word || has_name).then(|| text.to_owned())
}

fn read_command(section: &mut Section<'_, '_, '_>, key: &str) -> Option<Setting<String>> {
    section.value(key, "a command", |scalar| {
        (!scalar.text.trim().is_empty()).then(|| scalar.text.clone())
    })
}

fn read_serve(config: &mut Config, reader: &mut ConfigReader<'_>, node: &YamlNode) {
    let names = provider_names(config);
    let keys =
        "port host token names upstream_idle end_after mcp_write recall_tool checkpoints upstreams";
    let home = (reader.env)("HOME");
    let mut section = reader.section("serve", node, keys);
    let serve = &mut config.serve;
    let port = |scalar: &Scalar| scalar.integer().and_then(|port| port.try_into().ok());
    serve.port = section.value("port", "a port, from 0 to 65535", port);
    let address = |scalar: &Scalar| match scalar.text.as_str() {
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        text => text.trim_matches(['[', ']']).parse().ok(),
    };
    let expected = "an address of this machine, such as 127.0.0.1 or 0.0.0.0";
    serve.host = section.value("host", expected, address);
    // Unlike keys of providers, tokens have never been written into files, so a variable is required.
    let token = |scalar: &Scalar| {
        let is_valid = scalar.has_variable && !scalar.text.is_empty();
        is_valid.then(|| Secret::new(scalar.text.clone()))
    };
    let expected = "a variable that holds it, such as ${INFOLD_TOKEN}";
    serve.token = section.value("token", expected, token);
    if let Some(member) = section.get("names") {
        serve.names = read_names(section.reader, member);
    }
    // More than a year means for ever, and a clock could not count it.
    let seconds = |scalar: &Scalar| scalar.integer().filter(|seconds| *seconds < 1 << 25);
    let expected = "a number of seconds, or 0 to wait for ever";
    serve.upstream_idle = section.value("upstream_idle", expected, seconds);
    let hours = |scalar: &Scalar| scalar.integer().filter(|hours| *hours < 1 << 20);
    let expected =
        "a number of hours without a request after which a conversation has ended, or 0 for never";
    serve.end_after = section.value("end_after", expected, hours);
    serve.mcp_write = section.boolean("mcp_write");
    serve.recall_tool = section.boolean("recall_tool");
    let path = |scalar: &Scalar| directory(&scalar.text, home.as_deref());
    serve.checkpoints = section.value("checkpoints", "a directory", path);
    if let Some(member) = section.get("upstreams") {
        let keys = SERVED_APIS.join(" ");
        let mut section = reader.section("serve.upstreams", &member.value, &keys);
        let expected = format!("an address, or one of {}", names.join(", "));
        for api in SERVED_APIS {
            let upstream = section.value(api, &expected, |scalar| {
                let is_valid = names.contains(&scalar.text) || is_address(&scalar.text);
                is_valid.then(|| scalar.text.clone())
            });
            serve.upstreams.extend(upstream.map(|set| (api, set)));
        }
    }
}

/// Says whether a text is `http://host`, or `openai+http://host` where that API is spoken there.
fn is_address(text: &str) -> bool {
    match text.split_once('+') {
        Some((api, rest)) if !api.contains("://") => {
            is_http(rest) && (api == "chat" || SERVED_APIS.contains(&api))
        }
        _ => is_http(text),
    }
}

/// Reads one name, or a list of them.
fn read_names(reader: &mut ConfigReader<'_>, member: &YamlMember) -> Vec<Setting<String>> {
    let nodes = match &member.value.kind {
        YamlKind::List(nodes) => nodes,
        _ => std::slice::from_ref(&member.value),
    };
    let mut names = Vec::new();
    for node in nodes {
        let scalar = reader.scalar("serve.names", node, "a name of this machine, or several");
        let origin = reader.origin(node.line);
        names.extend(scalar.map(|scalar| Setting::new(scalar.text.to_lowercase(), origin)));
    }
    names
}
