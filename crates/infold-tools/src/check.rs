//! Checks calls against the shown tools.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use infold_wire::tools::lowercase_schema;
use infold_wire::{Json, JsonKind};
use serde_json::Value;

use crate::name::NameParts;
use crate::narrow::closed;
use crate::{
    Environment, OfferedTool, Policy, Projection, Situation, ToolVerdict, UnknownTools, Validators,
};

/// The tools that a model was shown, against which its calls are checked.
#[derive(Clone, Debug)]
pub struct ShownTools {
    policy: Arc<Policy>,
    situation: Situation,
    validators: Arc<Validators>,
    /// The schema of each tool that is shown.
    shown: HashMap<String, Option<String>>,
    /// Why each of the other tools is not shown.
    hidden: HashMap<String, String>,
    /// The names that are shown, those with the highest priority first.
    names: Vec<String>,
}

/// Why a call is refused, in words that the model can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRefusal {
    /// The tool that was called.
    pub tool: String,
    /// Why the call was refused.
    pub why: String,
    /// An alternative to the call.
    pub instead: String,
}

impl fmt::Display for CallRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CallRefusal { tool, why, instead } = self;
        write!(
            f,
            "The call of `{tool}` was refused and not executed: {why}. {instead}"
        )
    }
}

/// The most errors that are reported for a call.
const MAX_ERRORS: usize = 5;
/// A longer error is cut.
const MAX_ERROR_CHARS: usize = 400;
/// The most names that are listed.
const MAX_NAMES: usize = 40;
/// Longer arguments are refused where they have to be checked.
const MAX_ARGUMENTS_BYTES: usize = 16 << 20;

impl ShownTools {
    /// Creates a check from a projection.
    pub fn new(
        policy: Arc<Policy>,
        validators: Arc<Validators>,
        tools: &[OfferedTool],
        projection: &Projection,
    ) -> ShownTools {
        let (mut shown, mut hidden) = (HashMap::new(), HashMap::new());
        for (tool, decision) in tools.iter().zip(&projection.decisions) {
            let name = || tool.name().to_owned();
            match &decision.verdict {
                ToolVerdict::Shown => drop(shown.insert(name(), tool.schema.clone())),
                ToolVerdict::Narrowed { schema, .. } => {
                    shown.insert(name(), Some(closed(schema)));
                }
                ToolVerdict::Hidden(reason) => {
                    hidden.entry(name()).or_insert_with(|| reason.to_string());
                }
            }
        }
        let names = projection.shown_names().into_iter().map(str::to_owned);
        ShownTools {
            situation: projection.situation.clone(),
            names: names.collect(),
            policy,
            validators,
            shown,
            hidden,
        }
    }

    /// Hides a tool that the request does not have from its client.
    pub fn hide(&mut self, name: &str, why: &str) {
        if !self.shown.contains_key(name) {
            self.hidden.insert(name.to_owned(), why.to_owned());
        }
    }

    /// Checks a call: whether the tool is shown, and whether its arguments match its schema.
    ///
    /// `arguments` is the object, or a string that contains it.
    pub fn check(&self, name: &str, arguments: Option<Json<'_>>) -> Result<(), CallRefusal> {
        let refuse = |why: String, instead: String| CallRefusal {
            tool: name.to_owned(),
            why,
            instead,
        };
        let schema = match self.shown.get(name) {
            Some(schema) => schema,
            None => match self.hidden_reason(name) {
                Some(why) => return Err(refuse(why, self.others())),
                None => self.schema_of_alike(name),
            },
        };
        let Some(schema) = schema else {
            return Ok(());
        };
        let validator = match self.validators.get(&checked_schema(schema)) {
            Ok(validator) => validator,
            Err(_) if self.allows_unknown() => return Ok(()),
            Err(error) => return Err(refuse(error.to_string(), self.others())),
        };
        let again = || "Correct the arguments and call it again, or go on without it.".to_owned();
        let value = read_arguments(arguments).map_err(|why| refuse(why, again()))?;
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .take(MAX_ERRORS)
            .map(|error| {
                let place = error
                    .instance_path()
                    .as_str()
                    .trim_start_matches('/')
                    .to_owned();
                let text = cut(&error.to_string());
                if place.is_empty() {
                    text
                } else {
                    format!("`{place}`: {text}")
                }
            })
            .collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(refuse(
                format!("its arguments are not allowed: {}", errors.join("; ")),
                again(),
            ))
        }
    }

    /// Returns why a tool that is not shown may not be called; none if it may.
    fn hidden_reason(&self, name: &str) -> Option<String> {
        if let Some(why) = self.hidden.get(name) {
            return Some(why.clone());
        }
        // Clients that repair names would run the tool with the other spelling.
        let mut hidden = self.hidden.iter();
        if let Some((_, why)) = hidden.find(|(hidden, _)| is_alike(hidden, name)) {
            return Some(why.clone());
        }
        // The request lacks the tool, so project it as if it were offered.
        let decision =
            self.policy
                .decide(&OfferedTool::named(name), &self.situation, &self.validators);
        match decision.verdict {
            ToolVerdict::Hidden(reason) => Some(reason.to_string()),
            ToolVerdict::Shown | ToolVerdict::Narrowed { .. } => {
                let is_production = self.situation.environment() == Environment::Production;
                is_production.then(|| "it is none of the tools of the request".to_owned())
            }
        }
    }

    /// Returns the schema of a tool that is shown in another spelling.
    fn schema_of_alike(&self, name: &str) -> &Option<String> {
        let mut shown = self.shown.iter();
        let alike = shown.find(|(shown, _)| is_alike(shown, name));
        alike.map_or(&None, |(_, schema)| schema)
    }

    fn allows_unknown(&self) -> bool {
        self.policy.unknown_tools(self.situation.environment()) == UnknownTools::Allow
    }

    fn others(&self) -> String {
        match &*self.names {
            [] => "No tool may be called now: answer without one.".to_owned(),
            names => {
                let more = match names.len().saturating_sub(MAX_NAMES) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let names = names.iter().take(MAX_NAMES).map(String::as_str);
                let names: Vec<&str> = names.collect();
                format!("Tools that may be called now: {}{more}.", names.join(", "))
            }
        }
    }
}

/// Returns whether two names are spellings of one, whatever stands before it.
fn is_alike(one: &str, other: &str) -> bool {
    let (one, other) = (NameParts::of(one), NameParts::of(other));
    one.ends_with(&other) || other.ends_with(&one)
}

/// Returns a schema in the form that is checked: Gemini's types, which are in upper case, become lower case.
pub(crate) fn checked_schema(schema: &str) -> Cow<'_, str> {
    match Json::parse(schema.as_bytes()) {
        Ok(json) => lowercase_schema(json),
        Err(_) => Cow::Borrowed(schema),
    }
}

fn read_arguments(arguments: Option<Json<'_>>) -> Result<Value, String> {
    let Some(arguments) = arguments else {
        return Ok(Value::Object(serde_json::Map::new()));
    };
    let text = match arguments.kind() {
        JsonKind::String => arguments.text().unwrap_or_default(),
        _ => String::from_utf8_lossy(arguments.bytes()),
    };
    if text.trim().is_empty() || text.trim() == "null" {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    if text.len() > MAX_ARGUMENTS_BYTES {
        return Err("its arguments are too long to be checked".to_owned());
    }
    let value = serde_json::from_str(&text)
        .map_err(|error| format!("its arguments are not JSON: {error}"))?;
    // With duplicate members, parsers differ in which of the two they take.
    let twice = Json::parse(text.as_bytes()).ok().and_then(member_twice);
    match twice {
        Some(name) => Err(format!("its arguments have `{}` twice", cut(&name))),
        None => Ok(value),
    }
}

/// Returns the name of a member that an object has twice, at any depth.
fn member_twice(json: Json<'_>) -> Option<String> {
    let mut names = HashSet::new();
    for (name, value) in json.members() {
        let name = name.text().unwrap_or_default();
        if let Some(inside) = member_twice(value) {
            return Some(inside);
        }
        if !names.insert(name.clone()) {
            return Some(name.into_owned());
        }
    }
    json.elements().find_map(member_twice)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
