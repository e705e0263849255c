//! The ids that tags carry.

use std::fmt;
use std::sync::Arc;

use crate::{Json, JsonKind, js, quote};

/// The id of a fold in tags.
///
/// Never empty when read from a message: the agents treat an empty id as none. Two ids are equal if they are in
/// JavaScript, with any escapes. Cloning shares the text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TagId {
    /// The id as JavaScript prints it in JSON: one text for each value.
    json: Arc<str>,
}

impl TagId {
    /// Returns an id with this text.
    pub fn new(text: &str) -> TagId {
        TagId {
            json: quote(text).into(),
        }
    }

    /// Returns the id as a JSON value, quotes included.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Reads an id; none if it is empty, `null` or otherwise false to JavaScript.
    pub fn of(value: Json<'_>) -> Option<TagId> {
        js::is_truthy(value).then(|| TagId {
            json: match value.kind() {
                JsonKind::String => js::quoted(value).into(),
                _ => js::stringify(value).into(),
            },
        })
    }
}

impl fmt::Debug for TagId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Option<TagId> {
        TagId::of(Json::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn an_id_is_the_same_however_it_is_escaped() {
        assert_eq!(id(r#""\u0043\u0031""#), Some(TagId::new("C1")));
        assert_eq!(id(r#""\u00e9\/\n""#), Some(TagId::new("é/\n")));
        assert_eq!(id("1.0"), id("1"));
        assert_ne!(id("1"), id(r#""1""#));
        assert_ne!(id(r#""\ud83d""#), id(r#""\ud83e""#));
    }

    #[test]
    fn an_empty_id_is_none() {
        for text in [r#""""#, "null", "0", "false"] {
            assert_eq!(id(text), None, "{text}");
        }
    }
}
