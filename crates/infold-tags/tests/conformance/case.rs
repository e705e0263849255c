//! One recorded case: run it, compare, judge.

use std::panic::catch_unwind;

use infold_wire::Json;

use crate::functions;
use crate::input::Input;
use crate::value::Value;

/// The outcome of a case.
pub enum Verdict {
    Passed,
    /// Not run, with the reason.
    Skipped(&'static str),
    /// The case failed, with the difference.
    Failed(String),
}

/// Runs the case on one line and returns its id with the verdict.
pub fn judge(line: &[u8]) -> (String, Verdict) {
    match Json::parse(line) {
        Ok(case) => {
            let id = case.get("id").and_then(Json::text).unwrap_or_default();
            let verdict = judge_parsed(case).unwrap_or_else(Verdict::Failed);
            (id.into_owned(), verdict)
        }
        Err(error) => ("?".to_owned(), Verdict::Failed(error.to_string())),
    }
}

fn judge_parsed(case: Json<'_>) -> Result<Verdict, String> {
    let member = |name| case.get(name).ok_or_else(|| format!("no `{name}`"));
    let name = member("fn")?.text().ok_or("`fn` is not a string")?;
    let run = functions::named(&name).ok_or_else(|| format!("unknown function `{name}`"))?;
    let malformed = member("tags")?.elements().any(|tag| tag.is("malformed"));
    let input = Input::new(member("input")?);
    let expected = Value::of(member("output")?);
    match catch_unwind(|| run(input)) {
        Ok(Ok(output)) => compare(expected, &output),
        Ok(Err(_)) if malformed => Ok(Verdict::Skipped("malformed")),
        Ok(Err(refused)) => Err(format!("refused: {refused}")),
        Err(_) => Err("panicked".to_owned()),
    }
}

fn compare(mut expected: Value, output: &[u8]) -> Result<Verdict, String> {
    let output = Json::parse(output).map_err(|error| format!("our output: {error}"))?;
    let mut output = Value::of(output);
    forget_type_error(&mut expected, &mut output);
    forget_informative(&mut expected, &mut output);
    match expected.difference(&output) {
        None => Ok(Verdict::Passed),
        Some(difference) => Err(difference),
    }
}

/// Of a recorded `TypeError` only the fact of failing matters, so both become `true`.
fn forget_type_error(expected: &mut Value, output: &mut Value) {
    let type_error = Value::Text("TypeError".encode_utf16().collect());
    if let (Some(recorded), Some(ours)) = (expected.get_mut("throws"), output.get_mut("throws"))
        && recorded.get_mut("name") == Some(&mut type_error.clone())
    {
        *recorded = Value::Bool(true);
        *ours = Value::Bool(true);
    }
}

/// Removes recorded members that are informative only, unless our output has them too.
fn forget_informative(expected: &mut Value, output: &mut Value) {
    for key in ["tokenCounts", "telemetry"] {
        if output.get_mut(key).is_none() {
            expected.remove(key);
        }
    }
}
