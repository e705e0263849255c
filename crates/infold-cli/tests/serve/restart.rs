//! The server ends in the middle of many conversations, and starts again.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use infold_testkit::{Script, Seen, Server, Step};
use infold_wire::Wire;

use crate::talk::Talk;
use crate::{House, until, words};

const CLIENTS: usize = 50;
const TURNS: usize = 6;

/// Answers the last message in pieces; a conversation with a name gets another answer each time.
fn answer(seen: &Seen) -> Step {
    let messages = seen.messages();
    let asked = messages
        .last()
        .map_or(String::new(), |last| words(last.as_bytes()));
    let mut said = format!("to “{asked}” there is this to say: {}", "well, ".repeat(12));
    if asked.contains("named") {
        said += &format!("for the {}th time", seen.number);
    }
    Step::say(said).pausing(Duration::from_millis(4))
}

#[test]
fn fifty_conversations_survive_two_kills_and_a_stop() {
    let server = Server::start(Script::decide(answer));
    let mut house = House::open(&server);
    let port = house.port;
    let done = AtomicUsize::new(0);
    let mut talks: Vec<Talk> = (0..CLIENTS)
        .map(|number| {
            let mut talk = Talk::new(Wire::ALL[number % 5], number / 5 % 2 == 0);
            talk.name = (number % 7 == 0).then(|| format!("number {number}"));
            talk
        })
        .collect();
    thread::scope(|scope| {
        for (number, talk) in talks.iter_mut().enumerate() {
            let done = &done;
            scope.spawn(move || {
                for turn in 0..TURNS {
                    let kind = if talk.name.is_some() {
                        "named"
                    } else {
                        "plain"
                    };
                    talk.say(&format!("question {turn} of {kind} client {number}"));
                    talk.insist(port);
                    done.fetch_add(1, Relaxed);
                }
            });
        }
        let all = CLIENTS * TURNS;
        for (share, kills) in [(all / 5, true), (all * 2 / 5, false), (all * 7 / 10, true)] {
            until("the clients go on", || done.load(Relaxed) >= share);
            if kills {
                house.kill()
            } else {
                house.stop()
            }
            house.start();
        }
    });
    house.stop();
    check(&house, &talks, server.count());
}

#[test]
fn conversations_through_two_servers_of_one_directory_survive_kills_and_commands() {
    const CLIENTS: usize = 20;
    let server = Server::start(Script::decide(answer));
    let mut houses = [House::open(&server), House::closed(&server.url())];
    houses[1].contexts = houses[0].contexts.clone();
    houses[1].start();
    let ports = [houses[0].port, houses[1].port];
    let done = AtomicUsize::new(0);
    let mut talks: Vec<Talk> = (0..CLIENTS)
        .map(|number| Talk::new(Wire::ALL[number % 5], number / 5 % 2 == 0))
        .collect();
    thread::scope(|scope| {
        for (number, talk) in talks.iter_mut().enumerate() {
            let done = &done;
            scope.spawn(move || {
                for turn in 0..TURNS {
                    talk.say(&format!("question {turn} of plain client {number}"));
                    talk.insist(ports[(turn + number) % 2]);
                    done.fetch_add(1, Relaxed);
                }
            });
        }
        for step in 1..6 {
            let share = CLIENTS * TURNS * step / 7;
            until("the clients go on", || done.load(Relaxed) >= share);
            let listed = houses[0].run(&["task", "list"]);
            assert_eq!(listed.code, Some(0), "{}", listed.err);
            houses[step % 2].kill();
            houses[step % 2].start();
        }
    });
    houses.iter_mut().for_each(House::stop);
    check(&houses[0], &talks, server.count());
}

/// Checks that every conversation is one task that holds all of it, and that nothing else was answered.
fn check(house: &House, talks: &[Talk], asked: usize) {
    let clients = talks.len();
    let again: usize = talks.iter().map(|talk| talk.again).sum();
    println!("{clients} clients, {again} tries failed, {asked} requests came to the provider");
    assert!(again > 0, "nobody noticed anything");
    let mut tasks = BTreeSet::new();
    let mut extra = 0;
    for talk in talks {
        let task = talk.task();
        assert!(tasks.insert(task), "two conversations in one task");
        assert_eq!(
            house.said(task),
            talk.said(),
            "{:?} {:?}",
            talk.wire,
            talk.name
        );
        let length = house.length(task);
        match talk.name {
            // Rewound messages remain in the log.
            Some(_) => extra += length - talk.history.len() as u64,
            None => assert_eq!(length, talk.history.len() as u64, "{:?}", house.said(task)),
        }
        house.is_well(task);
    }
    println!("{extra} messages were answered anew");
    // A kill may come between a new task and its index row: then its question is repeated in another task.
    let mut left = house.tasks();
    left.retain(|task| !tasks.contains(task));
    println!(
        "{} tasks that a kill left with nothing answered",
        left.len()
    );
    for task in &left {
        assert!(house.length(*task) <= 1, "{:?}", house.said(*task));
    }
    assert!(left.len() <= clients / 10, "{left:?}");
}
