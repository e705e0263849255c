//! Changes of a state as the REST API and tools give them; the state and its document as they get them.

use infold_layers::{
    Attribute, BuiltDocument, Change, Decision, Field, FieldForm, LayerItem, LayerState, Verdict,
};
use infold_store::parse_iso;
use serde_json::{Map, Value, json};

use super::nearest_field;
use crate::config::nearest;

/// Reads changes, such as `[{"op":"add","field":"facts","item":"…"}]`; fails with a description of the error.
pub fn read_changes(changes: Option<&Value>) -> Result<Vec<Change>, String> {
    let list = changes.and_then(Value::as_array);
    let list = list.filter(|list| !list.is_empty());
    let list = list.ok_or(r#""changes" is a list of objects, each with "op" and "field""#)?;
    list.iter().map(read_change).collect()
}

/// The operations, and the members that each takes beside `op` and `field`.
const OPERATIONS: [(&str, &[&str]); 4] = [
    ("set", &["items"]),
    ("add", &["item"]),
    ("remove", &["index"]),
    ("mark", &["index", "status"]),
];

/// Returns the operation of a change. Refuses unknown members: a misspelt one must not be taken for a missing one.
fn operation(change: &Value) -> Result<&'static str, String> {
    let members = change.as_object();
    let members = members.ok_or(r#"a change is an object with "op" and "field""#)?;
    let operations = OPERATIONS.map(|(name, _)| name);
    let operation = change.get("op").and_then(Value::as_str);
    let takes = operation.and_then(|name| OPERATIONS.iter().find(|(one, _)| *one == name));
    let Some((name, takes)) = takes else {
        let near = operation.and_then(|name| nearest(name, operations));
        let known = format!("\"op\" is one of {}", operations.join(", "));
        return Err(known + &did_you_mean(near));
    };
    let known = || ["op", "field"].into_iter().chain(takes.iter().copied());
    match members.keys().find(|key| known().all(|one| one != *key)) {
        None => Ok(name),
        Some(other) => {
            let takes: Vec<&str> = known().skip(1).collect();
            let takes = takes.join(", ");
            let near = did_you_mean(nearest(other, known()));
            let other = infold_wire::shorten(other, 60);
            Err(format!("{name} takes {takes}, not \"{other}\"{near}"))
        }
    }
}

fn did_you_mean(near: Option<String>) -> String {
    near.map_or(String::new(), |near| format!("; did you mean \"{near}\"?"))
}

fn read_change(change: &Value) -> Result<Change, String> {
    let operation = operation(change)?;
    let text = |name: &str| change.get(name).and_then(Value::as_str);
    let name = text("field").ok_or(r#"a change without a "field""#)?;
    let field = Field::find(name).ok_or_else(|| unknown_field(name))?;
    let index = || {
        let index = change.get("index").and_then(Value::as_u64);
        let index = index.and_then(|index| usize::try_from(index).ok());
        index.ok_or(r#""index" is the number of an item, counted from 1"#)
    };
    Ok(match operation {
        "set" => {
            let items = match change.get("items") {
                Some(Value::Array(items)) => {
                    items.iter().map(|item| read_item(field, item)).collect()
                }
                Some(item) => read_item(field, item).map(|item| vec![item]),
                None => Err(r#"set takes "items""#.to_owned()),
            };
            Change::Set(field, items?)
        }
        "add" => {
            let item = change.get("item").ok_or(r#"add takes "item""#)?;
            Change::Add(field, read_item(field, item)?)
        }
        "remove" => Change::Remove(field, index()?),
        _ => {
            let status = text("status").unwrap_or("completed");
            Change::Mark(field, index()?, status.to_owned())
        }
    })
}

fn unknown_field(name: &str) -> String {
    match nearest_field(name) {
        Some(field) => format!("no field `{name}`; did you mean `{}`?", field.name()),
        None => format!("no field `{name}`"),
    }
}

/// Reads an item: a text, or an object with `text` and its attributes.
fn read_item(field: Field, item: &Value) -> Result<LayerItem, String> {
    let mut read = match item {
        Value::String(text) => LayerItem::new(text),
        Value::Object(members)
            if field.form() != FieldForm::Schema || members.contains_key("text") =>
        {
            read_members(members)?
        }
        Value::Null => return Err("an item is a text or an object".to_owned()),
        other => LayerItem::new(other.to_string()),
    };
    if field.form() == FieldForm::Time {
        read.time = parse_iso(&read.text);
    }
    Ok(read)
}

fn read_members(members: &Map<String, Value>) -> Result<LayerItem, String> {
    let mut item = LayerItem::default();
    for (name, value) in members {
        let text = || match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match (name.as_str(), Attribute::find(name)) {
            ("text", _) => item.text = text(),
            ("priority", _) => {
                let priority = value.as_i64();
                item.priority = priority.ok_or(r#""priority" is a whole number"#)?;
            }
            (_, Some(attribute)) => {
                if attribute == Attribute::Timestamp {
                    item.time = parse_iso(&text());
                }
                item.attributes.insert(attribute, text());
            }
            (name, None) => {
                let known = Attribute::ALL.map(Attribute::name).into_iter();
                let known = known.chain(["text", "priority"]);
                let near = did_you_mean(nearest(name, known));
                let name = infold_wire::shorten(name, 60);
                return Err(format!("an item has no \"{name}\"{near}"));
            }
        }
    }
    Ok(item)
}

/// Returns a state, or one field of it, for scripts.
pub fn state_json(state: &LayerState, field: Option<Field>) -> Value {
    let fields = state
        .fields()
        .filter(|(one, _)| field.is_none_or(|field| field == *one));
    let fields = fields.map(|(field, items)| {
        let items: Vec<Value> = items.iter().map(item_json).collect();
        (field.path().to_owned(), items.into())
    });
    Value::Object(fields.collect())
}

/// Returns an item with its attributes on one line.
pub fn item_line(item: &LayerItem) -> String {
    let attributes = item.attributes.iter();
    let mut details: Vec<String> = attributes
        .map(|(attribute, value)| format!("{}: {value}", attribute.name()))
        .collect();
    if item.priority != 0 {
        details.push(format!("priority: {}", item.priority));
    }
    let text = item.text.replace('\n', " ");
    match &*details.join(", ") {
        "" => text,
        details => format!("{text} [{details}]"),
    }
}

fn item_json(item: &LayerItem) -> Value {
    let mut object = Map::new();
    object.insert("text".to_owned(), item.text.as_str().into());
    for (attribute, value) in &item.attributes {
        object.insert(attribute.name().to_owned(), value.as_str().into());
    }
    if item.priority != 0 {
        object.insert("priority".to_owned(), item.priority.into());
    }
    object.into()
}

/// Returns a document and the result for each item, for scripts.
pub fn built_json(built: &BuiltDocument) -> Value {
    let items: Vec<Value> = built.decisions.iter().map(decision_json).collect();
    json!({
        "document": built.document(),
        "tokens": built.tokens,
        "limit": built.limit,
        "items": items,
    })
}

fn decision_json(decision: &Decision) -> Value {
    let verdict = match decision.verdict {
        Verdict::In => "in",
        Verdict::Condensed { .. } => "condensed",
        Verdict::NoRoom { .. } => "no_room",
        Verdict::Irrelevant => "irrelevant",
    };
    json!({
        "field": decision.field.path(),
        "index": decision.index,
        "tokens": decision.tokens,
        "relevance": decision.relevance,
        "verdict": verdict,
    })
}
