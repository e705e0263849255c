//! Finds values of setup that others moved: their element got another name, or they got another key.

use serde_json::Value;

use crate::edit::{Applied, Syntax, Unset, path_text, read, unset};
use crate::tree::{PathStep, normal};

/// Values that are not at their paths any more.
pub(crate) struct MovedValues<'a> {
    syntax: Syntax,
    /// The values of the text as it was before setup.
    before: Value,
    values: Vec<&'a Applied>,
}

impl<'a> MovedValues<'a> {
    /// `copy` is the text as it was before setup; none if there was no file.
    pub(crate) fn new(syntax: Syntax, copy: Option<&str>) -> MovedValues<'a> {
        let before = copy.and_then(|text| read(syntax, text).ok());
        MovedValues {
            syntax,
            before: before.unwrap_or(Value::Null),
            values: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, applied: &'a Applied) {
        self.values.push(applied);
    }

    /// Returns whether a value is not at its path any more.
    pub(crate) fn contains(&self, applied: &Applied) -> bool {
        self.values.contains(&applied)
    }

    /// Takes values back whose element was renamed. Returns the new text.
    pub(crate) fn take_back(&self, mut text: String) -> String {
        for applied in &self.values {
            let Some(path) = self.new_path(applied, &text) else {
                continue;
            };
            let depth = path.len().saturating_sub(1);
            let moved = Applied {
                path,
                depth,
                ..(*applied).clone()
            };
            if let Ok(Unset::Done(new)) = unset(self.syntax, &text, &moved) {
                text = new;
            }
        }
        text
    }

    /// Returns the path of a value that has the same key in an element of another name. There must be no doubt: such
    /// values are not more than ours that are gone, all of these replaced the same, and none was there before.
    fn new_path(&self, applied: &Applied, text: &str) -> Option<Vec<PathStep>> {
        let all = read(self.syntax, text).ok()?;
        let is_same = |other: &&&Applied| other.value == applied.value;
        let gone: Vec<_> = self.values.iter().filter(is_same).collect();
        let mut places = paths(&all, &applied.path, &applied.value);
        let is_clear = places.len() <= gone.len()
            && gone.iter().all(|other| other.before == applied.before)
            && paths(&self.before, &applied.path, &applied.value).is_empty();
        let is_renamed = |place: &Vec<PathStep>| is_renamed(place, &applied.path);
        let found = is_clear && places.iter().all(is_renamed);
        places.pop().filter(|_| found)
    }

    /// Returns the names of the places at which texts of a value stand that were not there before setup.
    pub(crate) fn names_in(&self, text: &str, applied: &Applied) -> Vec<String> {
        let Ok(all) = read(self.syntax, text) else {
            return Vec::new();
        };
        let mut names = Vec::new();
        for value in telling_values(&applied.value) {
            let found = paths(&all, &applied.path, value);
            if found.len() > paths(&self.before, &applied.path, value).len() {
                names.extend(found.iter().map(|path| path_text(path)));
            }
        }
        names
    }
}

/// Returns the texts of a value that nobody but setup writes: addresses of the proxy, and those that name Infold.
fn telling_values(value: &Value) -> Vec<&Value> {
    match value {
        Value::String(text) if text.contains("://127.0.0.1:") || text.contains("infold") => {
            vec![value]
        }
        Value::Array(items) => items.iter().flat_map(telling_values).collect(),
        Value::Object(members) => members.values().flat_map(telling_values).collect(),
        _ => Vec::new(),
    }
}

/// Returns whether two paths differ in nothing but names of elements.
fn is_renamed(path: &[PathStep], old: &[PathStep]) -> bool {
    let is_like = |pair: (&PathStep, &PathStep)| match pair {
        (PathStep::Key(_), PathStep::Key(_)) => true,
        (PathStep::Entry(key, _), PathStep::Entry(old, _)) => key == old,
        _ => false,
    };
    path.len() == old.len() && path.last() == old.last() && path.iter().zip(old).all(is_like)
}

/// Returns the paths to all places of a value. Elements of lists are named as in the path `like`, or else by their
/// numbers.
fn paths(all: &Value, like: &[PathStep], value: &Value) -> Vec<Vec<PathStep>> {
    let mut found = Vec::new();
    collect(all, like, &normal(value), &mut Vec::new(), &mut found);
    found
}

fn collect(
    at: &Value,
    like: &[PathStep],
    value: &Value,
    path: &mut Vec<PathStep>,
    found: &mut Vec<Vec<PathStep>>,
) {
    if normal(at) == *value {
        found.push(path.clone());
        return;
    }
    let members = at.as_object().into_iter().flatten();
    let members = members.map(|(key, inner)| (PathStep::Key(key.clone()), inner));
    let items = at.as_array().into_iter().flatten().enumerate();
    let like_step = like.get(path.len());
    let items = items.map(|(number, item)| (entry_step(item, number, like_step), item));
    for (step, inner) in members.chain(items) {
        path.push(step);
        collect(inner, like, value, path, found);
        path.pop();
    }
}

fn entry_step(item: &Value, number: usize, like: Option<&PathStep>) -> PathStep {
    if let Some(PathStep::Entry(key, _)) = like
        && let Some(name) = item[key].as_str()
    {
        return PathStep::Entry(key.clone(), name.to_owned());
    }
    PathStep::Entry(String::new(), number.to_string())
}
