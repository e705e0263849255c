//! Tools that a model was shown, and calls of them that were refused.

use infold_wire::{Json, quote};

use super::text;

/// The tools that a model is shown from a request on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolsShownLine {
    /// The phase of the task.
    pub phase: String,
    /// The environment.
    pub environment: String,
    /// The names of the tools that are shown.
    pub shown: Vec<String>,
    /// The shown tools whose schemas are narrowed.
    pub narrowed: Vec<String>,
    /// The tools that are hidden, and why.
    pub hidden: Vec<(String, String)>,
    /// The hidden tool that the client demanded a call of; the model was left to choose instead.
    pub choice: Option<String>,
}

/// A call that was refused and not executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalLine {
    /// The tool.
    pub tool: String,
    /// The id of the call, where the wire has one.
    pub call: Option<String>,
    /// The text of the refusal that was sent to the model.
    pub told: String,
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
    format!("[{}]", names.join(","))
}

fn names(json: Json<'_>, key: &str) -> Option<Vec<String>> {
    let names = json.get(key)?.elements();
    names.map(|name| Some(name.text()?.into_owned())).collect()
}

impl ToolsShownLine {
    pub(super) fn encode(&self) -> String {
        let hidden = self.hidden.iter();
        let hidden = hidden.map(|(name, why)| format!("{}:{}", quote(name), quote(why)));
        let hidden: Vec<String> = hidden.collect();
        let choice = self.choice.as_ref().map_or(String::new(), |name| {
            format!(r#","tool_choice":{}"#, quote(name))
        });
        format!(
            r#","phase":{},"environment":{},"shown":{},"narrowed":{},"hidden":{{{}}}{choice}"#,
            quote(&self.phase),
            quote(&self.environment),
            list(&self.shown),
            list(&self.narrowed),
            hidden.join(",")
        )
    }

    pub(super) fn decode(json: Json<'_>) -> Option<ToolsShownLine> {
        let hidden = json.get("hidden")?.members();
        let hidden =
            hidden.map(|(name, why)| Some((name.text()?.into_owned(), why.text()?.into_owned())));
        Some(ToolsShownLine {
            phase: text(json, "phase")?,
            environment: text(json, "environment")?,
            shown: names(json, "shown")?,
            narrowed: names(json, "narrowed")?,
            hidden: hidden.collect::<Option<_>>()?,
            choice: text(json, "tool_choice"),
        })
    }
}

impl RefusalLine {
    pub(super) fn encode(&self) -> String {
        let call = self
            .call
            .as_ref()
            .map_or(String::new(), |id| format!(r#","call":{}"#, quote(id)));
        format!(
            r#","tool":{}{call},"told":{}"#,
            quote(&self.tool),
            quote(&self.told)
        )
    }

    pub(super) fn decode(json: Json<'_>) -> Option<RefusalLine> {
        Some(RefusalLine {
            tool: text(json, "tool")?,
            call: text(json, "call"),
            told: text(json, "told")?,
        })
    }
}
