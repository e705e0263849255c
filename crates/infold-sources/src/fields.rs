//! Reads members that both APIs have.

use infold_wire::Json;

/// Returns a member's text; empty if it is null or missing.
pub fn text(json: Json<'_>, key: &str) -> String {
    let text = json.get(key).and_then(Json::text);
    text.unwrap_or_default().into_owned()
}

/// Returns the names of the labels, which are texts, or objects with a name.
pub fn label_names(json: Json<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for label in json.get("labels").into_iter().flat_map(Json::elements) {
        let name = label.get("name").unwrap_or(label).text();
        names.extend(name.map(|name| name.into_owned()));
    }
    names
}
