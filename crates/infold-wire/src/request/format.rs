//! The format that a reply is to have.

use crate::tools::schema;
use crate::{Json, Wire};

/// What a request says of the format of its reply.
#[derive(Debug)]
pub(super) enum Format<'a> {
    /// Nothing, or that it is text.
    Text,
    /// Any JSON.
    Json,
    /// JSON of this schema.
    Schema(Schema<'a>),
    /// Something that no other wire has.
    Other,
}

/// A schema for a reply; its members as JSON.
#[derive(Debug)]
pub(super) struct Schema<'a> {
    name: Option<Json<'a>>,
    description: Option<Json<'a>>,
    strict: Option<Json<'a>>,
    schema: Json<'a>,
}

/// The paths that make up a format, for each wire in the order of [`Wire::ALL`].
const PLACES: [&[&str]; 5] = [
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

/// What a schema is called where it has to have a name and was given none.
const NAME: &str = "\"response\"";

const JSON_KIND: &str = "\"application/json\"";

/// Members of a request: paths and values.
pub(super) type Members = Vec<(&'static str, String)>;

impl<'a> Format<'a> {
    /// Says whether a path is part of the format.
    pub fn is_part(from: Wire, path: &str) -> bool {
        PLACES[from as usize].contains(&path)
    }

    /// Reads it; `find` gives what is at a path.
    pub fn read(from: Wire, find: &dyn Fn(&str) -> Option<Json<'a>>) -> Format<'a> {
        let find = |path: &&str| find(path).filter(|json| !json.is_null());
        if from == Wire::Gemini {
            let [kind, schema, old] = [0, 1, 2].map(|at| find(&PLACES[from as usize][at]));
            return match (kind, schema.or(old)) {
                (Some(kind), Some(schema)) if kind.bytes() == JSON_KIND.as_bytes() => {
                    Format::Schema(Schema::bare(schema))
                }
                (Some(kind), None) if kind.bytes() == JSON_KIND.as_bytes() => Format::Json,
                (Some(kind), None) if kind.is("text/plain") => Format::Text,
                (None, None) => Format::Text,
                _ => Format::Other,
            };
        }
        let Some(json) = PLACES[from as usize].iter().find_map(find) else {
            return Format::Text;
        };
        if from == Wire::Ollama {
            return match json.text().as_deref() {
                Some("") => Format::Text,
                Some("json") => Format::Json,
                None if json.get("type").is_some() => Format::Schema(Schema::bare(json)),
                _ => Format::Other,
            };
        }
        let [kind, nested] = json.pick(["type", "json_schema"]);
        let is = |name: &str| kind.is_some_and(|kind| kind.is(name));
        if is("text") {
            return Format::Text;
        }
        if is("json_object") {
            return Format::Json;
        }
        let [name, description, strict, schema] =
            nested
                .unwrap_or(json)
                .pick(["name", "description", "strict", "schema"]);
        match schema.filter(|_| is("json_schema")) {
            Some(schema) => Format::Schema(Schema {
                name,
                description,
                strict,
                schema,
            }),
            None => Format::Other,
        }
    }

    /// Says whether another wire has it.
    pub fn is_carried(&self, to: Wire) -> bool {
        matches!(self, Format::Text) || self.write(to).is_some()
    }

    /// Its members on another wire; nothing if that does not have it.
    pub fn write(&self, to: Wire) -> Option<Members> {
        let schema = match self {
            Format::Schema(schema) => schema,
            Format::Json => return any_json(to),
            Format::Text | Format::Other => return None,
        };
        let plain = || crate::tools::schema(schema.schema).into_owned();
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
            // It refuses objects that may have more properties than those named.
            Wire::Anthropic if !schema.is_closed() => return None,
            Wire::Anthropic => {
                let value = format!(r#"{{"type":"json_schema","schema":{}}}"#, plain());
                vec![("output_config.format", value)]
            }
            Wire::Gemini => vec![
                ("generationConfig.responseMimeType", JSON_KIND.to_owned()),
                ("generationConfig.responseJsonSchema", plain()),
            ],
            Wire::Ollama => vec![("format", plain())],
        })
    }
}

fn any_json(to: Wire) -> Option<Members> {
    let object = r#"{"type":"json_object"}"#.to_owned();
    let member = match to {
        Wire::Chat => ("response_format", object),
        Wire::Responses => ("text.format", object),
        Wire::Anthropic => return None,
        Wire::Gemini => ("generationConfig.responseMimeType", JSON_KIND.to_owned()),
        Wire::Ollama => ("format", "\"json\"".to_owned()),
    };
    Some(vec![member])
}

impl<'a> Schema<'a> {
    fn bare(schema: Json<'a>) -> Schema<'a> {
        Schema {
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

    /// It as OpenAI's wires have it.
    fn members(&self) -> String {
        let raw = |json: Json<'_>| String::from_utf8_lossy(json.bytes()).into_owned();
        let name = self.name.map_or_else(|| NAME.to_owned(), raw);
        let mut members = format!(r#""name":{name}"#);
        for (name, value) in [("description", self.description), ("strict", self.strict)] {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                members.push_str(&format!(r#","{name}":{}"#, raw(value)));
            }
        }
        members.push_str(&format!(r#","schema":{}"#, schema(self.schema)));
        members
    }
}
