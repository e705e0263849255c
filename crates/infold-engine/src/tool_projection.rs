//! What of a projection of tools is recorded.

use infold_store::ToolsShownLine;
use infold_tools::{Projection, ToolVerdict};

/// Returns the record of which tools a model is shown, and why not the others.
pub fn tools_shown_line(projection: &Projection) -> ToolsShownLine {
    let texts = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    let hidden = projection.decisions.iter();
    let hidden = hidden.filter_map(|decision| match &decision.verdict {
        ToolVerdict::Hidden(reason) => Some((decision.name.clone(), reason.to_string())),
        ToolVerdict::Shown | ToolVerdict::Narrowed { .. } => None,
    });
    ToolsShownLine {
        phase: projection.situation.phase().to_owned(),
        environment: projection.situation.environment().name().to_owned(),
        shown: texts(projection.shown_names()),
        narrowed: texts(projection.narrowed_names()),
        hidden: hidden.collect(),
        choice: None,
    }
}
