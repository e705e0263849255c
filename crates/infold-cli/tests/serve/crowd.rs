//! More conversations than there are files to keep them open.

use std::fs;
use std::net::TcpStream;
use std::thread;

use infold_testkit::{Script, Server};
use infold_wire::Wire;
use uuid::Uuid;

use crate::talk::Talk;
use crate::{House, until};

const CLIENTS: usize = 8;
const EACH: usize = 25;

/// The server ran out of descriptors; the views derived from the logs are complete nevertheless.
#[test]
fn views_are_whole_when_descriptors_ran_out() {
    let server = Server::start(Script::new());
    let mut house = House::closed(&server.url());
    house.files = Some(FEW);
    house.start();
    let port = house.port;
    // Each keeps a connection open, beside that of the request under way.
    let idle: Vec<TcpStream> = (0..FEW / 16)
        .filter_map(|_| TcpStream::connect(("127.0.0.1", port)).ok())
        .collect();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut talk = Talk::new(Wire::ALL[number % 5], number % 2 == 0);
                    talk.say(&format!("this is {client}, number {number}"));
                    talk.insist(port);
                }
            });
        }
    });
    drop(idle);
    let tasks = house.tasks();
    let running = house.contexts.join("running");
    let is_shown = |task: &Uuid| {
        let dir = running.join(task.to_string());
        let lines = |name: &str| {
            let bytes = fs::read(dir.join(name)).unwrap_or_default();
            bytes.iter().filter(|byte| **byte == b'\n').count()
        };
        lines("current.jsonl") == lines("messages.jsonl")
    };
    let behind = || tasks.iter().filter(|task| !is_shown(task)).count();
    println!("{} tasks, {} views are behind", tasks.len(), behind());
    assert!(!tasks.is_empty());
    until("all views are written", || behind() == 0);
    house.stop();
    assert_eq!(behind(), 0);
}

/// So few descriptors that connections can take them all.
const FEW: u64 = 128;

#[test]
fn few_files_are_enough_for_many_conversations() {
    let server = Server::start(Script::new());
    let mut house = House::closed(&server.url());
    house.files = Some(256);
    house.start();
    let port = house.port;
    let mut talks: Vec<Talk> = (0..CLIENTS * EACH)
        .map(|number| Talk::new(Wire::ALL[number % 5], number % 2 == 0))
        .collect();
    thread::scope(|scope| {
        for (client, talks) in talks.chunks_mut(EACH).enumerate() {
            scope.spawn(move || {
                // All conversations begin before the first one continues: its task was closed by then.
                for turn in 0..2 {
                    for (number, talk) in talks.iter_mut().enumerate() {
                        talk.turn(port, &format!("{turn}: this is {client}, number {number}"));
                    }
                }
            });
        }
    });
    assert_eq!(house.counted("infold_failures_total"), 0);
    for talk in &talks {
        assert_eq!(house.said(talk.task()), talk.said());
        assert_eq!(talk.history.len(), 4);
    }
    assert_eq!(house.tasks().len(), CLIENTS * EACH);
}
