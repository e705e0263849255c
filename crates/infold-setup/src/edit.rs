//! Sets one value in the text of a configuration, and takes that back.

use serde_json::Value;

use crate::text::{Patch, bom, insert_lines, position, remove_lines};
use crate::tree::{Member, Node, NodeForm, NodeKind, PathStep, normal, remove_in, set_in};
use crate::{dotenv, flow, json, toml, yaml};

/// The syntax of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON, perhaps with comments and trailing commas.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// Lines of `NAME=value`.
    Dotenv,
}

/// The place at which a text cannot be parsed, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct SyntaxError {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// The problem.
    pub reason: String,
}

/// Why a text was not edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// It cannot be read.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The value at a path has a form that cannot hold the new one.
    #[error("`{0}` has a form that cannot be edited in place")]
    Shape(String),
}

/// The text that an insertion put around a member between brackets, or before a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Before it.
    pub prefix: String,
    /// Behind it.
    pub suffix: String,
}

/// A value that was set, with all that is needed to take it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The path of the value.
    pub path: Vec<PathStep>,
    /// The value.
    pub value: Value,
    /// The text of the earlier value; `None` if the value was added.
    pub before: Option<String>,
    /// How many steps of the path led to something that was there before.
    pub depth: usize,
    /// The text that was put around it.
    pub around: Around,
}

/// The result of taking a value back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unset {
    /// It was taken back; this is the new text.
    Done(String),
    /// It is not there any more.
    Gone,
    /// It was changed since; this is what is there now.
    Changed(Value),
}

/// The part of a text that a path leads to.
#[derive(Clone, Debug)]
pub(crate) enum FoundKey {
    /// One value.
    Node(Node),
    /// A mapping whose members stand in several places.
    Spread(Value),
    /// Nothing.
    Nothing,
}

impl SyntaxError {
    pub(crate) fn at(text: &str, at: usize, reason: impl Into<String>) -> SyntaxError {
        let (line, column) = position(text, at);
        SyntaxError {
            line,
            column,
            reason: reason.into(),
        }
    }
}

/// Reads the values of a text.
pub fn read(syntax: Syntax, text: &str) -> Result<Value, SyntaxError> {
    match syntax {
        Syntax::Toml => Ok(toml::parse(text)?.value()),
        _ => Ok(tree(syntax, text)?.value()),
    }
}

/// Returns the value at a path.
pub fn get(syntax: Syntax, text: &str, path: &[PathStep]) -> Result<Option<Value>, SyntaxError> {
    Ok(match find(syntax, text, path)? {
        FoundKey::Node(node) => Some(node.value()).filter(|value| !value.is_null()),
        FoundKey::Spread(value) => Some(value),
        FoundKey::Nothing => None,
    })
}

/// Sets a value; returns `None` if the text has that value already.
///
/// All other bytes stay. The edit is refused if it would change the meaning of anything else.
pub fn set(
    syntax: Syntax,
    text: &str,
    path: &[PathStep],
    value: &Value,
) -> Result<Option<(String, Applied)>, EditError> {
    let shape = || EditError::Shape(path_text(path));
    let old = read(syntax, text)?;
    let mut applied = Applied {
        path: path.to_vec(),
        value: value.clone(),
        before: None,
        depth: 0,
        around: Around::default(),
    };
    let mut patch = Patch::default();
    match find(syntax, text, path)? {
        FoundKey::Node(node) if !node.is_null() => {
            if normal(&node.value()) == normal(value) {
                return Ok(None);
            }
            if !matches!(node.kind, NodeKind::Scalar(_)) {
                return Err(EditError::Shape(path_text(path)));
            }
            applied.before = Some(text[node.span.clone()].to_owned());
            patch.replace(node.span, scalar(syntax, value));
        }
        FoundKey::Spread(found) if normal(&found) == normal(value) => return Ok(None),
        FoundKey::Spread(_) => return Err(EditError::Shape(path_text(path))),
        _ => insert(syntax, text, path, value, &mut applied, &mut patch)?,
    }
    let new = patch.apply(text).ok_or_else(shape)?;
    // The edit is correct if all other values are the same as before.
    let mut wanted = old;
    set_in(&mut wanted, path, value);
    match read(syntax, &new) {
        Ok(found) if normal(&found) == normal(&wanted) => Ok(Some((new, applied))),
        _ => Err(EditError::Shape(path_text(path))),
    }
}

/// Takes a value back: what was there before is restored, or what was added is removed.
pub fn unset(syntax: Syntax, text: &str, applied: &Applied) -> Result<Unset, EditError> {
    let current = match find(syntax, text, &applied.path)? {
        FoundKey::Node(node) => node,
        FoundKey::Spread(value) => Node {
            span: 0..0,
            kind: NodeKind::Scalar(value),
        },
        FoundKey::Nothing => return Ok(Unset::Gone),
    };
    if normal(&current.value()) != normal(&applied.value) {
        return Ok(Unset::Changed(current.value()));
    }
    let shape = || EditError::Shape(path_text(&applied.path));
    let mut wanted = read(syntax, text)?;
    let mut patch = Patch::default();
    match &applied.before {
        Some(before) => {
            patch.replace(current.span, before.clone());
            let new = patch.apply(text).ok_or_else(shape)?;
            read(syntax, &new)?;
            return Ok(Unset::Done(new));
        }
        None => {
            let path = removed_path(syntax, text, applied)?;
            remove_in(&mut wanted, &path);
            remove(syntax, text, &path, &applied.around, &mut patch)?;
        }
    }
    let new = patch.apply(text).ok_or_else(shape)?;
    match read(syntax, &new) {
        Ok(found) if normal(&found) == normal(&wanted) => Ok(Unset::Done(new)),
        _ => Err(EditError::Shape(path_text(&applied.path))),
    }
}

/// Formats a path for messages.
pub fn path_text(path: &[PathStep]) -> String {
    let name = |step: &PathStep| match step {
        PathStep::Key(key) => key.clone(),
        PathStep::Entry(_, text) => text.clone(),
    };
    path.iter().map(name).collect::<Vec<_>>().join(".")
}

fn tree(syntax: Syntax, text: &str) -> Result<Node, SyntaxError> {
    match syntax {
        Syntax::Json => json::parse(text),
        Syntax::Yaml => yaml::parse(text),
        Syntax::Dotenv | Syntax::Toml => dotenv::parse(text),
    }
}

fn find(syntax: Syntax, text: &str, path: &[PathStep]) -> Result<FoundKey, SyntaxError> {
    if syntax == Syntax::Toml {
        return Ok(toml::parse(text)?.find(path));
    }
    let tree = tree(syntax, text)?;
    Ok(tree
        .find(path)
        .map_or(FoundKey::Nothing, |node| FoundKey::Node(node.clone())))
}

fn scalar(syntax: Syntax, value: &Value) -> String {
    match (syntax, value) {
        (Syntax::Yaml, Value::String(text)) => yaml::scalar(text),
        (Syntax::Dotenv, Value::String(text)) => text.clone(),
        _ => flow::render(value, None, "", ""),
    }
}

fn insert(
    syntax: Syntax,
    text: &str,
    path: &[PathStep],
    value: &Value,
    applied: &mut Applied,
    patch: &mut Patch,
) -> Result<(), EditError> {
    if syntax == Syntax::Toml {
        let document = toml::parse(text)?;
        applied.depth = path.len().saturating_sub(1);
        applied.around = document.insert(text, path, value, patch)?;
        return Ok(());
    }
    let tree = tree(syntax, text)?;
    // Follow the path as far as it exists.
    let mut parent = &tree;
    let mut holder: Option<&Member> = None;
    let mut depth = 0;
    while let Some(at) = path.get(depth).and_then(|step| parent.child(step)) {
        holder = match &parent.kind {
            NodeKind::Map(members, _) => Some(&members[at]),
            _ => None,
        };
        parent = parent.at(at);
        depth += 1;
    }
    let rest = &path[depth..];
    applied.depth = depth;
    let is_flow = match (&parent.kind, rest.first()) {
        (NodeKind::Map(_, form), Some(PathStep::Key(_))) => *form == NodeForm::Flow,
        (NodeKind::List(_, NodeForm::Block), Some(PathStep::Entry(..))) => false,
        (NodeKind::Scalar(Value::Null), _) if syntax == Syntax::Yaml => false,
        _ => return Err(EditError::Shape(path_text(&path[..depth.max(1)]))),
    };
    if syntax == Syntax::Dotenv {
        let line = vec![format!("{}={}", path_text(path), scalar(syntax, value))];
        let stop = text.strip_suffix('\n').unwrap_or(text);
        let stop = stop.strip_suffix('\r').unwrap_or(stop).len();
        insert_lines(text, Some(stop), &line, patch);
    } else if is_flow {
        let (first, inner) = rest.split_first().ok_or(EditError::Shape(String::new()))?;
        let mut nested = Value::Null;
        set_in(&mut nested, inner, value);
        let key = match first {
            PathStep::Key(key) => key,
            PathStep::Entry(..) => return Err(EditError::Shape(path_text(path))),
        };
        applied.around = flow::insert(syntax, text, parent, key, &nested, patch);
    } else {
        let holder = holder.filter(|_| parent.is_null());
        if parent.is_null() && holder.is_some_and(|_| text[parent.span.clone()].len() > 1) {
            return Err(EditError::Shape(path_text(&path[..depth])));
        }
        yaml::insert(text, parent, holder, rest, value, patch)?;
    }
    Ok(())
}

/// Returns the path of the part to remove: mappings that were made for the value and contain nothing else are removed
/// with it.
fn removed_path(syntax: Syntax, text: &str, applied: &Applied) -> Result<Vec<PathStep>, EditError> {
    let path = &applied.path;
    if syntax == Syntax::Toml {
        return Ok(path.clone());
    }
    let tree = tree(syntax, text)?;
    let mut end = path.len();
    while end > applied.depth + 1
        && tree
            .find(&path[..end - 1])
            .is_some_and(|parent| parent.len() == 1)
    {
        end -= 1;
    }
    Ok(path[..end].to_vec())
}

fn remove(
    syntax: Syntax,
    text: &str,
    path: &[PathStep],
    around: &Around,
    patch: &mut Patch,
) -> Result<(), EditError> {
    let shape = || EditError::Shape(path_text(path));
    if syntax == Syntax::Toml {
        return toml::parse(text)?.remove(text, path, around, patch);
    }
    let tree = tree(syntax, text)?;
    let (last, parents) = path.split_last().ok_or_else(shape)?;
    let parent = tree.find(parents).ok_or_else(shape)?;
    let at = parent.child(last).ok_or_else(shape)?;
    match &parent.kind {
        NodeKind::Map(members, NodeForm::Flow) => {
            let part = |member: &Member| member.start..member.value.span.end;
            let parts: Vec<_> = members.iter().map(part).collect();
            flow::remove(syntax, text, &parts, at, around, patch);
            Ok(())
        }
        NodeKind::List(items, NodeForm::Flow) => {
            let parts: Vec<_> = items.iter().map(|item| item.span.clone()).collect();
            flow::remove(syntax, text, &parts, at, around, patch);
            Ok(())
        }
        NodeKind::Map(members, NodeForm::Block) if syntax == Syntax::Dotenv => {
            let member = &members[at];
            remove_lines(text, member.start..member.value.span.end, patch);
            Ok(())
        }
        // It was between brackets when the value was added, and held nothing else: so it must not become null.
        NodeKind::Map(members, NodeForm::Block)
            if members.len() == 1 && *around != Around::default() =>
        {
            yaml::empty_mapping(text, &members[at], patch);
            Ok(())
        }
        NodeKind::Map(members, NodeForm::Block) => yaml::remove_member(text, members, at, patch),
        NodeKind::List(items, NodeForm::Block) => yaml::remove_item(text, &items[at], patch),
        _ => Err(shape()),
    }
}

/// Returns whether nothing is in a text but white space, brackets and a byte order mark.
pub fn is_blank(syntax: Syntax, text: &str) -> bool {
    let body = text[bom(text)..].trim();
    body.is_empty() || syntax == Syntax::Json && body.starts_with('{') && body[1..].trim() == "}"
}
