use std::borrow::Cow;

use super::{ARGUMENTS, Act, BACK, Called, FRONT, excerpt, todo};
use crate::{Json, Kind, shorten};

const PATHS: [&str; 14] = [
    "file_path",
    "path",
    "filePath",
    "filename",
    "file",
    "target_file",
    "absolute_path",
    "AbsolutePath",
    "notebook_path",
    "filepath",
    "file_name",
    "relative_path",
    "uri",
    "directory",
];
const COMMANDS: [&str; 6] = [
    "command",
    "cmd",
    "script",
    "commands",
    "command_line",
    "code",
];
const PATTERNS: [&str; 7] = [
    "pattern",
    "query",
    "regex",
    "search",
    "search_term",
    "glob_pattern",
    "q",
];
const LONGEST_PATH: usize = 300;
const LONGEST_COMMAND: usize = 1000;

/// The members of an object, found in one pass: a file's contents may be among them.
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
        let found = self
            .members
            .iter()
            .rev()
            .find(|(name, _)| **name == *key.as_bytes());
        found.map(|(_, value)| *value)
    }
}

/// Reads a call from its name and arguments, which may be JSON or JSON inside a text.
pub fn read(id: Option<String>, name: &str, arguments: Option<Json<'_>>) -> Called {
    let inner = arguments
        .filter(|json| json.bytes().len() <= ARGUMENTS)
        .and_then(Json::text);
    let parsed = inner
        .as_ref()
        .and_then(|text| Json::parse(text.as_bytes()).ok())
        .filter(|json| json.kind() == Kind::Object);
    let arguments = parsed.or(arguments);
    let arguments = arguments.map(Arguments::read);
    let mut text = String::new();
    if let Some(arguments) = &arguments {
        flatten_all(arguments, &mut text);
    }
    let acts = arguments.map_or_else(Vec::new, |arguments| acts(name, &arguments, &text));
    Called {
        id,
        name: shorten(name, 80),
        acts,
        text,
    }
}

fn acts(name: &str, arguments: &Arguments<'_>, text: &str) -> Vec<Act> {
    let plain = plain_name(name);
    let path = first(arguments, &PATHS).map(|path| shorten(&path, LONGEST_PATH));
    if let Some(patch) = patch(&plain, arguments) {
        return patch_acts(&patch);
    }
    let one = |make: fn(String) -> Act| match &path {
        Some(path) => vec![make(path.clone())],
        None => Vec::new(),
    };
    let found = match &*plain {
        "read"
        | "readfile"
        | "view"
        | "viewfile"
        | "open"
        | "openfile"
        | "cat"
        | "readmanyfiles"
        | "notebookread"
        | "listcodedefinitionnames" => reads(arguments, path.as_deref()),
        "write" | "writefile" | "writetofile" | "savefile" | "newfile" => one(Act::Write),
        "create" | "createfile" => one(Act::Create),
        "edit" | "multiedit" | "replace" | "editfile" | "applydiff" | "searchandreplace"
        | "insertcontent" | "strreplace" | "replaceinfile" | "notebookedit" | "insert" => {
            one(Act::Edit)
        }
        "delete" | "deletefile" | "remove" | "removefile" => one(Act::Delete),
        "move" | "movefile" | "rename" | "renamefile" => moved(arguments),
        "strreplaceeditor" | "strreplacebasededittool" | "texteditor" | "editor" => one(
            match arguments.get("command").and_then(Json::text).as_deref() {
                Some("view") => Act::Read,
                Some("create") => Act::Create,
                _ => Act::Edit,
            },
        ),
        "todowrite" | "updatetodolist" | "writetodos" | "updateplan" | "settodos" => {
            todos(arguments)
        }
        "exitplanmode" => first(arguments, &["plan"])
            .map(|plan| vec![Act::Plan(plan)])
            .unwrap_or_default(),
        "grep" | "glob" | "search" | "find" | "ls" | "list" | "searchfiles" | "listfiles"
        | "listdirectory" | "listdir" | "codebasesearch" | "searchfilecontent" | "websearch"
        | "findfiles" | "grepsearch" | "filesearch" => search(arguments, path.clone()),
        _ => Vec::new(),
    };
    if !found.is_empty() {
        return found;
    }
    unknown(&plain, arguments, path, text)
}

/// What a tool of no known name seems to do.
fn unknown(plain: &str, arguments: &Arguments<'_>, path: Option<String>, text: &str) -> Vec<Act> {
    let command = COMMANDS
        .iter()
        .find_map(|key| command(arguments.get(key)?))
        .filter(|command| !command.trim().is_empty());
    if let Some(command) = command {
        return vec![Act::Run(shorten(&command, LONGEST_COMMAND))];
    }
    if let Some(list) = arguments.get("todos") {
        let list = todo::read(list);
        if !list.is_empty() {
            return vec![Act::Todos(list)];
        }
    }
    let has = |keys: &[&str]| keys.iter().any(|key| arguments.get(key).is_some());
    let says = |words: &[&str]| words.iter().any(|word| plain.contains(word));
    if let Some(path) = path {
        if has(&["old_string", "new_string", "oldText", "diff", "old_str"]) || says(&["edit"]) {
            return vec![Act::Edit(path)];
        }
        if has(&["content", "contents", "file_text", "text"]) || says(&["write"]) {
            return vec![Act::Write(path)];
        }
        if says(&["read", "view", "open", "show", "cat"]) {
            return vec![Act::Read(path)];
        }
        if says(&["delete", "remove"]) {
            return vec![Act::Delete(path)];
        }
    }
    let front: String = text.chars().take(400).collect();
    vec![Act::Other(shorten(
        &front.trim_end().replace('\n', ", "),
        160,
    ))]
}

/// `mcp__files__read_file`, `functions.readFile` and `Read-File` are all `readfile`.
fn plain_name(name: &str) -> String {
    let last = name.rsplit("__").next().unwrap_or(name);
    let last = last.rsplit(['.', ':', '/']).next().unwrap_or(last);
    let letters = last.chars().filter(char::is_ascii_alphanumeric);
    letters.take(60).map(|c| c.to_ascii_lowercase()).collect()
}

fn first(arguments: &Arguments<'_>, keys: &[&str]) -> Option<String> {
    keys.iter()
        .find_map(|key| excerpt(arguments.get(key)?, 4096, 0))
        .map(Cow::into_owned)
        .filter(|text| !text.is_empty())
}

/// A command is a text, or a list of words of which a shell's last one is the command.
fn command(value: Json<'_>) -> Option<String> {
    if value.kind() == Kind::String {
        return excerpt(value, 4096, 0).map(Cow::into_owned);
    }
    let words: Vec<String> = value
        .elements()
        .take(64)
        .filter_map(|word| Some(excerpt(word, 4096, 0)?.into_owned()))
        .collect();
    let shell = words.len() == 3 && words[1].starts_with('-') && words[1].ends_with('c');
    match shell {
        true => words.into_iter().last(),
        false => (!words.is_empty()).then(|| words.join(" ")),
    }
}

fn reads(arguments: &Arguments<'_>, path: Option<&str>) -> Vec<Act> {
    if let Some(path) = path {
        return vec![Act::Read(path.to_owned())];
    }
    let lists = ["files", "paths", "args"];
    let list = lists.iter().find_map(|key| arguments.get(key));
    let list = list.map(|list| list.get("file").unwrap_or(list));
    let one = list.filter(|list| list.kind() == Kind::Object);
    let paths = list
        .into_iter()
        .flat_map(Json::elements)
        .chain(one)
        .filter_map(|item| {
            let path = item.get("path").unwrap_or(item);
            Some(shorten(&excerpt(path, 4096, 0)?, LONGEST_PATH))
        });
    paths.take(50).map(Act::Read).collect()
}

fn moved(arguments: &Arguments<'_>) -> Vec<Act> {
    let from = first(arguments, &["source", "from", "old_path", "path", "src"]);
    let to = first(
        arguments,
        &["destination", "to", "new_path", "dest", "target"],
    );
    match (from, to) {
        (Some(from), Some(to)) => vec![Act::Move {
            from: shorten(&from, LONGEST_PATH),
            to: shorten(&to, LONGEST_PATH),
        }],
        _ => Vec::new(),
    }
}

fn search(arguments: &Arguments<'_>, path: Option<String>) -> Vec<Act> {
    match (first(arguments, &PATTERNS), path) {
        (Some(what), path) => vec![Act::Search {
            what: shorten(&what, 200),
            path,
        }],
        (None, Some(path)) => vec![Act::Search {
            what: path,
            path: None,
        }],
        (None, None) => Vec::new(),
    }
}

fn todos(arguments: &Arguments<'_>) -> Vec<Act> {
    let list = ["todos", "plan", "items", "steps"]
        .iter()
        .find_map(|key| arguments.get(key));
    list.map(|list| vec![Act::Todos(todo::read(list))])
        .unwrap_or_default()
}

/// The patch in a call, if it makes one: by its own tool, or fed to a command.
fn patch(plain: &str, arguments: &Arguments<'_>) -> Option<String> {
    let text = match arguments.whole.kind() {
        Kind::String => excerpt(arguments.whole, FRONT, BACK)?.into_owned(),
        _ if plain == "applypatch" => ["input", "patch", "patchText", "diff"]
            .iter()
            .find_map(|key| excerpt(arguments.get(key)?, FRONT, BACK))?
            .into_owned(),
        _ => {
            let command = COMMANDS.iter().find_map(|key| arguments.get(key))?;
            let command = match command.kind() {
                Kind::Array => command.elements().last()?,
                _ => command,
            };
            excerpt(command, FRONT, BACK)?.into_owned()
        }
    };
    text.contains("*** Begin Patch").then_some(text)
}

fn patch_acts(patch: &str) -> Vec<Act> {
    let mut out: Vec<Act> = Vec::new();
    for line in patch.lines() {
        let Some(line) = line.strip_prefix("*** ") else {
            continue;
        };
        let Some((what, path)) = line.split_once(": ") else {
            continue;
        };
        let path = shorten(path, LONGEST_PATH);
        match what {
            "Add File" => out.push(Act::Create(path)),
            "Update File" => out.push(Act::Edit(path)),
            "Delete File" => out.push(Act::Delete(path)),
            "Move to" => {
                if let Some(Act::Edit(from)) = out.last() {
                    let from = from.clone();
                    out.push(Act::Move { from, to: path });
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

/// Writes what the arguments say; file names have their own place.
fn flatten_all(arguments: &Arguments<'_>, out: &mut String) {
    let is_path = |key: &[u8]| PATHS.iter().any(|path| path.as_bytes() == key);
    match arguments.whole.kind() {
        Kind::Object => arguments
            .members
            .iter()
            .filter(|(key, _)| !is_path(key))
            .for_each(|(_, value)| flatten(*value, 0, out)),
        _ => flatten(arguments.whole, 0, out),
    }
}

/// Writes what the texts and numbers of a value say, one per line.
fn flatten(value: Json<'_>, depth: u32, out: &mut String) {
    if out.len() > FRONT + BACK || depth > 8 {
        return;
    }
    match value.kind() {
        Kind::String => {
            out.push_str(&excerpt(value, FRONT, BACK).unwrap_or_default());
            out.push('\n');
        }
        Kind::Number => {
            out.push_str(&String::from_utf8_lossy(value.bytes()));
            out.push('\n');
        }
        Kind::Object => value
            .members()
            .for_each(|(_, value)| flatten(value, depth + 1, out)),
        Kind::Array => value
            .elements()
            .for_each(|value| flatten(value, depth + 1, out)),
        Kind::Bool | Kind::Null => {}
    }
}
