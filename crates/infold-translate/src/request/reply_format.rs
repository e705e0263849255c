//! Translates the format that a request demands for its reply.

use infold_wire::tools::lowercase_schema;
use infold_wire::{Json, Wire};

/// The format of a reply.
#[derive(Debug)]
pub(super) enum ReplyFormat<'a> {
    /// Text, or unspecified.
    Text,
    /// Any JSON.
    Json,
    /// JSON of this schema.
    Schema(ReplySchema<'a>),
    /// Something that no other wire has.
    Other,
}

/// The schema of a reply.
#[derive(Debug)]
pub(super) struct ReplySchema<'a> {
    name: Option<Json<'a>>,
    description: Option<Json<'a>>,
    strict: Option<Json<'a>>,
    schema: Json<'a>,
}

/// The paths of the format's members, for each wire in the order of [`Wire::ALL`].
const PATHS: [&[&str]; 5] = [
    &["response_format"],
    &["text.format"],
    &["output_config.format", "output_format"],
    &[
        "generationConfig.responseMimeType",
        "generationConfig.responseJsonSchema",
        "generationConfig.responseSchema",
    ],
    &["format"],
];

/// The name of a schema that has none, where one is required.
const DEFAULT_SCHEMA_NAME: &str = "\"response\"";

const JSON_MIME_TYPE: &str = "\"application/json\"";

/// Members of a request, as paths and values.
pub(super) type RequestSettings = Vec<(&'static str, String)>;

impl<'a> ReplyFormat<'a> {
    /// Returns whether a path is part of the format.
    pub fn is_part(from: Wire, path: &str) -> bool {
        PATHS[from as usize].contains(&path)
    }

    /// Reads the format; `find` returns the value at a path.
    pub fn read(from: Wire, find: &dyn Fn(&str) -> Option<Json<'a>>) -> ReplyFormat<'a> {
        let find = |path: &&str| find(path).filter(|json| !json.is_null());
        if from == Wire::Gemini {
            let [kind, schema, old] = [0, 1, 2].map(|at| find(&PATHS[from as usize][at]));
            return match (kind, schema.or(old)) {
                (Some(kind), Some(schema)) if kind.bytes() == JSON_MIME_TYPE.as_bytes() => {
                    ReplyFormat::Schema(ReplySchema::bare(schema))
                }
                (Some(kind), None) if kind.bytes() == JSON_MIME_TYPE.as_bytes() => {
                    ReplyFormat::Json
                }
                (Some(kind), None) if kind.is("text/plain") => ReplyFormat::Text,
                (None, None) => ReplyFormat::Text,
                _ => ReplyFormat::Other,
            };
        }
        let Some(json) = PATHS[from as usize].iter().find_map(find) else {
            return ReplyFormat::Text;
        };
        if from == Wire::Ollama {
            return match json.text().as_deref() {
                Some("") => ReplyFormat::Text,
                Some("json") => ReplyFormat::Json,
                None if json.get("type").is_some() => ReplyFormat::Schema(ReplySchema::bare(json)),
                _ => ReplyFormat::Other,
            };
        }
        let [kind, nested] = json.pick(["type", "json_schema"]);
        let is = |name: &str| kind.is_some_and(|kind| kind.is(name));
        if is("text") {
            return ReplyFormat::Text;
        }
        if is("json_object") {
            return ReplyFormat::Json;
        }
        let [name, description, strict, schema] =
            nested
                .unwrap_or(json)
                .pick(["name", "description", "strict", "schema"]);
        match schema.filter(|_| is("json_schema")) {
            Some(schema) => ReplyFormat::Schema(ReplySchema {
                name,
                description,
                strict,
                schema,
            }),
            None => ReplyFormat::Other,
        }
    }

    /// Returns whether another wire has the format.
    pub fn can_carry(&self, to: Wire) -> bool {
        matches!(self, ReplyFormat::Text) || self.write(to).is_some()
    }

    /// Returns the format's members on another wire; none if that does not have it.
    pub fn write(&self, to: Wire) -> Option<RequestSettings> {
        let schema = match self {
            ReplyFormat::Schema(schema) => schema,
            ReplyFormat::Json => return write_any_json(to),
            ReplyFormat::Text | ReplyFormat::Other => return None,
        };
        let plain = || lowercase_schema(schema.schema).into_owned();
        Some(match to {
            Wire::Chat => {
                let members = schema.members();
                let value = format!(r#"{{"type":"json_schema","json_schema":{{{members}}}}}"#);
                vec![("response_format", value)]
            }
            Wire::Responses => {
                let value = format!(r#"{{"type":"json_schema",{}}}"#, schema.members());
                vec![("text.format", value)]
            }
            // Anthropic refuses objects that allow additional properties.
            Wire::Anthropic if !schema.is_closed() => return None,
            Wire::Anthropic => {
                let value = format!(r#"{{"type":"json_schema","schema":{}}}"#, plain());
                vec![("output_config.format", value)]
            }
            Wire::Gemini => vec![
                (
                    "generationConfig.responseMimeType",
                    JSON_MIME_TYPE.to_owned(),
                ),
                ("generationConfig.responseJsonSchema", plain()),
            ],
            Wire::Ollama => vec![("format", plain())],
        })
    }
}

fn write_any_json(to: Wire) -> Option<RequestSettings> {
    let object = r#"{"type":"json_object"}"#.to_owned();
    let member = match to {
        Wire::Chat => ("response_format", object),
        Wire::Responses => ("text.format", object),
        Wire::Anthropic => return None,
        Wire::Gemini => (
            "generationConfig.responseMimeType",
            JSON_MIME_TYPE.to_owned(),
        ),
        Wire::Ollama => ("format", "\"json\"".to_owned()),
    };
    Some(vec![member])
}

impl<'a> ReplySchema<'a> {
    fn bare(schema: Json<'a>) -> ReplySchema<'a> {
        ReplySchema {
            name: None,
            description: None,
            strict: None,
            schema,
        }
    }

    fn is_closed(&self) -> bool {
        let more = self.schema.get("additionalProperties");
        more.is_some_and(|more| more.bytes() == b"false")
    }

    /// Returns the schema's members as OpenAI's wires have them.
    fn members(&self) -> String {
        let raw = |json: Json<'_>| String::from_utf8_lossy(json.bytes()).into_owned();
        let name = self
            .name
            .map_or_else(|| DEFAULT_SCHEMA_NAME.to_owned(), raw);
        let mut members = format!(r#""name":{name}"#);
        for (name, value) in [("description", self.description), ("strict", self.strict)] {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                members.push_str(&format!(r#","{name}":{}"#, raw(value)));
            }
        }
        members.push_str(&format!(r#","schema":{}"#, lowercase_schema(self.schema)));
        members
    }
}
