//! A tool as it is offered: by a request, or by the policy itself.

use std::sync::OnceLock;

use infold_wire::tokens::{Encoding, count};
use infold_wire::tool_list::{ListedTool, listed_tools};
use infold_wire::{Json, quote};

use crate::ToolRule;

/// Who offers a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOrigin {
    /// A client, in its request.
    Client,
    /// The policy.
    Policy,
}

/// A tool as it is offered.
#[derive(Clone, Debug)]
pub struct OfferedTool {
    pub(crate) name: String,
    pub(crate) origin: ToolOrigin,
    /// The whole definition, as the model gets it.
    definition: String,
    pub(crate) schema: Option<String>,
    tokens: OnceLock<u64>,
}

impl OfferedTool {
    /// A tool of which only the name is known.
    pub fn named(name: &str) -> OfferedTool {
        let definition = format!(r#"{{"name":{}}}"#, quote(name));
        OfferedTool::new(name.to_owned(), ToolOrigin::Client, definition, None)
    }

    /// Reads the tools of a request: the value of `tools` in the form of any wire.
    pub fn read_all(tools: Json<'_>) -> Vec<OfferedTool> {
        listed_tools(tools).iter().map(OfferedTool::of).collect()
    }

    pub(crate) fn of(listed: &ListedTool<'_>) -> OfferedTool {
        let text = |json: Json<'_>| String::from_utf8_lossy(json.bytes()).into_owned();
        OfferedTool::new(
            listed.name(),
            ToolOrigin::Client,
            text(listed.definition),
            listed.schema.map(text),
        )
    }

    /// A tool that the policy defines.
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
            tokens: OnceLock::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tokens of its definition.
    pub fn tokens(&self) -> u64 {
        *self
            .tokens
            .get_or_init(|| count(Encoding::O200k, &self.definition))
    }
}
