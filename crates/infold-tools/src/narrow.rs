//! Narrows the schema of a tool to the values that production allows.

use infold_wire::tool_action::{COMMAND_KEYS, PATH_KEYS};
use infold_wire::{Json, quote};

/// A schema that is narrower than the tool's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarrowedSchema {
    /// The schema.
    pub schema: String,
    /// The arguments that are narrowed.
    pub arguments: Vec<String>,
}

/// The kind of argument that is narrowed.
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
/// Arguments that choose the program that runs a command.
const SHELL_KEYS: [&str; 4] = ["shell", "interpreter", "executable", "program"];
/// The allowed values of [`SHELL_KEYS`].
const SHELLS: [&str; 6] = [
    "bash",
    "sh",
    "/bin/bash",
    "/bin/sh",
    "/usr/bin/bash",
    "/usr/bin/sh",
];
/// The description of a narrowed argument.
const WHITELIST_ONLY: &str = "whitelist only";

/// Arguments that say how, where or why a tool runs, but not which command it runs.
const HARMLESS_KEYS: &str = "description explanation reason justification purpose title timeout timeout_ms timeout_secs \
    timeout_seconds timeoutMs timeoutSeconds cwd workdir working_directory workingDirectory dir_path directory run_in_background \
    is_background background yield_time_ms max_output_tokens max_output_chars max_output_length tty login";
/// Such arguments of tools that delete, in addition.
const HARMLESS_DELETION_KEYS: &str = "recursive force";

/// Narrows a schema; none if it has no argument of this kind, or no allowed value is left.
///
/// Other arguments stay only if they cannot run anything. If the schema requires none of the narrowed
/// arguments, the first becomes required, because without it the tool would choose a value itself. `is_closed`
/// says whether the schema itself has to forbid further members.
pub fn narrow(
    schema: &str,
    narrows: Narrows,
    allowed: &[String],
    is_closed: bool,
) -> Option<NarrowedSchema> {
    let json = Json::parse(schema.as_bytes()).ok()?;
    // Some drafts ignore all members beside a reference.
    if json.get("$ref").is_some() {
        return None;
    }
    let (mut properties, mut kept, mut arguments) = (Vec::new(), Vec::new(), Vec::new());
    for (name, property) in json.get("properties")?.members() {
        let name = name.text()?.into_owned();
        let property = if is_narrowed(&name, narrows) {
            arguments.push(name.clone());
            narrow_property(property, narrows, allowed)?
        } else if narrows == Narrows::Commands && SHELL_KEYS.contains(&&*name) {
            // Any program could stand there, whatever the command.
            narrow_property(property, narrows, &SHELLS.map(str::to_owned))?
        } else if is_harmless(&name, property, narrows) {
            text_of(property)
        } else {
            continue;
        };
        properties.push(format!("{}:{property}", quote(&name)));
        kept.push(name);
    }
    let first = arguments.first()?;
    let required = json.get("required").into_iter().flat_map(Json::elements);
    let required = required.filter_map(|name| Some(name.text()?.into_owned()));
    let mut required: Vec<String> = required.filter(|name| kept.contains(name)).collect();
    if !required.iter().any(|name| arguments.contains(name)) {
        required.insert(0, first.clone());
    }
    let required: Vec<String> = required.iter().map(|name| quote(name)).collect();
    let mut members = Vec::new();
    for (name, value) in json.members() {
        let value = match &*name.name() {
            b"properties" => format!("{{{}}}", properties.join(",")),
            // Members that are rewritten, and members that would allow more or name removed properties.
            b"required"
            | b"additionalProperties"
            | b"patternProperties"
            | b"unevaluatedProperties"
            | b"propertyOrdering" => continue,
            _ => text_of(value),
        };
        members.push(format!("{}:{value}", text_of(name)));
    }
    members.push(format!(r#""required":[{}]"#, required.join(",")));
    let schema = format!("{{{}}}", members.join(","));
    Some(NarrowedSchema {
        schema: if is_closed { closed(&schema) } else { schema },
        arguments,
    })
}

/// Returns a narrowed schema that forbids members that it does not name.
pub(crate) fn closed(schema: &str) -> String {
    let is_open =
        Json::parse(schema.as_bytes()).is_ok_and(|json| json.get("additionalProperties").is_none());
    match schema.strip_suffix('}').filter(|_| is_open) {
        Some(start) => format!(r#"{start},"additionalProperties":false}}"#),
        None => schema.to_owned(),
    }
}

/// Returns whether a schema has an argument for any command.
pub(crate) fn has_free_command(schema: &str) -> bool {
    let json = Json::parse(schema.as_bytes()).ok();
    let properties = json.and_then(|json| json.get("properties"));
    let mut properties = properties.into_iter().flat_map(Json::members);
    properties.any(|(name, property)| {
        let [own, constant] = property.pick(["enum", "const"]);
        let name = name.text().unwrap_or_default();
        is_narrowed(&name, Narrows::Commands) && own.or(constant).is_none()
    })
}

fn is_harmless(name: &str, property: Json<'_>, narrows: Narrows) -> bool {
    let more = match narrows {
        Narrows::Commands => "",
        Narrows::Paths => HARMLESS_DELETION_KEYS,
    };
    let mut known = HARMLESS_KEYS
        .split_ascii_whitespace()
        .chain(more.split_ascii_whitespace());
    let kind = property.get("type").and_then(Json::text);
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    known.any(|known| known == name) && kind != "object" && kind != "array"
}

fn text_of(json: Json<'_>) -> String {
    String::from_utf8_lossy(json.bytes()).into_owned()
}

fn is_narrowed(name: &str, narrows: Narrows) -> bool {
    let keys = match narrows {
        Narrows::Commands => COMMAND_KEYS,
        Narrows::Paths => PATH_KEYS,
    };
    keys.split_ascii_whitespace().any(|key| key == name)
        || narrows == Narrows::Paths && PATH_LIST_KEYS.contains(&name)
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
    // Words with quotes or expansions have a meaning only in a shell.
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
    fn the_command_and_what_is_harmless_stays() {
        let schema = r#"{ "type": "object", "properties": { "command": {"type":"string","description":"The command"}, "timeout": {"type": "number"} }, "required": ["command"] }"#;
        let narrowed =
            narrow(schema, Narrows::Commands, &texts(&["npm test"]), true).expect("narrowed");
        assert_eq!(
            narrowed.schema,
            r#"{"type":"object","properties":{"command":{"type":"string","description":"The command (whitelist only: npm test)","enum":["npm test"]},"timeout":{"type": "number"}},"required":["command"],"additionalProperties":false}"#
        );
        assert_eq!(narrowed.arguments, ["command"]);
    }

    #[test]
    fn a_list_of_words_is_allowed_whole() {
        let schema = r#"{"properties":{"command":{"type":"array","items":{"type":"string"}}},"required":[]}"#;
        let narrowed =
            narrow(schema, Narrows::Commands, &texts(&["npm test"]), true).expect("narrowed");
        assert!(
            narrowed
                .schema
                .contains(r#"["npm","test"],["bash","-lc","npm test"]"#)
        );
        assert!(
            narrowed
                .schema
                .ends_with(r#""required":["command"],"additionalProperties":false}"#)
        );
    }

    #[test]
    fn no_other_program_runs_the_command() {
        let schema = r#"{"properties":{"cmd":{"type":"string"},"shell":{"type":"string"}},"required":["cmd"]}"#;
        let narrowed =
            narrow(schema, Narrows::Commands, &texts(&["npm test"]), true).expect("narrowed");
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
        assert_eq!(narrow(free, Narrows::Commands, &texts(&["ls"]), true), None);
        let own = r#"{"properties":{"command":{"enum":["view"]}}}"#;
        assert_eq!(narrow(own, Narrows::Commands, &texts(&["ls"]), true), None);
        let both = narrow(own, Narrows::Commands, &texts(&["ls", "view"]), true).expect("narrowed");
        assert!(both.schema.contains(r#""enum":["view"]"#));
    }
}
