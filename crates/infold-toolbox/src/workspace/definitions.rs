//! The definitions of the workspace tools that a model reads.

use serde_json::{Value, json};

use crate::{Tool, ToolLimits};

/// Returns the tools that use files.
pub fn file_tools() -> Vec<Tool> {
    let path = "Path of the file, relative to the workspace";
    vec![
        tool(
            "read",
            "Reads a text file of the workspace, or a range of its lines.",
            true,
            json!({"path": text(path),
                "offset": number("The first line, counted from 1; the beginning if it is left out"),
                "limit": number("The number of lines; all if it is left out")}),
            &["path"],
        ),
        tool(
            "write",
            "Writes a whole file of the workspace: creates it, with the directories it is in, or replaces all that it holds. Use `edit` to change a part.",
            false,
            json!({"path": text(path), "content": text("All that the file holds afterwards")}),
            &["path", "content"],
        ),
        tool(
            "edit",
            "Replaces a text in a file of the workspace. The text must occur exactly once, or `replace_all` be set.",
            false,
            json!({"path": text(path),
                "old_string": text("The text to replace, exactly as it is in the file, white space too"),
                "new_string": text("The text to put in its place"),
                "replace_all": flag("Replaces every occurrence")}),
            &["path", "old_string", "new_string"],
        ),
        tool(
            "list",
            "Lists a directory of the workspace, or the files in it that match a glob. Leaves out what .gitignore does.",
            true,
            json!({"path": text("Path of the directory, relative to the workspace; the workspace itself if it is left out"),
                "depth": number("How many levels to list; 1 if it is left out, all with a glob"),
                "glob": text("Lists only paths that match, such as `*.rs` or `src/**/*.ts`"),
                "all": flag("Lists what .gitignore leaves out, too")}),
            &[],
        ),
        tool(
            "search",
            "Finds lines that match a regular expression in the files of the workspace. Leaves out what .gitignore does, and binary files.",
            true,
            json!({"pattern": text("A regular expression (as of Rust or RE2: no look-around, no back-references)"),
                "path": text("The directory or file to search; the whole workspace if it is left out"),
                "glob": text("Searches only files whose path matches, such as `*.rs` or `src/**/*.ts`"),
                "ignore_case": flag("Treats upper and lower case alike"),
                "limit": number("The number of matches; 100 if it is left out, at most 1000"),
                "all": flag("Searches what .gitignore leaves out, too")}),
            &["pattern"],
        ),
    ]
}

/// Returns the tool that runs commands.
pub fn command_tool(limits: &ToolLimits) -> Tool {
    let about = format!(
        "Runs a command in the workspace with `sh -c`, and returns what it prints, standard error too. Each call starts anew in the workspace's directory, has no input, and ends with all that it started, background processes too; at most after {} seconds unless `timeout` says otherwise.",
        limits.command_timeout.as_secs()
    );
    let timeout = format!(
        "Seconds after which the command is stopped, at most {}",
        limits.max_command_timeout.as_secs()
    );
    tool(
        "run",
        &about,
        false,
        json!({"command": text("A command line for sh, such as `cargo test 2>&1 | tail -50`"),
            "timeout": number(&timeout)}),
        &["command"],
    )
}

fn tool(
    name: &str,
    description: &str,
    read_only: bool,
    properties: Value,
    required: &[&str],
) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: json!({"type": "object", "properties": properties, "required": required,
            "additionalProperties": false}),
        read_only,
        server: None,
    }
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn number(about: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": about})
}

fn flag(about: &str) -> Value {
    json!({"type": "boolean", "description": about})
}
