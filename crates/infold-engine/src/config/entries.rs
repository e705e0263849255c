use serde_json::{Value, json};

use super::{Config, Provider, Serve};
use crate::profile::{Keep, Origin, Set, Settings};

/// One value of the effective configuration; a secret is only said to be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key, with the sections it is in.
    pub key: String,
    /// The value; null if it is not set.
    pub value: Value,
    /// Where it was set.
    pub origin: Origin,
}

impl Config {
    /// All values in effect, in the order of the sections.
    pub fn entries(&self) -> Vec<Entry> {
        let mut list = List(Vec::new());
        let storage = &self.context_storage;
        let dir = storage.base_dir.value.display().to_string();
        list.set("context_storage.enabled", &storage.enabled);
        list.push(
            "context_storage.base_dir",
            json!(dir),
            &storage.base_dir.origin,
        );
        match &storage.compression_threshold {
            Some(set) => list.push(
                "context_storage.compression_threshold",
                number(set.value),
                &set.origin,
            ),
            None => list.push(
                "context_storage.compression_threshold",
                Value::Null,
                &Origin::Default,
            ),
        }
        list.opt(
            "context_storage.keep_recent_messages",
            &storage.keep_recent_messages,
        );
        list.set("context_storage.cleanup_days", &storage.cleanup_days);
        list.opt("context_storage.summary_prompt", &storage.summary_prompt);
        list.opt("llm.provider", &self.llm.provider);
        for provider in &self.llm.providers {
            list.provider(provider);
        }
        for profile in &self.profiles {
            list.settings(&format!("profiles.{}", profile.name), &profile.settings);
        }
        for model in &self.models {
            let row = &model.row;
            let key = |name: &str| format!("models.{}.{name}", row.name);
            list.push(&key("provider"), json!(row.provider), &model.origin);
            list.push(&key("window"), json!(row.window), &model.origin);
            list.push(&key("max_output"), json!(row.max_output), &model.origin);
            let tokenizer = json!(row.tokenizer.to_string());
            list.push(&key("tokenizer"), tokenizer, &model.origin);
            if let Some(prices) = row.prices {
                let all = [prices.input, prices.cached, prices.write, prices.output];
                list.push(
                    &key("prices"),
                    all.map(number).to_vec().into(),
                    &model.origin,
                );
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
        list.opt("hooks.before_fold", &self.hooks.before_fold);
        list.opt("hooks.after_fold", &self.hooks.after_fold);
        list.serve(&self.serve);
        list.set("redact", &self.redact);
        for (section, origin) in &self.kept {
            list.push(section, json!("(kept for later)"), origin);
        }
        list.some("model", &self.model);
        list.some("profile", &self.profile);
        list.settings("every model", &self.environment);
        list.0
    }
}

struct List(Vec<Entry>);

impl List {
    fn push(&mut self, key: &str, value: Value, origin: &Origin) {
        self.0.push(Entry {
            key: key.to_owned(),
            value,
            origin: origin.clone(),
        });
    }

    fn set<T: Clone + Into<Value>>(&mut self, key: &str, set: &Set<T>) {
        self.push(key, set.value.clone().into(), &set.origin);
    }

    /// A value that is listed even when it is not set.
    fn opt<T: Clone + Into<Value>>(&mut self, key: &str, set: &Option<Set<T>>) {
        match set {
            Some(set) => self.set(key, set),
            None => self.push(key, Value::Null, &Origin::Default),
        }
    }

    fn some<T: Clone + Into<Value>>(&mut self, key: &str, set: &Option<Set<T>>) {
        if let Some(set) = set {
            self.set(key, set);
        }
    }

    fn provider(&mut self, provider: &Provider) {
        let key = |name: &str| format!("llm.{}.{name}", provider.name);
        self.set(&key("provider"), &provider.api);
        self.some(&key("model"), &provider.model);
        self.some(&key("context_length"), &provider.context_length);
        if let Some(secret) = &provider.api_key {
            self.push(&key("api_key"), json!("(set)"), &secret.origin);
        }
        if let Some(url) = &provider.base_url {
            self.push(&key("base_url"), json!(public(&url.value)), &url.origin);
        }
        self.some(&key("max_tokens"), &provider.max_tokens);
    }

    fn serve(&mut self, serve: &Serve) {
        self.some("serve.port", &serve.port);
        if let Some(host) = &serve.host {
            self.push("serve.host", json!(host.value.to_string()), &host.origin);
        }
        if let Some(token) = &serve.token {
            self.push("serve.token", json!("(set)"), &token.origin);
        }
        for name in &serve.names {
            self.set("serve.names", name);
        }
        self.some("serve.upstream_idle", &serve.upstream_idle);
        self.some("serve.end_after", &serve.end_after);
        for (api, set) in &serve.upstreams {
            let key = format!("serve.upstreams.{api}");
            self.push(&key, json!(public(&set.value)), &set.origin);
        }
    }

    fn settings(&mut self, path: &str, settings: &Settings) {
        let key = |name: &str| format!("{path}.{name}");
        self.some(&key("window"), &settings.window);
        if let Some(threshold) = &settings.threshold {
            self.push(
                &key("threshold"),
                number(threshold.value),
                &threshold.origin,
            );
        }
        self.some(&key("auto"), &settings.auto);
        if let Some(keep) = &settings.keep {
            let number = match keep.value {
                Keep::Messages(count) => json!(count),
                Keep::Share(share) => json!(share),
            };
            self.push(&key("keep"), number, &keep.origin);
        }
        self.some(&key("ratio"), &settings.ratio);
        self.some(&key("condense_model"), &settings.condense_model);
        self.some(&key("prompt"), &settings.prompt);
        self.some(&key("strategy"), &settings.strategy);
        self.some(&key("max_tokens"), &settings.max_tokens);
    }
}

/// A number as people write it: 60, not 60.0.
fn number(number: f64) -> Value {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => json!(number as i64),
        false => json!(number),
    }
}

/// An address without the name, password or key that it may carry.
pub(super) fn public(url: &str) -> String {
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
