//! `infold enqueue`, `infold work` and `infold task pause|resume|cancel|stats`.

use std::process::Stdio;

use infold_store::Status;
use infold_testkit::{Gate, Script, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{call, done, home, rows, wait_until};

#[test]
fn a_worker_does_what_is_queued_the_important_first() {
    let server = Server::start(Script::decide(|seen| {
        let text = &seen.messages()[1];
        let text: Value = serde_json::from_str(text).unwrap();
        done(&format!("did {}", text["content"].as_str().unwrap()))
    }));
    let home = home(&server, "");
    home.file("task.md", "from a file");
    let id = "0b6f2a0e-7c53-4f6e-9d0c-5a1f6f0f2f11";
    for line in [
        "enqueue first --workspace work".to_owned(),
        "enqueue --from task.md --priority 5 --workspace work --user ada".to_owned(),
        format!("enqueue brought --workspace work --uuid {id}"),
        format!("enqueue again --workspace work --uuid {id}"),
    ] {
        let ran = home.run(&line, b"");
        assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    }
    assert_eq!(rows(&home).len(), 3);
    assert!(rows(&home).iter().all(|row| row.status == Status::Queued));
    let ran = home.run("work --once --json", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    let ended = String::from_utf8(ran.stdout).unwrap();
    let ended: Vec<Value> = ended
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let rows = rows(&home);
    assert_eq!(
        ended[0]["uuid"],
        rows[1].uuid.to_string(),
        "priority comes first"
    );
    assert_eq!(ended[1]["uuid"], rows[0].uuid.to_string());
    assert_eq!(ended[2]["uuid"], id);
    for row in &rows {
        assert_eq!(row.status, Status::Completed, "{row:?}");
        assert!(row.process_id.is_some() && row.hostname.is_some());
    }
    let stats = &home.objects("task stats")[0];
    assert_eq!(stats["by_status"], json!({"completed": 3}));
    let tokens: u64 = rows.iter().map(|row| row.counters.tokens).sum();
    assert_eq!(stats["total_tokens"], tokens);
    assert_eq!(stats["average_tokens"], tokens as f64 / 3.0);
    let users = stats["by_user"].as_array().unwrap();
    assert!(
        users.contains(&json!({"user": "ada", "count": 1})),
        "{users:?}"
    );
    let ran = home.run("task stats", b"");
    assert!(String::from_utf8_lossy(&ran.stdout).contains("completed  3"));
}

#[test]
fn what_is_paused_waits_and_what_is_cancelled_has_failed() {
    let server = Server::start(Script::decide(|_| done("ok")));
    let home = home(&server, "");
    home.run("enqueue one --workspace work", b"");
    home.run("enqueue two --workspace work", b"");
    assert_eq!(home.run("task pause T1 --reason 'a review'", b"").code, 0);
    assert_eq!(
        home.run("task cancel T2 --reason 'not needed'", b"").code,
        0
    );
    let status = || {
        rows(&home)
            .into_iter()
            .map(|row| (row.status, row.error_message))
    };
    let expected = [
        (Status::Paused, Some("a review".to_owned())),
        (Status::Failed, Some("not needed".to_owned())),
    ];
    assert!(status().eq(expected.clone()));
    assert_eq!(home.run("work --once", b"").code, 0);
    assert!(status().eq(expected), "nobody worked on them");
    assert_eq!(home.run("task resume T1", b"").code, 0);
    assert_eq!(home.run("work --once", b"").code, 0);
    assert_eq!(rows(&home)[0].status, Status::Completed);
    let ran = home.run("task resume T2", b"");
    assert_ne!(ran.code, 0, "what has ended is not resumed");
    let stats = &home.objects("task stats")[0];
    assert_eq!(stats["failures"][0]["error_message"], "not needed");
}

#[test]
fn a_worker_is_asked_to_pause_its_task_and_does_after_its_step() {
    let gate = Gate::closed();
    let first = call("list", json!({})).gated(1, &gate);
    let server = Server::start(Script::steps([first]).otherwise(|_| done("ok")));
    let home = home(&server, "");
    home.run("enqueue wait --workspace work", b"");
    let mut worker = home
        .command("work --once")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the model is asked", || server.last_call().is_some());
    let ran = home.run("task pause T1 --reason lunch", b"");
    let told = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(told.contains("after the step that is under way"), "{told}");
    assert_eq!(rows(&home)[0].status, Status::Running);
    gate.open();
    assert!(worker.wait().unwrap().success());
    let row = rows(&home).remove(0);
    assert_eq!(
        (row.status, row.error_message.as_deref()),
        (Status::Paused, Some("lunch"))
    );
    assert_eq!(row.counters.llm_calls, 1, "its step was finished");
    let ran = home.run("run --resume T1", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert_eq!(rows(&home)[0].status, Status::Completed);
}

#[test]
fn a_worker_that_is_terminated_finishes_its_step_and_gives_the_task_back() {
    let gate = Gate::closed();
    let first = call("list", json!({})).gated(1, &gate);
    let server = Server::start(Script::steps([first]).otherwise(|_| done("ok")));
    let home = home(&server, ", lease_seconds: 3600");
    home.run("enqueue wait --workspace work", b"");
    let mut worker = home.command("work").stderr(Stdio::null()).spawn().unwrap();
    wait_until("the model is asked", || server.last_call().is_some());
    kill_process(Pid::from_child(&worker), Signal::TERM).unwrap();
    // The step is under way until the model has answered.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(worker.try_wait().unwrap().is_none());
    gate.open();
    assert!(worker.wait().unwrap().success());
    let row = rows(&home).remove(0);
    assert_eq!(row.status, Status::Queued);
    assert_eq!(row.counters.llm_calls, 1);
    // The lease is an hour long: it was returned, or the next worker would have to wait for it.
    assert_eq!(home.run("work --once", b"").code, 0);
    assert_eq!(rows(&home)[0].status, Status::Completed);
    assert_eq!(home.run("verify", b"").code, 0);
}

#[test]
fn bad_input_says_what_to_do() {
    let server = Server::start(Script::new());
    let home = home(&server, "");
    for (line, expected) in [
        ("enqueue ''", "the text is empty"),
        ("enqueue x --workspace nowhere", "cannot be used"),
        ("enqueue", "required"),
        ("enqueue x --uuid 12", "invalid value"),
        ("run ''", "the text is empty"),
        ("run --resume nothing", "no task"),
        ("work --concurrency 0", "invalid value"),
        ("task pause nothing", "no task"),
    ] {
        let ran = home.run(line, b"");
        assert_eq!(ran.code, 2, "{}", home.transcript(&ran));
        let told = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(told.contains(expected), "{line}: {told}");
    }
    assert!(!home.contexts().join("running").exists() || rows(&home).is_empty());
}

#[test]
fn ctrl_c_pauses_a_task_in_the_foreground() {
    let gate = Gate::closed();
    let first = call("list", json!({})).gated(1, &gate);
    let server = Server::start(Script::steps([first]).otherwise(|_| done("ok")));
    let home = home(&server, "");
    let mut command = home.command("run 'look around' --workspace work");
    let run = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the model is asked", || server.last_call().is_some());
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    let ended = run.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(130), "{told}");
    assert!(told.contains("infold run --resume"), "{told}");
    home.meet(&told);
    let row = rows(&home).remove(0);
    assert_eq!(
        (row.status, row.error_message.as_deref()),
        (Status::Paused, Some("interrupted"))
    );
    gate.open();
    let ran = home.run("run --resume T1", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    assert_eq!(rows(&home)[0].status, Status::Completed);
    let ran = home.run("run --resume T1", b"");
    assert_eq!(ran.code, 2, "{}", home.transcript(&ran));
}
