//! goose: the addresses of its providers, and the MCP server, in `config.yaml`.

use super::{AgentTarget, Plan, PlanError, Surroundings};
use crate::edit::Syntax;
use crate::mcp::McpForm;
use crate::tree::PathStep;

/// The providers of goose that take an address: name, setting, API.
const PROVIDERS: [(&str, &str, &str); 4] = [
    ("openai", "OPENAI_HOST", "openai"),
    ("anthropic", "ANTHROPIC_HOST", "anthropic"),
    ("google", "GOOGLE_HOST", "gemini"),
    ("ollama", "OLLAMA_HOST", "ollama"),
];

pub(super) fn plan(at: &Surroundings<'_>, to: &AgentTarget<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let config = at.document(at.config("goose").join("config.yaml"), Syntax::Yaml)?;
    let provider = (at.env)("GOOSE_PROVIDER").filter(|name| !name.is_empty());
    let provider = provider.or_else(|| config.key(&["GOOSE_PROVIDER"]));
    match provider.as_deref() {
        None => {
            // No provider is chosen yet. The addresses of these two are set, so that either goes through the proxy.
            for (_, setting, api) in &PROVIDERS[..2] {
                plan.address(&config, PathStep::keys(&[setting]), to, "", api)?;
            }
        }
        Some(name) => {
            let known = PROVIDERS.iter().find(|(known, ..)| *known == name);
            let Some((_, setting, api)) = known else {
                return Err(PlanError::Impossible(format!(
                    "goose uses the provider `{name}`, which takes no address that Infold could stand at \
                     (openai, anthropic, google and ollama do)"
                )));
            };
            plan.address(&config, PathStep::keys(&[setting]), to, "", api)?;
        }
    }
    plan.server(&config, McpForm::Goose, to);
    Ok(plan)
}
