//! Changes of a layered state: who may make them, and how they are applied.

use std::collections::{BTreeMap, HashSet};

use infold_wire::{Json, JsonKind};

use crate::{
    Attribute, ENVIRONMENTS, Field, FieldForm, LayerItem, LayerState, PHASES, STATUSES, Writers,
    step_status,
};

/// Who makes a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Author {
    /// A person, or a script of theirs.
    Person,
    /// A model, through a tool.
    Model,
}

/// A change of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Replaces all items of a field; an empty list empties the field.
    Set(Field, Vec<LayerItem>),
    /// Adds an item to a list; in a map it replaces the item with the same name.
    Add(Field, LayerItem),
    /// Removes an item from a list, by its number counted from 1.
    Remove(Field, usize),
    /// Sets the status of an item, by its number counted from 1.
    Mark(Field, usize, String),
}

/// Why a change cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// Only a person may make it.
    #[error("`{}` is set by a person, not by a model", .0.path())]
    Forbidden(Field),
    /// A model may not go from the current phase to this one.
    #[error("phase {to} does not follow {from}; what may follow: {}", .allowed.join(", "))]
    Transition {
        /// The phase of the task.
        from: String,
        /// The phase that was asked for.
        to: String,
        /// The phases that may follow.
        allowed: Vec<String>,
    },
    /// A value that the field cannot hold.
    #[error("`{}` is {expected}, not `{value}`", .field.path())]
    Value {
        /// The field.
        field: Field,
        /// The expected kind of value.
        expected: String,
        /// The given value.
        value: String,
    },
    /// The field holds one text, not a list.
    #[error("`{}` holds one value, not a list", .0.path())]
    NotList(Field),
    /// There is no such item.
    #[error("`{}` has {count} items, and no item {index}", .field.path())]
    NoItem {
        /// The field.
        field: Field,
        /// How many items it has.
        count: usize,
        /// The number that was asked for, counted from 1.
        index: usize,
    },
    /// The items of the field have no such attribute.
    #[error("items of `{}` have no `{}`", .0.path(), .1.name())]
    Attribute(Field, Attribute),
}

/// The phases that may follow each phase when a model sets it. A person may set any phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transitions {
    followers: BTreeMap<String, Vec<String>>,
    /// The phase that is assumed for a state without one.
    start: Option<String>,
}

impl Default for Transitions {
    fn default() -> Transitions {
        let table = [
            ("planning", &["executing"][..]),
            ("executing", &["planning", "reflecting", "verifying"]),
            ("reflecting", &["planning", "executing", "verifying"]),
            ("verifying", &["executing", "reflecting"]),
        ];
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let followers = table.into_iter();
        let followers = followers.map(|(from, to)| (from.to_owned(), owned(to)));
        Transitions {
            followers: followers.collect(),
            start: None,
        }
    }
}

impl Transitions {
    /// Replaces the phases that may follow a phase.
    pub fn allow(&mut self, from: &str, to: Vec<String>) {
        self.followers.insert(from.to_owned(), to);
    }

    /// Sets the initial phase, from which a model's first transition starts if the state has none.
    pub fn start_at(&mut self, phase: &str) {
        self.start = Some(phase.to_owned());
    }

    /// Checks that a model may go from one phase to another. If there is neither a phase nor an initial one, any may
    /// follow.
    pub fn check(&self, from: Option<&str>, to: &str) -> Result<(), ChangeError> {
        let from = from.or(self.start.as_deref());
        let Some(from) = from.filter(|from| *from != to) else {
            return Ok(());
        };
        let allowed = self.followers.get(from).cloned().unwrap_or_default();
        if allowed.iter().any(|one| one == to) {
            return Ok(());
        }
        Err(ChangeError::Transition {
            from: from.to_owned(),
            to: to.to_owned(),
            allowed,
        })
    }
}

impl LayerState {
    /// Makes a change, with the usual transitions between phases; nothing is changed if it cannot be made.
    pub fn apply(&mut self, change: &Change, author: Author) -> Result<(), ChangeError> {
        self.apply_within(change, author, &Transitions::default())
    }

    /// Makes a change; nothing is changed if it cannot be made.
    pub fn apply_within(
        &mut self,
        change: &Change,
        author: Author,
        transitions: &Transitions,
    ) -> Result<(), ChangeError> {
        if author == Author::Model {
            self.check_model(change, transitions)?;
        }
        check_statuses(change)?;
        self.replay(change)
    }

    /// Applies a recorded change. Its author and the names of statuses are not checked again.
    pub fn replay(&mut self, change: &Change) -> Result<(), ChangeError> {
        let field = change.field();
        match change {
            Change::Set(_, items) => {
                if items.len() > 1 && !field.is_list() {
                    return Err(ChangeError::NotList(field));
                }
                let items: Result<Vec<LayerItem>, ChangeError> =
                    items.iter().map(|item| normalized(field, item)).collect();
                let mut items = items?;
                if field.form() == FieldForm::Map {
                    keep_last_of_each_name(&mut items);
                }
                self.fill(field, items);
            }
            Change::Add(_, item) => {
                if !field.is_list() {
                    return Err(ChangeError::NotList(field));
                }
                let item = normalized(field, item)?;
                let items = self.items_mut(field);
                items.push(item);
                if field.form() == FieldForm::Map {
                    keep_last_of_each_name(items);
                }
            }
            Change::Remove(_, index) => {
                let at = self.position(field, *index)?;
                self.items_mut(field).remove(at);
            }
            Change::Mark(_, index, status) => {
                if !field.attributes().contains(&Attribute::Status) {
                    return Err(ChangeError::Attribute(field, Attribute::Status));
                }
                let at = self.position(field, *index)?;
                let attributes = &mut self.items_mut(field)[at].attributes;
                attributes.insert(Attribute::Status, usual_status(field, status));
            }
        }
        if field == Field::Permissions {
            self.grants_nothing = self.items(field).is_empty();
        }
        self.tidy();
        Ok(())
    }

    fn check_model(&self, change: &Change, transitions: &Transitions) -> Result<(), ChangeError> {
        let field = change.field();
        if field.writers() == Writers::People {
            return Err(ChangeError::Forbidden(field));
        }
        match change {
            Change::Set(Field::Phase, items) => match items.first() {
                // An unknown phase is reported first.
                Some(to) if !PHASES.contains(&to.text.as_str()) => Ok(()),
                Some(to) => transitions.check(self.text(Field::Phase), &to.text),
                None => Err(ChangeError::Forbidden(field)),
            },
            Change::Remove(Field::Phase, _) => Err(ChangeError::Forbidden(field)),
            _ => Ok(()),
        }
    }

    fn position(&self, field: Field, index: usize) -> Result<usize, ChangeError> {
        let count = self.items(field).len();
        match index.checked_sub(1).filter(|at| *at < count) {
            Some(at) => Ok(at),
            None => Err(ChangeError::NoItem {
                field,
                count,
                index,
            }),
        }
    }

    /// Returns the changes that make an empty state this one.
    pub fn to_changes(&self) -> Vec<Change> {
        let set = |(field, items): (Field, &[LayerItem])| Change::Set(field, items.to_vec());
        // Emptied permissions differ from permissions that were never set: then those of the configuration hold.
        let no_permissions = Change::Set(Field::Permissions, Vec::new());
        let no_permissions = self.grants_nothing.then_some(no_permissions);
        self.fields().map(set).chain(no_permissions).collect()
    }
}

impl Change {
    /// Returns the field that it changes.
    pub fn field(&self) -> Field {
        match self {
            Change::Set(field, _)
            | Change::Add(field, _)
            | Change::Remove(field, _)
            | Change::Mark(field, ..) => *field,
        }
    }
}

/// Checks that the steps of a plan have known statuses.
fn check_statuses(change: &Change) -> Result<(), ChangeError> {
    let given: Vec<&str> = match change {
        Change::Set(Field::Plan, items) => items.iter().filter_map(status_of).collect(),
        Change::Add(Field::Plan, item) => status_of(item).into_iter().collect(),
        Change::Mark(Field::Plan, _, status) => vec![status],
        _ => return Ok(()),
    };
    match given.into_iter().find(|name| step_status(name).is_none()) {
        None => Ok(()),
        Some(other) => Err(ChangeError::Value {
            field: Field::Plan,
            expected: format!(
                "a list of steps whose status is one of {}",
                STATUSES.join(", ")
            ),
            value: shortened(other),
        }),
    }
}

fn status_of(item: &LayerItem) -> Option<&str> {
    item.attribute(Attribute::Status)
}

/// Returns the usual name of a step's status, or `name` itself if it is unknown or the field is not the plan.
fn usual_status(field: Field, name: &str) -> String {
    let usual = step_status(name).filter(|_| field == Field::Plan);
    usual.unwrap_or(name).to_owned()
}

/// Returns an item with the usual names of environments and statuses, or why the field cannot hold it.
fn normalized(field: Field, item: &LayerItem) -> Result<LayerItem, ChangeError> {
    let wrong = |expected: &str| ChangeError::Value {
        field,
        expected: expected.to_owned(),
        value: shortened(&item.text),
    };
    let mut attributes = item.attributes.keys();
    if let Some(other) = attributes.find(|one| !field.attributes().contains(one)) {
        return Err(ChangeError::Attribute(field, *other));
    }
    let mut item = item.clone();
    match field.form() {
        FieldForm::Phase if !PHASES.contains(&item.text.as_str()) => {
            return Err(wrong(&format!("one of {}", PHASES.join(", "))));
        }
        FieldForm::Environment => {
            if item.text == "production" {
                item.text = "prod".to_owned();
            }
            if !ENVIRONMENTS.contains(&item.text.as_str()) {
                return Err(wrong(&format!("one of {}", ENVIRONMENTS.join(", "))));
            }
        }
        FieldForm::Schema => {
            let json = Json::parse(item.text.as_bytes());
            let is_schema =
                json.is_ok_and(|json| matches!(json.kind(), JsonKind::Object | JsonKind::Bool));
            if !is_schema {
                return Err(wrong("a JSON Schema"));
            }
        }
        FieldForm::Time if item.time.is_none() => {
            return Err(wrong("a time such as 2026-01-31T18:00:00Z"));
        }
        FieldForm::Map if item.attribute(Attribute::Name).is_none_or(str::is_empty) => {
            return Err(wrong("a list of NAME=VALUE"));
        }
        _ => {}
    }
    if let Some(status) = item.attributes.get_mut(&Attribute::Status) {
        *status = usual_status(field, status);
    }
    if item.text.trim().is_empty() && field.form() != FieldForm::Map {
        return Err(wrong("a text that says something"));
    }
    if let Some(relevance) = item.attribute(Attribute::Relevance) {
        let number: Option<f64> = relevance.parse().ok();
        if !number.is_some_and(|number| (0.0..=1.0).contains(&number)) {
            return Err(ChangeError::Value {
                field,
                expected: "a list whose relevance is a number from 0 to 1".to_owned(),
                value: shortened(relevance),
            });
        }
    }
    Ok(item)
}

fn keep_last_of_each_name(items: &mut Vec<LayerItem>) {
    let mut names = HashSet::new();
    let mut is_last: Vec<bool> = items
        .iter()
        .rev()
        .map(|item| names.insert(item.attribute(Attribute::Name).map(str::to_owned)))
        .collect();
    items.retain(|_| is_last.pop().unwrap_or(true));
}

/// Returns the beginning of a value, for an error.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let start: String = text.chars().take(MAX_CHARS).collect();
    let start = start.replace(char::is_control, " ");
    if start.len() < text.len() {
        start + "…"
    } else {
        start
    }
}
