//! `infold run`: one task, live.

use infold_store::{Status, What};
use infold_testkit::{Script, Server, Step};
use serde_json::{Value, json};

use crate::{call, calls, contexts, done, events, home, results, rows};

const ADD: &str = "add() { echo $(($1 - $2)); }\n";
const TEST: &str =
    ". ./add.sh\n[ \"$(add 2 3)\" = 5 ] && echo passed || { echo failed; exit 1; }\n";

#[test]
fn a_task_edits_a_file_runs_its_test_and_checks_it() {
    let edit = json!({"path": "add.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"});
    let server = Server::start(Script::steps([
        call(
            "set_phase",
            json!({"phase": "planning", "plan": ["read both files", "fix add.sh", "run the test"]}),
        ),
        calls(&[
            ("read", json!({"path": "add.sh"})),
            ("read", json!({"path": "test.sh"})),
        ]),
        call("run", json!({"command": "sh test.sh"})),
        call("set_phase", json!({"phase": "executing"})),
        call("edit", edit),
        call("set_phase", json!({"phase": "verifying"})),
        call("run", json!({"command": "sh test.sh"})),
        done("add.sh adds; test.sh passes"),
    ]));
    let home = home(&server, "");
    let work = home.path().join("work");
    std::fs::write(work.join("add.sh"), ADD).unwrap();
    std::fs::write(work.join("test.sh"), TEST).unwrap();
    let ran = home.run("run 'make the test pass' --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "add.sh adds; test.sh passes\n"
    );
    assert!(
        std::fs::read_to_string(work.join("add.sh"))
            .unwrap()
            .contains("$1 + $2")
    );

    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    for expected in [
        "phase: planning",
        "2. fix add.sh",
        "run {\"command\":\"sh test.sh\"}",
        "step 8",
        "completed: 8 steps, 9 tool calls",
    ] {
        assert!(told.contains(expected), "{expected} in\n{told}");
    }
    // The model got the results of its calls, in the order of the calls.
    let last = server.last_call().expect("a request");
    let results = results(&last.messages());
    assert!(
        results[1].contains("$1 - $2") && results[2].contains("passed"),
        "{results:?}"
    );
    assert!(results[3].contains("failed"), "{results:?}");
    assert!(results.last().unwrap().contains("passed"), "{results:?}");
    let offered = last.text();
    for tool in [
        "recall",
        "search_history",
        "pin",
        "set_phase",
        "done",
        "read",
        "edit",
        "run",
    ] {
        assert!(offered.contains(&format!("\"name\":\"{tool}\"")), "{tool}");
    }

    let row = rows(&home).remove(0);
    assert_eq!(row.status, Status::Completed);
    assert_eq!((row.counters.llm_calls, row.counters.tool_calls), (8, 9));
    assert!(row.started_at.is_some() && row.completed_at.is_some());
    assert_eq!(row.cwd.as_deref(), work.to_str());
    // Each call has a start and an end in the log, and its record in tools.jsonl.
    let events = events(&home, row.uuid);
    let starts = events
        .iter()
        .filter(|what| matches!(what, What::CallStarted(_)));
    assert_eq!(starts.count(), 9);
    let dir = contexts(&home).place(row.uuid).unwrap();
    let tools = std::fs::read_to_string(dir.join("tools.jsonl")).unwrap();
    let tools: Vec<Value> = tools
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(tools.len(), 9);
    assert_eq!(tools[3]["tool"], "run");
    assert_eq!(tools[3]["args"], json!({"command": "sh test.sh"}));
    assert_eq!(tools[3]["status"], "error");
    assert!(tools[3]["duration_ms"].is_u64(), "{}", tools[3]);
    assert_eq!(tools[5]["status"], "success");
    assert_eq!(home.run("verify", b"").code, 0);
    assert!(server.take_refusals().is_empty());
}

#[test]
fn without_leave_there_are_no_commands() {
    let server = Server::start(Script::steps([
        call("run", json!({"command": "touch ran"})),
        done("nothing"),
    ]));
    let home = home(&server, "");
    let config = std::fs::read_to_string(home.path().join("config.yaml")).unwrap();
    home.config(config.replace("commands: true, ", ""));
    let ran = home.run("run 'try it' --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert!(!home.path().join("work/ran").exists());
    let told = results(&server.last_call().unwrap().messages()).remove(0);
    assert!(
        told.starts_with("There is no tool `run`, so nothing was run."),
        "{told}"
    );
}

#[test]
fn a_long_result_is_kept_whole_and_shown_by_head_and_tail() {
    let server = Server::start(Script::steps([
        call("run", json!({"command": "seq 1 20000"})),
        call("recall", json!({"range": "4"})),
        done("seen"),
    ]));
    let home = home(&server, ", result_tokens: 500");
    let ran = home.run("run 'count' --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let requests = server.requests();
    let seen: Vec<Vec<String>> = requests
        .iter()
        .filter(|seen| seen.wire().is_some())
        .map(|seen| results(&seen.messages()))
        .collect();
    let shown = &seen[1][0];
    assert!(shown.len() < 4000, "{}", shown.len());
    assert!(
        shown.starts_with("1\n2\n") && shown.contains("20000"),
        "{shown}"
    );
    assert!(
        shown.contains("the tool `recall` shows all of message 4"),
        "{shown}"
    );
    assert!(
        seen[2][1].contains("3000\n"),
        "recall reads what was left out"
    );
    let row = rows(&home).remove(0);
    let log = contexts(&home).read(row.uuid).unwrap();
    let whole = log.message(infold_log::Seq::new(4).unwrap()).unwrap();
    assert!(whole.len() > 100_000);
}

#[test]
fn a_policy_decides_which_tools_are_there_in_each_phase() {
    let server = Server::start(Script::steps([
        call("write", json!({"path": "a", "content": "too early"})),
        call("set_phase", json!({"phase": "executing"})),
        call("write", json!({"path": "a", "content": "now"})),
        done("written"),
    ]));
    let home = home(&server, "");
    let config = std::fs::read_to_string(home.path().join("config.yaml")).unwrap();
    home.config(config + "tools: {phase: planning, permissions: [read, write]}\n");
    let ran = home.run("run 'write a' --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert_eq!(
        std::fs::read_to_string(home.path().join("work/a")).unwrap(),
        "now"
    );
    let asks: Vec<String> = server
        .requests()
        .iter()
        .filter(|seen| seen.wire().is_some())
        .map(|seen| {
            let request: Value = serde_json::from_str(&seen.text()).unwrap();
            request["tools"].to_string()
        })
        .collect();
    let offers = |text: &String| text.contains("\"name\":\"write\"");
    assert_eq!(
        asks.iter().map(offers).collect::<Vec<_>>(),
        [false, false, true, true]
    );
    let row = rows(&home).remove(0);
    let events = events(&home, row.uuid);
    let shown = events
        .iter()
        .filter(|what| matches!(what, What::ToolsShown(_)));
    assert_eq!(shown.count(), 2);
    let refused = events
        .iter()
        .filter(|what| matches!(what, What::Refusal(_)));
    assert_eq!(refused.count(), 1);
}

#[test]
fn a_failed_task_says_so_and_a_limit_sets_it_aside() {
    let server = Server::start(Script::steps([call(
        "done",
        json!({"summary": "the file is not there", "failed": true}),
    )]));
    let home = home(&server, "");
    let ran = home.run("run 'read it' --workspace work", b"");
    assert_eq!(ran.code, 1);
    let row = rows(&home).remove(0);
    assert_eq!(row.status, Status::Failed);
    assert_eq!(row.error_message.as_deref(), Some("the file is not there"));

    let server = Server::start(Script::decide(|seen| {
        let path = format!("f{}", seen.messages().len());
        call("list", json!({ "path": path }))
    }));
    let home = crate::home(&server, ", max_steps: 3");
    let ran = home.run("run 'look around' --workspace work --json", b"");
    assert_eq!(ran.code, 1);
    let end: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(end["status"], "paused");
    assert_eq!(end["text"], "stopped after 3 steps (work.max_steps)");
    assert_eq!(end["steps"], 3);
    let row = rows(&home).remove(0);
    assert_eq!(row.status, Status::Paused);
    assert_eq!(
        row.error_message.as_deref(),
        Some("stopped after 3 steps (work.max_steps)")
    );
}

#[test]
fn a_reply_without_a_call_is_printed_once() {
    let server = Server::start(Script::steps([
        call("list", json!({})),
        Step::say("all is \u{1b}[31mwell"),
    ]));
    let home = home(&server, "");
    let ran = home.run("run 'look' --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "all is \u{1b}[31mwell\n"
    );
}

#[test]
fn a_terminal_gets_no_escape_sequences_of_the_model() {
    let server = Server::start(Script::decide(|_| done("all is \u{1b}[31mwell")));
    let home = home(&server, "");
    let program = env!("CARGO_BIN_EXE_infold");
    let contexts = home.contexts();
    let line = format!(
        "{program} --contexts {} run look --workspace work",
        contexts.display()
    );
    let ran = std::process::Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(home.path())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.path())
        .env("NO_COLOR", "1")
        .env("INFOLD_CONFIG", "config.yaml")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("util-linux has it");
    let shown = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(shown.contains("all is \u{fffd}[31mwell"), "{shown}");
    assert!(!shown.contains("\u{1b}[31m"), "{shown}");
}

#[test]
fn a_limit_of_cost_that_cannot_be_applied_is_told_of_once() {
    let server = Server::start(Script::steps([call("list", json!({})), done("ok")]));
    let home = home(&server, ", max_cost: 1");
    let ran = home.run("run 'look' --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(
        told.matches("work.max_cost has no effect").count(),
        1,
        "{told}"
    );
}

#[test]
fn time_travel_works_on_such_a_task() {
    let server = Server::start(Script::steps([
        call("run", json!({"command": "echo one >> log"})),
        call("run", json!({"command": "echo two >> log"})),
        done("both"),
    ]));
    let home = home(&server, ", max_steps: 2");
    let ran = home.run("run 'twice' --workspace work", b"");
    assert_eq!(ran.code, 1, "{}", home.transcript(&ran));
    home.meet(&String::from_utf8_lossy(&ran.stderr));
    let view = |home: &crate::Home, more: &str| {
        let ran = home.run(&format!("view T1 --raw{more}"), b"");
        assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
        String::from_utf8_lossy(&ran.stdout).lines().count()
    };
    assert_eq!(view(&home, ""), 6);
    assert_eq!(view(&home, " --at 4"), 4);
    assert_eq!(home.run("rewind T1 --to 3", b"").code, 0);
    assert_eq!(home.run("undo T1", b"").code, 0);
    assert_eq!(view(&home, ""), 6);
    assert_eq!(home.run("fork T1 --at 4", b"").code, 0);
    // A rewind to the call itself: its recorded result is taken, and the command does not run again.
    assert_eq!(home.run("rewind T1 --to 3", b"").code, 0);
    let config = std::fs::read_to_string(home.path().join("config.yaml")).unwrap();
    home.config(config.replace("max_steps: 2", "max_steps: 9"));
    let ran = home.run("run --resume T1", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        told.contains("was run before; its recorded result is taken"),
        "{told}"
    );
    let log = std::fs::read_to_string(home.path().join("work/log")).unwrap();
    assert_eq!(log, "one\ntwo\n");
    assert_eq!(home.run("verify", b"").code, 0);
}

#[test]
fn every_api_carries_out_a_task() {
    for api in ["openai", "responses", "anthropic", "gemini", "ollama"] {
        let write = |name: &str| json!({"path": name, "content": name});
        let server = Server::start(Script::steps([
            calls(&[
                ("write", write("a")),
                ("list", json!({})),
                ("list", json!({"path": "sub"})),
            ]),
            calls(&[
                ("read", json!({"path": "a"})),
                ("run", json!({"command": "cat a a"})),
            ]),
            done("written and read"),
        ]));
        let home = home(&server, "");
        let config = std::fs::read_to_string(home.path().join("config.yaml")).unwrap();
        home.config(config.replace("provider: openai", &format!("provider: {api}")));
        std::fs::create_dir(home.path().join("work/sub")).unwrap();
        let ran = home.run("run 'write a' --workspace work", b"");
        assert_eq!(ran.code, 0, "{api}: {}", home.transcript(&ran));
        let row = rows(&home).remove(0);
        assert_eq!(row.status, Status::Completed, "{api}");
        assert_eq!(row.counters.tool_calls, 6, "{api}");
        let refusals = server.take_refusals();
        assert!(refusals.is_empty(), "{api}: {refusals:?}");
        assert!(server.last_call().unwrap().text().contains("aa"), "{api}");
        assert_eq!(home.run("verify", b"").code, 0, "{api}");
    }
}

#[test]
fn a_task_that_outgrows_its_window_is_folded_and_goes_on() {
    const STEPS: usize = 24;
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(Script::decide(move |_| {
        let step = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if step == STEPS {
            return done("counted");
        }
        let command = format!("seq {step}000 {step}400");
        call("run", json!({ "command": command }))
    }));
    let home = home(&server, "");
    let config = std::fs::read_to_string(home.path().join("config.yaml")).unwrap();
    home.config(config.replace("32000", "12000") + "summarizer: extractive\n");
    let ran = home.run("run 'count' --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let row = rows(&home).remove(0);
    assert_eq!(row.status, Status::Completed);
    assert_eq!(row.counters.tool_calls, STEPS as u64 + 1);
    assert!(row.counters.compressions > 0, "{row:?}");
    let last = server.last_call().unwrap().text();
    assert!(
        last.contains("the tool `recall` shows"),
        "a summary names the tool that reads on"
    );
    assert!(server.take_refusals().is_empty());
}

#[test]
fn the_tools_of_a_server_are_offered_and_called() {
    let server = Server::start(Script::steps([
        call("list_conversations", json!({})),
        done("asked the server"),
    ]));
    let home = home(&server, "");
    let config = std::fs::read_to_string(home.path().join("config.yaml")).unwrap();
    let program = env!("CARGO_BIN_EXE_infold");
    let contexts = home.contexts();
    let command = format!("{program} mcp --all --contexts {}", contexts.display());
    home.config(format!(
        "{config}mcp_servers: [{{mcp_server_name: history, command: '{command}', env: {{INFOLD_CONFIG: /dev/null}}}}, {{mcp_server_name: gone, command: /no/such/program}}]\n"
    ));
    let ran = home.run("run 'ask the server' --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(told.contains("MCP server gone"), "{told}");
    assert!(!told.contains("MCP server history"), "{told}");
    let result = results(&server.last_call().unwrap().messages()).remove(0);
    assert!(result.contains("ask the server"), "{result}");
}
