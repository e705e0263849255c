//! Lists the values of the effective configuration.

use infold_tools::UnknownTools;
use serde_json::{Value, json};

use super::{
    Config, McpAccess, McpCommand, Provider, ServeConfig, SourceConfig, ToolsConfig, WorkConfig,
};
use crate::profile::{KeepRecent, Origin, Setting, Settings};

/// One value of the effective configuration; of a secret only whether it is set.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigEntry {
    /// The key, with its sections.
    pub key: String,
    /// The value; null if it is not set.
    pub value: Value,
    /// The place where it was set.
    pub origin: Origin,
}

impl Config {
    /// Returns all values in effect, in the order of the sections.
    pub fn entries(&self) -> Vec<ConfigEntry> {
        let mut list = EntryList(Vec::new());
        let storage = &self.context_storage;
        let section = |name: &str| format!("context_storage.{name}");
        let base_dir = json!(storage.base_dir.value.display().to_string());
        let threshold = storage.compression_threshold.as_ref();
        let threshold = threshold.map(|set| Setting::new(number(set.value), set.origin.clone()));
        list.set(&section("enabled"), &storage.enabled);
        list.push(&section("base_dir"), base_dir, &storage.base_dir.origin);
        list.always(&section("compression_threshold"), &threshold);
        let messages = &storage.keep_recent_messages;
        list.always(&section("keep_recent_messages"), messages);
        list.set(&section("cleanup_days"), &storage.cleanup_days);
        list.always(&section("summary_prompt"), &storage.summary_prompt);
        list.always("llm.provider", &self.llm.provider);
        for provider in &self.llm.providers {
            list.provider(provider);
        }
        for (api, address) in &self.addresses {
            if !self.llm.providers.iter().any(|one| one.name == *api) {
                let address = address.clone();
                list.address(&format!("llm.{api}.base_url"), &Some(address));
            }
        }
        for profile in &self.profiles {
            list.settings(&format!("profiles.{}", profile.name), &profile.settings);
        }
        for model in &self.models {
            let row = &model.row;
            let mut push = |name: &str, value: Value| {
                let key = format!("models.{}.{name}", row.name);
                list.push(&key, value, &model.origin);
            };
            push("provider", json!(row.provider));
            push("window", json!(row.window));
            push("max_output", json!(row.max_output));
            push("tokenizer", json!(row.tokenizer.to_string()));
            if let Some(prices) = row.prices {
                let all = [prices.input, prices.cached, prices.write, prices.output];
                push("prices", all.map(number).to_vec().into());
            }
            let rest = Settings {
                window: None,
                ..model.settings.clone()
            };
            list.settings(&format!("models.{}", row.name), &rest);
        }
        list.set("summarizer.use", &self.summarizer.name);
        list.set("summarizer.timeout", &self.summarizer.timeout);
        list.set("summarizer.check", &self.summarizer.check);
        list.always("hooks.before_fold", &self.hooks.before_fold);
        list.always("hooks.after_fold", &self.hooks.after_fold);
        list.serve(&self.serve);
        list.set("redact", &self.redact);
        list.set("recall.auto", &self.recall.auto);
        list.optional("recall.tokens", &self.recall.tokens);
        list.set("recall.excerpts", &self.recall.excerpts);
        let layers = &self.layers;
        list.set("layers.inject", &layers.inject);
        list.optional("layers.max_tokens", &layers.max_tokens);
        list.set("layers.recent_turns", &layers.recent_turns);
        list.set("layers.threshold", &layers.threshold);
        let method = &layers.relevance;
        list.push(
            "layers.relevance",
            json!(method.value.name()),
            &method.origin,
        );
        list.optional("layers.embedding_model", &layers.embedding_model);
        if layers.embedding_model.is_some() {
            list.set("layers.embedding_threshold", &layers.embedding_threshold);
        }
        for (part, share) in &layers.set_shares {
            list.set(&format!("layers.shares.{}", part.name()), share);
        }
        if let Some(tools) = &self.tools {
            list.tools(tools);
        }
        list.source("github", &self.sources.github);
        list.source("gitlab", &self.sources.gitlab);
        list.work(&self.work);
        for server in &self.mcp_servers {
            let value = match &server.access {
                McpAccess::Http { url, .. } => json!(without_credentials(url)),
                McpAccess::Command { command, .. } => match command {
                    McpCommand::Line(line) => json!(line),
                    McpCommand::Words(words) => json!(words.join(" ")),
                },
            };
            list.push(
                &format!("mcp_servers.{}", server.name),
                value,
                &server.origin,
            );
        }
        list.optional("model", &self.model);
        list.optional("profile", &self.profile);
        list.settings("every model", &self.environment);
        list.0
    }
}

struct EntryList(Vec<ConfigEntry>);

impl EntryList {
    fn push(&mut self, key: &str, value: Value, origin: &Origin) {
        self.0.push(ConfigEntry {
            key: key.to_owned(),
            value,
            origin: origin.clone(),
        });
    }

    fn set<T: Clone + Into<Value>>(&mut self, key: &str, set: &Setting<T>) {
        self.push(key, set.value.clone().into(), &set.origin);
    }

    /// Lists a value even if it is not set.
    fn always<T: Clone + Into<Value>>(&mut self, key: &str, set: &Option<Setting<T>>) {
        match set {
            Some(set) => self.set(key, set),
            None => self.push(key, Value::Null, &Origin::Default),
        }
    }

    fn optional<T: Clone + Into<Value>>(&mut self, key: &str, set: &Option<Setting<T>>) {
        self.shown(key, set, |value| value.clone().into());
    }

    /// Lists a value in a custom form, if it is set.
    fn shown<T>(&mut self, key: &str, set: &Option<Setting<T>>, show: impl Fn(&T) -> Value) {
        if let Some(set) = set {
            self.push(key, show(&set.value), &set.origin);
        }
    }

    fn address(&mut self, key: &str, set: &Option<Setting<String>>) {
        self.shown(key, set, |url| json!(without_credentials(url)));
    }

    fn provider(&mut self, provider: &Provider) {
        let key = |name: &str| format!("llm.{}.{name}", provider.name);
        self.set(&key("provider"), &provider.api);
        self.optional(&key("model"), &provider.model);
        self.optional(&key("context_length"), &provider.context_length);
        self.shown(&key("api_key"), &provider.api_key, |_| json!("(set)"));
        self.address(&key("base_url"), &provider.base_url);
        self.optional(&key("max_tokens"), &provider.max_tokens);
    }

    fn serve(&mut self, serve: &ServeConfig) {
        self.optional("serve.port", &serve.port);
        self.shown("serve.host", &serve.host, |host| json!(host.to_string()));
        self.shown("serve.token", &serve.token, |_| json!("(set)"));
        for name in &serve.names {
            self.set("serve.names", name);
        }
        self.optional("serve.upstream_idle", &serve.upstream_idle);
        self.optional("serve.end_after", &serve.end_after);
        self.optional("serve.mcp_write", &serve.mcp_write);
        self.optional("serve.recall_tool", &serve.recall_tool);
        self.shown("serve.checkpoints", &serve.checkpoints, |it| json!(it));
        for (api, set) in &serve.upstreams {
            let key = format!("serve.upstreams.{api}");
            self.push(&key, json!(without_credentials(&set.value)), &set.origin);
        }
    }

    fn source(&mut self, name: &str, source: &SourceConfig) {
        let key = |of: &str| format!("sources.{name}.{of}");
        self.address(&key("base_url"), &source.base_url);
        for repo in &source.repos {
            self.set(&key("repos"), repo);
        }
        self.optional(&key("label"), &source.label);
        self.optional(&key("taken_label"), &source.taken_label);
        self.optional(&key("done_label"), &source.done_label);
        self.optional(&key("failed_label"), &source.failed_label);
    }

    fn work(&mut self, work: &WorkConfig) {
        self.optional("work.max_steps", &work.max_steps);
        self.optional("work.max_tokens", &work.max_tokens);
        self.shown("work.max_cost", &work.max_cost, |it| number(*it));
        self.optional("work.max_minutes", &work.max_minutes);
        self.optional("work.result_tokens", &work.result_tokens);
        self.optional("work.commands", &work.commands);
        self.optional("work.checkpoints", &work.checkpoints);
        self.shown("work.workspace", &work.workspace, |it| json!(it));
        self.optional("work.system_prompt", &work.system_prompt);
        self.optional("work.concurrency", &work.concurrency);
        self.optional("work.per_user", &work.per_user);
        self.optional("work.max_attempts", &work.max_attempts);
        self.optional("work.retry_seconds", &work.retry_seconds);
        self.optional("work.lease_seconds", &work.lease_seconds);
    }

    fn tools(&mut self, tools: &ToolsConfig) {
        let situation = tools.policy.situation();
        let permissions: Vec<&str> = situation.permissions().map(|it| it.as_str()).collect();
        let environment = situation.environment();
        let unknown = match tools.policy.unknown_tools(environment) {
            UnknownTools::Allow => "allow",
            UnknownTools::Deny => "deny",
        };
        let mut push = |key: &str, value: Value| {
            self.push(&format!("tools.{key}"), value, &tools.origin);
        };
        push("phase", json!(situation.phase()));
        push("permissions", json!(permissions));
        push("environment", json!(environment.name()));
        push("urgent", json!(situation.is_urgent()));
        push("unknown", json!(unknown));
    }

    fn settings(&mut self, path: &str, settings: &Settings) {
        let key = |name: &str| format!("{path}.{name}");
        self.optional(&key("window"), &settings.window);
        self.shown(&key("threshold"), &settings.threshold, |it| number(*it));
        self.optional(&key("auto"), &settings.auto);
        self.shown(&key("keep"), &settings.keep, |keep| match keep {
            KeepRecent::Messages(count) => json!(count),
            KeepRecent::Share(share) => json!(share),
        });
        self.optional(&key("ratio"), &settings.ratio);
        self.optional(&key("condense_model"), &settings.condense_model);
        self.optional(&key("prompt"), &settings.prompt);
        self.optional(&key("strategy"), &settings.strategy);
        self.optional(&key("max_tokens"), &settings.max_tokens);
    }
}

/// Returns a number as people write it: 60, not 60.0.
fn number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return json!(number as i64);
    }
    json!(number)
}

/// Returns an address without the name, password or key that it may carry.
pub(super) fn without_credentials(url: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, _)) => (url, "?(set)"),
        None => (url, ""),
    };
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match host.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://(set)@{host}{path}{query}"),
        None => format!("{url}{query}"),
    }
}
