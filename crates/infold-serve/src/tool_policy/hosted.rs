//! Tools that a request names beside `tools`: the provider runs them.

use infold_store::ToolsShownLine;
use infold_tools::{OfferedTool, Situation, ToolVerdict};
use infold_wire::{Json, Wire};

use super::{RequestMembers, ToolPolicy};
use crate::ConversationError;

/// A member of a request that enables tools of the provider.
#[derive(Clone, Debug)]
pub(super) struct HostedMember {
    pub name: &'static str,
    pub value: Vec<u8>,
}

impl RequestMembers<'_> {
    /// Returns the members that enable tools.
    pub(super) fn hosted(&self) -> Result<Vec<HostedMember>, ConversationError> {
        let names: &[&'static str] = match self.call.wire {
            Wire::Chat => &["web_search_options", "plugins"],
            Wire::Responses => &["plugins"],
            Wire::Anthropic => &["mcp_servers"],
            Wire::Gemini | Wire::Ollama => &[],
        };
        let mut found = Vec::new();
        for name in names {
            let value = self.bytes(name)?;
            found.extend(value.map(|value| HostedMember { name, value }));
        }
        Ok(found)
    }
}

impl ToolPolicy {
    /// Decides about such members, and adds them to the record of the tools. Returns those that change.
    pub(super) fn project_hosted(
        &self,
        members: &[HostedMember],
        situation: &Situation,
        line: &mut ToolsShownLine,
    ) -> Vec<(&'static str, Option<Vec<u8>>)> {
        let mut changed = Vec::new();
        for member in members {
            let Ok(json) = Json::parse(&member.value) else {
                continue;
            };
            if json.is_null() {
                continue;
            }
            if member.name == "web_search_options" {
                if !self.shows_hosted("web_search", situation, line) {
                    changed.push((member.name, None));
                }
                continue;
            }
            let all: Vec<Json<'_>> = json.elements().collect();
            let left = all.iter().filter(|one| {
                let name = hosted_name(member.name, **one);
                self.shows_hosted(&name, situation, line)
            });
            let left: Vec<_> = left
                .map(|one| String::from_utf8_lossy(one.bytes()))
                .collect();
            if left.is_empty() {
                changed.push((member.name, None));
            } else if left.len() < all.len() {
                let left = format!("[{}]", left.join(","));
                changed.push((member.name, Some(left.into_bytes())));
            }
        }
        changed
    }

    fn shows_hosted(&self, name: &str, situation: &Situation, line: &mut ToolsShownLine) -> bool {
        let tools = [OfferedTool::named(name)];
        let projection = self.policy.project(&tools, situation, &self.validators);
        let Some(decision) = projection.decisions.first() else {
            return false;
        };
        match &decision.verdict {
            ToolVerdict::Hidden(reason) => {
                if line.hidden.iter().all(|(hidden, _)| hidden != name) {
                    line.hidden.push((name.to_owned(), reason.to_string()));
                }
                false
            }
            ToolVerdict::Shown | ToolVerdict::Narrowed { .. } => {
                if line.shown.iter().all(|shown| shown != name) {
                    line.shown.push(name.to_owned());
                }
                true
            }
        }
    }
}

/// Returns the name of a plugin, or of a server.
fn hosted_name(member: &str, json: Json<'_>) -> String {
    let key = if member == "plugins" { "id" } else { "name" };
    let name = json.get(key).and_then(Json::text).unwrap_or_default();
    match (member, &*name) {
        ("plugins", "web") => "web_search".to_owned(),
        ("plugins", name) => name.to_owned(),
        (_, name) => format!("mcp__{name}"),
    }
}
