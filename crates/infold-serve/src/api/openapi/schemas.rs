//! The schemas of the OpenAPI document.

use serde_json::{Map, Value, json};

/// The members of an object in short: a name, and a kind as below; `!` marks required members.
type SchemaMembers = &'static [(&'static str, &'static str)];

const TASK: SchemaMembers = &[
    ("uuid", "id!"),
    ("status", "text!"),
    ("task_source", "text?"),
    ("owner", "text?"),
    ("repo", "text?"),
    ("task_type", "text?"),
    ("task_id", "text?"),
    ("user", "text?"),
    ("created_at", "time!"),
    ("started_at", "time?"),
    ("completed_at", "time?"),
    ("process_id", "whole?"),
    ("hostname", "text?"),
    ("llm_provider", "text?"),
    ("model", "text?"),
    ("context_length", "whole?"),
    ("llm_call_count", "whole!"),
    ("tool_call_count", "whole!"),
    ("total_tokens", "whole!"),
    ("compression_count", "whole!"),
    ("cached_tokens", "whole!"),
    ("cost", "number!"),
    ("error_message", "text?"),
];

const SUM: SchemaMembers = &[
    ("tasks", "whole!"),
    ("llm_call_count", "whole!"),
    ("tool_call_count", "whole!"),
    ("total_tokens", "whole!"),
    ("compression_count", "whole!"),
    ("cached_tokens", "whole!"),
    ("cost", "number!"),
];

#[rustfmt::skip]
const OBJECTS: &[(&str, SchemaMembers)] = &[
    ("Any", &[]),
    ("Error", &[("error", "Trouble!")]),
    ("Trouble", &[("message", "text!"), ("hint", "text?"), ("kind", "text!")]),
    ("Message", &[("role", "text"), ("content", "any")]),
    ("Task", TASK),
    ("NewTask", &[("task_source", "text?"), ("owner", "text?"), ("repo", "text?"), ("task_type", "text?"), ("task_id", "text?"),
        ("user", "text?"), ("llm_provider", "text?"), ("model", "text?"), ("context_length", "whole?"), ("wire", "text?")]),
    ("Made", &[("uuid", "id!")]),
    ("Layers", &[("document", "text!"), ("tokens", "whole!"), ("limit", "whole!"), ("items", "list!")]),
    ("Parent", &[("task", "id!"), ("seq", "whole!"), ("event", "whole!")]),
    ("Entry", &[("seq", "whole"), ("role", "text"), ("timestamp", "time!"), ("tokens", "whole"), ("round", "whole"),
        ("place", "text"), ("message", "Message"), ("event", "text"), ("after", "whole"), ("what", "text")]),
    ("Recalled", &[("seq", "whole!"), ("role", "text!"), ("timestamp", "time!"), ("shown", "flag!"), ("message", "Message!")]),
    ("Piece", &[("seq", "whole?"), ("role", "text?"), ("tokens", "whole?"), ("note", "text"), ("message", "Message"),
        ("fold", "text"), ("kind", "text"), ("from", "whole"), ("to", "whole"), ("messages", "whole"),
        ("original_tokens", "whole"), ("stand_in", "list")]),
    ("Fold", &[("fold", "text!"), ("kind", "text!"), ("from", "whole!"), ("to", "whole!"), ("original_tokens", "whole!"),
        ("tokens", "whole!"), ("status", "text!"), ("timestamp", "time!")]),
    ("FoldText", &[("fold", "text!"), ("kind", "text!"), ("from", "whole!"), ("to", "whole!"), ("original_tokens", "whole!"),
        ("tokens", "whole!"), ("timestamp", "time!"), ("stand_in", "list!")]),
    ("Found", &[("hits", "list!"), ("words", "list!"), ("complete", "flag!"), ("total_bytes", "whole!"), ("searched_bytes", "whole!"),
        ("stopped", "text?"), ("note", "text?")]),
    ("Frame", &[("frame", "whole!"), ("timestamp", "time!"), ("after", "whole!"), ("wire", "text!"), ("members", "Any!")]),
    ("Pushed", &[("from", "whole?"), ("to", "whole?"), ("count", "whole!")]),
    ("Step", &[("step", "Steps!"), ("from", "whole"), ("to", "place"), ("text", "text"), ("fraction", "number"),
        ("seq", "whole"), ("part", "whole"), ("fold", "place"), ("before", "place"), ("note", "place"),
        ("changes", "list"), ("author", "text")]),
    ("Taken", &[("text", "text!"), ("back", "text!"), ("event", "text?"), ("tokens_before", "whole!"), ("tokens_after", "whole!")]),
    ("Manage", &[("dry_run", "flag"), ("force", "flag"), ("window", "whole?"), ("model", "text?"), ("profile", "text?"),
        ("strategy", "text?"), ("threshold", "number?"), ("max_tokens", "whole?"), ("max_bytes", "whole?")]),
    ("Managed", &[("outcome", "text!"), ("due", "text?"), ("tokens_before", "whole!"), ("tokens_after", "whole!"),
        ("target", "whole!"), ("fits", "flag!"), ("steps", "list!"), ("left", "text")]),
    ("Fork", &[("at", "place?")]),
    ("Forked", &[("uuid", "id!"), ("parent", "id!"), ("seq", "whole!"), ("event", "whole!")]),
    ("Redact", &[("messages", "any"), ("pattern", "text?"), ("dry_run", "flag")]),
    ("Redacted", &[("tasks", "list!"), ("left", "whole!"), ("spanned", "list!"), ("removed", "list!")]),
    ("Fail", &[("error", "text!")]),
    ("Ended", &[("uuid", "id!"), ("status", "text!")]),
    ("Usage", SUM),
];

/// The members of `WholeTask` besides those of `Task`.
const MORE: SchemaMembers = &[
    ("messages", "whole!"),
    ("events", "whole!"),
    ("view_tokens", "whole!"),
    ("bytes", "whole!"),
    ("directory", "text!"),
    ("parent", "Parent?"),
];

/// All schemas by their names.
pub fn all() -> Value {
    let mut all: Map<String, Value> = OBJECTS
        .iter()
        .map(|(name, members)| ((*name).to_owned(), object(members.iter())))
        .collect();
    all.insert("WholeTask".to_owned(), object(TASK.iter().chain(MORE)));
    all.insert(
        "Steps".to_owned(),
        json!({"type": "string", "enum": [
            "condense", "truncate", "mask", "unfold", "rewind", "undo", "redo", "pin", "note", "unpin",
        ]}),
    );
    all["Usage"]["properties"]["models"] = json!({"type": "array", "items": object(SUM.iter())});
    Value::Object(all)
}

/// Says whether an object has members that must be there.
pub fn requires(name: &str) -> bool {
    let found = OBJECTS.iter().find(|(other, _)| *other == name);
    found.is_some_and(|(_, members)| members.iter().any(|(_, kind)| kind.ends_with('!')))
}

fn object<'a>(members: impl Iterator<Item = &'a (&'static str, &'static str)>) -> Value {
    let mut required = Vec::new();
    let mut properties = Map::new();
    for (name, kind) in members {
        let (kind, mark) = match kind.strip_suffix(['!', '?']) {
            Some(short) => (short, &kind[short.len()..]),
            None => (*kind, ""),
        };
        if mark == "!" {
            required.push(*name);
        }
        properties.insert((*name).to_owned(), one(kind, mark == "?"));
    }
    let mut object = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        object["required"] = required.into();
    }
    object
}

fn one(kind: &str, or_null: bool) -> Value {
    let one = match kind {
        "any" => return json!({}),
        "id" => json!({"type": "string", "format": "uuid"}),
        "text" => json!({"type": "string"}),
        "time" => json!({"type": "string", "format": "date-time"}),
        "whole" => json!({"type": "integer", "minimum": 0}),
        "number" => json!({"type": "number"}),
        "flag" => json!({"type": "boolean"}),
        "list" => json!({"type": "array", "items": {"type": "object"}}),
        "place" => json!({"type": ["string", "integer"]}),
        schema => super::schema(schema),
    };
    if or_null {
        json!({"anyOf": [one, {"type": "null"}]})
    } else {
        one
    }
}
