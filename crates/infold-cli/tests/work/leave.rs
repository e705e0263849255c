//! The permissions of a task: commands, files of its own record, secrets, and the visibility of its process to others.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use infold_store::Status;
use infold_testkit::{Script, Server};
use serde_json::json;

use crate::{call, done, home, results, rows, wait_until};

/// The id of the unprivileged system user.
const NOBODY: u32 = 65534;

fn change_config(home: &crate::Home, change: impl Fn(String) -> String) {
    let config = std::fs::read_to_string(home.path().join("config.yaml")).expect("a configuration");
    home.config(change(config));
}

#[test]
fn leave_to_run_commands_stays_with_the_task_and_with_no_other() {
    let touch = |name: &str| call("run", json!({"command": format!("touch {name}")}));
    let server = Server::start(
        Script::steps([touch("one"), touch("two"), touch("three"), done("touched")])
            .otherwise(|_| done("again")),
    );
    let home = home(&server, ", max_steps: 1");
    change_config(&home, |text| text.replace("commands: true, ", ""));
    let ran = home.run("run 'touch' --workspace work --allow-commands", b"");
    assert_eq!(ran.code, 1, "{}", home.transcript(&ran));
    home.meet(&String::from_utf8_lossy(&ran.stderr));
    assert_eq!(home.run("fork T1", b"").code, 0);
    change_config(&home, |text| text.replace("max_steps: 1", "max_steps: 2"));
    assert_eq!(home.run("run --resume T1", b"").code, 1);
    change_config(&home, |text| text.replace("max_steps: 2", "max_steps: 9"));
    // A worker continues the task with the user's permission.
    assert_eq!(home.run("task resume T1", b"").code, 0);
    assert_eq!(home.run("work --once", b"").code, 0);
    for name in ["one", "two", "three"] {
        assert!(home.path().join("work").join(name).exists(), "{name}");
    }
    // A fork is another task, which may not run commands.
    let ran = home.run("run --resume T2", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let request = server.last_call().unwrap().text();
    let request: serde_json::Value = serde_json::from_str(&request).unwrap();
    assert!(!request["tools"].to_string().contains("\"name\":\"run\""));
}

#[test]
fn a_queued_task_may_run_commands_if_whoever_enqueued_it_said_so() {
    let server = Server::start(Script::decide(|seen| {
        if crate::results(&seen.messages()).is_empty() {
            return call("run", json!({"command": "echo ran >> log"}));
        }
        done("ok")
    }));
    let home = home(&server, "");
    change_config(&home, |text| text.replace("commands: true, ", ""));
    home.run("enqueue one --workspace work --allow-commands", b"");
    home.run("enqueue two --workspace work", b"");
    assert_eq!(home.run("work --once", b"").code, 0);
    let log = std::fs::read_to_string(home.path().join("work/log")).unwrap();
    assert_eq!(log, "ran\n");
}

#[test]
fn the_record_of_tasks_is_kept_from_the_tools_of_a_workspace_that_has_it() {
    let server = Server::start(Script::steps([
        call(
            "search",
            json!({"pattern": "a very special request", "all": true}),
        ),
        call("list", json!({"path": "contexts"})),
        call(
            "write",
            json!({"path": "contexts/running/forged/x", "content": "forged"}),
        ),
        done("looked"),
    ]));
    let home = home(&server, "");
    let ran = home.run("run 'a very special request' --workspace .", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let told = results(&server.last_call().unwrap().messages());
    assert!(told[0].starts_with("(no line matches"), "{}", told[0]);
    assert!(told[1].contains("kept from file tools"), "{}", told[1]);
    assert!(told[2].contains("kept from file tools"), "{}", told[2]);
    assert!(!home.contexts().join("running/forged").exists());
}

#[test]
fn with_redaction_no_tool_gets_what_stands_for_a_secret() {
    let key = ["AKIA", "QYLPMN5HHHFPZAM2"].concat();
    let write = |text: &str| call("write", json!({"path": "env", "content": text}));
    let server = Server::start(Script::steps([
        call("read", json!({"path": "env"})),
        write("KEY=[redacted:aws-access-token]\nPORT=2\n"),
        write(&format!("KEY={key}\nPORT=3\n")),
        call(
            "edit",
            json!({"path": "env", "old_string": "PORT=1", "new_string": "PORT=4"}),
        ),
        done("changed the port"),
    ]));
    let home = home(&server, "");
    change_config(&home, |text| text + "redact: true\n");
    std::fs::write(home.path().join("work/env"), format!("KEY={key}\nPORT=1\n")).unwrap();
    let ran = home.run("run 'set the port to 4' --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let told = results(&server.last_call().unwrap().messages());
    assert!(told[0].contains("KEY=[redacted:"), "{}", told[0]);
    assert!(told[1].contains("was not run"), "{}", told[1]);
    assert!(told[2].contains("was not run"), "{}", told[2]);
    let left = std::fs::read_to_string(home.path().join("work/env")).unwrap();
    assert_eq!(left, format!("KEY={key}\nPORT=4\n"));
    assert_eq!(rows(&home)[0].status, Status::Completed);
}

#[test]
#[cfg(target_os = "linux")]
fn no_process_of_the_same_user_reads_the_environment_of_infold() {
    let dir = tempfile::tempdir().unwrap();
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(dir.path(), mode(0o755)).unwrap();
    let program = dir.path().join("infold");
    // Copied by another process: a file that another test's child inherited open for writing cannot be run.
    let copied = std::process::Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_infold"))
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    std::fs::set_permissions(&program, mode(0o755)).unwrap();
    let mut command = Command::new(&program);
    command.args(["count", "-"]).current_dir("/");
    command.env_clear().env("INFOLD_CONFIG", "/dev/null");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let own = std::fs::metadata("/proc/self").unwrap().uid();
    if own == 0 {
        // Of an administrator nothing can be hidden.
        command.uid(NOBODY);
    }
    let mut waiting = command.spawn().unwrap();
    let environment = format!("/proc/{}/environ", waiting.id());
    // The system gives files that must not be read to the administrator.
    wait_until("the environment is hidden", || {
        assert!(
            waiting.try_wait().unwrap().is_none(),
            "it waits for its input"
        );
        std::fs::metadata(&environment).is_ok_and(|file| file.uid() == 0)
    });
    drop(waiting.stdin.take());
    waiting.wait().unwrap();
}

#[test]
fn a_model_is_made_to_call_tools_if_that_is_asked_for() {
    let server = Server::start(Script::decide(|_| done("ok")));
    let home = home(&server, "");
    let choice = || {
        let request = server.last_call().unwrap().text();
        let request: serde_json::Value = serde_json::from_str(&request).unwrap();
        request["tool_choice"].clone()
    };
    assert_eq!(home.run("run 'try' --workspace work", b"").code, 0);
    assert_eq!(choice(), serde_json::Value::Null);
    let ran = home.run("run 'try' --workspace work --require-calls", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert_eq!(choice(), "required");
}
