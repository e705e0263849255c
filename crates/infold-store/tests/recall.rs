//! Excerpts of hidden messages: shown at the end of the last message, on every wire, as long as they are needed.

use infold_log::steer::{Side, Target};
use infold_log::{Floor, Seq, View};
use infold_store::{Contexts, Durability, Log, Metadata, Writer};
use uuid::Uuid;

struct World {
    _root: tempfile::TempDir,
    contexts: Contexts,
    id: Uuid,
}

const TALK: [&str; 6] = [
    r#"{"role":"user","content":"build the importer"}"#,
    r#"{"role":"assistant","content":"how many retries?"}"#,
    r#"{"role":"user","content":"RETRY_BUDGET is 1750 ms"}"#,
    r#"{"role":"assistant","content":"noted"}"#,
    r#"{"role":"user","content":"go on"}"#,
    r#"{"role":"assistant","content":"done so far"}"#,
];
const EXCERPT: &str = "[message 3:] RETRY_BUDGET is 1750 ms";

impl World {
    /// A conversation whose middle is folded, and a question about it.
    fn folded() -> World {
        let root = tempfile::tempdir().expect("a directory");
        let contexts = Contexts::new(root.path(), Durability::Turn);
        let id = contexts.create(Metadata::default()).expect("a task");
        let world = World {
            _root: root,
            contexts,
            id,
        };
        let mut writer = world.write();
        writer.append(&TALK).expect("appended");
        writer
            .condense("2..5".parse().expect("a span"), "talk of the importer")
            .expect("folded");
        writer.append(&[question()]).expect("appended");
        drop(writer);
        world
    }

    fn write(&self) -> Writer {
        self.contexts.write(self.id).expect("a writer").0
    }

    fn read(&self) -> Log {
        self.contexts.read(self.id).expect("a log")
    }
}

fn question() -> &'static str {
    r#"{"role":"user","content":"what is RETRY_BUDGET?"}"#
}

fn seq(number: u64) -> Seq {
    Seq::new(number).expect("counted from one")
}

fn shown(log: &Log) -> String {
    let view = View::of(log.state().shown(), log).expect("a view");
    let floor = Floor::of(log.state().shown(), log).expect("a floor");
    let verdict = log.check(&view, &floor).expect("checked");
    assert!(verdict.faults.is_empty(), "{:?}", verdict.faults);
    String::from_utf8(log.rendered(&view).expect("rendered")).expect("text")
}

#[test]
fn an_excerpt_stands_at_the_end_of_the_last_message_until_what_it_quotes_is_shown() {
    let world = World::folded();
    let mut writer = world.write();
    let before = shown(writer.log());
    let recalled = writer.recall(seq(3), "RETRY_BUDGET", EXCERPT);
    assert!(recalled.expect("recorded").is_some());
    let with = shown(writer.log());
    assert!(with.ends_with("what is RETRY_BUDGET?\\n\\n[message 3:] RETRY_BUDGET is 1750 ms\"}\n"));
    assert_eq!(
        with.lines().count(),
        before.lines().count(),
        "it is a part of the message"
    );
    writer
        .append(&[r#"{"role":"assistant","content":"1750 ms"}"#])
        .expect("appended");
    let answered = shown(writer.log());
    assert!(answered.starts_with(&with), "the view only grows");
    drop(writer);
    // The recorded text is the rendered one, and all of it is read back.
    let log = world.read();
    assert_eq!(shown(&log), answered);
    let current = world.contexts.place(world.id).expect("a place");
    let current = std::fs::read_to_string(current.join("current.jsonl")).expect("a view");
    assert_eq!(current, answered);

    let mut writer = world.write();
    let fold = writer.log().state().step().expect("a fold");
    writer.unfold(fold).expect("opened");
    let open = shown(writer.log());
    assert!(open.contains("is 1750 ms") && !open.contains("[message 3:]"));
    // Taking that back shows the excerpt again.
    writer.undo().expect("undone");
    assert_eq!(shown(writer.log()), answered);
}

#[test]
fn an_excerpt_is_no_step_and_is_folded_with_its_message() {
    let world = World::folded();
    let mut writer = world.write();
    writer
        .recall(seq(3), "RETRY_BUDGET", EXCERPT)
        .expect("recorded");
    writer
        .append(&[
            r#"{"role":"assistant","content":"1750 ms"}"#,
            r#"{"role":"user","content":"thanks"}"#,
        ])
        .expect("appended");
    let with = shown(writer.log());
    writer
        .condense("6..8".parse().expect("a span"), "the budget was asked for")
        .expect("folded");
    assert!(!shown(writer.log()).contains("[message 3:]"));
    writer.undo().expect("undone");
    assert_eq!(shown(writer.log()), with);
    writer.undo().expect("the first fold is the step before");
    assert!(!shown(writer.log()).contains("[message 3:]"));
    writer.redo().expect("redone");
    assert_eq!(shown(writer.log()), with);
    writer
        .rewind(Side::Before, Target::Message(7))
        .expect("rewound");
    assert!(!shown(writer.log()).contains("[message 3:]"));
}

#[test]
fn what_is_shown_or_cannot_carry_it_gets_no_excerpt() {
    let world = World::folded();
    let mut writer = world.write();
    let events = writer.log().state().at().event;
    for source in [1, 6, 7] {
        let recalled = writer.recall(seq(source), "x", EXCERPT).expect("asked");
        assert_eq!(recalled, None, "{source} is shown");
    }
    writer
        .append(&[r#"{"role":"assistant","content":"1750 ms"}"#])
        .expect("appended");
    let recalled = writer.recall(seq(3), "x", EXCERPT).expect("asked");
    assert_eq!(recalled, None, "the model spoke last");
    assert_eq!(writer.log().state().at().event, events);
}

#[test]
fn a_fork_shows_the_excerpts_of_what_it_continues() {
    let world = World::folded();
    let mut writer = world.write();
    writer
        .recall(seq(3), "RETRY_BUDGET", EXCERPT)
        .expect("recorded");
    let with = shown(writer.log());
    drop(writer);
    let fork = world.contexts.fork(world.id, None).expect("forked");
    assert_eq!(shown(&world.contexts.read(fork).expect("a log")), with);
}

#[test]
fn a_pin_of_what_is_quoted_takes_the_excerpt_away() {
    let world = World::folded();
    let mut writer = world.write();
    let before = shown(writer.log());
    writer
        .recall(seq(3), "RETRY_BUDGET", EXCERPT)
        .expect("recorded");
    let with = shown(writer.log());
    assert_ne!(with, before);
    writer.pin(seq(3)).expect("pinned");
    let pinned = shown(writer.log());
    assert!(pinned.contains("RETRY_BUDGET is 1750 ms") && !pinned.contains("[message 3:]"));
    writer.undo().expect("undone");
    assert_eq!(shown(writer.log()), with);
}
