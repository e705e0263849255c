//! Claude Code.

use std::path::PathBuf;

use super::{AgentTarget, Plan, PlanError, Surroundings};
use crate::edit::Syntax;
use crate::mcp::McpForm;
use crate::tree::PathStep;

pub(super) fn directory(at: &Surroundings<'_>) -> PathBuf {
    at.named("CLAUDE_CONFIG_DIR", ".claude")
}

pub(super) fn plan(at: &Surroundings<'_>, to: &AgentTarget<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let settings = at.document(directory(at).join("settings.json"), Syntax::Json)?;
    for cloud in ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"] {
        let set = settings.key(&["env", cloud]);
        if set.is_some_and(|value| !matches!(value.as_str(), "0" | "false")) {
            return Err(PlanError::Impossible(format!(
                "{} sets {cloud}: requests go to a cloud's own API, which takes no base URL",
                settings.file.display()
            )));
        }
    }
    let path = PathStep::keys(&["env", "ANTHROPIC_BASE_URL"]);
    // If its settings have no address, Claude Code uses that of the environment.
    let before = (at.env)("ANTHROPIC_BASE_URL");
    plan.address_over(&settings, path, to, "", "anthropic", before)?;
    let own = if at.is_set("CLAUDE_CONFIG_DIR") {
        directory(at).join(".claude.json")
    } else {
        at.home.join(".claude.json")
    };
    let servers = at.document(own, Syntax::Json)?;
    plan.server(&servers, McpForm::Claude, to);
    Ok(plan)
}
