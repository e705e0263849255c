//! Reads the section `mcp_servers`: servers whose tools the tasks of workers may use.

use super::reader::{ConfigReader, Section, value_problem};
use super::sections::is_http;
use super::yaml::{YamlKind, YamlNode};
use super::{ConfigProblem, Secret};
use crate::profile::{Origin, Setting};

/// An MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServerConfig {
    /// The server's name.
    pub name: String,
    /// The transport.
    pub access: McpAccess,
    /// The time limit in seconds for starting the server, and for one call.
    pub timeout: Option<Setting<u64>>,
    /// The place where it was set.
    pub origin: Origin,
}

/// The transport of an MCP server.
#[derive(Clone, Debug, PartialEq)]
pub enum McpAccess {
    /// A process.
    Command {
        /// The command that starts it.
        command: McpCommand,
        /// Variables of its environment.
        env: Vec<(String, Secret)>,
    },
    /// Streamable HTTP.
    Http {
        /// The server's address.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, Secret)>,
    },
}

/// The command that starts a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpCommand {
    /// A command line, which is split as a shell does.
    Line(String),
    /// A program and its arguments.
    Words(Vec<String>),
}

const KEYS: &str = "mcp_server_name command args env url headers timeout";
const COMMAND: &str = "a command, or a list of its words";

/// Reads the servers: a list of them with their names, or a mapping of names to them.
pub(super) fn read(reader: &mut ConfigReader<'_>, node: &YamlNode) -> Vec<McpServerConfig> {
    let servers: Vec<(Option<&str>, &YamlNode)> = match &node.kind {
        YamlKind::List(nodes) => nodes.iter().map(|node| (None, node)).collect(),
        YamlKind::Map(members) => members
            .iter()
            .map(|member| (Some(member.key.as_str()), &member.value))
            .collect(),
        YamlKind::Scalar { .. } if node.is_null() => Vec::new(),
        YamlKind::Scalar { .. } => {
            let found = "something else".to_owned();
            reader.report(
                node.line,
                value_problem("mcp_servers", "a list of servers", found),
            );
            Vec::new()
        }
    };
    let read = servers.into_iter();
    read.filter_map(|(name, node)| read_server(reader, name, node))
        .collect()
}

fn read_server(
    reader: &mut ConfigReader<'_>,
    name: Option<&str>,
    node: &YamlNode,
) -> Option<McpServerConfig> {
    let origin = reader.origin(node.line);
    let path = name.map_or("mcp_servers".to_owned(), |name| {
        format!("mcp_servers.{name}")
    });
    let mut section = reader.section(&path, node, KEYS);
    let given = section.text("mcp_server_name").map(|set| set.value);
    let name = given.or_else(|| name.map(str::to_owned));
    let timeout = section.positive("timeout", "a number of seconds");
    let url = section.value(
        "url",
        "an address that starts with http:// or https://",
        |scalar| is_http(&scalar.text).then(|| scalar.text.clone()),
    );
    let command = read_command(&mut section);
    let (env, headers) = (
        read_map(&mut section, "env"),
        read_map(&mut section, "headers"),
    );
    let access = match (command, url) {
        (Some(command), None) => McpAccess::Command { command, env },
        (None, Some(url)) => McpAccess::Http {
            url: url.value,
            headers,
        },
        _ => {
            let problem = missing(&path, "either `command` or `url`");
            reader.report(node.line, problem);
            return None;
        }
    };
    let Some(name) = name.filter(|name| is_name(name)) else {
        let problem = missing(&path, "an `mcp_server_name` of letters, digits, _ and -");
        reader.report(node.line, problem);
        return None;
    };
    Some(McpServerConfig {
        name,
        access,
        timeout,
        origin,
    })
}

fn missing(path: &str, expected: &str) -> ConfigProblem {
    value_problem(path, expected, "none, or both".to_owned())
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(is_part)
}

fn read_command(section: &mut Section<'_, '_, '_>) -> Option<McpCommand> {
    let args = read_words(section, "args");
    let member = section.get("command")?;
    if let YamlKind::List(_) = member.value.kind {
        let mut words = read_words(section, "command")?;
        words.extend(args.unwrap_or_default());
        return (!words.is_empty()).then_some(McpCommand::Words(words));
    }
    let line = section.value("command", COMMAND, |scalar| {
        (!scalar.text.trim().is_empty()).then(|| scalar.text.clone())
    });
    let line = line?.value;
    Some(match args {
        Some(args) => McpCommand::Words([vec![line], args].concat()),
        None => McpCommand::Line(line),
    })
}

fn read_words(section: &mut Section<'_, '_, '_>, key: &str) -> Option<Vec<String>> {
    let member = section.get(key)?;
    let path = section.path(key);
    let YamlKind::List(nodes) = &member.value.kind else {
        let problem = value_problem(&path, "a list of words", "something else".to_owned());
        section.reader.report(member.value.line, problem);
        return None;
    };
    let mut words = Vec::new();
    for node in nodes {
        let word = section.reader.scalar(&path, node, "a word");
        words.extend(word.map(|scalar| scalar.text));
    }
    Some(words)
}

/// Reads a mapping of names to texts that may be secret.
fn read_map(section: &mut Section<'_, '_, '_>, key: &str) -> Vec<(String, Secret)> {
    let Some(member) = section.get(key) else {
        return Vec::new();
    };
    let path = section.path(key);
    let members = section.reader.open(&path, &member.value).members().iter();
    let mut read = Vec::new();
    for member in members {
        let path = format!("{path}.{}", member.key);
        let value = section.reader.scalar(&path, &member.value, "a text");
        let secret = value.map(|scalar| (member.key.clone(), Secret::new(scalar.text)));
        read.extend(secret);
    }
    read
}
