//! Tool definitions and tool choice, in the form of each wire.

use std::collections::BTreeSet;

use crate::said::{Fields, Raw, list, put, raw};
use crate::{Json, Kind, Wire, quote};

/// Which tool the model may or must call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Any or none, as it sees fit.
    #[default]
    Auto,
    /// None.
    None,
    /// At least one.
    Any,
    /// This one.
    Named(String),
}

/// Why tools cannot be sent on a wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    /// Neither a list nor Gemini's object.
    #[error("tools are a list of definitions, not {found}")]
    NotAList {
        /// How it begins.
        found: String,
    },
    /// No wire defines a tool like this.
    #[error("tool {number} is not a tool definition: {found}")]
    NotATool {
        /// Which one, counted from one.
        number: usize,
        /// How it begins.
        found: String,
    },
    /// Tools that a provider runs itself, or in a form of its own.
    #[error("{to} has no tool like {}: leave it out, or send to its own provider", .names.join(", "))]
    Foreign {
        /// What they are called.
        names: Vec<String>,
        /// The wire that has them not.
        to: Wire,
    },
}

/// Writes tool definitions of any wire as the value of `tools`; native ones byte for byte.
///
/// Gemini's object with `functionDeclarations` may stand for a list.
pub fn tools(list: Json<'_>, to: Wire) -> Result<String, ToolsError> {
    let carried = carried(list, to)?;
    match carried.left_out {
        names if names.is_empty() => Ok(carried.tools),
        names => Err(ToolsError::Foreign { names, to }),
    }
}

/// Tools on another wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The value of `tools`.
    pub tools: String,
    /// The tools that the wire has not.
    pub left_out: Vec<String>,
    /// Members of functions that the wire has not, such as `defer_loading`.
    pub members: BTreeSet<String>,
}

/// As [`tools`], but tools that the wire has not are left out, and named.
pub fn carried(list: Json<'_>, to: Wire) -> Result<Carried, ToolsError> {
    let whole = match list.kind() {
        Kind::Array => list.elements().collect(),
        Kind::Object => vec![list],
        _ => {
            let found = start(list);
            return Err(ToolsError::NotAList { found });
        }
    };
    let mut read = Vec::new();
    for (json, number) in whole.iter().zip(1..) {
        let found = || start(*json);
        let known = definitions(*json, &mut read);
        known.ok_or_else(|| ToolsError::NotATool {
            number,
            found: found(),
        })?;
    }
    if read.iter().all(|tool| tool.is_native(to)) {
        let tools = match list.kind() {
            Kind::Array => raw(list).into_owned(),
            _ => format!("[{}]", raw(list)),
        };
        return Ok(Carried {
            tools,
            left_out: Vec::new(),
            members: BTreeSet::new(),
        });
    }
    let mut names = Vec::new();
    read.retain(|tool| match tool {
        Tool::Own(name, _, wire) if *wire != to => {
            names.push(format!("`{name}`"));
            false
        }
        _ => true,
    });
    names.dedup();
    let mut members = BTreeSet::new();
    for tool in &read {
        if let Tool::Function(function, _) = tool {
            members.extend(function.others.iter().cloned());
            let strict = matches!(to, Wire::Chat | Wire::Responses) || !function.strict;
            members.extend((!strict).then(|| "strict".to_owned()));
        }
    }
    Ok(Carried {
        tools: written(&read, to),
        left_out: names,
        members,
    })
}

/// Writes a choice: the value of `tool_choice`, on Gemini that of `toolConfig`.
///
/// Ollama has no such member, and this is empty: for [`Choice::None`] leave the tools out of
/// the request; a call cannot be demanded there.
pub fn tool_choice(choice: Choice, to: Wire) -> String {
    let named = |name: String| quote(&name);
    match (to, choice) {
        (Wire::Ollama, _) => String::new(),
        (Wire::Chat | Wire::Responses, Choice::Auto) => "\"auto\"".to_owned(),
        (Wire::Chat | Wire::Responses, Choice::None) => "\"none\"".to_owned(),
        (Wire::Chat | Wire::Responses, Choice::Any) => "\"required\"".to_owned(),
        (Wire::Chat, Choice::Named(name)) => {
            let name = named(name);
            format!(r#"{{"type":"function","function":{{"name":{name}}}}}"#)
        }
        (Wire::Responses, Choice::Named(name)) => {
            format!(r#"{{"type":"function","name":{}}}"#, named(name))
        }
        (Wire::Anthropic, Choice::Auto) => r#"{"type":"auto"}"#.to_owned(),
        (Wire::Anthropic, Choice::None) => r#"{"type":"none"}"#.to_owned(),
        (Wire::Anthropic, Choice::Any) => r#"{"type":"any"}"#.to_owned(),
        (Wire::Anthropic, Choice::Named(name)) => {
            format!(r#"{{"type":"tool","name":{}}}"#, named(name))
        }
        (Wire::Gemini, choice) => {
            let mode = match choice {
                Choice::Auto => "\"AUTO\"".to_owned(),
                Choice::None => "\"NONE\"".to_owned(),
                Choice::Any => "\"ANY\"".to_owned(),
                Choice::Named(name) => {
                    format!("\"ANY\",\"allowedFunctionNames\":[{}]", named(name))
                }
            };
            format!(r#"{{"functionCallingConfig":{{"mode":{mode}}}}}"#)
        }
    }
}

/// One tool.
enum Tool<'a> {
    /// A function, and the wires that define it like this.
    Function(Function<'a>, &'static [Wire]),
    /// What only one wire has: its name, its definition, and the wire.
    Own(String, Raw<'a>, Wire),
}

struct Function<'a> {
    name: Raw<'a>,
    description: Option<Raw<'a>>,
    /// A JSON schema.
    parameters: Option<Raw<'a>>,
    strict: bool,
    /// Further members that ask for something, which other wires do not have.
    others: Vec<String>,
}

impl Tool<'_> {
    fn is_native(&self, to: Wire) -> bool {
        match self {
            Tool::Function(_, wires) => wires.contains(&to),
            Tool::Own(_, _, wire) => *wire == to,
        }
    }
}

/// Reads an entry; nothing if it is none.
fn definitions<'a>(whole: Json<'a>, tools: &mut Vec<Tool<'a>>) -> Option<()> {
    let json = Fields::of(whole);
    let declared = json
        .get("functionDeclarations")
        .or_else(|| json.get("function_declarations"));
    if let Some(declared) = declared {
        for json in declared.elements() {
            tools.push(Tool::Function(
                function(&Fields::of(json))?,
                &[Wire::Gemini],
            ));
        }
        let others = whole
            .members()
            .filter(|(name, _)| !name.is("functionDeclarations"));
        for (name, value) in others.filter(|(name, _)| !name.is("function_declarations")) {
            let alone = format!("{{{}:{}}}", raw(name), raw(value));
            let name = name.text()?.into_owned();
            tools.push(Tool::Own(name, alone.into(), Wire::Gemini));
        }
        return Some(());
    }
    let Some(kind) = json.get("type").and_then(Json::text) else {
        let tool = match json.get("input_schema") {
            Some(_) => Tool::Function(function(&json)?, &[Wire::Anthropic]),
            // Gemini's own tools are members of an object.
            None => {
                let (name, _) = whole.members().next()?;
                Tool::Own(name.text()?.into_owned(), raw(whole), Wire::Gemini)
            }
        };
        tools.push(tool);
        return Some(());
    };
    let inner = || json.get("custom")?.get("name");
    let name = json.get("name").or_else(inner).and_then(Json::text);
    let own = |wire| {
        let name = name.as_deref().unwrap_or(&kind).to_owned();
        Tool::Own(name, raw(whole), wire)
    };
    tools.push(match &*kind {
        "function" => match json.get("function") {
            Some(inner) => {
                let inner = function(&Fields::of(inner))?;
                Tool::Function(inner, &[Wire::Chat, Wire::Ollama])
            }
            None => Tool::Function(function(&json)?, &[Wire::Responses]),
        },
        "custom" if json.get("input_schema").is_some() => {
            Tool::Function(function(&json)?, &[Wire::Anthropic])
        }
        "custom" if json.get("custom").is_some() => own(Wire::Chat),
        // Anthropic's own tools have a day in their types, but for these.
        kind if is_dated(kind) => own(Wire::Anthropic),
        "mcp_toolset" | "tool_search_tool_bm25" | "tool_search_tool_regex" => own(Wire::Anthropic),
        _ => own(Wire::Responses),
    });
    Some(())
}

fn is_dated(kind: &str) -> bool {
    let day = kind.rsplit_once('_').map(|(_, day)| day);
    day.is_some_and(|day| day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Members of a function that are carried over, or say nothing of it to another provider.
const KNOWN: [&str; 8] = [
    "type",
    "name",
    "description",
    "parameters",
    "parametersJsonSchema",
    "input_schema",
    "strict",
    "cache_control",
];

fn function<'a>(json: &Fields<'a>) -> Option<Function<'a>> {
    let given = |name: &str| json.get(name).filter(|value| value.kind() == Kind::Object);
    let parameters = given("input_schema").or_else(|| given("parametersJsonSchema"));
    let parameters = parameters.or_else(|| given("parameters"));
    let others = json.members().filter(|(name, value)| {
        let known = KNOWN.iter().any(|known| name.is(known));
        !known && !value.is_null() && value.bytes() != b"false"
    });
    let others = others.filter_map(|(name, _)| Some(name.text()?.into_owned()));
    Some(Function {
        others: others.collect(),
        name: json.string("name")?,
        description: json.string("description"),
        parameters: parameters.map(schema),
        strict: json.get("strict").is_some_and(Json::is_true),
    })
}

/// A schema with its types in small letters; Gemini's are in capitals.
pub(crate) fn schema(json: Json<'_>) -> Raw<'_> {
    let text = raw(json);
    let capital = ["STRING", "OBJECT", "ARRAY", "NUMBER", "INTEGER", "BOOLEAN"];
    if !capital.iter().any(|kind| text.contains(kind)) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    put_schema(json, 0, &mut out);
    out.into()
}

fn put_schema(json: Json<'_>, depth: usize, out: &mut String) {
    match json.kind() {
        // Nobody's schema is so deep.
        _ if depth > 64 => out.push_str(&raw(json)),
        Kind::Object => {
            let members: Vec<_> = json.members().collect();
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                put(out, &[comma, &raw(name), ":"]);
                match name.is("type") && value.kind() == Kind::String {
                    true => out.push_str(&raw(value).to_ascii_lowercase()),
                    false if name.is("default") || name.is("enum") || name.is("example") => {
                        out.push_str(&raw(value));
                    }
                    false => put_schema(value, depth + 1, out),
                }
            }
            out.push('}');
        }
        Kind::Array => {
            let elements: Vec<_> = json.elements().collect();
            list(&elements, out, |json, out| {
                put_schema(*json, depth + 1, out)
            });
        }
        _ => out.push_str(&raw(json)),
    }
}

fn written(tools: &[Tool<'_>], to: Wire) -> String {
    let mut out = String::new();
    let mut own = Vec::new();
    let mut functions = Vec::new();
    for tool in tools {
        match tool {
            Tool::Function(function, _) => functions.push(function),
            Tool::Own(_, json, _) => own.push(json),
        }
    }
    list(&functions, &mut out, |function, out| {
        put_function(function, to, out)
    });
    if to == Wire::Gemini && !functions.is_empty() {
        out = format!("[{{\"functionDeclarations\":{out}}}]");
    }
    for json in own {
        out.pop();
        let comma = if out.len() > 1 { "," } else { "" };
        put(&mut out, &[comma, json, "]"]);
    }
    out
}

fn put_function(function: &Function<'_>, to: Wire, out: &mut String) {
    let (start, schema, end) = match to {
        Wire::Chat | Wire::Ollama => (r#"{"type":"function","function":{"#, "parameters", "}}"),
        Wire::Responses => (r#"{"type":"function","#, "parameters", "}"),
        Wire::Anthropic => ("{", "input_schema", "}"),
        Wire::Gemini => ("{", "parametersJsonSchema", "}"),
    };
    put(out, &[start, "\"name\":", &function.name]);
    if let Some(description) = &function.description {
        put(out, &[",\"description\":", description]);
    }
    let nothing = r#"{"type":"object","properties":{}}"#;
    let parameters = function.parameters.as_deref().unwrap_or(nothing);
    put(out, &[",\"", schema, "\":", parameters]);
    match to {
        // Responses is strict unless told otherwise, and most schemas are not made for that.
        Wire::Responses if !function.strict => out.push_str(",\"strict\":false"),
        Wire::Chat | Wire::Responses if function.strict => out.push_str(",\"strict\":true"),
        _ => {}
    }
    out.push_str(end);
}

/// How a value begins, for a person to find it.
fn start(json: Json<'_>) -> String {
    String::from_utf8_lossy(json.bytes())
        .chars()
        .take(60)
        .collect()
}
