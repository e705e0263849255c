//! More conversations than there are files to keep them open.

use std::thread;

use infold_testkit::{Script, Server};
use infold_wire::Wire;

use crate::House;
use crate::talk::Talk;

const CLIENTS: usize = 8;
const EACH: usize = 25;

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
                // All are begun before the first one goes on: by then it was put away.
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
