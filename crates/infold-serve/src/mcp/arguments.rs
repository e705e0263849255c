//! The arguments of a tool call.

use serde_json::{Map, Value};

use super::ToolFailure;

/// The arguments of a call, all of which the tool knows.
#[derive(Debug)]
pub struct ToolArguments(Map<String, Value>);

impl ToolArguments {
    /// Takes the arguments of a call, if all of them are known.
    pub fn new(given: Map<String, Value>, known: &[&str]) -> Result<ToolArguments, ToolFailure> {
        match given.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(ToolArguments(given)),
            Some(other) => {
                let other = infold_wire::shorten(other, 60);
                let known = match known {
                    [] => "it takes none".to_owned(),
                    known => format!("it takes {}", known.join(", ")),
                };
                Err(ToolFailure::new(format!("no argument `{other}`; {known}")))
            }
        }
    }

    /// Returns all arguments.
    pub fn all(&self) -> &Map<String, Value> {
        &self.0
    }

    /// A text; models also write numbers without quotes.
    pub fn text(&self, name: &str) -> Result<Option<String>, ToolFailure> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(ToolFailure::new(format!("`{name}` must be a text"))),
        }
    }

    /// A text that must be there.
    pub fn required(&self, name: &str) -> Result<String, ToolFailure> {
        let missing = || ToolFailure::new(format!("`{name}` is missing"));
        self.text(name)?.ok_or_else(missing)
    }

    /// A list of texts that must be there; models also write one text where a list is meant.
    pub fn texts(&self, name: &str) -> Result<Vec<String>, ToolFailure> {
        let wrong = || ToolFailure::new(format!("`{name}` must be a list of texts"));
        match self.0.get(name) {
            None | Some(Value::Null) => Err(ToolFailure::new(format!("`{name}` is missing"))),
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(Value::Array(items)) => {
                let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
                texts.collect::<Option<_>>().ok_or_else(wrong)
            }
            Some(_) => Err(wrong()),
        }
    }

    /// A whole number, at least `least`; models also write it in quotes.
    pub fn number(&self, name: &str, least: u64) -> Result<Option<u64>, ToolFailure> {
        let number = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            // JSON has one kind of number: 3.0 is 3.
            Some(value) => value.as_u64().or_else(|| {
                let whole = value.as_f64().filter(|number| number.fract() == 0.0)?;
                (0.0..9e15).contains(&whole).then_some(whole as u64)
            }),
        };
        let bad = || ToolFailure::new(format!("`{name}` must be a whole number, at least {least}"));
        number
            .filter(|number| *number >= least)
            .map(Some)
            .ok_or_else(bad)
    }
}
