//! Messages as the Anthropic API takes them, one JSON object a line.

use super::disk::absolute;
use super::script::{Call, Tool};

/// The result of a tool.
pub struct Answer {
    text: String,
    failed: bool,
}

impl Answer {
    pub fn good(text: String) -> Answer {
        Answer {
            text,
            failed: false,
        }
    }

    /// The answer of a command with this exit status.
    pub fn ended(status: u8, text: String) -> Answer {
        match status {
            0 => Answer::good(text),
            _ => Answer {
                text: format!("Exit code {status}\n{text}"),
                failed: true,
            },
        }
    }
}

/// The lines so far, and the assistant's message that may still grow.
#[derive(Default)]
pub struct Transcript {
    lines: String,
    blocks: Vec<String>,
    results: Vec<String>,
    calls: usize,
}

impl Transcript {
    pub fn asked(&mut self, text: &str) {
        self.flush();
        self.line("user", &string(text));
    }

    pub fn said(&mut self, text: &str) {
        self.flush();
        self.blocks
            .push(object(&[("type", string("text")), ("text", string(text))]));
    }

    /// Adds a call, with its answer unless it was interrupted.
    pub fn called(&mut self, call: &Call, answer: Option<Answer>) {
        // A call after a spoken text belongs to the same message; one after a call only if the script says so.
        if !self.results.is_empty() && !call.joined {
            self.flush();
        }
        self.calls += 1;
        let id = format!("toolu_{:04}", self.calls);
        let (name, input) = tool(&call.tool);
        self.blocks.push(object(&[
            ("type", string("tool_use")),
            ("id", string(&id)),
            ("name", string(name)),
            ("input", input),
        ]));
        if let Some(answer) = answer {
            self.results.push(result(&id, &answer));
        }
    }

    pub fn finish(mut self) -> String {
        self.flush();
        self.lines
    }

    /// Ends the assistant's message, and hands over the results of its calls.
    fn flush(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        let results = std::mem::take(&mut self.results);
        if !blocks.is_empty() {
            self.line("assistant", &array(&blocks));
        }
        if !results.is_empty() {
            self.line("user", &array(&results));
        }
    }

    fn line(&mut self, role: &str, content: &str) {
        let message = object(&[("role", string(role)), ("content", content.to_owned())]);
        self.lines.push_str(&message);
        self.lines.push('\n');
    }
}

fn result(id: &str, answer: &Answer) -> String {
    let mut fields = vec![
        ("type", string("tool_result")),
        ("tool_use_id", string(id)),
        ("content", string(&answer.text)),
    ];
    if answer.failed {
        fields.push(("is_error", "true".to_owned()));
    }
    object(&fields)
}

/// A tool's name and its input.
fn tool(tool: &Tool) -> (&'static str, String) {
    match tool {
        Tool::Read { path, lines } => {
            let mut fields = vec![("file_path", string(&absolute(path)))];
            if let Some((from, count)) = lines {
                fields.push(("offset", from.to_string()));
                fields.push(("limit", count.to_string()));
            }
            ("Read", object(&fields))
        }
        Tool::Grep { pattern, path } => {
            let fields = [
                ("pattern", string(pattern)),
                ("path", string(&absolute(path))),
                ("output_mode", string("content")),
            ];
            ("Grep", object(&fields))
        }
        Tool::Write { path, text } => {
            let fields = [
                ("file_path", string(&absolute(path))),
                ("content", string(text)),
            ];
            ("Write", object(&fields))
        }
        Tool::Edit { path, old, new } => {
            let fields = [
                ("file_path", string(&absolute(path))),
                ("old_string", string(old)),
                ("new_string", string(new)),
            ];
            ("Edit", object(&fields))
        }
        Tool::Todo(todos) => {
            let todos: Vec<String> = todos.iter().map(todo).collect();
            ("TodoWrite", object(&[("todos", array(&todos))]))
        }
        Tool::Bash(command) => ("Bash", object(&[("command", string(&command.line))])),
    }
}

fn todo((mark, text): &(char, String)) -> String {
    let status = match mark {
        'x' => "completed",
        '>' => "in_progress",
        _ => "pending",
    };
    object(&[("content", string(text)), ("status", string(status))])
}

fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn array(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ => out.push(letter),
        }
    }
    out.push('"');
    out
}
