//! The fate of each parameter when a request is translated for a provider of another wire.

use std::collections::BTreeSet;

use infold_translate::{TranslateTarget, TranslatedRequest, translate};
use infold_wire::Wire;
use serde_json::Value;

/// Returns a request with every parameter that its wire documents, each with a distinct value.
fn maximal(wire: Wire) -> &'static str {
    match wire {
        Wire::Chat => include_str!("parameters/chat.json"),
        Wire::Responses => include_str!("parameters/responses.json"),
        Wire::Anthropic => include_str!("parameters/anthropic.json"),
        Wire::Gemini => include_str!("parameters/gemini.json"),
        Wire::Ollama => include_str!("parameters/ollama.json"),
    }
}

/// Members that hold parameters. Those of functions are parameters as well.
const GROUPS: [&str; 8] = [
    "generationConfig",
    "options",
    "text",
    "reasoning",
    "output_config",
    "stream_options",
    "toolConfig",
    "tool_choice",
];

fn translated(from: Wire, body: &str, to: Wire, official: bool) -> (TranslatedRequest, Value) {
    let aim = TranslateTarget {
        official,
        stream: Some(true),
        model: Some("theirs".to_owned()),
        ..TranslateTarget::new(to)
    };
    let told = translate(from, body.as_bytes(), &aim).expect("it can be translated");
    let sent = serde_json::from_slice(&told.body).expect("JSON");
    (told, sent)
}

/// Returns the parameters of a request: the name and the value of each.
fn parameters(wire: Wire) -> Vec<(String, Value)> {
    let body: Value = serde_json::from_str(maximal(wire)).expect("JSON");
    let mut all = Vec::new();
    for (name, value) in body.as_object().expect("an object") {
        match (name.as_str(), value) {
            ("messages" | "input" | "contents", _) => {}
            ("tools", Value::Array(tools)) => {
                for tool in tools {
                    all.extend(of_tool(tool));
                }
            }
            (group, Value::Object(members)) if GROUPS.contains(&group) => {
                let named = |name: &str| match (group, name) {
                    ("generationConfig" | "options", name) => name.to_owned(),
                    ("tool_choice", "type") | (_, "functionCallingConfig") => {
                        "tool_choice".to_owned()
                    }
                    (group, name) => format!("{group}.{name}"),
                };
                all.extend(
                    members
                        .iter()
                        .map(|(name, value)| (named(name), value.clone())),
                );
            }
            (name, value) => all.push((name.to_owned(), value.clone())),
        }
    }
    all
}

fn of_tool(tool: &Value) -> Vec<(String, Value)> {
    let declared = tool
        .get("functionDeclarations")
        .and_then(|list| list.get(0));
    let nested = tool.get("function").or(declared);
    let schema = ["parameters", "input_schema", "parametersJsonSchema"];
    let function = nested.unwrap_or(tool);
    if !schema.iter().any(|name| function.get(name).is_some()) {
        let named = tool
            .pointer("/custom/name")
            .or(tool.get("name"))
            .or(tool.get("type"));
        let name = named.and_then(Value::as_str).map(str::to_owned);
        let first = || tool.as_object().and_then(|it| it.keys().next().cloned());
        let name = name.or_else(first).expect("a tool has a name");
        return vec![(format!("tool `{name}`"), Value::Null)];
    }
    let members = function.as_object().expect("an object").iter();
    // A schema is recognised by its contents, and cache marks are for one provider.
    let members = members.filter(|(name, _)| !["type", "cache_control"].contains(&name.as_str()));
    members
        .map(|(name, value)| (format!("tools.{name}"), value.clone()))
        .collect()
}

/// Returns the possible places of a parameter on another wire, and the spelling of its value there; `None` if it is
/// recognised by its value alone, at any place.
fn spellings(name: &str) -> Option<&'static [(&'static str, &'static str)]> {
    Some(match name {
        "model" => &[("/model", "\"theirs\"")],
        "stream" => &[("/stream", "true")],
        "store" => &[("/store", "true")],
        "service_tier" => &[("/service_tier", "\"flex\"")],
        "verbosity" | "text.verbosity" => {
            &[("/verbosity", "\"high\""), ("/text/verbosity", "\"high\"")]
        }
        "reasoning_effort" | "reasoning.effort" => &[
            ("/reasoning_effort", "\"low\""),
            ("/reasoning/effort", "\"low\""),
        ],
        "parallel_tool_calls" | "tool_choice.disable_parallel_tool_use" => &[
            ("/parallel_tool_calls", "false"),
            ("/tool_choice/disable_parallel_tool_use", "true"),
        ],
        "tool_choice" => &[
            ("/tool_choice", "\"required\""),
            ("/tool_choice/type", "\"any\""),
            ("/toolConfig/functionCallingConfig/mode", "\"ANY\""),
        ],
        "response_format"
        | "text.format"
        | "output_config.format"
        | "responseJsonSchema"
        | "responseMimeType"
        | "format" => &[
            (
                "/response_format/json_schema/schema/required/0",
                "\"verdict_of_schema\"",
            ),
            ("/text/format/schema/required/0", "\"verdict_of_schema\""),
            (
                "/output_config/format/schema/required/0",
                "\"verdict_of_schema\"",
            ),
            (
                "/generationConfig/responseJsonSchema/required/0",
                "\"verdict_of_schema\"",
            ),
            ("/format/required/0", "\"verdict_of_schema\""),
        ],
        "system" | "instructions" | "systemInstruction" => &[("", "be brief")],
        "tools.name" => &[("", "\"ls\"")],
        "tools.description" => &[("", "Lists files")],
        "tools.parameters" | "tools.input_schema" | "tools.parametersJsonSchema" => {
            &[("", "{\"path\":{\"type\":\"string\"}}")]
        }
        "tools.strict" => &[
            ("/tools/0/function/strict", "true"),
            ("/tools/0/strict", "true"),
        ],
        _ => return None,
    })
}

fn is_found(name: &str, value: &Value, to: Wire, sent: &Value) -> bool {
    // Gemini has these in the path, and a stream of another wire always reports usage.
    let elsewhere = to == Wire::Gemini && ["model", "stream"].contains(&name);
    if elsewhere || name == "stream_options.include_usage" {
        return true;
    }
    let text = sent.to_string();
    if let Some(places) = spellings(name) {
        return places.iter().any(|(at, value)| match *at {
            "" => text.contains(value),
            at => sent.pointer(at).map(Value::to_string).as_deref() == Some(value),
        });
    }
    let values: Vec<String> = match value {
        Value::Object(object) => object.values().map(Value::to_string).collect(),
        Value::Array(list) => list.iter().map(Value::to_string).collect(),
        value => vec![value.to_string()],
    };
    // Other values, such as `true`, may occur for any reason.
    let telling =
        |value: &&String| value.len() > 3 && value.contains(|it: char| it.is_ascii_digit());
    let mut telling = values.iter().filter(telling).peekable();
    telling.peek().is_some() && telling.all(|value| text.contains(value.as_str()))
}

#[test]
fn every_parameter_is_carried_over_or_named_as_lost() {
    let mut wrong = Vec::new();
    for from in Wire::ALL {
        for to in Wire::ALL.into_iter().filter(|to| *to != from) {
            for official in [false, true] {
                let (told, sent) = translated(from, maximal(from), to, official);
                let mut named = BTreeSet::new();
                for (name, value) in parameters(from) {
                    let found = is_found(&name, &value, to, &sent);
                    let lost = told.lost.contains(&name);
                    named.insert(name.clone());
                    if found == lost {
                        wrong.push(format!(
                            "{from} to {to}: {name} found: {found}, lost: {lost}"
                        ));
                    }
                }
                let unknown = told.lost.iter().filter(|name| !named.contains(*name));
                wrong.extend(unknown.map(|name| format!("{from} to {to}: lost {name}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_call_at_a_time_is_asked_for_with_any_choice_but_none() {
    for (choice, expected) in [
        (
            r#""auto""#,
            r#"{"disable_parallel_tool_use":true,"type":"auto"}"#,
        ),
        (
            r#"{"type":"function","function":{"name":"none_of_them"}}"#,
            r#"{"disable_parallel_tool_use":true,"name":"none_of_them","type":"tool"}"#,
        ),
        (r#""none""#, r#"{"type":"none"}"#),
    ] {
        let body = format!(
            r#"{{"model":"m","messages":[],"parallel_tool_calls":false,"tool_choice":{choice},"tools":[{{"type":"function","function":{{"name":"none_of_them"}}}}]}}"#
        );
        let (told, sent) = translated(Wire::Chat, &body, Wire::Anthropic, false);
        assert_eq!(sent["tool_choice"].to_string(), expected);
        assert!(told.lost.is_empty(), "{:?}", told.lost);
        let (_, sent) = translated(Wire::Chat, &body, Wire::Responses, false);
        assert_eq!(sent["parallel_tool_calls"], false);
    }
}

#[test]
fn a_format_that_a_wire_does_not_have_is_named() {
    let json = r#"{"model":"m","messages":[],"response_format":{"type":"json_object"}}"#;
    let lost = |from, body: &str, to| {
        let (told, _) = translated(from, body, to, false);
        told.lost.into_iter().collect::<Vec<_>>().join(", ")
    };
    assert_eq!(lost(Wire::Chat, json, Wire::Anthropic), "response_format");
    for to in [Wire::Responses, Wire::Gemini, Wire::Ollama] {
        assert_eq!(lost(Wire::Chat, json, to), "", "{to}");
    }
    // Anthropic takes no schema of an object that may have further properties.
    let open = r#"{"model":"m","messages":[],"format":{"type":"object","properties":{}}}"#;
    assert_eq!(lost(Wire::Ollama, open, Wire::Anthropic), "format");
    // Text is the output format of every wire.
    let text = r#"{"contents":[],"generationConfig":{"responseMimeType":"text/plain"}}"#;
    assert_eq!(lost(Wire::Gemini, text, Wire::Anthropic), "");
    let enumeration = r#"{"contents":[],"generationConfig":{"responseMimeType":"text/x.enum","responseSchema":{"type":"STRING"}}}"#;
    let both = "responseMimeType, responseSchema";
    assert_eq!(lost(Wire::Gemini, enumeration, Wire::Chat), both);
}
