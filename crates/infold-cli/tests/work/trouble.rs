//! Processes that die or stop, a registry that cannot be used, a workspace that is gone.

use std::process::Stdio;

use infold_store::Status;
use infold_testkit::{Gate, Script, Server};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::{call, calls, done, home, rows, wait_until};

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a small number")).expect("not zero");
    kill_process(pid, signal).expect("it is there");
}

#[test]
fn a_task_whose_process_was_killed_goes_on_at_once() {
    let gate = Gate::closed();
    let first = call("list", json!({})).gated(1, &gate);
    let server = Server::start(Script::steps([first]).otherwise(|_| done("ok")));
    let home = home(&server, ", lease_seconds: 3600");
    let mut command = home.command("run 'look around' --workspace work");
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut run = command.spawn().unwrap();
    wait_until("the model is asked", || server.last_call().is_some());
    home.meet(&rows(&home)[0].uuid.to_string());
    // While the process lives, no other one gets the task.
    let ran = home.run("run --resume T1", b"");
    assert_eq!(ran.code, 2, "{}", home.transcript(&ran));
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    let by = format!("is being carried out by process {}", run.id());
    assert!(told.contains(&by), "{told}");
    run.kill().unwrap();
    run.wait().unwrap();
    gate.open();
    // A user who is named in the environment is no option of the command.
    let mut command = home.command("run --resume T1");
    let ran = command.env("USER", "ada").output().unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    assert_eq!(rows(&home)[0].status, Status::Completed);
    assert_eq!(home.run("verify", b"").code, 0);
    let ran = home.run("run --resume T1 --user ada", b"");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("cannot be used with"));
}

#[test]
fn a_task_is_done_for_the_user_of_the_environment() {
    let server = Server::start(Script::decide(|_| done("ok")));
    let home = home(&server, "");
    let run = |options: &str| {
        let mut command = home.command(&format!("run look --workspace work {options}"));
        let ran = command.env("USER", "ada").output().unwrap();
        assert!(ran.status.success());
    };
    run("");
    run("--user bea");
    let users: Vec<_> = rows(&home).into_iter().map(|row| row.user).collect();
    assert_eq!(users, [Some("ada".to_owned()), Some("bea".to_owned())]);
}

#[test]
fn a_task_that_a_stopped_process_has_is_left_as_it_is() {
    let gate = Gate::closed();
    let first = call("list", json!({})).gated(1, &gate);
    let server = Server::start(Script::steps([first]).otherwise(|_| done("ok")));
    let home = home(&server, ", lease_seconds: 1");
    let mut command = home.command("run 'look around' --workspace work");
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap();
    wait_until("the model is asked", || server.last_call().is_some());
    home.meet(&rows(&home)[0].uuid.to_string());
    signal(run.id(), Signal::STOP);
    // The lease has expired when the lock is what keeps the task.
    let mut ran = home.run("run --resume T1", b"");
    wait_until("the lease expires", || {
        ran = home.run("run --resume T1", b"");
        ran.code != 2
    });
    assert_eq!(ran.code, 3, "{}", home.transcript(&ran));
    let row = rows(&home).remove(0);
    assert_eq!((row.status, row.error_message), (Status::Running, None));
    assert_eq!(row.process_id, Some(run.id()));
    signal(run.id(), Signal::CONT);
    gate.open();
    assert!(run.wait().unwrap().success());
    assert_eq!(rows(&home)[0].status, Status::Completed);
}

#[test]
fn a_process_that_is_stopped_costs_its_task_no_attempts() {
    let gate = Gate::closed();
    let first = call("list", json!({})).gated(1, &gate);
    let server = Server::start(Script::steps([first]).otherwise(|_| done("ok")));
    let home = home(&server, ", lease_seconds: 1, max_attempts: 2");
    home.run("enqueue look --workspace work", b"");
    let start = || {
        let mut command = home.command("work");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let mut workers = vec![start()];
    wait_until("the model is asked", || server.last_call().is_some());
    let stopped = rows(&home)[0].process_id.unwrap();
    signal(stopped, Signal::STOP);
    workers.push(start());
    // Other workers find the lease expired and the task locked, more often than the limit of attempts.
    let mut deferred = std::collections::BTreeSet::new();
    wait_until("others try", || {
        let row = rows(&home).remove(0);
        assert!(!row.status.is_end(), "{row:?}");
        if row.status == Status::Running && row.process_id != Some(stopped) {
            deferred.extend(row.process_id);
        }
        deferred.len() >= 5
    });
    signal(stopped, Signal::CONT);
    gate.open();
    wait_until("the task is done", || rows(&home)[0].status.is_end());
    assert_eq!(rows(&home)[0].status, Status::Completed);
    for mut worker in workers {
        signal(worker.id(), Signal::TERM);
        worker.wait().unwrap();
    }
    assert_eq!(home.run("verify", b"").code, 0);
}

#[test]
fn a_worker_goes_on_when_its_registry_can_be_used_again() {
    let server = Server::start(Script::decide(|_| done("ok")));
    let home = home(&server, "");
    home.run("enqueue one --workspace work", b"");
    let told = home.path().join("told");
    let mut command = home.command("work");
    command
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&told).unwrap());
    let mut worker = command.spawn().unwrap();
    wait_until("the first task is done", || rows(&home)[0].status.is_end());
    // A file in the place of the directory: no registry can be made there.
    let (contexts, aside) = (home.contexts(), home.path().join("aside"));
    std::fs::rename(&contexts, &aside).unwrap();
    std::fs::write(&contexts, "").unwrap();
    wait_until("the worker has a problem", || {
        assert!(
            worker.try_wait().unwrap().is_none(),
            "{}",
            std::fs::read_to_string(&told).unwrap()
        );
        std::fs::read_to_string(&told)
            .unwrap()
            .contains("trying again")
    });
    std::fs::remove_file(&contexts).unwrap();
    std::fs::rename(&aside, &contexts).unwrap();
    let ran = home.run("enqueue two --workspace work", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    wait_until("the second task is done", || {
        rows(&home).iter().all(|row| row.status.is_end())
    });
    signal(worker.id(), Signal::TERM);
    assert!(worker.wait().unwrap().success());
    assert!(
        rows(&home)
            .iter()
            .all(|row| row.status == Status::Completed)
    );
}

#[test]
fn a_task_that_could_not_be_begun_in_the_foreground_is_paused_with_the_reason() {
    let server = Server::start(Script::decide(|_| done("ok")));
    let home = home(&server, ", lease_seconds: 3600");
    std::fs::create_dir(home.path().join("gone")).unwrap();
    home.run("enqueue look --workspace gone", b"");
    std::fs::remove_dir(home.path().join("gone")).unwrap();
    let ran = home.run("run --resume T1", b"");
    assert_eq!(ran.code, 2, "{}", home.transcript(&ran));
    let row = rows(&home).remove(0);
    assert_eq!(row.status, Status::Paused);
    assert!(row.error_message.unwrap().contains("cannot be opened"));
    std::fs::create_dir(home.path().join("gone")).unwrap();
    let ran = home.run("run --resume T1", b"");
    assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
}

#[test]
fn each_call_is_counted_when_it_ends() {
    let wait = "while [ ! -e go ]; do sleep 0.05; done";
    let server = Server::start(Script::steps([
        calls(&[
            ("run", json!({"command": "echo one"})),
            ("run", json!({ "command": wait })),
        ]),
        done("waited"),
    ]));
    let home = home(&server, "");
    let mut command = home.command("run 'wait' --workspace work");
    let mut run = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the first call is counted", || {
        assert!(run.try_wait().unwrap().is_none());
        home.contexts().join("tasks.db").exists()
            && rows(&home)
                .first()
                .is_some_and(|row| row.counters.tool_calls == 1)
    });
    std::fs::write(home.path().join("work/go"), "").unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(rows(&home)[0].counters.tool_calls, 3);
}
