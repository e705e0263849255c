//! Narrows the schema of a tool to what production allows.

use infold_wire::tool_action::{COMMAND_KEYS, PATH_KEYS};
use infold_wire::{Json, JsonKind, quote, splice};

/// A schema that is narrower than the tool's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarrowedSchema {
    /// The schema.
    pub schema: String,
    /// The arguments that are narrowed.
    pub arguments: Vec<String>,
}

/// What a narrowed argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Narrows {
    /// A command that is run.
    Commands,
    /// A path that is deleted.
    Paths,
}

/// Arguments that are lists of paths.
const PATH_LIST_KEYS: [&str; 3] = ["paths", "files", "file_paths"];
/// Shells with which agents run a command that is one text.
const SHELL_WORDS: [[&str; 2]; 4] = [["bash", "-lc"], ["bash", "-c"], ["sh", "-c"], ["sh", "-lc"]];
/// Arguments that choose the program that runs a command,
const SHELL_KEYS: [&str; 4] = ["shell", "interpreter", "executable", "program"];
/// and what they may be.
const SHELLS: [&str; 6] = [
    "bash",
    "sh",
    "/bin/bash",
    "/bin/sh",
    "/usr/bin/bash",
    "/usr/bin/sh",
];
/// Said in the description of a narrowed argument.
const WHITELIST_ONLY: &str = "whitelist only";

/// Narrows a schema; none if it has no argument of this kind, or nothing that it allows is left.
///
/// Only the arguments concerned are written anew; where the schema requires none of them the first becomes required, since without it the
/// tool would choose itself.
pub fn narrow(schema: &str, narrows: Narrows, allowed: &[String]) -> Option<NarrowedSchema> {
    let json = Json::parse(schema.as_bytes()).ok()?;
    let properties = json.get("properties")?;
    let mut edits = Vec::new();
    let mut arguments = Vec::new();
    for (name, property) in properties.members() {
        let name = name.text()?;
        if is_narrowed(&name, narrows) {
            edits.push((
                property.range(),
                narrow_property(property, narrows, allowed)?,
            ));
            arguments.push(name.into_owned());
        } else if narrows == Narrows::Commands && SHELL_KEYS.contains(&&*name) {
            // Any program could stand there, whatever the command.
            let shells = SHELLS.map(str::to_owned);
            let shells = narrow_property(property, Narrows::Commands, &shells)?;
            edits.push((property.range(), shells));
        }
    }
    if arguments.is_empty() {
        return None;
    }
    edits.extend(require_one(json, &arguments));
    edits.sort_by_key(|(range, _)| range.start);
    let schema = String::from_utf8(splice(schema.as_bytes(), &edits)).ok()?;
    Some(NarrowedSchema { schema, arguments })
}

fn is_narrowed(name: &str, narrows: Narrows) -> bool {
    let keys = match narrows {
        Narrows::Commands => COMMAND_KEYS,
        Narrows::Paths => PATH_KEYS,
    };
    keys.split_ascii_whitespace().any(|key| key == name)
        || narrows == Narrows::Paths && PATH_LIST_KEYS.contains(&name)
}

/// Requires the first of the arguments where the schema requires none of them.
fn require_one(json: Json<'_>, arguments: &[String]) -> Option<(std::ops::Range<usize>, String)> {
    let first = quote(arguments.first()?);
    let Some(required) = json
        .get("required")
        .filter(|it| it.kind() == JsonKind::Array)
    else {
        let end = json.range().end - 1;
        return Some((end..end, format!(r#","required":[{first}]"#)));
    };
    let mut names = required.elements().filter_map(Json::text);
    if names.any(|name| arguments.iter().any(|it| *it == *name)) {
        return None;
    }
    let comma = if required.elements().next().is_some() {
        ","
    } else {
        ""
    };
    let start = required.range().start + 1;
    Some((start..start, format!("{first}{comma}")))
}

fn narrow_property(property: Json<'_>, narrows: Narrows, allowed: &[String]) -> Option<String> {
    let [kind, own, description] = property.pick(["type", "enum", "description"]);
    // The tool's own list counts too.
    let own: Option<Vec<String>> = own.map(|own| {
        let texts = own.elements().filter_map(Json::text);
        texts.map(|text| text.into_owned()).collect()
    });
    let is_own = |text: &&String| own.as_ref().is_none_or(|own| own.contains(text));
    let allowed: Vec<&String> = allowed.iter().filter(is_own).collect();
    if allowed.is_empty() {
        return None;
    }
    let texts: Vec<String> = allowed.iter().map(|text| quote(text)).collect();
    let said = allowed.iter().map(|text| text.as_str());
    let said = said.collect::<Vec<_>>().join(", ");
    let mut about = description
        .and_then(Json::text)
        .unwrap_or_default()
        .into_owned();
    if !about.is_empty() {
        about.push(' ');
    }
    about.push_str(&format!("({WHITELIST_ONLY}: {said})"));
    let about = quote(&about);
    let is_list = kind
        .and_then(Json::text)
        .is_some_and(|kind| kind.eq_ignore_ascii_case("array"));
    let is_upper = kind
        .and_then(Json::text)
        .is_some_and(|kind| kind == "ARRAY" || kind == "STRING");
    let word = |kind: &str| {
        if is_upper {
            quote(&kind.to_uppercase())
        } else {
            quote(kind)
        }
    };
    let (list, string) = (word("array"), word("string"));
    Some(match (is_list, narrows) {
        (false, _) => format!(
            r#"{{"type":{string},"description":{about},"enum":[{}]}}"#,
            texts.join(",")
        ),
        (true, Narrows::Paths) => format!(
            r#"{{"type":{list},"description":{about},"items":{{"type":{string},"enum":[{}]}}}}"#,
            texts.join(",")
        ),
        // The words of a command are allowed together, and not each by itself.
        (true, Narrows::Commands) => {
            let lists = allowed.iter().flat_map(|text| word_lists(text));
            format!(
                r#"{{"type":{list},"description":{about},"items":{{"type":{string}}},"enum":[{}]}}"#,
                lists.collect::<Vec<_>>().join(",")
            )
        }
    })
}

/// Returns a command as lists of words: its own, and those of a shell that runs it.
fn word_lists(command: &str) -> Vec<String> {
    let list = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
        format!("[{}]", words.join(","))
    };
    let own: Vec<&str> = command.split_whitespace().collect();
    let shells = SHELL_WORDS.map(|[shell, flag]| list(&[shell, flag, command]));
    // Words with quotes or expansions mean something to a shell alone.
    let is_plain = !command.contains([
        '"', '\'', '\\', '$', '`', '|', '&', ';', '<', '>', '*', '(', '~',
    ]);
    let own = is_plain.then(|| list(&own));
    own.into_iter().chain(shells).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn only_the_command_is_written_anew() {
        let schema = r#"{ "type": "object", "properties": { "command": {"type":"string","description":"The command"}, "timeout": {"type": "number"} }, "required": ["command"] }"#;
        let narrowed = narrow(schema, Narrows::Commands, &texts(&["npm test"])).expect("narrowed");
        assert_eq!(
            narrowed.schema,
            r#"{ "type": "object", "properties": { "command": {"type":"string","description":"The command (whitelist only: npm test)","enum":["npm test"]}, "timeout": {"type": "number"} }, "required": ["command"] }"#
        );
        assert_eq!(narrowed.arguments, ["command"]);
    }

    #[test]
    fn a_list_of_words_is_allowed_whole() {
        let schema = r#"{"properties":{"command":{"type":"array","items":{"type":"string"}}},"required":[]}"#;
        let narrowed = narrow(schema, Narrows::Commands, &texts(&["npm test"])).expect("narrowed");
        assert!(
            narrowed
                .schema
                .contains(r#"["npm","test"],["bash","-lc","npm test"]"#)
        );
        assert!(narrowed.schema.ends_with(r#""required":["command"]}"#));
    }

    #[test]
    fn no_other_program_runs_the_command() {
        let schema = r#"{"properties":{"cmd":{"type":"string"},"shell":{"type":"string"}},"required":["cmd"]}"#;
        let narrowed = narrow(schema, Narrows::Commands, &texts(&["npm test"])).expect("narrowed");
        assert!(
            narrowed
                .schema
                .contains(r#""enum":["bash","sh","/bin/bash""#)
        );
        assert_eq!(narrowed.arguments, ["cmd"]);
    }

    #[test]
    fn what_cannot_be_narrowed_is_none() {
        let free = r#"{"properties":{"chars":{"type":"string"}}}"#;
        assert_eq!(narrow(free, Narrows::Commands, &texts(&["ls"])), None);
        let own = r#"{"properties":{"command":{"enum":["view"]}}}"#;
        assert_eq!(narrow(own, Narrows::Commands, &texts(&["ls"])), None);
        let both = narrow(own, Narrows::Commands, &texts(&["ls", "view"])).expect("narrowed");
        assert!(both.schema.contains(r#""enum":["view"]"#));
    }
}
