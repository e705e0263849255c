//! Changes of a state as JSON, as events keep them.

use std::fmt::Write as _;

use infold_wire::{Json, quote};

use crate::{Attribute, Change, Field, LayerItem};

/// Writes changes as a JSON array.
pub fn encode_changes(changes: &[Change]) -> String {
    let changes: Vec<String> = changes.iter().map(encode_change).collect();
    format!("[{}]", changes.join(","))
}

/// Reads the output of [`encode_changes`]; none for any other JSON.
///
/// An unknown field is left out, so that an older version still shows the rest.
pub fn decode_changes(json: Json<'_>) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    for change in json.elements() {
        let name = change.get("field")?.text()?;
        if let Some(field) = Field::all().find(|field| field.path() == name) {
            changes.push(decode_change(field, change)?);
        }
    }
    Some(changes)
}

fn encode_change(change: &Change) -> String {
    let field = quote(change.field().path());
    match change {
        Change::Set(_, items) => {
            let items: Vec<String> = items.iter().map(encode_item).collect();
            let items = items.join(",");
            format!(r#"{{"op":"set","field":{field},"items":[{items}]}}"#)
        }
        Change::Add(_, item) => {
            let item = encode_item(item);
            format!(r#"{{"op":"add","field":{field},"item":{item}}}"#)
        }
        Change::Remove(_, index) => {
            format!(r#"{{"op":"remove","field":{field},"index":{index}}}"#)
        }
        Change::Mark(_, index, status) => {
            let status = quote(status);
            format!(r#"{{"op":"mark","field":{field},"index":{index},"status":{status}}}"#)
        }
    }
}

fn decode_change(field: Field, json: Json<'_>) -> Option<Change> {
    let index = || number(json.get("index")?)?.try_into().ok();
    let op = json.get("op")?.text()?;
    Some(match &*op {
        "set" => {
            let items = json.get("items")?.elements().map(decode_item);
            Change::Set(field, items.collect::<Option<_>>()?)
        }
        "add" => Change::Add(field, decode_item(json.get("item")?)?),
        "remove" => Change::Remove(field, index()?),
        "mark" => {
            let status = json.get("status")?.text()?.into_owned();
            Change::Mark(field, index()?, status)
        }
        _ => return None,
    })
}

fn encode_item(item: &LayerItem) -> String {
    let mut out = format!(r#"{{"text":{}"#, quote(&item.text));
    for (attribute, value) in &item.attributes {
        let _ = write!(out, r#","{}":{}"#, attribute.name(), quote(value));
    }
    if item.priority != 0 {
        let _ = write!(out, r#","priority":{}"#, item.priority);
    }
    if let Some(time) = item.time {
        let _ = write!(out, r#","time":{time}"#);
    }
    out + "}"
}

fn decode_item(json: Json<'_>) -> Option<LayerItem> {
    let mut item = LayerItem::new(json.get("text")?.text()?);
    for (name, value) in json.members() {
        let name = name.text()?;
        match &*name {
            "priority" => item.priority = number(value)?,
            "time" => item.time = u64::try_from(number(value)?).ok(),
            name => {
                if let Some(attribute) = Attribute::find(name) {
                    let value = value.text()?.into_owned();
                    item.attributes.insert(attribute, value);
                }
            }
        }
    }
    Some(item)
}

fn number(json: Json<'_>) -> Option<i64> {
    std::str::from_utf8(json.bytes()).ok()?.parse().ok()
}
