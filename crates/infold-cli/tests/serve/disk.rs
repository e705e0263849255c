//! Requests pass on a full disk, without permission to write, and when another process has the files locked; the
//! missing records are made up for later.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use infold_log::Seq;
use infold_store::ChainIndex;
use infold_testkit::{Model, Script, Server, hash};
use infold_wire::Wire;
use tempfile::TempDir;
use uuid::Uuid;

use crate::http;
use crate::talk::Talk;
use crate::{House, until};

/// A small file system in memory.
struct Disk {
    dir: TempDir,
}

impl Disk {
    /// Mounts one, where that is allowed.
    fn mount(size: &str) -> Option<Disk> {
        let dir = tempfile::tempdir().expect("a directory");
        let options = format!("size={size}");
        let disk = Disk { dir };
        disk.called("mount", &["-t", "tmpfs", "-o", &options, "tmpfs"])
            .then_some(disk)
    }

    fn called(&self, program: &str, args: &[&str]) -> bool {
        let mut command = Command::new(program);
        let ran = command.args(args).arg(self.dir.path()).output();
        ran.is_ok_and(|output| output.status.success())
    }

    /// Takes all the space there is.
    fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("a file");
        for size in [4096, 1] {
            while filler.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Fills the disk except for `bytes` bytes.
    fn fill_but(&self, bytes: usize) {
        let reserve = self.dir.path().join("reserve");
        fs::write(&reserve, vec![0; bytes]).expect("there is room");
        self.fill();
        Disk::remove(&reserve);
    }

    fn free(&self) {
        Disk::remove(&self.filler());
    }

    /// Frees the space of a file. Its name alone is not enough: a process that another test is just
    /// starting has a copy of its descriptor for a moment, and with it the space.
    fn remove(path: &Path) {
        let file = File::options().write(true).open(path);
        file.and_then(|file| file.set_len(0)).expect("emptied");
        fs::remove_file(path).expect("removed");
    }

    /// Mounts it once more, over itself, read-only: open files stay writable, files opened from now on are not. Returns
    /// whether that is permitted.
    fn is_bound_read_only(&self) -> bool {
        let path = self.dir.path().to_str().expect("a plain path");
        self.called("mount", &["--bind", path]) && self.called("mount", &["-o", "remount,bind,ro"])
    }

    fn filler(&self) -> PathBuf {
        self.dir.path().join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        while self.called("umount", &["-l"]) {}
    }
}

/// Conversations on all wires, streamed and not, each after one turn.
fn begun(port: u16) -> Vec<Talk> {
    let begin = |(at, wire): (usize, Wire)| {
        let mut talk = Talk::new(wire, at % 2 == 0);
        talk.turn(port, &format!("hello on {wire:?}"));
        talk
    };
    Wire::ALL.into_iter().enumerate().map(begin).collect()
}

/// Takes a turn that must pass unchanged, whether it is recorded or not.
fn passes(server: &Server, house: &House, talk: &mut Talk, text: &str) {
    let (task, sent) = (talk.task, talk.history.len());
    talk.turn(house.port, text);
    let mut asked = Talk::new(talk.wire, talk.stream);
    asked.history = talk.history[..=sent].to_vec();
    let hash = hash(&asked.body());
    let is_asked = server.requests().iter().any(|seen| seen.hash == hash);
    assert!(is_asked, "{:?}", talk.wire);
    if talk.task.is_none() {
        talk.task = task;
    }
}

/// Checks that a conversation is one task, which has all of it.
fn is_kept(house: &House, talk: &Talk) {
    assert_eq!(house.said(talk.task()), talk.said(), "{:?}", talk.wire);
    house.is_well(talk.task());
}

#[test]
fn a_full_disk_stops_nobody_and_is_caught_up_with() {
    let Some(disk) = Disk::mount("3m") else {
        println!("skipped: nothing can be mounted here");
        return;
    };
    let server = Server::start(Script::new());
    let mut house = House::closed(&server.url());
    house.contexts = disk.dir.path().join("contexts");
    house.start();
    let mut talks = begun(house.port);
    let tasks: Vec<Uuid> = talks.iter().map(Talk::task).collect();
    let before = house.tasks().len();
    disk.fill();
    let mut late = Talk::new(Wire::Chat, true);
    for turn in 0..3 {
        for talk in &mut talks {
            passes(&server, &house, talk, &format!("in spite of all, {turn}"));
        }
        // A conversation that begins at this moment passes too.
        passes(
            &server,
            &house,
            &mut late,
            &format!("a bad time to begin, {turn}"),
        );
    }
    let failed = house.counted("infold_failures_total");
    assert!(failed > 0, "nobody counted it");
    disk.free();
    late.turn(house.port, "is there room?");
    is_kept(&house, &late);
    for (talk, task) in talks.iter_mut().zip(tasks) {
        talk.turn(house.port, "is there room?");
        assert_eq!(talk.task(), task, "{:?}", talk.wire);
        is_kept(&house, talk);
    }
    assert_eq!(house.tasks().len(), before + 1, "others were left behind");
    println!("{failed} failures were counted; every conversation was caught up with");
}

#[test]
fn a_disk_that_fills_up_in_the_middle_leaves_nothing_half() {
    let Some(disk) = Disk::mount("32m") else {
        println!("skipped: nothing can be mounted here");
        return;
    };
    let server = Server::start(Script::new());
    let mut house = House::closed(&server.url());
    house.contexts = disk.dir.path().join("contexts");
    // This test concerns only the room on the disk.
    house.window = Some(1_000_000);
    house.start();
    let mut old = begun(house.port);
    let (mut began, mut unkept) = (old.len(), 0);
    for pages in 0..28 {
        disk.fill_but(pages * 4096);
        let mut young = Talk::new(Wire::ALL[pages % 5], pages % 2 == 0);
        let text = format!("as long as there is room, {pages}: {}", "more ".repeat(300));
        for turn in 0..2 {
            passes(&server, &house, &mut young, &format!("{turn}, {text}"));
            let talk = &mut old[pages % 5];
            passes(&server, &house, talk, &format!("{turn}, {text}"));
        }
        unkept += usize::from(young.task.is_none());
        disk.free();
        let task = young.task;
        young.turn(house.port, "is there room?");
        assert!(task.is_none() || task == young.task, "{pages} pages");
        is_kept(&house, &young);
        let talk = &mut old[pages % 5];
        let task = talk.task();
        talk.turn(house.port, "is there room?");
        assert_eq!(talk.task(), task, "{pages} pages");
        is_kept(&house, talk);
        began += 1;
        assert_eq!(
            house.tasks().len(),
            began,
            "{pages} pages: others were left behind"
        );
    }
    println!(
        "{unkept} of {} beginnings were not kept at first",
        began - old.len()
    );
}

#[test]
fn a_server_bears_it_when_nothing_may_be_written_any_more() {
    let Some(disk) = Disk::mount("3m") else {
        println!("skipped: nothing can be mounted here");
        return;
    };
    let server = Server::start(Script::new());
    let mut house = House::closed(&server.url());
    house.contexts = disk.dir.path().join("contexts");
    house.start();
    let mut talks = begun(house.port);
    let tasks: Vec<Uuid> = talks.iter().map(Talk::task).collect();
    for task in &tasks {
        release(&house, *task);
    }
    if !disk.is_bound_read_only() {
        println!("skipped: nothing can be bound here");
        return;
    }
    for talk in &mut talks {
        passes(&server, &house, talk, "on paper");
    }
    assert!(house.counted("infold_failures_total") > 0);
    assert!(disk.called("umount", &[]), "it can be undone");
    for (talk, task) in talks.iter_mut().zip(tasks) {
        talk.turn(house.port, "and now?");
        assert_eq!(talk.task(), task, "{:?}", talk.wire);
        is_kept(&house, talk);
    }
}

/// The window of every model in tests with folds.
const WINDOW: u64 = 4_000;

/// A server whose conversations, one on each wire, are folded.
fn folded(disk: &Disk, server: &Server) -> (House, Vec<Talk>) {
    let mut house = House::closed(&server.url());
    house.contexts = disk.dir.path().join("contexts");
    house.window = Some(WINDOW);
    house.start();
    let mut talks: Vec<Talk> = Wire::ALL
        .into_iter()
        .enumerate()
        .map(|(at, wire)| Talk::new(wire, at % 2 == 0))
        .collect();
    for talk in &mut talks {
        for turn in 0..12 {
            talk.turn(
                house.port,
                &format!("{turn}: {}", "so many words ".repeat(120)),
            );
        }
        let sent = server.last_call().expect("it was asked").len;
        assert!(
            sent * 2 < talk.body().len() as u64,
            "{:?} is folded",
            talk.wire
        );
    }
    (house, talks)
}

/// Takes a turn that must be sent folded, with the new messages at its end, though it is not recorded.
fn passes_folded(server: &Server, house: &House, talk: &mut Talk, text: &str) {
    let task = talk.task;
    talk.turn(house.port, text);
    let last = server.last_call().expect("it was asked");
    let (sent, all) = (last.len, talk.body().len() as u64);
    assert!(sent * 2 < all, "{:?}: {sent} of {all} bytes", talk.wire);
    let sent = last.text();
    assert!(sent.contains(text), "{:?}: {sent}", talk.wire);
    assert!(
        sent.contains("Summary of messages"),
        "{:?}: {sent}",
        talk.wire
    );
    if talk.task.is_none() {
        talk.task = task;
    }
}

#[test]
fn folds_apply_on_a_full_disk() {
    let Some(disk) = Disk::mount("8m") else {
        println!("skipped: nothing can be mounted here");
        return;
    };
    let server = Server::start(Script::new().model(Model::window(WINDOW)));
    let (house, mut talks) = folded(&disk, &server);
    let tasks: Vec<Uuid> = talks.iter().map(Talk::task).collect();
    disk.fill();
    for turn in 0..3 {
        for (at, talk) in talks.iter_mut().enumerate() {
            // Some tasks are open, others are closed.
            if at % 2 == turn % 2 {
                release(&house, talk.task());
            }
            passes_folded(&server, &house, talk, &format!("in spite of all, {turn}"));
        }
    }
    assert!(house.counted("infold_failures_total") > 0);
    disk.free();
    for (talk, task) in talks.iter_mut().zip(tasks) {
        talk.turn(house.port, "is there room?");
        assert_eq!(talk.task(), task, "{:?}", talk.wire);
        is_kept(&house, talk);
    }
}

#[test]
fn folds_apply_where_nothing_may_be_written() {
    let Some(disk) = Disk::mount("8m") else {
        println!("skipped: nothing can be mounted here");
        return;
    };
    let server = Server::start(Script::new().model(Model::window(WINDOW)));
    let (house, mut talks) = folded(&disk, &server);
    let tasks: Vec<Uuid> = talks.iter().map(Talk::task).collect();
    for task in &tasks {
        release(&house, *task);
    }
    if !disk.is_bound_read_only() {
        println!("skipped: nothing can be bound here");
        return;
    }
    for turn in 0..2 {
        for talk in &mut talks {
            passes_folded(&server, &house, talk, &format!("on paper, {turn}"));
        }
    }
    assert!(disk.called("umount", &[]), "it can be undone");
    for (talk, task) in talks.iter_mut().zip(tasks) {
        talk.turn(house.port, "and now?");
        assert_eq!(talk.task(), task, "{:?}", talk.wire);
        is_kept(&house, talk);
    }
}

fn release(house: &House, task: Uuid) {
    let path = format!("/infold/api/tasks/{task}/release");
    let answer = http::post(house.port, &path, &[], b"").expect("an answer");
    assert_eq!(answer.status, 204, "{}", answer.text());
}

/// A way to damage a file.
type Harm = fn(&Path);

/// The ways to damage a file, by name.
const HARMS: [(&str, Harm); 3] = [
    ("deleted", |path| {
        fs::remove_file(path).expect("it was there")
    }),
    ("garbage", |path| {
        fs::write(path, b"nothing you could use ".repeat(2000)).expect("written");
    }),
    ("cut", |path| {
        let file = File::options().write(true).open(path);
        file.and_then(|file| file.set_len(5000)).expect("cut");
    }),
];

#[test]
fn a_lost_index_is_made_anew_and_conversations_go_on() {
    for (what, harm) in HARMS {
        for running in [true, false] {
            let server = Server::start(Script::new());
            let mut house = House::open(&server);
            let mut talks = begun(house.port);
            for talk in &mut talks {
                talk.turn(house.port, "a second thing");
            }
            let tasks: Vec<Uuid> = talks.iter().map(Talk::task).collect();
            if !running {
                house.stop();
            }
            for suffix in ["", "-wal", "-shm"] {
                let path = house.contexts.join(format!("chains.db{suffix}"));
                if path.exists() && (suffix.is_empty() || what != "cut") {
                    harm(&path);
                }
            }
            if !running {
                house.start();
            }
            for restarts in [false, true] {
                if restarts {
                    house.kill();
                    house.start();
                }
                for (talk, task) in talks.iter_mut().zip(&tasks) {
                    passes(&server, &house, talk, &format!("go on, {restarts}"));
                    let about = format!("{what}, running: {running}, {:?}", talk.wire);
                    assert_eq!(talk.task(), *task, "{about}");
                    is_kept(&house, talk);
                }
            }
            assert_eq!(
                house.tasks().len(),
                tasks.len(),
                "{what}, running: {running}"
            );
        }
    }
}

#[test]
fn an_index_that_is_behind_its_tasks_is_caught_up_with() {
    // A kill between the two writes leaves this state.
    for behind in 1..=3 {
        let server = Server::start(Script::new());
        let mut house = House::open(&server);
        let mut talks = begun(house.port);
        for talk in &mut talks {
            talk.turn(house.port, "a second thing");
        }
        house.kill();
        let mut chains = ChainIndex::open(&house.contexts).expect("an index");
        for talk in &talks {
            let from = Seq::new(5 - behind).expect("counted from one");
            chains.forget_from(talk.task(), from).expect("forgotten");
        }
        drop(chains);
        house.start();
        for talk in &mut talks {
            let task = talk.task();
            passes(&server, &house, talk, "and a third");
            assert_eq!(talk.task(), task, "{:?}, behind by {behind}", talk.wire);
            is_kept(&house, talk);
            assert_eq!(house.length(task), 6, "nothing is there twice");
        }
        assert_eq!(house.tasks().len(), talks.len(), "behind by {behind}");
    }
}

#[test]
fn an_index_that_is_ahead_of_its_tasks_is_not_believed() {
    // A power cut leaves it so: the last messages never came to the disk.
    for lost in 1..=3 {
        let server = Server::start(Script::new());
        let mut house = House::open(&server);
        let mut talks = begun(house.port);
        for talk in &mut talks {
            talk.turn(house.port, "a second thing");
        }
        house.kill();
        for talk in &talks {
            let dir = house.contexts.join("running").join(talk.task().to_string());
            for (name, keep) in [("messages.jsonl", 4 - lost), ("events.jsonl", 0)] {
                let text = fs::read_to_string(dir.join(name)).expect("a log");
                let lines: Vec<&str> = text.split_inclusive('\n').take(keep).collect();
                fs::write(dir.join(name), lines.concat()).expect("cut");
            }
        }
        house.start();
        for talk in &mut talks {
            let task = talk.task();
            passes(&server, &house, talk, "and a third");
            assert_eq!(talk.task(), task, "{:?}, without {lost}", talk.wire);
            is_kept(&house, talk);
        }
        assert_eq!(house.tasks().len(), talks.len(), "without {lost}");
    }
}

#[test]
fn a_task_that_was_taken_away_begins_anew() {
    let server = Server::start(Script::new());
    let house = House::open(&server);
    for mut talk in begun(house.port) {
        let task = talk.task();
        fs::remove_dir_all(house.contexts.join("running").join(task.to_string())).expect("gone");
        passes(&server, &house, &mut talk, "did something happen?");
        talk.turn(house.port, "or not?");
        assert_ne!(talk.task(), task);
        is_kept(&house, &talk);
        let path = "/infold/api/tasks";
        let told = http::get(house.port, path).expect("an answer").text();
        assert!(!told.contains(&task.to_string()), "{told}");
        let listed = house.run(&["task", "list"]).out;
        assert!(!listed.contains(&task.to_string()), "{listed}");
    }
}

#[test]
fn a_task_that_another_holds_is_not_waited_for_long() {
    let server = Server::start(Script::new());
    let house = House::open(&server);
    let mut talks = begun(house.port);
    let task = talks[0].task();
    release(&house, task);
    let path = house.contexts.join("running").join(task.to_string());
    let lock = File::options()
        .read(true)
        .write(true)
        .open(path.join("lock"));
    let lock = lock.expect("a lock file");
    lock.try_lock().expect("nobody has it");
    // The first client waits for three seconds. On a busy machine another may take as long: then the test repeats it.
    let (first, rest) = talks.split_at_mut(1);
    let mut goes_past = |other: &mut Talk| {
        let is_in_flight = || house.counted("infold_requests_in_flight ") > 1;
        std::thread::scope(|scope| {
            let held = scope.spawn(|| passes(&server, &house, &mut first[0], "may I?"));
            until("the one waits", || is_in_flight() || held.is_finished());
            other.turn(house.port, "we may");
            let is_first = !held.is_finished();
            held.join().expect("it passes");
            is_first
        })
    };
    for talk in rest {
        assert!((0..10).any(|_| goes_past(talk)), "{:?} waits", talk.wire);
    }
    lock.unlock().expect("let go");
    talks[0].turn(house.port, "and now?");
    for talk in &talks {
        is_kept(&house, talk);
    }
    assert_eq!(talks[0].task(), task);
    assert_eq!(house.tasks().len(), talks.len());
}
