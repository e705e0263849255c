//! llm.

use std::path::PathBuf;

use serde_json::json;

use super::upstream::SettingPlace;
use super::{AgentTarget, Plan, PlanError, Surroundings};
use crate::edit::Syntax;
use crate::tree::PathStep;

pub(super) fn directory(at: &Surroundings<'_>) -> PathBuf {
    match (at.env)("LLM_USER_PATH").filter(|path| !path.is_empty()) {
        Some(path) => path.into(),
        None => at.config("io.datasette.llm"),
    }
}

pub(super) fn plan(at: &Surroundings<'_>, to: &AgentTarget<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let config = at.document(directory(at).join("extra-openai-models.yaml"), Syntax::Yaml)?;
    let entry = |id: &str| PathStep::Entry("model_id".to_owned(), id.to_owned());
    for model in config.value.as_array().into_iter().flatten() {
        if let Some(id) = model["model_id"]
            .as_str()
            .filter(|_| model["api_base"].is_string())
        {
            config.check_name(&config.value, "model_id", id)?;
            let api = if model["responses"] == "true" {
                "responses"
            } else {
                "openai"
            };
            let path = vec![entry(id), PathStep::Key("api_base".to_owned())];
            plan.address(&config, path, to, "/v1", api)?;
        }
    }
    if !plan.changes.is_empty() {
        plan.notes.push("llm's own OpenAI models take their address from the environment alone: OPENAI_BASE_URL".to_owned());
        return Ok(plan);
    }
    // The built-in models of llm take no address from a file, and a model in a file cannot replace one of them. So
    // another model is added.
    let chosen = at.text(&directory(at).join("default_model.txt"))?;
    let chosen = chosen.map(|text| text.trim().to_owned());
    let is_openai = |id: &String| {
        ["gpt-", "o1", "o3", "o4", "chatgpt-"]
            .iter()
            .any(|start| id.starts_with(start))
    };
    let name = chosen
        .filter(is_openai)
        .unwrap_or_else(|| "gpt-4o-mini".to_owned());
    let id = format!("infold/{name}");
    let model = json!({
        "model_id": id, "model_name": name, "api_base": format!("{}/v1", to.base), "api_key_name": "openai",
        "supports_tools": true, "supports_schema": true, "vision": true,
    });
    plan.changes.push(config.change(vec![entry(&id)], model));
    plan.record_place("openai", SettingPlace::Home)
        .map_err(|problem| PlanError::Upstream {
            file: config.file.clone(),
            problem,
        })?;
    plan.notes.push(format!(
        "llm's own models take no address from a file: `llm -m {id}` goes through the proxy, and `llm models default {id}` makes it the default"
    ));
    Ok(plan)
}
