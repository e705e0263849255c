//! A tool with the definition that the model gets: one of a request, or one that the policy defines.

use std::sync::OnceLock;

use infold_wire::tokens::{Encoding, count};
use infold_wire::tool_list::{ListedTool, listed_tools};
use infold_wire::{Json, quote};

use crate::{ToolRule, ToolVerdict};

/// The source of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOrigin {
    /// A client, in its request.
    Client,
    /// The policy.
    Policy,
}

/// A tool with the definition that the model gets.
#[derive(Clone, Debug)]
pub struct OfferedTool {
    pub(crate) name: String,
    pub(crate) origin: ToolOrigin,
    /// The JSON of the whole definition, schema included, as the model gets it.
    definition: String,
    /// The JSON Schema of the arguments; `None` if it is not known, or if the provider defines the arguments.
    pub(crate) schema: Option<String>,
    /// Whether the schema may contain `additionalProperties`: a schema in Gemini's own form (`parameters`) may not.
    pub(crate) can_be_closed: bool,
    /// The tokens of `definition`, counted when they are first needed.
    tokens: OnceLock<u64>,
}

impl OfferedTool {
    /// Returns a client's tool whose description and schema are not known.
    pub fn named(name: &str) -> OfferedTool {
        let definition = format!(r#"{{"name":{}}}"#, quote(name));
        OfferedTool::new(name.to_owned(), ToolOrigin::Client, definition, None)
    }

    /// Reads the tools of a request: the value of `tools` in the form of any wire.
    pub fn read_all(tools: Json<'_>) -> Vec<OfferedTool> {
        listed_tools(tools).iter().map(OfferedTool::of).collect()
    }

    /// Reads one tool of a request.
    pub(crate) fn of(listed: &ListedTool<'_>) -> OfferedTool {
        let text = |json: Json<'_>| String::from_utf8_lossy(json.bytes()).into_owned();
        let [kind, parameters] = listed.definition.pick(["type", "parameters"]);
        let tool = OfferedTool::new(
            listed.name(),
            ToolOrigin::Client,
            text(listed.definition),
            listed.schema.map(text),
        );
        OfferedTool {
            // A definition with `parameters` and without `type` is a function declaration of Gemini's.
            can_be_closed: kind.is_some() || parameters.is_none(),
            ..tool
        }
    }

    /// Returns a tool that the policy defines.
    pub(crate) fn defined(name: &str, rule: &ToolRule) -> OfferedTool {
        let schema = rule.schema.clone();
        let shown = schema.as_deref().unwrap_or(r#"{"type":"object"}"#);
        let description = rule.description.as_deref().unwrap_or_default();
        let definition = format!(
            r#"{{"name":{},"description":{},"input_schema":{shown}}}"#,
            quote(name),
            quote(description)
        );
        OfferedTool::new(name.to_owned(), ToolOrigin::Policy, definition, schema)
    }

    fn new(
        name: String,
        origin: ToolOrigin,
        definition: String,
        schema: Option<String>,
    ) -> OfferedTool {
        OfferedTool {
            name,
            origin,
            definition,
            schema,
            can_be_closed: true,
            tokens: OnceLock::new(),
        }
    }

    /// Returns the name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the tokens of the definition as the model gets it: with the narrowed schema if the verdict has one.
    pub fn tokens(&self, verdict: &ToolVerdict) -> u64 {
        if let (ToolVerdict::Narrowed { schema, .. }, Some(own)) = (verdict, &self.schema) {
            let definition = self.definition.replacen(own.as_str(), schema, 1);
            return count(Encoding::O200k, &definition);
        }
        *self
            .tokens
            .get_or_init(|| count(Encoding::O200k, &self.definition))
    }
}
