//! The tool `view`: the conversation as the model sees it, one line for each message or fold.

use infold::numbers::{count, number};
use infold::show::{LogSnapshot, ViewLine};
use infold_log::{Past as _, Seq};
use infold_store::{Log, LogError};

use super::arguments::ToolArguments;
use super::history::MAX_RESULT_CHARS;
use super::{History, ToolFailure};

/// `view`
pub fn view(history: &History, arguments: &ToolArguments) -> Result<String, ToolFailure> {
    let from = arguments.number("from", 1)?.unwrap_or(1);
    let task = history.task("view", arguments)?;
    viewed(history.contexts.read(task)?, from)
}

/// Returns the lines of a view from a given one on, as many as fit.
pub fn viewed(log: Log, from: u64) -> Result<String, ToolFailure> {
    let seen = LogSnapshot::new(log, None)?;
    let view = seen.view()?;
    let (mut out, mut used, mut entries, mut next) = (String::new(), 0, 0, None);
    seen.pieces(&view, false, &mut |entry| {
        entries += 1;
        if entries < from || next.is_some() {
            return Ok::<_, LogError>(());
        }
        if let Some(line) = entry.line() {
            let text = line_text(&line);
            used += text.chars().count();
            if used > MAX_RESULT_CHARS {
                next = Some(entries);
            } else {
                out += &text;
            }
        }
        Ok(())
    })?;
    if from > entries && entries > 0 {
        let text = format!(
            "the view has {}; `from` {from} is behind it",
            count(entries, "line")
        );
        return Err(ToolFailure::new(text));
    }
    if let Some(next) = next {
        out += &format!(
            "… {} more: `from` {next}\n",
            count(entries + 1 - next, "line")
        );
    }
    let all = match Seq::new(seen.at.seq) {
        Some(last) => seen.log.record(last)?.sums.tokens,
        None => 0,
    };
    let (shown, all) = (number(view.tokens()), number(all));
    let messages = count(seen.at.seq, "message");
    out += &format!("view {shown} tokens, log {all} in {messages}\n");
    Ok(out)
}

fn line_text(line: &ViewLine) -> String {
    let role = line.role.map(|role| format!("{role} "));
    let note = match line.note.as_str() {
        "" => String::new(),
        note => format!(" [{note}]"),
    };
    let tokens = count(line.tokens, "token");
    let (name, role) = (&line.name, role.unwrap_or_default());
    format!("{name} {role}{}{note} ({tokens})\n", line.text)
}
