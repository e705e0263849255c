//! Steps from a file: one JSON object a line.

use std::time::Duration;

use infold_wire::{Json, JsonKind};

use crate::{Answer, Step, errors};

/// Why a line of a script is no step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct ScriptError {
    /// Which line, from one.
    pub line: usize,
    /// The problem.
    pub reason: String,
}

/// Reads steps, one JSON object a line; empty lines and lines that begin with `#` are left out.
///
/// Reads a step: `{"say":TEXT}`, `{"think":TEXT,"say":TEXT}`, `{"call":NAME,"arguments":{…}}`,
/// `{"error":NAME}` for one of [`errors`], `{"status":N,"body":TEXT}`, `{"empty":true}`,
/// `{"never":true}`, `{"hang_up":true}`, `{"model":true}`. And how: `after_ms`, `pause_ms`,
/// `cut_after_events`, `cut_after_bytes`, `reset`, `malformed_at`, `slow_bytes`, `piece`.
pub fn read_steps(text: &str) -> Result<Vec<Step>, ScriptError> {
    let lines = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = |(line, text): (usize, &str)| {
        let step = Json::parse(text.as_bytes()).map_err(|error| error.to_string());
        let step = step.and_then(read_step);
        step.map_err(|reason| ScriptError { line, reason })
    };
    lines.map(read).collect()
}

const HOW: [&str; 9] = [
    "after_ms",
    "pause_ms",
    "cut_after_events",
    "cut_after_bytes",
    "reset",
    "malformed_at",
    "slow_bytes",
    "piece",
    "arguments",
];

fn read_step(json: Json<'_>) -> Result<Step, String> {
    let mut step = what(json)?;
    for (name, value) in json.members() {
        let name = name.text().unwrap_or_default();
        let number = || {
            let number = value.number().filter(|number| *number >= 0.0);
            number.ok_or_else(|| format!("`{name}` is not a number"))
        };
        step = match &*name {
            "after_ms" => step.after(Duration::from_millis(number()? as u64)),
            "pause_ms" => step.pausing(Duration::from_millis(number()? as u64)),
            "cut_after_events" => step.cut_after_events(number()? as usize),
            "cut_after_bytes" => step.cut_after_bytes(number()? as usize),
            "malformed_at" => step.malformed_at(number()? as usize),
            "slow_bytes" => step.slowly(number()? as usize, Duration::from_millis(1)),
            "piece" => step.in_pieces(number()? as usize),
            "reset" if value.is_true() => step.reset(),
            _ => step,
        };
    }
    Ok(step)
}

/// The step without how it is sent.
fn what(json: Json<'_>) -> Result<Step, String> {
    if json.kind() != JsonKind::Object {
        return Err("a step is a JSON object".to_owned());
    }
    let text = |name: &str| {
        json.get(name)
            .and_then(Json::text)
            .map(|it| it.into_owned())
    };
    let flag = |name: &str| json.get(name).is_some_and(Json::is_true);
    let known = [
        "say", "think", "call", "error", "status", "body", "empty", "never", "hang_up", "model",
    ];
    for (name, _) in json.members() {
        let name = name.text().unwrap_or_default();
        if !known.contains(&&*name) && !HOW.contains(&&*name) {
            return Err(format!(
                "no step has `{name}` (known: {}, {})",
                known.join(", "),
                HOW.join(", ")
            ));
        }
    }
    if let Some(name) = text("error") {
        let found = errors().iter().find(|error| error.name == name);
        return found
            .map(Step::from)
            .ok_or_else(|| format!("no error is named `{name}`"));
    }
    if let Some(status) = json.get("status").and_then(Json::number) {
        return Ok(Step::error(status as u16, text("body").unwrap_or_default()));
    }
    let given = json.get("arguments").map_or(&b"{}"[..], Json::bytes);
    let given = String::from_utf8_lossy(given).into_owned();
    let answer = Answer {
        thinking: text("think"),
        text: text("say"),
        calls: text("call").map(|name| (name, given)).into_iter().collect(),
        ..Answer::default()
    };
    match answer == Answer::default() {
        false => Ok(Step::answer(answer)),
        true if flag("empty") => Ok(Step::empty()),
        true if flag("never") => Ok(Step::never()),
        true if flag("hang_up") => Ok(Step::hang_up()),
        true if flag("model") => Ok(Step::model()),
        true => Err("a step says, calls, errs, or does nothing: `{\"say\":\"Hello\"}`".to_owned()),
    }
}
