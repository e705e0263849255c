//! The layered state itself: the items of each field.

use std::collections::BTreeMap;

use crate::{Field, LayerItem};

/// The phases of a task.
pub const PHASES: [&str; 4] = ["planning", "executing", "reflecting", "verifying"];
/// The environments of a task.
pub const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "prod"];

/// The layered state of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerState {
    /// Fields with items; never an empty list.
    fields: BTreeMap<Field, Vec<LayerItem>>,
    /// Whether permissions were set and none is left.
    pub(crate) grants_nothing: bool,
}

impl LayerState {
    /// Returns the items of a field, in order; a text is one item.
    pub fn items(&self, field: Field) -> &[LayerItem] {
        self.fields.get(&field).map_or(&[], Vec::as_slice)
    }

    /// Returns the text of a field; of a list, that of its first item.
    pub fn text(&self, field: Field) -> Option<&str> {
        self.items(field).first().map(|item| item.text.as_str())
    }

    /// Says whether the permissions were set to an empty list, which overrides those of the configuration.
    pub fn grants_nothing(&self) -> bool {
        self.grants_nothing
    }

    /// Says whether no field has items.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the fields with items, in the order of the document.
    pub fn fields(&self) -> impl Iterator<Item = (Field, &[LayerItem])> {
        self.fields
            .iter()
            .map(|(field, items)| (*field, items.as_slice()))
    }

    /// Replaces the items of a field, without any check.
    pub fn fill(&mut self, field: Field, items: Vec<LayerItem>) {
        if items.is_empty() {
            self.fields.remove(&field);
        } else {
            self.fields.insert(field, items);
        }
    }

    /// Adds items to a field, without any check.
    pub fn extend(&mut self, field: Field, items: impl IntoIterator<Item = LayerItem>) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_some() {
            self.fields.entry(field).or_default().extend(items);
        }
    }

    pub(crate) fn items_mut(&mut self, field: Field) -> &mut Vec<LayerItem> {
        self.fields.entry(field).or_default()
    }

    /// Drops fields without items.
    pub(crate) fn tidy(&mut self) {
        self.fields.retain(|_, items| !items.is_empty());
    }
}
