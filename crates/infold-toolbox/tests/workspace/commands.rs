//! Commands: what they are given, and how they end.

use std::time::{Duration, Instant};

use infold_toolbox::{CommandRule, ToolLimits};
use serde_json::json;

use crate::Fixture;

fn allowed() -> Fixture {
    Fixture::with(CommandRule::Allowed, ToolLimits::default())
}

#[test]
fn a_command_runs_in_the_workspace_without_keys_and_input() {
    let fixture = allowed();
    fixture.put("a.txt", "content\n");
    assert_eq!(
        fixture.works("run", json!({"command": "cat a.txt"})),
        "content\n"
    );
    let environment = fixture.works("run", json!({"command": "env"}));
    assert!(environment.contains("LANG=C"), "{environment}");
    assert!(!environment.contains("sk-canary"), "{environment}");
    assert_eq!(
        fixture.works("run", json!({"command": "cat; echo $?"})),
        "0\n"
    );
    assert_eq!(
        fixture.works("run", json!({"command": "true"})),
        "(no output)"
    );
}

#[test]
fn output_and_errors_keep_their_order_and_the_code_is_told() {
    let fixture = allowed();
    let command = "echo one; echo two >&2; echo three; exit 3";
    let result = fixture.call("run", json!({"command": command}));
    assert_eq!(result.text, "one\ntwo\nthree\n[exit code 3]");
    assert_eq!(result.error.as_deref(), Some("exit code 3"));
    let killed = fixture.fails("run", json!({"command": "kill -9 $$"}));
    assert_eq!(killed, "killed by signal 9");
    assert!(
        fixture
            .fails("run", json!({"command": "no-such-program"}))
            .contains("not found")
    );
    for command in ["", "  ", "a\0b"] {
        fixture.fails("run", json!({"command": command}));
    }
}

#[test]
fn there_is_no_tool_unless_it_is_allowed() {
    let fixture = Fixture::new();
    let tools = fixture.runtime.block_on(fixture.toolbox.tools());
    assert!(tools.tools.iter().all(|tool| tool.name != "run"));
    assert!(
        fixture
            .fails("run", json!({"command": "touch x"}))
            .contains("no tool `run`")
    );
    assert!(!fixture.root().join("x").exists());
}

/// Says whether a process runs; one that has ended and is not waited for yet does not.
fn is_running(pid: &str) -> bool {
    let state = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", pid])
        .output()
        .unwrap();
    let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

/// Waits until a process has ended.
fn assert_ends(pid: &str) {
    let until = Instant::now() + Duration::from_secs(20);
    while is_running(pid) {
        assert!(Instant::now() < until, "process {pid} runs on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_command_that_hangs_is_killed_with_all_that_it_started() {
    let fixture = allowed();
    let command = "echo begun; sh -c 'echo $$ > pid; exec sleep 600' & sleep 600";
    let result = fixture.call("run", json!({"command": command, "timeout": 1}));
    assert!(
        result.text.starts_with("begun\n[stopped after 1 seconds"),
        "{}",
        result.text
    );
    assert!(result.duration < Duration::from_secs(60));
    assert_ends(fixture.get("pid").trim());
}

#[test]
fn what_a_command_leaves_running_ends_with_it() {
    let fixture = allowed();
    // It holds the output open, too.
    let command = "sh -c 'echo $$ > pid; exec sleep 600' & while ! [ -s pid ]; do sleep 0.01; done; echo done";
    let result = fixture.call("run", json!({"command": command}));
    assert_eq!(result.text, "done\n");
    assert!(result.duration < Duration::from_secs(60));
    assert_ends(fixture.get("pid").trim());
}

#[test]
#[cfg(target_os = "linux")]
fn what_left_the_group_of_a_command_ends_with_it() {
    let fixture = allowed();
    // Its parent ends before it, so that nothing but its environment tells where it comes from.
    let command = "(setsid sh -c 'echo $$ > pid; sleep 600' > /dev/null 2>&1 &); while ! [ -s pid ]; do sleep 0.01; done; echo done";
    let result = fixture.call("run", json!({"command": command}));
    assert_eq!(result.text, "done\n");
    assert_ends(fixture.get("pid").trim());
}

#[test]
fn a_command_that_ignores_signals_is_killed() {
    let fixture = allowed();
    let command = "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 1; done";
    fixture.fails("run", json!({"command": command, "timeout": 1}));
    assert_ends(fixture.get("pid").trim());
}

#[test]
fn dropping_the_call_kills_the_command() {
    let fixture = allowed();
    let arguments = json!({"command": "echo $$ > pid; exec sleep 600"}).to_string();
    fixture.runtime.block_on(async {
        let call = fixture.toolbox.call("run", &arguments);
        let started = async {
            while !std::fs::read_to_string(fixture.root().join("pid"))
                .is_ok_and(|pid| pid.ends_with('\n'))
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            result = call => panic!("{}", result.text),
            () = started => {}
        }
    });
    assert_ends(fixture.get("pid").trim());
}

#[test]
fn output_is_kept_within_the_limit() {
    let limits = ToolLimits {
        max_result_bytes: 64 << 10,
        ..ToolLimits::default()
    };
    let fixture = Fixture::with(CommandRule::Allowed, limits);
    let command = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done";
    let printed = fixture.works("run", json!({"command": command}));
    assert!(printed.len() < (64 << 10) + 100, "{}", printed.len());
    assert!(printed.starts_with("line 0\n") && printed.ends_with("line 19999\n"));
    assert!(printed.contains("bytes left out"), "no mark");
    let endless = fixture.call("run", json!({"command": "yes"}));
    assert!(
        endless.text.contains("printed too much"),
        "{}",
        &endless.text[endless.text.len() - 200..]
    );
    assert!(endless.text.len() < (64 << 10) + 300);
    let binary = fixture.works("run", json!({"command": "printf 'a\\377\\000b'"}));
    assert_eq!(binary, "a\u{fffd}\0b");
}

#[test]
fn commands_run_side_by_side() {
    let fixture = allowed();
    // Each waits for the other.
    let first = json!({"command": "touch one; while ! [ -e two ]; do sleep 0.01; done; echo 1"})
        .to_string();
    let second = json!({"command": "touch two; while ! [ -e one ]; do sleep 0.01; done; echo 2"})
        .to_string();
    let (first, second) = fixture.runtime.block_on(async {
        tokio::join!(
            fixture.toolbox.call("run", &first),
            fixture.toolbox.call("run", &second)
        )
    });
    assert_eq!((first.text.as_str(), second.text.as_str()), ("1\n", "2\n"));
}
