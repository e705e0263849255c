//! Tool definitions and choices on every wire.

use infold_wire::tools::{ToolChoice, ToolsError, convert_tools, write_tool_choice};
use infold_wire::{Json, Wire};

const CHAT: &str = r#"[{"type":"function","function":{"name":"ls","description":"lists","parameters":{"type":"object","properties":{"type":{"type":"string","enum":["STRING"]}}},"strict":true}}]"#;
const RESPONSES: &str = r#"[{"type":"function","name":"ls","description":"lists","parameters":{"type":"object","properties":{"type":{"type":"string","enum":["STRING"]}}},"strict":true}]"#;
const ANTHROPIC: &str = r#"[{"name":"ls","description":"lists","input_schema":{"type":"object","properties":{"type":{"type":"string","enum":["STRING"]}}}}]"#;
const GEMINI: &str = r#"[{"functionDeclarations":[{"name":"ls","description":"lists","parametersJsonSchema":{"type":"object","properties":{"type":{"type":"string","enum":["STRING"]}}}}]}]"#;

fn to(list: &str, wire: Wire) -> Result<String, ToolsError> {
    convert_tools(Json::parse(list.as_bytes()).expect("JSON"), wire)
}

/// The definitions of a wire; only two of them can be strict.
fn like(wire: Wire, strict: bool) -> String {
    let (list, said) = match wire {
        Wire::Chat | Wire::Ollama => (
            CHAT,
            if strict && wire == Wire::Chat {
                ",\"strict\":true"
            } else {
                ""
            },
        ),
        Wire::Responses => (
            RESPONSES,
            if strict {
                ",\"strict\":true"
            } else {
                ",\"strict\":false"
            },
        ),
        Wire::Anthropic => (ANTHROPIC, ""),
        Wire::Gemini => (GEMINI, ""),
    };
    list.replace(",\"strict\":true", said)
}

#[test]
fn functions_are_defined_alike_on_every_wire() {
    for (from, list) in [
        (Wire::Chat, CHAT),
        (Wire::Responses, RESPONSES),
        (Wire::Anthropic, ANTHROPIC),
        (Wire::Gemini, GEMINI),
    ] {
        for wire in Wire::ALL {
            let native = from == wire || from == Wire::Chat && wire == Wire::Ollama;
            let strict = matches!(from, Wire::Chat | Wire::Responses);
            let expected = if native {
                list.to_owned()
            } else {
                like(wire, strict)
            };
            assert_eq!(to(list, wire).unwrap(), expected, "{from} to {wire}");
        }
    }
}

#[test]
fn native_lists_stay_byte_for_byte() {
    let spaced = r#"[ {"name":"ls", "input_schema": {"type":"object"}, "cache_control":{"type":"ephemeral"}}, {"type":"web_search_20250305","name":"web_search"} ]"#;
    assert_eq!(to(spaced, Wire::Anthropic).unwrap(), spaced);
    let own = r#"[{"type":"web_search"},{"type":"custom","name":"patch"}]"#;
    assert_eq!(to(own, Wire::Responses).unwrap(), own);
    assert_eq!(to("[]", Wire::Chat).unwrap(), "[]");
}

#[test]
fn geminis_object_and_capitals_are_understood() {
    let object = r#"{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"INTEGER"}}}}},{"name":"g"}]}"#;
    assert_eq!(to(object, Wire::Gemini).unwrap(), format!("[{object}]"));
    assert_eq!(
        to(object, Wire::Anthropic).unwrap(),
        r#"[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}},{"name":"g","input_schema":{"type":"object","properties":{}}}]"#
    );
}

#[test]
fn tools_of_one_provider_are_named() {
    let why = |list: &str, wire| to(list, wire).unwrap_err().to_string();
    assert_eq!(
        why(
            r#"[{"type":"web_search"},{"type":"custom","name":"patch"}]"#,
            Wire::Anthropic
        ),
        "anthropic has no tool like `web_search`, `patch`: leave it out, or send to its own provider"
    );
    assert!(why(r#"[{"type":"bash_20250124","name":"bash"}]"#, Wire::Chat).contains("`bash`"));
    assert!(
        why(
            r#"[{"functionDeclarations":[],"googleSearch":{}}]"#,
            Wire::Ollama
        )
        .contains("`googleSearch`")
    );
    assert_eq!(
        why("7", Wire::Chat),
        "tools are a list of definitions, not 7"
    );
    assert_eq!(
        why(r#"[{"type":"function"}]"#, Wire::Chat),
        r#"tool 1 is not a tool definition: {"type":"function"}"#
    );
}

#[test]
fn functions_and_own_tools_mix_where_both_are_known() {
    let mixed = r#"[{"type":"function","function":{"name":"f"}},{"googleSearch":{}}]"#;
    assert_eq!(
        to(mixed, Wire::Gemini).unwrap(),
        r#"[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{}}}]},{"googleSearch":{}}]"#
    );
}

#[test]
fn a_choice_is_written_for_every_wire() {
    let mut table = String::new();
    for wire in Wire::ALL {
        for choice in [
            ToolChoice::Auto,
            ToolChoice::None,
            ToolChoice::Any,
            ToolChoice::Named("a\"b".to_owned()),
        ] {
            let written = write_tool_choice(choice.clone(), wire);
            assert!(written.is_empty() || Json::parse(written.as_bytes()).is_ok());
            table += &format!("{wire} {choice:?}: {written}\n");
        }
    }
    insta::assert_snapshot!(table);
}
