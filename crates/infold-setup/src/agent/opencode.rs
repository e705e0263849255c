//! The setup of opencode: base URLs of its providers in its JSON configuration.

use serde_json::Value;

use super::{AgentTarget, ConfigDocument, Plan, PlanError, Surroundings};
use crate::edit::{Syntax, read};
use crate::mcp::McpForm;
use crate::tree::PathStep;

/// Providers that opencode knows without a configuration: name, variable of the API key, path of the base URL, API.
const KNOWN_PROVIDERS: [(&str, &str, &str, &str); 3] = [
    ("anthropic", "ANTHROPIC_API_KEY", "/v1", "anthropic"),
    ("openai", "OPENAI_API_KEY", "/v1", "responses"),
    (
        "google",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "/v1beta",
        "gemini",
    ),
];

/// Plans the base URLs of all providers that are in use, and the MCP server.
pub(super) fn plan(at: &Surroundings<'_>, to: &AgentTarget<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let directory = at.config("opencode");
    let names = ["opencode.jsonc", "opencode.json", "config.json"];
    let mut name = "opencode.json";
    for other in names {
        if at.text(&directory.join(other))?.is_some() {
            name = other;
            break;
        }
    }
    let config = at.document(directory.join(name), Syntax::Json)?;
    let signed_in = signed_in(at);
    let mut skipped = Vec::new();
    for (provider, variable, suffix, api) in KNOWN_PROVIDERS {
        let is_used = config.value["provider"].get(provider).is_some()
            || config
                .key(&["model"])
                .is_some_and(|model| model.starts_with(&format!("{provider}/")))
            || signed_in[provider].is_object()
            || at.is_set(variable);
        if is_used {
            if signed_in[provider]["type"] == "oauth" {
                plan.notes.push(format!("opencode is signed in to {provider} with a subscription, not a key: such requests may go past the base URL"));
            }
            let path = PathStep::keys(&["provider", provider, "options", "baseURL"]);
            plan.address(&config, path, to, suffix, api)?;
        }
    }
    let custom = config.value["provider"].as_object().into_iter().flatten();
    for (provider, settings) in custom {
        if KNOWN_PROVIDERS.iter().any(|(known, ..)| known == provider) {
            continue;
        }
        let package = settings["npm"].as_str().unwrap_or_default();
        // The package speaks one API. A provider without a base URL has a default that is not known here.
        let known = match package {
            "@ai-sdk/openai-compatible" => Some(("/v1", "openai")),
            "@ai-sdk/openai" => Some(("/v1", "responses")),
            "@ai-sdk/anthropic" => Some(("/v1", "anthropic")),
            "@ai-sdk/google" => Some(("/v1beta", "gemini")),
            _ => None,
        };
        let path = PathStep::keys(&["provider", provider, "options", "baseURL"]);
        match known.filter(|_| config.get(&path).is_some()) {
            Some((suffix, api)) => plan.address(&config, path, to, suffix, api)?,
            None => skipped.push(provider.clone()),
        }
    }
    if plan.changes.is_empty() {
        return Err(nothing_to_change(&config, &skipped));
    }
    if !skipped.is_empty() {
        plan.notes.push(format!(
            "not through the proxy, for want of a base URL: {}",
            skipped.join(", ")
        ));
    }
    plan.server(&config, McpForm::Opencode, to);
    Ok(plan)
}

/// Returns the error for a configuration without a provider whose base URL could be set.
fn nothing_to_change(config: &ConfigDocument, skipped: &[String]) -> PlanError {
    let file = config.file.display();
    PlanError::Impossible(if skipped.is_empty() {
        format!(
            "opencode has no provider yet: set a key such as ANTHROPIC_API_KEY, run `opencode auth login`, or name one in {file}"
        )
    } else {
        format!(
            "the providers in {file} have no base URL: {}",
            skipped.join(", ")
        )
    })
}

/// Returns the providers that opencode is signed in to, by name. The credentials in the file are not used.
fn signed_in(at: &Surroundings<'_>) -> Value {
    let set = (at.env)("XDG_DATA_HOME").map(std::path::PathBuf::from);
    let data = set
        .filter(|path| path.is_absolute())
        .unwrap_or_else(|| at.home.join(".local/share"));
    match (at.read)(&data.join("opencode/auth.json")) {
        Ok(Some(text)) => read(Syntax::Json, &text).unwrap_or(Value::Null),
        _ => Value::Null,
    }
}
