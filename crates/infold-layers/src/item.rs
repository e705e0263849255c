//! One item of a field: a text with its attributes.

use std::collections::BTreeMap;

/// An attribute of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// The name of a variable, a skill or a term.
    Name,
    /// Who said it: `user`, `assistant` or `tool`.
    Role,
    /// Where it comes from.
    Source,
    /// How far the work on it is: `pending`, `in_progress`, `completed` …
    Status,
    /// The tool that returned it.
    Tool,
    /// When it was observed, in ISO 8601: [`LayerItem::time`] as the document shows it.
    Timestamp,
    /// How well it matches the query, from 0 to 1.
    Relevance,
}

impl Attribute {
    /// All attributes.
    pub const ALL: [Attribute; 7] = [
        Attribute::Name,
        Attribute::Role,
        Attribute::Source,
        Attribute::Status,
        Attribute::Tool,
        Attribute::Timestamp,
        Attribute::Relevance,
    ];

    /// Returns its name in files, events and the document.
    pub fn name(self) -> &'static str {
        match self {
            Attribute::Name => "name",
            Attribute::Role => "role",
            Attribute::Source => "source",
            Attribute::Status => "status",
            Attribute::Tool => "tool",
            Attribute::Timestamp => "timestamp",
            Attribute::Relevance => "relevance",
        }
    }

    /// Finds an attribute by its name.
    pub fn find(name: &str) -> Option<Attribute> {
        Attribute::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// One item of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayerItem {
    /// The text of the item.
    pub text: String,
    /// Its attributes, each at most once and in the order of [`Attribute`].
    pub attributes: BTreeMap<Attribute, String>,
    /// Its priority: if not all items fit the budget, those with a higher priority are shown.
    pub priority: i64,
    /// When it was observed, in milliseconds since 1970, if it is an observation or a point in time itself.
    pub time: Option<u64>,
}

impl LayerItem {
    /// Returns an item with this text, without attributes, priority or time.
    pub fn new(text: impl Into<String>) -> LayerItem {
        LayerItem {
            text: text.into(),
            ..LayerItem::default()
        }
    }

    /// Sets an attribute.
    pub fn with(mut self, attribute: Attribute, value: impl Into<String>) -> LayerItem {
        self.attributes.insert(attribute, value.into());
        self
    }

    /// Returns the value of an attribute; none if the item does not have it.
    pub fn attribute(&self, attribute: Attribute) -> Option<&str> {
        self.attributes.get(&attribute).map(String::as_str)
    }
}
