//! Walls between the crates that the compiler cannot keep: each task has one home (`docs/ARCHITECTURE.md`).

use std::path::{Path, PathBuf};

/// Text that may occur in the sources of some crates only, tests apart.
struct Wall {
    /// The task that has one home.
    task: &'static str,
    texts: &'static [&'static str],
    /// Beginnings of the paths in which the texts may occur.
    homes: &'static [&'static str],
}

const WALLS: &[Wall] = &[
    Wall {
        task: "printing",
        texts: &["println!(", "print!(", "dbg!("],
        homes: &["crates/infold-cli/"],
    },
    Wall {
        task: "reading the environment",
        texts: &["env::var", "env::args", "env::current_dir"],
        homes: &[
            "crates/infold-cli/",
            // The variables that a git process inherits.
            "crates/infold-checkpoint/src/git.rs",
            // The command passes the server's token as an argument; the Python package has no such caller.
            "python/src/task.rs",
        ],
    },
    Wall {
        task: "HTTP clients",
        texts: &["reqwest::", "hyper_util::client", "hyper::client"],
        homes: &["crates/infold-provider/"],
    },
    Wall {
        task: "SQL",
        texts: &["rusqlite::"],
        homes: &["crates/infold-store/"],
    },
    Wall {
        task: "the crate of the Model Context Protocol",
        texts: &["rmcp::"],
        homes: &[
            "crates/infold-serve/src/mcp/adapter.rs",
            "crates/infold-toolbox/src/mcp/adapter.rs",
            "crates/infold-toolbox/src/mcp/adapter/",
        ],
    },
    Wall {
        task: "names of members in the JSON of providers",
        texts: &[
            "\"tool_calls\"",
            "\"tool_use\"",
            "\"tool_result\"",
            "\"tool_use_id\"",
            "\"tool_call_id\"",
            "\"functionCall\"",
            "\"functionResponse\"",
            "\"functionDeclarations\"",
            "\"function_call_output\"",
            "\"input_text\"",
            "\"output_text\"",
            "\"input_schema\"",
            "\"finish_reason\"",
            "\"max_completion_tokens\"",
            "\"maxOutputTokens\"",
            "\"num_predict\"",
            "\"systemInstruction\"",
            "\"usageMetadata\"",
            "\"previous_response_id\"",
            "\"prompt_cache_key\"",
            "\"cache_control\"",
            "\"reasoning_content\"",
        ],
        homes: &[
            "crates/infold-wire/",
            "crates/infold-translate/",
            "crates/infold-tags/",
            "crates/infold-tools/",
            // Conversations that are generated for measurements.
            "crates/infold-eval/src/planted.rs",
            "crates/infold-eval/src/probes/",
            // The model that answers the proof of a setup.
            "crates/infold-cli/src/setup/scripted_model.rs",
            // The number of calls of a run, in the command's own output.
            "crates/infold-cli/src/run.rs",
        ],
    },
    Wall {
        task: "the wording of stand-ins and prompts",
        texts: &[
            infold_wire::INTERRUPTED_RESULT,
            infold_wire::RECALLED_HEAD,
            infold_wire::EMPTY_PLACEHOLDER,
            "ummary of ",
            "ummarize ",
            "You are ",
        ],
        homes: &[
            "crates/infold-wire/",
            "crates/infold-engine/",
            "crates/infold-tags/",
            "crates/infold-cli/",
            "crates/infold-eval/",
            "crates/infold-serve/",
            "crates/infold-translate/",
            "crates/infold-work/",
            "python/",
        ],
    },
];

#[test]
fn each_task_stays_in_its_crates() {
    let root = root();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root.join("crates")).expect("the crates") {
        let member = entry.expect("an entry").path();
        if !member.ends_with("infold-testkit") {
            list_sources(&member.join("src"), &mut files);
        }
    }
    list_sources(&root.join("python/src"), &mut files);
    assert!(files.len() > 500, "the sources are found: {}", files.len());
    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).expect("below the root");
        let path = path.to_str().expect("names are ASCII").to_owned();
        let text = std::fs::read_to_string(&file).expect("a source can be read");
        found.extend(violations(&path, &text));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn a_violation_is_found_outside_of_comments_and_tests() {
    let text = "//! println!(\nfn f() {\n    // println!(\n    println!(\"x\");\n}\n#[cfg(test)]\nmod tests {\n    println!()\n}\n";
    let found = violations("crates/infold-log/src/a.rs", text);
    assert_eq!(found, ["crates/infold-log/src/a.rs:4: printing"]);
    assert!(violations("crates/infold-cli/src/a.rs", text).is_empty());
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is here")
}

/// Lists the Rust files below a directory, without tests.
fn list_sources(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).expect("a directory of sources");
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.expect("names are ASCII");
        if matches!(name, "tests" | "tests.rs") {
            continue;
        }
        if path.is_dir() {
            list_sources(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// Returns the lines of a source that belong into another crate.
fn violations(path: &str, text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next();
    let lines = code.unwrap_or_default().lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let found = lines.flat_map(|(at, line)| {
        let walls = WALLS.iter().filter(move |wall| {
            let is_outside = !wall.homes.iter().any(|home| path.starts_with(home));
            is_outside && wall.texts.iter().any(|text| line.contains(text))
        });
        walls.map(move |wall| format!("{path}:{}: {}", at + 1, wall.task))
    });
    found.collect()
}
