//! `state.yaml`: a layered state as a person writes it.

use infold_layers::{Attribute, Author, Change, Field, FieldForm, LayerItem, LayerState};
use infold_store::parse_iso;

use super::explain_change;
use crate::config::problem::nearest;
use crate::config::yaml::{YamlKind, YamlLimits, YamlMember, YamlNode, parse_within};

/// The keys under which an item of a list has its text.
const TEXT_KEYS: [&str; 5] = ["text", "content", "description", "result", "value"];

/// A state may have many facts, each a few nodes.
const LIMITS: YamlLimits = YamlLimits {
    nodes: 2_000_000,
    bytes: 48 << 20,
};

/// The reason that a state file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct StateFileError {
    /// The line, counted from 1.
    pub line: usize,
    /// The description of the error.
    pub problem: String,
    /// The name that may have been meant.
    pub nearest: Option<String>,
}

/// Reads a state file as changes that set the named fields; other fields stay.
pub fn read_state_file(text: &str) -> Result<Vec<Change>, StateFileError> {
    let parsed = parse_within(text, 0, LIMITS);
    let root = parsed.map_err(|(line, problem)| error(line.line, problem.to_string()))?;
    let mut changes = Vec::new();
    if let Some(root) = root {
        read_level("", &root, &mut changes)?;
    }
    Ok(changes)
}

fn error(line: usize, problem: impl Into<String>) -> StateFileError {
    StateFileError {
        line,
        problem: problem.into(),
        nearest: None,
    }
}

/// Reads a mapping whose members are fields, or mappings of them.
fn read_level(
    path: &str,
    node: &YamlNode,
    changes: &mut Vec<Change>,
) -> Result<(), StateFileError> {
    if node.is_null() {
        return Ok(());
    }
    let YamlKind::Map(members) = &node.kind else {
        let place = if path.is_empty() { "a state" } else { path };
        let problem = format!("{place} is a mapping of keys to values");
        return Err(error(node.line.line, problem));
    };
    for member in members {
        let inner = match path {
            "" => member.key.clone(),
            path => format!("{path}.{}", member.key),
        };
        if let Some(field) = Field::all().find(|field| field.path() == inner) {
            let change = Change::Set(field, read_items(field, &member.value)?);
            let checked = LayerState::default().apply(&change, Author::Person);
            checked.map_err(|wrong| error(member.line.line, explain_change(&wrong)))?;
            changes.push(change);
        } else if is_level(&inner) {
            read_level(&inner, &member.value, changes)?;
        } else {
            return Err(unknown_key(path, member));
        }
    }
    Ok(())
}

fn is_level(path: &str) -> bool {
    let start = format!("{path}.");
    Field::all().any(|field| field.path().starts_with(&start))
}

fn unknown_key(path: &str, member: &YamlMember) -> StateFileError {
    let start = match path {
        "" => String::new(),
        path => format!("{path}."),
    };
    let rest = Field::all().filter_map(|field| field.path().strip_prefix(&*start));
    let mut keys: Vec<&str> = rest.filter_map(|rest| rest.split('.').next()).collect();
    keys.dedup();
    let place = if path.is_empty() { "here" } else { path };
    StateFileError {
        line: member.line.line,
        problem: format!(
            "no key `{}` in {place}; there are {}",
            member.key,
            keys.join(", ")
        ),
        nearest: nearest(&member.key, keys),
    }
}

fn read_items(field: Field, node: &YamlNode) -> Result<Vec<LayerItem>, StateFileError> {
    if node.is_null() {
        return Ok(Vec::new());
    }
    match (&node.kind, field.form()) {
        (YamlKind::List(items), _) if field.is_list() => {
            items.iter().map(|item| read_item(field, item)).collect()
        }
        (YamlKind::Map(members), FieldForm::Map) => members
            .iter()
            .map(|member| {
                let text = scalar(field, &member.value)?;
                Ok(LayerItem::new(text).with(Attribute::Name, member.key.clone()))
            })
            .collect(),
        (YamlKind::Map(_), FieldForm::Schema) => Ok(vec![LayerItem::new(json(node))]),
        (YamlKind::Scalar { .. }, _) => Ok(vec![read_item(field, node)?]),
        _ => {
            let form = if field.is_list() {
                "a list"
            } else {
                "one value"
            };
            Err(error(
                node.line.line,
                format!("`{}` holds {form}", field.path()),
            ))
        }
    }
}

fn read_item(field: Field, node: &YamlNode) -> Result<LayerItem, StateFileError> {
    let YamlKind::Map(members) = &node.kind else {
        let mut item = LayerItem::new(scalar(field, node)?);
        if field.form() == FieldForm::Time {
            item.time = parse_iso(&item.text);
        }
        return Ok(item);
    };
    let mut item = LayerItem::default();
    for member in members {
        let key = member.key.as_str();
        let value = scalar(field, &member.value)?;
        if TEXT_KEYS.contains(&key) {
            item.text = value;
        } else if key == "priority" {
            let problem = || error(member.line.line, "`priority` is a whole number");
            item.priority = value.parse().map_err(|_| problem())?;
        } else if let Some(attribute) =
            Attribute::find(key).filter(|one| field.attributes().contains(one))
        {
            if attribute == Attribute::Timestamp {
                item.time = parse_iso(&value);
            }
            item.attributes.insert(attribute, value);
        } else {
            let mut keys = vec!["text", "priority"];
            keys.extend(field.attributes().iter().map(|one| one.name()));
            return Err(StateFileError {
                line: member.line.line,
                problem: format!(
                    "no key `{key}` in an item of {}; there are {}",
                    field.path(),
                    keys.join(", ")
                ),
                nearest: nearest(key, keys),
            });
        }
    }
    if item.text.is_empty() {
        let problem = format!("an item of {} without a `text`", field.path());
        return Err(error(node.line.line, problem));
    }
    Ok(item)
}

fn scalar(field: Field, node: &YamlNode) -> Result<String, StateFileError> {
    match &node.kind {
        _ if node.is_null() => Err(error(
            node.line.line,
            format!("an empty value in {}", field.path()),
        )),
        YamlKind::Scalar { text, .. } => Ok(text.clone()),
        _ => Err(error(
            node.line.line,
            format!("a text was expected in {}", field.path()),
        )),
    }
}

/// A schema that is written as YAML, as JSON.
fn json(node: &YamlNode) -> String {
    match &node.kind {
        YamlKind::List(items) => {
            let items: Vec<String> = items.iter().map(json).collect();
            format!("[{}]", items.join(","))
        }
        YamlKind::Map(members) => {
            let member = |member: &YamlMember| {
                format!(
                    "{}:{}",
                    infold_wire::quote(&member.key),
                    json(&member.value)
                )
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(","))
        }
        YamlKind::Scalar { text, is_plain } => {
            let is_json = infold_wire::Json::parse(text.as_bytes()).is_ok();
            if node.is_null() {
                "null".to_owned()
            } else if *is_plain && is_json {
                text.clone()
            } else {
                infold_wire::quote(text)
            }
        }
    }
}
