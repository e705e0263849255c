//! The arguments of a call, as the model wrote them.

use serde_json::{Map, Value};

use crate::failure::CallProblem;

/// The arguments of a call.
#[derive(Debug)]
pub(crate) struct CallArguments(Map<String, Value>);

impl CallArguments {
    /// Reads arguments; an empty text has none.
    pub fn parse(text: &str) -> Result<CallArguments, CallProblem> {
        if text.trim().is_empty() {
            return Ok(CallArguments(Map::new()));
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(members)) => Ok(CallArguments(members)),
            Ok(Value::Null) => Ok(CallArguments(Map::new())),
            Ok(_) => Err(CallProblem::new(
                "the arguments are not a JSON object: write them as {\"name\": value}",
            )),
            Err(error) => Err(CallProblem::new(format!(
                "the arguments are not valid JSON ({error}): write the call again"
            ))),
        }
    }

    pub fn into_members(self) -> Map<String, Value> {
        self.0
    }

    /// Refuses arguments that a tool does not have.
    pub fn only(self, known: &[&str]) -> Result<CallArguments, CallProblem> {
        let unknown = self.0.keys().find(|name| !known.contains(&name.as_str()));
        match unknown {
            Some(name) => Err(CallProblem::new(format!(
                "there is no argument `{name}` (known: {})",
                known.join(", ")
            ))),
            None => Ok(self),
        }
    }

    /// Returns a text that must be there.
    pub fn text(&self, name: &str) -> Result<&str, CallProblem> {
        self.optional_text(name)?
            .ok_or_else(|| CallProblem::new(format!("the argument `{name}` is missing")))
    }

    pub fn optional_text(&self, name: &str) -> Result<Option<&str>, CallProblem> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(CallProblem::new(format!(
                "the argument `{name}` is not a text"
            ))),
        }
    }

    /// Returns a whole number from 1. Some models write numbers as texts, or with a fraction of zero.
    pub fn count(&self, name: &str) -> Result<Option<u64>, CallProblem> {
        let number = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(value) => value.as_u64().or_else(|| whole_number(value)),
        };
        match number {
            Some(number @ 1..) => Ok(Some(number)),
            _ => Err(CallProblem::new(format!(
                "the argument `{name}` is not a whole number from 1"
            ))),
        }
    }

    /// Returns a flag; false if it is left out.
    pub fn flag(&self, name: &str) -> Result<bool, CallProblem> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(CallProblem::new(format!(
                "the argument `{name}` is neither true nor false"
            ))),
        }
    }
}

/// Returns the number of a value such as `2.0`, which JSON does not tell from `2`.
fn whole_number(value: &Value) -> Option<u64> {
    /// Above it a float does not tell whole numbers apart.
    const MAX_EXACT: f64 = (1_u64 << 53) as f64;
    let number = value.as_f64()?;
    let is_whole = number.fract() == 0.0 && (0.0..=MAX_EXACT).contains(&number);
    is_whole.then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        CallArguments::parse(text).unwrap_err().reason
    }

    #[test]
    fn broken_arguments_say_what_to_do() {
        assert!(refused("{\"path\":").contains("not valid JSON"));
        assert!(refused("[1]").contains("not a JSON object"));
        assert!(refused(r#"{"path":"\ud800"}"#).contains("not valid JSON"));
        assert!(refused(&"[".repeat(100_000)).contains("not valid JSON"));
    }

    #[test]
    fn nothing_is_no_arguments() {
        for text in ["", "  ", "null", "{}"] {
            assert!(
                CallArguments::parse(text)
                    .unwrap()
                    .into_members()
                    .is_empty()
            );
        }
    }

    #[test]
    fn values_of_a_wrong_type_are_named() {
        let arguments =
            CallArguments::parse(r#"{"path":7,"limit":"x","all":1,"offset":0}"#).unwrap();
        assert!(arguments.text("path").is_err());
        assert!(arguments.count("limit").is_err());
        assert!(arguments.count("offset").is_err());
        assert!(arguments.flag("all").is_err());
        assert_eq!(
            arguments.text("pattern").unwrap_err().reason,
            "the argument `pattern` is missing"
        );
    }

    #[test]
    fn numbers_and_flags_may_be_texts() {
        let arguments = CallArguments::parse(r#"{"limit":"12","all":"true","none":null}"#).unwrap();
        assert_eq!(arguments.count("limit"), Ok(Some(12)));
        let floats = CallArguments::parse(r#"{"a":3.0,"b":1.5,"c":-1.0,"d":1e300}"#).unwrap();
        assert_eq!(floats.count("a"), Ok(Some(3)));
        for name in ["b", "c", "d"] {
            assert!(floats.count(name).is_err(), "{name}");
        }
        assert_eq!(arguments.flag("all"), Ok(true));
        assert_eq!(arguments.optional_text("none"), Ok(None));
    }

    #[test]
    fn unknown_arguments_are_named() {
        let arguments = CallArguments::parse(r#"{"file":"a"}"#).unwrap();
        assert_eq!(
            arguments.only(&["path", "limit"]).unwrap_err().reason,
            "there is no argument `file` (known: path, limit)"
        );
    }
}
