//! Lists of words and phrases that are data, in text files beside the modules that use them.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::{Json, JsonKind};

/// A list that is read from its file when it is first used.
pub(crate) type PhraseList = LazyLock<Vec<&'static str>>;

/// Returns the list `name` of `file`.
pub(crate) fn phrases(file: &'static str, name: &str) -> Vec<&'static str> {
    rows(file, name).concat()
}

/// Returns the rows of the list `name` of `file`.
///
/// A line `== name` starts a list and `#` a comment; a row is a JSON string, or an array of strings.
pub(crate) fn rows(file: &'static str, name: &str) -> Vec<Vec<&'static str>> {
    let mut lines = file.lines();
    lines.find(|line| line.strip_prefix("== ") == Some(name));
    let lines = lines.take_while(|line| !line.starts_with("== "));
    let rows: Vec<_> = lines
        .filter(|line| line.starts_with(['"', '[']))
        .map(read_row)
        .collect();
    assert!(!rows.is_empty(), "there is no list `{name}`");
    rows
}

fn read_row(line: &'static str) -> Vec<&'static str> {
    let json = Json::parse(line.as_bytes()).expect("a row is JSON");
    let string = Some(json).filter(|json| json.kind() == JsonKind::String);
    let strings = string.into_iter().chain(json.elements());
    let texts = strings.filter_map(Json::text).map(|text| match text {
        Cow::Borrowed(text) => text,
        // Every list is read once and never freed.
        Cow::Owned(text) => text.leak(),
    });
    texts.collect()
}
