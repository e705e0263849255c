//! Gemini CLI.

use super::{AgentTarget, Plan, PlanError, Surroundings};
use crate::edit::Syntax;
use crate::mcp::McpForm;
use crate::tree::PathStep;

const VARIABLE: &str = "GOOGLE_GEMINI_BASE_URL";

pub(super) fn plan(at: &Surroundings<'_>, to: &AgentTarget<'_>) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let directory = at.home.join(".gemini");
    let settings = at.document(directory.join("settings.json"), Syntax::Json)?;
    let sign_in = settings.key(&["security", "auth", "selectedType"]);
    let sign_in = sign_in.or_else(|| settings.key(&["selectedAuthType"]));
    match sign_in.as_deref() {
        Some("gemini-api-key" | "gateway") => {}
        None => {
            // With a base URL and without a choice of sign-in, Gemini CLI refuses to start.
            let path = PathStep::keys(&["security", "auth", "selectedType"]);
            plan.changes
                .push(settings.change(path, "gemini-api-key".into()));
            plan.notes.push("Gemini CLI signs in with GEMINI_API_KEY from now on: it takes a base URL with an API key alone".to_owned());
        }
        Some(other) => {
            return Err(PlanError::Impossible(format!(
                "Gemini CLI is signed in with `{other}`, whose requests go to another API that takes no base URL; \
                 choose an API key with /auth (`gemini-api-key`)"
            )));
        }
    }
    // Gemini CLI reads only the first file that it finds, from the current directory upwards.
    let (own, shared) = (directory.join(".env"), at.home.join(".env"));
    let file = if at.text(&own)?.is_none() && at.text(&shared)?.is_some() {
        shared
    } else {
        own
    };
    let variables = at.document(file, Syntax::Dotenv)?;
    let path = PathStep::keys(&[VARIABLE]);
    let before = (at.env)(VARIABLE);
    plan.address_over(&variables, path, to, "", "gemini", before)?;
    plan.server(&settings, McpForm::Gemini, to);
    plan.notes.push(format!(
        "Gemini CLI reads {} in folders that it trusts, and only if no .env is nearer",
        variables.file.display()
    ));
    Ok(plan)
}
