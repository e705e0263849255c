use std::time::{Duration, Instant};

use clap::Subcommand;
use infold::Config;
use infold::config::{APIS, Provider};
use infold::connect;
use infold_provider::{Listed, RetryPolicy};
use infold_wire::Trouble;
use infold_wire::trouble::Refused;
use serde_json::json;

use crate::connect::Calls;
use crate::failure::{Failure, Kind};
use crate::out::{DIM, GOOD, Out, number, one_line, paint, table};

/// What `infold provider` does.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// The providers that can be asked, and what they need
    #[command(after_help = "Example:\n  infold provider list --json")]
    List,
    /// Reach a provider: does it answer, is the key right, which models has it
    #[command(
        after_help = "Exits with 4 if it does not answer.\n\nExamples:\n  infold provider check ollama\n  infold provider check openai --json"
    )]
    Check {
        /// The provider; without it, the one in use
        name: Option<String>,
    },
}

/// `infold provider`
pub fn run(config: &Config, command: &ProviderCommand, out: &mut Out) -> Result<(), Failure> {
    match command {
        ProviderCommand::List => list(config, out),
        ProviderCommand::Check { name } => check(config, name.as_deref(), out),
    }
}

/// Those of the configuration, then those that need none.
fn all(config: &Config) -> Vec<Provider> {
    let own = config.llm.providers.iter().map(|one| one.name.as_str());
    let mut names: Vec<&str> = own.collect();
    let others = APIS.iter().filter(|api| !names.contains(api)).copied();
    names.extend(others.collect::<Vec<_>>());
    let found = names.iter().filter_map(|name| config.provider_named(name));
    found.collect()
}

fn list(config: &Config, out: &mut Out) -> Result<(), Failure> {
    let in_use = config.provider().map(|provider| provider.name.as_str());
    let head = ["provider", "speaks", "model", "key", "at"];
    let mut rows = vec![head.map(str::to_owned)];
    for provider in all(config) {
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
                "base_url": endpoint.base(), "in_use": in_use == Some(&provider.name),
            }))?;
            continue;
        }
        let used = if in_use == Some(&provider.name) {
            " *"
        } else {
            ""
        };
        rows.push([
            format!("{}{used}", provider.name),
            provider.api.value.clone(),
            model.unwrap_or_default(),
            key,
            endpoint.base(),
        ]);
    }
    if out.is_json() {
        return Ok(());
    }
    let mut lines = table(&rows, &[], out.width()).into_iter();
    out.line(paint(DIM, lines.next().unwrap_or_default()))?;
    lines.try_for_each(|line| out.line(line))
}

/// How long a check may take.
const CHECK: Duration = Duration::from_secs(20);

fn check(config: &Config, name: Option<&str>, out: &mut Out) -> Result<(), Failure> {
    let provider = connect::provider(config, name, None, None)?;
    let patience = RetryPolicy {
        deadline: CHECK,
        attempts: 2,
        ..RetryPolicy::default()
    };
    let calls = Calls::new(patience)?;
    let model = provider.model.as_ref().map(|set| set.value.clone());
    let connection = calls.connect(config, &provider, model.as_deref().unwrap_or_default())?;
    let started = Instant::now();
    let models = connection.models().map_err(|error| match error {
        // No request was made of a task that could be looked at.
        infold::CallFailure::Call(error) if error.trouble == Trouble::Refused(Refused::Request) => {
            Failure::new(Kind::Provider, error)
                .hint("look at `provider` and `base_url` in config.yaml: is it this kind of API?")
        }
        infold::CallFailure::Call(error) => Failure::from(*error),
        error => Failure::new(Kind::Interrupted, error),
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
        for line in lines(&models, out.width()) {
            out.line(line)?;
        }
    }
    match missing {
        None => Ok(()),
        Some(model) => Err(Failure::new(
            Kind::Provider,
            format!("{} has no model `{model}`", provider.name),
        )
        .hint(match provider.api.value.as_str() {
            "ollama" => format!("`ollama pull {model}`, or name another one"),
            _ => "name one of the models above".to_owned(),
        })),
    }
}

fn lines(models: &[Listed], width: usize) -> Vec<String> {
    let rows: Vec<[String; 2]> = models
        .iter()
        .map(|model| {
            let window = model
                .window
                .map(|window| format!("{} tokens", number(window)));
            [one_line(&model.name), window.unwrap_or_default()]
        })
        .collect();
    let lines = table(&rows, &[], width);
    lines.into_iter().map(|line| format!("  {line}")).collect()
}
