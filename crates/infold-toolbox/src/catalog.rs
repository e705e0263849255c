//! The names by which tools are called.

use std::collections::{HashMap, HashSet};

use crate::mcp::{ServerTool, ToolListing};
use crate::{ServerProblem, Tool};

/// The tools that can be called, by their names.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub tools: Vec<Tool>,
    /// Why tools of servers are missing.
    pub problems: Vec<ServerProblem>,
    targets: HashMap<String, ToolTarget>,
}

/// The tool of a server that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolTarget {
    /// The position of the server.
    pub server: usize,
    /// The name by which the server knows it.
    pub tool: String,
}

/// The longest name that model APIs take.
const MAX_NAME_BYTES: usize = 64;

impl Catalog {
    /// Names the tools of servers. A tool that shares its name with one of another server, one of the workspace or a
    /// reserved name is called by `mcp__SERVER__TOOL`; by that name every one can be called. Of tools of one server with
    /// the same name the first is offered.
    pub fn new<'a>(
        workspace: Vec<Tool>,
        reserved: impl IntoIterator<Item = &'a str>,
        servers: Vec<(&str, ToolListing)>,
    ) -> Catalog {
        let mut uses: HashMap<String, usize> = HashMap::new();
        let own = workspace.iter().map(|tool| tool.name.clone());
        for name in own.chain(reserved.into_iter().map(str::to_owned)) {
            *uses.entry(name).or_default() += 1;
        }
        let mut catalog = Catalog {
            tools: workspace,
            ..Catalog::default()
        };
        let mut offered = Vec::new();
        for (server, (server_name, listed)) in servers.into_iter().enumerate() {
            let mut problem = |reason| {
                catalog.problems.push(ServerProblem {
                    server: server_name.to_owned(),
                    reason,
                });
            };
            listed.problem.into_iter().for_each(&mut problem);
            let mut seen = HashSet::new();
            for tool in listed.tools {
                if seen.insert(tool.name.clone()) {
                    *uses.entry(valid_name(&tool.name)).or_default() += 1;
                    offered.push((server, server_name, tool));
                } else {
                    problem(format!(
                        "it has several tools of the name `{}`; only the first is offered",
                        tool.name
                    ));
                }
            }
        }
        for (server, server_name, tool) in offered {
            catalog.add(server, server_name, tool, &uses);
        }
        catalog
    }

    fn add(
        &mut self,
        server: usize,
        server_name: &str,
        tool: ServerTool,
        uses: &HashMap<String, usize>,
    ) {
        let plain = valid_name(&tool.name);
        let full = format!("mcp__{server_name}__{}", tool.name);
        let mut prefixed = valid_name(&full);
        // Two names may become the same when their characters are replaced.
        if self.targets.contains_key(&prefixed) || uses.contains_key(&prefixed) {
            prefixed = with_digest(&prefixed, &full);
        }
        let name = if uses.get(&plain) == Some(&1) {
            plain
        } else {
            prefixed.clone()
        };
        let target = ToolTarget {
            server,
            tool: tool.name,
        };
        self.targets.insert(name.clone(), target.clone());
        self.targets.insert(prefixed, target);
        self.tools.push(Tool {
            name,
            description: tool.description,
            input_schema: tool.input_schema,
            read_only: tool.read_only,
            server: Some(server_name.to_owned()),
        });
    }

    /// Returns the tool of a server that a name means.
    pub fn target(&self, name: &str) -> Option<&ToolTarget> {
        self.targets.get(name)
    }

    /// Returns the error for an unknown tool, which lists the known ones.
    pub fn describe_missing(&self, name: &str) -> String {
        const MAX_NAMED_TOOLS: usize = 50;
        let names = self.tools.iter().map(|tool| tool.name.as_str());
        let names: Vec<&str> = names.take(MAX_NAMED_TOOLS).collect();
        let mut text = format!(
            "there is no tool `{name}` (there are: {})",
            names.join(", ")
        );
        for problem in &self.problems {
            let ServerProblem { server, reason } = problem;
            text.push_str(&format!("; of the MCP server `{server}`: {reason}"));
        }
        text
    }
}

/// Returns a name that model APIs take: letters, digits, `_` and `-`, at most 64 of them.
fn valid_name(name: &str) -> String {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let valid: String = name
        .chars()
        .map(|c| if is_valid(c) { c } else { '_' })
        .collect();
    if valid.len() > MAX_NAME_BYTES || valid.is_empty() {
        return with_digest(&valid, name);
    }
    valid
}

/// Returns the beginning of a name with a digest of the whole.
fn with_digest(name: &str, whole: &str) -> String {
    // FNV-1a: the same in every version and process, as names are recorded.
    let digest = whole.bytes().fold(0x811c_9dc5_u32, |digest, byte| {
        (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let kept = name.len().min(MAX_NAME_BYTES - 9);
    format!("{}_{digest:08x}", &name[..kept])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str) -> ServerTool {
        ServerTool {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            read_only: false,
        }
    }

    fn listed(names: &[&str]) -> ToolListing {
        ToolListing {
            tools: names.iter().map(|name| tool(name)).collect(),
            problem: None,
        }
    }

    fn own(name: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            read_only: true,
            server: None,
        }
    }

    fn names(catalog: &Catalog) -> Vec<&str> {
        catalog
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect()
    }

    #[test]
    fn only_names_in_conflict_are_prefixed() {
        let files = listed(&["read", "move", "echo"]);
        let other = listed(&["echo", "done", "time"]);
        let servers = vec![("files", files), ("other", other)];
        let catalog = Catalog::new(vec![own("read")], ["done"], servers);
        assert_eq!(
            names(&catalog),
            [
                "read",
                "mcp__files__read",
                "move",
                "mcp__files__echo",
                "mcp__other__echo",
                "mcp__other__done",
                "time"
            ]
        );
        assert_eq!(catalog.target("read"), None, "that of the workspace");
        assert_eq!(catalog.target("echo"), None, "it is not clear whose");
        let target = |server, tool: &str| ToolTarget {
            server,
            tool: tool.to_owned(),
        };
        assert_eq!(catalog.target("time"), Some(&target(1, "time")));
        assert_eq!(catalog.target("mcp__other__time"), Some(&target(1, "time")));
        assert_eq!(catalog.target("mcp__other__echo"), Some(&target(1, "echo")));
    }

    #[test]
    fn of_two_tools_of_one_name_the_first_is_offered() {
        let catalog = Catalog::new(Vec::new(), [], vec![("s", listed(&["a", "b", "a"]))]);
        assert_eq!(names(&catalog), ["a", "b"]);
        assert!(
            catalog.problems[0]
                .reason
                .contains("several tools of the name `a`")
        );
    }

    #[test]
    fn names_are_unique_and_valid_whatever_servers_call_their_tools() {
        let long = "x".repeat(100);
        let longer = "x".repeat(101);
        let tools = [
            "a.b",
            "a/b",
            "a_b",
            "",
            &long,
            &longer,
            "é",
            "漢",
            "mcp__s__a_b",
            "mcp__s__a.b",
        ];
        let servers = vec![("s", listed(&tools)), ("t", listed(&tools))];
        let catalog = Catalog::new(vec![own("a_b")], ["mcp__t__a_b"], servers);
        let mut unique = HashSet::new();
        for tool in &catalog.tools {
            let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(tool.name.chars().all(is_valid), "{}", tool.name);
            assert!(
                (1..=MAX_NAME_BYTES).contains(&tool.name.len()),
                "{}",
                tool.name
            );
            assert!(unique.insert(&tool.name), "{} twice", tool.name);
        }
        assert_eq!(unique.len(), 1 + 2 * tools.len());
        let servers = catalog.tools.iter().filter(|tool| tool.server.is_some());
        let targets: HashSet<_> = servers
            .map(|tool| {
                let target = catalog.target(&tool.name).unwrap();
                (target.server, target.tool.clone())
            })
            .collect();
        assert_eq!(
            targets.len(),
            2 * tools.len(),
            "each name means its own tool"
        );
    }
}
