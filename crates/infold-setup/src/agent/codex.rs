//! Codex: the base URL of its provider, and the MCP server, in `config.toml`.

use std::path::PathBuf;

use serde_json::Value;

use super::{AgentTarget, ConfigDocument, Plan, PlanError, Surroundings};
use crate::edit::{Syntax, read};
use crate::mcp::McpForm;
use crate::tree::PathStep;

pub(super) fn directory(at: &Surroundings<'_>) -> PathBuf {
    at.named("CODEX_HOME", ".codex")
}

pub(super) fn plan(at: &Surroundings<'_>, to: &AgentTarget<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let config = at.document(directory(at).join("config.toml"), Syntax::Toml)?;
    let provider = provider(&config);
    if provider == "openai" {
        let path = PathStep::keys(&["openai_base_url"]);
        let own = config.get(&path);
        // If another address is configured, the user chose it together with the login, and it may be replaced.
        let is_free = own.is_none_or(|url| to.bases().any(|base| url.starts_with(base)));
        if is_free && has_chatgpt_login(at) {
            return Err(PlanError::Impossible(
                "Codex is signed in with ChatGPT: it asks ChatGPT where its workspace's backend is, and that is no \
                 address to stand at; `codex login --with-api-key` signs in with a key"
                    .to_owned(),
            ));
        }
        plan.address(&config, path, to, "/v1", "responses")?;
    } else {
        let path = PathStep::keys(&["model_providers", &provider, "base_url"]);
        if config.get(&path).is_none() {
            return Err(PlanError::Impossible(format!(
                "{} uses the provider `{provider}`, which has no base_url there",
                config.file.display()
            )));
        }
        let wire = config.key(&["model_providers", &provider, "wire_api"]);
        let api = if wire.as_deref() == Some("chat") {
            "openai"
        } else {
            "responses"
        };
        plan.address(&config, path, to, "/v1", api)?;
    }
    plan.server(&config, McpForm::Codex, to);
    Ok(plan)
}

/// Returns the provider in use: that of the profile, or else the general one.
fn provider(config: &ConfigDocument) -> String {
    let profile = config.key(&["profile"]);
    let of_profile = profile.and_then(|name| config.key(&["profiles", &name, "model_provider"]));
    let provider = of_profile.or_else(|| config.key(&["model_provider"]));
    provider.unwrap_or_else(|| "openai".to_owned())
}

/// Returns whether the user signed in with ChatGPT and not with a key. The credentials in the file are not used.
fn has_chatgpt_login(at: &Surroundings<'_>) -> bool {
    let file = directory(at).join("auth.json");
    let Ok(Some(text)) = (at.read)(&file) else {
        return false;
    };
    let login = read(Syntax::Json, &text).unwrap_or(Value::Null);
    let has_key = login["OPENAI_API_KEY"]
        .as_str()
        .is_some_and(|key| !key.is_empty());
    match login["auth_mode"].as_str() {
        Some(mode) => mode.eq_ignore_ascii_case("chatgpt"),
        None => login["tokens"].is_object() && !has_key,
    }
}
