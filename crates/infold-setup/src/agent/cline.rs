//! Cline's command line; its extension for editors keeps its address where the editor keeps its state.

use std::path::PathBuf;

use super::{AgentTarget, Plan, PlanError, Surroundings};
use crate::edit::Syntax;
use crate::tree::PathStep;

pub(super) fn directory(at: &Surroundings<'_>) -> PathBuf {
    at.home.join(".cline")
}

pub(super) fn plan(at: &Surroundings<'_>, to: &AgentTarget<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let config = at.document(
        directory(at).join("data/settings/providers.json"),
        Syntax::Json,
    )?;
    let mut skipped = Vec::new();
    for provider in config.value["providers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
    {
        let known = match provider.as_str() {
            "anthropic" => Some(("", "anthropic")),
            "openai-compatible" | "openai" => Some(("/v1", "openai")),
            "openai-native" => Some(("/v1", "responses")),
            "gemini" => Some(("", "gemini")),
            "ollama" => Some(("", "ollama")),
            _ => None,
        };
        let path = PathStep::keys(&["providers", provider, "settings", "baseUrl"]);
        match known {
            Some((suffix, api)) => plan.address(&config, path, to, suffix, api)?,
            None => skipped.push(provider.clone()),
        }
    }
    if plan.changes.is_empty() {
        return Err(PlanError::Impossible(format!(
            "{} has no provider of an API key: run `cline auth` first; in an editor click Cline > Settings > API \
             Configuration > Use custom base URL, and enter {}",
            config.file.display(),
            to.base
        )));
    }
    if !skipped.is_empty() {
        plan.notes
            .push(format!("not through the proxy: {}", skipped.join(", ")));
    }
    plan.notes.push(format!("Cline in an editor: click Settings > API Configuration > Use custom base URL, and enter {}", to.base));
    Ok(plan)
}
