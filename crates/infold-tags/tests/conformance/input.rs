//! A case's input, read into our types.

use std::borrow::Cow;

use infold_tags::{Tagged, TaggedError, UiEntry};
use infold_wire::Json;

/// The reason that an input does not fit our types.
pub type Refused = String;

#[derive(Clone, Copy)]
pub struct Input<'a>(Json<'a>);

impl<'a> Input<'a> {
    pub fn new(json: Json<'a>) -> Input<'a> {
        Input(json)
    }

    pub fn get(self, name: &str) -> Option<Json<'a>> {
        self.0.get(name)
    }

    pub fn json(self, name: &str) -> Result<Json<'a>, Refused> {
        self.get(name).ok_or_else(|| format!("no `{name}`"))
    }

    pub fn number(self, name: &str) -> Result<f64, Refused> {
        let number = self.json(name)?.number();
        number.ok_or_else(|| format!("`{name}` is not a number"))
    }

    pub fn messages(self, name: &str) -> Result<Vec<Tagged>, Refused> {
        let read = self.json(name)?.elements().map(Tagged::of);
        collected(read)
    }

    pub fn entries(self, name: &str) -> Result<Vec<UiEntry>, Refused> {
        let read = self.json(name)?.elements().map(UiEntry::of);
        collected(read)
    }

    /// Says whether this is `true`.
    pub fn flag(self, name: &str) -> bool {
        self.get(name).is_some_and(Json::is_true)
    }

    /// Returns a text, if there is one.
    pub fn text(self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(Json::text)
    }

    /// Says whether `options` has this set to `true`.
    pub fn option(self, name: &str) -> bool {
        let options = self.0.get("options");
        options
            .and_then(|options| options.get(name))
            .is_some_and(Json::is_true)
    }
}

fn collected<T>(read: impl Iterator<Item = Result<T, TaggedError>>) -> Result<Vec<T>, Refused> {
    read.collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}
