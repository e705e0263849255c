//! The tools of a request, in the form of any wire, and a list without some of them.

use std::ops::Range;

use crate::reply::growing_json::text_of;
use crate::{Json, JsonKind, splice};

/// One tool of a request.
#[derive(Clone, Copy, Debug)]
pub struct ListedTool<'a> {
    name: Option<Json<'a>>,
    /// The prefix of a name within a namespace, or of a name of a server.
    prefix: Option<Json<'a>>,
    /// The tool's bytes in the request.
    pub definition: Json<'a>,
    /// The member that holds the JSON Schema of the arguments; none if the provider defines them.
    pub schema: Option<Json<'a>>,
}

/// A change to a tool of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolEdit {
    /// The tool stays byte for byte.
    Keep,
    /// The tool is removed.
    Remove,
    /// The tool stays with another schema.
    Schema(String),
}

/// A list of tools after its edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditedTools {
    /// No tool was changed.
    Unchanged,
    /// The new value.
    Changed(Vec<u8>),
    /// No tool is left.
    Empty,
}

impl ListedTool<'_> {
    /// Returns the name by which the tool is called; of a tool of the provider's own its type.
    pub fn name(&self) -> String {
        let name = text_of(self.name).unwrap_or_default();
        match text_of(self.prefix) {
            Some(server) if self.name.is_none() => format!("mcp__{server}"),
            Some(namespace) => qualified_name(&namespace, &name),
            None => name,
        }
    }
}

/// Returns the name of a tool in a namespace, as other wires have it: `mcp__server__tool`.
pub fn qualified_name(namespace: &str, name: &str) -> String {
    let namespace = namespace.strip_suffix("__").unwrap_or(namespace);
    format!("{namespace}__{name}")
}

/// Reads the tools of a request: the value of `tools`, or of `functions`.
pub fn listed_tools(tools: Json<'_>) -> Vec<ListedTool<'_>> {
    let mut out = Vec::new();
    read_list(tools, None, &mut |tool| out.push(tool));
    out
}

/// Returns a list of tools with edits; `edit` is called once for each tool, in order.
///
/// All other bytes stay unchanged.
pub fn edit_tools(
    tools: Json<'_>,
    edit: &mut dyn FnMut(ListedTool<'_>) -> ToolEdit,
) -> EditedTools {
    let mut editor = Editor {
        edit,
        changes: Vec::new(),
    };
    if !editor.list(tools, None) {
        return EditedTools::Empty;
    }
    if editor.changes.is_empty() {
        return EditedTools::Unchanged;
    }
    let base = tools.range().start;
    let mut changes = editor.changes;
    changes.sort_by_key(|(range, _)| range.start);
    // The edits of a removed tool are dropped.
    let mut end = 0;
    changes.retain(|(range, _)| {
        let is_apart = range.start >= end;
        end = end.max(range.end);
        is_apart
    });
    let changes: Vec<(Range<usize>, String)> = changes
        .into_iter()
        .map(|(range, text)| (range.start - base..range.end - base, text))
        .collect();
    EditedTools::Changed(splice(tools.bytes(), &changes))
}

/// The form of an entry in a list of tools.
enum ToolListEntry<'a> {
    /// A tool.
    Tool(ListedTool<'a>),
    /// An object whose members are tools, or lists of them, as on Gemini's wire.
    Members(Json<'a>),
    /// A namespace with a list of tools.
    Namespace(Option<Json<'a>>, Json<'a>),
}

fn entry<'a>(json: Json<'a>, prefix: Option<Json<'a>>) -> ToolListEntry<'a> {
    let [kind, name, function, custom, tools] =
        json.pick(["type", "name", "function", "custom", "tools"]);
    let [server, toolset] = json.pick(["server_label", "mcp_server_name"]);
    let is_object = |json: &Json<'_>| json.kind() == JsonKind::Object;
    let tool = |name, prefix, schema| {
        ToolListEntry::Tool(ListedTool {
            name,
            prefix,
            definition: json,
            schema,
        })
    };
    if let Some(inner) = function.or(custom).filter(is_object) {
        return tool(inner.get("name"), prefix, schema(inner));
    }
    if kind.is_none() && name.is_none() {
        return ToolListEntry::Members(json);
    }
    if let Some(list) = tools.filter(|it| it.kind() == JsonKind::Array) {
        return ToolListEntry::Namespace(name, list);
    }
    if let Some(server) = server.or(toolset) {
        return tool(None, Some(server), None);
    }
    tool(name.or(kind), prefix, schema(json))
}

/// Returns the schema of a function's arguments.
fn schema(function: Json<'_>) -> Option<Json<'_>> {
    let found = function.pick([
        "input_schema",
        "parametersJsonSchema",
        "parameters_json_schema",
        "parameters",
    ]);
    found.into_iter().flatten().find(|json| !json.is_null())
}

fn is_declarations(name: Json<'_>) -> bool {
    name.is("functionDeclarations") || name.is("function_declarations")
}

/// A tool that is a member of an object, as Gemini's own are.
fn member_tool<'a>(name: Json<'a>, value: Json<'a>) -> ListedTool<'a> {
    ListedTool {
        name: Some(name),
        prefix: None,
        definition: value,
        schema: None,
    }
}

fn read_list<'a>(list: Json<'a>, prefix: Option<Json<'a>>, found: &mut dyn FnMut(ListedTool<'a>)) {
    // Gemini accepts a single object instead of a list.
    let single = (list.kind() == JsonKind::Object).then_some(list);
    for json in list.elements().chain(single) {
        match entry(json, prefix) {
            ToolListEntry::Tool(tool) => found(tool),
            ToolListEntry::Namespace(name, list) => read_list(list, name, found),
            ToolListEntry::Members(json) => {
                for (name, value) in json.members() {
                    if is_declarations(name) {
                        read_list(value, None, found);
                    } else {
                        found(member_tool(name, value));
                    }
                }
            }
        }
    }
}

struct Editor<'e> {
    edit: &'e mut dyn FnMut(ListedTool<'_>) -> ToolEdit,
    changes: Vec<(Range<usize>, String)>,
}

impl Editor<'_> {
    /// Edits a list; returns whether a tool is left in it.
    fn list(&mut self, list: Json<'_>, prefix: Option<Json<'_>>) -> bool {
        if list.kind() == JsonKind::Object {
            return self.entry(list, prefix);
        }
        let elements: Vec<Json<'_>> = list.elements().collect();
        let kept: Vec<bool> = elements
            .iter()
            .map(|json| self.entry(*json, prefix))
            .collect();
        let ranges: Vec<Range<usize>> = elements.iter().map(|json| json.range()).collect();
        self.remove(&ranges, &kept);
        kept.contains(&true)
    }

    /// Edits an element; returns whether a tool in it is left.
    fn entry(&mut self, json: Json<'_>, prefix: Option<Json<'_>>) -> bool {
        match entry(json, prefix) {
            ToolListEntry::Tool(tool) => self.tool(tool),
            ToolListEntry::Namespace(name, list) => self.list(list, name),
            ToolListEntry::Members(json) => {
                let mut ranges = Vec::new();
                let mut kept = Vec::new();
                for (name, value) in json.members() {
                    ranges.push(name.range().start..value.range().end);
                    kept.push(if is_declarations(name) {
                        self.list(value, None)
                    } else {
                        self.tool(member_tool(name, value))
                    });
                }
                self.remove(&ranges, &kept);
                kept.contains(&true)
            }
        }
    }

    fn tool(&mut self, tool: ListedTool<'_>) -> bool {
        match ((self.edit)(tool), tool.schema) {
            (ToolEdit::Remove, _) => return false,
            (ToolEdit::Schema(new), Some(old)) => self.changes.push((old.range(), new)),
            (ToolEdit::Keep | ToolEdit::Schema(_), _) => {}
        }
        true
    }

    /// Removes the ranges that are not kept, each with the comma before it, or behind it if nothing is kept before.
    fn remove(&mut self, ranges: &[Range<usize>], kept: &[bool]) {
        let mut is_after_kept = false;
        for (at, range) in ranges.iter().enumerate() {
            if kept[at] {
                is_after_kept = true;
                continue;
            }
            let range = match ranges.get(at + 1) {
                _ if is_after_kept => ranges[at - 1].end..range.end,
                Some(next) => range.start..next.start,
                None => range.clone(),
            };
            self.changes.push((range, String::new()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(tools: &str, gone: &[&str]) -> String {
        let json = Json::parse(tools.as_bytes()).expect("JSON");
        let edited = edit_tools(json, &mut |tool| {
            if gone.contains(&&*tool.name()) {
                ToolEdit::Remove
            } else {
                ToolEdit::Keep
            }
        });
        match edited {
            EditedTools::Unchanged => "unchanged".to_owned(),
            EditedTools::Empty => "empty".to_owned(),
            EditedTools::Changed(bytes) => {
                assert!(Json::parse(&bytes).is_ok(), "{tools} without {gone:?}");
                String::from_utf8(bytes).expect("UTF-8")
            }
        }
    }

    const CHAT: &str = r#"[ {"type":"function","function":{"name":"a","parameters":{"type":"object"}}} ,
        {"type":"custom","custom":{"name":"b"}}, {"type":"function","function":{"name":"c"}} ]"#;

    #[test]
    fn other_tools_stay_byte_for_byte() {
        assert_eq!(without(CHAT, &[]), "unchanged");
        assert_eq!(without(CHAT, &["a", "b", "c"]), "empty");
        assert_eq!(
            without(CHAT, &["a", "b"]),
            r#"[ {"type":"function","function":{"name":"c"}} ]"#
        );
        assert_eq!(
            without(CHAT, &["b", "c"]),
            r#"[ {"type":"function","function":{"name":"a","parameters":{"type":"object"}}} ]"#
        );
        assert_eq!(
            without(CHAT, &["b"]),
            r#"[ {"type":"function","function":{"name":"a","parameters":{"type":"object"}}}, {"type":"function","function":{"name":"c"}} ]"#
        );
    }

    #[test]
    fn lists_in_objects_go_with_their_last_tool() {
        let gemini = r#"[{"functionDeclarations":[{"name":"a"},{"name":"b"}],"googleSearch":{}},{"codeExecution":{}}]"#;
        assert_eq!(
            without(gemini, &["a", "b"]),
            r#"[{"googleSearch":{}},{"codeExecution":{}}]"#
        );
        assert_eq!(
            without(gemini, &["a", "googleSearch", "codeExecution"]),
            r#"[{"functionDeclarations":[{"name":"b"}]}]"#
        );
        assert_eq!(
            without(gemini, &["a", "b", "googleSearch", "codeExecution"]),
            "empty"
        );
        let single = r#"{"function_declarations":[{"name":"a"},{"name":"b"}]}"#;
        assert_eq!(
            without(single, &["a"]),
            r#"{"function_declarations":[{"name":"b"}]}"#
        );
        assert_eq!(without(single, &["a", "b"]), "empty");
        let spaces = r#"[{"type":"namespace","name":"mcp__x__","tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}]},{"type":"web_search"}]"#;
        assert_eq!(
            without(spaces, &["mcp__x__b"]),
            r#"[{"type":"namespace","name":"mcp__x__","tools":[{"type":"function","name":"a"}]},{"type":"web_search"}]"#
        );
        assert_eq!(
            without(spaces, &["mcp__x__a", "mcp__x__b"]),
            r#"[{"type":"web_search"}]"#
        );
    }

    #[test]
    fn each_wire_names_its_tools() {
        let names = |tools: &str| {
            let json = Json::parse(tools.as_bytes()).expect("JSON");
            let tools = listed_tools(json);
            let names: Vec<String> = tools.iter().map(ListedTool::name).collect();
            (
                names.join(" "),
                tools.iter().filter(|it| it.schema.is_some()).count(),
            )
        };
        assert_eq!(names(CHAT), ("a b c".to_owned(), 1));
        let anthropic = r#"[{"name":"Read","input_schema":{}},{"type":"bash_20250124","name":"bash"},{"type":"mcp_toolset","mcp_server_name":"git"}]"#;
        assert_eq!(names(anthropic), ("Read bash mcp__git".to_owned(), 1));
        let responses = r#"[{"type":"function","name":"shell","parameters":{}},{"type":"web_search"},{"type":"mcp","server_label":"s"},{"type":"custom","name":"apply_patch"}]"#;
        assert_eq!(
            names(responses),
            ("shell web_search mcp__s apply_patch".to_owned(), 1)
        );
        assert_eq!(names(r#"[{"name":"old","parameters":{}}]"#).0, "old");
        let gemini = r#"[{"functionDeclarations":[{"name":"a","parameters_json_schema":{}},{"name":"b","parametersJsonSchema":{}}]}]"#;
        assert_eq!(names(gemini), ("a b".to_owned(), 2));
        assert_eq!(names("7").0, "");
    }

    #[test]
    fn a_schema_is_replaced_alone() {
        let tools = r#"[{"name":"a","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}, {"name":"b"}]"#;
        let json = Json::parse(tools.as_bytes()).expect("JSON");
        let edited = edit_tools(json, &mut |_| ToolEdit::Schema("{}".to_owned()));
        let expected = tools.replace(r#"{"type":"object"}"#, "{}");
        assert_eq!(edited, EditedTools::Changed(expected.into_bytes()));
    }
}
