//! Prints what is to be changed for an agent, or why nothing is.

use infold_setup::{Agent, ApplyError, PlannedFile, diff};
use serde_json::{Value, json};

use crate::config::with_tilde;
use crate::error::CliResult;
use crate::output::{BAD, DIM, GOOD, Output, paint, printable};

/// Prints the state of an agent and its changes.
pub fn report_changes(
    out: &mut Output,
    agent: Agent,
    state: &str,
    files: &[PlannedFile],
    notes: &[String],
) -> CliResult {
    if out.is_json() {
        let file = |change: &PlannedFile| json!({"file": change.file.display().to_string(), "diff": diff(&change.before, &change.after)});
        let files: Vec<Value> = files.iter().map(file).collect();
        return out.object(
            &json!({"agent": agent.name(), "state": state, "files": files, "notes": notes}),
        );
    }
    if files.is_empty() {
        out.line(format!("  {state}: there is nothing to change"))?;
    }
    for change in files {
        let name = with_tilde(change.file.display().to_string());
        let is_new = if change.before.is_empty() {
            " (new)"
        } else {
            ""
        };
        out.line(format!("  {name}{is_new}"))?;
        for line in diff(&change.before, &change.after) {
            let style = if line.starts_with('+') { GOOD } else { BAD };
            out.line(format!("    {}", paint(style, cut(&line))))?;
        }
    }
    for text in notes {
        out.line(format!("  {}", paint(DIM, format!("note: {text}"))))?;
    }
    Ok(())
}

/// A line as it stands, without control characters and not too long for a screen.
fn cut(line: &str) -> String {
    const MAX_COLUMNS: usize = 200;
    let line = printable(line);
    match line.char_indices().nth(MAX_COLUMNS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Prints why an agent is not changed.
pub fn report_refusal(out: &mut Output, agent: Agent, error: &ApplyError) -> CliResult {
    let text = error.to_string();
    if out.is_json() {
        return out.object(&json!({"agent": agent.name(), "state": "refused", "reason": text}));
    }
    out.line(format!("  {}", paint(BAD, format!("not changed: {text}"))))
}
