//! The client: sends the whole history before each recorded reply, as Claude Code does.

use std::net::SocketAddr;

use infold_wire::{Json, JsonKind, Message, quote};

use super::Failure;
use super::http::{Connection, Received};
use super::record::Record;
use super::upstream::CACHE_MARKER;

/// A client in the middle of a session.
pub struct Client<'a> {
    connection: Connection,
    address: SocketAddr,
    record: &'a Record,
    /// The request up to its first message.
    head: String,
    /// The messages that were sent before, each followed by a comma.
    history: Vec<u8>,
    sent: usize,
}

/// The client's system prompt, for sessions without one.
const SYSTEM: &str = "You are a coding agent that works in the user's terminal. Help with engineering tasks: find your way around \
    the code, change it, run it, and say briefly what you did.\n\nRead a file before you edit it. Follow the conventions of the code \
    around your change. Prefer small edits to rewrites. Run the tests that a change may affect. Never commit unless you are asked to. \
    Ask when a request can be read in two ways that lead to different work. Keep answers short: what was done, what was found, what \
    is left. Refer to code as path:line.";

/// Tools as Claude Code offers them: name, description, parameters.
const TOOLS: [(&str, &str, &[&str]); 8] = [
    (
        "Bash",
        "Runs a command in a shell that keeps its working directory.",
        &["command", "description", "timeout"],
    ),
    (
        "Read",
        "Reads a file, whole or from a line on.",
        &["file_path", "offset", "limit"],
    ),
    (
        "Edit",
        "Replaces a text that occurs exactly once in a file.",
        &["file_path", "old_string", "new_string"],
    ),
    (
        "Write",
        "Writes a file, in place of what it held.",
        &["file_path", "content"],
    ),
    (
        "Grep",
        "Searches files for a regular expression.",
        &["pattern", "path", "glob", "output_mode"],
    ),
    (
        "Glob",
        "Lists files whose paths match a pattern.",
        &["pattern", "path"],
    ),
    (
        "Task",
        "Hands a piece of work to another agent and returns its report.",
        &["description", "prompt", "subagent_type"],
    ),
    (
        "TodoWrite",
        "Keeps the list of what is to be done.",
        &["todos"],
    ),
];

impl<'a> Client<'a> {
    /// A client that has sent nothing yet.
    pub fn new(
        address: SocketAddr,
        record: &'a Record,
        model: &str,
        max_tokens: u64,
    ) -> Result<Client<'a>, Failure> {
        Ok(Client {
            connection: Connection::open(address)?,
            address,
            record,
            head: format!(
                r#"{{"model":{},"max_tokens":{max_tokens},"stream":true,"metadata":{{"user_id":"user_live_account__session_1e55f00d-0000-4000-8000-000000000001"}},{},"messages":["#,
                quote(model),
                frame(record),
            ),
            history: Vec::new(),
            sent: 0,
        })
    }

    /// Sends all messages before this place, and returns the reply.
    pub fn ask(&mut self, place: usize) -> Result<Received, Failure> {
        for message in &self.record.messages[self.sent..place - 1] {
            self.history.extend_from_slice(&message.bytes);
            self.history.push(b',');
        }
        self.sent = place - 1;
        let last = marked(&self.record.messages[place - 1].bytes)?;
        let body = [self.head.as_bytes(), &self.history, &last, b"]}"];
        let length: usize = body.iter().map(|part| part.len()).sum();
        let head = format!(
            "POST /v1/messages?beta=true HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
            anthropic-version: 2023-06-01\r\nx-api-key: a-key-for-nobody\r\n\r\n",
            self.address
        );
        self.connection
            .write(&[head.as_bytes(), body[0], body[1], body[2], body[3]])?;
        let reply = self.connection.read()?;
        Ok(reply.ok_or("the proxy hung up")?)
    }
}

/// Returns the members with the model, the instructions and the tools.
pub fn frame(record: &Record) -> String {
    let system = match &*record.system {
        "" => SYSTEM,
        system => system,
    };
    let tools: Vec<String> = TOOLS.iter().map(tool_json).collect();
    format!(
        r#""system":[{{"type":"text","text":{}{CACHE_MARKER}}}],"tools":[{}]"#,
        quote(system),
        tools.join(",")
    )
}

fn tool_json((name, description, parameters): &(&str, &str, &[&str])) -> String {
    let properties: Vec<String> = parameters
        .iter()
        .map(|parameter| format!(r#""{parameter}":{{"type":"string"}}"#))
        .collect();
    format!(
        r#"{{"name":"{name}","description":{},"input_schema":{{"type":"object","properties":{{{}}},"required":["{}"]}}}}"#,
        quote(description),
        properties.join(","),
        parameters[0]
    )
}

/// A message with a cache marker in its last block, if that can have one.
fn marked(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let message = Message::parse(bytes)?;
    let content = message
        .content()
        .filter(|content| content.kind() == JsonKind::Array);
    let last = content.and_then(|content| content.elements().last());
    let takes_marker = |block: &Json<'_>| {
        let kind = block.get("type");
        kind.is_some_and(|kind| kind.is("text") || kind.is("tool_result") || kind.is("image"))
            && block.get("cache_control").is_none()
    };
    let Some(last) = last.filter(takes_marker) else {
        return Ok(bytes.to_vec());
    };
    let end = last.range().end - 1;
    Ok([&bytes[..end], CACHE_MARKER.as_bytes(), &bytes[end..]].concat())
}
