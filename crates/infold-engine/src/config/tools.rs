//! Reads the section `tools`: the policy that decides which tools a model sees.

use std::sync::Arc;

use infold_tools::{Policy, PolicyDraft, PolicyProblem, ToolRule};
use infold_wire::{Json, quote};

use super::problem::ConfigProblem;
use super::reader::{ConfigReader, Scalar, Section};
use super::yaml::{YamlKind, YamlMember, YamlNode};
use crate::profile::Origin;

/// The policy for tools.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolsConfig {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The place where it was set.
    pub origin: Origin,
}

const KEYS: &str = "phase permissions environment urgent unknown budget budget_client_tools phases categories tools production";

/// Reads a policy; none if the section is empty, or there is an error in it.
pub(super) fn read(reader: &mut ConfigReader<'_>, member: &YamlMember) -> Option<ToolsConfig> {
    let node = &member.value;
    let errors = reader.errors.len();
    let mut section = reader.section("tools", node, KEYS);
    if section.members().is_empty() {
        return None;
    }
    let mut draft = PolicyDraft {
        phase: section.text("phase").map(|set| set.value),
        environment: section.text("environment").map(|set| set.value),
        is_urgent: section.boolean("urgent").is_some_and(|set| set.value),
        unknown: section
            .word("unknown", &["allow", "deny"])
            .and_then(|set| set.value.parse().ok()),
        budget: section.tokens("budget").map(|set| set.value),
        budget_client_tools: section
            .boolean("budget_client_tools")
            .is_some_and(|set| set.value),
        permissions: read_texts(&mut section, "permissions").unwrap_or_default(),
        categories: read_texts(&mut section, "categories").unwrap_or_default(),
        ..PolicyDraft::default()
    };
    if section.get("permissions").is_none() {
        let warning = "`tools.permissions` is not set: tools that require a permission are hidden";
        section.reader.warn(member.line, warning);
    }
    if let Some(phases) = section.get("phases") {
        let mut phases = section.reader.open("tools.phases", &phases.value);
        for phase in phases.members() {
            let categories = read_texts(&mut phases, &phase.key).unwrap_or_default();
            draft.phases.push((phase.key.clone(), categories));
        }
    }
    if let Some(tools) = section.get("tools") {
        for tool in section.reader.open("tools.tools", &tools.value).members() {
            let rule = read_rule(section.reader, tool);
            draft.tools.push((tool.key.clone(), rule));
        }
    }
    if let Some(production) = section.get("production") {
        let node = &production.value;
        let mut production = section
            .reader
            .section("tools.production", node, "commands paths");
        draft.commands = read_texts(&mut production, "commands");
        draft.paths = read_texts(&mut production, "paths").unwrap_or_default();
    }
    let policy = Policy::new(draft);
    if let Err(problems) = &policy {
        problems.0.iter().for_each(|it| report(reader, node, it));
    }
    let policy = policy.ok().filter(|_| reader.errors.len() == errors)?;
    Some(ToolsConfig {
        policy: Arc::new(policy),
        origin: reader.origin(member.line),
    })
}

/// Reports a problem at the line of the value that has it.
fn report(reader: &mut ConfigReader<'_>, section: &YamlNode, problem: &PolicyProblem) {
    let mut node = section;
    for key in &problem.path {
        let members = node.members().iter();
        let Some(member) = members.into_iter().find(|member| member.key == *key) else {
            break;
        };
        node = &member.value;
    }
    let problem = ConfigProblem::Policy {
        key: format!("tools.{}", problem.path.join(".")),
        what: problem.what.clone(),
    };
    reader.report(node.line, problem);
}

fn read_rule(reader: &mut ConfigReader<'_>, tool: &YamlMember) -> ToolRule {
    let path = format!("tools.tools.{}", tool.key);
    let keys = "category priority permissions description schema";
    let mut section = reader.section(&path, &tool.value, keys);
    let priority = |scalar: &Scalar| scalar.integer().and_then(|number| number.try_into().ok());
    let expected = "a whole number: tools with a higher one come first";
    ToolRule {
        category: section.text("category").map(|set| set.value),
        priority: section
            .value("priority", expected, priority)
            .map(|set| set.value),
        permissions: read_texts(&mut section, "permissions"),
        description: section.text("description").map(|set| set.value),
        schema: section.get("schema").map(|schema| json(&schema.value)),
    }
}

/// Reads a text, or a list of them; none if the key is not there.
fn read_texts(section: &mut Section<'_, '_, '_>, key: &str) -> Option<Vec<String>> {
    let member = section.get(key)?;
    let path = section.path(key);
    let nodes = match &member.value.kind {
        YamlKind::List(nodes) => nodes,
        _ => std::slice::from_ref(&member.value),
    };
    let mut texts = Vec::new();
    for node in nodes {
        let scalar = section
            .reader
            .scalar(&path, node, "a text, or a list of them");
        texts.extend(scalar.map(|scalar| scalar.text));
    }
    Some(texts)
}

/// Writes a node as JSON.
fn json(node: &YamlNode) -> String {
    match &node.kind {
        _ if node.is_null() => "null".to_owned(),
        YamlKind::Scalar { text, is_plain } => {
            let is_json = *is_plain && Json::parse(text.as_bytes()).is_ok();
            if is_json { text.clone() } else { quote(text) }
        }
        YamlKind::List(nodes) => {
            let nodes: Vec<String> = nodes.iter().map(json).collect();
            format!("[{}]", nodes.join(","))
        }
        YamlKind::Map(members) => {
            let members = members.iter();
            let members = members.map(|it| format!("{}:{}", quote(&it.key), json(&it.value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
    }
}
