//! The choice of tools in a request, without those that are hidden.

use infold_wire::tools::{ToolChoice, write_tool_choice};
use infold_wire::{Json, JsonKind, Wire, splice};

/// Returns the names of tools that a choice demands, or is limited to.
pub(super) fn chosen_names(wire: Wire, choice: Json<'_>) -> Vec<String> {
    match limits(wire, choice) {
        Some(list) => list.elements().filter_map(chosen_name).collect(),
        None if choice.kind() == JsonKind::Object && wire != Wire::Gemini => {
            chosen_name(choice).into_iter().collect()
        }
        None => Vec::new(),
    }
}

/// Returns a choice that names a hidden tool without it. Of a choice of several the others stay, and if none is left no
/// tool may be called; a choice of one becomes the model's own.
pub(super) fn choice_without(
    wire: Wire,
    choice: Json<'_>,
    is_hidden: &dyn Fn(&str) -> bool,
) -> String {
    let Some(list) = limits(wire, choice) else {
        return write_tool_choice(ToolChoice::Auto, wire);
    };
    let is_left = |one: &Json<'_>| chosen_name(*one).is_none_or(|name| !is_hidden(&name));
    let all = list.elements().count();
    let left: Vec<_> = list.elements().filter(is_left).collect();
    if left.is_empty() {
        // A choice of one tool requires it, and a choice of several excludes all others.
        let none = if all > 1 {
            ToolChoice::None
        } else {
            ToolChoice::Auto
        };
        return write_tool_choice(none, wire);
    }
    let left = left.iter().map(|one| String::from_utf8_lossy(one.bytes()));
    let left = format!("[{}]", left.collect::<Vec<_>>().join(","));
    let base = choice.range().start;
    let range = list.range().start - base..list.range().end - base;
    String::from_utf8_lossy(&splice(choice.bytes(), &[(range, left)])).into_owned()
}

/// Returns the list of tools that a choice is limited to.
fn limits(wire: Wire, choice: Json<'_>) -> Option<Json<'_>> {
    if wire == Wire::Gemini {
        let [camel, snake] = choice.pick(["functionCallingConfig", "function_calling_config"]);
        let [camel, snake] = camel
            .or(snake)?
            .pick(["allowedFunctionNames", "allowed_function_names"]);
        return camel.or(snake);
    }
    choice.get("allowed_tools").unwrap_or(choice).get("tools")
}

fn chosen_name(json: Json<'_>) -> Option<String> {
    let text = |json: Option<Json<'_>>| Some(json?.text()?.into_owned());
    if json.kind() == JsonKind::String {
        return text(Some(json));
    }
    let [name, function, custom, server, kind] =
        json.pick(["name", "function", "custom", "server_label", "type"]);
    let inner = || text(function.or(custom)?.get("name"));
    let server = || Some(format!("mcp__{}", text(server)?));
    text(name)
        .or_else(inner)
        .or_else(server)
        .or_else(|| text(kind))
}
