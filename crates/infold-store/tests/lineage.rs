//! Forks of forks of forks: depth costs neither descriptors nor stack, and a chain is found again without its sidecars.
//!
//! All tests of this file run with 256 descriptors.

use std::fs;
use std::path::PathBuf;
use std::sync::Once;

use infold_log::steer::Target;
use infold_log::{Floor, Past as _, Seq, Span, View};
use infold_store::{Contexts, Durability, EventLine, Log, LogError, Metadata, TaskError, What};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use uuid::Uuid;

const DESCRIPTORS: u64 = 256;
/// A recursion over ancestors does not fit into this.
const STACK_BYTES: usize = 512 << 10;

struct World {
    _root: TempDir,
    contexts: Contexts,
}

impl World {
    fn new() -> World {
        static LIMIT: Once = Once::new();
        LIMIT.call_once(|| {
            let maximum = getrlimit(Resource::Nofile).maximum;
            let limit = Rlimit {
                current: Some(DESCRIPTORS),
                maximum,
            };
            setrlimit(Resource::Nofile, limit).expect("a lower limit");
        });
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Never);
        let contexts = contexts.keeping().expect("a registry");
        World {
            _root: root,
            contexts,
        }
    }

    fn first(&self) -> Uuid {
        let id = self.contexts.create(Metadata::default()).expect("a task");
        self.say(id, 0);
        id
    }

    /// One turn more.
    fn say(&self, id: Uuid, number: usize) {
        let (mut writer, _) = self.contexts.write(id).expect("a writer");
        writer.append(&turn(number)).expect("a turn");
        self.contexts.settle(id, &writer).expect("it is counted");
    }

    /// A chain of forks, each with a turn of its own behind the one before; the root first.
    fn chain(&self, depth: usize) -> Vec<Uuid> {
        let mut chain = vec![self.first()];
        for number in 1..=depth {
            let fork = self.contexts.fork_as(chain[number - 1], None, |_| {});
            chain.push(fork.expect("a fork"));
            self.say(chain[number], number);
        }
        chain
    }

    fn dir(&self, id: Uuid) -> PathBuf {
        self.contexts.place(id).expect("it has a directory")
    }

    fn read(&self, id: Uuid) -> Log {
        self.contexts.read(id).expect("it can be read")
    }

    fn view(&self, id: Uuid) -> Result<String, TaskError> {
        let log = self.contexts.read(id)?;
        Ok(view(&log)?)
    }

    fn problems(&self, id: Uuid) -> Vec<String> {
        let problems = self.contexts.verify(id, None).expect("a verdict");
        problems.iter().map(ToString::to_string).collect()
    }

    fn remove_sidecars(&self, tasks: &[Uuid]) {
        for task in tasks {
            for entry in fs::read_dir(self.dir(*task)).expect("files") {
                let path = entry.expect("a file").path();
                if path.extension().is_some_and(|name| name == "idx") {
                    fs::remove_file(path).expect("removed");
                }
            }
        }
    }

    /// Changes the event that says what a task continues.
    fn set_parent(&self, id: Uuid, parent: &str, seq: u64, event: u64) {
        let path = self.dir(id).join("events.jsonl");
        let events = fs::read(&path).expect("events");
        let end = events.iter().position(|byte| *byte == b'\n');
        let end = end.expect("a line") + 1;
        let mut line = EventLine::decode(&events[..end]).expect("an event");
        let What::Fork { task, at } = &mut line.what else {
            panic!("it is no fork");
        };
        *task = parent.to_owned();
        (at.seq, at.event) = (seq, event);
        fs::write(path, [&line.encode(), &events[end..]].concat()).expect("written");
    }
}

fn turn(number: usize) -> [String; 2] {
    [
        format!(r#"{{"role":"user","content":"question {number}"}}"#),
        format!(r#"{{"role":"assistant","content":"answer {number}"}}"#),
    ]
}

fn view(log: &Log) -> Result<String, LogError> {
    let view = View::of(log.state().shown(), log)?;
    let floor = Floor::of(log.state().shown(), log)?;
    assert_eq!(log.check(&view, &floor)?.faults, []);
    Ok(String::from_utf8(log.rendered(&view)?).expect("it is text"))
}

/// Returns the expected view of the last task of a chain.
fn talk(depth: usize) -> String {
    let lines: Vec<String> = (0..=depth).flat_map(turn).collect();
    lines.join("\n") + "\n"
}

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

/// Runs something where a recursion over ancestors has no room.
fn with_little_stack(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = thread.spawn_scoped(scope, work).expect("a thread");
        thread.join().expect("it came to its end");
    });
}

#[test]
fn a_long_chain_takes_neither_descriptors_nor_stack() {
    const DEPTH: usize = 600;
    let world = World::new();
    with_little_stack(|| {
        let chain = world.chain(DEPTH);
        let last = chain[DEPTH];
        assert!(world.view(last).expect("a view") == talk(DEPTH));
        let log = world.read(last);
        let before = open_descriptors();
        view(&log).expect("a view");
        for number in [1, 2, DEPTH as u64, 2 * DEPTH as u64 + 2] {
            let seq = Seq::new(number).expect("a seq");
            log.record(seq).expect("a record");
            log.message(seq).expect("a message");
        }
        // Other tests of this process may open files meanwhile, but not as many.
        assert!(open_descriptors() < before + 100, "ancestors stay open");
        let fork = world.contexts.fork(last, None).expect("a fork");
        world.say(fork, DEPTH + 1);
        assert!(world.view(fork).expect("a view") == talk(DEPTH + 1));
        let early = world.contexts.fork(fork, Some(Target::Message(5)));
        let early = world.read(early.expect("a fork"));
        let (parent, at) = early.parent().expect("it continues another");
        assert_eq!((parent, at.seq), (&*chain[2].to_string(), 5));
        for task in [chain[1], chain[DEPTH / 2], fork] {
            assert_eq!(world.problems(task), [""; 0]);
        }
    });
}

#[test]
fn a_chain_without_any_sidecar_is_found_again() {
    const DEPTH: usize = 300;
    let world = World::new();
    with_little_stack(|| {
        let chain = world.chain(DEPTH);
        world.remove_sidecars(&chain);
        let last = chain[DEPTH];
        assert!(world.view(last).expect("a view") == talk(DEPTH));
        assert_eq!(world.problems(last), [""; 0]);
        let fork = world.contexts.fork(last, None).expect("a fork");
        assert!(world.view(fork).expect("a view") == talk(DEPTH));
        // A writer creates them again.
        world.say(last, DEPTH + 1);
        assert!(world.view(last).expect("a view") == talk(DEPTH + 1));
    });
}

#[test]
fn sidecars_missing_here_and_there_are_found_again() {
    let world = World::new();
    let chain = world.chain(12);
    for missing in 0..chain.len() {
        let some: Vec<Uuid> = chain.iter().copied().skip(missing).step_by(3).collect();
        world.remove_sidecars(&some);
        for (depth, task) in chain.iter().enumerate() {
            assert!(world.view(*task).expect("a view") == talk(depth));
        }
    }
}

#[test]
fn folds_pins_and_steps_of_ancestors_are_known_to_forks() {
    let world = World::new();
    let first = world.first();
    let mut last = first;
    for number in 1..40 {
        last = world.contexts.fork_as(last, None, |_| {}).expect("a fork");
        let (mut writer, _) = world.contexts.write(last).expect("a writer");
        writer.append(&turn(number)).expect("a turn");
        match number % 4 {
            0 => {
                let seq = 2 * number as u64;
                let span = format!("{}..{}", seq - 2, seq - 1).parse();
                let span = span.expect("a span");
                writer.condense(span, "some talk").expect("a fold");
            }
            1 => drop(writer.note(&format!("note {number}")).expect("a note")),
            2 => drop(writer.undo()),
            _ => drop(writer.pin(Seq::new(2 * number as u64).expect("a seq"))),
        }
    }
    let log = world.read(last);
    let shown = log.state().shown().clone();
    let text = view(&log).expect("a view");
    let tasks = world.contexts.tasks().expect("tasks");
    world.remove_sidecars(&tasks);
    let log = world.read(last);
    assert_eq!(log.state().shown(), &shown);
    assert!(view(&log).expect("a view") == text);
    let (mut writer, _) = world.contexts.write(last).expect("a writer");
    // Steps of ancestors can be taken back, one after another.
    while writer.undo().is_ok() {}
    let plain = view(writer.log()).expect("a view");
    assert_eq!(plain.lines().count(), 80);
}

#[test]
fn an_ancestor_that_is_gone_or_too_short_is_named() {
    let world = World::new();
    let chain = world.chain(4);
    let dir = world.dir(chain[1]);
    let away = dir.with_file_name("elsewhere");
    fs::rename(&dir, &away).expect("moved");
    let no_parent = |error: TaskError| match error {
        TaskError::Log(LogError::NoParent { parent, .. }) => {
            assert_eq!(parent, chain[1].to_string());
        }
        other => panic!("{other}"),
    };
    for task in [chain[2], chain[4]] {
        no_parent(world.view(task).expect_err("its ancestor is gone"));
        assert!(world.problems(task)[0].contains(&chain[1].to_string()));
    }
    fs::rename(&away, &dir).expect("moved back");
    assert!(world.view(chain[4]).expect("a view") == talk(4));
    let path = dir.join("messages.jsonl");
    let messages = fs::read(&path).expect("messages");
    let first = messages.iter().position(|byte| *byte == b'\n');
    fs::write(&path, &messages[..=first.expect("a line")]).expect("shortened");
    for task in [chain[2], chain[4]] {
        no_parent(world.view(task).expect_err("its ancestor is too short"));
        assert!(world.problems(task)[0].contains(&chain[1].to_string()));
    }
}

#[test]
fn a_fork_of_a_fork_that_has_nothing_of_its_own_reads_on() {
    let world = World::new();
    let first = world.first();
    let mut chain = vec![first];
    for number in 0..5 {
        let fork = world.contexts.fork(chain[number], None);
        chain.push(fork.expect("a fork"));
        // As forks were once made: each names the one before, whatever that holds.
        let event = number as u64;
        let parent = chain[number].to_string();
        let path = world.dir(chain[number + 1]).join("events.jsonl");
        let line = format!(
            "{{\"id\":{},\"ts\":1,\"after\":2,\"type\":\"fork\",\"task\":\"{parent}\",\"seq\":2,\"event\":{event}}}\n",
            event + 1
        );
        fs::write(path, line).expect("written");
    }
    // One that goes back behind where its parent begins.
    let back = world.contexts.fork(chain[5], None).expect("a fork");
    world.say(chain[5], 1);
    let parent = chain[5].to_string();
    world.set_parent(back, &parent, 1, 0);
    let path = world.dir(back).join("events.jsonl");
    let events = fs::read_to_string(&path).expect("events");
    let renumbered = events.replacen("\"after\":2", "\"after\":1", 1);
    let id = renumbered.find(",\"ts\"").expect("an event");
    fs::write(&path, format!("{{\"id\":1{}", &renumbered[id..])).expect("written");
    for task in [chain[5], back] {
        world.remove_sidecars(&[task]);
    }
    assert!(world.view(chain[4]).expect("a view") == talk(0));
    assert!(world.view(chain[5]).expect("a view") == talk(1));
    let question = turn(0)[0].clone() + "\n";
    assert_eq!(world.view(back).expect("a view"), question);
    assert_eq!(world.problems(chain[4]), [""; 0]);
}

#[test]
fn a_chain_that_leads_back_to_itself_is_told_so() {
    let world = World::new();
    let chain = world.chain(6);
    let first_event = |id: Uuid| {
        let path = world.dir(id).join("events.jsonl");
        fs::read(path).expect("events")
    };
    let before = first_event(chain[2]);
    let last = world.read(chain[2]).parent().expect("a fork").1;
    world.set_parent(chain[2], &chain[5].to_string(), last.seq, last.event);
    with_little_stack(|| {
        for (depth, task) in chain.iter().enumerate().skip(2) {
            assert!(world.problems(*task)[0].contains("continues itself"));
            // Those that continue it know from their sidecars what it continued.
            if depth > 2 {
                assert!(world.view(*task).expect("a view") == talk(depth));
                world.remove_sidecars(&[*task]);
            }
            let error = world.view(*task).expect_err("a circle");
            let is_circle = matches!(error, TaskError::Log(LogError::Circular { .. }));
            assert!(is_circle, "{error}");
        }
    });
    assert!(world.view(chain[1]).expect("a view") == talk(1));
    let path = world.dir(chain[2]).join("events.jsonl");
    fs::write(path, before).expect("put back");
    assert!(world.view(chain[6]).expect("a view") == talk(6));
}

/// A chain as some other program might leave it: logs alone, each with one message of its own.
fn bare_chain(world: &World, depth: usize) -> Vec<Uuid> {
    let root = world.contexts.root().join("running");
    let first = world.contexts.create(Metadata::default()).expect("a task");
    let metadata = fs::read_to_string(root.join(first.to_string()).join("metadata.json"));
    let metadata = metadata.expect("metadata");
    let mut chain: Vec<Uuid> = Vec::new();
    for number in 0..=depth {
        let id = Uuid::new_v4();
        let dir = root.join(id.to_string());
        fs::create_dir(&dir).expect("a directory");
        let metadata = metadata.replace(&first.to_string(), &id.to_string());
        fs::write(dir.join("metadata.json"), metadata).expect("metadata");
        let fork = chain.last().map_or(String::new(), |parent| {
            let at = number - 1;
            format!(
                "{{\"id\":{number},\"ts\":{number},\"after\":{number},\"type\":\"fork\",\"task\":\"{parent}\",\"seq\":{number},\"event\":{at}}}\n"
            )
        });
        fs::write(dir.join("events.jsonl"), fork).expect("events");
        let message = format!(
            "{{\"role\":\"user\",\"content\":\"number {number}\",\"seq\":{},\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"tokens\":9}}\n",
            number + 1
        );
        fs::write(dir.join("messages.jsonl"), message).expect("messages");
        chain.push(id);
    }
    chain
}

#[test]
fn ten_thousand_forks_of_one_another_can_be_read() {
    const DEPTH: usize = 10_000;
    let world = World::new();
    with_little_stack(|| {
        let chain = bare_chain(&world, DEPTH);
        let log = world.read(chain[DEPTH]);
        let mut number = 0;
        let span = Span::new(Seq::FIRST, Seq::new(DEPTH as u64 + 1).expect("a seq"));
        log.each_message(span.expect("in order"), &mut |_, bytes| {
            let text = format!(r#"{{"role":"user","content":"number {number}"}}"#);
            assert_eq!(String::from_utf8_lossy(bytes), text);
            number += 1;
            Ok(())
        })
        .expect("all can be read");
        assert_eq!(number, DEPTH + 1);
    });
}
