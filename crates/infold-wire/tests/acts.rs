//! The actions in the messages of common agents, each in its own dialect.

use infold_wire::Message;
use infold_wire::tool_action::{MessageAction, ToolAction, message_actions, read_outcome};

/// Returns the actions of a message, one on each line.
fn told(message: &str) -> String {
    let message = Message::parse(message.as_bytes()).expect("a message");
    let mut out = Vec::new();
    for deed in message_actions(&message) {
        match deed {
            MessageAction::Text(text) => out.push(format!("says {}", text.trim())),
            MessageAction::Result(given) => {
                out.push(format!("gives {} {:?}", given.text.trim(), given.failed))
            }
            MessageAction::Call(call) => out.extend(call.actions.iter().map(act)),
        }
    }
    out.join("; ")
}

fn act(act: &ToolAction) -> String {
    match act {
        ToolAction::Read(path) => format!("reads {path}"),
        ToolAction::Write(path) => format!("writes {path}"),
        ToolAction::Create(path) => format!("creates {path}"),
        ToolAction::Edit(path) => format!("edits {path}"),
        ToolAction::Delete(path) => format!("deletes {path}"),
        ToolAction::Move { from, to } => format!("moves {from} to {to}"),
        ToolAction::Run(command) => format!("runs {command}"),
        ToolAction::Search { what, path } => format!("looks for {what} in {path:?}"),
        ToolAction::Todos(list) => {
            let list = list
                .iter()
                .map(|todo| format!("{} {:?}", todo.text, todo.state));
            list.collect::<Vec<_>>().join(", ")
        }
        ToolAction::Plan(text) => format!("plans {text}"),
        ToolAction::Other(about) => format!("calls with {about}"),
    }
}

fn anthropic(name: &str, input: &str) -> String {
    told(&format!(
        r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"{name}","input":{input}}}]}}"#
    ))
}

fn chat(name: &str, arguments: &str) -> String {
    let arguments = infold_wire::quote(arguments);
    told(&format!(
        r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"t","type":"function","function":{{"name":"{name}","arguments":{arguments}}}}}]}}"#
    ))
}

#[test]
fn claude_code() {
    assert_eq!(
        anthropic("Read", r#"{"file_path":"/a/b.rs"}"#),
        "reads /a/b.rs"
    );
    assert_eq!(
        anthropic("Write", r#"{"file_path":"b.rs","content":"x"}"#),
        "writes b.rs"
    );
    assert_eq!(
        anthropic("MultiEdit", r#"{"file_path":"b.rs","edits":[]}"#),
        "edits b.rs"
    );
    assert_eq!(
        anthropic("Bash", r#"{"command":"ls -l","description":"list"}"#),
        "runs ls -l"
    );
    assert_eq!(
        anthropic("Grep", r#"{"pattern":"fn x","path":"src"}"#),
        "looks for fn x in Some(\"src\")"
    );
    assert_eq!(
        anthropic(
            "TodoWrite",
            r#"{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"}]}"#
        ),
        "a Done, b Doing"
    );
    assert_eq!(
        anthropic("Task", r#"{"description":"find it"}"#),
        "calls with find it"
    );
    assert_eq!(
        anthropic("mcp__files__read_file", r#"{"path":"x"}"#),
        "reads x"
    );
}

#[test]
fn codex() {
    assert_eq!(
        chat("shell", r#"{"command":["bash","-lc","cargo test"]}"#),
        "runs cargo test"
    );
    assert_eq!(chat("exec_command", r#"{"cmd":"ls"}"#), "runs ls");
    let patch = "*** Begin Patch\n*** Add File: a.rs\n+x\n*** Update File: b.rs\n*** Move to: c.rs\n@@\n-y\n*** Delete File: d.rs\n*** End Patch";
    let quoted = infold_wire::quote(patch);
    let acts = "creates a.rs; edits b.rs; moves b.rs to c.rs; deletes d.rs";
    assert_eq!(
        chat("apply_patch", &format!(r#"{{"input":{quoted}}}"#)),
        acts
    );
    assert_eq!(chat("apply_patch", patch), acts);
    let shell = format!(
        r#"{{"command":["bash","-lc",{}]}}"#,
        infold_wire::quote(&format!("apply_patch <<'E'\n{patch}\nE"))
    );
    assert_eq!(chat("shell", &shell), acts);
    assert_eq!(
        chat(
            "update_plan",
            r#"{"plan":[{"step":"one","status":"pending"}]}"#
        ),
        "one Open"
    );
}

#[test]
fn roo_and_cline() {
    assert_eq!(
        anthropic("write_to_file", r#"{"path":"a.ts","content":""}"#),
        "writes a.ts"
    );
    assert_eq!(
        anthropic("apply_diff", r#"{"path":"a.ts","diff":""}"#),
        "edits a.ts"
    );
    assert_eq!(
        anthropic("execute_command", r#"{"command":"npm t"}"#),
        "runs npm t"
    );
    assert_eq!(
        anthropic("read_file", r#"{"files":[{"path":"a"},{"path":"b"}]}"#),
        "reads a; reads b"
    );
    assert_eq!(
        anthropic("update_todo_list", r#"{"todos":"[x] a\n[-] b\n[ ] c"}"#),
        "a Done, b Doing, c Open"
    );
    assert_eq!(
        told(
            r#"{"role":"assistant","content":"Looking.\n<read_file>\n<path>src/a.rs</path>\n</read_file>"}"#
        ),
        "says Looking.; reads src/a.rs"
    );
    assert_eq!(
        told(r#"{"role":"user","content":"[read_file for 'src/a.rs'] Result:\n\nfn a() {}"}"#),
        "gives fn a() {} None"
    );
}

#[test]
fn gemini_pi_and_swe_agent() {
    assert_eq!(
        chat(
            "replace",
            r#"{"file_path":"a","old_string":"x","new_string":"y"}"#
        ),
        "edits a"
    );
    assert_eq!(chat("run_shell_command", r#"{"command":"ls"}"#), "runs ls");
    assert_eq!(
        anthropic("edit", r#"{"path":"a","oldText":"x","newText":"y"}"#),
        "edits a"
    );
    assert_eq!(
        anthropic(
            "str_replace_editor",
            r#"{"command":"view","path":"/r/a.py"}"#
        ),
        "reads /r/a.py"
    );
    assert_eq!(
        anthropic(
            "str_replace_editor",
            r#"{"command":"create","path":"/r/a.py"}"#
        ),
        "creates /r/a.py"
    );
    assert_eq!(
        anthropic(
            "str_replace_editor",
            r#"{"command":"str_replace","path":"/r/a.py"}"#
        ),
        "edits /r/a.py"
    );
}

#[test]
fn aider() {
    let text = "Renaming it.\n\nsrc/a.py\n```python\n<<<<<<< SEARCH\nold_name\n=======\nnew_name\n>>>>>>> REPLACE\n```\n";
    let message = format!(
        r#"{{"role":"assistant","content":{}}}"#,
        infold_wire::quote(text)
    );
    assert_eq!(
        told(&message),
        "says Renaming it.\n\nsrc/a.py; edits src/a.py"
    );
}

#[test]
fn a_tool_nobody_knows_shows_what_it_can() {
    assert_eq!(
        chat("frobnicate", r#"{"user_id":"u_1","n":3}"#),
        "calls with u_1, 3"
    );
    assert_eq!(chat("frob", r#"{"cmd":"x --y"}"#), "runs x --y");
    assert_eq!(chat("code_view", r#"{"file":"x.c"}"#), "reads x.c");
    assert_eq!(chat("frob", "not json"), "calls with not json");
    assert_eq!(chat("", ""), "calls with ");
    let long = "x".repeat(5000);
    let told = chat("bash", &format!(r#"{{"command":"{long}"}}"#));
    assert!(told.starts_with("runs xxx") && told.len() < 1100, "{told}");
}

#[test]
fn how_things_ended() {
    let ran = |text: &str| {
        let ending = read_outcome(text, None, true);
        (ending.failed, ending.code, ending.key.unwrap_or_default())
    };
    assert_eq!(
        ran("all good\n[exit code: 0]"),
        (Some(false), Some(0), String::new())
    );
    assert_eq!(
        ran("boom\nProcess exited with code 2"),
        (Some(true), Some(2), "boom".into())
    );
    assert_eq!(
        ran("==== 3 failed, 10 passed in 1s ===="),
        (
            Some(true),
            None,
            "==== 3 failed, 10 passed in 1s ====".into()
        )
    );
    assert_eq!(ran("test result: ok. 7 passed; 0 failed;").0, Some(false));
    assert_eq!(
        ran(
            "   Compiling x\nerror[E0308]: mismatched types\n  --> a.rs:1\nerror: could not compile"
        ),
        (Some(true), None, "error[E0308]: mismatched types".into())
    );
    assert_eq!(
        ran("Traceback (most recent call last):\n  File \"a.py\"\nValueError: first\nKeyError: 'last'").2,
        "KeyError: 'last'"
    );
    assert_eq!(ran("\u{1b}[31merror: red\u{1b}[0m").2, "error: red");
    assert_eq!(ran("a\nb"), (None, None, String::new()));
    // A runner of tasks says so behind a pipe, too.
    assert_eq!(
        ran("5 issues:\n* lll: 5\n[lint] ERROR task failed").0,
        Some(true)
    );
    assert_eq!(ran("npm error command failed").0, Some(true));
    // A printed log contains the exit codes of other commands.
    let log = format!("{0}\nexit code 1\n{0}", "cleaning up ".repeat(60));
    assert_eq!(ran(&log).1, None);
    // A file that speaks of errors is not one.
    assert_eq!(
        read_outcome("// error: is printed\nfn error() {}\n", None, false).failed,
        None
    );
    assert_eq!(
        read_outcome("Error: no such file", None, false).failed,
        Some(true)
    );
    assert_eq!(
        read_outcome("whatever", Some(true), false).key.as_deref(),
        Some("whatever")
    );
}
