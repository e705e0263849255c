//! The values of a configuration file, and where each stands in its text.

use std::ops::Range;

use serde_json::{Map, Value};

/// A value and the bytes it takes.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it stands; empty for a value that is left out, as after `key:` in YAML.
    pub span: Range<usize>,
    /// Its kind, with its value or members.
    pub kind: NodeKind,
}

/// The kinds of values.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// A text, a number, a truth value or null.
    Scalar(Value),
    /// A list.
    List(Vec<Node>, NodeForm),
    /// A mapping.
    Map(Vec<Member>, NodeForm),
}

/// How a list or a mapping is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeForm {
    /// Between brackets, with commas.
    Flow,
    /// A line or more for each member.
    Block,
}

/// One key of a mapping.
#[derive(Clone, Debug)]
pub struct Member {
    /// The key, decoded.
    pub key: String,
    /// Where the key begins.
    pub start: usize,
    /// Its value.
    pub value: Node,
}

/// One step of a path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// A key of a mapping.
    Key(String),
    /// The element of a list that is a mapping with this key and text.
    Entry(String, String),
}

impl PathStep {
    /// Returns a path of keys.
    pub fn keys(keys: &[&str]) -> Vec<PathStep> {
        keys.iter()
            .map(|key| PathStep::Key((*key).to_owned()))
            .collect()
    }
}

impl Node {
    /// Returns the value without the positions.
    pub fn value(&self) -> Value {
        match &self.kind {
            NodeKind::Scalar(value) => value.clone(),
            NodeKind::List(items, _) => items.iter().map(Node::value).collect(),
            NodeKind::Map(members, _) => {
                let pairs = members
                    .iter()
                    .map(|member| (member.key.clone(), member.value.value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// Returns whether there is no value.
    pub fn is_null(&self) -> bool {
        matches!(self.kind, NodeKind::Scalar(Value::Null))
    }

    /// Returns the index of the child that a step leads to.
    pub fn child(&self, step: &PathStep) -> Option<usize> {
        match (&self.kind, step) {
            // Of several keys of one name the last counts, as it does for the agents that read the file.
            (NodeKind::Map(members, _), PathStep::Key(key)) => {
                members.iter().rposition(|member| member.key == *key)
            }
            (NodeKind::List(items, _), PathStep::Entry(key, text)) => {
                items.iter().position(|item| {
                    let name = item.child(&PathStep::Key(key.clone()));
                    name.is_some_and(|at| item.at(at).value() == Value::String(text.clone()))
                })
            }
            _ => None,
        }
    }

    /// Returns a child by its index.
    pub fn at(&self, index: usize) -> &Node {
        match &self.kind {
            NodeKind::Map(members, _) => &members[index].value,
            NodeKind::List(items, _) => &items[index],
            NodeKind::Scalar(_) => self,
        }
    }

    /// Returns the value at a path.
    pub fn find(&self, path: &[PathStep]) -> Option<&Node> {
        let Some((step, rest)) = path.split_first() else {
            return Some(self);
        };
        self.at(self.child(step)?).find(rest)
    }

    /// Returns how many children it has.
    pub fn len(&self) -> usize {
        match &self.kind {
            NodeKind::Map(members, _) => members.len(),
            NodeKind::List(items, _) => items.len(),
            NodeKind::Scalar(_) => 0,
        }
    }
}

/// Sets a value in a tree of values; creates the mappings and lists on its path that are missing.
pub(crate) fn set_in(tree: &mut Value, path: &[PathStep], value: &Value) {
    let Some((step, rest)) = path.split_first() else {
        *tree = value.clone();
        return;
    };
    match step {
        PathStep::Key(key) => {
            if !tree.is_object() {
                *tree = Value::Object(Map::new());
            }
            if let Some(object) = tree.as_object_mut() {
                set_in(
                    object.entry(key.clone()).or_insert(Value::Null),
                    rest,
                    value,
                );
            }
        }
        PathStep::Entry(key, text) => {
            if !tree.is_array() {
                *tree = Value::Array(Vec::new());
            }
            if let Some(items) = tree.as_array_mut() {
                let at = items.iter().position(|item| item[key] == text.as_str());
                let at = at.unwrap_or_else(|| {
                    items.push(Value::Null);
                    items.len() - 1
                });
                set_in(&mut items[at], rest, value);
            }
        }
    }
}

/// Removes a value from a tree of values.
pub(crate) fn remove_in(tree: &mut Value, path: &[PathStep]) {
    let Some((step, rest)) = path.split_first() else {
        return;
    };
    match step {
        PathStep::Key(key) => {
            if let Some(object) = tree.as_object_mut() {
                if rest.is_empty() {
                    object.remove(key);
                } else if let Some(inner) = object.get_mut(key) {
                    remove_in(inner, rest);
                }
            }
        }
        PathStep::Entry(key, text) => {
            if let Some(items) = tree.as_array_mut()
                && let Some(at) = items.iter().position(|item| item[key] == text.as_str())
            {
                if rest.is_empty() {
                    items.remove(at);
                } else {
                    remove_in(&mut items[at], rest);
                }
            }
        }
    }
}

/// Converts a value to a form in which values of all syntaxes can be compared: numbers and truth values become texts,
/// and empty mappings and lists become null, because not every syntax tells them apart.
pub(crate) fn normal(value: &Value) -> Value {
    match value {
        Value::Bool(value) => Value::String(value.to_string()),
        Value::Number(value) => Value::String(value.to_string()),
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(members) => {
            let pairs = members
                .iter()
                .map(|(key, value)| (key.clone(), normal(value)));
            let pairs: Map<_, _> = pairs.filter(|(_, value)| !value.is_null()).collect();
            if pairs.is_empty() {
                Value::Null
            } else {
                Value::Object(pairs)
            }
        }
        other => other.clone(),
    }
}
