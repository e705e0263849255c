//! Redacts the items of a layered state, wherever a change of it holds them.

use infold_wire::{Json, JsonKind, quote, splice_unordered};

use super::texts::TextRedactor;

/// Returns redacted changes of a state, a JSON array: texts and attributes of items, and statuses.
pub fn redact_changes(changes: String, text: &mut TextRedactor<'_>) -> String {
    let Ok(json) = Json::parse(changes.as_bytes()) else {
        return changes;
    };
    let mut edits = Vec::new();
    for change in json.elements() {
        let [field, items, item, status] = change.pick(["field", "items", "item", "status"]);
        let is_schema = field.is_some_and(|field| field.is("task.output_format"));
        let items = items.into_iter().flat_map(Json::elements).chain(item);
        let values = items.flat_map(|item| item.members().map(|(_, value)| value));
        for value in values.chain(status) {
            if value.kind() != JsonKind::String {
                continue;
            }
            let said = value.text().unwrap_or_default();
            if let Some(new) = text.replaced(&said) {
                let is_broken = is_schema && Json::parse(new.as_bytes()).is_err();
                let new = if is_broken { "{}" } else { &new };
                edits.push((value.range(), quote(new)));
            }
        }
    }
    if edits.is_empty() {
        return changes;
    }
    String::from_utf8(splice_unordered(changes.as_bytes(), edits)).unwrap_or(changes)
}
