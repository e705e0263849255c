//! The log's record of a tool policy.

use infold_log::EventId;
use infold_store::{Log, LogError, ToolsShownLine, What};
use infold_tools::{Projection, ToolVerdict};

/// The number of events that are searched for the last one about tools.
const MAX_SEARCHED_EVENTS: u64 = 10_000;

/// Returns the event that records a projection.
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

/// Finds the last event that says which tools are shown.
pub fn last_tools_shown(log: &Log) -> Result<Option<ToolsShownLine>, LogError> {
    let last = log.state().at().event;
    let first = last.saturating_sub(MAX_SEARCHED_EVENTS);
    let ids = (first + 1..=last).rev().filter_map(EventId::new);
    for id in ids {
        if let What::ToolsShown(line) = log.event(id)?.what {
            return Ok(Some(line));
        }
    }
    Ok(None)
}
