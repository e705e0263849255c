//! `infold provider`: lists providers and checks whether they answer.

use std::time::{Duration, Instant};

use clap::Subcommand;
use infold::Config;
use infold::config::{APIS, Provider};
use infold::connect;
use infold_provider::{ListedModel, RetryPolicy};
use infold_wire::ProviderError;
use infold_wire::provider_error::RefusalCause;
use serde_json::json;

use crate::call_runtime::CallRuntime;
use crate::error::{CliError, CliResult};
use crate::output::{GOOD, Output, format_table, number, one_line, paint};

/// A command of `infold provider`.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// List the available providers and their keys
    List,
    /// Check that a provider answers and accepts the key, and list its models
    Check {
        /// The provider [default: the one in use]
        name: Option<String>,
    },
}

/// `infold provider`
pub fn run(config: &Config, command: &ProviderCommand, out: &mut Output) -> CliResult {
    match command {
        ProviderCommand::List => list(config, out),
        ProviderCommand::Check { name } => check(config, name.as_deref(), out),
    }
}

/// Returns the configured providers, then the built-in ones.
fn available_providers(config: &Config) -> Vec<Provider> {
    let own = config.llm.providers.iter().map(|one| one.name.as_str());
    let mut names: Vec<&str> = own.collect();
    let others = APIS.iter().filter(|api| !names.contains(api)).copied();
    names.extend(others.collect::<Vec<_>>());
    let found = names.iter().filter_map(|name| config.provider_named(name));
    found.collect()
}

fn list(config: &Config, out: &mut Output) -> CliResult {
    let in_use = config.provider().map(|provider| provider.name.as_str());
    let mut rows = Vec::new();
    for provider in available_providers(config) {
        let endpoint = connect::endpoint(&provider)?;
        let model = provider.model.as_ref().map(|set| set.value.clone());
        let key = match (&provider.api_key, endpoint.needs_key()) {
            (Some(set), _) => set.origin.to_string(),
            (None, true) => "missing".to_owned(),
            (None, false) => "not needed".to_owned(),
        };
        if out.is_json() {
            out.object(&json!({
                "name": provider.name, "api": provider.api.value, "wire": endpoint.wire.name(),
                "model": model, "key": provider.api_key.is_some(), "needs_key": endpoint.needs_key(),
                "base_url": endpoint.base(), "base_url_from": address_origin(&provider), "in_use": in_use == Some(&provider.name),
            }))?;
            continue;
        }
        let mark = if in_use == Some(&provider.name) {
            " *"
        } else {
            ""
        };
        rows.push([
            format!("{}{mark}", provider.name),
            provider.api.value.clone(),
            model.unwrap_or_default(),
            key,
            match address_origin(&provider) {
                Some(origin) => format!("{} ({origin})", endpoint.base()),
                None => endpoint.base(),
            },
        ]);
    }
    if out.is_json() {
        return Ok(());
    }
    let head = ["provider", "API", "model", "key", "address"];
    out.table(head, rows, &[])
}

/// Returns the place where the address of a provider was set; `None` if it is the API's default.
fn address_origin(provider: &Provider) -> Option<String> {
    let set = provider.base_url.as_ref();
    set.map(|set| set.origin.to_string())
}

const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

fn check(config: &Config, name: Option<&str>, out: &mut Output) -> CliResult {
    let provider = connect::provider(config, name, None, None)?;
    let patience = RetryPolicy {
        deadline: CHECK_TIMEOUT,
        attempts: 2,
        ..RetryPolicy::default()
    };
    let runtime = CallRuntime::new(patience)?;
    let model = provider.model.as_ref().map(|set| set.value.clone());
    let connection = runtime.connect(config, &provider, model.as_deref().unwrap_or_default())?;
    let started = Instant::now();
    let models = connection.models().map_err(|error| match error {
        // The hint about request.json does not apply: there is no task.
        infold::CallFailure::Call(error)
            if error.trouble == ProviderError::Refused(RefusalCause::Request) =>
        {
            CliError::provider(error)
                .hint("check `provider` and `base_url` in config.yaml: is it this kind of API?")
        }
        infold::CallFailure::Call(error) => CliError::from(*error),
        error => CliError::interrupted(error),
    })?;
    let took = started.elapsed().as_millis();
    let has = |name: &str| models.iter().any(|listed| listed.is(name));
    let missing = model.filter(|model| !models.is_empty() && !has(model));
    if out.is_json() {
        let listed = models
            .iter()
            .map(|one| json!({"name": one.name, "window": one.window}));
        out.object(&json!({
            "name": provider.name, "base_url": connection.endpoint.base(), "milliseconds": took as u64,
            "models": listed.collect::<Vec<_>>(), "model_is_there": missing.is_none(),
        }))?;
    } else {
        let place = connection.endpoint.base();
        let well = paint(GOOD, "answers");
        out.line(format!(
            "{} at {place} {well} ({took} ms, {} models)",
            provider.name,
            models.len()
        ))?;
        let rows: Vec<[String; 2]> = models.iter().map(model_row).collect();
        for line in format_table(&rows, &[], out.width()) {
            out.line(format!("  {line}"))?;
        }
    }
    match missing {
        None => Ok(()),
        Some(model) => Err(
            CliError::provider(format!("{} has no model `{model}`", provider.name)).hint(
                match provider.api.value.as_str() {
                    "ollama" => format!("`ollama pull {model}`, or choose another one"),
                    _ => "choose one of the models above".to_owned(),
                },
            ),
        ),
    }
}

fn model_row(model: &ListedModel) -> [String; 2] {
    let window = model
        .window
        .map(|window| format!("{} tokens", number(window)));
    [one_line(&model.name), window.unwrap_or_default()]
}
