use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::problem::Problem;
use super::reader::{Fields, Reader, Scalar, value};
use super::yaml::{Kind, Member, Node};
use super::{APIS, Config, NamedProfile, OwnModel, Provider, SECTIONS, SERVED, Secret};
use crate::models::{self, Model, Prices, Tokenizer, UNKNOWN_WINDOW};
use crate::profile::{Keep, Set, Settings, Threshold};
use crate::strategy::NAMES;

/// Reads all sections of a file into `config`.
pub(super) fn read(config: &mut Config, reader: &mut Reader<'_>, root: &Node) {
    let top = reader.section("", root, &SECTIONS);
    for member in top.all() {
        let node = &member.value;
        match member.key.as_str() {
            "context_storage" => storage(config, reader, node),
            "llm" => llm(config, reader, node),
            "profiles" => profiles(config, reader, node),
            "models" => own_models(config, reader, node),
            "summarizer" => summarizer(config, reader, member, &top),
            "hooks" => {
                let fields = reader.section("hooks", node, &["before_fold", "after_fold"]);
                config.hooks.before_fold = command(reader, &fields, "before_fold");
                config.hooks.after_fold = command(reader, &fields, "after_fold");
            }
            "tools" => config.kept.push(("tools", reader.line(member.line))),
            "mcp_servers" => config.kept.push(("mcp_servers", reader.line(member.line))),
            _ => {}
        }
    }
    if let Some(redact) = reader.truth(&top, "redact") {
        config.redact = redact;
    }
    // It names providers, which may stand behind it.
    if let Some(member) = top.get("serve") {
        serve(config, reader, &member.value);
    }
}

fn storage(config: &mut Config, reader: &mut Reader<'_>, node: &Node) {
    let valid = [
        "enabled",
        "base_dir",
        "compression_threshold",
        "keep_recent_messages",
        "cleanup_days",
        "summary_prompt",
    ];
    let fields = reader.section("context_storage", node, &valid);
    let storage = &mut config.context_storage;
    if let Some(enabled) = reader.truth(&fields, "enabled") {
        storage.enabled = enabled;
    }
    let home = (reader.env)("HOME");
    let path = |scalar: &Scalar| directory(&scalar.text, home.as_deref());
    if let Some(dir) = reader.value(&fields, "base_dir", "a directory", path) {
        storage.base_dir = dir;
    }
    storage.compression_threshold = threshold(reader, &fields, "compression_threshold");
    let count = |scalar: &Scalar| scalar.whole().and_then(|number| number.try_into().ok());
    let expected = "a number of messages";
    storage.keep_recent_messages = reader.value(&fields, "keep_recent_messages", expected, count);
    if let Some(days) = reader.value(&fields, "cleanup_days", DAYS, days) {
        storage.cleanup_days = days;
    }
    storage.summary_prompt = reader.text(&fields, "summary_prompt");
}

pub(super) const DAYS: &str = "a number of days, from 0 to 36500";

pub(super) fn days(scalar: &Scalar) -> Option<u32> {
    let days = scalar.whole().filter(|&days| days <= 36_500)?;
    days.try_into().ok()
}

/// A path, where `~/` is the home directory.
pub(super) fn directory(text: &str, home: Option<&str>) -> Option<PathBuf> {
    match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Some(Path::new(home).join(rest)),
        _ => (!text.is_empty()).then(|| PathBuf::from(text)),
    }
}

fn threshold(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<Set<f64>> {
    let expected = "a fraction up to 1, a percentage up to 100, or -1 to inherit";
    let set = reader.number(fields, key, expected)?;
    // A number out of range is passed over when the profile is put together, not refused.
    if let (Err(error), Some(member)) = (Threshold::inherit(set.value), fields.get(key)) {
        reader.warn(
            member.line,
            format!("`{}`: {error}; it is passed over", fields.path(key)),
        );
    }
    Some(set)
}

fn llm(config: &mut Config, reader: &mut Reader<'_>, node: &Node) {
    let fields = reader.open("llm", node);
    for member in fields.all() {
        let known = APIS.contains(&member.key.as_str());
        let own = matches!(&member.value.kind, Kind::Map(members) if members.iter().any(|one| one.key == "provider"));
        if member.key == "provider" {
            continue;
        } else if known || own {
            let provider = provider(reader, member, known);
            config.llm.providers.push(provider);
        } else {
            unknown_provider(reader, member);
        }
    }
    let described = config.llm.providers.iter().map(|one| one.name.as_str());
    let mut names: Vec<&str> = APIS.to_vec();
    names.extend(described.filter(|name| !APIS.contains(name)));
    config.llm.provider = reader.word(&fields, "provider", &names);
}

fn unknown_provider(reader: &mut Reader<'_>, member: &Member) {
    let mut names = vec!["provider"];
    names.extend(APIS);
    reader.unknown("llm", member, &names);
    if let (Kind::Map(_), Some(error)) = (&member.value.kind, reader.errors.last_mut())
        && let Problem::Key {
            place,
            nearest: None,
            ..
        } = &mut error.problem
    {
        // A provider of one's own is fine, but its API must be known.
        place.push_str(" without a `provider:` of its own that says which API it speaks");
    }
}

fn provider(reader: &mut Reader<'_>, member: &Member, known: bool) -> Provider {
    let path = format!("llm.{}", member.key);
    let valid = [
        "provider",
        "model",
        "context_length",
        "api_key",
        "base_url",
        "max_tokens",
    ];
    let fields = reader.section(&path, &member.value, &valid);
    let itself = match known {
        true => member.key.clone(),
        // Only until the error about its `provider:` is reported.
        false => APIS[0].to_owned(),
    };
    let itself = Set::new(itself, reader.line(member.line));
    let literal = |scalar: &Scalar| Some((Secret::new(scalar.text.clone()), !scalar.filled));
    let api_key = reader.value(&fields, "api_key", "a text", literal);
    let api_key = api_key.filter(|set| !set.value.0.reveal().is_empty());
    if let (
        Some(Set {
            value: (_, true), ..
        }),
        Some(key),
    ) = (&api_key, fields.get("api_key"))
    {
        let advice = "a key written into a file is easily shared by mistake; write ${NAME} and set that variable";
        reader.warn(key.line, format!("`{path}.api_key`: {advice}"));
    }
    let url = |scalar: &Scalar| {
        let web = ["http://", "https://"]
            .iter()
            .any(|web| scalar.text.starts_with(web));
        web.then(|| scalar.text.clone())
    };
    Provider {
        name: member.key.clone(),
        api: reader.word(&fields, "provider", &APIS).unwrap_or(itself),
        model: reader.text(&fields, "model"),
        context_length: reader.count(&fields, "context_length", TOKENS),
        api_key: api_key.map(|set| Set::new(set.value.0, set.origin)),
        base_url: reader.value(
            &fields,
            "base_url",
            "an address that starts with http:// or https://",
            url,
        ),
        max_tokens: reader.count(&fields, "max_tokens", TOKENS),
    }
}

pub(super) const TOKENS: &str = "a number of tokens";

fn profiles(config: &mut Config, reader: &mut Reader<'_>, node: &Node) {
    let valid = [
        "window",
        "threshold",
        "auto",
        "keep",
        "ratio",
        "condense_model",
        "prompt",
        "strategy",
        "max_tokens",
    ];
    for member in reader.open("profiles", node).all() {
        let path = format!("profiles.{}", member.key);
        let fields = reader.section(&path, &member.value, &valid);
        let settings = Settings {
            auto: reader.truth(&fields, "auto"),
            prompt: reader.text(&fields, "prompt"),
            strategy: reader.word(&fields, "strategy", &NAMES),
            max_tokens: reader.count(&fields, "max_tokens", TOKENS),
            ..shared(reader, &fields)
        };
        config.profiles.push(NamedProfile {
            name: member.key.clone(),
            settings,
        });
    }
}

/// The settings that both profiles and models have.
fn shared(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Settings {
    let keep = |scalar: &Scalar| scalar.number().and_then(Keep::new);
    let ratio = |scalar: &Scalar| {
        let number = scalar.number()?;
        (number > 0.0 && number < 1.0).then_some(number)
    };
    Settings {
        window: reader.count(fields, "window", TOKENS),
        threshold: threshold(reader, fields, "threshold"),
        keep: reader.value(
            fields,
            "keep",
            "a number of messages, or a share below 1",
            keep,
        ),
        ratio: reader.value(fields, "ratio", "a number between 0 and 1", ratio),
        condense_model: reader.text(fields, "condense_model"),
        ..Settings::default()
    }
}

fn own_models(config: &mut Config, reader: &mut Reader<'_>, node: &Node) {
    let valid = [
        "provider",
        "window",
        "max_output",
        "tokenizer",
        "prices",
        "threshold",
        "keep",
        "ratio",
        "condense_model",
    ];
    for member in reader.open("models", node).all() {
        let path = format!("models.{}", member.key);
        let fields = reader.section(&path, &member.value, &valid);
        let settings = shared(reader, &fields);
        let mut row = match models::find(&member.key) {
            Some(row) => row.clone(),
            None => unheard_of(),
        };
        row.name = member.key.clone();
        if let Some(provider) = reader.text(&fields, "provider") {
            row.provider = provider.value;
        }
        if let Some(window) = &settings.window {
            row.window = window.value;
            row.max_output = row.max_output.min(window.value);
        }
        if let Some(output) = reader.count(&fields, "max_output", TOKENS) {
            row.max_output = output.value;
        }
        let tokenizers = ["o200k", "cl100k", "claude", "other"];
        let tokenizer = reader.word(&fields, "tokenizer", &tokenizers);
        if let Some(tokenizer) = tokenizer.and_then(|set| Tokenizer::named(&set.value)) {
            row.tokenizer = tokenizer;
        }
        let priced = fields.get("prices").is_some();
        if let Some(member) = fields.get("prices") {
            row.prices = prices(reader, &fields.path("prices"), &member.value, row.prices);
        }
        let origin = reader.line(member.line);
        config.models.push(OwnModel {
            row,
            settings,
            priced,
            origin,
        });
    }
}

fn unheard_of() -> Model {
    Model {
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
    }
}

/// Prices, where cache prices left out are those of plain input; the others must be known.
fn prices(
    reader: &mut Reader<'_>,
    path: &str,
    node: &Node,
    known: Option<Prices>,
) -> Option<Prices> {
    let fields = reader.section(path, node, &["input", "cached", "write", "output"]);
    let expected = "US dollars per million tokens";
    let mut price = |key| {
        let money = |scalar: &Scalar| scalar.number().filter(|&money| money >= 0.0);
        reader
            .value(&fields, key, expected, money)
            .map(|set| set.value)
    };
    let [input, cached, write, output] = ["input", "cached", "write", "output"].map(&mut price);
    let same = |at: fn(Prices) -> f64| known.filter(|_| input.is_none()).map(at);
    let Some((plain, output)) = input
        .or(known.map(|known| known.input))
        .zip(output.or(known.map(|known| known.output)))
    else {
        let problem = value(path, "at least `input` and `output`", "less".to_owned());
        reader.wrong(node.line, problem);
        return None;
    };
    Some(Prices {
        input: plain,
        cached: cached.or(same(|known| known.cached)).unwrap_or(plain),
        write: write.or(same(|known| known.write)).unwrap_or(plain),
        output,
    })
}

/// `summarizer: model`, `summarizer: command:…`, or a mapping of `use`, `timeout` and `check`.
fn summarizer(config: &mut Config, reader: &mut Reader<'_>, member: &Member, top: &Fields<'_>) {
    let name = match &member.value.kind {
        Kind::Map(_) => {
            let valid = ["use", "timeout", "check"];
            let fields = reader.section("summarizer", &member.value, &valid);
            if let Some(check) = reader.truth(&fields, "check") {
                config.summarizer.check = check;
            }
            if let Some(timeout) = reader.count(&fields, "timeout", "a number of seconds") {
                config.summarizer.timeout = timeout;
            }
            reader.value(&fields, "use", SUMMARIZER, |scalar| {
                summarizing(&scalar.text)
            })
        }
        _ => reader.value(top, "summarizer", SUMMARIZER, |scalar| {
            summarizing(&scalar.text)
        }),
    };
    if let Some(name) = name {
        config.summarizer.name = name;
    }
}

pub(super) const SUMMARIZER: &str =
    "`extractive`, `model`, `model:` and its name, or `command:` and a command";

pub(super) fn summarizing(text: &str) -> Option<String> {
    let known = ["extractive", "model"].contains(&text);
    let named = ["model:", "command:"].into_iter().any(|kind| {
        let name = text.strip_prefix(kind).map(str::trim);
        name.is_some_and(|name| !name.is_empty())
    });
    (known || named).then(|| text.to_owned())
}

fn command(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<Set<String>> {
    reader.value(fields, key, "a command", |scalar| {
        (!scalar.text.trim().is_empty()).then(|| scalar.text.clone())
    })
}

fn serve(config: &mut Config, reader: &mut Reader<'_>, node: &Node) {
    let valid = [
        "port",
        "host",
        "token",
        "names",
        "upstream_idle",
        "end_after",
        "upstreams",
    ];
    let fields = reader.section("serve", node, &valid);
    let port = |scalar: &Scalar| scalar.whole().and_then(|port| port.try_into().ok());
    config.serve.port = reader.value(&fields, "port", "a port, from 0 to 65535", port);
    let address = |scalar: &Scalar| match scalar.text.as_str() {
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        text => text.trim_matches(['[', ']']).parse().ok(),
    };
    let expected = "an address of this machine, such as 127.0.0.1 or 0.0.0.0";
    config.serve.host = reader.value(&fields, "host", expected, address);
    // Unlike the key of a provider, nobody has an old one in a file.
    let token = |scalar: &Scalar| {
        let fit = scalar.filled && !scalar.text.is_empty();
        fit.then(|| Secret::new(scalar.text.clone()))
    };
    let expected = "a variable that holds it, such as ${INFOLD_TOKEN}";
    config.serve.token = reader.value(&fields, "token", expected, token);
    if let Some(member) = fields.get("names") {
        config.serve.names = names(reader, member);
    }
    // More than a year is for ever, and a clock could not count it.
    let seconds = |scalar: &Scalar| scalar.whole().filter(|seconds| *seconds < 1 << 25);
    let expected = "a number of seconds, or 0 to wait for ever";
    config.serve.upstream_idle = reader.value(&fields, "upstream_idle", expected, seconds);
    let expected =
        "a number of hours without a request after which a conversation has ended, or 0 for never";
    let hours = |scalar: &Scalar| scalar.whole().filter(|hours| *hours < 1 << 20);
    config.serve.end_after = reader.value(&fields, "end_after", expected, hours);
    if let Some(member) = fields.get("upstreams") {
        let fields = reader.section("serve.upstreams", &member.value, &SERVED);
        let described = config.llm.providers.iter().map(|one| one.name.clone());
        let own = described.filter(|name| !APIS.contains(&name.as_str()));
        let names: Vec<String> = APIS.map(str::to_owned).into_iter().chain(own).collect();
        let expected = format!("an address, or one of {}", names.join(", "));
        for api in SERVED {
            let upstream = reader.value(&fields, api, &expected, |scalar| {
                let fit = names.contains(&scalar.text) || is_address(&scalar.text);
                fit.then(|| scalar.text.clone())
            });
            config
                .serve
                .upstreams
                .extend(upstream.map(|set| (api, set)));
        }
    }
}

/// `http://host`, or `openai+http://host` where that API is spoken there.
fn is_address(text: &str) -> bool {
    let (speaks, rest) = match text.split_once('+') {
        Some((api, rest)) if !api.contains("://") => (Some(api), rest),
        _ => (None, text),
    };
    let web = ["http://", "https://"];
    let web = web.into_iter().any(|scheme| rest.starts_with(scheme));
    web && speaks.is_none_or(|api| api == "chat" || SERVED.contains(&api))
}

/// One name, or a list of them.
fn names(reader: &mut Reader<'_>, member: &Member) -> Vec<Set<String>> {
    let one = std::slice::from_ref(&member.value);
    let nodes = match &member.value.kind {
        Kind::List(nodes) => nodes,
        _ => one,
    };
    let mut names = Vec::new();
    for node in nodes {
        let scalar = reader.scalar("serve.names", node, "a name of this machine, or several");
        let origin = reader.line(node.line);
        names.extend(scalar.map(|scalar| Set::new(scalar.text.to_lowercase(), origin)));
    }
    names
}
