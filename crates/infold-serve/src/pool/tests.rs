//! Tests of the task pool.

use std::path::Path;
use std::sync::mpsc::channel;

use infold::{Config, Connector};
use infold_provider::{Client, RetryPolicy};
use infold_store::{Contexts, Durability, Metadata};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::*;
use crate::Conversations;

/// The conversations of a directory; the runtime calls no provider.
fn conversations(dir: &Path) -> (Conversations, Runtime) {
    let runtime = Runtime::new().expect("a runtime can be made");
    let client = Client::new(RetryPolicy::default()).expect("a client can be made");
    let stop = watch::channel(false).1;
    let connector = Connector::new(client, runtime.handle().clone(), stop);
    let contexts = Contexts::new(dir, Durability::Never).keeping();
    let contexts = contexts.expect("a registry can be opened");
    let opened = Conversations::new(contexts, Arc::new(Config::default()), connector);
    (opened.expect("conversations can be opened"), runtime)
}

fn task(conversations: &Conversations) -> Uuid {
    let made = conversations.contexts().create(Metadata::default());
    made.expect("a task can be made")
}

#[test]
fn another_process_gets_a_task_that_nobody_uses() {
    let dir = tempfile::tempdir().unwrap();
    let (conversations, _runtime) = conversations(dir.path());
    let pool = &conversations.core.pool;
    let (idle, busy) = (task(&conversations), task(&conversations));
    for task in [idle, busy] {
        let noted = conversations.with(task, |writer| writer.note("something"));
        noted.unwrap().unwrap();
    }
    pool.begin_exchange(busy);
    let other = Contexts::new(dir.path(), Durability::Turn);
    pool.close_idle(CLOSE_AFTER_IDLE);
    assert!(other.write(idle).is_err(), "it was used just now");
    pool.close_idle(Duration::ZERO);
    other.write(idle).unwrap();
    assert!(other.write(busy).is_err());
}

#[test]
fn a_task_that_takes_long_to_open_is_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let (conversations, _runtime) = conversations(dir.path());
    let pool = &conversations.core.pool;
    let (slow, other) = (task(&conversations), task(&conversations));
    // Opening the task repairs the state that a crash left, and needs the registry for that.
    let lock = conversations.contexts().place(slow).unwrap().join("lock");
    std::fs::write(lock, "{\"pid\":1,\"host\":\"gone\"}\n").unwrap();
    let (done, is_done) = channel();
    let (go, may_go) = channel::<()>();
    std::thread::scope(|scope| {
        let locked = done.clone();
        let contexts = conversations.contexts();
        scope.spawn(move || {
            let held = contexts.with_registry(|_| {
                locked.send("registry").unwrap();
                may_go.recv().unwrap();
                Ok::<(), TaskError>(())
            });
            held.unwrap();
        });
        assert_eq!(is_done.recv(), Ok("registry"));
        for name in ["slow", "slow"] {
            let done = done.clone();
            scope.spawn(move || {
                pool.lease(slow).unwrap();
                done.send(name).unwrap();
            });
        }
        let is_opening = || pool.is_open(slow);
        let begin = Instant::now();
        while !is_opening() && begin.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        scope.spawn(move || {
            pool.lease(other).unwrap();
            done.send("other").unwrap();
        });
        let first = is_done.recv_timeout(Duration::from_secs(60));
        go.send(()).unwrap();
        assert_eq!(first, Ok("other"));
        assert_eq!(is_done.recv(), Ok("slow"));
        assert_eq!(is_done.recv(), Ok("slow"));
    });
}
