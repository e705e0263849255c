//! Continue, as its command line `cn` and its editors' extensions read it.

use std::path::PathBuf;

use super::{AgentTarget, Plan, PlanError, Surroundings};
use crate::edit::Syntax;
use crate::mcp::McpForm;
use crate::tree::PathStep;

pub(super) fn directory(at: &Surroundings<'_>) -> PathBuf {
    at.named("CONTINUE_GLOBAL_DIR", ".continue")
}

pub(super) fn plan(at: &Surroundings<'_>, to: &AgentTarget<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let config = at.document(directory(at).join("config.yaml"), Syntax::Yaml)?;
    let mut skipped = Vec::new();
    for model in config.value["models"].as_array().into_iter().flatten() {
        let Some(name) = model["name"].as_str() else {
            skipped.push(
                model["uses"]
                    .as_str()
                    .unwrap_or("a model without a name")
                    .to_owned(),
            );
            continue;
        };
        let known = match model["provider"].as_str().unwrap_or_default() {
            "openai" => Some(("/v1", "openai")),
            "anthropic" => Some(("/v1", "anthropic")),
            "gemini" => Some(("/v1beta", "gemini")),
            "ollama" => Some(("", "ollama")),
            _ => None,
        };
        match known {
            Some((suffix, api)) => {
                config.check_name(&config.value["models"], "name", name)?;
                let path = vec![
                    PathStep::Key("models".to_owned()),
                    PathStep::Entry("name".to_owned(), name.to_owned()),
                    PathStep::Key("apiBase".to_owned()),
                ];
                plan.address(&config, path, to, suffix, api)?;
            }
            None => skipped.push(name.to_owned()),
        }
    }
    if plan.changes.is_empty() {
        return Err(PlanError::Impossible(format!(
            "{} has no model of openai, anthropic, gemini or ollama, to which an apiBase could be added",
            config.file.display()
        )));
    }
    if !skipped.is_empty() {
        plan.notes.push(format!(
            "not through the proxy, for want of a known provider: {}",
            skipped.join(", ")
        ));
    }
    plan.server(&config, McpForm::Continue, to);
    Ok(plan)
}
