//! Sidecars that are damaged in their middle block nothing, and stay small.

use std::fs;
use std::path::PathBuf;

use infold_log::steer::{Side, Target};
use infold_log::{EventId, Past as _, Point, Seq, Shown, View};
use infold_store::{Contexts, Durability, Log, Metadata, Repair, Writer};
use tempfile::TempDir;
use uuid::Uuid;

const SIDECARS: [&str; 3] = ["messages.idx", "events.idx", "states.idx"];

struct World {
    _root: TempDir,
    contexts: Contexts,
    id: Uuid,
}

impl World {
    fn new() -> World {
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Never);
        let id = contexts.create(Metadata::default()).expect("a task");
        World {
            _root: root,
            contexts,
            id,
        }
    }

    /// Messages and steps over many blocks of records.
    fn long() -> World {
        let world = World::new();
        let mut writer = world.write();
        for number in 0..400_u64 {
            say(&mut writer, number);
            match number % 4 {
                1 => {
                    let span = format!("{}..{}", 2 * number - 1, 2 * number);
                    let span = span.parse().expect("a span");
                    writer.condense(span, "a question").expect("a fold");
                }
                2 => drop(writer.note("mind this").expect("a note")),
                3 => drop(writer.undo().expect("undone")),
                _ => {}
            }
        }
        writer
            .rewind(Side::To, Target::Message(600))
            .expect("rewound");
        say(&mut writer, 400);
        world.contexts.settle(world.id, &writer).expect("counted");
        drop(writer);
        world
    }

    fn write(&self) -> Writer {
        self.contexts.write(self.id).expect("a writer").0
    }

    fn read(&self) -> Log {
        self.contexts.read(self.id).expect("a reader")
    }

    fn path(&self, name: &str) -> PathBuf {
        let dir = self.contexts.place(self.id).expect("it has a directory");
        dir.join(name)
    }

    fn problems(&self) -> Vec<String> {
        let registry = self.contexts.registry().expect("a registry");
        let problems = self.contexts.verify(self.id, &registry);
        let problems = problems.expect("a verdict");
        problems.iter().map(ToString::to_string).collect()
    }
}

fn say(writer: &mut Writer, number: u64) {
    let turn = [
        format!(r#"{{"role":"user","content":"question {number}"}}"#),
        format!(r#"{{"role":"assistant","content":"answer {number}"}}"#),
    ];
    writer.append(&turn).expect("a turn");
}

/// Everything that a log can be asked for.
fn all(log: &Log) -> (Vec<Vec<u8>>, Vec<Shown>, Vec<u8>) {
    let Point { seq, event } = log.state().at();
    let seqs = (1..=seq).filter_map(Seq::new);
    let messages = seqs.map(|seq| {
        log.record(seq).expect("a record");
        log.message(seq).expect("a message")
    });
    let messages = messages.collect();
    // Of very many events some will do.
    let step = 1 + event as usize / 300;
    let events = (1..=event).step_by(step).filter_map(EventId::new);
    let shown = events.map(|id| {
        log.event(id).expect("an event");
        let seq = log.mark(id).expect("a mark").after;
        let event = id.get();
        log.shown(Point { seq, event }).expect("what was shown")
    });
    let shown = shown.collect();
    let view = View::of(log.state().shown(), log).expect("a view");
    (messages, shown, log.rendered(&view).expect("a view"))
}

#[test]
fn a_damaged_record_in_the_middle_blocks_nothing() {
    let world = World::long();
    let before = all(&world.read());
    let whole = SIDECARS.map(|name| fs::read(world.path(name)).expect("a sidecar"));
    for (name, bytes) in SIDECARS.iter().zip(&whole) {
        for (share, fill) in [(3, 0), (2, 0), (2, 0xff), (4, 0x5a)] {
            let what = format!("{name} at 1/{share} with {fill:#x}");
            let mut damaged = bytes.clone();
            let at = damaged.len() / share;
            damaged[at..at + 200].fill(fill);
            fs::write(world.path(name), &damaged).expect("written");
            assert!(all(&world.read()) == before, "{what}: read");
            assert!(!world.problems().is_empty(), "{what}");
            let unchanged = fs::read(world.path(name)).expect("a sidecar");
            assert!(unchanged == damaged, "{what}: reading changed a file");

            let writer = world.write();
            assert!(all(writer.log()) == before, "{what}: written");
            drop(writer);
            assert_eq!(world.problems(), [""; 0], "{what}");
            for (name, bytes) in SIDECARS.iter().zip(&whole) {
                let now = fs::read(world.path(name)).expect("a sidecar");
                assert!(now == *bytes, "{what}: {name} is not what it was");
            }
        }
    }
}

#[test]
fn who_goes_on_behind_a_damaged_record_loses_nothing() {
    let world = World::long();
    for name in SIDECARS {
        let mut damaged = fs::read(world.path(name)).expect("a sidecar");
        let at = damaged.len() / 2;
        damaged[at..at + 64].fill(0);
        fs::write(world.path(name), damaged).expect("written");
    }
    let mut writer = world.write();
    all(writer.log());
    for number in 0..300 {
        say(&mut writer, number);
    }
    writer
        .rewind(Side::To, Target::Message(500))
        .expect("rewound");
    writer.undo().expect("undone");
    let after = all(writer.log());
    world.contexts.settle(world.id, &writer).expect("counted");
    drop(writer);
    assert!(all(&world.read()) == after);
    assert_eq!(world.problems(), [""; 0]);
}

#[test]
fn a_damaged_record_of_a_task_that_is_continued_blocks_nothing() {
    let world = World::long();
    let fork = world.contexts.fork(world.id, None).expect("a fork");
    let before = all(&world.contexts.read(fork).expect("a reader"));
    for name in SIDECARS {
        let whole = fs::read(world.path(name)).expect("a sidecar");
        let mut damaged = whole.clone();
        let at = damaged.len() / 2;
        damaged[at..at + 64].fill(0);
        fs::write(world.path(name), damaged).expect("written");
        let log = world.contexts.read(fork).expect("a reader");
        assert!(all(&log) == before, "{name}");
        fs::write(world.path(name), whole).expect("put back");
    }
}

#[test]
fn states_that_steps_bring_back_are_not_kept_again() {
    let world = World::new();
    let mut writer = world.write();
    for number in 0..600 {
        say(&mut writer, number);
    }
    // Many small folds: a state of many parts.
    for number in 1..300_u64 {
        let span = format!("{}..{}", 4 * number - 1, 4 * number);
        let span = span.parse().expect("a span");
        writer.condense(span, "a question").expect("a fold");
    }
    writer.save_index().expect("written");
    let size = || fs::metadata(world.path("states.idx")).expect("it").len();
    let before = size();
    for round in 0..120 {
        match round % 5 {
            0 => drop(writer.note("mind this").expect("a note")),
            1 => say(&mut writer, round),
            _ => {}
        }
        writer.undo().expect("undone");
        writer.redo().expect("redone");
        let (fold, _) = writer
            .condense("1197..1198".parse().expect("a span"), "the last")
            .expect("a fold");
        writer.unfold(fold).expect("opened");
        writer.undo().expect("closed again");
        writer.undo().expect("not folded");
    }
    let after = all(writer.log());
    drop(writer);
    let grown = size() - before;
    // Kept each time they would take 12 MB.
    assert!(grown < 1 << 20, "{grown} bytes for 720 steps");
    for name in SIDECARS {
        fs::remove_file(world.path(name)).expect("removed");
    }
    assert!(all(&world.read()) == after, "derived anew it is the same");
}

#[test]
fn what_a_writer_left_half_done_is_checked_byte_by_byte() {
    let world = World::new();
    let mut writer = world.write();
    for number in 0..5 {
        say(&mut writer, number);
    }
    writer.tool(br#"{"tool":"ls"}"#).expect("a record");
    writer.tool(br#"{"tool":"rm"}"#).expect("a record");
    drop(writer);
    for name in ["current.jsonl", "tools.jsonl"] {
        let whole = fs::read(world.path(name)).expect("a file");
        let mut changed = whole.clone();
        changed[20] ^= 1;
        fs::write(world.path(name), changed).expect("written");
        fs::write(world.path("lock"), r#"{"pid":1,"host":"gone"}"#).expect("a name");
        let (writer, repairs) = world.contexts.write(world.id).expect("a writer");
        let rebuilt =
            |repair: &Repair| matches!(repair, Repair::Rebuilt { name: one } if *one == name);
        assert!(repairs.iter().any(rebuilt), "{name}: {repairs:?}");
        drop(writer);
        assert!(fs::read(world.path(name)).expect("a file") == whole);
    }
}
