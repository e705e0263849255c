//! aider.

use serde_json::{Value, json};

use super::upstream::SettingPlace;
use super::{AgentTarget, Plan, PlanError, Surroundings};
use crate::edit::Syntax;
use crate::tree::PathStep;

/// The path of the proxy's address. It names the conversation, because aider's conversations cannot be distinguished by
/// their content.
const NAME: &str = "/t/aider";

pub(super) fn plan(at: &Surroundings<'_>, to: &AgentTarget<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let config = at.document(at.home.join(".aider.conf.yml"), Syntax::Yaml)?;
    let path = PathStep::keys(&["openai-api-base"]);
    let before = (at.env)("OPENAI_API_BASE").filter(|_| config.is_missing);
    let suffix = format!("{NAME}/v1");
    plan.address_over(&config, path, to, &suffix, "openai", before)?;
    let path = PathStep::keys(&["set-env"]);
    let of = |base: &str| json!([format!("ANTHROPIC_API_BASE={base}{NAME}")]);
    let own = of(to.base);
    let is_own = |set: &Value| to.bases().any(|base| *set == of(base));
    if config.value.get("set-env").is_none_or(is_own) {
        plan.changes.push(config.change(path.clone(), own));
        let place = match config.get(&path) {
            Some(_) => SettingPlace::Proxy,
            None => SettingPlace::Home,
        };
        plan.record_place("anthropic", place)
            .map_err(|problem| PlanError::Upstream {
                file: config.file.clone(),
                problem,
            })?;
    } else {
        plan.notes.push(format!(
            "aider's models of Anthropic are not through the proxy: {} has `set-env` already; add ANTHROPIC_API_BASE={}{NAME} to it",
            config.file.display(),
            to.base
        ));
    }
    Ok(plan)
}
