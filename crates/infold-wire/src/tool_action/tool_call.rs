//! Reads the actions of a tool call from its name and arguments.

use std::borrow::Cow;

use super::tool_kind::{ToolKind, kind_of_plain, plain_name};
use super::{BACK_BYTES, FRONT_BYTES, MAX_ARGUMENTS_BYTES, ToolAction, ToolCall, excerpt, todo};
use crate::{Json, JsonKind, shorten};

/// The names of arguments that are the path of a file.
pub const PATH_KEYS: &str = "file_path path filePath filename file target_file absolute_path AbsolutePath \
    notebook_path filepath file_name relative_path uri directory";
/// The names of arguments that are a command.
pub const COMMAND_KEYS: &str = "command cmd script commands command_line code";
/// The names of arguments that are the pattern or question of a search.
const QUERY_KEYS: &str = "pattern query regex search search_term glob_pattern q";
const MAX_PATH_CHARS: usize = 300;
const MAX_COMMAND_CHARS: usize = 1000;
/// Longer arguments are cut before they are shortened.
const MAX_ARGUMENT_BYTES: usize = 4096;

/// The arguments of a call. The members are collected in one pass, because a file's contents may be among them.
struct Arguments<'a> {
    whole: Json<'a>,
    members: Vec<(Cow<'a, [u8]>, Json<'a>)>,
}

impl<'a> Arguments<'a> {
    fn read(whole: Json<'a>) -> Arguments<'a> {
        let members = whole.members().take(100);
        Arguments {
            whole,
            members: members.map(|(key, value)| (key.name(), value)).collect(),
        }
    }

    fn get(&self, key: &str) -> Option<Json<'a>> {
        let mut members = self.members.iter().rev();
        let found = members.find(|(name, _)| **name == *key.as_bytes());
        found.map(|(_, value)| *value)
    }

    /// Returns the first of these arguments that the call has.
    fn get_any(&self, keys: &str) -> Option<Json<'a>> {
        keys.split_whitespace().find_map(|key| self.get(key))
    }

    /// Returns the text of the first of these arguments that is a string and not empty.
    fn text(&self, keys: &str) -> Option<String> {
        let mut texts = keys
            .split_whitespace()
            .filter_map(|key| excerpt(self.get(key)?, MAX_ARGUMENT_BYTES, 0));
        texts.find(|text| !text.is_empty()).map(Cow::into_owned)
    }

    /// Returns the path in the first of these arguments that is a string and not empty.
    fn path(&self, keys: &str) -> Option<String> {
        Some(shorten(&self.text(keys)?, MAX_PATH_CHARS))
    }
}

/// Reads a call from its name and arguments, which may be JSON or JSON inside a text.
pub fn read(id: Option<String>, name: &str, arguments: Option<Json<'_>>) -> ToolCall {
    let inner = arguments
        .filter(|json| json.bytes().len() <= MAX_ARGUMENTS_BYTES)
        .and_then(Json::text);
    let parsed = inner
        .as_ref()
        .and_then(|text| Json::parse(text.as_bytes()).ok())
        .filter(|json| json.kind() == JsonKind::Object);
    let arguments = parsed.or(arguments).map(Arguments::read);
    let mut text = String::new();
    if let Some(arguments) = &arguments {
        write_arguments(arguments, &mut text);
    }
    let actions = arguments.map_or_else(Vec::new, |it| read_actions(name, &it, &text));
    ToolCall {
        id,
        name: shorten(name, 80),
        actions,
        text,
    }
}

/// Returns the actions of a call. `text` is that of its arguments without file names.
fn read_actions(name: &str, arguments: &Arguments<'_>, text: &str) -> Vec<ToolAction> {
    let plain = plain_name(name);
    let path = arguments.path(PATH_KEYS);
    if let Some(patch) = patch(&plain, arguments) {
        return patch_actions(&patch);
    }
    let one = |make: fn(String) -> ToolAction| path.clone().map(make).into_iter().collect();
    let found = match kind_of_plain(&plain) {
        Some(ToolKind::Read) => read_files(arguments, path.as_deref()),
        Some(ToolKind::Write) => one(ToolAction::Write),
        Some(ToolKind::Create) => one(ToolAction::Create),
        Some(ToolKind::Edit) => one(ToolAction::Edit),
        Some(ToolKind::Delete) => one(ToolAction::Delete),
        Some(ToolKind::Move) => read_move(arguments),
        Some(ToolKind::Editor) => one(
            match arguments.get("command").and_then(Json::text).as_deref() {
                Some("view") => ToolAction::Read,
                Some("create") => ToolAction::Create,
                _ => ToolAction::Edit,
            },
        ),
        Some(ToolKind::Todos) => {
            let list = arguments.get_any("todos plan items steps");
            let todos = list.map(|list| ToolAction::Todos(todo::read(list)));
            todos.into_iter().collect()
        }
        Some(ToolKind::Plan) => arguments
            .text("plan")
            .map(ToolAction::Plan)
            .into_iter()
            .collect(),
        Some(ToolKind::Search) => read_search(arguments, path.clone()),
        Some(ToolKind::Patch | ToolKind::Web | ToolKind::Run) | None => Vec::new(),
    };
    if !found.is_empty() {
        return found;
    }
    guess_actions(&plain, arguments, path, text)
}

/// Guesses the action of a call from its arguments, if the name of the tool is not enough.
fn guess_actions(
    plain: &str,
    arguments: &Arguments<'_>,
    path: Option<String>,
    text: &str,
) -> Vec<ToolAction> {
    let command = COMMAND_KEYS
        .split(' ')
        .filter_map(|key| read_command(arguments.get(key)?))
        .find(|command| !command.trim().is_empty());
    if let Some(command) = command {
        return vec![ToolAction::Run(shorten(&command, MAX_COMMAND_CHARS))];
    }
    if let Some(list) = arguments.get("todos") {
        let list = todo::read(list);
        if !list.is_empty() {
            return vec![ToolAction::Todos(list)];
        }
    }
    let has = |keys: &[&str]| keys.iter().any(|key| arguments.get(key).is_some());
    let says = |words: &[&str]| words.iter().any(|word| plain.contains(word));
    if let Some(path) = path {
        if has(&["old_string", "new_string", "oldText", "diff", "old_str"]) || says(&["edit"]) {
            return vec![ToolAction::Edit(path)];
        }
        if has(&["content", "contents", "file_text", "text"]) || says(&["write"]) {
            return vec![ToolAction::Write(path)];
        }
        if says(&["read", "view", "open", "show", "cat"]) {
            return vec![ToolAction::Read(path)];
        }
        if says(&["delete", "remove"]) {
            return vec![ToolAction::Delete(path)];
        }
    }
    let front: String = text.chars().take(400).collect();
    vec![ToolAction::Other(shorten(
        &front.trim_end().replace('\n', ", "),
        160,
    ))]
}

/// Reads a command: a text, or a list of words. If these run a shell, such as `bash -c`, the command is the last word.
fn read_command(value: Json<'_>) -> Option<String> {
    if value.kind() == JsonKind::String {
        return excerpt(value, MAX_ARGUMENT_BYTES, 0).map(Cow::into_owned);
    }
    let words: Vec<String> = value
        .elements()
        .take(64)
        .filter_map(|word| Some(excerpt(word, MAX_ARGUMENT_BYTES, 0)?.into_owned()))
        .collect();
    match &*words {
        [_, flag, script] if flag.starts_with('-') && flag.ends_with('c') => Some(script.clone()),
        [] => None,
        _ => Some(words.join(" ")),
    }
}

fn read_files(arguments: &Arguments<'_>, path: Option<&str>) -> Vec<ToolAction> {
    if let Some(path) = path {
        return vec![ToolAction::Read(path.to_owned())];
    }
    let list = arguments.get_any("files paths args");
    let list = list.map(|list| list.get("file").unwrap_or(list));
    let one = list.filter(|list| list.kind() == JsonKind::Object);
    let paths = list
        .into_iter()
        .flat_map(Json::elements)
        .chain(one)
        .filter_map(|item| {
            let path = item.get("path").unwrap_or(item);
            Some(shorten(
                &excerpt(path, MAX_ARGUMENT_BYTES, 0)?,
                MAX_PATH_CHARS,
            ))
        });
    paths.take(50).map(ToolAction::Read).collect()
}

fn read_move(arguments: &Arguments<'_>) -> Vec<ToolAction> {
    let from = arguments.path("source from old_path path src");
    let to = arguments.path("destination to new_path dest target");
    let both = from.zip(to).map(|(from, to)| ToolAction::Move { from, to });
    both.into_iter().collect()
}

fn read_search(arguments: &Arguments<'_>, path: Option<String>) -> Vec<ToolAction> {
    match (arguments.text(QUERY_KEYS), path) {
        (Some(what), path) => vec![ToolAction::Search {
            what: shorten(&what, 200),
            path,
        }],
        (None, Some(path)) => vec![ToolAction::Search {
            what: path,
            path: None,
        }],
        (None, None) => Vec::new(),
    }
}

/// Returns the patch that a call applies, if it applies one: with a tool for patches, or inside a command.
fn patch(plain: &str, arguments: &Arguments<'_>) -> Option<String> {
    let text = match arguments.whole.kind() {
        JsonKind::String => excerpt(arguments.whole, FRONT_BYTES, BACK_BYTES)?.into_owned(),
        _ if plain == "applypatch" => ["input", "patch", "patchText", "diff"]
            .iter()
            .find_map(|key| excerpt(arguments.get(key)?, FRONT_BYTES, BACK_BYTES))?
            .into_owned(),
        _ => {
            let command = arguments.get_any(COMMAND_KEYS)?;
            let command = match command.kind() {
                JsonKind::Array => command.elements().last()?,
                _ => command,
            };
            excerpt(command, FRONT_BYTES, BACK_BYTES)?.into_owned()
        }
    };
    text.contains("*** Begin Patch").then_some(text)
}

fn patch_actions(patch: &str) -> Vec<ToolAction> {
    let mut out: Vec<ToolAction> = Vec::new();
    for line in patch.lines() {
        let heading = line.strip_prefix("*** ");
        let Some((change, path)) = heading.and_then(|line| line.split_once(": ")) else {
            continue;
        };
        let path = shorten(path, MAX_PATH_CHARS);
        match change {
            "Add File" => out.push(ToolAction::Create(path)),
            "Update File" => out.push(ToolAction::Edit(path)),
            "Delete File" => out.push(ToolAction::Delete(path)),
            "Move to" => {
                if let Some(ToolAction::Edit(from)) = out.last() {
                    let from = from.clone();
                    out.push(ToolAction::Move { from, to: path });
                }
            }
            _ => {}
        }
        if out.len() > 200 {
            break;
        }
    }
    out
}

/// Writes the values of all arguments except those that name a file.
fn write_arguments(arguments: &Arguments<'_>, out: &mut String) {
    let is_path = |key: &[u8]| {
        PATH_KEYS
            .split_whitespace()
            .any(|path| path.as_bytes() == key)
    };
    match arguments.whole.kind() {
        JsonKind::Object => arguments
            .members
            .iter()
            .filter(|(key, _)| !is_path(key))
            .for_each(|(_, value)| write_values(*value, 0, out)),
        _ => write_values(arguments.whole, 0, out),
    }
}

/// Writes the texts and numbers of a value, one per line.
fn write_values(value: Json<'_>, depth: u32, out: &mut String) {
    if out.len() > FRONT_BYTES + BACK_BYTES || depth > 8 {
        return;
    }
    match value.kind() {
        JsonKind::String => {
            out.push_str(&excerpt(value, FRONT_BYTES, BACK_BYTES).unwrap_or_default());
            out.push('\n');
        }
        JsonKind::Number => {
            out.push_str(&String::from_utf8_lossy(value.bytes()));
            out.push('\n');
        }
        JsonKind::Object => value
            .members()
            .for_each(|(_, value)| write_values(value, depth + 1, out)),
        JsonKind::Array => value
            .elements()
            .for_each(|value| write_values(value, depth + 1, out)),
        JsonKind::Bool | JsonKind::Null => {}
    }
}
