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
    /// How far it is: `pending`, `in_progress`, `completed` …
    Status,
    /// The tool that gave it.
    Tool,
    /// When it was seen, ISO 8601.
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

    /// Its name in files, events and the document.
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
    /// Its attributes.
    pub attributes: BTreeMap<Attribute, String>,
    /// Its priority; items with a higher one are taken first.
    pub priority: i64,
    /// When it was seen, in milliseconds since 1970, if it is an observation.
    pub time: Option<u64>,
}

impl LayerItem {
    /// Returns an item that says `text`, with nothing else known of it.
    pub fn new(text: impl Into<String>) -> LayerItem {
        LayerItem {
            text: text.into(),
            ..LayerItem::default()
        }
    }

    /// Adds an attribute.
    pub fn with(mut self, attribute: Attribute, value: impl Into<String>) -> LayerItem {
        self.attributes.insert(attribute, value.into());
        self
    }

    /// Returns an attribute.
    pub fn attribute(&self, attribute: Attribute) -> Option<&str> {
        self.attributes.get(&attribute).map(String::as_str)
    }
}
