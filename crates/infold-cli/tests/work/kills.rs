//! Workers and their processes are killed at random moments, and every task is completed nevertheless.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use infold_log::{Past as _, Role, Seq};
use infold_store::{Status, TaskRow, What};
use infold_testkit::{Script, Server};
use infold_wire::{ClientCall, Json, Message, tool_use};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{Home, call, contexts, done, events, home, rows};

/// The number of calls of each task.
const CALLS: usize = 20;

/// A model that makes each call of a task once: the number of results determines the next one.
fn server() -> Server {
    Server::start(Script::decide(|seen| {
        let messages = seen.messages();
        let task: Value = serde_json::from_str(&messages[1]).expect("it is as it was written");
        let task = task["content"].as_str().expect("it is as it was written");
        let made = crate::results(&messages).len();
        if made == CALLS {
            return done("all calls were made");
        }
        let command = format!("echo {task}.{made} >> counter; sleep 0.1");
        call("run", json!({ "command": command }))
    }))
}

fn start_worker(home: &Home) -> Child {
    let mut command = home.command("work --concurrency 2");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("a worker")
}

/// Says whether a process carries out this task: its id may have been reused.
fn is_of(pid: i32, task: uuid::Uuid) -> bool {
    let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
    words.is_ok_and(|words| words.contains(&format!("--claimed\0{task}\0")))
}

fn kill(pid: u32, task: uuid::Uuid) -> bool {
    let raw = i32::try_from(pid).unwrap_or(0);
    let pid = Pid::from_raw(raw).filter(|_| is_of(raw, task));
    pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

fn survive(tasks: usize, workers: usize, kills: usize) {
    let server = server();
    let home = home(&server, ", lease_seconds: 1, max_attempts: 100000");
    let enqueue = |task: usize| {
        let ran = home.run(&format!("enqueue task{task} --workspace work"), b"");
        assert_eq!(ran.code, 0, "{}", home.transcript(&ran));
    };
    (0..tasks).for_each(enqueue);
    let mut running: Vec<Child> = (0..workers).map(|_| start_worker(&home)).collect();
    let mut random = 0x2545_f491_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let started = Instant::now();
    let mut killed = 0;
    loop {
        assert!(
            started.elapsed() < Duration::from_secs(3600),
            "{:?}",
            rows(&home)
        );
        let known = rows(&home);
        let is_done = known.iter().all(|row: &TaskRow| row.status.is_end());
        if is_done && killed >= kills {
            break;
        }
        if is_done {
            // A fast machine has done all before it was killed often enough.
            enqueue(known.len());
        }
        std::thread::sleep(Duration::from_millis(20 + next(150)));
        if killed >= kills {
            continue;
        }
        let at = next(running.len() as u64) as usize;
        if next(3) == 0 {
            let _ = running[at].kill();
            let _ = running[at].wait();
            running[at] = start_worker(&home);
            killed += 1;
            continue;
        }
        let rows = rows(&home);
        let busy: Vec<(u32, uuid::Uuid)> = rows
            .iter()
            .filter(|row| row.status == Status::Running)
            .filter_map(|row| Some((row.process_id?, row.uuid)))
            .collect();
        if !busy.is_empty() {
            let (victim, task) = busy[next(busy.len() as u64) as usize];
            killed += usize::from(kill(victim, task));
        }
    }
    for mut worker in running {
        let _ = worker.kill();
        let _ = worker.wait();
    }
    println!("{killed} kills in {} s", started.elapsed().as_secs());
    assert!(
        killed * 2 >= kills,
        "only {killed} kills before all was done"
    );
    check(&home);
}

/// Checks that every task is done, each call has one result, and nothing ran twice.
fn check(home: &Home) {
    let counter =
        std::fs::read_to_string(home.path().join("work/counter")).expect("it is as it was written");
    let mut ran: BTreeMap<&str, usize> = BTreeMap::new();
    for line in counter.lines() {
        *ran.entry(line).or_default() += 1;
    }
    let twice: Vec<_> = ran.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "ran more than once: {twice:?}");
    let mut interrupted = 0;
    for row in rows(home) {
        assert_eq!(row.status, Status::Completed, "{row:?}");
        let log = contexts(home)
            .read(row.uuid)
            .expect("it is as it was written");
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for seq in (1..=log.state().at().seq).filter_map(Seq::new) {
            let bytes = log.message(seq).expect("it is as it was written");
            let message = Message::parse(&bytes).expect("it is as it was written");
            if log.record(seq).expect("it is as it was written").role == Role::Assistant {
                calls.extend(ClientCall::all(&message));
            }
            results.extend(tool_use::tool_results(&message));
        }
        let ids = |call: &ClientCall| call.id.clone().expect("it is as it was written");
        assert_eq!(calls.len(), CALLS + 1);
        let called: Vec<String> = calls.iter().map(ids).collect();
        let answered: Vec<String> = results.iter().map(|result| result.id.clone()).collect();
        assert_eq!(called, answered, "each call has one result, in order");
        let mut ended = BTreeMap::new();
        for what in events(home, row.uuid) {
            let What::Tool(record) = what else { continue };
            let json = Json::parse(record.as_bytes()).expect("it is as it was written");
            let key = ["message", "index"].map(|name| {
                json.get(name)
                    .expect("it is as it was written")
                    .number()
                    .expect("it is as it was written") as u64
            });
            assert!(
                ended.insert(key, record.clone()).is_none(),
                "two ends of {key:?}"
            );
            let args = json.get("args").and_then(|args| args.get("command"));
            let Some(command) = args.and_then(Json::text) else {
                continue;
            };
            let mark = command
                .strip_prefix("echo ")
                .expect("it is as it was written")
                .split(' ')
                .next()
                .expect("it is as it was written")
                .to_owned();
            if json
                .get("status")
                .expect("it is as it was written")
                .is("success")
            {
                assert_eq!(
                    ran.get(mark.as_str()),
                    Some(&1),
                    "{mark} is recorded as finished"
                );
            } else {
                interrupted += 1;
            }
        }
        assert_eq!(ended.len(), CALLS + 1, "each call has one end");
    }
    println!("{interrupted} calls were interrupted");
    let verified = home.run("verify", b"");
    assert_eq!(verified.code, 0, "{}", home.transcript(&verified));
}

#[test]
fn twenty_kills_lose_and_double_nothing() {
    survive(4, 2, 20);
}

#[test]
#[ignore = "takes minutes: scripts/kill-workers runs it"]
fn two_hundred_kills_lose_and_double_nothing() {
    survive(20, 4, 200);
}
