//! Lines that are not what was written, though they may still read as messages or events: told, and mended.

use std::fs;
use std::path::PathBuf;

use infold_log::{Seq, Span, View};
use infold_store::{Contexts, Durability, Log, LogError, Metadata, Problem, Repair, TaskError};
use tempfile::TempDir;
use uuid::Uuid;

const MESSAGES: &str = "messages.jsonl";
const EVENTS: &str = "events.jsonl";

struct World {
    _root: TempDir,
    contexts: Contexts,
    id: Uuid,
}

impl World {
    /// Ten turns, the first of which are folded away, closed in good order.
    fn new() -> World {
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Never);
        let id = contexts.create(Metadata::default()).expect("a task");
        let (mut writer, _) = contexts.write(id).expect("a writer");
        for number in 0..10 {
            let turn = [
                format!(r#"{{"role":"user","content":"question {number}"}}"#),
                format!(r#"{{"role":"assistant","content":"answer {number}"}}"#),
            ];
            writer.append(&turn).expect("a turn");
        }
        let span = "3..8".parse().expect("a span");
        writer.condense(span, "three questions").expect("a fold");
        writer.note("mind the gap").expect("a note");
        contexts.settle(id, &writer).expect("counted");
        drop(writer);
        World {
            _root: root,
            contexts,
            id,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        let dir = self.contexts.place(self.id).expect("it has a directory");
        dir.join(name)
    }

    /// Changes the line with a number in a file.
    fn change(&self, name: &str, number: usize, change: impl Fn(&[u8]) -> Vec<u8>) -> u64 {
        let bytes = fs::read(self.path(name)).expect("a file");
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let changed = change(lines[number - 1]);
        assert_ne!(changed, lines[number - 1]);
        let before = lines[..number - 1].concat();
        let offset = before.len() as u64;
        let all = [before, changed, lines[number..].concat()].concat();
        fs::write(self.path(name), all).expect("written");
        offset
    }

    fn read(&self) -> Log {
        self.contexts.read(self.id).expect("it can be read")
    }

    fn view(&self) -> Result<String, TaskError> {
        let log = self.contexts.read(self.id)?;
        let view = View::of(log.state().shown(), &log)?;
        let bytes = log.rendered(&view)?;
        Ok(String::from_utf8(bytes).expect("a text"))
    }

    fn problems(&self) -> Vec<Problem> {
        let registry = self.contexts.registry().expect("a registry");
        let problems = self.contexts.verify(self.id, &registry);
        problems.expect("a verdict")
    }

    fn repair(&self) -> String {
        let registry = self.contexts.registry().expect("a registry");
        let done = self.contexts.repair(self.id, &registry);
        done.expect("it can be repaired").join("\n")
    }

    /// The bytes of all files that were set aside.
    fn set_aside(&self) -> Vec<Vec<u8>> {
        let dir = self.contexts.place(self.id).expect("it has a directory");
        let paths = fs::read_dir(dir).expect("files").flatten();
        let torn = paths.filter(|path| path.file_name().to_string_lossy().starts_with("torn-"));
        torn.map(|path| fs::read(path.path()).expect("its bytes"))
            .collect()
    }
}

fn seq(number: u64) -> Seq {
    Seq::new(number).expect("counted from one")
}

/// As many other bytes, which are still a message.
fn other_words(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(line.to_vec()).expect("a text");
    text.replace("question", "QUESTION")
        .replace("answer", "ANSWER")
        .replace("three", "THREE")
        .into_bytes()
}

fn zeros(line: &[u8]) -> Vec<u8> {
    [vec![0; line.len() - 1], vec![b'\n']].concat()
}

fn is_damage(problem: &Problem, name: &str, offset: u64, what: &str) -> bool {
    matches!(problem, Problem::Damaged(LogError::Damaged { path, at, reason })
        if path.ends_with(name) && *at == offset && reason.contains(what))
}

#[test]
fn a_message_with_other_words_of_the_same_length_is_told() {
    // One that is hidden, and one that is shown.
    for number in [5, 15] {
        let world = World::new();
        let offset = world.change(MESSAGES, number, other_words);
        let what = format!("message {number} is not what was written");
        let problems = world.problems();
        let told = |problem| is_damage(problem, MESSAGES, offset, &what);
        assert!(problems.iter().any(told), "{problems:?}");
        let log = world.read();
        let error = log.message(seq(number as u64)).expect_err("it is damaged");
        assert!(error.to_string().contains(&what), "{error}");
        let all = Span::new(Seq::FIRST, seq(20)).expect("in order");
        let read = log.each_message(all, &mut |_, _| Ok(()));
        assert!(read.is_err());
        for other in (1..=20).filter(|other| *other != number as u64) {
            log.message(seq(other)).expect("the others are whole");
        }
        assert_eq!(world.view().is_err(), number == 15);
    }
}

#[test]
fn a_line_of_zeros_is_never_shown() {
    for number in [5, 15] {
        let world = World::new();
        world.change(MESSAGES, number, zeros);
        match world.view() {
            Ok(view) => assert!(number == 5 && !view.contains('\0')),
            Err(TaskError::Log(LogError::Damaged { path, .. })) => {
                assert!(number == 15 && path.ends_with(MESSAGES));
            }
            Err(error) => panic!("{error}"),
        }
        assert!(!world.problems().is_empty());
    }
}

#[test]
fn what_does_not_read_as_a_message_is_replaced_and_what_does_is_kept() {
    let world = World::new();
    world.change(MESSAGES, 5, other_words);
    world.change(MESSAGES, 15, zeros);
    world.change(MESSAGES, 16, other_words);
    let damaged = fs::read(world.path(MESSAGES)).expect("messages");
    let done = world.repair();
    assert!(
        done.contains("1 damaged message replaced by a note"),
        "{done}"
    );
    assert!(
        done.contains(
            "2 messages are not what was written but still read as such, and were kept: 5, 16"
        ),
        "{done}"
    );
    assert!(world.set_aside().contains(&damaged));
    let problems = world.problems();
    assert!(problems.is_empty(), "{problems:?}");
    let log = world.read();
    let text = |number| String::from_utf8(log.message(seq(number)).expect("a message"));
    assert!(text(5).expect("a text").contains("QUESTION 2"));
    assert!(
        text(15)
            .expect("a text")
            .contains("[message 15 was damaged")
    );
    assert!(text(16).expect("a text").contains("ANSWER 7"));
}

#[test]
fn a_file_whose_messages_all_read_as_such_is_not_rewritten() {
    let world = World::new();
    world.change(MESSAGES, 5, other_words);
    let damaged = fs::read(world.path(MESSAGES)).expect("messages");
    let done = world.repair();
    assert!(!done.contains("replaced"), "{done}");
    assert!(done.contains("was kept: 5"), "{done}");
    assert_eq!(fs::read(world.path(MESSAGES)).expect("messages"), damaged);
    assert_eq!(world.set_aside(), [damaged]);
    let problems = world.problems();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn an_event_with_other_words_of_the_same_length_is_told_and_kept() {
    let world = World::new();
    let offset = world.change(EVENTS, 1, other_words);
    let what = "event e1 is not what was written";
    let problems = world.problems();
    let told = |problem| is_damage(problem, EVENTS, offset, what);
    assert!(problems.iter().any(told), "{problems:?}");
    let error = world.view().expect_err("its stand-in is damaged");
    assert!(error.to_string().contains(what), "{error}");
    let damaged = fs::read(world.path(EVENTS)).expect("events");
    let done = world.repair();
    assert!(done.contains("1 event is not what was written"), "{done}");
    assert_eq!(world.set_aside(), [damaged]);
    let problems = world.problems();
    assert!(problems.is_empty(), "{problems:?}");
    assert!(world.view().expect("a view").contains("THREE QUESTIONs"));
}

#[test]
fn an_event_of_zeros_is_mended_though_the_sidecars_know_it() {
    let world = World::new();
    world.change(EVENTS, 1, zeros);
    assert!(world.view().is_err());
    assert!(!world.problems().is_empty());
    let done = world.repair();
    assert!(done.contains("1 damaged event"), "{done}");
    let problems = world.problems();
    assert!(problems.is_empty(), "{problems:?}");
    // The fold is gone, the note behind it is not, and no message is.
    let view = world.view().expect("a view");
    assert!(view.contains("mind the gap") && view.contains("question 2"));
}

#[test]
fn a_message_of_another_length_is_told() {
    let world = World::new();
    world.change(MESSAGES, 5, |line| {
        let text = String::from_utf8(line.to_vec()).expect("a text");
        text.replace("question", "a longer question").into_bytes()
    });
    let problems = world.problems();
    assert!(!problems.is_empty());
    world.repair();
    let problems = world.problems();
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn a_damaged_message_of_a_task_that_is_continued_is_told_where_it_is() {
    let world = World::new();
    let fork = world.contexts.fork(world.id, None).expect("a fork");
    let offset = world.change(MESSAGES, 15, other_words);
    let log = world.contexts.read(fork).expect("it can be read");
    let error = log.message(seq(15)).expect_err("it is damaged");
    let LogError::Damaged { path, at, .. } = error else {
        panic!("{error}");
    };
    assert_eq!((path, at), (world.path(MESSAGES), offset));
    let problems = world.contexts.verify(fork, None).expect("a verdict");
    assert!(
        problems[0].to_string().contains(&world.id.to_string()),
        "{problems:?}"
    );
}

#[test]
fn an_undo_of_a_damaged_step_takes_back_nothing_else() {
    let world = World::new();
    let (mut writer, _) = world.contexts.write(world.id).expect("a writer");
    writer.note("first").expect("a note");
    writer.note("second").expect("a note");
    writer.undo().expect("undone");
    drop(writer);
    // The second note, e4, is taken out; then nothing is left that e5 undid.
    world.change(EVENTS, 4, zeros);
    let done = world.repair();
    assert!(
        done.contains("what undid or redid them was left out"),
        "{done}"
    );
    let view = world.view().expect("a view");
    assert!(view.contains("first") && !view.contains("second"), "{view}");
    assert!(world.problems().is_empty());
}

#[test]
fn an_event_of_a_later_version_is_kept_as_it_is() {
    let world = World::new();
    let line = r#"{"id":3,"ts":9,"after":20,"type":"weather","rain":true}"#;
    let events = fs::read_to_string(world.path(EVENTS)).expect("events");
    fs::write(world.path(EVENTS), format!("{events}{line}\n")).expect("written");
    world.change(EVENTS, 1, zeros);
    world.repair();
    let events = fs::read_to_string(world.path(EVENTS)).expect("events");
    assert!(events.contains(line), "{events}");
}

#[test]
fn what_a_fork_continues_is_known_though_its_first_event_is_damaged() {
    for is_gone in [false, true] {
        let mut world = World::new();
        let fork = world.contexts.fork(world.id, None).expect("a fork");
        let (mut writer, _) = world.contexts.write(fork).expect("a writer");
        let said = r#"{"role":"user","content":"and more"}"#;
        writer.append(&[said]).expect("a message");
        writer.note("of the fork").expect("a note");
        drop(writer);
        world.id = fork;
        let before = world.view().expect("a view");
        world.change(
            EVENTS,
            1,
            |line| if is_gone { Vec::new() } else { zeros(line) },
        );
        let error = world.view().expect_err("its first event is damaged");
        assert!(
            error.to_string().contains("what the task continues"),
            "{error}"
        );
        let done = world.repair();
        assert!(done.contains("made again from lineage.idx"), "{done}");
        assert_eq!(world.view().expect("a view"), before);
        assert!(world.problems().is_empty());
    }
}

/// Drops the last lines of a file.
fn drop_lines(world: &World, name: &str, count: usize) {
    let bytes = fs::read(world.path(name)).expect("a file");
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let kept = lines[..lines.len() - count].concat();
    fs::write(world.path(name), kept).expect("written");
}

#[test]
fn a_log_that_became_shorter_is_told_by_verify_and_repair() {
    for (name, count) in [(MESSAGES, 3), (MESSAGES, 20), (EVENTS, 1), (EVENTS, 2)] {
        let world = World::new();
        drop_lines(&world, name, count);
        let is_told = |problem: &Problem| matches!(problem, Problem::Shortened { name: short, lines } if *short == name && *lines == count as u64);
        let problems = world.problems();
        assert!(problems.iter().any(is_told), "{name} {count}: {problems:?}");
        let told = format!("{name} is shorter than its index knew");
        let done = world.repair();
        assert!(done.contains(&told), "{name} {count}: {done}");
        let problems = world.problems();
        assert!(problems.is_empty(), "{name} {count}: {problems:?}");
    }
}

#[test]
fn a_log_that_became_shorter_is_told_by_who_opens_it() {
    use std::sync::Mutex;
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    for (name, count) in [(MESSAGES, 3), (EVENTS, 1)] {
        let mut world = World::new();
        let teller = |text: &str| TOLD.lock().expect("one thread").push(text.to_owned());
        world.contexts = world.contexts.telling(teller);
        world.read();
        assert_eq!(*TOLD.lock().expect("one thread"), [""; 0]);
        drop_lines(&world, name, count);
        world.read();
        let told = std::mem::take(&mut *TOLD.lock().expect("one thread"));
        assert_eq!(told.len(), 1, "{name}: {told:?}");
        assert!(told[0].contains(&format!("{name} is shorter")), "{told:?}");
        let (writer, repairs) = world.contexts.write(world.id).expect("a writer");
        let is_told = |repair: &Repair| matches!(repair, Repair::Shortened { name: short, lines } if *short == name && *lines == count as u64);
        assert!(repairs.iter().any(is_told), "{name}: {repairs:?}");
        drop(writer);
        let (_, repairs) = world.contexts.write(world.id).expect("a writer");
        assert!(repairs.is_empty(), "once: {repairs:?}");
    }
}
