//! Tool definitions and tool choice, in the form of each wire.

use std::collections::BTreeSet;

use crate::neutral::{ObjectMembers, RawJson, push_all, push_list, raw_json};
use crate::{Json, JsonKind, Wire, quote};

/// The choice of tools that the model may or must call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool.
    None,
    /// At least one tool.
    Any,
    /// This tool.
    Named(String),
}

/// The name of the tool in [`PLACEHOLDER_TOOLS`].
pub const PLACEHOLDER_TOOL_NAME: &str = "no_tool";

/// The value of `tools` if no tool is left: Anthropic refuses a conversation with calls but without tools.
pub const PLACEHOLDER_TOOLS: &str = r#"[{"name":"no_tool","description":"No tool may be called now.","input_schema":{"type":"object","properties":{}}}]"#;

/// The reason that tools cannot be sent on a wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    /// Neither a list nor Gemini's object.
    #[error("tools are a list of definitions, not {found}")]
    NotAList {
        /// The start of the value.
        found: String,
    },
    /// No wire defines a tool of this form.
    #[error("tool {number} is not a tool definition: {found}")]
    NotATool {
        /// The entry's position, counted from one.
        number: usize,
        /// The start of the value.
        found: String,
    },
    /// Tools that a provider runs itself, or in its own form.
    #[error("{to} has no tool like {}: leave it out, or send to its own provider", .names.join(", "))]
    Foreign {
        /// The names of the tools.
        names: Vec<String>,
        /// The wire that does not have them.
        to: Wire,
    },
}

/// Converts tool definitions of any wire to the value of `tools`; native ones stay byte for byte.
///
/// The list may also be Gemini's object with `functionDeclarations`.
pub fn convert_tools(list: Json<'_>, to: Wire) -> Result<String, ToolsError> {
    let converted = convert_known_tools(list, to)?;
    match converted.left_out {
        names if names.is_empty() => Ok(converted.tools),
        names => Err(ToolsError::Foreign { names, to }),
    }
}

/// Tools in the form of another wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConvertedTools {
    /// The value of `tools`.
    pub tools: String,
    /// The tools that the wire does not have.
    pub left_out: Vec<String>,
    /// Members of functions that the wire does not have, such as `defer_loading`.
    pub members: BTreeSet<String>,
}

/// Converts like [`convert_tools`], but leaves out the tools that the wire does not have.
pub fn convert_known_tools(list: Json<'_>, to: Wire) -> Result<ConvertedTools, ToolsError> {
    let is_list = list.kind() == JsonKind::Array;
    if !is_list && list.kind() != JsonKind::Object {
        let found = start_of(list);
        return Err(ToolsError::NotAList { found });
    }
    let single = (!is_list).then_some(list);
    let mut read = Vec::new();
    for (json, number) in list.elements().chain(single).zip(1..) {
        read_definitions(json, &mut read).ok_or_else(|| ToolsError::NotATool {
            number,
            found: start_of(json),
        })?;
    }
    if read.iter().all(|tool| tool.is_native(to)) {
        let tools = raw_json(list);
        return Ok(ConvertedTools {
            tools: if is_list {
                tools.into_owned()
            } else {
                format!("[{tools}]")
            },
            ..ConvertedTools::default()
        });
    }
    let mut names = Vec::new();
    read.retain(|tool| match tool {
        ToolDefinition::Own(name, _, wire) if *wire != to => {
            names.push(format!("`{name}`"));
            false
        }
        _ => true,
    });
    names.dedup();
    let mut members = BTreeSet::new();
    for tool in &read {
        if let ToolDefinition::Function(function, _) = tool {
            members.extend(function.others.iter().cloned());
            let strict = matches!(to, Wire::Chat | Wire::Responses) || !function.strict;
            members.extend((!strict).then(|| "strict".to_owned()));
        }
    }
    Ok(ConvertedTools {
        tools: write_tools(&read, to),
        left_out: names,
        members,
    })
}

/// Writes a choice: the value of `tool_choice`, on Gemini that of `toolConfig`.
///
/// On Ollama's wire, which has no such member, it is empty: for [`ToolChoice::None`] leave the tools out of the
/// request; a call cannot be required there.
pub fn write_tool_choice(choice: ToolChoice, to: Wire) -> String {
    let (auto, none, any) = match to {
        Wire::Ollama => return String::new(),
        Wire::Chat | Wire::Responses => ("\"auto\"", "\"none\"", "\"required\""),
        Wire::Anthropic => (
            r#"{"type":"auto"}"#,
            r#"{"type":"none"}"#,
            r#"{"type":"any"}"#,
        ),
        Wire::Gemini => ("\"AUTO\"", "\"NONE\"", "\"ANY\""),
    };
    let written = match choice {
        ToolChoice::Auto => auto.to_owned(),
        ToolChoice::None => none.to_owned(),
        ToolChoice::Any => any.to_owned(),
        ToolChoice::Named(name) => {
            let name = quote(&name);
            match to {
                Wire::Responses => format!(r#"{{"type":"function","name":{name}}}"#),
                Wire::Anthropic => format!(r#"{{"type":"tool","name":{name}}}"#),
                Wire::Gemini => format!(r#""ANY","allowedFunctionNames":[{name}]"#),
                _ => format!(r#"{{"type":"function","function":{{"name":{name}}}}}"#),
            }
        }
    };
    if to == Wire::Gemini {
        return format!(r#"{{"functionCallingConfig":{{"mode":{written}}}}}"#);
    }
    written
}

enum ToolDefinition<'a> {
    /// A function, and the wires that define it like this.
    Function(FunctionDefinition<'a>, &'static [Wire]),
    /// A tool that only one wire has: its name, its definition, and the wire.
    Own(String, RawJson<'a>, Wire),
}

struct FunctionDefinition<'a> {
    name: RawJson<'a>,
    description: Option<RawJson<'a>>,
    /// A JSON schema.
    parameters: Option<RawJson<'a>>,
    strict: bool,
    /// Further members that other wires do not have.
    others: Vec<String>,
}

impl ToolDefinition<'_> {
    fn is_native(&self, to: Wire) -> bool {
        match self {
            ToolDefinition::Function(_, wires) => wires.contains(&to),
            ToolDefinition::Own(_, _, wire) => *wire == to,
        }
    }
}

/// Reads an entry of a list of tools; none if it does not define any.
fn read_definitions<'a>(whole: Json<'a>, tools: &mut Vec<ToolDefinition<'a>>) -> Option<()> {
    use ToolDefinition::{Function, Own};
    let json = ObjectMembers::of(whole);
    let declared = json.get("functionDeclarations");
    if let Some(declared) = declared.or_else(|| json.get("function_declarations")) {
        for json in declared.elements() {
            let function = read_function(&ObjectMembers::of(json))?;
            tools.push(Function(function, &[Wire::Gemini]));
        }
        for (name, value) in whole.members() {
            if name.is("functionDeclarations") || name.is("function_declarations") {
                continue;
            }
            let alone = format!("{{{}:{}}}", raw_json(name), raw_json(value));
            tools.push(Own(name.text()?.into_owned(), alone.into(), Wire::Gemini));
        }
        return Some(());
    }
    let Some(kind) = json.get("type").and_then(Json::text) else {
        tools.push(if json.get("input_schema").is_some() {
            Function(read_function(&json)?, &[Wire::Anthropic])
        } else {
            // Gemini's own tools are members of an object.
            let (name, _) = whole.members().next()?;
            Own(name.text()?.into_owned(), raw_json(whole), Wire::Gemini)
        });
        return Some(());
    };
    let inner = || json.get("custom")?.get("name");
    let name = json.get("name").or_else(inner).and_then(Json::text);
    let own = |wire| {
        let name = name.as_deref().unwrap_or(&kind).to_owned();
        Own(name, raw_json(whole), wire)
    };
    tools.push(match &*kind {
        "function" => match json.get("function") {
            Some(inner) => {
                let inner = read_function(&ObjectMembers::of(inner))?;
                Function(inner, &[Wire::Chat, Wire::Ollama])
            }
            None => Function(read_function(&json)?, &[Wire::Responses]),
        },
        "custom" if json.get("input_schema").is_some() => {
            Function(read_function(&json)?, &[Wire::Anthropic])
        }
        "custom" if json.get("custom").is_some() => own(Wire::Chat),
        // The types of Anthropic's own tools end in a date, except for these.
        kind if ends_in_date(kind) => own(Wire::Anthropic),
        "mcp_toolset" | "tool_search_tool_bm25" | "tool_search_tool_regex" => own(Wire::Anthropic),
        _ => own(Wire::Responses),
    });
    Some(())
}

fn ends_in_date(kind: &str) -> bool {
    let date = kind.rsplit_once('_').map(|(_, date)| date);
    date.is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Members of a function that are converted, or mean nothing to another provider.
const CONVERTED_MEMBERS: &str = "type name description parameters parametersJsonSchema \
    parameters_json_schema input_schema strict cache_control";

fn read_function<'a>(json: &ObjectMembers<'a>) -> Option<FunctionDefinition<'a>> {
    let schemas = [
        "input_schema",
        "parametersJsonSchema",
        "parameters_json_schema",
        "parameters",
    ];
    let mut schemas = schemas.into_iter().filter_map(|name| json.get(name));
    let others = json.members().filter(|(name, value)| {
        let mut converted = CONVERTED_MEMBERS.split_ascii_whitespace();
        !converted.any(|converted| name.is(converted)) && !value.is_null() && !value.is_false()
    });
    let others = others.filter_map(|(name, _)| Some(name.text()?.into_owned()));
    Some(FunctionDefinition {
        others: others.collect(),
        name: json.string("name")?,
        description: json.string("description"),
        parameters: schemas
            .find(|schema| schema.kind() == JsonKind::Object)
            .map(lowercase_schema),
        strict: json.get("strict").is_some_and(Json::is_true),
    })
}

/// Returns a schema with its types in lower case; Gemini's are in upper case.
pub fn lowercase_schema(json: Json<'_>) -> RawJson<'_> {
    let text = raw_json(json);
    let capital = ["STRING", "OBJECT", "ARRAY", "NUMBER", "INTEGER", "BOOLEAN"];
    if !capital.iter().any(|kind| text.contains(kind)) {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    write_schema(json, 0, &mut out);
    out.into()
}

const MAX_SCHEMA_DEPTH: usize = 64;

fn write_schema(json: Json<'_>, depth: usize, out: &mut String) {
    match json.kind() {
        _ if depth > MAX_SCHEMA_DEPTH => out.push_str(&raw_json(json)),
        JsonKind::Object => {
            let members: Vec<_> = json.members().collect();
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                push_all(out, &[comma, &raw_json(name), ":"]);
                if name.is("type") && value.kind() == JsonKind::String {
                    out.push_str(&raw_json(value).to_ascii_lowercase());
                } else if name.is("default") || name.is("enum") || name.is("example") {
                    out.push_str(&raw_json(value));
                } else {
                    write_schema(value, depth + 1, out);
                }
            }
            out.push('}');
        }
        JsonKind::Array => {
            let elements: Vec<_> = json.elements().collect();
            push_list(&elements, out, |json, out| {
                write_schema(*json, depth + 1, out)
            });
        }
        _ => out.push_str(&raw_json(json)),
    }
}

fn write_tools(tools: &[ToolDefinition<'_>], to: Wire) -> String {
    let mut out = String::new();
    let mut own = Vec::new();
    let mut functions = Vec::new();
    for tool in tools {
        match tool {
            ToolDefinition::Function(function, _) => functions.push(function),
            ToolDefinition::Own(_, json, _) => own.push(json),
        }
    }
    push_list(&functions, &mut out, |function, out| {
        write_function(function, to, out)
    });
    if to == Wire::Gemini && !functions.is_empty() {
        out = format!("[{{\"functionDeclarations\":{out}}}]");
    }
    for json in own {
        out.pop();
        let comma = if out.len() > 1 { "," } else { "" };
        push_all(&mut out, &[comma, json, "]"]);
    }
    out
}

fn write_function(function: &FunctionDefinition<'_>, to: Wire, out: &mut String) {
    let (start, schema, end) = match to {
        Wire::Chat | Wire::Ollama => (r#"{"type":"function","function":{"#, "parameters", "}}"),
        Wire::Responses => (r#"{"type":"function","#, "parameters", "}"),
        Wire::Anthropic => ("{", "input_schema", "}"),
        Wire::Gemini => ("{", "parametersJsonSchema", "}"),
    };
    push_all(out, &[start, "\"name\":", &function.name]);
    if let Some(description) = &function.description {
        push_all(out, &[",\"description\":", description]);
    }
    let nothing = r#"{"type":"object","properties":{}}"#;
    let parameters = function.parameters.as_deref().unwrap_or(nothing);
    push_all(out, &[",\"", schema, "\":", parameters]);
    match to {
        // Responses is strict by default, and most schemas do not conform to that.
        Wire::Responses if !function.strict => out.push_str(",\"strict\":false"),
        Wire::Chat | Wire::Responses if function.strict => out.push_str(",\"strict\":true"),
        _ => {}
    }
    out.push_str(end);
}

/// Returns the start of a value, for an error message.
fn start_of(json: Json<'_>) -> String {
    raw_json(json).chars().take(60).collect()
}
